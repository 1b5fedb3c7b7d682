"""mem0's history: rows that add, update and delete a memory, put together to what it said and says."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from memcli.clock import lenient_instant
from memcli.exchange.memories.fields import Extra, extras, first_statement, moment, statement
from memcli.exchange.shapes import ROLES, Draft, Warn, first_text, shown, text_or_none
from memcli.facts import Conversation, Found, Json, Remembered, Said, Turn, Warned
from memcli.record import record
from memcli.terms import Role, State

if TYPE_CHECKING:
    import sqlite3

_NAME = "mem0"
EVENTS = frozenset({"ADD", "UPDATE", "DELETE", "NONE"})
_OLD = ("old_memory", "prev_value", "old_value")
_NEW = ("new_memory", "new_value")
_TAKEN = ("id", "memory_id", "event", "created_at", "updated_at", "actor_id", "role", "is_deleted", "user_id", *_OLD)


@record
class _Row:
    """One row of history and where it stood."""

    value: Mapping[str, Json]
    line: int | None


class _Past:
    """What one memory has said, while its rows are gone over: versions, and the row and author of each."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.said: list[Said] = []
        self.authors: list[str | None] = []
        self.last: list[_Row] = []
        self.end: _Row | None = None

    def says(self, text: str, row: _Row, *keys: str, author: str | None = None) -> None:
        """Add a version; the time is that of the first key that holds one."""
        at, at_text = moment(row.value, *keys)
        self.said.append(Said(text=text, at=at, at_text=at_text))
        self.authors.append(author)
        self.last.append(row)


@record
class History:
    """Rows by the memory they speak of, in the order in which each first stands."""

    rows: dict[str, list[_Row]] = field(default_factory=dict)

    def add(self, value: Mapping[str, Json], line: int | None, warn: Warn) -> None:
        """Keep one row; one that names no memory is told."""
        origin = text_or_none(value.get("memory_id"))
        if origin is None:
            warn(Warned(line=line, message=f"skipped a row of history that names no memory: {shown(dict(value))}"))
        else:
            self.rows.setdefault(origin, []).append(_Row(value=value, line=line))

    def remembered(self, warn: Warn) -> Iterator[Remembered]:
        """Yield one thing for each memory, with what it said before."""
        for origin, rows in self.rows.items():
            past = _Past(origin)
            for row in rows:
                _apply(row, past, warn)
            if past.said:
                yield _remembered(past)
            else:
                warn(Warned(line=rows[0].line, message=f"the memory {shown(origin)} has no words in its history"))


def is_event(value: Mapping[str, Json]) -> bool:
    """Return whether a record is a row of history."""
    event = value.get("event")
    return "memory_id" in value and isinstance(event, str) and event.upper() in EVENTS


def _apply(row: _Row, past: _Past, warn: Warn) -> None:
    value, line = row.value, row.line
    event = str(value.get("event")).upper()
    old, new = first_statement(value, *_OLD), first_statement(value, *_NEW)
    author = first_text(value, "actor_id")
    if event not in EVENTS:
        warn(Warned(line=line, message=f"the event {shown(value.get('event'))} of {shown(past.origin)} is not known"))
    if old is not None and event != "NONE" and (not past.said or past.said[-1].text != old):
        what = "was never added" if not past.said else "said something else before"
        warn(Warned(line=line, message=f"by its history, {shown(past.origin)} {what}; {shown(old)} is kept as older"))
        past.says(old, row, *(() if past.said else ("created_at",)))
    if event == "DELETE" or value.get("is_deleted") in (True, 1, "1"):
        past.end = row
    elif event in ("ADD", "UPDATE"):
        past.end = None
    if new is not None and event != "DELETE" and (not past.said or past.said[-1].text != new):
        past.says(new, row, *(("created_at",) if event == "ADD" else ("updated_at", "created_at")), author=author)
    elif new is None and event in ("ADD", "UPDATE"):
        warn(Warned(line=line, message=f"a row that should say what {shown(past.origin)} became says nothing"))


def _remembered(past: _Past) -> Remembered:
    current, row = past.said[-1], past.last[-1]
    gone = past.end
    deleted: Extra = ()
    if gone is not None:
        at = first_statement(gone.value, "updated_at", "created_at")
        by = first_text(gone.value, "actor_id")
        deleted = (
            *((("deleted_at", at),) if at is not None else ()),
            *((("deleted_by", by),) if by is not None else ()),
        )
    writers = tuple(("earlier_author", name) for name in past.authors[:-1] if name is not None)
    role = tuple(("role", said) for said in [first_text(row.value, "role")] if said is not None)
    return Remembered(
        format=_NAME,
        text=current.text,
        origin=past.origin,
        at=current.at,
        at_text=current.at_text,
        owner=first_text(row.value, "user_id"),
        earlier=tuple(past.said[:-1]),
        ended=None if gone is None else State.REVOKED,
        status=None if gone is None else "deleted",
        author=past.authors[-1],
        extra=(*role, *writers, *deleted, *extras(row.value, (*_TAKEN, *_NEW))),
        line=row.line,
    )


def tables(conn: "sqlite3.Connection", warn: Warn) -> Iterator[Found]:
    """Yield what the table of history comes to, and the messages that are kept beside it."""
    history = History()
    for value in _rows(conn, "history"):
        history.add(value, None, warn)
    yield from history.remembered(warn)
    if conn.execute("select 1 from sqlite_schema where type = 'table' and name = 'messages'").fetchone():
        yield from _messages(conn, warn)


def _rows(conn: "sqlite3.Connection", table: str) -> Iterator[dict[str, Json]]:
    """Yield the rows of a table in the order in which they were written."""
    found = conn.execute(f'select * from "{table}" order by rowid')  # noqa: S608  # one of two names of ours
    names = [str(column[0]).casefold() for column in found.description]
    for row in found:
        yield {name: _cell(cell) for name, cell in zip(names, row, strict=True)}


def _cell(value: Any) -> Json:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, (str, int, float)) else None


def _messages(conn: "sqlite3.Connection", warn: Warn) -> Iterator[Conversation]:
    drafts: dict[str | None, Draft] = {}
    for value in _rows(conn, "messages"):
        session = first_text(value, "session_scope")
        text = value.get("content")
        raw = first_text(value, "role") or ""
        at, at_text = lenient_instant(value.get("created_at"))
        role = ROLES.get(raw.casefold(), Role.UNKNOWN)
        turn = Turn(
            role=role,
            content=text if isinstance(text, str) else statement(text) or "",
            name=first_text(value, "name"),
            at=at,
            at_text=at_text,
            origin=first_text(value, "id"),
            raw_role=raw if role is Role.UNKNOWN and raw else None,
        )
        drafts.setdefault(session, Draft(format=_NAME, session=session)).add(turn, None)
    for draft in drafts.values():
        yield draft.finished(warn)
