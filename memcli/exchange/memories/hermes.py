"""Hermes' MEMORY.md and USER.md: entries with a line of nothing but `§` between them.

The store writes no escape, so that an entry that holds such a line of its own is two for everybody who reads it; only
inside a block of code that is still open is the line known to be content, and told. A `§` beside other words is a
word. A file without the line is one entry to Hermes; it is read as Markdown then, and told.
"""

import re
from collections.abc import Iterator, Sequence

from memcli.exchange.loose import Prose, Record
from memcli.exchange.memories.markdown import is_chat, lines_of, remembered
from memcli.exchange.memories.notes import placeholder
from memcli.exchange.shapes import SURE, Warn, shown
from memcli.facts import Json, Remembered, Warned
from memcli.record import record

_NAME = "hermes"
_MARK = "§"
_BLOCK = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)]|#{1,6}|>|\|)[ \t]|[ \t]*(?:```|~~~)")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")


@record
class Hermes:
    """The reader of Hermes' memory files."""

    name: str = _NAME
    title: str = "Hermes memory"

    def claims(self, value: Json | Prose) -> int:
        """Return certainty for a text with lines of nothing but the mark."""
        if not isinstance(value, Prose) or _MARK not in value.text:
            return 0
        lines = lines_of(value.text)
        return SURE if any(map(_is_mark, lines)) and not is_chat(lines) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Remembered]:
        """Yield each entry, in the order of the file."""
        for found in records:
            if not isinstance(found.value, Prose):
                warn(Warned(line=found.line, message=f"skipped what is no text: {shown(found.value)}"))
                continue
            lines = lines_of(found.value.text)
            if any(map(_is_mark, lines)):
                yield from _entries(lines, warn)
            else:
                message = f"no line of nothing but {_MARK} stands in it; read as Markdown, not as one entry"
                warn(Warned(line=1, message=message))
                yield from remembered(lines, _NAME, warn)


HERMES = Hermes()


def _is_mark(line: str) -> bool:
    return line.strip() == _MARK


def _entries(lines: Sequence[str], warn: Warn) -> Iterator[Remembered]:
    start, entry = 1, list[str]()
    fenced = False
    closes = _closing_fences(lines)
    for number, line in enumerate(lines, 1):
        if _FENCE.match(line):
            fenced = not fenced
        if not _is_mark(line):
            entry.append(line)
        elif fenced and number < closes:
            warn(Warned(line=number, message=f"a line of nothing but {_MARK} inside code; kept as part of its entry"))
            entry.append(line)
        else:
            fenced = False
            yield from _entry(entry, start, warn)
            start, entry = number + 1, []
    yield from _entry(entry, start, warn)


def _closing_fences(lines: Sequence[str]) -> int:
    """Return the line of the last fence; behind it nothing closes a block of code that is open."""
    return max((number for number, line in enumerate(lines, 1) if _FENCE.match(line)), default=0)


def _entry(lines: Sequence[str], start: int, warn: Warn) -> Iterator[Remembered]:
    said = [index for index, line in enumerate(lines) if line.strip()]
    if not said:
        return
    kept = [line.rstrip() for line in lines[said[0] : said[-1] + 1]]
    line = start + said[0]
    # Entries are wrapped by hand; only where lines are blocks of their own do the line ends mean something.
    together = not any(not part.strip() or _BLOCK.match(part) for part in kept)
    text = " ".join(part.strip() for part in kept) if together else "\n".join(kept).strip()
    if placeholder(text):
        warn(Warned(line=line, message=f"skipped a placeholder for what was left out: {shown(text)}"))
        return
    yield Remembered(format=_NAME, text=text, line=line)
