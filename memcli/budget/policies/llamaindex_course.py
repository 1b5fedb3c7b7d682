"""What the exact LlamaIndex policy did, in the shape that all policies share."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from memcli.budget.blocks import ModelCall, PlacedBlock, StaticBlock, VectorBlock
from memcli.budget.course import (
    Course,
    Job,
    Left,
    Snapshot,
    message_piece,
    reply_piece,
    write_step,
)
from memcli.budget.honest import real_tokens
from memcli.budget.messages import (
    BudgetMessage,
    Part,
    PartKind,
    all_tokens,
    content_tokens,
    message_tokens,
    parts_tokens,
    text_part,
)
from memcli.budget.outcome import BlockFate, Flushed, Piece, Steps
from memcli.budget.policies.llamaindex import Batch, LlamaIndexMemory, Outcome, Prompt
from memcli.budget.prompt import place_for, rendered
from memcli.budget.public import takes
from memcli.budget.raised import Raised
from memcli.budget.settings import KNOWN, Constructor, InsertMethod, Settings, settings_from
from memcli.budget.shrinking import RetrievedBlock
from memcli.errors import UsageError
from memcli.facts import Json
from memcli.record import record


def settings_of(given: Mapping[str, Json], blocks: Sequence[str]) -> Settings:
    """Return the settings that LlamaIndex makes of what was asked for.

    Raises:
        Raised: LlamaIndex refuses them.
        UsageError: There is no such constructor.
    """
    name = given.get("constructor", Constructor.FROM_DEFAULTS.value)
    if not isinstance(name, str) or name not in list(Constructor):
        raise UsageError(f"there is no constructor called {name}", hint=f"take {' or '.join(Constructor)}")
    return settings_from(
        {key: given[key] for key in KNOWN if key in given}, blocks=blocks, constructor=Constructor(name)
    )


def course(job: Job) -> Course:
    """Return the course of LlamaIndex's `Memory`; where a block fails, it ends there and gives no prompt.

    Raises:
        Raised: LlamaIndex refuses the settings.
    """
    settings = settings_of(job.settings, [spec.name for spec in job.specs])
    calls: list[ModelCall] = []
    placed = [spec.placed(job.tally, calls) for spec in job.specs]
    thought = all_tokens(job.messages, settings.estimates, job.tally.all)
    return _Told(job, settings, placed, thought).whole(calls)


@record
class _Writes:
    """What is told of each write, from running sums and the writes that flushed; it can go to another process.

    Args:
        ends: How many messages had been written after each write.
        sums: Running sums of what the messages count as.
        flushed: The writes that flushed, ascending.
        starts: The first message of the window: before all of them, then after each.
        told: What is told of those writes alone, in the same order.
    """

    op: str
    ends: Sequence[int]
    sums: Sequence[int]
    threshold: float
    flushed: list[int]
    starts: list[int]
    told: list[dict[str, Json]]

    def windows(self, writes: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield the window after each of these writes, ascending."""
        at, many = 0, len(self.flushed)
        for write in writes:
            while at < many and self.flushed[at] <= write:
                at += 1
            yield self.starts[at], self.ends[write]

    def tokens_before(self, write: int) -> int:
        """Return what the window counts as with what is written, before anything leaves."""
        return self.sums[self.ends[write]] - self.sums[self.starts[bisect_left(self.flushed, write)]]

    def step(self, write: int) -> dict[str, Json]:
        """Return what is told of a write."""
        start, stop = window = self.starts[bisect_right(self.flushed, write)], self.ends[write]
        before, after = self.tokens_before(write), self.sums[stop] - self.sums[start]
        first = self.ends[write - 1] if write else 0
        told = write_step(self.op, first, stop, before=before, after=after, window=window)
        told |= {"triggered": before > self.threshold, "over_threshold": after > self.threshold}
        at = bisect_left(self.flushed, write)
        return told | self.told[at] if self.flushed[at : at + 1] == [write] else told


