"""What the run of LlamaIndex's memory tells of each write, against the memory written to message by message."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memcli.budget.blocks import block_from
from memcli.budget.messages import BudgetMessage
from memcli.budget.outcome import Columns, Fates, Steps
from memcli.budget.policies.llamaindex import Batch
from memcli.budget.presence import turns_of, writes_of
from memcli.budget.settings import settings_from
from memcli.budget.simulate import Plan, simulate
from memcli.budget.trace import Step
from memcli.facts import Json
from tests.budget_runs import messages_of, run, said, words

FACTS = {"type": "fact", "name": "facts", "max_facts": 2}
BREAKS = {**FACTS, "condense": "raise"}
NOTES = {"type": "vector", "name": "notes"}

roles = st.sampled_from(["user", "user", "assistant", "tool"])
texts = st.one_of(st.integers(0, 30).map(str), st.integers(0, 9).map(lambda number: f"FACT: {number}"))
talks = st.lists(st.tuples(roles, texts), max_size=25).map(
    lambda pairs: said(*[f"{who}:{what}" for who, what in pairs])
)
settings = st.fixed_dictionaries(
    {"token_limit": st.integers(10, 120), "chat_history_token_ratio": st.sampled_from([0.2, 0.7, 1.0])},
    optional={"token_flush_size": st.integers(1, 10)},
)
blocks = st.sampled_from([(), (FACTS,), (BREAKS,), (NOTES, BREAKS), (FACTS, NOTES)])


def told(messages: Sequence[BudgetMessage], sizes: tuple[int, ...] | None, placed: Any, chosen: Any) -> list[Json]:
    """Return what is told of each write of the memory that was written to one write after the other."""
    calls: list[Any] = []
    given = settings_from(chosen, blocks=[block["name"] for block in placed])
    trace = simulate(
        messages,
        given,
        count=words,
        blocks=[block_from(block, calls) for block in placed],
        plan=Plan(batches=sizes),
        calls=calls,
    )
    return [_step(step) for step in trace.steps]


def _step(step: Step) -> Json:
    written = step.written
    assert written is not None
    made: dict[str, Json] = {
        "op": step.op,
        "first": step.start,
        "stop": step.stop,
        "before": written.tokens_before,
        "after": written.window_tokens,
        "window": list(written.window),
        "flushed": [_batch(batch) for batch in written.batches],
        "triggered": written.triggered,
        "over_threshold": written.over_threshold,
    }
    if step.model_calls:
        made["model_calls"] = [
            {"kind": call.kind, "messages": call.messages, "returned": list(call.returned)} for call in step.model_calls
        ]
    if step.error is not None:
        made["refused"] = step.error.message
    return made


def _batch(batch: Batch) -> Json:
    return {"first": batch.start, "stop": batch.stop, "tokens": batch.tokens, "to_blocks": list(batch.to_blocks)}


@given(talks, settings, blocks, st.booleans())
def test_each_write_is_told_as_it_is_when_it_is_made_by_itself(talk, chosen, placed, by_turn):
    messages = messages_of(talk)
    turns = turns_of([message.role for message in messages])
    sizes = tuple(turns.count(turn) for turn in sorted(set(turns)))
    whole = by_turn and len(sizes) < len(messages)

    made = run(messages, blocks=placed, writes="turn" if by_turn else "message", **chosen)
    assert list(made.steps) == told(messages, sizes if whole else None, placed, chosen)


@given(st.lists(st.integers(0, 3), max_size=8), st.integers(0, 30))
def test_the_write_of_a_message_is_the_first_after_which_it_is_there(sizes, messages):
    ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]

    expected = [next((write for write, end in enumerate(ends) if at < end), len(ends)) for at in range(messages)]
    assert writes_of(messages, ends) == expected


@given(st.lists(roles, max_size=20))
def test_a_turn_begins_at_each_user_message_but_the_first(given_roles):
    users = [given_roles[: at + 1].count("user") for at in range(len(given_roles))]

    assert turns_of(given_roles) == [max(0, number - 1) for number in users]


def test_steps_are_a_sequence_of_what_is_told():
    steps = Steps((1, 2, 3), _told)

    assert list(steps) == [{"write": 0}, {"write": 1}, {"write": 2}]
    assert steps[-1] == {"write": 2}
    assert steps[1:] == ({"write": 1}, {"write": 2})
    assert steps == ({"write": 0}, {"write": 1}, {"write": 2})
    assert steps != Steps((1, 2), _told)


@given(talks, settings, blocks)
def test_fates_are_a_sequence_with_columns_of_what_is_in_them(talk, chosen, placed):
    fates = run(messages_of(talk), blocks=placed, **chosen).fates
    each = tuple(fates)

    assert isinstance(fates, Fates)
    assert [fate.index for fate in each] == list(range(len(talk)))
    assert fates == each
    assert hash(fates) == hash(each)
    assert fates[1:] == each[1:]
    seen, made = Columns.of(fates), Columns.of(each)
    assert [list(getattr(seen, field.name)) for field in dataclasses.fields(Columns)] == [
        getattr(made, field.name) for field in dataclasses.fields(Columns)
    ]


def test_fates_differ_where_one_of_them_does():
    fates = run(messages_of(said("user:1", "assistant:2"))).fates

    assert fates != tuple(fates)[:1]
    assert fates[-1].index == 1


def _told(write: int) -> dict[str, Json]:
    return {"write": write}
