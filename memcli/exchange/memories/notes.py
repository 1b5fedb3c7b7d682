"""Statements in Markdown: list items and short paragraphs, with the headings that make them readable alone.

A heading, a line that only leads to a list, and the item above a nested one are context. Whole sentences need none;
any other statement gets it before a colon. Code, tables, comments, imports and placeholders are no statements; each
is told with its line, as is a heading below which nothing was taken.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from memcli.exchange.memories.blocks import BREAK, COMMENT, HEADING, ITEM, PARAGRAPH, Block, blocks
from memcli.exchange.memories.sentences import sentences
from memcli.record import record

Tell: TypeAlias = Callable[[int | None, str], None]
"""Is told what was not taken: the 1-based line, and a sentence."""

WHOLE_CHARACTERS = 600
"""A paragraph of this length is one statement; a longer one is cut into sentences."""

_LEAD_CHARACTERS = 100
_LABEL_CHARACTERS = 60
_SHOWN = 60
_BOLD_LEVEL = 7

# Titles that say no more than that this is a memory.
_GENERIC = frozenset(
    {
        *("memory", "memories", "notes", "note", "facts", "index", "observations", "relations", "readme", "key facts"),
        *("claude", "agents", "gemini", "cursorrules", "hermes", "user-memory", "project notes", "memory file"),
        *("project memory", "user memory", "auto memory", "long-term memory", "long term memory", "my memory"),
        *("claude code memory", "agent memory", "memory index", "saved memories"),
    }
)
_DEPENDENT = re.compile(
    r"(?:it|its|they|their|this|these|those|that|he|she|his|her|also|but|and|or|otherwise|then|same|such|there)\b",
    re.IGNORECASE,
)
_LABELLED = re.compile(r"[^:.!?]{1,40}:(?:\s|$)")
_ENDS = (".", "!", "?", "\u3002", "\uff01", "\uff1f")
_COLONS = (":", "\uff1a")
_BOLD = re.compile(r"\*\*(?=\S)(.{1,500}?)(?<=\S)\*\*")
_PLACEHOLDER_CHARACTERS = 300
_NESTED = 3
_BOLD_MARKS = 400
_KEY_VALUE = re.compile(r"[^\W\d_][\w /-]{0,30}:\s+\S")
_BOLD_LABEL = re.compile(r"(\*\*|__)[^*_]{1,40}:?\1:?\s")
_BOLD_LINE = re.compile(r"(\*\*|__)((?:(?!\1).){1,80}?)\1$")
_TASK = re.compile(r"\[([ xX/-])\]\s+")
_TASKS = {" ": "open", "x": "done", "X": "done", "/": "started", "-": "cancelled"}
_STRUCK = re.compile(r"~~(.+)~~\.?$")
_LINK = re.compile(r"\[([^\]\[]+)\]\(([^()\s]+\.md(?:#[^()\s]*)?)\)")
_IMPORT = re.compile(r"(?<![\w`@/])@((?:~/|\.{1,2}/)?[\w-][\w./-]*\.(?:md|txt|json|ya?ml|toml))\b")
_LEFT_OUT = re.compile(
    r"\b(?:rest|remaind?er|remaining|existing|previous|original|other)\b.*"
    r"\b(?:unchanged|same|remains?|omitted|continues?|as before|truncated|here|content|sections?|file)\b"
    r"|\bunchanged\b|\bexisting (?:content|code)\b",
    re.IGNORECASE | re.DOTALL,
)
_WRAPPED = re.compile(r"(?:\[.*\]|\(.*\)|<.*>|\{.*\}|(?:\.\.\.|…).*|.*(?:\.\.\.|…))$", re.DOTALL)
_UNFILLED = re.compile(
    r"(?:[^:]{1,40}:\s*)?(?:[\[<({](?:unknown|tbd|todo|none yet|to be .*|your .*|insert .*|fill .*|placeholder.*)"
    r"[\])>}]|to be (?:filled|determined|added|decided)(?: \w+)*|tbd|todo)\.?$",
    re.IGNORECASE,
)


@record
class Noted:
    """One statement.

    Args:
        own: Its words without context.
        context: What stands over it, outermost first; without titles that say nothing.
        headings: The headings over it, all of them.
        links: The notes that it points to.
        task: `open`, `done`, `started` or `cancelled` of a task, else None.
        struck: It was struck through.
    """

    own: str
    line: int
    kind: str
    context: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    task: str | None = None
    struck: bool = False

    @property
    def text(self) -> str:
        """Return the statement so that it can be read without its context."""
        if not self.context or stands_alone(self.own):
            return self.own
        return f"{' / '.join(self.context)}: {self.own}"


def stands_alone(text: str) -> bool:
    """Return whether a text is a whole sentence that points to nothing outside of it."""
    words = len(text.split())
    whole = words >= 3 or (words >= 1 and len(text) >= 8 and not text.isascii())
    begins = text[:1].isalpha() and not text[:1].islower()
    return bool(whole and begins and _ends(text) and not _LABELLED.match(text) and not _DEPENDENT.match(text))


def placeholder(text: str) -> bool:
    """Return whether words stand for something that was left out or never filled in."""
    if len(text) > _PLACEHOLDER_CHARACTERS:
        return False
    return bool(_UNFILLED.match(text) or (_WRAPPED.match(text) and _LEFT_OUT.search(text)))


def plain(text: str) -> str:
    """Return a text without bold marks; everything else of Markdown stays."""
    return _BOLD.sub(r"\1", text).strip() if text.count("**") <= _BOLD_MARKS else text.strip()


def statements(
    lines: Sequence[str],
    tell: Tell,
    *,
    start: int = 0,
    root: str | None = None,
    whole_characters: int = WHOLE_CHARACTERS,
) -> Iterator[Noted]:
    """Yield each statement of a text.

    Args:
        start: The 0-based index of the first line to look at.
        root: What all of it is about, where no heading says more.
        whole_characters: A longer paragraph is cut into sentences; 0 means every one, and nothing is told of it.
    """
    reader = _Reader(tuple(blocks(lines, start)), root, tell, whole_characters)
    yield from reader.statements()


class _Reader:
    """The blocks of one text and where the reading stands: headings, list items and what led to the list."""

    def __init__(self, found: tuple[Block, ...], root: str | None, tell: Tell, whole_characters: int) -> None:
        self._blocks = found
        self._root = root
        self._tell = tell
        self._whole = whole_characters
        self._headings: list[tuple[Block, bool]] = []
        self._items: list[Block] = []
        self._lead: Block | None = None
        self._lead_used = False

    def statements(self) -> Iterator[Noted]:
        for index, block in enumerate(self._blocks):
            following = next((item for item in self._blocks[index + 1 : index + 9] if item.kind != COMMENT), None)
            if block.kind == HEADING:
                self._heading(block, block.level)
            elif block.kind == ITEM:
                yield from self._item(block, following)
            elif block.kind == PARAGRAPH:
                yield from self._paragraph(block, following)
            else:
                self._other(block)
        self._end_lead()
        self._close(0)

    def _heading(self, block: Block, level: int) -> None:
        self._end_lead()
        self._items.clear()
        self._close(level)
        self._headings.append((Block(kind=HEADING, text=plain(block.text), line=block.line, level=level), False))

    def _close(self, level: int) -> None:
        """Leave the headings of that level and below, telling of those that lead to nothing."""
        while self._headings and self._headings[-1][0].level >= level:
            block, used = self._headings.pop()
            if not used:
                self._tell(block.line, f"nothing was taken below the heading {_shown(block.text)}")

    def _other(self, block: Block) -> None:
        if block.kind == BREAK:
            self._end_lead()
            self._items.clear()
        elif block.kind == COMMENT and placeholder(f"[{block.text}]"):
            self._tell(block.line, f"skipped a placeholder for what was left out: {_shown(block.text)}")
        elif block.text:
            self._tell(block.line, f"skipped {block.kind}, which is no statement: {_shown(block.text)}")

    def _item(self, block: Block, following: Block | None) -> Iterator[Noted]:
        while self._items and self._items[-1].level >= block.level:
            self._items.pop()
        text = plain(block.text)
        deeper = following is not None and following.kind in (ITEM, PARAGRAPH) and following.level > block.level
        if text.endswith(_COLONS) and not deeper:
            self._tell(block.line, f"skipped an item that says nothing behind its colon: {_shown(text)}")
        elif not text.endswith(_COLONS):
            yield from self._one(block, block.text, block.line)
        self._items.append(block)

    def _paragraph(self, block: Block, following: Block | None) -> Iterator[Noted]:
        while self._items and self._items[-1].level >= max(block.level, 1):
            self._items.pop()
        if block.level == 0:
            self._end_lead()
            self._items.clear()
            if block.text.startswith("**"):
                self._close(_BOLD_LEVEL)
        bold = _BOLD_LINE.match(block.text)
        if bold is not None and not _ends(bold.group(2)) and block.level == 0:
            self._heading(Block(kind=HEADING, text=bold.group(2).rstrip(":"), line=block.line), _BOLD_LEVEL)
        elif block.level == 0 and _leads(plain(block.text)) and (following is None or following.kind != PARAGRAPH):
            self._lead, self._lead_used = block, False
        else:
            for line, text in _split(block):
                for part in self._parts(text, line):
                    yield from self._one(block, part, line)

    def _parts(self, text: str, line: int) -> list[str]:
        if len(text) <= self._whole:
            return [text]
        parts = sentences(text)
        if self._whole and len(parts) > 1:
            self._tell(line, f"a paragraph of {len(text):,} characters was cut into its {len(parts)} sentences")
        return parts

    def _end_lead(self) -> None:
        if self._lead is not None and not self._lead_used:
            self._tell(self._lead.line, f"skipped words that only lead to something else: {_shown(self._lead.text)}")
        self._lead = None

    def _one(self, block: Block, raw: str, line: int) -> Iterator[Noted]:
        task = _TASK.match(raw)
        text = plain(raw[task.end() :] if task is not None else raw)
        struck = _STRUCK.match(text)
        if placeholder(text):
            self._tell(line, f"skipped a placeholder for what was left out: {_shown(text)}")
            return
        for name in _IMPORT.findall(text):
            self._tell(line, f"an import is not followed: {_shown('@' + name)}")
        words = _LINK.sub(r"\1", struck.group(1) if struck is not None else text).strip()
        if not words:
            return
        headings = tuple(heading.text for heading, _ in self._headings)
        self._headings = [(heading, True) for heading, _ in self._headings]
        self._lead_used = True
        yield Noted(
            own=words,
            line=line,
            kind=block.kind,
            context=self._context(headings),
            headings=headings,
            links=tuple(target for _, target in _LINK.findall(text)),
            task=None if task is None else _TASKS[task.group(1)],
            struck=struck is not None,
        )

    def _context(self, headings: tuple[str, ...]) -> tuple[str, ...]:
        said = [heading for heading in headings if not _is_generic(heading)]
        if not said and self._root is not None:
            said = [self._root]
        if self._lead is not None:
            said.append(plain(self._lead.text).rstrip(":"))
        return (*said, *(_label(plain(item.text)) for item in self._items[-_NESTED:]))


def _ends(text: str) -> bool:
    return text.rstrip("\"'”’)]`*").endswith(_ENDS)


def _leads(text: str) -> bool:
    return text.endswith(_COLONS) and len(text) <= _LEAD_CHARACTERS and ". " not in text


def _split(block: Block) -> Iterator[tuple[int, str]]:
    """Yield the statements of a paragraph: each line that begins with a label is one of its own."""
    lines = [line.strip() for line in block.lines if line.strip()]
    keyed = len(lines) > 1 and all(_KEY_VALUE.match(line) for line in lines)
    start, parts = block.line, list[str]()
    for number, line in enumerate(lines, block.line):
        if parts and (keyed or _BOLD_LABEL.match(line)):
            yield start, " ".join(parts)
            start, parts = number, []
        parts.append(line)
    if parts:
        yield start, " ".join(parts)


def _is_generic(heading: str) -> bool:
    words = re.sub(r"[^\w .-]+", "", heading).strip().casefold().removesuffix(".md").removesuffix(".local")
    return words in _GENERIC


def _label(text: str) -> str:
    """Return what an item is about, for the items below it."""
    for mark in (": ", " — ", " – ", " - "):
        head, found, _ = text.partition(mark)
        if found and len(head) <= _LABEL_CHARACTERS and head.count("`") % 2 == 0:
            return head
    text = text.rstrip(":.")
    return text if len(text) <= _LABEL_CHARACTERS else f"{text[:_LABEL_CHARACTERS].rsplit(' ', 1)[0]}…"


def _shown(text: str) -> str:
    return f'"{text}"' if len(text) <= _SHOWN else f'"{text[:_SHOWN]}…"'
