"""What every policy is given, what it gives, and how that becomes the one shape that all commands read."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field
from itertools import accumulate, pairwise
from typing import Final

from memcli.budget.honest import Overhead, Tally
from memcli.budget.messages import BudgetMessage, Estimates
from memcli.budget.outcome import BlockFate, Columns, Fate, Fates, Flushed, Piece, Totals
from memcli.budget.presence import turns_of
from memcli.budget.public import BlockSpec
from memcli.budget.shrinking import stated
from memcli.facts import Json, Micros
from memcli.record import record

SYSTEM: Final = frozenset({"system", "developer"})
"""The roles that tell the model what it is."""


@record
class Job:
    """A transcript to be replayed.

    Args:
        writes: How many messages had been written after each write, ascending.
        turns: The 0-based user turn of each message; what comes before the first is of turn 0.
        real: What each message costs at the provider.
        times: When each was said, or None where nobody knows.
        ends: Whether the transcript ends here, and not only the part that is looked at.
    """

    messages: tuple[BudgetMessage, ...]
    ids: tuple[str, ...]
    writes: tuple[int, ...]
    turns: tuple[int, ...]
    real: tuple[int, ...]
    settings: Mapping[str, Json]
    specs: tuple[BlockSpec, ...]
    tally: Tally
    overhead: Overhead
    estimates: Estimates
    times: Sequence[Micros | None]
    ends: bool

    def turn_of(self, write: int) -> int:
        """Return the turn in which a write ends."""
        return self.turns[self.writes[write] - 1]

    def write_of(self, message: int) -> int:
        """Return the write that brings a message."""
        return bisect_right(self.writes, message)

    def spoken(self) -> Iterator[int]:
        """Yield each write with a user message in it: after it a prompt is sent."""
        if len(self.writes) == len(self.messages):
            yield from [write for write, message in enumerate(self.messages) if message.role == "user"]
            return
        done = 0
        for write, stop in enumerate(self.writes):
            if any(message.role == "user" for message in self.messages[done:stop]):
                yield write
            done = stop


@record
class Left:
    """Why a message is not in the window.

    Args:
        flush: The number of the flush that took it, or None where nothing is flushed.
        last_seen: The last write after which it was in a prompt, or None.
        blocks: The blocks that took it.
    """

    reason: str
    flush: int | None = None
    last_seen: int | None = None
    blocks: tuple[str, ...] = ()


@record
class Snapshot:
    """What the prompt of one turn is made of, in order: pinned messages, then the window, and memory somewhere.

    Args:
        pins: How many of the pinned messages stand before the window.
        memory: Two equal ones mean that the same memory stands there; None means none.
        memory_at: The message before which it stands; None means between the pinned messages and the window.
    """

    start: int
    stop: int
    pins: int = 0
    memory: tuple[int, ...] | None = None
    memory_at: int | None = None


@record
class Course:
    """What a policy did to a transcript.

    Args:
        thought: What it believes each message costs.
        left: Why, for each message that is not in the window at the end.
        captured: The blocks that were given a message, for those in the window.
        prompt: Nothing where the policy refuses.
        pinned: Messages that never leave.
        snapshots: What the prompt of each turn is made of.
    """

    effective: Mapping[str, Json]
    thought: Sequence[int]
    left: Mapping[int, Left]
    steps: Sequence[Mapping[str, Json]]
    prompt: tuple[Piece, ...]
    captured: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    flushes: tuple[Flushed, ...] = ()
    blocks: tuple[BlockFate, ...] = ()
    clamps: tuple[Mapping[str, Json], ...] = ()
    limit: int | None = None
    pinned: Sequence[int] = ()
    snapshots: Sequence[Snapshot] = ()
    refused: str | None = None


def made_job(
    messages: Sequence[BudgetMessage],
    *,
    ids: Sequence[str],
    by_turn: bool,
    real: Sequence[int],
    settings: Mapping[str, Json],
    specs: Sequence[BlockSpec],
    tally: Tally,
    overhead: Overhead,
    estimates: Estimates,
    times: Sequence[Micros | None],
    ends: bool,
) -> Job:
    """Return the job with its turns and writes worked out."""
    turns = tuple(turns_of([message.role for message in messages]))
    last = [at + 1 for at in range(len(turns)) if at + 1 == len(turns) or turns[at + 1] != turns[at]]
    return Job(
        messages=tuple(messages),
        ids=tuple(ids),
        writes=tuple(last if by_turn else range(1, len(messages) + 1)),
        turns=turns,
        real=tuple(real),
        settings=settings,
        specs=tuple(specs),
        tally=tally,
        overhead=overhead,
        estimates=estimates,
        times=times,
        ends=ends,
    )


# --- pieces that policies share ---


def message_piece(job: Job, index: int, thought: int) -> Piece:
    """Return a message of the transcript as a part of the prompt."""
    message = job.messages[index]
    return Piece(
        kind="system" if message.role in SYSTEM else "message",
        name=job.ids[index],
        role=message.role,
        index=index,
        thought=thought,
        real=job.real[index],
        text=message.lines,
    )


def reply_piece(job: Job, thought: int) -> list[Piece]:
    """Return the tokens with which the answer begins, where the encoding has any."""
    reply = job.overhead.reply
    if not reply:
        return []
    return [Piece(kind="template", name="reply", role="assistant", index=None, thought=thought, real=reply, text="")]


def write_step(op: str, first: int, stop: int, *, before: int, after: int, window: tuple[int, int]) -> dict[str, Json]:
    """Return what is told of a write, the same for every policy; each adds what is its own."""
    return {
        "op": op,
        "first": first,
        "stop": stop,
        "before": before,
        "after": after,
        "window": [window[0], window[1]],
        "flushed": [],
    }


def no_blocks(job: Job, policy: str) -> tuple[BlockFate, ...]:
    """Return the blocks as they fare under a policy that has none."""
    return tuple(
        BlockFate(
            name=spec.name,
            kind=spec.kind,
            priority=spec.priority,
            weight=spec.weight,
            wanted=0,
            got=0,
            fate="dropped",
            reason=f"policy {policy} has no blocks",
        )
        for spec in job.specs
    )


def windowed(
    job: Job,
    starts: Sequence[int],
    *,
    reason: str,
    effective: Mapping[str, Json],
    limit: int | None,
    policy: str,
    thought: Sequence[int] | None = None,
    extra: Sequence[Piece] = (),
) -> Course:
    """Return the course of a policy whose prompt is the newest messages and nothing else.

    Args:
        starts: The first message of the window after each write; it never goes back.
        thought: What the policy believes each message costs; None means what it really does.
        extra: What else is in the prompt, before the messages.
    """
    counts = job.real if thought is None else thought
    sums = [0, *accumulate(counts)]
    steps = []
    left: dict[int, Left] = {}
    done = gone = 0
    for write, (stop, start) in enumerate(zip(job.writes, starts, strict=True)):
        before = sums[stop] - sums[gone]
        for index in range(gone, start):
            left[index] = Left(reason=reason, last_seen=write - 1 if index < done else None)
        gone = max(gone, start)
        op = "put" if stop - done == 1 else "put_messages"
        steps.append(write_step(op, done, stop, before=before, after=sums[stop] - sums[gone], window=(gone, stop)))
        done = stop
    pieces = [message_piece(job, index, counts[index]) for index in range(gone, done)]
    return Course(
        effective=effective,
        thought=counts,
        left=left,
        steps=tuple(steps),
        prompt=(*extra, *pieces, *reply_piece(job, job.overhead.reply if thought is None else 0)),
        blocks=no_blocks(job, policy),
        limit=limit,
        snapshots=[Snapshot(start=starts[write], stop=job.writes[write]) for write in job.spoken()],
    )


# --- the common shape ---


def fates(job: Job, course: Course) -> Fates:
    """Return what became of each message."""
    total = len(job.messages)
    text = "\n".join(piece.text for piece in course.prompt if piece.kind == "block")
    writes = range(len(course.steps) - 1, -1, -1)
    last = next((write for write in writes if "refused" not in course.steps[write]), None)
    left = list(map(course.left.get, range(total)))
    held = Held(text)
    words = {at for at, one in enumerate(left) if one is not None and held.holds(job.messages[at])} if text else set()
    columns = Columns(
        role=[message.role for message in job.messages],
        thought=course.thought,
        real=job.real,
        ended=["window" if one is None else "block" if one.blocks else "dropped" for one in left],
        flush=[None if one is None else one.flush for one in left],
    )
    ends = _Ends(
        columns=columns,
        ids=job.ids,
        left=left,
        captured=course.captured,
        last=last,
        written=0 if last is None else job.writes[last],
        sent=course.refused is None,
        words=words,
    )
    return Fates(columns, ends.fate)


@record
class _Ends:
    """What the fate of each message is put together from; it can go to another process.

    Args:
        left: Of each message: why it is not in the window, or None where it is.
        last: The last write after which there was a prompt, or None.
        written: How many messages had been written by then.
        sent: Whether there is a prompt at the end.
        words: Messages that left and whose words stand in a block of that prompt.
    """

    columns: Columns
    ids: Sequence[str]
    left: Sequence[Left | None]
    captured: Mapping[int, tuple[str, ...]]
    last: int | None
    written: int
    sent: bool
    words: Set[int]

    def fate(self, at: int) -> Fate:
        """Return what became of a message."""
        left, columns = self.left[at], self.columns
        blocks = self.captured.get(at, ()) if left is None else left.blocks
        seen = (self.last if at < self.written else None) if left is None else left.last_seen
        return Fate(
            index=at,
            id=self.ids[at],
            role=columns.role[at],
            thought=columns.thought[at],
            real=columns.real[at],
            ended=columns.ended[at],
            reason=None if left is None else left.reason,
            flush=columns.flush[at],
            last_seen=seen,
            reachable=self.sent and (left is None or at in self.words),
            blocks=blocks,
        )


class Held:
    """What the blocks of a prompt say, asked for the words of messages that left the window.

    A message is held where its whole text stands there, or, if it states facts, every one of them.
    """

    __slots__ = ("_at", "_text", "_words")

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = frozenset(_WORD.findall(text))
        self._at = 0

    def holds(self, message: BudgetMessage) -> bool:
        """Return whether the words of the message stand in a block."""
        if not self._text:
            return False
        facts = stated(message)
        whole = message.words.strip()
        return (bool(whole) and self._has(whole)) or (bool(facts) and all(map(self._has, facts)))

    def _has(self, text: str) -> bool:
        # Most of what is gone is known by its words. The rest mostly stands in the order in which it left.
        if not self._words.issuperset(_WORD.findall(text)):
            return False
        found = self._text.find(text, self._at)
        found = self._text.find(text) if found < 0 else found
        self._at = max(found, 0)
        return found >= 0


_WORD = re.compile(r"\w+")


def totals(job: Job, course: Course, fates: Fates) -> Totals:
    """Return the sums; `uncounted` is what of the prompt's parts the policy does not see, the template apart."""
    prompt, columns = course.prompt, fates.columns
    real = sum(piece.real for piece in prompt)
    return Totals(
        messages=len(job.messages),
        turns=job.turns[-1] + 1 if job.turns else 0,
        tokens=sum(job.real),
        window_messages=columns.ended.count("window"),
        flushes=len(course.flushes),
        flushed_messages=len(fates) - columns.flush.count(None),
        thought=sum(piece.thought for piece in prompt),
        real=real,
        limit=course.limit,
        over=0 if course.limit is None else max(0, real - course.limit),
        uncounted=sum(max(0, piece.real - piece.thought) for piece in prompt if piece.kind != "template"),
        template=sum(piece.real for piece in prompt if piece.kind == "template"),
        prefix_kept=prefix_kept(job, course),
    )


