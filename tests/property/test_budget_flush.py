"""The flush that is searched for in running sums does what the library's loops do, message by message."""

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from memcli.budget.settings import Settings
from memcli.budget.simulate import flushes
from memcli.budget.window import Timeline

Message = tuple[int, int, bool]
"""Its place, its tokens, and whether it is from the user."""


def popped(queue: list[Message], flush_size: int) -> list[Message]:
    """Return the batch that the loops take from the front of the queue, leaving the rest in it."""
    batch: list[Message] = []
    taken = 0
    while taken < flush_size and len(queue) > 1:
        taken += queue[0][1]
        batch.append(queue.pop(0))
    while queue and not queue[0][2] and len(queue) > 1:
        batch.append(queue.pop(0))
    if len(queue) == 1 and not queue[0][2] and batch:
        # Only an answer is left: the last turn is put together again, with all that came after it.
        batch.append(queue.pop(0))
        starts = [at for at, message in enumerate(batch) if message[2]]
        if starts:
            queue[:0] = batch[starts[-1] :]
            del batch[starts[-1] :]
    return batch


def looped(
    messages: Sequence[Message], ends: Sequence[int], threshold: float, flush_size: int
) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Return the flushes and the places left in the window, by the two nested loops as they are described."""
    found = []
    queue: list[Message] = []
    written = 0
    for end in ends:
        queue += messages[written:end]
        written = end
        while sum(message[1] for message in queue) - threshold > 0 and len(queue) > 1:
            batch = popped(queue, flush_size)
            if not batch:
                break
            found.append((end, batch[0][0], batch[-1][0] + 1))
    return found, [message[0] for message in queue]


thresholds = (
    st.integers(-5, 120).map(float) | st.floats(0, 120) | st.sampled_from([math.inf, -math.inf, math.nan, 90 * 0.7])
)


@st.composite
def sessions(draw, least=0):
    counts = draw(st.lists(st.integers(least, 40) | st.sampled_from([0, 1, 63]), max_size=40))
    users = draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts)))
    ends = sorted({*draw(st.lists(st.integers(1, max(1, len(counts))), max_size=10)), len(counts)} - {0})
    return counts, users, draw(st.sampled_from([list(range(1, len(counts) + 1)), ends])) if counts else []


def of(threshold: float, flush_size: int) -> Settings:
    """Return settings with exactly that threshold."""
    return Settings(token_limit=1, token_flush_size=flush_size, chat_history_token_ratio=threshold)


@given(sessions(), thresholds, st.integers(-1, 80))
def test_leaping_over_writes_gives_the_flushes_of_the_loops(session, threshold, flush_size):
    counts, users, ends = session
    messages = list(zip(range(len(counts)), counts, users, strict=True))

    found = flushes(counts, users, of(threshold, flush_size), writes=ends)
    expected, window = looped(messages, ends, threshold, flush_size)
    assert list(found.flushes) == expected
    assert list(range(*found.window)) == window


@given(sessions(least=-9), thresholds, st.integers(-1, 80))
def test_estimates_below_zero_change_nothing_of_that(session, threshold, flush_size):
    counts, users, ends = session
    messages = list(zip(range(len(counts)), counts, users, strict=True))

    found = flushes(counts, users, of(threshold, flush_size), writes=ends)
    expected, window = looped(messages, ends, threshold, flush_size)
    assert list(found.flushes) == expected
    assert list(range(*found.window)) == window


@given(sessions(), thresholds, st.integers(-1, 80))
def test_a_timeline_that_grows_cuts_like_one_that_is_whole(session, threshold, flush_size):
    counts, users, _ = session
    timeline = Timeline()
    found = []
    start = 0
    for stop, (tokens, is_user) in enumerate(zip(counts, users, strict=True), start=1):
        timeline.append(tokens, is_user=is_user)
        for cut in timeline.cuts(start, stop, threshold=threshold, flush_size=flush_size):
            found.append((stop, start, cut))
            start = cut

    assert tuple(found) == flushes(counts, users, of(threshold, flush_size)).flushes
    assert timeline.tokens(0, len(timeline)) == sum(counts)


@given(sessions(), thresholds, st.integers(1, 80))
def test_what_is_left_is_small_enough_or_one_message_or_one_turn(session, threshold, flush_size):
    counts, users, ends = session

    start, stop = flushes(counts, users, of(threshold, flush_size), writes=ends).window
    one_turn = users[start:stop] == [True] + [False] * (stop - start - 1)
    assert not sum(counts[start:stop]) > threshold or stop - start <= 1 or one_turn


@given(sessions(), thresholds, st.integers(-1, 80))
def test_what_leaves_leaves_in_order_and_never_twice(session, threshold, flush_size):
    counts, users, ends = session

    found = flushes(counts, users, of(threshold, flush_size), writes=ends)
    edges = [0, *(stop for _, _, stop in found.flushes)]
    assert [start for _, start, _ in found.flushes] == edges[:-1]
    assert found.window[0] == edges[-1]
    assert all(cut == at or users[cut] for at, _, cut in found.flushes)
