"""Instants and ages: from what people and files write to whole microseconds, and back to what people read."""

import re
import time
from datetime import UTC, datetime, timedelta

from memcli.errors import NotAllowed, UsageError
from memcli.facts import Micros
from memcli.text import shorten, visible

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTH = 30 * DAY
_YEAR = 365 * DAY
_UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": WEEK}
_EXAMPLES = "`2026-03-02` or `2026-03-02T09:00:00Z`"
_LONGEST_AGE = 9999 * _YEAR
_SHOWN_WIDTH = 60

# Patterns stay texts until they are used: compiling them is 1 ms of every start.
# whenever reads more of ISO 8601 than people expect of an option (`20260302T09Z`, a leap second), so the shape is
# settled here and the calendar there.
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_INSTANT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-5][0-9](?:\.[0-9]{1,9})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
_AGE = r"([0-9]{1,9})([smhdw])"

# A foreign time has a zone or it is none. Some tools leave out seconds or the colon of the offset.
_FOREIGN = (
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:[.,]([0-9]+))?"
    r" ?([Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)"
)
_EPOCH_NUMBER = r"([0-9]{1,20})(?:\.([0-9]+))?"
_PLAUSIBLE = range(946_684_800 * SECOND, 4_102_444_800 * SECOND)
"""2000 to 2100: a number outside, in whatever unit, is no time."""


def now() -> Micros:
    """Return the instant that the wall clock shows."""
    return time.time_ns() // 1000


def parse_instant(text: str, *, option: str) -> Micros:
    """Return the instant of an RFC 3339 time with a zone, or of midnight UTC of a date.

    Args:
        option: The option as it is typed, for the sentence.

    Raises:
        UsageError: It is neither, has no zone, or is not in the calendar.
    """
    given = text.strip()
    if re.fullmatch(_DATE, given):
        given += "T00:00:00Z"
    parsed = _micros(given) if re.fullmatch(_INSTANT, given) else None
    if parsed is None:
        shown = f"“{shorten(visible(text), _SHOWN_WIDTH)}”" if text.strip() else "nothing"
        raise UsageError(
            f"{option} takes a date or a time with its zone, and was given {shown}",
            hint=f"write it like {_EXAMPLES}",
        )
    return parsed


def _micros(text: str) -> Micros | None:
    from whenever import Instant  # start-up: only who is given a time reads one

    try:
        return Instant.parse_iso(text).timestamp(unit="nanosecond") // 1000
    except ValueError:
        return None


def _utc(moment: Micros) -> datetime:
    # The standard library writes times: sqlite3 has loaded it already, and a plain `mem show` reads none.
    try:
        return _EPOCH + timedelta(microseconds=moment)
    except OverflowError:
        raise NotAllowed(
            f"{moment} microseconds is a time outside the years 1 to 9999", hint=f"use a time like {_EXAMPLES}"
        ) from None


def format_instant(moment: Micros) -> str:
    """Return the instant as `2026-03-02T09:00:00Z`, with six more digits only where one is not zero.

    Raises:
        NotAllowed: It lies outside the years 1 to 9999.
    """
    return _utc(moment).isoformat().removesuffix("+00:00") + "Z"


def format_optional(moment: Micros | None) -> str | None:
    """Return `format_instant` of a moment, and None of None.

    Raises:
        NotAllowed: It lies outside the years 1 to 9999.
    """
    return None if moment is None else format_instant(moment)


def parse_age(text: str) -> int:
    """Return the microseconds of an age such as `90s`, `15m`, `3h`, `2d` or `6w`.

    Raises:
        UsageError: It is not one whole number and one of these letters, or is longer than the calendar.
    """
    found = re.fullmatch(_AGE, text.strip())
    age = int(found.group(1)) * _UNITS[found.group(2)] if found else None
    if age is None or age > _LONGEST_AGE:
        shown = f"“{shorten(visible(text), _SHOWN_WIDTH)}”" if text.strip() else "nothing"
        raise UsageError(
            f"an age is a whole number and one of s, m, h, d or w, not {shown}",
            hint="write it like `90s`, `15m`, `3h`, `2d` or `6w`",
        )
    return age


def ago(moment: Micros, *, now: Micros) -> str:
    """Return how far a moment lies from now: `3 d ago`, `just now` within a minute, `in 2 d`."""
    distance = abs(now - moment)
    if distance < MINUTE:
        return "just now"
    steps = ((HOUR, MINUTE, "m"), (DAY, HOUR, "h"), (2 * _MONTH, DAY, "d"), (2 * _YEAR, _MONTH, "mo"))
    unit, word = next(((unit, word) for below, unit, word in steps if distance < below), (_YEAR, "y"))
    count = f"{distance // unit} {word}"
    return f"{count} ago" if moment < now else f"in {count}"


def day(moment: Micros) -> str:
    """Return the day in UTC, like `12 Mar 2026`.

    Raises:
        NotAllowed: It lies outside the years 1 to 9999.
    """
    at = _utc(moment)
    return f"{at.day} {_MONTHS[at.month - 1]} {at.year}"


def month(moment: Micros) -> str:
    """Return the month in UTC, like `Mar 26`.

    Raises:
        NotAllowed: It lies outside the years 1 to 9999.
    """
    at = _utc(moment)
    return f"{_MONTHS[at.month - 1]} {at.year % 100:02d}"


def moment(moment: Micros) -> str:
    """Return the minute in UTC, like `12 Mar 2026 09:14`.

    Raises:
        NotAllowed: It lies outside the years 1 to 9999.
    """
    at = _utc(moment)
    return f"{day(moment)} {at.hour:02d}:{at.minute:02d}"


def lenient_instant(value: object) -> tuple[Micros | None, str | None]:
    """Return the instant that a foreign file means, or None and what stood there, as text.

    Numbers are seconds, milliseconds, microseconds or nanoseconds of the epoch, whichever falls into this century.
    Text without a zone is no instant: whose noon it was is unknown.
    """
    if value is None or value == "":
        return None, None
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None, str(value).lower() if isinstance(value, bool) else str(value)
    # An integer of thousands of digits has no decimal text that Python would write.
    raw = f"{value:#x}" if isinstance(value, int) and abs(value) > 10**40 else str(value)
    text = raw.strip()
    number = f"{value:.7f}" if isinstance(value, float) else text
    epoch = re.fullmatch(_EPOCH_NUMBER, number)
    found = _epoch(epoch.group(1), epoch.group(2) or "") if epoch else _foreign(text)
    return (found, None) if found is not None else (None, raw if text else None)


def _epoch(whole: str, fraction: str) -> Micros | None:
    """Return the instant of a number by its magnitude; the ranges of the units do not meet."""
    nanos = int(whole + (fraction + "0" * 9)[:9])
    for unit in (1, 1_000, 1_000_000, 1_000_000_000):
        micros = nanos // (1_000 * unit)
        if micros in _PLAUSIBLE:
            return micros
    return None


def _foreign(text: str) -> Micros | None:
    found = re.fullmatch(_FOREIGN, text)
    if not found:
        return None
    date, hour, fraction, zone = found.groups()
    fraction = f".{fraction[:9]}" if fraction else ""
    return _micros(f"{date}T{hour}{fraction}{zone}")
