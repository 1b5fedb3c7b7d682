"""Which reader a file is for: by what stands in all of it, never by its name, and saying what was looked for."""

from collections.abc import Callable, Iterator, Sequence

from memcli.errors import Unreadable, UsageError
from memcli.exchange.looks import described, foreign_bytes, looked_for
from memcli.exchange.loose import Note, Prose, Record, parse, place, records, stream
from memcli.exchange.memories.basic_memory import BASIC_MEMORY
from memcli.exchange.memories.beads import BEADS
from memcli.exchange.memories.chat_memories import CHAT_MEMORIES
from memcli.exchange.memories.graphiti import GRAPHITI
from memcli.exchange.memories.hermes import HERMES
from memcli.exchange.memories.langmem import LANGMEM
from memcli.exchange.memories.letta import LETTA
from memcli.exchange.memories.llamaindex_facts import LLAMAINDEX_FACTS
from memcli.exchange.memories.markdown import MARKDOWN
from memcli.exchange.memories.mcp import MCP
from memcli.exchange.memories.mem0 import MEM0
from memcli.exchange.memories.mem_jsonl import MEM
from memcli.exchange.raw import RECORD_BYTES, Line, Raw, lines, whole
from memcli.exchange.shapes import Reader
from memcli.exchange.tables import TABLE_READERS
from memcli.exchange.transcripts.aider import AIDER
from memcli.exchange.transcripts.anthropic import ANTHROPIC
from memcli.exchange.transcripts.chatgpt import CHATGPT, CHATGPT_BRANCHES
from memcli.exchange.transcripts.claude_ai import CLAUDE_AI
from memcli.exchange.transcripts.claude_code import CLAUDE_CODE
from memcli.exchange.transcripts.codex import CODEX
from memcli.exchange.transcripts.codex_exec import CODEX_EXEC
from memcli.exchange.transcripts.gemini import GEMINI
from memcli.exchange.transcripts.langchain import LANGCHAIN
from memcli.exchange.transcripts.llamaindex import LLAMAINDEX
from memcli.exchange.transcripts.locomo import LOCOMO
from memcli.exchange.transcripts.longmemeval import LONGMEMEVAL
from memcli.exchange.transcripts.openai import OPENAI
from memcli.exchange.transcripts.openhands import OPENHANDS
from memcli.exchange.transcripts.pi import PI
from memcli.exchange.transcripts.sharegpt import SHAREGPT
from memcli.exchange.transcripts.swe_agent import SWE_AGENT
from memcli.exchange.transcripts.tau_bench import TAU_BENCH
from memcli.exchange.transcripts.text import TEXT
from memcli.facts import Json
from memcli.record import record

TRANSCRIPTS: tuple[Reader, ...] = (
    CLAUDE_CODE,
    OPENAI,
    CODEX,
    CODEX_EXEC,
    GEMINI,
    PI,
    AIDER,
    LLAMAINDEX,
    LANGCHAIN,
    SWE_AGENT,
    OPENHANDS,
    ANTHROPIC,
    CHATGPT,
    CHATGPT_BRANCHES,
    CLAUDE_AI,
    LOCOMO,
    LONGMEMEVAL,
    SHAREGPT,
    TAU_BENCH,
    TEXT,
)
"""Formats of what was said."""

MEMORIES: tuple[Reader, ...] = (
    LLAMAINDEX_FACTS,
    LANGMEM,
    LETTA,
    GRAPHITI,
    MCP,
    MEM,
    MEM0,
    HERMES,
    BASIC_MEMORY,
    CHAT_MEMORIES,
    BEADS,
    MARKDOWN,
)
"""Formats of what a memory store holds, which becomes facts."""

READERS: tuple[Reader, ...] = (*TRANSCRIPTS, *MEMORIES)
"""Every format of text that can be read; of two with equal votes the earlier one is taken."""

AUTO = "auto"
FORMATS: tuple[str, ...] = (
    AUTO,
    *dict.fromkeys([*(reader.name for reader in READERS), *(reader.name for reader in TABLE_READERS)]),
)
"""What `--format` takes."""

_SAMPLED_BYTES = 4 * 1024 * 1024
_FIRST_LINES, _EVERY_LINE = 1_000, 50

_HINT = "name the format with `--format " + "|".join(FORMATS[1:]) + "` if it is one of these"


@record
class Found:
    """The reader of a file, and how to go over its values, as often as asked."""

    reader: Reader
    tried: tuple[str, ...]
    records: Callable[[], Iterator[Record | Note]]


@record
class _Survey:
    """What one pass over all values says: votes in the order of the readers, and how much could be taken.

    Args:
        bare: How many values are numbers, words such as `true`, or texts: a list in plain text may begin with such.
        alone: The one value of the file, where there is nothing else to tell of it.
    """

    votes: tuple[int, ...]
    values: int
    bare: int
    lost: int
    first: Json | Prose
    alone: Record | None = None

    @property
    def holds(self) -> bool:
        """Return whether this way of cutting the file into values fits: no more was lost than taken."""
        return self.values > 0 and self.values >= self.lost


def candidates(name: str) -> tuple[Reader, ...]:
    """Return the readers to try.

    Raises:
        UsageError: No reader has that name.
    """
    if name == AUTO:
        return READERS
    chosen = tuple(reader for reader in READERS if reader.name == name)
    if not chosen and name not in FORMATS:
        raise UsageError(f"{name} is no format that can be read", hint=f"use one of {', '.join(FORMATS)}")
    return chosen


def is_store(name: str) -> bool:
    """Return whether a format is of a memory store, of which an empty one is still one."""
    return any(reader.name == name for reader in MEMORIES)


