"""The lines a screen is made of: laid out for a width in cells, styled by name, free of control characters.

A screen is data. It knows no terminal and no colour, so the same screen is printed, piped, paged and tested.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from memcli.text import cells, shorten, visible

Span: TypeAlias = tuple[str, str]
"""A text and the name of its style; an empty name is plain."""

Line: TypeAlias = tuple[Span, ...]

Part: TypeAlias = str | Span
"""What a caller puts on a line; the text may be anybody's, `visible` is applied here."""

JOINER = "\u200d"
"""Makes one emoji of two."""

NARROWEST = 20
"""Cells below which a screen is laid out as if it had these; no terminal is narrower in earnest."""

ROOM = 24
"""Cells of a table's text below which it gives up its spare columns."""

LEAST = 12
"""Cells of a table's text below which the text goes on lines of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """Lines no wider than the width they were laid out for."""

    lines: tuple[Line, ...]

    def __str__(self) -> str:
        return "".join(f"{plain(line)}\n" for line in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """How one column of a table takes its width.

    Args:
        right: Numbers stand at the right.
        flexible: Takes the room the others leave, and is shortened to it.
        at_most: Cells after which the text is shortened; None where it is an id or a number, and never is.
        spare: Goes first where room is short, the highest number before the others; 0 stays.
    """

    head: str
    right: bool = False
    flexible: bool = False
    at_most: int | None = None
    spare: int = 0


def plain(line: Line) -> str:
    """Return the line without its styles."""
    return "".join(text for text, _ in line)


def clip(text: str, width: int) -> str:
    """Return the text on one line of at most that many cells, for texts that would crowd out the rest."""
    return shorten(visible(text), max(width, 1))


def _span(part: Part) -> Span:
    text, style = (part, "") if isinstance(part, str) else part
    return visible(text), style


def _width(line: Iterable[Span]) -> int:
    return cells("".join(text for text, _ in line))


def _pad(span: Span, width: int, *, right: bool) -> Line:
    gap = (" " * max(0, width - cells(span[0])), "")
    return (gap, span) if right else (span, gap)


def _stripped(line: Line) -> Line:
    """Return the line without spaces at its end, so that copying a screen copies no padding."""
    spans = list(line)
    while spans:
        text, style = spans.pop()
        if kept := text.rstrip(" "):
            return (*spans, (kept, style))
    return ()


def _clusters(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield characters with what combines with them, so that no break parts them."""
    held = style = ""
    for text, name in spans:
        for character in text:
            last = held[-1:]
            joins = held and (last == JOINER or cells(character) == 0 or cells(last + character) <= cells(last))
            if held and not joins:
                yield held, style
            held, style = (held + character, style) if joins else (character, name)
    if held:
        yield held, style


