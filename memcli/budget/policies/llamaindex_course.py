"""What the exact LlamaIndex policy did, in the shape that all policies share."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
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
    content_tokens,
    countable,
    message_tokens,
    parts_tokens,
    text_part,
)
from memcli.budget.outcome import BlockFate, Flushed, Piece
from memcli.budget.policies.llamaindex import Batch, Prompt
from memcli.budget.prompt import place_for, rendered
from memcli.budget.public import takes
from memcli.budget.raised import Raised
from memcli.budget.settings import KNOWN, Constructor, InsertMethod, Settings, settings_from
from memcli.budget.shrinking import RetrievedBlock
from memcli.budget.simulate import Plan, simulate
from memcli.budget.trace import Step, Trace
from memcli.errors import UsageError
from memcli.facts import Json


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
    job.tally.load(text for message in job.messages for text in countable(message))
    thought = [message_tokens(message, settings.estimates, job.tally) for message in job.messages]
    by_message = len(job.writes) == len(job.messages)
    sizes = tuple(stop - start for start, stop in zip((0, *job.writes), job.writes, strict=False))
    plan = Plan(batches=None if by_message else sizes)
    trace = simulate(job.messages, settings, count=job.tally, blocks=placed, plan=plan, counts=thought, calls=calls)
    return _Told(job, settings, placed, trace).whole(thought)


class _Told:
    """A trace that is retold."""

    __slots__ = ("_flushes", "_job", "_left", "_placed", "_settings", "_steps", "_takers", "_trace")

    def __init__(self, job: Job, settings: Settings, placed: Sequence[PlacedBlock], trace: Trace) -> None:
        self._job = job
        self._settings = settings
        self._placed = placed
        self._trace = trace
        self._takers = frozenset(block.name for block in placed if takes(block))
        self._left: dict[int, Left] = {}
        self._flushes: list[Flushed] = []
        self._steps: list[dict[str, Json]] = []

    def whole(self, thought: Sequence[int]) -> Course:
        for write, step in enumerate(self._trace.steps):
            self._step(write, step)
        failed = next((step.error for step in self._trace.steps if step.error is not None), None)
        for index in range(self._trace.stored, len(self._job.messages)):
            self._left[index] = Left(reason="never written, because a block failed before")
        prompt = self._trace.prompts[0]
        failed = prompt if isinstance(prompt, Raised) else failed
        sent = prompt if failed is None and isinstance(prompt, Prompt) else None
        pieces = [] if sent is None else self._pieces(sent, thought)
        return Course(
            effective=self._effective(),
            clamps=tuple(
                {"setting": clamp.setting, "given": _json(clamp.given), "used": clamp.used, "why": clamp.why}
                for clamp in self._settings.clamps
            ),
            thought=thought,
            left=self._left,
            flushes=tuple(self._flushes),
            steps=tuple(self._steps),
            prompt=tuple(pieces),
            blocks=tuple(self._fate(at, sent) for at in range(len(self._placed))),
            limit=self._settings.token_limit,
            snapshots=tuple(self._snapshots()),
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

    def _step(self, write: int, step: Step) -> None:
        written = step.written
        if written is None:
            return
        told = write_step(
            step.op,
            step.start,
            step.stop,
            before=written.tokens_before,
            after=written.window_tokens,
            window=written.window,
        )
        told |= {"triggered": written.triggered, "over_threshold": written.over_threshold}
        before = written.tokens_before
        for batch in written.batches:
            self._batch(write, step.start, before, batch)
            before -= batch.tokens
        told["flushed"] = [
            {"first": batch.start, "stop": batch.stop, "tokens": batch.tokens, "to_blocks": list(batch.to_blocks)}
            for batch in written.batches
        ]
        if step.model_calls:
            told["model_calls"] = [
                {"kind": call.kind, "messages": call.messages, "returned": list(call.returned)}
                for call in step.model_calls
            ]
        if step.error is not None:
            told["refused"] = step.error.message
        self._steps.append(told)

    def _batch(self, write: int, written: int, before: int, batch: Batch) -> None:
        """Retell a flush. The blocks that are named are those that keep it; LlamaIndex gives it to others too.

        Args:
            written: The first message of this write; it and those after it were in no prompt.
            before: Tokens in the window before the flush.
        """
        blocks = tuple(name for name in batch.to_blocks if name in self._takers)
        threshold = self._settings.threshold
        shown = int(threshold) if threshold.is_integer() else threshold
        reason = f"flushed: the window had {before} tokens, more than its threshold of {shown}"
        for index in range(batch.start, batch.stop):
            seen = write - 1 if index < written else None
            self._left[index] = Left(reason=reason, flush=len(self._flushes), last_seen=seen, blocks=blocks)
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

    def _snapshots(self) -> Iterator[Snapshot]:
        """Yield what each turn's prompt is made of; memory that follows the conversation is another at each."""
        follows = any(isinstance(placed.block, VectorBlock | RetrievedBlock) for placed in self._placed)
        fixed = any(isinstance(placed.block, StaticBlock) for placed in self._placed)
        role = self._settings.insert_method.value
        places = [at for at, message in enumerate(self._job.messages) if message.role == role]
        ends = [flushed.write for flushed in self._flushes]
        for write in self._job.spoken():
            if write >= len(self._steps):
                return
            written = self._trace.steps[write].written
            if written is None:
                return
            start, stop = written.window
            flushes = bisect_left(ends, write + 1)
            memory = (flushes if self._takers else 0, write if follows and flushes else 0)
            at = _place(places, start, stop, last=role == "user")
            there = bool(self._placed) and (fixed or flushes > 0)
            yield Snapshot(start=start, stop=stop, memory=memory if there else None, memory_at=at if there else None)

    # --- the prompt ---

    def _pieces(self, prompt: Prompt, thought: Sequence[int]) -> list[Piece]:
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
        pieces += [message_piece(self._job, index, thought[index]) for index in range(*self._trace.window)]
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
