"""One message's whole life under a policy, and every token limit at which it would still be there at the end.

Whether a message survives is not monotone in the limit: a larger one may let the window grow until one big batch
takes the message along. So the ranges are found exactly, by going from each limit to the next at which anything
could change.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from memcli.budget.outcome import Fate, Flushed, Simulation
from memcli.budget.presence import ends_of, turn_after, write_of
from memcli.budget.settings import (
    DEFAULT_FLUSH_SIZE,
    DEFAULT_RATIO,
    LARGEST_LIMIT,
    Constructor,
    Settings,
    settings_from,
)
from memcli.budget.window import Flush, Flushes, Timeline
from memcli.errors import NotFound
from memcli.facts import Json
from memcli.record import record


@record
class Range:
    """Token limits from `first` to `last`, both included; None means every larger one as well."""

    first: int
    last: int | None


@record
class Life:
    """What became of one message, from the write that brought it to the prompt at the end.

    Args:
        turn: The 0-based user turn it was said in.
        written: The 0-based write that brought it and after which it was first counted.
        left: The flush that took it, or None.
        limits: Every range of token limits at which it is in the window at the end; None where the policy has no
            such ranges.
        looked_to: The largest limit that was looked at; a range that is open goes on beyond it.
    """

    fate: Fate
    turn: int
    written: int
    left: Flushed | None
    limits: tuple[Range, ...] | None
    looked_to: int | None


def message_of(simulation: Simulation, name: str) -> int:
    """Return the place of the message with that id, or with that number where no id is so.

    Raises:
        NotFound: There is none.
    """
    for fate in simulation.fates:
        if fate.id == name:
            return fate.index
    if name.isascii() and name.isdigit() and int(name) < len(simulation.fates):
        return int(name)
    last = len(simulation.fates) - 1
    hint = f"give an id of the transcript, or a number from 0 to {last}" if last >= 0 else "the transcript is empty"
    raise NotFound(f"no message {name} is in the transcript", hint=hint)


def explain(simulation: Simulation, message: int, *, writes: Sequence[int] | None = None) -> Life:
    """Return the life of a message.

    Args:
        message: Its place in the transcript.
        writes: How many messages had been written after each write, ascending; None goes by the steps of the run.
    """
    fate = simulation.fates[message]
    ends = ends_of(simulation) if writes is None else writes
    limits, looked_to = _limits(simulation, message, ends)
    return Life(
        fate=fate,
        turn=turn_after(message + 1, simulation.fates),
        written=write_of(message, ends),
        left=None if fate.flush is None else simulation.flushes[fate.flush],
        limits=limits,
        looked_to=looked_to,
    )


def _limits(simulation: Simulation, message: int, ends: Sequence[int]) -> tuple[tuple[Range, ...] | None, int | None]:
    """Return the ranges and how far was looked, for the policy that has them."""
    if simulation.policy != "llamaindex":
        return None, None
    given, effective = simulation.settings, simulation.effective
    direct = given.get("constructor") == Constructor.DIRECT.value
    size = given.get("token_flush_size")
    survival = Survival(
        [fate.thought for fate in simulation.fates],
        [fate.role == "user" for fate in simulation.fates],
        ratio=_number(effective.get("chat_history_token_ratio", DEFAULT_RATIO)),
        flush_size=None if size is None else int(_number(size)),
        constructor=Constructor.DIRECT if direct else Constructor.FROM_DEFAULTS,
        writes=ends,
    )
    bound = survival.bound(int(_number(effective["token_limit"])))
    return survival.limits(message, bound), bound


def _number(value: Json) -> float:
    """Return the number of a setting; those that JSON lacks are spelled out."""
    return float(value) if isinstance(value, (int, float, str)) else math.nan


class Survival:
    """A transcript and all of its settings but the limit, asked who is in the window at the end.

    Args:
        counts: What each message counts as.
        flush_size: As it was asked for, before the constructor clamps it; None where none was.
        writes: How many messages had been written after each write, ascending; None means one at a time.
    """

    __slots__ = ("_falls", "_flush_size", "_ratio", "_steady_from", "_timeline", "_total", "_users", "_writes")

    def __init__(
        self,
        counts: Sequence[int],
        user_flags: Sequence[bool],
        *,
        ratio: float = DEFAULT_RATIO,
        flush_size: int | None = DEFAULT_FLUSH_SIZE,
        constructor: Constructor = Constructor.FROM_DEFAULTS,
        writes: Sequence[int] | None = None,
    ) -> None:
        self._timeline = Timeline(counts, user_flags)
        self._total = sum(count for count in counts if count > 0)
        self._falls = any(count < 0 for count in counts)
        self._users = _next_users(user_flags)
        self._ratio = ratio
        self._writes = writes
        if flush_size is None and constructor is Constructor.FROM_DEFAULTS:
            flush_size = DEFAULT_FLUSH_SIZE
        self._flush_size = _clamped(flush_size, constructor)
        # From the size that was asked for on, no constructor changes it any more.
        self._steady_from = LARGEST_LIMIT if flush_size is None or flush_size < 1 else flush_size

    def bound(self, current: int) -> int:
        """Return the largest limit worth a look: twice the current one, or the one from which on nothing leaves."""
        least = max(self._total, 2 * current, 1)
        if not 0 < self._ratio < math.inf:
            return least
        return min(max(least, math.ceil(self._total / self._ratio) + 1), LARGEST_LIMIT)

    def limits(self, message: int, bound: int) -> tuple[Range, ...]:
        """Return every range of limits up to the bound at which the message is in the window at the end.

        A thousand messages take well under a second; what counts is how many different windows there can be.
        """
        found: list[Range] = []
        for first, last, start in self.outcomes(bound):
            if message < start:
                continue
            if found and found[-1].last == first - 1:
                found[-1] = Range(first=found[-1].first, last=last)
            else:
                found.append(Range(first=first, last=last))
        if found and found[-1].last == bound and self._endless(bound):
            found[-1] = Range(first=found[-1].first, last=None)
        return tuple(found)

    def outcomes(self, bound: int) -> Iterator[tuple[int, int, int]]:
        """Yield ranges of limits that come to the same end, both limits included, and where the window then starts."""
        limit = 1
        while limit <= bound:
            left = self._flushes(limit)
            last = self._last_alike(limit, left, bound)
            yield limit, last, left.window[0]
            limit = last + 1

    def _flushes(self, limit: int) -> Flushes:
        return self._timeline.flushes(threshold=limit * self._ratio, flush_size=self._size(limit), writes=self._writes)

    def _size(self, limit: int) -> int:
        return self._flush_size(min(limit, self._steady_from))

    def _too_much(self, limit: int) -> int:
        """Return the fewest tokens that overflow the window; below zero is no less than zero where no sum falls."""
        return max(0, math.floor(limit * self._ratio) + 1)

    def _last_alike(self, limit: int, left: Flushes, bound: int) -> int:
        """Return the largest limit up to which the window starts at the same messages, one after the other."""
        if not math.isfinite(self._ratio) and self._ratio != -math.inf:
            return bound
        if self._ratio < 0 and self._falls:
            # Then a larger limit has the lower threshold, and sums are on both sides of it.
            return limit
        size = self._size(limit)
        reaches = [self._reach(flush, size) for flush in left.flushes]
        most = min([tokens for tokens, _ in reaches], default=None)
        largest = min([sizes for _, sizes in reaches], default=math.inf) if size > 0 else size
        return self._gallop(limit, bound, most, largest)

    def _reach(self, flush: Flush, size: int) -> tuple[int, float]:
        """Return up to how many tokens too much, and up to which flush size, a flush leaves the window at its cut.

        Where enough had been taken before the cut, the cut does not depend on when the window overflowed: it is the
        same while it does so at all, which is at the end at the latest. Otherwise the window must overflow at the
        same message, so what was too large there must be too large still. A window that is too large and cannot be
        cut is one turn, whatever the threshold. A larger flush size keeps the cut while enough stands before it, or
        while there is no later one.
        """
        stop, start, cut = flush
        tokens = self._timeline.tokens
        taken = tokens(start, cut)
        if size > 0 and taken >= size and cut < stop and not self._falls:
            return tokens(start, len(self._timeline)), taken
        later = cut < stop and self._users[cut] < stop
        return tokens(start, stop), max(size, taken) if later else math.inf

    def _gallop(self, limit: int, bound: int, most: int | None, largest: float) -> int:
        """Return the last limit whose threshold and flush size are within reach; both only grow with the limit."""

        def alike(other: int) -> bool:
            fits = most is None or self._ratio <= 0 or self._too_much(other) <= most
            return fits and self._size(other) <= largest

        step = 1
        while limit + step <= bound and alike(limit + step):
            limit += step
            step *= 2
        while step:
            if limit + step <= bound and alike(limit + step):
                limit += step
            step //= 2
        return limit

    def _endless(self, bound: int) -> bool:
        """Return whether no larger limit comes to another end."""
        if self._ratio <= 0:
            return bound >= self._steady_from
        return not math.isfinite(self._ratio) or self._too_much(bound) > self._total


def _clamped(flush_size: int | None, constructor: Constructor) -> Callable[[int], int]:
    """Return what tells the flush size that a constructor makes of the one asked for, by the limit."""

    @lru_cache(maxsize=65536)
    def size(limit: int) -> int:
        given = {"token_limit": limit, **({} if flush_size is None else {"token_flush_size": flush_size})}
        settings: Settings = settings_from(given, constructor=constructor)
        return settings.token_flush_size

    return size


def _next_users(user_flags: Sequence[bool]) -> list[int]:
    """Return for each place the first user message after it, or a place beyond the end."""
    beyond = len(user_flags) + 1
    found = [beyond] * (len(user_flags) + 1)
    for place in range(len(user_flags) - 2, -1, -1):
        found[place] = place + 1 if user_flags[place + 1] else found[place + 1]
    return found
