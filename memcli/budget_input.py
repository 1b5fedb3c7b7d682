"""Transcripts as a budget takes them: every format that can be read, OpenAI's messages as they stand in the file.

A `Turn` drops what no reader needs, and LlamaIndex counts it: every key beside role and content. So where the file has
OpenAI's messages they are taken raw, and the counts are exact.

Most files are one list of messages that are a role and a text and nothing else. Such a file can be nothing but
OpenAI's, so it is taken as it is parsed; every other one is left to the readers, which ask each of its messages what
it may be, and whose import alone takes as long as the rest of a simulation.
"""

import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memcli.budget.messages import BudgetMessage, ToolCalls, all_plain, from_openai, from_turn
from memcli.budget.raised import Raised
from memcli.errors import NotFound, Unreadable, UsageError
from memcli.facts import Micros, Turn
from memcli.record import record

if TYPE_CHECKING:
    from memcli.exchange.read import Opened

SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj")
"""What a file in a folder must end with to be taken, `.gz` behind it or not; a file that is named is always taken."""

_AT_ONCE_BYTES: Final = 64 * 1024 * 1024
"""The largest file that is looked at as one list of plain messages before the readers are asked."""

_ANSWERS: Final = frozenset({"tool", "function"})
"""The roles of what answers a call."""

_LENIENT: Final = json.JSONDecoder(strict=False)
"""Takes control characters in texts, as the readers do."""


@record
class Transcript:
    """One conversation, ready to be simulated.

    Args:
        path: The file as it was named.
        name: The path, with the number of the conversation where the file holds several.
        ids: Of each message: its id in the transcript, or its 0-based place where it has none of its own.
        times: Of each message: when it was said, or None.
        notes: What the reader could not take, or took with a doubt.
        raised: What LlamaIndex raises at a message, by its place; there the message is what the reader made of it.
    """

    path: str
    name: str
    format: str
    messages: tuple[BudgetMessage, ...]
    ids: tuple[str, ...]
    times: tuple[Micros | None, ...]
    notes: tuple[str, ...]
    raised: Mapping[int, str]

    def words(self, at: int) -> str:
        """Return the text of a message, or of its tool calls where it has none."""
        message = self.messages[at]
        return message.lines or "\n".join(part.text for part in message.parts if part.text) or _called(message)


def _called(message: BudgetMessage) -> str:
    calls = message.kwargs.get("tool_calls")
    return "" if not calls else f"calls {calls}"


def transcripts(path: str, *, tool_calls: ToolCalls = ToolCalls.KWARGS) -> tuple[Transcript, ...]:
    """Return the conversations of a file, one without messages where nothing stands in it.

    Args:
        path: `-` is standard input.

    Raises:
        Unreadable: The file cannot be read or recognised.
    """
    plain = _plain_messages(path)
    if plain is not None:
        return (_plain_transcript(path, plain),)
    from memcli.exchange.read import open_file

    opened = open_file(path, keep_raw=True, may_be_empty=True)
    notes = tuple(f"{_line(warned.line)}{warned.message}" for warned in opened.warnings)
    if not opened.conversations:
        return (_transcript(opened, 0, (), notes, tool_calls),)
    return tuple(
        _transcript(opened, number, conversation.turns, notes if number == 0 else (), tool_calls)
        for number, conversation in enumerate(opened.conversations)
    )


def one_of_them(found: Sequence[Transcript], number: int | None) -> Transcript:
    """Return the conversation of that number, or the only one.

    Raises:
        UsageError: There are several and none was named.
        NotFound: There is none of that number.
    """
    if number is None and len(found) > 1:
        raise UsageError(
            f"{found[0].path} holds {len(found):,} conversations, and this takes one",
            hint=f"name it with --conversation, from 0 to {len(found) - 1}",
        )
    if number is not None and number >= len(found):
        last = f"from 0 to {len(found) - 1}" if len(found) > 1 else "0; it has no other"
        raise NotFound(f"{found[0].path} has no conversation {number}", hint=f"give a number {last}")
    return found[number or 0]


def _line(line: int | None) -> str:
    return "" if line is None else f"line {line}: "


def _plain_messages(path: str) -> tuple[BudgetMessage, ...] | None:
    """Return the messages of a file that is one list of plain ones, bare or under `messages`; None for any other.

    What is wrong with a file is for the readers to say, so that here it is only not taken.
    """
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= _AT_ONCE_BYTES:
            return None
        value = _LENIENT.decode(Path(path).read_bytes().decode("utf-8", "surrogatepass"))
    except (OSError, ValueError, RecursionError):
        return None
    listed = value["messages"] if isinstance(value, dict) and value.keys() == {"messages"} else value
    made = all_plain(listed) if isinstance(listed, list) else None
    # A result that names no call is something to tell of.
    return made if made and _ANSWERS.isdisjoint([message.role for message in made]) else None


def _plain_transcript(path: str, messages: tuple[BudgetMessage, ...]) -> Transcript:
    total = len(messages)
    return Transcript(
        path=path,
        name=path,
        format="openai",
        messages=messages,
        ids=tuple(map(str, range(total))),
        times=(None,) * total,
        notes=(),
        raised={},
    )


def _transcript(
    opened: "Opened", number: int, turns: Sequence[Turn], notes: tuple[str, ...], tool_calls: ToolCalls
) -> Transcript:
    raised: dict[int, str] = {}
    raw = opened.raw[number] if opened.raw else ()
    made = [] if raw else [from_turn(turn, tool_calls) for turn in turns]
    for place, (given, turn) in enumerate(zip(raw, turns, strict=bool(raw))):
        try:
            made.append(from_openai(given, tool_calls))
        except Raised as problem:
            raised[place] = f"{problem.kind}: {problem.said}"
            made.append(from_turn(turn, tool_calls))
    many = len(opened.conversations) > 1
    return Transcript(
        path=opened.path,
        name=f"{opened.path} #{number}" if many else opened.path,
        format=opened.format,
        messages=tuple(made),
        ids=_ids(turns),
        times=tuple(turn.at for turn in turns),
        notes=notes,
        raised=raised,
    )


def _ids(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Return the id of each message; ids that several of them bear are none."""
    given = [turn.origin for turn in turns]
    if given.count(None) == len(given):
        return tuple(map(str, range(len(given))))
    seen: dict[str, int] = {}
    for name in given:
        if name is not None:
            seen[name] = seen.get(name, 0) + 1
    return tuple(name if name is not None and seen[name] == 1 else str(place) for place, name in enumerate(given))


def files(paths: Iterable[str]) -> list[str]:
    """Return the files that were named, and those of each folder that look like transcripts, by name.

    Raises:
        Unreadable: A folder cannot be read, or holds no such file.
    """
    found: list[str] = []
    for path in paths:
        if path == "-" or "\0" in path or not Path(path).is_dir():
            found.append(path)
            continue
        inside = sorted(_inside(path))
        if not inside:
            raise Unreadable(path, "no transcript is in this folder", hint=f"a file ends with {', '.join(SUFFIXES)}")
        found += inside
    return found


def _inside(folder: str) -> Iterable[str]:
    def refuse(problem: OSError) -> None:
        raise Unreadable(folder, (problem.strerror or str(problem)).lower(), hint="check who may read it")

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and name.lower().removesuffix(".gz").endswith(SUFFIXES):
                yield str(Path(place) / name)
