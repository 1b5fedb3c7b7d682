"""The older ChatMemoryBuffer: traces recorded from the library, and the run that all policies share."""

import json
from pathlib import Path

import pytest

from memcli.budget.honest import Tally
from memcli.budget.messages import BudgetMessage, text_part
from memcli.budget.policies.buffer import Joined
from memcli.budget.raised import Raised
from memcli.budget.run import run
from memcli.tokens import counter
from tests.budget_traces import apart
from tests.buffer_traces import replayed

FIXTURES = Path(__file__).parents[2] / "fixtures/budget_buffer"
CASES = sorted(FIXTURES.glob("*.json"))


def words(text):
    return len(text.split())


def said(text, role="user"):
    return BudgetMessage(role=role, parts=(text_part(text),))


def buffered(*messages, **settings):
    return run(messages, policy="buffer", settings=settings, count=words, encoding="words")


def test_there_are_cases_of_every_kind():
    assert {case.stem.split("_")[0] for case in CASES} >= {"limit", "error", "initial", "cut", "count"}
    assert len(CASES) >= 30


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_recorded_case_is_replayed_to_the_token(case):
    recorded = json.loads(case.read_text(encoding="utf-8"))

    assert apart(replayed(recorded["config"], recorded["transcript"]), recorded["expected"]) == []


@pytest.mark.parametrize(
    "texts",
    [
        ["a  ", "  ", "", "\n\n", " b\t", "\tc 42", "'s done"],
        ["", "", "", "x", "", ""],
        ["one.", "\n\n  two", "three \n", " ", "4"],
        ["don", "'t", "...", "/etc", "\u00a0é", "\u200b", "日本"],
    ],
)
@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base", "words", "chars"])
def test_every_stretch_counts_as_its_joined_text(texts, encoding):
    count = counter(encoding, special=True)
    joined = Joined([said(text) for text in texts], Tally(count))

    for start in range(len(texts)):
        for stop in range(start, len(texts) + 1):
            assert joined.tokens(start, stop) == count(" ".join(texts[start:stop]))


def test_messages_before_the_prompt_are_dropped_and_nothing_is_flushed():
    made = buffered(said("one two three"), said("four", "assistant"), said("five six"), token_limit=3)

    assert [(fate.ended, fate.last_seen) for fate in made.fates] == [("dropped", 0), ("dropped", 1), ("window", 2)]
    assert made.flushes == ()
    assert (made.totals.thought, made.totals.real, made.totals.over) == (2, 2, 0)


def test_what_it_does_not_count_is_told():
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "a b c"}}
    made = buffered(
        said("where is it"), BudgetMessage(role="assistant", parts=(), kwargs={"tool_calls": [call]}), token_limit=10
    )

    assert [(fate.thought, fate.real) for fate in made.fates] == [(3, 3), (1, 5)]
    assert (made.totals.thought, made.totals.real, made.totals.uncounted) == (4, 8, 4)


def test_initial_tokens_stand_in_the_prompt_and_take_from_the_limit():
    made = buffered(said("one two"), said("three four"), token_limit=5, initial_token_count=3)

    assert [piece.name for piece in made.prompt] == ["initial tokens", "1"]
    assert made.totals.thought == 5


def test_more_initial_tokens_than_the_limit_give_no_prompt():
    made = buffered(said("one"), token_limit=5, initial_token_count=7)

    assert made.refused is not None
    assert "Initial token count exceeds token limit" in made.refused
    assert made.prompt == ()
    assert made.steps[-1]["short_by"] == 2
    assert (made.fates[0].last_seen, made.fates[0].reachable) == (None, False)
    assert buffered(said("one"), token_limit=8, initial_token_count=7).refused is None


def test_a_limit_below_one_is_refused_in_the_words_of_the_library():
    with pytest.raises(Raised, match="Token limit must be set and greater than 0"):
        buffered(said("one"), token_limit=0)
