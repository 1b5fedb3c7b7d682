"""Made data for tests that need no file: each maker returns a whole object, and takes what a test is about."""

from datetime import UTC, datetime
from typing import Any

from memcli.facts import (
    Actor,
    AuditEvent,
    Excerpt,
    Fact,
    Message,
    Micros,
    Proposal,
    Provenance,
    QueueItem,
    Similar,
    Source,
    Stats,
    Tombstone,
    Validity,
)
from memcli.terms import (
    ActorKind,
    Channel,
    Kind,
    Match,
    Op,
    Role,
    SourceKind,
    State,
    Visibility,
    Waiting,
)

ANNA = Actor(name="anna", kind=ActorKind.HUMAN, channel=Channel.TERMINAL)
EXTRACTOR = Actor(name="extractor", kind=ActorKind.EXTRACTOR, channel=Channel.EXTRACT)


def at(text: str) -> Micros:
    """Return the instant of an ISO time, UTC."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


NOW = at("2026-03-15T09:14")


def fact(**changes: Any) -> Fact:
    """Return a fact of slot anna · home city, changed as asked."""
    whole: dict[str, Any] = {
        "id": "4f2a77d0",
        "scope": "user/anna",
        "kind": Kind.BELIEF,
        "subject": "anna",
        "attribute": "home city",
        "value": "Lisbon",
        "text": "Anna lives in Lisbon",
        "state": State.ACCEPTED,
        "version": 2,
        "revision": 1,
        "confidence": None,
        "importance": None,
        "authority": 0.6,
        "owner": "anna",
        "visibility": Visibility.SHARED,
        "pinned": False,
        "valid": Validity(start=at("2026-03-05")),
        "recorded_at": at("2026-03-12T09:20"),
        "retired_at": None,
        "actor": ANNA,
        "provenance": (provenance(),),
        "tokens": 5,
        "encoding": "o200k_base",
    }
    return Fact(**{**whole, **changes})


def free(fact_id: str, text: str, state: State = State.ACCEPTED, **changes: Any) -> Fact:
    """Return a fact of free text."""
    loose: dict[str, Any] = {"subject": None, "attribute": None, "value": None, "valid": Validity(), "provenance": ()}
    return fact(**{**loose, "id": fact_id, "text": text, "state": state, "version": 1, **changes})


def provenance(**changes: Any) -> Provenance:
    """Return evidence that quotes message 212 of a chat."""
    whole: dict[str, Any] = {
        "source": "chat1",
        "message": "chat1#212",
        "index": 212,
        "role": Role.USER,
        "quote": "moved to Lisbon",
        "verified": True,
    }
    return Provenance(**{**whole, **changes})


def message(index: int = 212, role: Role = Role.USER, content: str = "hello", **changes: Any) -> Message:
    """Return one message of the chat."""
    return Message(
        **{"id": f"chat1#{index}", "source": "chat1", "index": index, "role": role, "content": content, **changes}
    )


def excerpt(**changes: Any) -> Excerpt:
    """Return the quoted message between its neighbours."""
    whole: dict[str, Any] = {
        "provenance": provenance(),
        "message": message(content="sold it – we moved to Lisbon last week", at=at("2026-03-12T09:14")),
        "before": message(211, Role.ASSISTANT, "How is the flat in Berlin?"),
        "after": message(213, Role.ASSISTANT, "Congratulations! Shall I update your address?"),
        "path": "chats/chat-0612.jsonl",
    }
    return Excerpt(**{**whole, **changes})


def event(seq: int = 57, op: Op = Op.CORRECT, **changes: Any) -> AuditEvent:
    """Return one row of the log."""
    whole: dict[str, Any] = {
        "seq": seq,
        "id": f"e{seq}",
        "at": at("2026-03-12T09:20"),
        "actor": ANNA,
        "op": op,
        "target": "4f2a77d0",
        "scope": "user/anna",
        "from_state": State.ACCEPTED,
        "to_state": State.ACCEPTED,
        "reason": "moved",
        "before": "b2:01",
        "after": "b2:02",
        "previous": "b2:03",
        "hash": "b2:04",
    }
    return AuditEvent(**{**whole, **changes})


def tombstone(**changes: Any) -> Tombstone:
    """Return a standing tombstone of a value."""
    whole: dict[str, Any] = {
        "id": "t3",
        "scope": "user/anna",
        "match": Match.VALUE,
        "pattern": None,
        "normaliser": 1,
        "fact": "4f2a77d0",
        "reason": "never lived there",
        "actor": ANNA,
        "at": NOW,
        "lifted_at": None,
        "hits": 4,
    }
    return Tombstone(**{**whole, **changes})


def source(**changes: Any) -> Source:
    """Return the chat that evidence comes from."""
    whole: dict[str, Any] = {
        "id": "chat1",
        "scope": "user/anna",
        "kind": SourceKind.HUMAN,
        "format": "openai",
        "path": "chats/chat-0612.jsonl",
        "session": "0612",
        "title": None,
        "digest": "sha256:00",
        "imported_at": NOW,
        "messages": 300,
    }
    return Source(**{**whole, **changes})


def proposal(**changes: Any) -> Proposal:
    """Return a correction that a script asked for."""
    whole: dict[str, Any] = {
        "id": "p1",
        "fact": "4f2a77d0",
        "version": 2,
        "op": Op.CORRECT,
        "arguments": {"text": "Anna lives in Porto"},
        "reason": "she said so",
        "actor": Actor(name="nightly", kind=ActorKind.SCRIPT, channel=Channel.PIPE),
        "at": NOW,
    }
    return Proposal(**{**whole, **changes})


def queue_item(**changes: Any) -> QueueItem:
    """Return a tentative fact that waits, with evidence and a neighbour."""
    quote = "I prefer oat milk"
    whole: dict[str, Any] = {
        "id": "q1",
        "fact": free(
            "d1e5", "anna prefers oat milk", State.TENTATIVE, subject="anna", actor=EXTRACTOR, rule="I prefer"
        ),
        "why": Waiting.TENTATIVE,
        "detail": "extracted from chat-0612.jsonl #214 by rule “I prefer”",
        "evidence": (
            excerpt(
                provenance=provenance(index=214, quote=quote, message="chat1#214", span=(0, 17)),
                message=message(214, Role.USER, f"{quote}, cow's gives me a rash", at=at("2026-03-12T09:20")),
                before=message(213, Role.ASSISTANT, "Anything for breakfast?"),
                after=None,
            ),
        ),
        "conflicts": (),
        "similar": (Similar(id="c5e8", text="likes oat milk in coffee", score=86.2, state=State.ACCEPTED),),
        "digest": "b2:05",
    }
    return QueueItem(**{**whole, **changes})


def stats(**changes: Any) -> Stats:
    """Return the sizes of a small file."""
    whole: dict[str, Any] = {
        "path": "memory.db",
        "schema": 1,
        "admission": "review",
        "scope": "user/anna",
        "states": {"accepted": 1204, "tentative": 3},
        "scopes": 2,
        "sources": 4,
        "messages": 812,
        "tombstones": 1,
        "events": 60,
        "waiting": 3,
        "tokens": 9841,
        "tokens_unknown": 0,
        "encoding": "o200k_base",
        "file_bytes": 245_760,
        "wal_bytes": 0,
        "free_bytes": 4096,
        "scrub_pending": False,
    }
    return Stats(**{**whole, **changes})
