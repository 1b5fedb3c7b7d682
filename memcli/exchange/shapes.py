"""What the readers of transcripts share: roles, times, parts, and which result belongs to which call."""

import json
from array import array
from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from memcli.clock import lenient_instant
from memcli.exchange.loose import Prose, Record
from memcli.exchange.turns import TurnLog, altered, changed
from memcli.facts import Conversation, Found, Json, Micros, ToolCall, Turn, Warned
from memcli.record import record
from memcli.terms import Role

if TYPE_CHECKING:
    import sqlite3

Warn: TypeAlias = Callable[[Warned], None]

VETO = -1_000_000_000
"""What `claims` says of a value that shows the file to be of another format, whatever else is in it."""

SURE = 1_000_000
"""What `claims` says of a whole document whose shape belongs to one format alone.

Records of line formats vote with small numbers instead (3 for what only this format has, 1 for what may be), so
that the majority of the lines decides, and a single strange line does not.
"""


class Reader(Protocol):
    """What knows one foreign format. Each lives in a file of its own and is listed once, in `detect`.

    Its file may be of any size: `claims` is asked of every value, and `read` yields what it has as early as it can.
    """

    @property
    def name(self) -> str:
        """The word for `--format`."""

    @property
    def title(self) -> str:
        """What a person calls the format."""

    def claims(self, value: Json | Prose) -> int:
        """Return this value's votes for the format: 0 for none, `VETO` against it."""

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Found]:
        """Yield each conversation, remembered thing and tombstone, in the order of the file.

        Args:
            warn: Is told what was not taken, or taken with a doubt.
        """


class TableReader(Protocol):
    """What knows one foreign SQLite database. It gets a connection that cannot write."""

    @property
    def name(self) -> str:
        """The word for `--format`."""

    @property
    def title(self) -> str:
        """What a person calls the format."""

    def claims_tables(self, tables: Mapping[str, frozenset[str]]) -> int:
        """Return votes for a database with these tables and their columns, names case-folded; 0 for none."""

    def read_tables(self, conn: "sqlite3.Connection", warn: Warn) -> Iterator[Found]:
        """Yield what stands in it, telling `warn` what was not taken or taken with a doubt."""


ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "human": Role.USER,
    "assistant": Role.ASSISTANT,
    "ai": Role.ASSISTANT,
    "gpt": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "bot": Role.ASSISTANT,
    "chatbot": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
    "observation": Role.TOOL,
    "ipython": Role.TOOL,
    "toolresult": Role.TOOL,
    "tool_result": Role.TOOL,
}
"""Every spelling that some tool is known to write, case-folded."""

_TIMES = ("timestamp", "created_at", "create_time", "time", "date", "at", "ts")
_SHOWN = 60
_NO_LINE = -1
_NONE = -1


@record
class Draft:
    """A conversation being put together: its turns, and the line each came from."""

    format: str
    session: str | None = None
    title: str | None = None
    turns: MutableSequence[Turn] = field(default_factory=TurnLog)
    lines: "array[int]" = field(default_factory=lambda: array("q"))

    def add(self, turn: Turn, line: int | None) -> int:
        """Add a turn and return its index."""
        self.turns.append(turn)
        self.lines.append(_NO_LINE if line is None else line)
        return len(self.lines) - 1

    def finished(self, warn: Warn) -> Conversation:
        """Return the conversation, results named after their calls; calls and results without the other are told."""
        answers, names = self._answered(warn)

        def named(index: int, turn: Turn) -> Turn:
            asked = answers[index]
            return altered(turn, name=names[asked]) if turn.name is None and asked != _NONE else turn

        turns: Sequence[Turn] = self.turns
        if names or not (isinstance(turns, TurnLog) and turns.spilled):
            turns = changed(turns, named) if names else tuple(turns)
        return Conversation(format=self.format, turns=turns, session=self.session, title=self.title)

    def _answered(self, warn: Warn) -> tuple["array[int]", list[str]]:
        """Return the number of the call that each turn answers, and the name of each call; tell what is left alone."""
        asked = _Asked()
        late: list[tuple[int, str | None]] = []
        early: set[str | None] = set()
        answers = array("q")
        for index, turn in enumerate(self.turns):
            answers.append(_NONE)
            for call in turn.tool_calls:
                asked.add(index, call)
            if turn.role is not Role.TOOL:
                continue
            identity = turn.tool_call_id
            if identity not in early:
                answers[index] = asked.answer(identity)
            if answers[index] == _NONE:  # its call may stand further on, and is then for this one before any later
                early.add(identity)
                late.append((index, identity))
        for index, identity in late:
            answers[index] = asked.answer(identity)
            if answers[index] == _NONE:
                self._tell(warn, index, f"a tool result without its call, id {shown(identity)}")
        for index, call_id, name in asked.open():
            self._tell(warn, index, f"a call of {shown(name)} without a result, id {shown(call_id)}")
        return answers, asked.names

    def _tell(self, warn: Warn, index: int, message: str) -> None:
        line = self.lines[index]
        warn(Warned(line=None if line == _NO_LINE else line, message=f"message {index + 1}: {message}"))


