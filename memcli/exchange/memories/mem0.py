"""mem0: what `get_all`, `search` and exports give, and the table of its history.

The same memory may stand there twice, under one id: with the same words it is told and read once, with others both
are read. A memory that was deleted or has expired comes as one that was withdrawn. What a row of history says came
before is an older version, also where the row that added it is missing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from memcli.exchange.loose import Prose, Record
from memcli.exchange.memories.fields import extras, first_statement, moment, speaking, statement, timed
from memcli.exchange.memories.mcp import in_words
from memcli.exchange.memories.mem0_history import History, is_event, tables
from memcli.exchange.shapes import SURE, Warn, first_text, shown, text_or_none
from memcli.facts import Found, Json, Micros, Remembered, Said, Validity, Warned
from memcli.record import record
from memcli.terms import State

if TYPE_CHECKING:
    import sqlite3

_NAME = "mem0"
_TITLE = "mem0 memories"
_LISTS = ("results", "memories", "items", "data")
_AROUND = frozenset({*_LISTS, "relations", "message", "count", "next", "previous", "total", "page", "size", "pages"})
_TEXT = ("memory", "data", "text", "content")
_OWN = frozenset({"hash", "user_id", "agent_id", "run_id", "app_id", "app_name", "event", "score", "categories"})
_TIME = ("updated_at", "created_at")
_BEFORE = ("previous_memory", "old_memory")
_GONE = frozenset({"deleted", "expired"})
_SOURCE = ("source", "source_node", "from")
_VERB = ("relationship", "relation", "relation_type", "relationType")
_TARGET = ("target", "destination", "target_node", "to")


@record
class _Seen:
    """What was read so far: the words under each id, and the rows of history."""

    warn: Warn
    words: dict[str, set[str]] = field(default_factory=dict)
    history: History = field(default_factory=History)

    def tell(self, line: int | None, message: str) -> None:
        self.warn(Warned(line=line, message=message))

    def is_new(self, origin: str | None, text: str, line: int | None) -> bool:
        """Return whether these words under this id were not read yet, and tell of an id that stands twice."""
        if origin is None:
            return True
        words = self.words.setdefault(origin, set())
        if text in words:
            self.tell(line, f"the memory {shown(origin)} stands there again with the same words; read once")
            return False
        if words:
            self.tell(line, f"the memory {shown(origin)} stands there again with other words; both were read")
        words.add(text)
        return True


@record
class Mem0:
    """The reader of mem0's JSON and of its history database."""

    name: str = _NAME
    title: str = _TITLE

    def claims(self, value: Json | Prose) -> int:
        """Return certainty for a list of memories, and few votes for one or for what only may be."""
        if isinstance(value, list):
            votes = [_vote(item) for item in value]
            sure = 2 * votes.count(3) >= len(votes) > 0
            return SURE if sure else sum(votes)
        if not isinstance(value, dict):
            return 0
        for key in _LISTS:
            items = value.get(key)
            if isinstance(items, list):
                if not items and key == "results" and isinstance(value.get("relations"), list):
                    return SURE
                votes = [_vote(item) for item in items]
                return SURE if 2 * votes.count(3) >= len(votes) > 0 else 0
        return _vote(value)

    def claims_tables(self, tables: Mapping[str, frozenset[str]]) -> int:
        """Return certainty for a database with a table of mem0's history."""
        history = tables.get("history", frozenset())
        return SURE if {"memory_id", "event"} <= history and {"new_memory", "new_value"} & history else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Found]:
        """Yield each memory, each relation, and what rows of history come to, in the order of the file."""
        seen = _Seen(warn=warn)
        for found in records:
            yield from _values(found.value, found.line, seen)
        yield from seen.history.remembered(warn)

    def read_tables(self, conn: "sqlite3.Connection", warn: Warn) -> Iterator[Found]:
        """Yield what the history comes to, one thing for each memory, and the messages that are kept beside it."""
        yield from tables(conn, warn)


MEM0 = Mem0()


def _vote(value: Json) -> int:
    """Return 3 for a record that only mem0 writes, 1 for one that it may have written."""
    if not isinstance(value, dict):
        return 0
    inner = value.get("payload")
    if isinstance(inner, dict) and isinstance(inner.get("data"), str):
        return 3 if _OWN & inner.keys() else 1
    named = text_or_none(value.get("id")) is not None
    if isinstance(value.get("memory"), str):
        return 3 if named or _OWN & value.keys() else 1
    return 3 if is_event(value) else _weak_vote(value) if named and "role" not in value else 0


def _weak_vote(value: Mapping[str, Json]) -> int:
    if isinstance(value.get("content"), str) and {"state", "app_name"} & value.keys():
        return 3
    says = any(isinstance(value.get(key), str) for key in _TEXT)
    return 1 if says and {"user_id", "agent_id", "hash"} & value.keys() else 0