class _Told:
    """A run that is told while it goes on."""

    __slots__ = ("_flushes", "_job", "_left", "_placed", "_session", "_settings", "_takers", "_thought", "_writes")

    def __init__(self, job: Job, settings: Settings, placed: Sequence[PlacedBlock], thought: Sequence[int]) -> None:
        self._job = job
        self._settings = settings
        self._placed = placed
        self._thought = thought
        self._session = LlamaIndexMemory(settings, placed, job.tally)
        self._takers = frozenset(block.name for block in placed if takes(block))
        self._left: dict[int, Left] = {}
        self._flushes: list[Flushed] = []
        self._writes = _Writes(
            op="put" if self._by_message else "put_messages",
            ends=job.writes,
            sums=[0, *accumulate(thought)],
            threshold=settings.threshold,
            flushed=[],
            starts=[0],
            told=[],
        )

    @property
    def _by_message(self) -> bool:
        return len(self._job.writes) == len(self._job.messages)

    def whole(self, calls: list[ModelCall]) -> Course:
        """Write everything, and return the course.

        Args:
            calls: Where the models of the blocks write down what they are asked.
        """
        failed = self._written(calls)
        stored = self._session.window[1]
        for index in range(stored, len(self._job.messages)):
            self._left[index] = Left(reason="never written, because a block failed before")
        sent: Prompt | None = None
        try:
            prompt = self._session.get()
        except Raised as problem:
            failed = problem
        else:
            sent = prompt if failed is None else None
        pieces = [] if sent is None else self._pieces(sent)
        steps = Steps(self._job.writes[: bisect_left(self._job.writes, stored) + 1 if stored else 0], self._writes.step)
        return Course(
            effective=self._effective(),
            clamps=tuple(
                {"setting": clamp.setting, "given": _json(clamp.given), "used": clamp.used, "why": clamp.why}
                for clamp in self._settings.clamps
            ),
            thought=self._thought,
            left=self._left,
            flushes=tuple(self._flushes),
            steps=steps,
            prompt=tuple(pieces),
            blocks=tuple(self._fate(at, sent) for at in range(len(self._placed))),
            limit=self._settings.token_limit,
            snapshots=tuple(self._snapshots(len(steps))),
            refused=None if failed is None else failed.message,
        )

    def _effective(self) -> dict[str, Json]:
        settings = self._settings
        return {
            "token_limit": settings.token_limit,
            "token_flush_size": settings.token_flush_size,
            "chat_history_token_ratio": _json(settings.chat_history_token_ratio),
            "flush_threshold": _json(settings.threshold),
            "insert_method": settings.insert_method.value,
        }

    # --- writes ---

    def _written(self, calls: list[ModelCall]) -> Raised | None:
        """Write everything, note each write that flushed, and return what failed first."""
        ends = None if self._by_message else self._job.writes
        asked = 0
        failed: Raised | None = None
        for stop, outcome in self._session.put_all(self._job.messages, self._thought, ends):
            write = bisect_left(self._job.writes, stop)
            before = self._writes.tokens_before(write)
            for batch in outcome.batches:
                self._batch(write, before, batch)
                before -= batch.tokens
            self._writes.flushed.append(write)
            self._writes.starts.append(outcome.batches[-1].stop)
            self._writes.told.append(_told(outcome, calls[asked:]))
            asked, failed = len(calls), outcome.error
        return failed

    def _batch(self, write: int, before: int, batch: Batch) -> None:
        """Retell a flush. The blocks that are named are those that keep it; LlamaIndex gives it to others too.

        Args:
            before: Tokens in the window before the flush.
        """
        blocks = tuple(name for name in batch.to_blocks if name in self._takers)
        threshold = self._settings.threshold
        shown = int(threshold) if threshold.is_integer() else threshold
        reason = f"flushed: the window had {before} tokens, more than its threshold of {shown}"
        # What this write brought was in no prompt.
        written = min(batch.stop, max(batch.start, self._job.writes[write - 1] if write else 0))
        for start, stop, seen in ((batch.start, written, write - 1), (written, batch.stop, None)):
            left = Left(reason=reason, flush=len(self._flushes), last_seen=seen, blocks=blocks)
            self._left.update(dict.fromkeys(range(start, stop), left))
        self._flushes.append(
            Flushed(
                write=write,
                turn=self._job.turn_of(write),
                before=before,
                after=before - batch.tokens,
                first=batch.start,
                stop=batch.stop,
                blocks=blocks,
            )
        )

    def _snapshots(self, writes: int) -> Iterator[Snapshot]:
        """Yield what each turn's prompt is made of; memory that follows the conversation is another at each.

        Args:
            writes: How many were made.
        """
        spoken = [write for write in self._job.spoken() if write < writes]
        windows = self._writes.windows(spoken)
        if not self._placed:
            yield from [Snapshot(start=start, stop=stop) for start, stop in windows]
            return
        follows = any(isinstance(placed.block, VectorBlock | RetrievedBlock) for placed in self._placed)
        fixed = any(isinstance(placed.block, StaticBlock) for placed in self._placed)
        role = self._settings.insert_method.value
        places = [at for at, message in enumerate(self._job.messages) if message.role == role]
        ends = [flushed.write for flushed in self._flushes]
        for write, (start, stop) in zip(spoken, windows, strict=True):
            flushes = bisect_right(ends, write)
            if not fixed and not flushes:
                yield Snapshot(start=start, stop=stop)
                continue
            memory = (flushes if self._takers else 0, write if follows and flushes else 0)
            at = _place(places, start, stop, last=role == "user")
            yield Snapshot(start=start, stop=stop, memory=memory, memory_at=at)

    # --- the prompt ---

    def _pieces(self, prompt: Prompt) -> list[Piece]:
        """Return the parts of the prompt in order: messages that blocks gave, then the window, and memory in it."""
        texts: dict[str, list[Part]] = {}
        pieces: list[Piece] = []
        for name, content in prompt.contents.items():
            if isinstance(content, str):
                texts[name] = [text_part(content)]
            elif isinstance(content[0], BudgetMessage):
                pieces += [self._given(name, message) for message in content]
            else:
                texts[name] = content
        pieces += [message_piece(self._job, index, self._thought[index]) for index in range(*self._session.window)]
        if texts:
            method = self._settings.insert_method
            roles = [piece.role for piece in pieces]
            place = place_for(roles, method)
            new = len(pieces) if method is InsertMethod.USER else 0
            pieces[new if place is None else place : new if place is None else place] = self._memory(
                texts, own=place is None
            )
        return [*pieces, *reply_piece(self._job, 0)]

    def _given(self, name: str, message: BudgetMessage) -> Piece:
        estimates, tally = self._settings.estimates, self._job.tally
        return Piece(
            kind="block",
            name=name,
            role=message.role,
            index=None,
            thought=message_tokens(message, estimates, tally),
            real=real_tokens(message, estimates, self._job.overhead, tally),
            text=message.lines,
        )

    def _memory(self, texts: Mapping[str, Sequence[Part]], *, own: bool) -> list[Piece]:
        """Return the blocks and, as one piece, the tags around them and the message they stand in, if it is theirs."""
        estimates, tally, role = self._settings.estimates, self._job.tally, self._settings.insert_method.value
        made = []
        for name, parts in texts.items():
            shown = [part for part in parts if part.kind is PartKind.TEXT or part.url]
            made.append(
                Piece(
                    kind="block",
                    name=name,
                    role=role,
                    index=None,
                    thought=content_tokens(list(parts), estimates, tally),
                    real=parts_tokens(shown, estimates, tally),
                    text="\n".join([part.text for part in parts if part.kind is PartKind.TEXT]),
                )
            )
        overhead = self._job.overhead
        carrier = overhead.message + (tally(role) if overhead.roles else 0) if own else 0
        tags = parts_tokens(rendered(texts), estimates, tally) - sum(piece.real for piece in made)
        made.append(
            Piece(kind="template", name="memory", role=role, index=None, thought=0, real=tags + carrier, text="")
        )
        return made

    def _fate(self, at: int, prompt: Prompt | None) -> BlockFate:
        spec = self._job.specs[at]
        name = spec.name
        wanted = 0 if prompt is None else prompt.block_tokens.get(name, 0)
        fate = "dropped" if prompt is None else _FATES[prompt.fate[name]]
        got = prompt.block_tokens_after.get(name, 0) if prompt is not None and name in prompt.rendered_order else 0
        return BlockFate(
            name=name,
            kind=spec.kind,
            priority=spec.priority,
            weight=None,
            wanted=wanted,
            got=got,
            fate=fate,
            reason="there is no prompt" if prompt is None else self._why(name, fate, prompt),
        )

    def _why(self, name: str, fate: str, prompt: Prompt) -> str | None:
        if fate in ("whole", "empty"):
            return None
        asked = next((call for call in prompt.truncate_calls if call.block == name), None)
        over = f"window and blocks were {prompt.excess} tokens over the limit of {self._settings.token_limit}"
        if asked is None:
            return over
        if fate == "dropped" and asked.returned == "None":
            return f"{over}; it was asked to drop {asked.asked} and cannot be shortened"
        return f"{over}; it was asked to drop {asked.asked} and went from {asked.before} to {asked.after}"


def _told(outcome: Outcome, calls: Sequence[ModelCall]) -> dict[str, Json]:
    """Return what is told of a write because it flushed."""
    told: dict[str, Json] = {
        "flushed": [
            {"first": batch.start, "stop": batch.stop, "tokens": batch.tokens, "to_blocks": list(batch.to_blocks)}
            for batch in outcome.batches
        ]
    }
    if calls:
        told["model_calls"] = [
            {"kind": call.kind, "messages": call.messages, "returned": list(call.returned)} for call in calls
        ]
    if outcome.error is not None:
        told["refused"] = outcome.error.message
    return told


_FATES = {"whole": "whole", "truncated": "shortened", "grown": "grown", "dropped": "dropped", "no_content": "empty"}


def _place(places: Sequence[int], start: int, stop: int, *, last: bool) -> int:
    """Return the message of the window before whose words the memory stands, or where its own message is."""
    first, beyond = bisect_left(places, start), bisect_left(places, stop)
    if first == beyond:
        return stop if last else start
    return places[beyond - 1] if last else places[first]


def _json(value: Any) -> Json:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
