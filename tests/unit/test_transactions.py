"""Cases: every one is passed by the real writer, what lacks a part fails some, and what is no case is named."""

import json
from pathlib import Path

import pytest

from memcli.errors import Unreadable, UsageError
from memcli.store.scratch import scratch
from memcli.terms import Profile
from memcli.transactions.replay import Baseline, replay

FIXTURES = Path(__file__).parents[2] / "fixtures/transactions"
TOOLS = json.loads((FIXTURES / "tools.json").read_text(encoding="utf-8"))
FACT = {"subject": "order7", "attribute": "due", "value": 9}


def lines(name):
    return (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()


def played(*cases, baseline=None, profile=Profile.STRICT):
    """Return how cases come out."""
    told = [case if isinstance(case, str) else json.dumps(case) for case in cases]
    return replay(told, scratch=scratch, tools=TOOLS, profile=profile, baseline=baseline, path="cases.jsonl")


def case(*steps, name="X1"):
    return {"id": name, "family": "f", "kind": "trap", "title": "t", "steps": list(steps)}


@pytest.mark.parametrize("name", ["published", "own", "hardened", "paper"])
def test_every_case_passes(name):
    results = played(*lines(name), profile=Profile.PAPER if name == "paper" else Profile.STRICT)

    assert len(results) == len(lines(name)) > 5
    assert [(item.id, item.step, item.expected, item.got) for item in results if not item.passed] == []


@pytest.mark.parametrize(
    ("baseline", "caught", "missed"),
    [
        (Baseline.DIRECT, {"TP01", "SL01", "DR02", "SC01", "PL02", "CR06"}, {"PL07"}),
        (Baseline.NO_GATE, {"TP01", "SL10", "DR02", "DR05", "DR07", "DR08"}, {"SC01", "CR01"}),
        (Baseline.NO_CASCADE, {"CR01", "CR04", "CR05", "CR06", "CR07", "CR10"}, {"TP01", "DR02"}),
        (Baseline.BLOCK_ALL, {"TC01", "TC02", "SC01k", "DC01", "CC02", "PC01", "RC05"}, {"CR01"}),
    ],
)
def test_a_memory_that_lacks_a_part_fails_the_cases_that_are_about_it(baseline, caught, missed):
    failed = {item.id for item in played(*lines("published"), baseline=baseline) if not item.passed}

    assert caught <= failed
    assert not missed & failed


def test_the_first_difference_is_told_with_its_step_and_both_sides():
    (result,) = played(
        case(
            {"op": "begin", "tx": "t1"},
            {"op": "stage", "tx": "t1", "id": "r1", "fact": {**FACT, "confidence": 0.1}},
            {"op": "commit", "tx": "t1", "expect": {"status": "committed"}},
            {"op": "state", "expect": {"r1": "accepted"}},
        )
    )

    assert (result.passed, result.step, result.op) == (False, 2, "commit")
    assert (result.expected, result.got) == ({"status": "committed"}, {"status": "held"})


def test_a_refusal_that_no_case_expects_is_a_difference():
    (result,) = played(case({"op": "begin", "tx": "t1"}, {"op": "abort", "tx": "t1"}, {"op": "commit", "tx": "t1"}))

    assert (result.passed, result.step, result.got) == (False, 2, {"refused": "X_CLOSED"})


def test_a_lease_is_counted_on_the_clock_of_the_case():
    steps = [
        {"op": "begin", "tx": "t1", "lease": 10},
        {"op": "stage", "tx": "t1", "id": "r1", "fact": FACT},
        {"op": "tick", "by": 10},
        {"op": "stage", "tx": "t1", "id": "r2", "fact": {**FACT, "attribute": "b"}, "expect": {"refused": "X_CLOSED"}},
        {"op": "recover", "expect": ["t1"]},
        {"op": "state", "expect": {"r1": "revoked"}},
        {"op": "recover", "expect": []},
    ]

    (result,) = played(case(*steps))

    assert (result.passed, result.got) == (True, None)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "JSON"),
        ("[]", "object"),
        ('{"id": 3, "steps": []}', "id of a case"),
        ('{"id": "a", "steps": []}', "at least one step"),
        ('{"id": "a", "kind": "ruse", "steps": [{"op": "recover"}]}', "trap or a control"),
        ('{"id": "a", "steps": [7]}', "no object"),
        ('{"id": "a", "steps": [{"op": "dance"}]}', "dance"),
        ('{"id": "a", "steps": [{"op": "stage", "tx": "t1"}]}', "lacks fact, id"),
        ('{"id": "a", "steps": [{"op": "begin", "tx": 4}]}', "tx is a text"),
        ('{"id": "a", "steps": [{"op": "begin", "tx": "t", "tier": "royal"}]}', "tier is one of"),
        ('{"id": "a", "steps": [{"op": "begin", "tx": "t", "isolation": "deep"}]}', "isolation is one of"),
        ('{"id": "a", "steps": [{"op": "begin", "tx": "t", "lease": 0}]}', "0.01 or more"),
        ('{"id": "a", "steps": [{"op": "tick", "by": -1}]}', "from 0 up"),
        ('{"id": "a", "steps": [{"op": "commit", "tx": "t", "mode": "half"}]}', "atomic or partial"),
        ('{"id": "a", "steps": [{"op": "state", "expect": {"r9": "accepted"}}]}', "names r9"),
        ('{"id": "a", "steps": [{"op": "state", "expect": []}]}', "object of names"),
        ('{"id": "a", "steps": [{"op": "leaks", "expect": "none"}]}', "expect is a list"),
        ('{"id": "a", "steps": [{"op": "seed", "id": "s", "fact": {"subject": "x"}}]}', "subject, attribute and value"),
        (
            '{"id": "a", "steps": [{"op": "seed", "id": "s", "fact": {"subject": "", "attribute": "", "value": [1]}}]}',
            "value is one text",
        ),
        (
            json.dumps(case({"op": "seed", "id": "s", "fact": {**FACT, "confidence": 7}})),
            "confidence is a number",
        ),
        ('{"id": "good", "steps": [{"op": "recover"}]}', "stands in line 1"),
    ],
)
def test_a_line_that_holds_no_case_is_named_and_nothing_is_run(line, why):
    good = json.dumps(case({"op": "recover"}, name="good"))

    with pytest.raises(Unreadable) as caught:
        played(good, "", line)

    assert (caught.value.path, caught.value.line) == ("cases.jsonl", 3)
    assert why in caught.value.why
    assert [item.passed for item in played(good)] == [True]


def test_a_tool_that_is_neither_reversible_nor_irreversible_is_refused():
    with pytest.raises(UsageError, match="says nothing about a tool"):
        replay([], scratch=scratch, tools={"wire": "maybe"})

    assert replay([], scratch=scratch, tools={"wire": "irreversible@public"}) == []


def test_a_transaction_that_writes_in_two_scopes_is_one_in_each():
    steps = [
        {"op": "begin", "tx": "t1"},
        {"op": "stage", "tx": "t1", "id": "r1", "fact": FACT},
        {"op": "stage", "tx": "t1", "id": "r2", "fact": {**FACT, "value": 10, "scope": "other"}},
        {"op": "commit", "tx": "t1", "expect": {"status": "committed", "verdicts": {"r1": "PASS", "r2": "PASS"}}},
        {"op": "served", "subject": "order7", "attribute": "due", "expect": 9},
        {"op": "served", "subject": "order7", "attribute": "due", "scope": "other", "expect": 10},
    ]

    (result,) = played(case(*steps))

    assert (result.passed, result.got) == (True, None)