def find(raw: Raw, *, name: str, encoding: str | None) -> Found:
    """Return the reader with the most votes over all values of the file, or the one that is named.

    Raises:
        Unreadable: It is no text, no JSON, or no format that was looked for.
        UsageError: No reader has that name, or there is no such encoding.
    """
    readers = candidates(name)
    tried = tuple(reader.name for reader in readers)
    _refuse_foreign(raw, tried)
    if not readers:
        raise Unreadable(raw.path, f"it is no database, and {name} is one", tried=(name,), hint=_HINT)
    survey, again = _cut(raw, encoding, readers)
    best = max(range(len(readers)), key=lambda index: survey.votes[index])
    if name == AUTO and survey.votes[best] <= 0:
        why = f"unrecognised format: it holds {described(survey.first)}; {looked_for(tried)}"
        raise Unreadable(raw.path, why, tried=tried, hint=_HINT)
    return Found(reader=readers[best], tried=tried, records=again)


def _refuse_foreign(raw: Raw, tried: tuple[str, ...]) -> None:
    head = raw.head
    if not head:
        raise Unreadable(raw.path, "the file is empty", tried=tried, hint="export it again")
    if not head.strip(b"\0 \t\r\n") and raw.size == len(head):
        raise Unreadable(
            raw.path, "the file holds nothing but blanks or NUL bytes", tried=tried, hint="export it again"
        )
    what = foreign_bytes(head)
    if what is not None:
        why = f"unrecognised format: it is {what}; {looked_for(tried)}"
        raise Unreadable(raw.path, why, tried=tried, hint=_HINT)


def _cut(
    raw: Raw, encoding: str | None, readers: Sequence[Reader]
) -> tuple[_Survey, Callable[[], Iterator[Record | Note]]]:
    """Return the survey of the file cut into values the way that loses least, and how to go over them again.

    Line by line comes first, since one document on one line is a line too, and it needs no memory.
    """

    def by_line() -> Iterator[Record | Note]:
        return records(lines(raw, encoding))

    looked = _sample(lines(raw, encoding)) if raw.size > _SAMPLED_BYTES else lines(raw, encoding)
    quick = _survey(records(looked), readers, patient=False)
    if quick.holds and quick.bare < quick.values:
        alone = quick.alone
        return quick, by_line if alone is None else lambda: iter((alone,))
    text = whole(raw, encoding) if raw.size <= RECORD_BYTES else None
    if text is not None and quick.bare and max((read := _prose(text, readers)).votes) > 0:
        return read, lambda: iter((Record(line=None, value=Prose(text=text)),))
    parsed = parse(text) if text is not None else None
    patient = _survey(by_line(), readers, patient=True) if parsed is None or parsed.problem else quick
    if text is not None and parsed is not None and len(parsed.values) > (patient.values if parsed.problem else 0):
        taken = tuple(stream(text, parsed))
        return _survey(iter(taken), readers, patient=True), lambda: iter(taken)
    if patient.holds:
        return patient, by_line
    if text is None or parsed is None:
        raise Unreadable(raw.path, "one JSON document of more than 256 MB", hint="write it as JSON Lines")
    read = _prose(text, readers)
    # A transcript may begin with a bracket too, as `[10:00] User:` does.
    if text.lstrip("\ufeff\0 \t\r\n").startswith(("{", "[", '"')) and max(read.votes) <= 0:
        raise _broken(raw.path, text, parsed.problem or "", parsed.at, tuple(reader.name for reader in readers))
    if not text.strip("\ufeff\0 \t\r\n"):
        raise Unreadable(raw.path, "the file holds nothing but blanks or NUL bytes", hint="export it again")
    return read, lambda: iter((Record(line=None, value=Prose(text=text)),))


def _prose(text: str, readers: Sequence[Reader]) -> _Survey:
    """Return what the readers say of a file as one text."""
    return _survey(iter((Record(line=None, value=Prose(text=text)),)), readers, patient=True)


def _sample(source: Iterator[Line]) -> Iterator[Line]:
    """Yield enough lines of a large file to tell what it is: its beginning, and then one of many to the end."""
    for count, line in enumerate(source):
        if count < _FIRST_LINES or count % _EVERY_LINE == 0:
            yield line


def _survey(source: Iterator[Record | Note], readers: Sequence[Reader], *, patient: bool) -> _Survey:
    """Return the votes of all values; without patience, stop where the very first thing is no value."""
    votes = [0] * len(readers)
    values = bare = lost = notes = 0
    alone: Record | None = None
    first: Json | Prose = None
    for item in source:
        if isinstance(item, Record):
            first = item.value if values == 0 else first
            alone = item if values == 0 else None
            values += 1
            bare += not isinstance(item.value, (dict, list, Prose))
            votes = [vote + reader.claims(item.value) for vote, reader in zip(votes, readers, strict=True)]
            continue
        notes += 1
        if item.lost:
            lost += 1
            if not values and not patient:
                break
    alone = None if notes else alone
    return _Survey(votes=tuple(votes), values=values, bare=bare, lost=lost, first=first, alone=alone)


def _broken(path: str, text: str, problem: str, at: int, tried: tuple[str, ...]) -> Unreadable:
    line, column = place(text, at)
    what = problem.partition(" at ")[0]
    quotes = "; it looks like a Python value, not JSON" if text.lstrip()[1:2] == "'" or "{'" in text[:200] else ""
    return Unreadable(
        path,
        f"it is not valid JSON: {what} at column {column}{quotes}",
        line=line,
        tried=tried,
        hint="mend it there, or export it again",
    )