def wrap(spans: Sequence[Span], width: int, *, hang: int = 0) -> Iterator[Line]:
    """Yield lines of at most that many cells, broken at spaces, or inside a word that is wider than a line.

    Args:
        hang: Cells that every line but the first is indented by.
    """
    if _width(spans) <= width:
        yield _stripped(tuple(spans))
        return
    hang = min(hang, width // 2)
    line: list[Span] = []
    used = 0
    for is_space, found in groupby(_clusters(spans), key=lambda cluster: cluster[0] == " "):
        word = list(found)
        if used + _width(word) > width and not is_space and used > hang and plain(tuple(line)).strip():
            yield _joined(line)
            line, used = [(" " * hang, "")], hang
        for text, style in word:
            size = cells(text)
            if used + size > width:
                if is_space:
                    break
                yield _joined(line)
                line, used = [(" " * hang, "")], hang
            line.append((text, style))
            used += size
    yield _joined(line)


def _joined(line: Iterable[Span]) -> Line:
    """Return the line with neighbours of one style made one span."""
    return _stripped(
        tuple(("".join(text for text, _ in spans), style) for style, spans in groupby(line, key=lambda span: span[1]))
    )


class Page:
    """Collects lines for a width. Every text that is put on it is made visible here."""

    def __init__(self, width: int) -> None:
        self.width = max(width, NARROWEST)
        self._lines: list[Line] = []

    def screen(self) -> Screen:
        """Return what was put on the page."""
        return Screen(lines=tuple(self._lines))

    def blank(self) -> None:
        """Add an empty line, unless one stands there already or nothing does."""
        if self._lines and self._lines[-1]:
            self._lines.append(())

    def line(self, *parts: Part, hang: int = 0) -> None:
        """Add the parts as one line, wrapped where it is too long, later lines indented by `hang` cells."""
        self._lines.extend(wrap([_span(part) for part in parts], self.width, hang=hang))

    def heading(self, text: str) -> None:
        """Add a heading, set off from what stands above."""
        self.blank()
        self.line((text, "heading"))

    def sides(self, left: Sequence[Part], right: Part) -> None:
        """Add one line with a text at each side, or two lines where both do not fit on one."""
        spans, end = [_span(part) for part in left], _span(right)
        gap = self.width - _width(spans) - cells(end[0])
        if gap >= 2:
            self._lines.append((*spans, (" " * gap, ""), end))
            return
        self._lines.extend(wrap(spans, self.width))
        self._lines.extend(wrap([("  ", ""), end], self.width, hang=2))

    def flow(self, items: Iterable[Sequence[Part]], *, indent: int = 0, gap: str = "  ") -> None:
        """Add the items one after the other, with a line break only between two of them."""
        line: list[Span] = [(" " * indent, "")]
        empty = True
        for item in items:
            spans = [_span(part) for part in item]
            if not empty and _width(line) + cells(gap) + _width(spans) > self.width:
                self._lines.extend(wrap(line, self.width, hang=indent))
                line, empty = [(" " * indent, "")], True
            line = [*line, *([] if empty else [(gap, "dim")]), *spans]
            empty = False
        self._lines.extend(wrap(line, self.width, hang=indent))

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[Part]], *, heads: bool = True) -> None:
        """Add one line for each row, under a line of heads.

        A column that is empty in every row is left out, and so are spare ones where room is short. If even that
        leaves too little, each flexible text goes on lines of its own under its row.
        """
        spans = [[_span(cell) for cell in row] for row in rows]
        if not spans:
            return
        kept = [at for at in range(len(columns)) if any(row[at][0] for row in spans)]
        widths = {at: self._needs(columns[at], [row[at] for row in spans], heads=heads) for at in kept}
        room = self._room(columns, widths)
        need = max((widths[at] for at in widths if columns[at].flexible), default=0)
        while room < min(ROOM, need) and (spare := [at for at in widths if columns[at].spare]):
            del widths[max(spare, key=lambda at: columns[at].spare)]
            room = self._room(columns, widths)
        if room < min(LEAST, need):
            self._stack(columns, widths, spans)
            return
        _share(room, columns, widths)
        if heads:
            self._row(columns, widths, [(column.head, "heading") for column in columns])
        for row in spans:
            self._row(columns, widths, row)

    def _needs(self, column: Column, found: Sequence[Span], *, heads: bool) -> int:
        widest = max(cells(text) for text, _ in found)
        limit = widest if column.at_most is None else min(widest, column.at_most)
        return max(limit, cells(column.head)) if heads else limit

    def _room(self, columns: Sequence[Column], widths: dict[int, int]) -> int:
        """Return the cells left for the flexible columns, when each column is set off by two."""
        fixed = sum(width for at, width in widths.items() if not columns[at].flexible)
        return self.width - fixed - 2 * len(widths)

    def _row(self, columns: Sequence[Column], widths: dict[int, int], row: Sequence[Span]) -> None:
        line: list[Span] = []
        for at, width in widths.items():
            text, style = row[at]
            cut = columns[at].flexible or columns[at].at_most is not None
            shown = (shorten(text, width) if cut else text, style)
            line += [("  ", ""), *_pad(shown, width, right=columns[at].right)]
        self._lines.extend(wrap(_stripped(tuple(line)), self.width, hang=4))

    def _stack(self, columns: Sequence[Column], widths: dict[int, int], rows: Sequence[Sequence[Span]]) -> None:
        flexible = [at for at in widths if columns[at].flexible]
        fixed = {at: width for at, width in widths.items() if at not in flexible}
        fits = sum(fixed.values()) + 2 * len(fixed) <= self.width
        for row in rows:
            if fits:
                self._row(columns, fixed, row)
            else:
                self.flow([[row[at]] for at in fixed if row[at][0]], indent=2)
            for at in flexible:
                if row[at][0]:
                    self._lines.extend(wrap([("    ", ""), row[at]], self.width, hang=4))


def _share(room: int, columns: Sequence[Column], widths: dict[int, int]) -> None:
    """Give each flexible column what it needs, and where that is too much an even part of what is left."""
    flexible = sorted((at for at in widths if columns[at].flexible), key=lambda at: widths[at])
    for count, at in enumerate(flexible):
        widths[at] = min(widths[at], room // (len(flexible) - count))
        room -= widths[at]
