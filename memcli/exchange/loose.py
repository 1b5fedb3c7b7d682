"""JSON as it is really met: records glued together, cut, broken by line feeds or NULs, with NaN in them.

Everything here says what it could not take; nothing is guessed, and `eval` is never near.
"""

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from memcli.exchange.raw import Line
from memcli.facts import Json
from memcli.record import record

_SPACE = " \t\r\n\ufeff"
_AROUND = _SPACE + "\0"
_RESUMES = 64
_JOINED_LINES = 50
_JOINED_CHARACTERS = 16 * 1024 * 1024


@record
class Prose:
    """The whole text of a file that is no JSON, for readers of text formats."""

    text: str


@record
class Record:
    """One value of a file, with its 1-based line; None where the file is one document."""

    line: int | None
    value: Json | Prose


@record
class Note:
    """What to tell of a line; `lost` where something of it could not be taken."""

    line: int | None
    message: str
    lost: bool


@record
class Parsed:
    """What one piece of text holds.

    Args:
        starts: Where each value begins, in characters.
        problem: The first thing that could not be taken, with its column; None where all was.
        at: Where that problem is, in characters.
        open_ended: The text ends inside a string, as a record broken by a line feed does.
        not_finite: NaN or Infinity stood there, and became null.
    """

    values: tuple[Json, ...]
    starts: tuple[int, ...]
    problem: str | None
    at: int
    open_ended: bool
    not_finite: bool


class _Decoder:
    """A JSON decoder that takes control characters in strings and remembers numbers that JSON does not have."""

    def __init__(self) -> None:
        self.not_finite = False
        self._decoder = json.JSONDecoder(strict=False, parse_constant=self._constant, parse_float=self._float)

    def decode(self, text: str, start: int) -> tuple[Json, int]:
        value: tuple[Any, int] = self._decoder.raw_decode(text, start)
        return value

    def _constant(self, _name: str) -> None:
        self.not_finite = True

    def _float(self, digits: str) -> float | None:
        number = float(digits)
        if math.isfinite(number):
            return number
        self.not_finite = True
        return None


def parse(text: str, *, heads: frozenset[str] = frozenset()) -> Parsed:
    """Return every value in the text, glued ones too; a string that holds JSON is parsed again, twice at most.

    Args:
        heads: First keys of records seen before; a whole record behind a cut one is found by them.
    """
    decoder = _Decoder()
    values: list[Json] = []
    starts: list[int] = []
    problem: str | None = None
    at = 0
    open_ended = False
    resumes = _RESUMES
    position = _skip(text, 0)
    while position < len(text):
        try:
            value, end = decoder.decode(text, position)
        except (ValueError, RecursionError) as error:
            if problem is None:
                problem, at, open_ended = _problem(text, position, error)
            following, resumes = _resume(text, position + 1, heads, resumes)
            if following is None:
                break
            open_ended, position = False, following
            continue
        values.append(_unwrapped(value, decoder))
        starts.append(position)
        position = _skip(text, end)
    return Parsed(
        values=tuple(values),
        starts=tuple(starts),
        problem=problem,
        at=at,
        open_ended=open_ended,
        not_finite=decoder.not_finite,
    )


def records(source: Iterable[Line]) -> Iterator[Record | Note]:
    """Yield the records of a file of lines, and a note for each line that could not be taken whole.

    Blank lines are silent. A record that a bare line feed broke is put together again.
    """
    heads: frozenset[str] = frozenset()
    pending: Line | None = None
    for line in source:
        text = line.text.strip(_AROUND)
        if not text:
            yield from _blank(line)
            continue
        if pending is None and (value := _plain(text, line.text)) is not None:
            heads |= _first_key(value, heads)
            yield Record(line=line.number, value=value)
            continue
        parsed = parse(text, heads=heads)
        if pending is not None:
            longer = Line(number=pending.number, text=f"{pending.text}\n{line.text}")
            whole = parse(longer.text, heads=heads) if parsed.problem else None
            if whole is not None and not whole.problem:
                yield from _taken(longer, whole)
                pending = None
                continue
            if whole is not None and _may_grow(longer, whole):
                pending = longer
                continue
            yield from _taken(pending, parse(pending.text, heads=heads))
            pending = None
        if _may_grow(line, parsed):
            pending = line
            continue
        for value in parsed.values:
            heads |= _first_key(value, heads)
        yield from _taken(line, parsed)
    if pending is not None:
        yield from _taken(pending, parse(pending.text, heads=heads))