def _values(value: Json | Prose, line: int | None, seen: _Seen) -> Iterator[Found]:
    if isinstance(value, list):
        if not value:
            seen.tell(line, "an empty list; the store holds nothing")
        for item in value:
            yield from _one(item, line, seen)
        return
    lists = [key for key in _LISTS if isinstance(value, dict) and isinstance(value.get(key), list)]
    if not isinstance(value, dict) or not (lists or isinstance(value.get("relations"), (list, dict))):
        yield from _one(value, line, seen)
        return
    for key in lists:
        items = value[key]
        for item in items if isinstance(items, list) else []:
            yield from _one(item, line, seen)
    yield from _relations(value.get("relations"), line, seen)
    if not any(value[key] for key in lists) and not value.get("relations"):
        seen.tell(line, "an empty list; the store holds nothing")
    for key, words in extras(value, _AROUND.difference(_LISTS).union(lists)):
        seen.tell(line, f"skipped {shown(key)}, which belongs to no memory: {shown(words)}")


def _one(value: Json | Prose, line: int | None, seen: _Seen) -> Iterator[Remembered]:
    if not isinstance(value, dict):
        what = "text" if isinstance(value, Prose) else shown(value)
        seen.tell(line, f"skipped what is no memory: {what}")
        return
    if is_event(value):
        seen.history.add(value, line, seen.warn)
        return
    inner = value.get("payload")
    if isinstance(inner, dict):
        value = {**{key: item for key, item in value.items() if key != "payload"}, **inner}
    key = speaking(value, *_TEXT)
    before = speaking(value, *_BEFORE)
    if key is None:
        if before is None or not _gone(value):
            seen.tell(line, f"skipped a memory without words: {shown(dict(value))}")
            return
        key = before
    text = statement(value[key]) or ""
    if seen.is_new(text_or_none(value.get("id")), text, line):
        yield _memory(value, key, before, line, seen)


def _memory(value: Mapping[str, Json], key: str, before: str | None, line: int | None, seen: _Seen) -> Remembered:
    time = timed(value, *_TIME)
    at, at_text = moment(value, *_TIME)
    earlier = statement(value.get(before)) if before is not None and before != key else None
    owner = speaking(value, "user_id", "agent_id")
    end, undated = _expiry(value, line, seen)
    started, _ = moment(value, "created_at")
    return Remembered(
        format=_NAME,
        text=statement(value[key]) or "",
        owner=None if owner is None else statement(value[owner]),
        origin=text_or_none(value.get("id")),
        at=at,
        at_text=at_text,
        author=first_text(value, "actor_id"),
        validity=Validity(end=end),
        earlier=() if earlier is None else (Said(text=earlier, at=started if time == "updated_at" else None),),
        ended=_gone(value),
        status=first_text(value, "state", "status", "event"),
        extra=extras(value, (key, before, time, owner, "id", "actor_id", None if undated else "expiration_date")),
        line=line,
    )


def _gone(value: Mapping[str, Json]) -> State | None:
    """Return `revoked` for a memory that mem0 deleted or does not use any more."""
    said = {str(value.get(key)).casefold() for key in ("state", "status")}
    flags = any(value.get(key) in (True, 1) for key in ("is_deleted", "expired", "deleted"))
    return State.REVOKED if flags or said & _GONE or value.get("event") == "DELETE" else None


def _expiry(value: Mapping[str, Json], line: int | None, seen: _Seen) -> tuple[Micros | None, bool]:
    """Return when a memory ends, and whether it names a day that is no instant."""
    at, words = moment(value, "expiration_date")
    if words is not None:
        seen.tell(line, f"a memory expires on {shown(words)}, which is no instant; kept as a note")
    return at, words is not None


def _relations(value: Json, line: int | None, seen: _Seen) -> Iterator[Remembered]:
    if isinstance(value, dict):
        if value and not any(value.values()):
            seen.tell(line, "its relations are empty")
        for key, items in value.items():
            ended = State.REVOKED if key == "deleted_entities" else None
            yield from _edges(items, ended, line, seen)
    elif value is not None:
        yield from _edges(value, None, line, seen)


def _edges(value: Json, ended: State | None, line: int | None, seen: _Seen) -> Iterator[Remembered]:
    """Yield each relation of a list, which may be lists of them."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, list):
            yield from _edges(item, ended, line, seen)
            continue
        source = item if isinstance(item, dict) else {}
        start, verb, end = (first_statement(source, *keys) for keys in (_SOURCE, _VERB, _TARGET))
        if start is None or verb is None or end is None:
            seen.tell(line, f"skipped a relation that lacks an end or its type: {shown(item)}")
            continue
        at, at_text = moment(source, *_TIME)
        taken = [speaking(source, *keys) for keys in (_SOURCE, _VERB, _TARGET)]
        yield Remembered(
            format=_NAME,
            text=f"{start} {in_words(verb)} {end}",
            subject=start,
            owner=first_text(source, "user_id"),
            at=at,
            at_text=at_text,
            ended=ended,
            extra=(
                ("relationType", verb),
                ("to", end),
                *extras(source, (*taken, timed(source, *_TIME), "user_id")),
            ),
            line=line,
        )
