"""The real writer does what the model of the protocol does, step by step, and keeps every invariant in its raw rows.

`MEM_TEST_TRACES` is how many made traces are played; by default 40, so that a run is short. `MEM_TEST_FULL=1` plays
every trace of three records and two transactions to depth six; by default an even choice of those to depth four.
"""

import os
import random

import pytest

from tests.model_transactions import Model, tools
from tests.transaction_engine import engine
from tests.transaction_traces import Watch, made_trace, parted, short_traces, take

FULL = bool(os.environ.get("MEM_TEST_FULL"))
DEPTH = 6 if FULL else 4
EVERY = 1 if FULL else 5
"""Of the longest short traces, one in so many is played."""

BATCHES = 4
TRACES = max(BATCHES, int(os.environ.get("MEM_TEST_TRACES", "40")))


class Watched:
    """A machine whose every step is watched."""

    def __init__(self, machine):
        self.watch = Watch(machine)
        self.rows = machine.rows

    def __getattr__(self, op):
        def taken(**told):
            if "record_id" in told:
                told["id"] = told.pop("record_id")
            return self.watch.take({"op": op, **told})

        return taken


def faults(trace):
    """Return where the writer parts from the model, what it broke on the way, and what `mem check` finds at the end."""
    with engine() as real:
        watched = Watched(real)
        where = parted(trace, Model(tools()), watched)
        return [*filter(None, [where]), *watched.watch.found, *(str(item) for item in real.broken())]


def played(trace):
    """Return what the last step of a trace gives on the writer and on the model."""
    with engine() as real:
        machines = (real, Model(tools()))
        for step in trace[:-1]:
            for machine in machines:
                take(machine, step)
        return [take(machine, trace[-1]) for machine in machines]


def fact(subject, value, **more):
    return {"subject": subject, "attribute": "state", "value": value, "source": "x", **more}


# How many traces are asked for is a person's choice; each batch may take as long as it needs.
@pytest.mark.timeout(0)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_the_writer_does_what_the_model_does_and_breaks_nothing_on_made_traces(batch):
    broken = {seed: found for seed in range(batch, TRACES, BATCHES) if (found := faults(made_trace(seed)))}

    assert broken == {}


@pytest.mark.timeout(0)
def test_the_writer_does_what_the_model_does_on_short_traces_of_three_records_and_two_transactions():
    every = [trace for trace, _ in short_traces(lambda: Model(tools()), DEPTH)]
    begun = {repr(trace[:-1]) for trace in every}
    longest = [trace for trace in every if repr(trace) not in begun]
    broken = {number: found for number in range(0, len(longest), EVERY) if (found := faults(longest[number]))}

    assert len(longest) > 400
    assert broken == {}


def test_a_machine_that_lets_a_rule_go_parts_from_the_writer():
    with engine() as real:
        where = parted(made_trace(4), Model(tools(), off=["G1_UNSETTLED"]), real)

    assert where is not None
    assert faults(made_trace(4)) == []


def test_a_repeated_read_leaves_out_what_has_ended_since_and_nothing_else():
    trace = [
        {"op": "seed", "id": "s1", "fact": fact("svc", "up", valid_to=10), "state": "accepted"},
        {"op": "begin", "tx": "t1"},
        {"op": "read", "tx": "t1", "subject": "svc", "attribute": "state"},
        {"op": "revoke", "id": "s1"},
        {"op": "read", "tx": "t1", "subject": "svc", "attribute": "state"},
    ]

    assert played(trace[:3]) == [["up"], ["up"]]
    assert played(trace) == [["up"], ["up"]]
    assert played([*trace[:4], {"op": "tick", "by": 10}, trace[4]]) == [[], []]


def test_a_repeated_read_takes_in_what_has_begun_since_and_counts_it_as_read():
    told = {"visibility": "private", "valid_from": 10}
    trace = [
        {"op": "seed", "id": "s1", "fact": fact("svc", "up", **told), "state": "accepted"},
        {"op": "begin", "tx": "t1"},
        {"op": "read", "tx": "t1", "subject": "svc", "attribute": "state"},
        {"op": "tick", "by": 10},
        {"op": "read", "tx": "t1", "subject": "svc", "attribute": "state"},
        {"op": "stage", "tx": "t1", "id": "f1", "fact": fact("door", "open")},
        {"op": "commit", "tx": "t1", "mode": "atomic"},
    ]

    assert played(trace[:3]) == [[], []]
    assert played(trace[:5]) == [["up"], ["up"]]
    assert [got["verdicts"] for got in played(trace)] == [{"f1": "P_UNDECLARED_READ"}] * 2


def test_a_draft_below_one_that_fell_stands_on_a_withdrawn_ancestor():
    trace = [
        {"op": "begin", "tx": "t1"},
        {"op": "begin", "tx": "t2"},
        {"op": "stage", "tx": "t1", "id": "f1", "fact": fact("svc", "up")},
        {"op": "stage", "tx": "t1", "id": "f2", "fact": fact("door", "open", derived_from=["f1"])},
        {"op": "revoke", "id": "f1"},
        {"op": "commit", "tx": "t1", "mode": "atomic"},
    ]

    assert [got["verdicts"]["f2"] for got in played(trace)] == ["D_REVOKED_ANCESTOR"] * 2
    assert [got["verdicts"]["f2"] for got in played([*trace[:4], trace[5]])] == ["PASS"] * 2


def test_a_planned_call_does_not_begin_once_its_transaction_came_to_nothing():
    trace = [
        {"op": "seed", "id": "s1", "fact": fact("svc", "up"), "state": "accepted"},
        {"op": "begin", "tx": "t1"},
        {"op": "gate", "tx": "t1", "tool": "wire", "premises": ["s1"], "action": "pay", "effect": "planned"},
        {"op": "finish", "action": "pay", "effect": "done"},
    ]
    ends = []
    for steps in (trace, [*trace[:3], {"op": "abort", "tx": "t1"}, trace[3]]):
        with engine() as real:
            assert parted(steps, Model(tools()), real) is None
            ends.append([action["effect"] for action in real.rows()["actions"]])

    assert ends == [["done"], ["planned"]]


@pytest.mark.parametrize("seed", range(4))
def test_commits_of_the_writer_on_disjoint_slots_commute(seed):
    chance = random.Random(seed)
    drafts = [
        (tx, f"{tx}-{place}", fact(f"{tx}-{place}", chance.choice(("on", "off")), confidence=chance.choice((0.9, 0.3))))
        for tx in ("t1", "t2")
        for place in range(3)
    ]
    ends = []
    for order in (("t1", "t2"), ("t2", "t1")):
        with engine() as real:
            for tx in order:
                real.begin(tx)
            for tx, name, draft in drafts:
                real.stage(tx, name, draft)
            verdicts = {tx: real.commit(tx) for tx in order}
            ends.append((verdicts, {record["id"]: record["state"] for record in real.rows()["records"]}))
            assert real.broken() == []

    assert ends[0] == ends[1]
    assert len(ends[0][1]) == len(drafts)
