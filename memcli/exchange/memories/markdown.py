"""Memory kept as Markdown: MEMORY.md, CLAUDE.md, notes of one topic with front matter, and any file like them.

Each list item and each short paragraph is one thing remembered. Of a topic file, the name is what all of it is about,
and the rest of its front matter goes along. A file is taken for one of these only where headings, list items or front
matter make up a part of it, and where nothing in it looks like a chat, a program or settings.
"""

import re
from collections.abc import Iterator, Sequence

from memcli.clock import lenient_instant
from memcli.exchange.loose import Prose, Record
from memcli.exchange.memories.front_matter import FrontMatter, front_matter
from memcli.exchange.memories.notes import Noted, statements
from memcli.exchange.shapes import Warn, shown
from memcli.facts import Json, Remembered, Warned
from memcli.record import record
from memcli.terms import State

_NAME = "markdown"
_LOADED_LINES = 200
_SHARE = 0.2
_FOREIGN_SHARE = 0.15

_STRUCTURE = re.compile(r"#{1,6} \S|[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+\S")
_OPENING = re.compile(r"#{1,6} \S")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_AIDER = "# aider chat started at"
_ASKS = re.compile(r"[#*_>\s]{0,8}(?:user|human|you|me|prompt|question|q)[*_]{0,2}\s*(?::|$)", re.IGNORECASE)
_ANSWERS = re.compile(
    r"[#*_>\s]{0,8}(?:assistant|ai|bot|model|chatgpt|claude|gemini|gpt-?\d\S*|answer|a)[*_]{0,2}\s*(?::|$)",
    re.IGNORECASE,
)
_PROGRAM = re.compile(
    r"#!|#include\b|(?:import|from|def|class|func|function|const|let|var|package|use|pub|return)\s.*[\w){;:]$|.*[;{}]$"
    r"|@@ -\d|diff --git |[\w.-]+[ \t]*=[ \t]*\S|\[[\w.-]+\]$|[ \t]+[\w.-]+:(?:[ \t]+\S|$)|[\w.-]+:[ \t]*[|>]?-?$"
)
_SPOKEN_FOR = ("name", "title", "created", "created_at", "updated", "updated_at", "modified", "date")


@record
class Markdown:
    """The reader of memory kept as Markdown."""

    name: str = _NAME
    title: str = "Markdown memory"

    def claims(self, value: Json | Prose) -> int:
        """Return 1 for a text that is a memory file by its shape."""
        return 1 if isinstance(value, Prose) and is_memory(lines_of(value.text)) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Remembered]:
        """Yield each statement, in the order of the file."""
        for found in records:
            if isinstance(found.value, Prose):
                yield from remembered(lines_of(found.value.text), _NAME, warn)
            else:
                warn(Warned(line=found.line, message=f"skipped what is no Markdown: {shown(found.value)}"))


MARKDOWN = Markdown()


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, whatever ends them; a form feed or a line separator of Unicode ends none."""
    return text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def remembered(lines: Sequence[str], format: str, warn: Warn) -> Iterator[Remembered]:  # noqa: A002
    """Yield each statement of a text as a thing remembered, in the name of a format."""
    front = front_matter(lines)

    def tell(line: int | None, message: str) -> None:
        warn(Warned(line=line, message=message))

    count = 0
    for noted in statements(lines, tell, start=front.body, root=about(front)):
        count += 1
        yield one(noted, front, format)
    description = front.get("description")
    if not count and description is not None:
        tell(1, f"nothing stands below the front matter, which describes it as {shown(description)}")
    last = next((index for index in range(len(lines), 0, -1) if lines[index - 1].strip()), 0)
    if last > _LOADED_LINES:
        tell(
            _LOADED_LINES + 1,
            f"it has {last} lines; of a MEMORY.md, Claude Code does not load those past {_LOADED_LINES}",
        )


def about(front: FrontMatter) -> str | None:
    """Return what a note is about, by its front matter."""
    return front.get("name") or front.get("title")


def one(noted: Noted, front: FrontMatter, format: str) -> Remembered:  # noqa: A002
    """Return a statement as a thing remembered, with what the front matter says of all of them."""
    time = next((said for key in _SPOKEN_FOR[2:] if (said := front.get(key)) is not None), None)
    at, at_text = lenient_instant(time)
    return Remembered(
        format=format,
        text=noted.text,
        subject=about(front),
        at=at,
        at_text=at_text,
        ended=State.REVOKED if noted.struck else None,
        status="struck through" if noted.struck else noted.task,
        extra=(
            *((("heading", " / ".join(noted.headings)),) if noted.headings else ()),
            *(("link", target) for target in noted.links),
            *front.others(*_SPOKEN_FOR),
        ),
        line=noted.line,
        own=None if noted.own == noted.text else noted.own,
    )


def is_chat(lines: Sequence[str]) -> bool:
    """Return whether a text looks like what people and models said to each other."""
    if any(line.startswith(_AIDER) for line in lines):
        return True
    if any(line.startswith("> ") for line in lines):
        levels = {line.partition(" ")[0] for line in lines if _OPENING.match(line)}
        if levels == {"####"}:
            return True
    asks = sum(1 for line in lines if _ASKS.match(line))
    answers = sum(1 for line in lines if _ANSWERS.match(line))
    return asks + answers >= 2 and bool(asks and answers)


def is_memory(lines: Sequence[str]) -> bool:
    """Return whether headings, list items or front matter make a text a memory file."""
    if is_chat(lines):
        return False
    front = front_matter(lines)
    body = _unfenced(lines[front.body :])
    structure = sum(1 for line in body if _STRUCTURE.match(line))
    foreign = sum(1 for line in body if _PROGRAM.match(line) and not _STRUCTURE.match(line))
    if foreign > _FOREIGN_SHARE * len(body):
        return False
    opens = front.body > 0 or (bool(body) and bool(_OPENING.match(body[0])))
    return opens or structure >= max(1, _SHARE * len(body))


def _unfenced(lines: Sequence[str]) -> list[str]:
    """Return the lines that are neither blank nor in fences."""
    kept: list[str] = []
    fenced = False
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
        elif line.strip() and not fenced:
            kept.append(line.rstrip())
    return kept