Segment = tuple[str, tuple[int, ...], int]
"""What stands at a place: a kind, what tells it from others of the kind, and its tokens."""


def prefix_kept(job: Job, course: Course) -> float | None:
    """Return how much of each turn's prompt the next turn begins with, 0 to 1; None before the second turn.

    Memory counts as one piece of the size it has at the end, which is either the same or another.
    """
    sums = [0, *accumulate(job.real)]
    if all(snapshot.memory is None and not snapshot.pins for snapshot in course.snapshots):
        return _windows_kept(course.snapshots, sums)
    memory = sum(piece.real for piece in course.prompt if piece.kind == "block" or piece.name == "memory")
    pins = [job.real[index] for index in course.pinned]
    kept = whole = 0
    before: list[Segment] = []
    for snapshot in course.snapshots:
        now = _segments(snapshot, sums, pins, memory)
        if before:
            kept += _common(before, now, sums)
            whole += sum(segment[2] for segment in before)
        before = now
    return kept / whole if whole else None


def _windows_kept(snapshots: Sequence[Snapshot], sums: Sequence[int]) -> float | None:
    """Return what `prefix_kept` does, of prompts that are nothing but windows."""
    pairs = list(pairwise(snapshots))
    whole = sum([sums[before.stop] - sums[before.start] for before, _ in pairs])
    kept = [sums[min(one.stop, two.stop)] - sums[one.start] for one, two in pairs if one.start == two.start]
    return sum(kept) / whole if whole else None


def _segments(snapshot: Snapshot, sums: Sequence[int], pins: Sequence[int], memory: int) -> list[Segment]:
    found: list[Segment] = [("pin", (at,), pins[at]) for at in range(snapshot.pins)]
    start, stop = snapshot.start, snapshot.stop
    cut = start if snapshot.memory_at is None else snapshot.memory_at
    if snapshot.memory is None:
        cut = stop
    found.append(("window", (start, cut), sums[cut] - sums[start]))
    if snapshot.memory is not None:
        found += [("memory", snapshot.memory, memory), ("window", (cut, stop), sums[stop] - sums[cut])]
    return [segment for segment in found if segment[0] != "window" or segment[1][0] < segment[1][1]]


def _common(before: Sequence[Segment], now: Sequence[Segment], sums: Sequence[int]) -> int:
    kept = 0
    for (kind, old, tokens), (other, new, _) in zip(before, now, strict=False):
        if kind == other == "window" and old[0] == new[0]:
            stop = min(old[1], new[1])
            kept += sums[stop] - sums[old[0]]
            if old[1] == new[1]:
                continue
            return kept
        if kind != other or old != new:
            return kept
        kept += tokens
    return kept
