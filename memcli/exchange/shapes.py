"""What the readers of transcripts share: roles, times, parts, and which result belongs to which call."""

import dataclasses
import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, MutableSequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from memcli.clock import lenient_instant
from memcli.exchange.loose import Prose, Record
from memcli.exchange.turns import TurnLog, changed
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


@record
class Draft:
    """A conversation being put together: its turns, and the line each came from."""

    format: str
    session: str | None = None
    title: str | None = None
    turns: MutableSequence[Turn] = field(default_factory=TurnLog)
    lines: list[int | None] = field(default_factory=list)

    def add(self, turn: Turn, line: int | None) -> int:
        """Add a turn and return its index."""
        self.turns.append(turn)
        self.lines.append(line)
        return len(self.turns) - 1

    def finished(self, warn: Warn) -> Conversation:
        """Return the conversation, results named after their calls; calls and results without the other are told."""
        names = self._answered(warn)

        def named(index: int, turn: Turn) -> Turn:
            return dataclasses.replace(turn, name=names[index]) if turn.name is None and index in names else turn

        return Conversation(
            format=self.format, turns=changed(self.turns, named), session=self.session, title=self.title
        )

    def _answered(self, warn: Warn) -> dict[int, str]:
        # A queue for each id: some providers begin again at `call_0` in every turn.
        waiting: defaultdict[str | None, deque[tuple[int, str]]] = defaultdict(deque)
        for index, turn in enumerate(self.turns):
            for call in turn.tool_calls:
                waiting[call.id].append((index, call.name))
        names: dict[int, str] = {}
        for index, turn in enumerate(self.turns):
            if turn.role is not Role.TOOL:
                continue
            queue = waiting[turn.tool_call_id]
            if queue:
                names[index] = queue.popleft()[1]
            else:
                self._tell(warn, index, f"a tool result without its call, id {shown(turn.tool_call_id)}")
        for call_id, queue in waiting.items():
            for index, name in queue:
                self._tell(warn, index, f"a call of {shown(name)} without a result, id {shown(call_id)}")
        return names

    def _tell(self, warn: Warn, index: int, message: str) -> None:
        warn(Warned(line=self.lines[index], message=f"message {index + 1}: {message}"))


def shown(value: Json) -> str:
    """Return a value short enough for a warning, quoted."""
    text = compact(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def compact(value: Json) -> str:
    """Return JSON text without white space, in the words of the file."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_or_none(value: Json) -> str | None:
    """Return an id or name as text; numbers are written out, anything else is None."""
    if isinstance(value, bool) or value is None or value == "":
        return None
    return str(value) if isinstance(value, (str, int, float)) else None


def first_text(source: Mapping[str, Json], *keys: str) -> str | None:
    """Return the first of the keys that holds an id or name."""
    return next((text for key in keys if (text := text_or_none(source.get(key))) is not None), None)


def when(source: Mapping[str, Json]) -> tuple[Micros | None, str | None]:
    """Return the time a record gives under one of the usual keys, and its text where it is no instant."""
    value = next((source[key] for key in _TIMES if source.get(key) not in (None, "")), None)
    if value is None or isinstance(value, bool):
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
