"""mem's own JSON Lines, taken in like any foreign store: tombstones first, then transcripts, then facts.

The writer decides anew, so states and times come as what the other file said of them. Everything as it was there is
what `mem import --restore` gives, into an empty file. The format is described in `memcli.exchange.writers.mem`.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from memcli.exchange.loose import Prose, Record
from memcli.exchange.mem_records import BELOW, Row, Wrong, header, row, type_of
from memcli.exchange.shapes import SURE, Warn, shown
from memcli.facts import Conversation, Found, Json, Micros, Remembered, Said, Stop, ToolCall, Turn, Validity, Warned
from memcli.record import record
from memcli.terms import FINAL, Kind, Match, Role, State, Visibility
from memcli.text import unpack

_NAME = "mem"
_OWN_WORDS = frozenset({"statement", "reference"})
"""Sources that hold nothing but the words of a fact, which come with it."""


@record
class MemJsonl:
    """The reader of mem's own format."""

    name: str = _NAME
    title: str = "an export of mem"

    def claims(self, value: Json | Prose) -> int:
        """Return certainty for the first line of an export, and 3 for any other of its records."""
        if not isinstance(value, dict):
            return 0
        kind = type_of(value)
        return SURE if kind == "header" else 3 if kind is not None else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Found]:
        """Yield what an export of one scope holds, in its order: stops, transcripts, facts."""
        rows = _Rows(records=records, warn=warn)
        yield from _found(rows, warn)
        if rows.ended is None:
            warn(Warned(line=None, message="it is cut: the record of the end is missing"))
        elif rows.ended != rows.count:
            warn(Warned(line=None, message=f"{rows.ended:,} records were exported, and {rows.count:,} stand here"))
        if rows.tied:
            why = "what facts stand on, and what they were built from, is taken over by --restore only"
            warn(Warned(line=None, message=f"{rows.tied:,} links between facts and messages were not taken: {why}"))


MEM = MemJsonl()


class _Rows:
    """The rows of an export, those that cannot be read told and left out, and what is known of the whole."""

    def __init__(self, *, records: Iterator[Record], warn: Warn) -> None:
        self.count = 0
        self.ended: int | None = None
        self.tied = 0
        self._records = records
        self._warn = warn

    def __iter__(self) -> Iterator[tuple[str, Row, int | None]]:
        for item in self._records:
            value, line = item.value, item.line
            try:
                if isinstance(value, dict) and value.get("type") == "header":
                    self.count += 1
                    if header(value) is None:
                        why = "it is of all scopes, which must not be mixed; export one scope, or use --restore"
                        self._warn(Warned(line=line, message=f"nothing was taken: {why}"))
                        return
                    continue
                kind, found = row(None if isinstance(value, Prose) else value)
            except Wrong as problem:
                self._warn(Warned(line=line, message=f"skipped: {problem}"))
                continue
            if kind == "end":
                self.ended = found[0]
                continue
            self.count += 1
            self.tied += kind in {"provenance", "derivation", "origin"}
            yield kind, found, line


def _found(rows: _Rows, warn: Warn) -> Iterator[Found]:
    keys: dict[str, bytes] = {}
    for kind, head, line, below in _groups(rows):
        if kind == "key":
            keys[head[0]] = head[1]
        elif kind == "tombstone":
            yield from _stop(head, keys, line, warn)
        elif kind == "source":
            yield from _conversation(head, [found for name, found in below if name == "message"])
        elif kind == "fact":
            versions = [found for name, found in below if name == "version" and found[0] == head[0]]
            yield from _remembered(head, versions, line, warn)


def _groups(rows: _Rows) -> Iterator[tuple[str, Row, int | None, list[tuple[str, Row]]]]:
    """Yield each record that stands by itself, with those below it."""
    head: tuple[str, Row, int | None] | None = None
    below: list[tuple[str, Row]] = []
    for kind, found, line in rows:
        if kind in BELOW:
            below.append((kind, found))
            continue
        if head is not None:
            yield *head, below
        head, below = (kind, found, line), []
    if head is not None:
        yield *head, below


def _text(text: str | None) -> str | None:
    return None if text is None else unpack(text)


# -------------------------------------------------------------------- tombstones


def _stop(found: Row, keys: Mapping[str, bytes], line: int | None, warn: Warn) -> Iterator[Stop]:
    number, scope, match, pattern, key, normaliser, stops, _, reason, who, at, lifted_at, _ = found
    if lifted_at is not None:
        warn(Warned(line=line, message=f"tombstone t{number} was lifted there, and is not taken"))
        return
    if match == Match.VALUE and key not in keys:
        warn(Warned(line=line, message=f"skipped tombstone t{number}, whose key {shown(key)} does not stand above"))
        return
    yield Stop(
        format=_NAME,
        match=Match(match),
        digests=stops,
        key=(unpack(key), keys[key]) if key in keys else None,
        pattern=_text(pattern),
        normaliser=normaliser,
        everywhere=scope is None,
        reason=_text(reason),
        author=unpack(who[0]),
        at=at,
        origin=f"t{number}",
        line=line,
    )


# -------------------------------------------------------------------- transcripts


def _conversation(source: Row, messages: list[Row]) -> Iterator[Conversation]:
    _, _, _, form, _, session, title, *_ = source
    turns = tuple(_turn(message) for message in messages if message[2] is not None)
    if form not in _OWN_WORDS and turns:
        # What the other file calls the format of a transcript may be something that the policy of this one trusts.
        yield Conversation(format=_NAME, turns=turns, session=_text(session), title=_text(title))


def _turn(message: Row) -> Turn:
    _, role, content, detail, at, *_ = message
    more: dict[str, Any] = {} if detail is None else json.loads(detail)
    return Turn(
        role=Role(role),
        content=unpack(content),
        at=at,
        tool_calls=tuple(ToolCall(id=one, name=name, arguments=said) for one, name, said in more.pop("tool_calls", ())),
        attachments=tuple(more.pop("attachments", ())),
        extra=tuple((name, words) for name, words in more.pop("extra", ())),
        **more,
    )


# -------------------------------------------------------------------- facts


def _remembered(fact: Row, versions: list[Row], line: int | None, warn: Warn) -> Iterator[Remembered]:
    name, scope, kind, subject, attribute, _, owner, visibility, _, erased_at = fact
    if erased_at is not None:
        return
    if not versions:
        warn(Warned(line=line, message=f"skipped fact {name}, of which no version stands there"))
        return
    began: dict[int, Micros] = {}
    for version in versions:
        began.setdefault(version[1], version[18])
    says = {version[1]: version for version in versions}
    *before, now = (says[number] for number in sorted(says))
    _, number, _, state, _, _, confidence, importance, _, pinned, start, end, *_ = now
    value = _value(now)
    yield Remembered(
        format=_NAME,
        text=unpack(now[4] or ""),
        subject=_text(subject),
        attribute=_text(attribute) if value is not None else None,
        value=value,
        kind=Kind(kind),
        validity=Validity(start=start, end=end),
        confidence=confidence,
        importance=importance,
        owner=_text(owner),
        visibility=Visibility(visibility),
        pinned=bool(pinned),
        origin=name,
        at=began[number],
        earlier=tuple(Said(text=unpack(old[4] or ""), value=_value(old), at=began[old[1]]) for old in before),
        ended=State(state) if State(state) in FINAL else None,
        status=state,
        reason=_text(now[21]),
        author=unpack(now[17][0]),
        extra=(("scope", unpack(scope)),),
        line=line,
    )


def _value(version: Row) -> Any:
    return None if version[5] is None else json.loads(version[5])