def _blank(line: Line) -> Iterator[Note]:
    if "\0" in line.text:
        yield Note(line=line.number, message="skipped a line that holds nothing but NUL bytes", lost=True)


def _refused(name: str) -> None:
    raise ValueError(name)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(digits)
    return number


_STRICT = json.JSONDecoder(strict=False, parse_constant=_refused, parse_float=_finite)


def _plain(text: str, line: str) -> Json | None:
    """Return the object of a line that holds one whole object and nothing odd, as nearly every line does."""
    if text[0] != "{" or line[0] == "\0" or line[-1] == "\0":
        return None
    try:
        value, end = _STRICT.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    found: Json = value
    return found if end == len(text) else None


def stream(text: str, parsed: Parsed) -> Iterator[Record | Note]:
    """Yield the values of a text parsed as a whole; a single one has no line of its own."""
    alone = len(parsed.values) == 1
    for value, start in zip(parsed.values, parsed.starts, strict=True):
        yield Record(line=None if alone else place(text, start)[0], value=value)
    if parsed.not_finite:
        yield Note(line=None, message=_NOT_FINITE, lost=False)
    if parsed.problem is not None:
        yield Note(line=place(text, parsed.at)[0], message=f"skipped from here on: {parsed.problem}", lost=True)


def place(text: str, at: int) -> tuple[int, int]:
    """Return the 1-based line and column of a position in the text."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


_NOT_FINITE = "NaN or Infinity is no JSON; taken as null"


def _taken(line: Line, parsed: Parsed) -> Iterator[Record | Note]:
    for value in parsed.values:
        yield Record(line=line.number, value=value)
    if parsed.not_finite:
        yield Note(line=line.number, message=_NOT_FINITE, lost=False)
    if parsed.problem is not None:
        yield Note(line=line.number, message=f"skipped what is not whole: {parsed.problem}", lost=True)
    elif line.text.startswith("\0") or line.text.endswith("\0"):
        yield Note(line=line.number, message="skipped NUL bytes around a record", lost=False)


def _may_grow(line: Line, parsed: Parsed) -> bool:
    """Return whether the text may be a record that a bare line feed broke inside a string."""
    within = line.text.count("\n") < _JOINED_LINES and len(line.text) < _JOINED_CHARACTERS
    return parsed.open_ended and not parsed.values and within


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _problem(text: str, position: int, error: Exception) -> tuple[str, int, bool]:
    if isinstance(error, json.JSONDecodeError):
        line, column = place(text, error.pos)
        where = f"column {column}" if line == 1 else f"line {line}, column {column}"
        what = error.msg[:1].lower() + error.msg[1:]
        what = what.removesuffix(" starting at")
        return f"{what} at {where}", error.pos, error.msg.startswith("Unterminated string")
    if isinstance(error, RecursionError):
        return "it is nested too deeply", position, False
    return "a number with too many digits", position, False


def _resume(text: str, position: int, heads: frozenset[str], resumes: int) -> tuple[int | None, int]:
    """Return where a record that begins like the others stands behind a cut one, and how many looks are left."""
    starts = [f'{{"{head}"' for head in heads]
    while resumes > 0:
        found = [at for start in starts if (at := text.find(start, position)) >= 0]
        if not found:
            return None, resumes
        resumes -= 1
        position = min(found)
        try:
            _Decoder().decode(text, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        return position, resumes
    return None, resumes


_NONE: frozenset[str] = frozenset()


def _first_key(value: Json, known: frozenset[str]) -> frozenset[str]:
    """Return the first key of a record where it is not known yet."""
    head = _head(value)
    return _NONE if head is None or head in known else frozenset((head,))


def _head(value: Json) -> str | None:
    head = next(iter(value), None) if isinstance(value, dict) else None
    # A key that JSON would write with a backslash cannot be looked for as it stands.
    return head if head is not None and head.isidentifier() else None


def _unwrapped(value: Json, decoder: _Decoder) -> Json:
    for _ in range(2):
        if not isinstance(value, str) or value.lstrip(_SPACE)[:1] not in ("{", "[", '"'):
            return value
        try:
            inner, end = decoder.decode(value, _skip(value, 0))
        except (ValueError, RecursionError):
            return value
        if _skip(value, end) < len(value):
            return value
        value = inner
    return value
