import subprocess
import sys
from datetime import UTC, datetime

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st

from memcli.clock import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    WEEK,
    ago,
    day,
    format_instant,
    format_optional,
    lenient_instant,
    moment,
    month,
    now,
    parse_age,
    parse_instant,
)
from memcli.errors import NotAllowed, UsageError

MARCH = 1_772_442_000 * SECOND
FIRST = -62_135_596_800 * SECOND
LAST = 253_402_300_799 * SECOND + 999_999


def test_now_is_what_the_clock_on_the_wall_shows():
    with time_machine.travel(datetime(2026, 3, 2, 9, tzinfo=UTC), tick=False):
        assert now() == MARCH


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-02T09:00:00Z", MARCH),
        ("2026-03-02t09:00:00z", MARCH),
        ("2026-03-02 09:00:00Z", MARCH),
        ("  2026-03-02T09:00:00Z ", MARCH),
        ("2026-03-02T11:00:00+02:00", MARCH),
        ("2026-03-02T03:30:00-05:30", MARCH),
        ("2026-03-02T09:00:00-00:00", MARCH),
        ("2026-03-02T09:00:00.5Z", MARCH + 500_000),
        ("2026-03-02T09:00:00.000001999Z", MARCH + 1),
        ("2026-03-02", MARCH - 9 * HOUR),
        ("2024-02-29", 1_709_164_800 * SECOND),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("0001-01-01", FIRST),
        ("9999-12-31T23:59:59.999999Z", LAST),
    ],
)
def test_a_date_or_a_time_with_its_zone_is_read(text, expected):
    assert parse_instant(text, option="--valid-at") == expected


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "nothing"),
        ("  ", "nothing"),
        ("2026-03-02T09:00:00", "“2026-03-02T09:00:00”"),
        ("2026-02-30", "“2026-02-30”"),
        ("2026-02-29", "“2026-02-29”"),
        ("2026-13-01", "“2026-13-01”"),
        ("2026-03-02T25:00:00Z", "“2026-03-02T25:00:00Z”"),
        ("2026-03-02T24:00:00Z", "“2026-03-02T24:00:00Z”"),
        ("2026-03-02T09:60:00Z", "“2026-03-02T09:60:00Z”"),
        ("2026-03-02T09:00:60Z", "“2026-03-02T09:00:60Z”"),
        ("2026-03-02T09:00:00+25:00", "“2026-03-02T09:00:00\\+25:00”"),
        ("2026-03-02T09:00:00+02:00[Europe/Berlin]", "“2026-03-02T09"),
        ("20260302T090000Z", "“20260302T090000Z”"),
        ("2026-03-02T09Z", "“2026-03-02T09Z”"),
        ("2026-3-2", "“2026-3-2”"),
        ("0000-01-01", "“0000-01-01”"),
        ("0001-01-01T00:00:00+10:00", "“0001-01-01"),
        ("9999-12-31T23:59:59-10:00", "“9999-12-31"),
        ("10000-01-01", "“10000-01-01”"),
        ("02.03.2026", "“02.03.2026”"),
        ("1772442000", "“1772442000”"),
        ("２026-03-02", "“２026-03-02”"),
        ("٢٠٢٦-٠٣-٠٢", "“٢٠٢٦-٠٣-٠٢”"),
        ("yesterday", "“yesterday”"),
        ("\x1b[2J", r"“\\x1b\[2J”"),
        ("x" * 500, "…”"),
    ],
)
def test_any_other_time_is_refused_with_option_value_and_example(text, shown):
    with pytest.raises(UsageError, match=f"--valid-at takes .*was given {shown}|{shown}$") as refused:
        parse_instant(text, option="--valid-at")
    assert refused.value.message.startswith("--valid-at takes a date or a time with its zone")
    assert "2026-03-02T09:00:00Z" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (MARCH, "2026-03-02T09:00:00Z"),
        (MARCH + 1, "2026-03-02T09:00:00.000001Z"),
        (MARCH + 500_000, "2026-03-02T09:00:00.500000Z"),
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (FIRST, "0001-01-01T00:00:00Z"),
        (LAST, "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_an_instant_is_written_in_utc(micros, text):
    assert format_instant(micros) == text
    assert format_optional(micros) == text


def test_an_unknown_instant_stays_unknown():
    assert format_optional(None) is None
    assert format_optional(0) is not None


@pytest.mark.parametrize("micros", [FIRST - 1, LAST + 1, 10**30, -(10**30)])
@pytest.mark.parametrize("write", [format_instant, day, month, moment])
def test_an_instant_outside_the_calendar_is_a_sentence_and_no_crash(write, micros):
    assert write(MARCH)

    with pytest.raises(NotAllowed, match="outside the years 1 to 9999"):
        write(micros)


@given(st.integers(FIRST, LAST))
def test_every_instant_that_is_written_is_read_back(micros):
    assert parse_instant(format_instant(micros), option="--at") == micros
    assert lenient_instant(format_instant(micros)) == (micros, None)


@given(st.text())
def test_no_text_makes_a_time_crash(text):
    micros, raw = lenient_instant(text)

    assert micros is None or raw is None
    assert raw in {None, text}


@pytest.mark.parametrize(
    ("text", "age"),
    [("90s", 90 * SECOND), ("15m", 15 * MINUTE), ("3h", 3 * HOUR), ("2d", 2 * DAY), ("6w", 6 * WEEK), (" 0s ", 0)],
)
def test_an_age_is_a_number_and_a_letter(text, age):
    assert parse_age(text) == age


@pytest.mark.parametrize("text", ["", "d", "2", "2 d", "-2d", "+2d", "1.5h", "2y", "2D", "2d3h", "２d", "999999999w"])
def test_any_other_age_is_refused_with_examples(text):
    with pytest.raises(UsageError, match="an age is a whole number and one of s, m, h, d or w") as refused:
        parse_age(text)
    assert "`15m`" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("distance", "past", "future"),
    [
        (0, "just now", "just now"),
        (MINUTE - 1, "just now", "just now"),
        (MINUTE, "1 m ago", "in 1 m"),
        (2 * MINUTE + 59 * SECOND, "2 m ago", "in 2 m"),
        (HOUR - 1, "59 m ago", "in 59 m"),
        (HOUR, "1 h ago", "in 1 h"),
        (DAY - 1, "23 h ago", "in 23 h"),
        (DAY, "1 d ago", "in 1 d"),
        (3 * DAY, "3 d ago", "in 3 d"),
        (59 * DAY, "59 d ago", "in 59 d"),
        (60 * DAY, "2 mo ago", "in 2 mo"),
        (729 * DAY, "24 mo ago", "in 24 mo"),
        (730 * DAY, "2 y ago", "in 2 y"),
    ],
)
def test_how_long_ago_is_told_in_the_largest_fitting_unit(distance, past, future):
    assert ago(MARCH - distance, now=MARCH) == past
    assert ago(MARCH + distance, now=MARCH) == future


