"""Numbers as a person writes them for a sweep: `4k,8k`, `0.1:0.9:0.1`, `10,30,7d`; every step is exact."""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Final, TypeVar

from memcli.errors import UsageError
from memcli.record import record

MOST_VALUES: Final = 10_000
_NUMBER: Final = re.compile(
    r"([+-]?[0-9]{1,15}(?:_?[0-9]{1,15})?(?:\.[0-9]{1,15})?|[+-]?\.[0-9]{1,15})([km]?)", re.ASCII | re.IGNORECASE
)
_TIMES: Final = {"k": Decimal(1000), "m": Decimal(1_000_000), "": Decimal(1)}
_DEPTH: Final = re.compile(r"([0-9]{1,9})([dhw]?)", re.ASCII | re.IGNORECASE)
_HOUR: Final = 3_600_000_000
_SPANS: Final = {"h": _HOUR, "d": 24 * _HOUR, "w": 7 * 24 * _HOUR}
Value = TypeVar("Value")


@record
class Depth:
    """How far a plain memory looks back: so many messages, or so many microseconds."""

    text: str
    messages: int | None = None
    micros: int | None = None


def whole_numbers(text: str, *, what: str, least: int = 1) -> tuple[int, ...]:
    """Return the whole numbers of a list such as `4k,8k` or of ranges such as `1k:8k:500`, both ends included.

    Args:
        what: What they are, for the error.
        least: The smallest that is allowed.

    Raises:
        UsageError: A number or a range cannot be read, is not whole, or is too small.
    """
    found = []
    for number in decimals(text, what=what):
        if number != number.to_integral_value() or number < least:
            hint = f"give whole numbers from {least} on, such as 4k,8k,16k"
            raise UsageError(f"{number:f} cannot be a value of {what}", hint=hint)
        found.append(int(number))
    return tuple(found)


def decimals(text: str, *, what: str) -> tuple[Decimal, ...]:
    """Return the numbers of a list such as `0.5,0.7` or of ranges such as `0.1:0.9:0.1`, both ends included.

    Args:
        what: What they are, for the error.

    Raises:
        UsageError: A number or a range cannot be read, or there are too many.
    """

    def spread(item: str) -> Iterator[Decimal]:
        return _range(item, what)

    return _listed(text, what, spread)


def depths(text: str) -> tuple[Depth, ...]:
    """Return the depths of a list such as `1,10,30,7d`: messages, or hours, days or weeks.

    Raises:
        UsageError: One cannot be read, or is nothing.
    """

    def one(item: str) -> Iterator[Depth]:
        match = _DEPTH.fullmatch(item)
        if match is None or not int(match[1]):
            hint = "give numbers of messages, or times such as 12h, 7d or 2w"
            raise UsageError(f"{_shown(item)} is no depth of a memory", hint=hint)
        number, unit = int(match[1]), match[2].lower()
        text = f"{number}{unit}"
        yield Depth(text=text, micros=number * _SPANS[unit]) if unit else Depth(text=text, messages=number)

    return _listed(text, "--depth", one)


def _listed(text: str, what: str, read: Callable[[str], Iterator[Value]]) -> tuple[Value, ...]:
    """Return what all items of a list come to, each once, in their order."""
    found: dict[Value, None] = {}
    for item in text.split(","):
        for value in read(item.strip()):
            found[value] = None
            if len(found) > MOST_VALUES:
                hint = "take a larger step"
                raise UsageError(f"{what} would take more than {MOST_VALUES:,} values", hint=hint)
    return tuple(found)


def _range(item: str, what: str) -> Iterator[Decimal]:
    pieces = [_number(piece.strip(), item, what) for piece in item.split(":")]
    if len(pieces) == 1:
        yield pieces[0]
        return
    if len(pieces) != 3 or pieces[2] <= 0 or pieces[0] > pieces[1]:
        hint = "write first:last:step, such as 0.1:0.9:0.1, with the smaller number first and a step above zero"
        raise UsageError(f"{_shown(item)} is no range that {what} could take", hint=hint)
    first, last, step = pieces
    number = 0
    while first + number * step <= last:
        yield (first + number * step).normalize()
        number += 1


def _number(text: str, item: str, what: str) -> Decimal:
    match = _NUMBER.fullmatch(text)
    if match is None:
        hint = "give numbers such as 4k,8k,16k, or a range such as 0.1:0.9:0.1"
        raise UsageError(f"{_shown(item)} is no number that {what} could take", hint=hint)
    return (Decimal(match[1]) * _TIMES[match[2].lower()]).normalize()


def _shown(item: str) -> str:
    return item if 0 < len(item) <= 40 and item.isprintable() else "what was given"
