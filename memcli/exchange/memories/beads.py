"""beads: issues as JSON Lines, the tombstones among them, and the log of deletions.

An issue is one thing remembered, whether open or closed. A tombstone stops its title, and title and description
together, which is what an issue would come in as. A record of the deletion log names an issue by its id alone; where
the words are not there, nothing can be stopped, and each is told.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field

from memcli.exchange.loose import Prose, Record
from memcli.exchange.memories.fields import extras, first_statement, moment, statement, timed
from memcli.exchange.shapes import SURE, VETO, Warn, first_text, shown, text_or_none
from memcli.facts import Json, Remembered, Stop, Warned
from memcli.record import record

_NAME = "beads"
_TOMBSTONE = "tombstone"
_DELETION = frozenset({"id", "ts", "by", "reason"})
_DELETED = ("deleted_at", "deleted_by", "delete_reason")
_TIME = ("updated_at", "created_at")
_NO_TITLE = frozenset({"(deleted)", "deleted", "(unknown)"})
_STOPPED = frozenset({"id", "title", "description", "status", *_DELETED})
_LISTS = ("issues",)


@record
class _Store:
    """What was read so far: the ids of issues, and what tombstones say besides that a stop does not hold."""

    warn: Warn
    ids: set[str] = field(default_factory=set)
    left: dict[str, int | None] = field(default_factory=dict)

    def tell(self, line: int | None, message: str) -> None:
        self.warn(Warned(line=line, message=message))


@record
class Beads:
    """The reader of beads' issues and deletions."""

    name: str = _NAME
    title: str = "beads issues"

    def claims(self, value: Json | Prose) -> int:
        """Return 3 for an issue or a deletion, and certainty for a list of them."""
        if isinstance(value, list):
            votes = sum(1 for item in value if _is_issue(item) or _is_deletion(item))
            return SURE if votes and 2 * votes >= len(value) else 0
        if not isinstance(value, dict):
            return 0
        if _is_issue(value) and isinstance(value.get("history"), list):
            return VETO
        inner = value.get(_LISTS[0])
        if isinstance(inner, list):
            return self.claims(inner)
        return 3 if _is_issue(value) or _is_deletion(value) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Remembered | Stop]:
        """Yield each issue and each tombstone, in the order of the file."""
        store = _Store(warn=warn)
        for found in records:
            value = found.value
            inner = value.get(_LISTS[0]) if isinstance(value, dict) else value
            if inner == []:
                store.tell(found.line, "an empty list; the store holds nothing")
            for item in inner if isinstance(inner, list) else [value]:
                yield from _one(item, found.line, store)
        for key, line in store.left.items():
            store.tell(
                line, f"a stop carries no {shown(key)}, which tombstones of this file say; left out from here on"
            )


BEADS = Beads()


def _is_issue(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and "role" not in value
        and all(isinstance(value.get(key), str) for key in ("id", "title", "status"))
        and ("issue_type" in value or value["status"] == _TOMBSTONE)
    )


def _is_deletion(value: Json) -> bool:
    return isinstance(value, dict) and {"id", "ts", "by"} <= value.keys() <= _DELETION


def _one(value: Json | Prose, line: int | None, store: _Store) -> Iterator[Remembered | Stop]:
    if isinstance(value, Prose) or not isinstance(value, dict):
        what = "text" if isinstance(value, Prose) else shown(value)
        store.tell(line, f"skipped what is no issue: {what}")
        return
    origin = text_or_none(value.get("id"))
    if _is_deletion(value):
        store.tell(
            line, f"the deletion of {shown(origin)} does not say what it was; without the words nothing is stopped"
        )
        return
    title = statement(value.get("title"))
    if title is None:
        store.tell(line, f"skipped an issue without a title, id {shown(origin)}")
        return
    if origin is not None and origin in store.ids:
        store.tell(line, f"the issue {shown(origin)} stands there again; both were read")
    if origin is not None:
        store.ids.add(origin)
    if value.get("status") == _TOMBSTONE:
        yield from _stop(value, title, line, store)
    else:
        yield _issue(value, title, line, store)


def _stop(value: Mapping[str, Json], title: str, line: int | None, store: _Store) -> Iterator[Stop]:
    origin = text_or_none(value.get("id"))
    if title.casefold() in _NO_TITLE:
        store.tell(
            line, f"the tombstone of {shown(origin)} does not say what it was; without the words nothing is stopped"
        )
        return
    whole = _text(title, statement(value.get("description")))
    at, at_text = moment(value, *_DELETED[:1])
    if at_text is not None:
        store.tell(line, f"{shown(origin)} was deleted at {shown(at_text)}, which is no instant; the time is left out")
    for key, _ in extras(value, _STOPPED):
        store.left.setdefault(key, line)
    yield Stop(
        format=_NAME,
        texts=tuple(dict.fromkeys((title, whole))),
        reason=first_statement(value, "delete_reason"),
        author=first_text(value, "deleted_by"),
        at=at,
        origin=origin,
        line=line,
    )


def _issue(value: Mapping[str, Json], title: str, line: int | None, store: _Store) -> Remembered:
    origin = text_or_none(value.get("id"))
    status = text_or_none(value.get("status"))
    time = timed(value, *_TIME)
    at, at_text = moment(value, *_TIME)
    if timed(value, *_DELETED[:1]) is not None:
        store.tell(
            line, f"the issue {shown(origin)} is {shown(status)} and says that it was deleted; taken as standing"
        )
    reason = first_statement(value, "close_reason")
    described = statement(value.get("description"))
    return Remembered(
        format=_NAME,
        text=_text(title, described),
        origin=origin,
        at=at,
        at_text=at_text,
        status=status,
        reason=reason,
        author=first_text(value, "created_by"),
        extra=extras(
            value,
            (
                *("id", "title", "status", time),
                None if described is None else "description",
                None if reason is None else "close_reason",
                None if first_text(value, "created_by") is None else "created_by",
            ),
        ),
        line=line,
    )


def _text(title: str, description: str | None) -> str:
    return title if description is None else f"{title}: {description}"
