"""JSON is a contract: each document's keys are pinned here, and a changed list is a change for users."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcli import wire
from memcli.errors import NotAllowed, Tombstoned, UsageError
from memcli.facts import (
    Claim,
    ErasePlan,
    Evidence,
    Finding,
    Imported,
    ImportReport,
    LogVerdict,
    PolicyRule,
    ScopeInfo,
    Similar,
    TombstonePlan,
    ToolCall,
    Validity,
    Warned,
    Written,
)
from memcli.terms import How, Kind, Match, State, Visibility
from tests import made

FACT = [
    *("id", "scope", "kind", "subject", "attribute", "value", "text", "state", "readable", "version", "confidence"),
    *("importance", "authority", "owner", "visibility", "valid_from", "valid_to", "recorded_at", "retired_at"),
    *("actor", "provenance", "derived_from", "tokens", "encoding"),
]
PROVENANCE = ["source", "message", "index", "role", "quote", "verified"]
EXCERPT = [*PROVENANCE, "path", "at", "content", "before", "after"]
MESSAGE = [
    *("id", "source", "index", "role", "name", "content", "at", "at_text", "origin", "parent", "tool_calls"),
    *("tool_call_id", "thinking", "attachments", "extra", "erased_at"),
]
EVENT = [
    *("seq", "id", "at", "actor", "op", "target", "scope", "from_state", "to_state", "reason", "before", "after"),
    *("previous", "hash"),
]
PLAN = TombstonePlan(
    scope="user/anna",
    match=Match.VALUE,
    pattern=None,
    values=("Anna lives in Lisbon",),
    slots=(("anna", "home city", "Lisbon"),),
    hits=(made.fact(),),
    falls=(),
    near=(Similar(id="b210", text="Anna's flat is in Lisbon", score=71.0, state=State.ACCEPTED),),
)
KEYS = {
    "fact": (wire.fact(made.fact()), FACT),
    "actor": (wire.actor(made.ANNA), ["name", "kind", "channel"]),
    "recalled": (wire.recalled(made.fact(), score=0.9, parts={"recency": 0.1}), [*FACT, "score", "parts"]),
    "provenance": (wire.provenance(made.provenance()), PROVENANCE),
    "event": (wire.event(made.event()), EVENT),
    "tombstone": (
        wire.tombstone(made.tombstone()),
        ["id", "scope", "match", "pattern", "normaliser", "fact", "reason", "actor", "at", "lifted_at", "hits"],
    ),
    "message": (wire.message(made.message()), MESSAGE),
    "source": (
        wire.source(made.source()),
        [
            *("id", "scope", "kind", "format", "path", "session", "title", "digest", "imported_at", "messages"),
            "erased_at",
        ],
    ),
    "excerpt": (wire.excerpt(made.excerpt()), EXCERPT),
    "excerpt of a source": (wire.excerpt(made.provenance(message=None)), EXCERPT),
    "similar": (wire.similar(PLAN.near[0]), ["id", "text", "score", "state"]),
    "proposal": (
        wire.proposal(made.proposal()),
        ["id", "fact", "version", "op", "arguments", "reason", "actor", "at"],
    ),
    "queue item": (
        wire.queue_item(made.queue_item()),
        ["id", "fact", "why", "evidence", "conflicts", "similar", "digest"],
    ),
    "why of a queue item": (wire.queue_item(made.queue_item())["why"], ["code", "detail", "proposal"]),
    "why": (
        wire.why_document(
            made.fact(),
            versions=[made.fact()],
            provenance=[made.excerpt()],
            derived_from=[],
            derived=[],
            events=[made.event()],
        ),
        ["fact", "versions", "provenance", "derived_from", "derived", "events"],
    ),
    "context": (
        wire.context_document(text="", tokens=0, encoding="words", facts=[made.fact()], dropped=[("a", "budget")]),
        ["text", "tokens", "encoding", "facts", "dropped"],
    ),
    "stats": (
        wire.stats(made.stats()),
        [
            *("path", "schema", "admission", "scope", "states", "scopes", "sources", "messages", "tombstones"),
            *("events", "waiting", "tokens", "tokens_unknown", "encoding", "file_bytes", "wal_bytes", "free_bytes"),
            "scrub_pending",
        ],
    ),
    "finding": (wire.finding(Finding(code="c", place="p", message="m")), ["code", "place", "message"]),
    "log verdict": (wire.log_verdict(LogVerdict(events=1, head="h", findings=())), ["events", "head", "findings"]),
    "tombstone plan": (
        wire.tombstone_plan(PLAN),
        ["scope", "match", "pattern", "values", "slots", "hits", "falls", "near"],
    ),
    "erase plan": (
        wire.erase_plan(ErasePlan(facts=(), messages=(), sources=(), reviewed=(), falls=())),
        ["facts", "messages", "sources", "reviewed", "falls"],
    ),
    "written": (wire.written(Written(fact=made.fact(), outcome="new")), ["outcome", "rival", "fact"]),
    "scope": (
        wire.scope_info(ScopeInfo(name="a", facts=1, readable=1, sources=1, tombstones=0)),
        ["name", "facts", "readable", "sources", "tombstones"],
    ),
    "policy rule": (wire.policy_rule(PolicyRule(kind="source", name="a", value="1")), ["kind", "name", "value"]),
    "import": (wire.import_document([], []), ["files", "sources"]),
    "error": (wire.error(Tombstoned("that value was rejected")), ["error", "message", "hint"]),
}


@pytest.mark.parametrize("name", KEYS)
def test_the_keys_of_a_document_are_a_contract(name):
    document, keys = KEYS[name]

    assert list(document) == keys


def test_the_keys_inside_an_import_document_are_a_contract():
    report = ImportReport(
        path="a.jsonl", format="openai", roles={"user": 1}, warnings=(Warned(line=3, message="no role"),)
    )
    known = Imported(source="chat1", new=1, same=0, session=None, title=None)

    document = wire.import_document([report], [known])

    assert list(document["files"][0]) == [
        *("path", "format", "tried", "conversations", "messages", "roles", "tool_calls", "facts", "tombstones"),
        *("undated", "new", "same", "refused", "conflicting", "mapped", "warnings", "error"),
    ]
    assert document["files"][0]["warnings"] == [{"line": 3, "message": "no role"}]
    assert document["sources"] == [{"source": "chat1", "new": 1, "same": 0, "session": None, "title": None}]


def test_a_fact_says_what_the_file_holds_of_it():
    document = wire.fact(made.fact())

    assert document == {
        "id": "4f2a77d0",
        "scope": "user/anna",
        "kind": "belief",
        "subject": "anna",
        "attribute": "home city",
        "value": "Lisbon",
        "text": "Anna lives in Lisbon",
        "state": "accepted",
        "readable": True,
        "version": 2,
        "confidence": None,
        "importance": None,
        "authority": 0.6,
        "owner": "anna",
        "visibility": "shared",
        "valid_from": "2026-03-05T00:00:00Z",
        "valid_to": None,
        "recorded_at": "2026-03-12T09:20:00Z",
        "retired_at": None,
        "actor": {"name": "anna", "kind": "human", "channel": "terminal"},
        "provenance": [
            {
                "source": "chat1",
                "message": "chat1#212",
                "index": 212,
                "role": "user",
                "quote": "moved to Lisbon",
                "verified": True,
            }
        ],
        "derived_from": [],
        "tokens": 5,
        "encoding": "o200k_base",
    }


def test_evidence_carries_its_message_and_the_ones_around_it():
    document = wire.excerpt(made.excerpt(after=None))

    assert document["content"] == "sold it – we moved to Lisbon last week"
    assert document["before"]["content"] == "How is the flat in Berlin?"
    assert document["after"] is None


def test_a_derivation_names_the_other_fact_and_how():
    child = made.free("8a11", "Anna's time zone is WET", State.REVOKED)

    document = wire.why_document(
        made.fact(), versions=[], provenance=[], derived_from=[], derived=[(child, How.INFERRED)], events=[]
    )

    assert document["derived"] == [
        {"id": "8a11", "how": "inferred", "state": "revoked", "text": "Anna's time zone is WET"}
    ]
    assert document["derived_from"] == []


def test_a_proposal_stands_with_the_item_that_waits_for_it():
    item = made.queue_item(proposal=made.proposal())

    assert wire.queue_item(item)["why"]["proposal"]["arguments"] == {"text": "Anna lives in Porto"}
    assert wire.queue_item(made.queue_item())["why"]["proposal"] is None


def test_a_tool_call_keeps_its_arguments_as_they_were():
    calls = (ToolCall(id="c1", name="refund", arguments='{"eur": 5'),)

    document = wire.message(made.message(tool_calls=calls))

    assert document["tool_calls"] == [{"id": "c1", "name": "refund", "arguments": '{"eur": 5'}]


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_no_number_is_other_than_json_can_say(odd):
    document = wire.recalled(
        made.fact(value=odd, confidence=odd, importance=0.5), score=odd, parts={"recency": odd, "importance": 0.5}
    )

    text = wire.dumps(document)

    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text)["value"] is None
    assert json.loads(text)["parts"] == {"recency": None, "importance": 0.5}
    assert json.loads(text)["importance"] == 0.5


@given(st.text(st.characters(), max_size=50))
def test_any_text_prints_as_one_line_of_plain_ascii_and_reads_back_the_same(text):
    line = wire.dumps(wire.fact(made.fact(text=text, value=text, subject=text)))

    assert line.isascii()
    assert line.isprintable()
    assert wire.loads(line)["text"] == text


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, "nan", "NaN", '{"a": Infinity}', '{"a": -Infinity}', "9" * 5000, '{"a": 1,}']
)
def test_text_that_is_no_json_is_a_usage_error(text):
    with pytest.raises(UsageError) as caught:
        wire.loads(text)

    assert caught.value.hint


def test_a_claim_takes_every_key_it_knows():
    document = {
        "text": "Anna lives in Lisbon",
        "subject": "anna",
        "attribute": "home city",
        "value": "Lisbon",
        "kind": "profile",
        "valid_from": "2026-03-05T00:00:00Z",
        "valid_to": "2026-04-01",
        "confidence": 1,
        "importance": 0.5,
        "authority": 0,
        "owner": "anna",
        "visibility": "private",
        "pinned": True,
        "evidence": [{"message": "chat1#212", "quote": "moved to Lisbon"}, {"message": "chat1#213"}],
        "derived_from": ["8a11"],
        "how": "condensed",
        "rule": "I live in",
    }

    assert wire.claim_from(document) == Claim(
        text="Anna lives in Lisbon",
        subject="anna",
        attribute="home city",
        value="Lisbon",
        kind=Kind.PROFILE,
        validity=Validity(start=made.at("2026-03-05"), end=made.at("2026-04-01")),
        confidence=1.0,
        importance=0.5,
        authority=0.0,
        owner="anna",
        visibility=Visibility.PRIVATE,
        pinned=True,
        evidence=(Evidence(message="chat1#212", quote="moved to Lisbon"), Evidence(message="chat1#213")),
        derived_from=("8a11",),
        how=How.CONDENSED,
        rule="I live in",
    )
    assert tuple(document) == wire.CLAIM_KEYS


def test_a_claim_of_text_alone_has_the_defaults():
    assert wire.claim_from({"text": "tea is hot"}) == Claim(text="tea is hot")


def test_a_payload_cannot_say_who_acted_nor_what_is_believed():
    boast = {"state": "verified", "actor": {"kind": "human"}, "approved": True, "id": "4f2a", "readable": True}

    assert wire.claim_from({"text": "tea is hot", **boast}) == Claim(text="tea is hot")


def test_the_document_of_a_fact_offers_the_same_statement_again():
    claim = wire.claim_from(wire.fact(made.fact(derived_from=("8a11",))))

    assert (claim.text, claim.slot, claim.value) == ("Anna lives in Lisbon", ("anna", "home city"), "Lisbon")
    assert claim.validity == made.fact().valid
    assert claim.derived_from == ("8a11",)


@pytest.mark.parametrize("value", ["Lisbon", 5, 0, 2.5, True, False, None])
def test_a_value_may_be_any_scalar(value):
    claim = wire.claim_from({"text": "t", "subject": "s", "attribute": "a", "value": value})

    assert claim.value is value


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "a fact must be a JSON object, not a list"),
        (None, "a fact must be a JSON object, not null"),
        ("tea", "a fact must be a JSON object, not a string"),
        ({}, "text is missing"),
        ({"text": " "}, "text is missing"),
        ({"text": 5}, "text must be a string, not a number"),
        ({"subject": []}, "subject must be a string, not a list"),
        ({"attribute": {}, "subject": "s"}, "attribute must be a string, not an object"),
        ({"attribute": "a"}, "attribute needs subject beside it"),
        ({"value": 5}, "value needs subject and attribute beside it"),
        ({"value": [5]}, "value must be a string, a number, true, false or null, not a list"),
        ({"subject": "s", "attribute": "a", "value": math.nan}, "value must be a finite number"),
        ({"kind": 1}, "kind must be a string, not a number"),
        (
            {"kind": "truth"},
            "kind must be one of belief, summary, profile, index, shared_copy, tool_action",
        ),
        ({"visibility": "all"}, "visibility must be one of private, shared, public"),
        ({"how": "magic"}, "how must be one of inferred, summarised, condensed, copied"),
        ({"confidence": "0.8"}, "confidence must be a number from 0 to 1, not a string"),
        ({"confidence": True}, "confidence must be a number from 0 to 1, not true or false"),
        ({"confidence": 1.1}, "confidence must be a number from 0 to 1"),
        ({"importance": math.nan}, "importance must be a number from 0 to 1"),
        ({"authority": -0.1}, "authority must be a number from 0 to 1"),
        ({"owner": 5}, "owner must be a string, not a number"),
        ({"rule": 5}, "rule must be a string, not a number"),
        ({"pinned": "yes"}, "pinned must be true or false, not a string"),
        ({"evidence": "chat1#212"}, "evidence must be a list, not a string"),
        ({"evidence": ["chat1#212"]}, "each entry of evidence must be an object, not a string"),
        ({"evidence": [{"quote": "x"}]}, "message in evidence must be a string, not null"),
        ({"evidence": [{"message": "m", "quote": 5}]}, "quote in evidence must be a string, not a number"),
        ({"derived_from": "8a11"}, "derived_from must be a list, not a string"),
        ({"derived_from": [5]}, "each entry of derived_from must be a string, not a number"),
        ({"valid_from": 5}, "valid_from must be a string, not a number"),
    ],
)
def test_a_key_of_the_wrong_type_is_named_with_what_it_must_be(document, message):
    whole = {"text": "tea is hot", **document} if isinstance(document, dict) and document else document

    with pytest.raises(UsageError) as caught:
        wire.claim_from(whole)

    assert caught.value.message == message
    assert caught.value.hint


def test_a_time_that_cannot_be_read_is_named_by_its_key():
    with pytest.raises(UsageError, match=r"^valid_to takes a date"):
        wire.claim_from({"text": "tea is hot", "valid_to": "soon"})


def test_an_interval_that_ends_before_it_begins_is_not_allowed():
    with pytest.raises(NotAllowed):
        wire.claim_from({"text": "tea is hot", "valid_from": "2026-04-01", "valid_to": "2026-03-01"})


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def claimed(document):
    """Return the claim that the object makes, or the error it is refused with."""
    try:
        return wire.claim_from(document)
    except (UsageError, NotAllowed) as error:
        return error


@given(st.dictionaries(st.sampled_from(wire.CLAIM_KEYS), ANY_JSON))
def test_any_object_becomes_a_claim_or_one_clear_error(document):
    result = claimed(document)

    if isinstance(result, Claim):
        assert result.text == document["text"]
    else:
        assert result.hint
        assert result.message[0].islower()
