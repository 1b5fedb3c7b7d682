"""Files of decisions: each line is about what was seen, and a file may be applied again."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memcli import wire
from memcli.changes import Change
from memcli.review import Outcome, applied_document, apply, blank, mergeable
from memcli.store.queue import Queue
from memcli.terms import Decision, Op, State, Waiting
from tests.files import ANNA, EXTRACTOR, add, chat, cite, city, memory, take
from tests.queues import CLERK, bereft, contested, decide, offer, pair, propose, session, waiting


@pytest.fixture
def store(tmp_path):
    with memory(tmp_path / "memory.db") as opened:
        yield opened


def exported(store, **filled):
    """Return the queue as lines to apply, each filled in alike."""
    return [wire.dumps(blank(item) | filled).encode() for item in Queue(store)]


def outcomes(store, lines, actor=CLERK):
    return [line.outcome for line in apply(session(store, actor), lines, "decisions.jsonl")]


def test_an_exported_line_begins_with_what_is_to_be_filled_in(store):
    offer(store, "Anna skis")
    line = json.loads(exported(store)[0])

    assert list(line) == [
        *("id", "decision", "reason", "text", "into", "digest"),
        *("fact", "why", "evidence", "conflicts", "similar"),
    ]
    assert (line["decision"], line["fact"]["text"]) == (None, "Anna skis")


def test_lines_that_nobody_filled_in_change_nothing(store):
    offer(store, "Anna skis")

    assert outcomes(store, exported(store)) == [Outcome.UNDECIDED]
    assert waiting(store) == [(Waiting.TENTATIVE, "Anna skis")]


@pytest.mark.parametrize(
    "filled",
    [
        {"decision": "accept"},
        {"decision": "edit", "text": "Anna sails"},
        {"decision": "reject", "reason": "she does not"},
        {"decision": "retract"},
        {"decision": "dispute"},
        {"decision": "keep-both"},
    ],
    ids=lambda filled: filled["decision"],
)
def test_a_file_that_is_applied_twice_changes_nothing_the_second_time(store, filled):
    offer(store, "Anna skis")
    lines = exported(store, **filled)
    assert outcomes(store, lines) == [Outcome.APPLIED]
    events = len(store.events())

    assert outcomes(store, lines) == [Outcome.ALREADY]
    assert len(store.events()) == events


def test_applying_twice_knows_kept_pairs_confirmations_merges_and_proposals(store):
    add(store, "plays chess on sunday evenings")
    offer(store, "plays chess on all sunday evenings")
    bereft(store)
    pair(store)
    propose(store, Change(op=Op.TOMBSTONE, arguments={"text": "vegan"}))
    propose(store, Change(op=Op.TOMBSTONE, arguments={"text": "carnivore"}))
    said = iter(["merge", "accept", "keep-both", "accept", "reject"])
    items = list(Queue(store))
    lines = [
        wire.dumps(blank(item) | {"decision": next(said), "into": (mergeable(item) or (None,))[0]}).encode()
        for item in items
    ]

    assert [item.why for item in items] == [
        *(Waiting.TENTATIVE, Waiting.EVIDENCE_ERASED, Waiting.NEAR_DUPLICATE, Waiting.PROPOSAL, Waiting.PROPOSAL)
    ]
    assert outcomes(store, lines) == [Outcome.APPLIED] * 5
    assert outcomes(store, lines) == [Outcome.ALREADY] * 5


def test_another_decision_about_what_was_decided_is_refused(store):
    offer(store, "Anna skis")
    assert outcomes(store, exported(store, decision="accept")[:1]) == [Outcome.APPLIED]
    fact = next(store.facts())

    line = {"id": fact.id, "digest": "blake2b:" + "0" * 64, "decision": "accept"}
    assert outcomes(store, [json.dumps(line).encode()]) == [Outcome.REFUSED]


def test_accepting_what_was_kept_beside_another_is_not_done_already(store):
    for name in ("Lisbon", "Porto"):
        city(store, name, actor=EXTRACTOR, evidence=cite(f"{take(store, chat(name, session=name))}#0"))
    accepts = exported(store, decision="accept")
    assert outcomes(store, exported(store, decision="keep-both")[:1]) == [Outcome.APPLIED]

    assert outcomes(store, accepts[:1]) == [Outcome.REFUSED]
    assert waiting(store) == [(Waiting.TENTATIVE, "Anna lives in Porto"), (Waiting.DISPUTED, "Anna lives in Lisbon")]


def test_a_line_whose_item_changed_is_refused_and_the_others_are_applied(store):
    changed, other = offer(store, "Anna skis"), offer(store, "Tom sails")
    lines = exported(store, decision="accept")
    with store.write(ANNA) as write:
        write.dispute(changed)
    found = list(apply(session(store, CLERK), lines, "decisions.jsonl"))

    assert [line.outcome for line in found] == [Outcome.REFUSED, Outcome.APPLIED]
    assert found[0].problem.code == "stale"
    assert (store.get(changed.id).state, store.get(other.id).state) == (State.DISPUTED, State.ACCEPTED)


def test_accepting_both_sides_of_a_conflict_in_one_file_accepts_the_first_alone(store):
    _, offered = contested(store)
    decide(store, Decision.KEEP_BOTH)
    lines = exported(store, decision="accept")

    assert outcomes(store, lines) == [Outcome.APPLIED, Outcome.REFUSED]
    assert [fact.id for fact in store.facts()] == [offered.id]


def test_a_file_that_rejects_one_side_and_accepts_the_other_is_applied_whole(store):
    contested(store)
    decide(store, Decision.KEEP_BOTH)
    first_line, second_line = (json.loads(line) for line in exported(store))
    lines = [
        json.dumps(first_line | {"decision": "reject", "reason": "never"}).encode(),
        json.dumps(second_line | {"decision": "accept"}).encode(),
    ]

    assert outcomes(store, lines) == [Outcome.APPLIED, Outcome.APPLIED]


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"[1]",
        b"\xff\xfe",
        b'{"id": "x"}',
        b'{"id": 3, "digest": "x"}',
        b'{"id": "x", "digest": "x", "decision": "acept"}',
        b'{"id": "x", "digest": "x", "decision": "edit", "text": 3}',
        b'{"id": "x", "digest": "x", "decision": "edit", "value": {}}',
        b'{"id": "x", "digest": "x", "value": NaN}',
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_stops_no_other(store, raw):
    offer(store, "Anna skis")
    found = list(apply(session(store, CLERK), [b"", raw, *exported(store, decision="accept")], "decisions.jsonl"))

    assert [(line.number, line.outcome) for line in found] == [(2, Outcome.UNREADABLE), (3, Outcome.APPLIED)]
    assert found[0].problem.message.startswith("decisions.jsonl line 2: ")


def test_a_merge_into_nothing_that_is_there_is_refused_and_stops_no_other(store):
    for text in ("Anna skis", "Tom sails"):
        offer(store, text)
    merge, accept = exported(store, decision="merge", into="ffff"), exported(store, decision="accept")

    assert outcomes(store, [merge[0], accept[1]]) == [Outcome.REFUSED, Outcome.APPLIED]


def test_the_keys_of_an_applied_line_are_a_contract(store):
    document = applied_document(next(apply(session(store), [b"{"], "decisions.jsonl")))

    assert list(document) == ["line", "id", "decision", "outcome", "problem"]
    assert list(document["problem"]) == ["error", "message", "hint"]


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
@settings(max_examples=50)
def test_no_line_is_a_traceback(tmp_path_factory, raw):
    with memory(tmp_path_factory.mktemp("fuzz") / "memory.db") as store:
        offer(store, "Anna skis")
        found = list(apply(session(store, CLERK), [raw], "decisions.jsonl"))

        assert all(line.outcome is not Outcome.APPLIED for line in found)
        assert waiting(store) == [(Waiting.TENTATIVE, "Anna skis")]
