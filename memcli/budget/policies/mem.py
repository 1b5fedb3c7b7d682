"""What a careful engineer would want of a memory: nothing that must stay is lost, and nothing too large is sent.

Everything that reaches the provider is counted. System messages are pinned. A tool call leaves together with its
results, also where somebody spoke in between. The conversation may use its ratio of what the pinned messages leave of
the limit; where it has more, the oldest groups leave, as few as it takes, and never the newest one. The rest of the
limit is for the blocks, divided by weight (see `share`), and blocks shrink themselves to what they are given. If the
pinned messages and the newest group do not fit, there is no prompt, and it is said which part is too large and by how
much.

What is marked important is given to the blocks at once, and what is still in the window when the transcript ends is
given to them then, so that a short conversation is remembered too.

Without blocks the conversation has the whole limit, and next to blocks that never grow all but what they need.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from memcli.budget.blocks import VectorBlock
from memcli.budget.course import SYSTEM, Course, Job, Left, Snapshot, reply_piece, write_step
from memcli.budget.messages import BudgetMessage
from memcli.budget.options import choice, estimates, number, texts, whole
from memcli.budget.outcome import BlockFate, Flushed, Piece
from memcli.budget.policies.mem_blocks import Memory
from memcli.budget.public import takes
from memcli.budget.settings import DEFAULT_RATIO, DEFAULT_TOKEN_LIMIT
from memcli.budget.shrinking import RetrievedBlock
from memcli.budget.tools import groups_of
from memcli.errors import UsageError
from memcli.facts import Json
from memcli.record import record


@record
class MemSettings:
    """What the policy works with. `important` are ids of messages."""

    token_limit: int
    ratio: float
    insert: str
    important: frozenset[str]


def settings_from(job: Job) -> MemSettings:
    """Return the settings.

    Raises:
        UsageError: A limit below 1, a ratio outside of 0 to 1, or another value that does not fit.
    """
    given = job.settings
    estimates(given)  # those below zero would make a message that is cheaper than none
    important = texts(given, "important")
    unknown = sorted(set(important).difference(job.ids)) if job.ends else []
    if unknown:
        raise UsageError(f"no message {unknown[0]} is in the transcript", hint="give ids of its messages as important")
    return MemSettings(
        token_limit=whole(given, "token_limit", DEFAULT_TOKEN_LIMIT, least=1),
        ratio=number(given, "chat_history_token_ratio", DEFAULT_RATIO, most=1),
        insert=choice(given, "insert_method", ("system", "user")),
        important=frozenset(important),
    )


def course(job: Job) -> Course:
    """Return the course of the policy.

    Raises:
        UsageError: A setting is out of range.
        BlockFailed: The class of a block raised.
    """
    return _Run(job, settings_from(job)).whole()


# --- groups ---


def group_starts(messages: Sequence[BudgetMessage]) -> list[int]:
    """Return for each message the first of its group: a message, or a tool call with all up to its last result.

    The whole transcript is looked at, so that a call is kept until its results are there, and no longer where they
    never come.
    """
    starts = list(range(len(messages)))
    reach = {group.call: max(group.results) for group in groups_of(messages) if group.call is not None}
    first, last = 0, -1
    for at in range(len(messages)):
        first = at if at > last else first
        last = max(last, reach.get(at, at))
        starts[at] = first
    return starts


# --- a run ---


class _Run:
    """One replay while it goes on. Sums leave the pinned messages out; `_pins` has theirs."""

    def __init__(self, job: Job, settings: MemSettings) -> None:
        self._job = job
        self._settings = settings
        self._placed = [spec.placed(job.tally, []) for spec in job.specs]
        self._memory = Memory(job, self._placed, settings.insert)
        self._takers = [placed for placed in self._placed if takes(placed)]
        self._names = tuple(placed.name for placed in self._takers)
        self._pinned = [message.role in SYSTEM for message in job.messages]
        self._pin_places = [at for at, pinned in enumerate(self._pinned) if pinned]
        self._sums, self._pins = [0], [0]
        for real, pinned in zip(job.real, self._pinned, strict=True):
            self._sums.append(self._sums[-1] + (0 if pinned else real))
            self._pins.append(self._pins[-1] + (real if pinned else 0))
        self._unpinned = _next_unpinned(self._pinned)
        self._groups = group_starts(job.messages)
        self._cuts = [at for at, start in enumerate(self._groups) if start == at]
        self._reserve = self._most_of_blocks()
        self._start = 0
        self._shown: int | None = None
        self._left: dict[int, Left] = {}
        self._captured: set[int] = set()
        self._flushes: list[Flushed] = []
        self._steps: list[dict[str, Json]] = []
        self._snapshots: list[Snapshot] = []

    def whole(self) -> Course:
        """Return what happened in all writes, and the prompt at the end."""
        spoken = frozenset(self._job.spoken())
        done = 0
        for write, stop in enumerate(self._job.writes):
            self._write(write, done, stop)
            done = stop
            if write in spoken:
                self._snapshots.append(self._snapshot(write, stop))
        refused, _ = self._refusal(done)
        prompt, blocks = self._prompt(done, refused)
        if self._job.ends:
            self._capture([at for at in range(self._start, done) if not self._pinned[at]], "the end")
        captured = dict.fromkeys(sorted(self._captured - self._left.keys()), self._names) if self._names else {}
        return Course(
            effective=self._effective(done),
            thought=self._job.real,
            left=self._left,
            captured=captured,
            flushes=tuple(self._flushes),
            steps=tuple(self._steps),
            prompt=prompt,
            blocks=blocks,
            limit=self._settings.token_limit,
            pinned=self._pin_places,
            snapshots=self._snapshots,
            refused=refused,
        )

    def _effective(self, stop: int) -> dict[str, Json]:
        return {
            "token_limit": self._settings.token_limit,
            "chat_history_token_ratio": self._settings.ratio,
            "insert_method": self._settings.insert,
            "history_tokens": self._budget(stop),
            "overhead": self._job.overhead.as_json(),
        }

    # --- the window ---

    def _room(self, stop: int) -> int:
        """Return what the pinned messages and the reply leave of the limit; below zero where they are too large."""
        return self._settings.token_limit - self._job.overhead.reply - self._pins[stop]

    def _budget(self, stop: int) -> int:
        """Return what the conversation may cost. It never falls with the limit."""
        room = max(0, self._room(stop))
        share = room - math.floor(room * self._settings.ratio)
        return room - (share if self._reserve is None else min(share, self._reserve))

    def _most_of_blocks(self) -> int | None:
        """Return the most that all blocks can ever need, or None where one may grow."""
        if any(spec.kind != "static" for spec in self._job.specs):
            return None
        return self._memory.tokens()

    def _newest(self, stop: int) -> int:
        return self._groups[stop - 1] if stop else 0

    def _write(self, write: int, done: int, stop: int) -> None:
        marked = [at for at in range(done, stop) if self._job.ids[at] in self._settings.important]
        before = self._used(stop)
        target = self._start
        budget, newest = self._budget(stop), self._newest(stop)
        while target < newest and self._sums[stop] - self._sums[target] > budget:
            target = self._cuts[bisect_left(self._cuts, target + 1)]
        op = "put" if stop - done == 1 else "put_messages"
        step = write_step(op, done, stop, before=before, after=0, window=(target, stop))
        self._steps.append(step)
        self._capture(marked, "marked important")
        self._flush(write, stop, target, before, budget)
        step["after"] = self._used(stop)
        refused, short = self._refusal(stop)
        if refused is None:
            self._shown = write
        else:
            step |= {"refused": refused, "short_by": short}

    def _used(self, stop: int) -> int:
        return self._pins[stop] + self._sums[stop] - self._sums[self._start]

    def _flush(self, write: int, stop: int, target: int, before: int, budget: int) -> None:
        """Take the messages before the target out of the window and give them to the blocks."""
        gone = [at for at in range(self._start, target) if not self._pinned[at]]
        self._start = target
        new = [self._job.messages[at] for at in gone if at not in self._captured]
        for placed in self._takers if new else ():
            placed.block.put(new)
        reason = f"the conversation had {before - self._pins[stop]} tokens and may have {budget}"
        listed: list[Json] = []
        for first, last in _runs(gone):
            after = before - (self._sums[last] - self._sums[first])
            number = len(self._flushes)
            turn = self._job.turn_of(write)
            self._flushes.append(
                Flushed(write=write, turn=turn, before=before, after=after, first=first, stop=last, blocks=self._names)
            )
            listed.append({"first": first, "stop": last, "tokens": before - after, "to_blocks": list(self._names)})
            for at in range(first, last):
                seen = self._shown if self._shown is not None and self._shown >= self._job.write_of(at) else None
                self._left[at] = Left(reason=reason, flush=number, last_seen=seen, blocks=self._names)
            before = after
        self._steps[-1]["flushed"] = listed

    def _capture(self, wanted: Sequence[int], why: str) -> None:
        """Give messages that stay in the window to the blocks, once."""
        new = [at for at in wanted if at not in self._captured and at not in self._left]
        if not new or not self._takers:
            return
        self._captured.update(new)
        for placed in self._takers:
            placed.block.put([self._job.messages[at] for at in new])
        told: dict[str, Json] = {"messages": list(new), "to_blocks": list(self._names), "why": why}
        earlier = self._steps[-1].get("captured")
        self._steps[-1]["captured"] = [*(earlier if isinstance(earlier, list) else []), told]

    def _refusal(self, stop: int) -> tuple[str | None, int]:
        """Return why there can be no prompt and how many tokens are missing, or None and 0."""
        limit, reply = self._settings.token_limit, self._job.overhead.reply
        first = self._newest(stop)
        newest = self._sums[stop] - self._sums[first]
        short = reply + self._pins[stop] + newest - limit
        if short <= 0:
            return None, 0
        parts = []
        if self._pins[stop]:
            pinned = self._pin_places[: bisect_left(self._pin_places, stop)]
            what = "system message" if len(pinned) == 1 else "system messages"
            verb = "has" if len(pinned) == 1 else "have"
            parts.append(f"the {what} ({_span(pinned)}) {verb} {self._pins[stop]}")
        if newest:
            what = "newest message" if stop - first == 1 else "newest group of messages"
            parts.append(f"the {what} ({_span(range(first, stop))}) has {newest}")
        if reply:
            parts.append(f"the reply has {reply}")
        return f"{', '.join(parts)}: together {short} more than the limit of {limit} tokens", short

    def _snapshot(self, write: int, stop: int) -> Snapshot:
        """Return what the prompt is made of; pinned messages at its head are apart, as the window moves behind them."""
        start = min(self._unpinned[self._start], stop)
        memory: tuple[int, ...] | None = None
        at = None
        if self._placed and (len(self._takers) < len(self._placed) or self._flushes):
            follows = any(isinstance(placed.block, RetrievedBlock | VectorBlock) for placed in self._takers)
            memory = (len(self._flushes) if self._takers else 0, write if follows and self._flushes else 0)
            if self._settings.insert == "user":
                users = (at for at in range(stop - 1, start - 1, -1) if self._job.messages[at].role == "user")
                at = next(users, stop)
        pins = bisect_left(self._pin_places, start)
        return Snapshot(start=start, stop=stop, pins=pins, memory=memory, memory_at=at)

    # --- the prompt ---

    def _prompt(self, stop: int, refused: str | None) -> tuple[tuple[Piece, ...], tuple[BlockFate, ...]]:
        """Return the parts of the prompt, none where it is refused, and what became of the blocks."""
        entries = [at for at in self._pin_places if at < self._start] + list(range(self._start, stop))
        if refused is not None:
            return (), self._memory.unsent(entries)
        capacity = self._room(stop) - (self._sums[stop] - self._sums[self._start])
        pieces, blocks = self._memory.assembled(entries, capacity)
        return (*pieces, *reply_piece(self._job, self._job.overhead.reply)), blocks


def _next_unpinned(pinned: Sequence[bool]) -> list[int]:
    """Return for each place the first message from it on that may leave, or the place after the last."""
    found = [len(pinned)] * (len(pinned) + 1)
    for at in range(len(pinned) - 1, -1, -1):
        found[at] = found[at + 1] if pinned[at] else at
    return found


def _runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the stretches without a gap, half-open."""
    first = 0
    for at in range(1, len(places) + 1):
        if at == len(places) or places[at] != places[at - 1] + 1:
            yield places[first], places[at - 1] + 1
            first = at


def _span(places: Sequence[int]) -> str:
    return f"message {places[0]}" if len(places) == 1 else f"messages {places[0]} to {places[-1]}"
