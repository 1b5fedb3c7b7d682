"""What somebody reported of another memory, replayed under `mem`: avoided, or, where nobody could, told apart."""

import json
from pathlib import Path
from typing import Any

import pytest

from memcli.budget.findings import CODES
from tests.budget_runs import findings, messages_of, run, said

FOLDER = Path(__file__).parents[2] / "fixtures/budget_reports"
REPORTS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}

AVOIDED = [
    "history_begins_with_a_tool_message",
    "one_turn_triggers_a_flush",
    "system_message_evicted",
    "thinking_counts_as_nothing",
    "tool_calls_count_as_nothing",
]
NOT_BY_THE_POLICY_ALONE = [
    "condensing_leaves_too_many_facts",
    "highest_priority_dropped_first",
    "initial_token_count",
]


def messages(case: dict[str, Any]) -> list[Any]:
    return messages_of(case["transcript"], case.get("tool_calls", "kwargs"))


def given(case: dict[str, Any], **changed: Any) -> dict[str, Any]:
    return {"policy": case["policy"], "blocks": case.get("blocks", []), **case["settings"], **changed}


def test_each_report_is_either_avoided_or_said_not_to_be():
    assert sorted([*AVOIDED, *NOT_BY_THE_POLICY_ALONE]) == sorted(REPORTS)


@pytest.mark.parametrize("name", AVOIDED)
def test_mem_does_not_do_what_was_reported_with_the_same_transcript_and_limit(name):
    case = REPORTS[name]

    assert case["finding"] in findings(messages(case), **given(case))
    assert case["finding"] not in findings(messages(case), **given(case, policy="mem"))


def test_mem_sends_no_tool_result_without_its_call_at_any_limit():
    case = REPORTS["history_begins_with_a_tool_message"]
    talk = messages(case)
    whole = run(talk, policy="mem").totals.tokens

    runs = [run(talk, policy="mem", token_limit=limit) for limit in range(1, whole + 1)]
    left = [{fate.index for fate in made.fates if fate.ended == "window"} for made in runs]
    assert {1, 2} <= left[-1]
    assert not {1, 2} & left[0]
    assert all((1 in window) == (2 in window) for window in left)


def test_mem_pins_the_system_message_at_every_limit_that_holds_it_and_the_newest_message():
    case = REPORTS["system_message_evicted"]
    talk = messages(case)
    made = run(talk, policy="mem", **case["settings"])
    least = made.fates[0].real + made.fates[-1].real

    assert made.totals.flushes > 0
    for limit in range(least, made.totals.tokens, 7):
        fates = run(talk, policy="mem", token_limit=limit).fates
        assert (fates[0].ended, fates[-1].ended) == ("window", "window")
    assert run(talk, policy="mem", token_limit=least - 1).refused is not None


@pytest.mark.parametrize("name", ["thinking_counts_as_nothing", "tool_calls_count_as_nothing"])
def test_mem_sends_nothing_where_llamaindex_sends_more_than_the_limit_without_knowing(name):
    case = REPORTS[name]
    theirs, ours = run(messages(case), **given(case)), run(messages(case), **given(case, policy="mem"))

    assert theirs.totals.thought <= theirs.totals.limit < theirs.totals.real
    assert ours.totals.thought == ours.totals.real <= ours.totals.limit
    assert "over-limit" in findings(messages(case), **given(case, policy="mem"))


def test_mem_cannot_send_a_turn_that_is_too_large_and_says_so_and_goes_on_after_it():
    case = REPORTS["one_turn_triggers_a_flush"]
    made = run(messages(case), **given(case, policy="mem"))

    told = findings(messages(case), **given(case, policy="mem"))["over-limit"]
    assert (told.message, told.tokens) == (2, 9)
    assert told.text == (
        "no prompt could be made after write 2: the newest group of messages (messages 1 to 2) has 69: together 9 "
        "more than the limit of 60 tokens; at the end there is one again"
    )
    assert told.remedy == "raise --token-limit by 9, or shorten what is that large"
    assert (made.refused, made.totals.over, made.fates[-1].ended) == (None, 0, "window")
    assert "over-limit" not in findings(messages(case), **given(case, policy="mem", token_limit=69))


def test_mem_does_not_raise_for_what_is_always_sent_and_too_large_but_it_cannot_make_it_fit():
    case = REPORTS["initial_token_count"]
    always = case["settings"]["initial_token_count"]
    limit = case["settings"]["token_limit"]
    talk = messages_of([*said(f"system:{always}"), *case["transcript"]])

    assert "Initial token count exceeds" in findings(messages(case), **given(case))["over-limit"].text
    told = findings(talk, policy="mem", token_limit=limit)["over-limit"]
    assert told.tokens == always + 1 - limit
    assert f"the system message (message 0) has {always}" in told.text
    assert "over-limit" not in findings(talk, policy="mem", token_limit=always + 1)


def test_mem_leaves_out_the_less_important_block_but_a_static_text_it_cannot_shorten():
    case = REPORTS["highest_priority_dropped_first"]
    theirs, ours = run(messages(case), **given(case)), run(messages(case), **given(case, policy="mem"))

    assert {block.name: block.fate for block in theirs.blocks} == {"facts": "dropped", "passages": "whole"}
    assert {block.name: block.fate for block in ours.blocks} == {"facts": "whole", "passages": "dropped"}
    assert "block-dropped-whole" in findings(messages(case), **given(case, policy="mem"))
    # As facts, one by one, the same words give way a little each.
    shrinking = [
        {"type": "facts", "name": block["name"], "facts": [f"{word} {at}" for at, word in enumerate(words)]}
        for block in case["blocks"]
        if (words := block["content"].split())
    ]
    fates = run(messages(case), **given(case, policy="mem", blocks=shrinking)).blocks
    assert {block.fate for block in fates} == {"shortened"}
    assert "block-dropped-whole" not in findings(messages(case), **given(case, policy="mem", blocks=shrinking))


def test_a_block_of_llamaindex_keeps_too_many_facts_under_mem_too_and_the_block_of_mem_does_not():
    case = REPORTS["condensing_leaves_too_many_facts"]
    most = case["blocks"][0]["max_facts"]
    own = [{"type": "facts", "name": "facts", "facts": [], "learn": True, "max_facts": most}]

    for policy in ("llamaindex", "mem"):
        told = findings(messages(case), **given(case, policy=policy))["facts-over-max"]
        assert "or take a block of type facts" in told.remedy
        assert "facts-over-max" not in findings(messages(case), **given(case, policy=policy, blocks=own))
    shown = [
        piece for piece in run(messages(case), **given(case, policy="mem", blocks=own)).prompt if "one" in piece.text
    ]
    assert shown
    assert not any("three" in piece.text for piece in shown)


@pytest.mark.parametrize("name", REPORTS)
def test_mem_is_never_the_remedy_for_what_happens_under_mem(name):
    case = REPORTS[name]
    theirs = findings(messages(case), **given(case))
    ours = findings(messages(case), **given(case, policy="mem"))

    assert theirs.keys() <= CODES.keys()
    assert not [finding.remedy for finding in ours.values() if "--policy mem" in finding.remedy]
