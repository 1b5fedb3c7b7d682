"""Markdown cut into blocks: headings, list items, paragraphs, and what is none of these, each with its line."""

import re
from collections.abc import Iterator, Sequence

from memcli.record import record

HEADING = "heading"
ITEM = "item"
PARAGRAPH = "paragraph"
CODE = "a code block"
TABLE = "a table"
COMMENT = "an HTML comment"
IMPORT = "an import"
HTML = "an HTML tag"
LINK = "a link definition"
BREAK = "break"

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_ITEM = re.compile(r"([ \t]*)(?:[-*+•–]|\d{1,9}[.)])(?:[ \t]+(.*))?$")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)$")
_BREAK = re.compile(r"[ \t]{0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
_UNDERLINE = re.compile(r"[ \t]{0,3}(=+|-+)[ \t]*$")
_TABLE = re.compile(r"[ \t]*\|.*\|[ \t]*$|[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)+$")
_HTML = re.compile(r"[ \t]{0,3}</?[A-Za-z][\w-]*(?:\s[^<>]*)?/?>[ \t]*$")
_LINK = re.compile(r"[ \t]{0,3}\[[^\]^]+\]:[ \t]*\S+.*$")
_IMPORT = re.compile(r"(?:[-*+][ \t]+)?@(?:~?/)?[\w.~-][\w./~-]*$")
_QUOTE = re.compile(r"[ \t]{0,3}(?:>[ \t]?)+")
_ALERT = re.compile(r"\[!\w+\]")


@record
class Block:
    """One block.

    Args:
        kind: One of the kinds above.
        text: Its words, soft line ends as blanks; of a heading its words, of code its first line.
        line: 1-based, where it begins.
        level: Of a heading 1 to 6; of an item or a paragraph, how far it is indented, in columns.
        lines: Its lines, without indentation.
    """

    kind: str
    text: str
    line: int
    level: int = 0
    lines: tuple[str, ...] = ()


def blocks(lines: Sequence[str], start: int = 0) -> Iterator[Block]:
    """Yield the blocks of a text from the line with that 0-based index on."""
    kept, comments = _without_comments(lines, start)
    found = [*_cut(kept, start), *comments]
    yield from sorted(found, key=lambda block: block.line)


def _without_comments(lines: Sequence[str], start: int) -> tuple[list[str], list[Block]]:
    """Return the lines with HTML comments blanked out, and a block for each comment outside of code."""
    kept = list(lines)
    comments: list[Block] = []
    fence: str | None = None
    index = start
    while index < len(kept):
        fence, is_code = _fenced(kept[index], fence)
        at = -1 if is_code else kept[index].find("<!--")
        if at < 0 or kept[index].count("`", 0, at) % 2:
            index += 1
            continue
        before, inner = kept[index][:at], kept[index][at + 4 :]
        words: list[str] = []
        end = index
        while "-->" not in inner and end + 1 < len(kept):
            words.append(inner)
            end += 1
            inner = kept[end]
        last, _, after = inner.partition("-->")
        text = " ".join(" ".join([*words, last]).split())
        comments.append(Block(kind=COMMENT, text=text, line=index + 1))
        kept[index : end + 1] = (
            [*[""] * (end - index), before + after] if not before else [before + after, *[""] * (end - index)]
        )
    return kept, comments


def _fenced(line: str, fence: str | None) -> tuple[str | None, bool]:
    """Return the fence that is open behind a line, and whether the line belongs to code."""
    found = _FENCE.match(line)
    if fence is None:
        opens = found is not None and "`" not in found.group(2)
        return (found.group(1) if found is not None and opens else None), opens
    closes = found is not None and found.group(1).startswith(fence) and not found.group(2).strip()
    return (None if closes else fence), True


class _Cutter:
    """Lines on their way into blocks: the one that is still open, and how it was begun."""

    def __init__(self) -> None:
        self.done: list[Block] = []
        self.kind: str | None = None
        self.line = 0
        self.level = 0
        self.code_line = 0
        self.parts: list[str] = []

    def close(self) -> None:
        if self.kind is not None:
            joined = " ".join(part.strip() for part in self.parts if part.strip())
            if joined:
                self.done.append(
                    Block(kind=self.kind, text=joined, line=self.line, level=self.level, lines=tuple(self.parts))
                )
        self.kind, self.parts = None, []

    def open(self, kind: str, text: str, line: int, level: int = 0) -> None:
        self.close()
        self.kind, self.line, self.level, self.parts = kind, line, level, [text]

    def put(self, kind: str, text: str, line: int, level: int = 0) -> None:
        self.open(kind, text, line, level)
        self.close()


def _cut(lines: Sequence[str], start: int) -> list[Block]:
    cutter = _Cutter()
    fence: str | None = None
    in_code = False
    listed = False
    for index in range(start, len(lines)):
        line = lines[index].rstrip()
        fence, is_code = _fenced(line, fence)
        if is_code:
            if not in_code:
                cutter.put(CODE, line.strip().lstrip("`~").strip() or "code", index + 1)
            in_code = fence is not None
            continue
        in_code = False
        if not line.strip():
            cutter.close()
            continue
        listed = _line(_QUOTE.sub("", line, count=1) if _QUOTE.match(line) else line, index + 1, cutter, listed=listed)
    cutter.close()
    return cutter.done


def _line(line: str, number: int, cutter: _Cutter, *, listed: bool) -> bool:
    """Take one line of text; return whether a list is open behind it."""
    heading = _HEADING.match(line)
    if heading is not None:
        words = _without_closing(line[heading.end() :].strip())
        cutter.put(HEADING, words, number, len(heading.group(1)))
        return False
    if cutter.kind == PARAGRAPH and _UNDERLINE.match(line) and not listed:
        cutter.kind, cutter.level = HEADING, 1 if "=" in line else 2
        cutter.close()
        return False
    other = _other(line)
    if other is not None:
        _put(other, line, number, cutter)
        return listed and other not in (BREAK, TABLE)
    return _words(line, number, cutter, listed=listed)


def _words(line: str, number: int, cutter: _Cutter, *, listed: bool) -> bool:
    wide = line.expandtabs(4)
    indent = len(wide) - len(wide.lstrip())
    item = _ITEM.match(line)
    if item is not None:
        cutter.open(ITEM, item.group(2) or "", number, indent)
        return True
    if cutter.kind in (ITEM, PARAGRAPH):
        cutter.parts.append(line.strip())
        return listed
    if indent >= 4 and not listed:
        if cutter.code_line != number - 1:
            cutter.put(CODE, line.strip(), number)
        cutter.code_line = number
        return False
    cutter.open(PARAGRAPH, line.strip(), number, indent if listed else 0)
    return listed and indent > 0


def _without_closing(heading: str) -> str:
    bare = heading.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else heading


def _other(line: str) -> str | None:
    """Return what a line is that is neither words nor a heading."""
    kinds = ((BREAK, _BREAK), (TABLE, _TABLE), (IMPORT, _IMPORT), (LINK, _LINK), (HTML, _HTML))
    text = line.strip() if not _TABLE.match(line) else line
    if _ALERT.fullmatch(text):
        return BREAK
    return next((kind for kind, pattern in kinds if pattern.match(text)), None)


def _put(kind: str, line: str, number: int, cutter: _Cutter) -> None:
    """Take a line that is no words; the rows of a table are one block."""
    if kind != TABLE or cutter.kind != TABLE:
        cutter.open(kind, line.strip(), number)
    if kind != TABLE:
        cutter.close()