def test_days_months_and_minutes_are_told_in_utc():
    late = parse_instant("2026-03-12T09:14:59Z", option="--at")

    assert (day(late), month(late), moment(late)) == ("12 Mar 2026", "Mar 26", "12 Mar 2026 09:14")
    assert (day(FIRST), month(FIRST), moment(FIRST)) == ("1 Jan 1", "Jan 01", "1 Jan 1 00:00")


@pytest.mark.parametrize(
    "value",
    [
        1_772_442_000,
        1_772_442_000_000,
        1_772_442_000_000_000,
        1_772_442_000_000_000_000,
        1_772_442_000.0,
        1.772442e12,
        "1772442000",
        "1772442000000",
        " 1772442000.000 ",
        "2026-03-02T09:00:00Z",
        "2026-03-02T09:00:00.000000000000Z",
        "2026-03-02 09:00:00+00:00",
        "2026-03-02 09:00:00 Z",
        "2026-03-02T11:00:00+0200",
        "2026-03-02T11:00+02",
    ],
)
def test_a_foreign_time_is_known_by_its_magnitude_or_its_zone(value):
    assert lenient_instant(value) == (MARCH, None)


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        (1_772_442_000.123456, MARCH + 123_456),
        ("1772442000.123456", MARCH + 123_456),
        (1_772_442_000_123, MARCH + 123_000),
        (1_772_442_000_123_456_789, MARCH + 123_456),
        ("2026-03-02T09:00:00,25Z", MARCH + 250_000),
    ],
)
def test_the_fraction_of_a_foreign_time_is_kept(value, micros):
    assert lenient_instant(value) == (micros, None)


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (None, None),
        ("", None),
        ("  ", None),
        (True, "true"),
        (0, "0"),
        (-1_772_442_000, "-1772442000"),
        (42, "42"),
        (915_148_800, "915148800"),
        (4_102_444_800, "4102444800"),
        (20_260_302, "20260302"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (1e300, "1e+300"),
        ([1], "[1]"),
        ("20260302", "20260302"),
        ("2026-03-02", "2026-03-02"),
        ("2026-03-02T09:00:00", "2026-03-02T09:00:00"),
        ("2026-02-30T09:00:00Z", "2026-02-30T09:00:00Z"),
        ("2023/05/25 (Thu) 20:21", "2023/05/25 (Thu) 20:21"),
        ("١٧٧٢٤٤٢٠٠٠", "١٧٧٢٤٤٢٠٠٠"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_what_is_no_instant_is_kept_as_it_stood(value, raw):
    assert lenient_instant(value) == (None, raw)


def test_a_number_too_long_for_decimal_text_is_no_time_and_no_crash():
    micros, raw = lenient_instant(10**5000)

    assert micros is None
    assert raw == hex(10**5000)


def test_telling_a_time_does_not_load_what_reads_one():
    script = "import sys, memcli.clock as c; c.moment(0); c.format_instant(0); print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert "memcli.clock" in loaded
    assert "whenever" not in loaded