class _Asked:
    """Calls that wait for their results: a queue for each id, since some providers begin again at `call_0` in a turn.

    A session may have a million calls, each with an id of its own; so the queues are links in one list of all calls.
    """

    def __init__(self) -> None:
        self._indexes, self._next = array("q"), array("q")
        self.names: list[str] = []
        self._spelt: dict[str, str] = {}
        self._first: dict[str | None, int] = {}
        self._last: dict[str | None, int] = {}

    def add(self, index: int, call: ToolCall) -> None:
        """Put a call at the end of its queue."""
        number = len(self.names)
        self._indexes.append(index)
        self._next.append(_NONE)
        self.names.append(self._spelt.setdefault(call.name, call.name))
        first = self._first.setdefault(call.id, number)
        if first == _NONE:
            self._first[call.id] = number
        elif first != number:
            self._next[self._last.get(call.id, first)] = number
        if first != number:
            self._last[call.id] = number

    def answer(self, identity: str | None) -> int:
        """Return the number of the call that a result belongs to, which waits no longer; `_NONE` where none waits."""
        number = self._first.get(identity, _NONE)
        if number != _NONE:
            self._first[identity] = self._next[number]
        return number

    def open(self) -> Iterator[tuple[int, str | None, str]]:
        """Yield the index, id and name of each call that waits still, by the first call of each id."""
        for identity, first in self._first.items():
            number = first
            while number != _NONE:
                yield self._indexes[number], identity, self.names[number]
                number = self._next[number]


def shown(value: Json) -> str:
    """Return a value short enough for a warning, quoted."""
    text = compact(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def compact(value: Json) -> str:
    """Return JSON text without white space, in the words of the file."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_or_none(value: Json) -> str | None:
    """Return an id or name as text; numbers are written out, anything else is None."""
    if isinstance(value, str):
        return value or None
    if value is None or isinstance(value, bool):
        return None
    return str(value) if isinstance(value, (int, float)) else None


def first_text(source: Mapping[str, Json], *keys: str) -> str | None:
    """Return the first of the keys that holds an id or name."""
    for key in keys:
        text = text_or_none(source.get(key))
        if text is not None:
            return text
    return None


def when(source: Mapping[str, Json]) -> tuple[Micros | None, str | None]:
    """Return the time a record gives under one of the usual keys, and its text where it is no instant."""
    value: Json = None
    for key in _TIMES:
        value = source.get(key)
        if value is not None and value != "":
            break
    if value is None or value == "" or isinstance(value, bool):
        return None, None
    if isinstance(value, (str, int, float)):
        return lenient_instant(value)
    return None, compact(value)


def call(identity: Json, name: Json, arguments: Json) -> ToolCall:
    """Return a call; arguments that are text stay as they stood."""
    return ToolCall(
        id=text_or_none(identity),
        name=text_or_none(name) or "",
        arguments=arguments if isinstance(arguments, str) else "" if arguments is None else compact(arguments),
    )


def media(kind: str, detail: Json) -> str:
    """Return the note for a part that is no text: its kind and media type, address or name, never its bytes."""
    if not isinstance(detail, str) or not detail:
        return kind
    if detail.startswith("data:"):
        detail = detail[5:].partition(",")[0].partition(";")[0] or "data"
    return f"{kind} {detail[:200]}"
