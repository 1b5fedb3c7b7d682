"""Where LlamaIndex cuts the window, on sums that are made once.

A timeline holds the counts of all messages of a session as running sums, and for each place the nearest user
messages. Every question about a window is then a search in sorted numbers, so that the cost of a simulation grows
with the number of flushes, and not with the number of messages in the window at each of them.

The rule, for a window of counts t from `start` to `stop`, oldest first: while their sum is above the threshold and
more than one message is left, let k be the first place before which at least `flush_size` tokens stand, or the last
message where there is no such place. Cut before the first user message at or after k; if there is none, before the
last user message before k; if there is none either, everything goes. A cut at the start ends it.
"""

import math
import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

from memcli.record import record

_NONE: Final = sys.maxsize
"""A place that no message has."""

Flush: TypeAlias = tuple[int, int, int]
"""How many messages had been written, and the first message that left and the one after the last."""


@record
class Flushes:
    """Every flush in order, and the window that is left: its first message and the one after its last."""

    flushes: tuple[Flush, ...]
    window: tuple[int, int]


class Timeline:
    """The counts of messages in the order they were written; it only grows.

    Args:
        counts: Tokens of each message. A flat estimate below zero makes a count negative; sums that fall cannot be
            searched, so a timeline with one is walked message by message.
        user_flags: Whether each is a user message, the only ones before which the window is cut.
    """

    __slots__ = ("_falls", "_last_user", "_next_user", "_seen_user", "_sums")

    def __init__(self, counts: Sequence[int] = (), user_flags: Sequence[bool] = ()) -> None:
        self._sums = [0, *accumulate(counts)]
        self._falls = min(counts, default=0) < 0
        self._next_user: list[int] = []
        self._last_user: list[int] = []
        self._seen_user = -1
        for place in [at for at, is_user in enumerate(user_flags) if is_user]:
            self._last_user += [self._seen_user] * (place - self._seen_user)
            self._next_user += [place] * (place - self._seen_user)
            self._seen_user = place
        rest = len(user_flags) - len(self._next_user)
        self._last_user += [self._seen_user] * rest
        self._next_user += [_NONE] * rest

    def __len__(self) -> int:
        return len(self._next_user)

    def append(self, tokens: int, *, is_user: bool) -> None:
        """Add a message at the end."""
        place = len(self._next_user)
        self._sums.append(self._sums[-1] + tokens)
        self._falls = self._falls or tokens < 0
        self._last_user.append(self._seen_user)
        self._next_user.append(place if is_user else _NONE)
        if is_user:
            for before in range(self._seen_user + 1, place):
                self._next_user[before] = place
            self._seen_user = place

    def tokens(self, start: int, stop: int) -> int:
        """Return the tokens of the messages from `start` up to `stop`."""
        return self._sums[stop] - self._sums[start]

    def cuts(self, start: int, stop: int, *, threshold: float, flush_size: int) -> Iterator[int]:
        """Yield where a window is cut after a write, one cut for each batch that leaves."""
        while stop - start > 1 and self.tokens(start, stop) > threshold:
            cut = self._cut(start, stop, flush_size)
            if cut == start:
                return
            yield cut
            start = cut

    def flushes(self, *, threshold: float, flush_size: int, writes: Sequence[int] | None = None) -> Flushes:
        """Return what one setting makes of the whole timeline.

        Args:
            writes: How many messages had been written after each write, ascending; None means one at a time.
        """
        if math.isnan(threshold) or threshold == math.inf:
            return Flushes(flushes=(), window=(0, len(self)))
        if self._falls or flush_size <= 0 or threshold == -math.inf:
            return self._walked(threshold, flush_size, writes)
        return self._searched(math.floor(threshold) + 1, flush_size, writes)

    def _walked(self, threshold: float, flush_size: int, writes: Sequence[int] | None) -> Flushes:
        """Return the flushes by looking at the window after every write."""
        found: list[Flush] = []
        start = 0
        for stop in range(1, len(self) + 1) if writes is None else writes:
            for cut in self.cuts(start, stop, threshold=threshold, flush_size=flush_size):
                found.append((stop, start, cut))
                start = cut
        return Flushes(flushes=tuple(found), window=(start, len(self)))

    def _searched(self, too_much: int, flush_size: int, writes: Sequence[int] | None) -> Flushes:
        """Return the flushes by leaping from one write that overflows to the next.

        A sweep asks this for every setting, so it repeats the rule of `cuts` and `_cut` in one loop without a call.

        Args:
            too_much: The fewest tokens that are above the threshold.
            flush_size: One or more.
        """
        sums, next_user, last_user, total = self._sums, self._next_user, self._last_user, len(self)
        found: list[Flush] = []
        start = stop = 0
        while True:
            stop = bisect_left(sums, sums[start] + too_much, stop + 1) if stop < total else _NONE
            if writes is not None:
                at = bisect_left(writes, stop)
                stop = writes[at] if at < len(writes) else _NONE
            if stop > total:
                return Flushes(flushes=tuple(found), window=(start, total))
            while stop - start > 1 and sums[stop] - sums[start] >= too_much:
                place = bisect_left(sums, sums[start] + flush_size, start + 1, stop - 1)
                cut = next_user[place]
                if cut >= stop:
                    cut = last_user[place]
                    cut = cut if cut >= start else stop
                if cut == start:
                    # The window is one turn. Nothing leaves before the next one begins.
                    stop = next_user[start + 1]
                    break
                found.append((stop, start, cut))
                start = cut

    def _cut(self, start: int, stop: int, flush_size: int) -> int:
        place = self._enough(start, stop, flush_size)
        user = self._next_user[place]
        if user < stop:
            return user
        user = self._last_user[place]
        return user if user >= start else stop

    def _enough(self, start: int, stop: int, flush_size: int) -> int:
        """Return the first place before which a flush is large enough, or the last message."""
        if flush_size <= 0:
            return start
        target = self._sums[start] + flush_size
        if not self._falls:
            return min(bisect_left(self._sums, target, start + 1, stop), stop - 1)
        places = range(start + 1, stop)
        return next((place for place in places if self._sums[place] >= target), stop - 1)
