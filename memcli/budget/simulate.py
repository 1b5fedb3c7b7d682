"""A transcript replayed under settings: every write, what left the window, and what the prompt holds.

`simulate` takes messages and settings and gives a `Trace`; `replay` takes a configuration and OpenAI's dictionaries
as they stand in a recorded case and gives its JSON; `flushes` gives what leaves and what stays, and nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from memcli.budget.blocks import FactBlock, ModelCall, PlacedBlock, VectorBlock, block_from
from memcli.budget.messages import (
    BudgetMessage,
    Count,
    from_openai,
    mapping_named,
    message_tokens,
)
from memcli.budget.policies.llamaindex import LlamaIndexMemory, Outcome, Prompt, Weighed
from memcli.budget.raised import Raised
from memcli.budget.settings import KNOWN, Constructor, Settings, settings_from
from memcli.budget.trace import Step, Trace, Written, as_json
from memcli.budget.window import Flushes, Timeline
from memcli.errors import UsageError
from memcli.record import record


class Get(StrEnum):
    """When the prompt is looked at."""

    END = "end"
    EVERY = "every"
    NONE = "none"


@record
class Plan:
    """How a transcript is written and read.

    Args:
        initial_history: So many messages are there before the first write; no flush looks at them until then.
        batches: Sizes of the writes, one message each after the last; None writes every message by itself.
        get_input: What the user is about to say when the prompt is looked at.
        repeat_get: How often the prompt is looked at again at the end.
        continue_on_error: Go on after a write that failed.
    """

    initial_history: int = 0
    batches: tuple[int, ...] | None = None
    get: Get = Get.END
    get_input: object = None
    repeat_get: int = 0
    continue_on_error: bool = False


def flushes(
    counts: Sequence[int], user_flags: Sequence[bool], settings: Settings, *, writes: Sequence[int] | None = None
) -> Flushes:
    """Return every flush and the window that is left, from counts alone.

    For many settings over one transcript make one `Timeline` and ask it instead.

    Args:
        writes: How many messages had been written after each write, ascending; None means one at a time.
    """
    return Timeline(counts, user_flags).flushes(
        threshold=settings.threshold, flush_size=settings.token_flush_size, writes=writes
    )


def simulate(
    messages: Sequence[BudgetMessage | Raised],
    settings: Settings,
    *,
    count: Count,
    blocks: Sequence[PlacedBlock] = (),
    plan: Plan | None = None,
    counts: Sequence[int] | None = None,
    calls: list[ModelCall] | None = None,
) -> Trace:
    """Return all that happens to the messages. Each is counted once.

    Args:
        messages: Oldest first; one that could not be made stands as what LlamaIndex raises, and ends it there.
        blocks: Used up by this: they keep what they are given.
        counts: What each message counts as, where somebody has counted already; of one that could not be made, 0.
        calls: The list in which the models of the fact blocks write down what they were asked.
    """
    run = _Run(messages, settings, count=count, blocks=blocks, counts=counts, calls=[] if calls is None else calls)
    return run.whole(Plan() if plan is None else plan)


def replay(config: Mapping[str, Any], transcript: Sequence[object], count: Count) -> dict[str, Any]:
    """Return the trace of a recorded case as JSON values.

    Args:
        count: What counts in the encoding of the configuration.

    Raises:
        UsageError: The configuration says something that no case can mean.
    """
    return as_json(simulate_config(config, transcript, count))


def simulate_config(config: Mapping[str, Any], transcript: Sequence[object], count: Count) -> Trace:
    """Return what happens to a transcript under a configuration.

    Raises:
        UsageError: The configuration says something that no case can mean.
    """
    mapping = mapping_named(config.get("mapping", "openai_dict"))
    plan = plan_from(config)
    calls: list[ModelCall] = []
    try:
        blocks = [block_from(block, calls) for block in config.get("blocks", [])]
        given = {"session_id": "s1", **{name: _spelled(config[name]) for name in KNOWN if name in config}}
        names = [placed.name for placed in blocks]
        settings = settings_from(given, blocks=names, constructor=_constructor(config))
    except Raised as problem:
        return Trace(settings=None, refused=problem)
    messages = [_made(message, mapping) for message in transcript]
    return simulate(messages, settings, count=count, blocks=blocks, plan=plan, calls=calls)


def plan_from(config: Mapping[str, Any]) -> Plan:
    """Return the plan that a configuration describes.

    Raises:
        UsageError: A number of messages is no whole number or below zero, or `get` is no word for when.
    """
    batches = config.get("batches")
    try:
        plan = Plan(
            initial_history=int(config.get("initial_history", 0)),
            batches=None if batches is None else tuple(int(size) for size in batches),
            get=Get(config.get("get", "end")),
            get_input=config.get("get_input"),
            repeat_get=int(config.get("repeat_get", 0)),
            continue_on_error=bool(config.get("continue_on_error")),
        )
    except (TypeError, ValueError) as problem:
        raise UsageError(
            f"the plan of the simulation cannot be read: {problem}",
            hint="give whole numbers for initial_history, batches and repeat_get, and end, every or none for get",
        ) from problem
    if min((plan.initial_history, *(plan.batches or ()))) < 0:
        raise UsageError("a write of fewer than no messages was asked for", hint="give sizes of zero or more")
    return plan


def _constructor(config: Mapping[str, Any]) -> Constructor:
    name = config.get("constructor", "from_defaults")
    try:
        return Constructor(name)
    except ValueError as problem:
        raise UsageError(f"there is no constructor called {name}", hint="take from_defaults or direct") from problem


def _spelled(value: object) -> object:
    """Return the number that JSON has no spelling for, or the value as it is."""
    return float(value) if isinstance(value, str) and value in ("nan", "inf", "-inf") else value


def _made(message: object, mapping: Any) -> BudgetMessage | Raised:
    try:
        return from_openai(message, mapping)
    except Raised as problem:
        return problem


def _writes(total: int, plan: Plan) -> Iterator[tuple[str, int, int]]:
    """Yield each write: what it is called, its first message and the one after its last."""
    at = plan.initial_history
    if at:
        yield "set", 0, at
    for size in plan.batches or ():
        if at >= total:
            return
        yield "put_messages", at, min(at + size, total)
        at += size
    for place in range(at, total):
        yield "put" if plan.batches is None else "put_messages", place, place + 1


class _Run:
    """One simulation while it goes on."""

    __slots__ = ("_blocks", "_calls", "_count", "_counts", "_flushed", "_memory", "_messages", "_settings")

    def __init__(
        self,
        messages: Sequence[BudgetMessage | Raised],
        settings: Settings,
        *,
        count: Count,
        blocks: Sequence[PlacedBlock],
        counts: Sequence[int] | None,
        calls: list[ModelCall],
    ) -> None:
        self._messages = messages
        self._settings = settings
        self._count = count
        self._counts = counts
        self._blocks = blocks
        self._calls = calls
        self._memory = LlamaIndexMemory(settings, blocks, count)
        self._flushed = 0

    def whole(self, plan: Plan) -> Trace:
        """Return the trace of every write and of the prompts at the end."""
        steps: list[Step] = []
        for op, start, stop in _writes(len(self._messages), plan):
            step = self._step(op, start, stop, plan)
            steps.append(step)
            if step.stage == "message" or (step.error is not None and not plan.continue_on_error):
                break
        times = 0 if plan.get is Get.NONE else 1 + max(0, plan.repeat_get)
        prompts = tuple(self._prompt(plan) for _ in range(times))
        vectors = [placed.block for placed in self._blocks if isinstance(placed.block, VectorBlock)]
        return Trace(
            settings=self._settings,
            steps=tuple(steps),
            prompts=prompts,
            stored=self._memory.window[1],
            window=self._memory.window,
            window_tokens=self._memory.window_tokens,
            ties=sum(vector.ties for vector in vectors),
        )

    def _step(self, op: str, start: int, stop: int, plan: Plan) -> Step:
        try:
            messages = [self._weighed(place) for place in range(start, stop)]
        except Raised as problem:
            return Step(op=op, start=start, stop=stop, stage="message", error=problem)
        before = sum(weighed.tokens for weighed in messages)
        called = len(self._calls)
        if op == "set":
            self._memory.set(messages)
            outcome = Outcome()
        else:
            before += self._memory.window_tokens
            outcome = self._memory.put(messages)
        stopped = outcome.error is not None and not plan.continue_on_error
        return Step(
            op=op,
            start=start,
            stop=stop,
            written=self._written(messages, before, outcome, managed=op != "set"),
            model_calls=tuple(self._calls[called:]),
            block_state=self._state() if outcome.batches else {},
            stage="put" if outcome.error is not None else None,
            error=outcome.error,
            prompt=self._prompt(plan) if plan.get is Get.EVERY and not stopped else None,
        )

    def _weighed(self, place: int) -> Weighed:
        """Return a message with its count.

        Raises:
            Raised: There is none at that place, or it could not be made.
        """
        if place >= len(self._messages):
            raise Raised("IndexError", "list index out of range")
        message = self._messages[place]
        if isinstance(message, Raised):
            raise message
        if self._counts is not None:
            return Weighed(message=message, tokens=self._counts[place])
        return Weighed(message=message, tokens=message_tokens(message, self._settings.estimates, self._count))

    def _written(self, messages: Sequence[Weighed], before: int, outcome: Outcome, *, managed: bool) -> Written:
        self._flushed += sum(batch.stop - batch.start for batch in outcome.batches)
        tokens = self._memory.window_tokens
        return Written(
            tokens=tuple(weighed.tokens for weighed in messages),
            tokens_before=before,
            triggered=managed and before > self._settings.threshold,
            batches=outcome.batches,
            window=self._memory.window,
            window_tokens=tokens,
            flushed_total=self._flushed,
            over_threshold=tokens > self._settings.threshold,
            first_role=self._memory.first_role,
        )

    def _state(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Return what the fact blocks hold, then the vector blocks."""
        facts = {
            placed.name: {"facts": tuple(placed.block.facts)}
            for placed in self._blocks
            if isinstance(placed.block, FactBlock)
        }
        nodes = {
            placed.name: {"nodes": tuple(placed.block.nodes)}
            for placed in self._blocks
            if isinstance(placed.block, VectorBlock)
        }
        return facts | nodes

    def _prompt(self, plan: Plan) -> Prompt | Raised:
        try:
            return self._memory.get(plan.get_input)
        except Raised as problem:
            return problem
