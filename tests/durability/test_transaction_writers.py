"""Many processes that commit to one file at once: no update is lost, and what they forget shuts no gate for good.

By default each commits 6 times on a slot that all share and 6 times on slots of its own, so that a run is short;
`MEM_TEST_WRITES` says how often otherwise.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memcli.clock import now
from memcli.facts import Fact, FactQuery
from memcli.store import Store, open_store
from memcli.store.check import check
from memcli.terms import READABLE, Admission, Code, State, TxStatus
from tests.files import API, DAY, memory
from tests.tx_files import allow, begin, gate, trust

PROCESSES = 8
WRITES = int(os.environ.get("MEM_TEST_WRITES", "6"))
WRITER = """
import json, sys
from memcli.facts import Actor, Claim
from memcli.store import open_store
from memcli.terms import ActorKind, Channel, SourceKind

path, name, writes = sys.argv[1], sys.argv[2], int(sys.argv[3])
actor = Actor(name=name, kind=ActorKind.SCRIPT, channel=Channel.API)

def staged(tx, subject, value):
    said = {"source": name, "source_kind": SourceKind.AGENT, "references": (name,), "confidence": 0.8}
    claim = Claim(text=f"{subject} state: {value}", subject=subject, attribute="state", value=value, **said)
    with store.write(actor) as write:
        write.stage(tx, claim)

def begun(**told):
    with store.write(actor) as write:
        return write.begin(**told).id

with open_store(path) as store:
    for number in range(writes):
        for subject in ("shared", f"{name} {number}"):
            tx = begun()
            staged(tx, subject, f"{name} {number}")
            with store.write(actor) as write:
                verdict = write.commit(tx)
            print(json.dumps([subject, f"{name} {number}", verdict.status, *verdict.verdicts.values()]))
    staged(begun(lease_s=3600), "forgotten", name)
"""
LOSERS = {Code.C_STALE_LATE_WRITE, Code.C_LOWER_AUTHORITY, Code.C_EQUAL_AUTHORITY}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """Return a file that all processes wrote, and what each commit told its process."""
    path = tmp_path_factory.mktemp("written") / "m.db"
    names = [f"writer{number}" for number in range(PROCESSES)]
    with memory(path, admission=Admission.DIRECT) as store:
        allow(store)
        # Two of a kind each: some rivals outrank others, some are equals.
        trust(store, **{name: 0.5 + (number // 2) / 10 for number, name in enumerate(names)})
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name, str(WRITES)],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "MEM_TIMEOUT": "120"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    ended = [process.communicate() for process in running]
    assert [complaint for _, complaint in ended] == [""] * PROCESSES
    return path, [json.loads(line) for said, _ in ended for line in said.splitlines()]


def everything(store: Store) -> dict[tuple[str, str], Fact]:
    query = FactQuery(states=frozenset(State), any_validity=True)
    return {(str(fact.subject), str(fact.value)): fact for fact in store.facts(query)}


def test_every_commit_on_a_shared_slot_won_it_or_was_told_why_not(written: tuple[Path, list[Any]]) -> None:
    path, told = written
    shared = [line for line in told if line[0] == "shared"]
    with open_store(path) as store:
        facts = everything(store)
        assert check(store) == []

    assert len(shared) == PROCESSES * WRITES
    for subject, value, status, code in shared:
        fact = facts[subject, value]
        if code == Code.PASS:
            assert (status, fact.state in {*READABLE, State.SUPERSEDED}) == (TxStatus.COMMITTED, True)
        else:
            assert code in LOSERS
            assert (status, fact.state) in {(TxStatus.ABORTED, State.REVOKED), (TxStatus.HELD, State.DISPUTED)}
    winners = [facts[subject, value] for subject, value, _, code in shared if code == Code.PASS]
    assert len([fact for fact in winners if fact.state in READABLE]) == 1
    # Each winner but the last was superseded by one winner: none was overwritten unseen.
    heirs = [fact.superseded_by for fact in winners if fact.state is State.SUPERSEDED]
    assert len(set(heirs)) == len(winners) - 1
    assert set(heirs) <= {fact.id for fact in winners}


def test_commits_on_slots_of_their_own_do_not_meet(written: tuple[Path, list[Any]]) -> None:
    path, told = written
    own = [line for line in told if line[0] != "shared"]
    with open_store(path) as store:
        facts = everything(store)

    assert len(own) == PROCESSES * WRITES
    assert {(status, code) for _, _, status, code in own} == {(TxStatus.COMMITTED, Code.PASS)}
    assert {facts[subject, value].state for subject, value, _, _ in own} == {State.ACCEPTED}


def test_what_was_forgotten_shuts_the_gate_until_it_is_recovered(written: tuple[Path, list[Any]]) -> None:
    path, _ = written
    with open_store(path, now=lambda: now() + DAY) as store:
        ground = everything(store)["writer0 0", "writer0 0"]
        shut = gate(store, begin(store), "wire", ground)
        with store.write(API) as write:
            over = write.recover()
        opened = gate(store, begin(store), "wire", ground)

        assert check(store) == []
    assert [reason.partition(":")[0] for reason in shut.reasons] == ["G1_UNSETTLED"]
    assert len(shut.blockers) == len(over) == PROCESSES
    assert opened.allow
