"""What holds of the transaction protocol after every step of any trace, recomputed from raw rows.

`MEM_TEST_TRACES` is how many made traces are played; by default 120, so that a run is short. `MEM_TEST_FULL=1` plays
every trace of three records and two transactions to depth six; by default to depth five.
"""

import os
import random
from collections import Counter

import pytest

from tests.model_transactions import Model, tools
from tests.transaction_traces import Watch, made_trace, parted, possible, short_traces, shortened, take

DEPTH = 6 if os.environ.get("MEM_TEST_FULL") else 5
BATCHES = 6
TRACES = max(BATCHES, int(os.environ.get("MEM_TEST_TRACES", "120")))

WATCHED = (
    "P_SCOPE_WIDEN",
    "C_ECHO",
    "C_LOWER_AUTHORITY",
    "C_EQUAL_AUTHORITY",
    "EFFECTIVE_AUTHORITY",
    "C_INTRA_TX",
    "D_REVOKED_ANCESTOR",
    "HELD_WITH_TX",
    "G1_UNSETTLED",
    "G1_OWN_DRAFTS",
    "CASCADE_BELIEF",
    "CASCADE_VIEW",
    "CASCADE_CANCEL",
    "CASCADE_COMPENSATION",
    "CASCADE_LEAK",
    "WALK_THROUGH",
    "WALK_DEEP",
    "DEBT_AT_BIRTH",
    "ABORT_CASCADES",
    "COMMIT_ABORT_CASCADES",
    "TOMBSTONE_CASCADES",
    "SNAPSHOT",
    "READ_PRIVATE",
)
"""Rules that some invariant stands for, so that a machine without one is found broken."""


def model(*off):
    return Model(tools(), off=off)


def fact(subject, value, **more):
    return {"subject": subject, "attribute": "state", "value": value, "source": "x", **more}


# How many traces are asked for is a person's choice; each batch may take as long as it needs.
@pytest.mark.timeout(0)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_invariant_holds_after_every_step_of_made_traces(batch):
    broken = {seed: found for seed in range(batch, TRACES, BATCHES) if (found := Watch(model()).play(made_trace(seed)))}

    assert broken == {}


@pytest.mark.timeout(0)
def test_every_invariant_holds_on_every_short_trace_of_three_records_and_two_transactions():
    ends = 0
    for trace, found in short_traces(model, DEPTH):
        ends += 1
        assert found == [], trace

    assert ends > 2000


@pytest.mark.parametrize("rule", WATCHED)
def test_an_invariant_notices_a_machine_without_a_rule(rule):
    broken = next(trace for trace in map(made_trace, range(400)) if Watch(model(rule)).play(trace))

    assert Watch(model()).play(broken) == []


def test_made_traces_reach_every_step_and_every_outcome():
    seen = Counter()
    for seed in range(60):
        machine = model()
        for step in made_trace(seed):
            if possible(step, machine.rows()):
                got = take(machine, step)
                seen[step["op"]] += 1
                seen[got["status"] if step["op"] == "commit" else got["allow"] if step["op"] == "gate" else ""] += 1
        seen.update(record["state"] for record in machine.rows()["records"])
        seen.update(action["debt"] for action in machine.rows()["actions"])

    steps = {"seed", "begin", "stage", "read", "commit", "abort", "revoke", "tombstone", "gate", "finish", "tick"}
    states = {"tentative", "accepted", "verified", "disputed", "superseded", "revoked", "rejected"}
    assert steps | states <= set(seen)
    assert {"recover", "committed", "held", "aborted", True, False, "leak", "compensation"} <= set(seen)


def test_the_same_number_makes_the_same_trace():
    assert made_trace(7) == made_trace(7)
    assert made_trace(7) != made_trace(8)


def test_two_machines_of_one_kind_never_part():
    assert [parted(made_trace(seed), model(), model()) for seed in range(40)] == [None] * 40


@pytest.mark.parametrize(
    "rule", ["E_NO_EVIDENCE", "P_UNDECLARED_READ", "G3_PREMISE_STATE", "S_HIGHER", "CASCADE_CANCEL"]
)
def test_two_machines_part_where_one_lacks_a_rule(rule):
    places = [where for seed in range(40) if (where := parted(made_trace(seed), model(), model(rule)))]

    assert places
    assert all("step" in where for where in places)


def test_a_broken_trace_is_shortened_to_what_breaks_it():
    def broken(trace):
        return Watch(model("WALK_DEEP")).play(trace)

    trace = next(trace for trace in map(made_trace, range(400)) if broken(trace))
    short = shortened(trace, broken)

    assert broken(short)
    assert len(short) < len(trace)
    assert not any(broken(short[:place] + short[place + 1 :]) for place in range(len(short)))


@pytest.mark.parametrize("seed", range(20))
def test_commits_on_disjoint_slots_commute(seed):
    chance = random.Random(seed)
    drafts = {
        tx: [
            (f"{tx}-{place}", fact(f"{tx}-{place}", chance.choice(("on", "off")), confidence=chance.choice((0.9, 0.3))))
            for place in range(3)
        ]
        for tx in ("t1", "t2")
    }
    ends = []
    for order in (("t1", "t2"), ("t2", "t1")):
        machine = model()
        for tx in drafts:
            machine.seed(f"{tx}-seed", fact(f"{tx}-0", "unknown", authority=0.2))
        for tx in drafts:
            machine.begin(tx)
        for tx, listed in drafts.items():
            for name, draft in listed:
                machine.stage(tx, name, draft)
        verdicts = {tx: machine.commit(tx) for tx in order}
        ends.append((verdicts, machine.state()))

    assert ends[0] == ends[1]
    assert set(ends[0][0]) == {"t1", "t2"}
