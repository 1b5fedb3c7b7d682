"""Many processes that write one file at once: nothing is lost, nothing breaks."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from memcli.facts import FactQuery
from memcli.store.check import check, verify_log
from memcli.terms import Admission, Op, State
from tests.files import memory

PROCESSES = 8
WRITES = int(os.environ.get("MEM_TEST_WRITES", "200"))
WRITER = """
import sys
from memcli.facts import Actor, Claim
from memcli.store import open_store
from memcli.terms import ActorKind, Channel

path, name, writes = sys.argv[1], sys.argv[2], int(sys.argv[3])
actor = Actor(name=name, kind=ActorKind.SCRIPT, channel=Channel.PIPE)
with open_store(path) as store:
    for number in range(writes):
        with store.write(actor, f"{name} {number}") as write:
            write.add(Claim(text=f"{name} says {number}"))
"""


def test_eight_processes_that_write_at_once_lose_nothing(tmp_path: Path):
    """Each process has its own store and writes one fact per transaction.

    By default 200 each, so that a run is short; the full size is 500, with `MEM_TEST_WRITES=500`.
    """
    path = tmp_path / "m.db"
    with memory(path, admission=Admission.DIRECT):
        names = [f"writer{number}" for number in range(PROCESSES)]

    running = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name, str(WRITES)],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "MEM_TIMEOUT": "120"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    said = [process.communicate()[1] for process in running]

    assert said == [""] * PROCESSES
    with memory(path) as store:
        found = {fact.text for fact in store.facts(FactQuery(states=frozenset(State)))}
        assert found == {f"{name} says {number}" for name in names for number in range(WRITES)}
        events = store.events()
        assert [event.seq for event in events] == list(range(1, 2 + PROCESSES * WRITES))
        assert sum(event.op is Op.ADD for event in events) == PROCESSES * WRITES
        assert all(first.at < second.at for first, second in pairwise(events))
        assert verify_log(store).findings == ()
        assert check(store) == []
    assert [item.name for item in tmp_path.iterdir()] == ["m.db"]
