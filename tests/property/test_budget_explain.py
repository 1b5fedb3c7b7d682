"""The ranges of limits are those that a try of every single limit gives."""

import math

from hypothesis import given
from hypothesis import strategies as st

from memcli.budget.explain import Survival
from memcli.budget.settings import Constructor, settings_from
from memcli.budget.window import Timeline

RATIOS = st.sampled_from([0.7, 0.5, 1.0, 1.3, 0.0, -0.5, math.nan, math.inf, -math.inf]) | st.floats(0.01, 2)


@st.composite
def sessions(draw, least=0):
    counts = draw(st.lists(st.integers(least, 40) | st.sampled_from([0, 1, 7]), min_size=1, max_size=25))
    users = draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts)))
    ends = sorted({*draw(st.lists(st.integers(1, len(counts)), max_size=6)), len(counts)})
    return counts, users, draw(st.sampled_from([None, ends]))


def tried(session, limit, ratio, flush_size, constructor):
    """Return where the window starts at one limit."""
    counts, users, writes = session
    given = {"token_limit": limit} | ({} if flush_size is None else {"token_flush_size": flush_size})
    size = settings_from(given, constructor=constructor).token_flush_size
    return Timeline(counts, users).flushes(threshold=limit * ratio, flush_size=size, writes=writes).window[0]


def agree(session, ratio, flush_size, constructor, data):
    counts, users, writes = session
    message = data.draw(st.integers(0, len(counts) - 1))
    survival = Survival(counts, users, ratio=ratio, flush_size=flush_size, constructor=constructor, writes=writes)
    bound = min(survival.bound(data.draw(st.integers(1, 50))), 800)

    found = survival.limits(message, bound)
    kept = [limit for one in found for limit in range(one.first, (bound if one.last is None else one.last) + 1)]
    starts = {limit: tried(session, limit, ratio, flush_size, constructor) for limit in range(1, bound + 1)}
    assert kept == [limit for limit, start in starts.items() if message >= start]
    if found and found[-1].last is None:
        further = [bound + step for step in (1, 2, 3, 10, 100, 1000)]
        assert all(message >= tried(session, limit, ratio, flush_size, constructor) for limit in further)


@given(sessions(), RATIOS, st.none() | st.integers(-1, 120), st.sampled_from(Constructor), st.data())
def test_the_ranges_hold_every_limit_that_keeps_the_message_and_no_other(session, ratio, flush_size, constructor, data):
    agree(session, ratio, flush_size, constructor, data)


@given(sessions(least=-9), RATIOS, st.none() | st.integers(-1, 120), st.sampled_from(Constructor), st.data())
def test_estimates_below_zero_change_nothing_of_that(session, ratio, flush_size, constructor, data):
    agree(session, ratio, flush_size, constructor, data)
