"""What a simulation did, write by write, and its JSON form.

The JSON is that of traces recorded from LlamaIndex itself, so that the two can be compared field by field.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from memcli.budget.blocks import ModelCall
from memcli.budget.messages import Part, PartKind
from memcli.budget.policies.llamaindex import Batch, Prompt, Weighed
from memcli.budget.raised import Raised
from memcli.budget.settings import Settings
from memcli.record import record

_LONGEST_URL = 120

Json: TypeAlias = dict[str, Any]


@record
class Written:
    """What one write did to the window; both ranges are half-open and count from the first message."""

    tokens: tuple[int, ...]
    tokens_before: int
    triggered: bool
    batches: tuple[Batch, ...]
    window: tuple[int, int]
    window_tokens: int
    flushed_total: int
    over_threshold: bool
    first_role: str | None


@record
class Step:
    """One write: `set`, `put` or `put_messages`.

    Args:
        written: None where a message could not be made, so that nothing was written.
        block_state: What the fact and vector blocks hold, where a batch has just reached them.
        stage: Where `error` came up: `message` or `put`.
        prompt: What a prompt would hold now, where that was asked for.
    """

    op: str
    start: int
    stop: int
    written: Written | None = None
    model_calls: tuple[ModelCall, ...] = ()
    block_state: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    stage: str | None = None
    error: Raised | None = None
    prompt: Prompt | Raised | None = None


@record
class Trace:
    """A whole simulation.

    Args:
        settings: None where LlamaIndex refuses them, with `refused` in their place.
        prompts: What the prompt holds at the end, once for each time it was asked for.
        stored: How many messages were written in all.
        ties: How often a vector block had to choose between exactly equal batches.
    """

    settings: Settings | None
    refused: Raised | None = None
    steps: tuple[Step, ...] = ()
    prompts: tuple[Prompt | Raised, ...] = ()
    stored: int = 0
    window: tuple[int, int] = (0, 0)
    window_tokens: int = 0
    ties: int = 0


def as_json(trace: Trace) -> Json:
    """Return the trace as JSON values; numbers that JSON lacks are `nan`, `inf` and `-inf`."""
    if trace.settings is None:
        return {} if trace.refused is None else {"error": {"stage": "construct", **_error(trace.refused)}}
    start, stop = trace.window
    whole: Json = {"effective": _effective(trace.settings), "steps": [_step(step) for step in trace.steps]}
    if trace.prompts:
        whole["get"] = _prompt(trace.prompts[0])
    if len(trace.prompts) > 1:
        whole["get_again"] = [_prompt(prompt) for prompt in trace.prompts[1:]]
    whole["final"] = {
        "stored": trace.stored,
        "archived": start,
        "active": list(range(start, stop)),
        "queue_tokens": trace.window_tokens,
    }
    return whole


def _effective(settings: Settings) -> Json:
    return {
        "token_limit": settings.token_limit,
        "token_flush_size": settings.token_flush_size,
        "chat_history_token_ratio": _number(settings.chat_history_token_ratio),
        "flush_threshold": _number(settings.threshold),
        "insert_method": settings.insert_method.value,
    }


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _error(error: Raised) -> Json:
    return {"type": error.kind, "message": error.said}


def _step(step: Step) -> Json:
    made: Json = {"op": step.op, "indices": list(range(step.start, step.stop))}
    if step.written is not None:
        made |= _written(step.written)
    if step.model_calls:
        made["llm_calls"] = [_call(call) for call in step.model_calls]
    if step.block_state:
        made["block_state"] = {
            name: {what: list(texts) for what, texts in state.items()} for name, state in step.block_state.items()
        }
    if step.error is not None:
        made["error"] = {"stage": step.stage, **_error(step.error)}
    if step.prompt is not None:
        made["get"] = _prompt(step.prompt)
    return made


def _written(written: Written) -> Json:
    start, stop = written.window
    return {
        "tokens": list(written.tokens),
        "queue_tokens_before": written.tokens_before,
        "flush_triggered": written.triggered,
        "flushed": [
            {
                "indices": list(range(batch.start, batch.stop)),
                "tokens": batch.tokens,
                "to_blocks": list(batch.to_blocks),
            }
            for batch in written.batches
        ],
        "active": list(range(start, stop)),
        "active_count": stop - start,
        "queue_tokens": written.window_tokens,
        "flushed_total": written.flushed_total,
        "over_threshold": written.over_threshold,
        "first_active_role": written.first_role,
    }


def _call(call: ModelCall) -> Json:
    return {
        "kind": call.kind,
        "conversation_messages": call.messages,
        "existing_facts": call.existing,
        "returned": list(call.returned),
        # Every message is marked with its session on the way to the blocks.
        "session_id_leaked_into_kwargs": call.messages,
    }


def _prompt(prompt: Prompt | Raised) -> Json:
    if isinstance(prompt, Raised):
        return {"error": _error(prompt)}
    return {
        "gather_order": list(prompt.gather_order),
        "history_tokens": prompt.history_tokens,
        "block_tokens": dict(prompt.block_tokens),
        "blocks_tokens_total": prompt.blocks_tokens_total,
        "excess": prompt.excess,
        "truncate_calls": [
            {
                "block": call.block,
                "priority": call.priority,
                "asked": call.asked,
                "before": call.before,
                "after": call.after,
                "returned": call.returned,
            }
            for call in prompt.truncate_calls
        ],
        "block_tokens_after": dict(prompt.block_tokens_after),
        "fate": dict(prompt.fate),
        "rendered_order": list(prompt.rendered_order),
        "messages": _messages(prompt.messages),
        "total_tokens": prompt.total_tokens,
        "counted_tokens": prompt.counted_tokens,
        "over_limit_by": prompt.over_limit_by,
    }


def _messages(messages: Sequence[Weighed]) -> list[Json]:
    return [
        {
            "role": weighed.message.role,
            "tokens": weighed.tokens,
            "blocks": [_part(part) for part in weighed.message.parts],
            **({"additional_kwargs": weighed.message.kwargs} if weighed.message.kwargs else {}),
        }
        for weighed in messages
    ]


def _part(part: Part) -> Json:
    made: Json = {"type": part.kind.value}
    if part.kind is PartKind.TEXT:
        made["text"] = part.text
    elif part.url is not None:
        made["url"] = part.url if len(part.url) <= _LONGEST_URL else part.url[: _LONGEST_URL - 3] + "..."
    elif part.kind is PartKind.TOOL_CALL:
        made["tool_name"] = part.name
    return made
