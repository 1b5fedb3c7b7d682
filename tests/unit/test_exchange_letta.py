"""Letta agent files: conversations, and what the memory blocks remember."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memcli import exchange
from memcli.exchange import Opened
from memcli.facts import Remembered, ToolCall, Turn
from memcli.terms import Role

FIXTURES = Path(__file__).parents[2] / "fixtures"
COUNTS = {
    row["file"]: row
    for row in json.loads((FIXTURES / "EXPECTED_COUNTS.json").read_text(encoding="utf-8"))
    if row["file"].startswith("letta/")
}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}}


def opened(tmp_path: Path, value: Any) -> Opened:
    path = tmp_path / "agent.af"
    path.write_text(json.dumps(value), encoding="utf-8")
    return exchange.open_file(str(path))


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


def agent(*messages: Any, **beside: Any) -> dict[str, Any]:
    return {"agents": [{"id": "agent-0", "name": "sam", "messages": list(messages), **beside}], "blocks": []}


def turns(tmp_path: Path, *messages: Any) -> tuple[Turn, ...]:
    return opened(tmp_path, agent(*messages)).conversations[0].turns


def block(value: Any, label: Any = "human", **beside: Any) -> dict[str, Any]:
    return {"label": label, "value": value, "id": "block-0", **beside}


def remembered(tmp_path: Path, *blocks: Any) -> tuple[list[str], list[str]]:
    """Return what blocks remember, and what is told of them."""
    found = opened(tmp_path, {"agents": [], "blocks": [block("I drink tea", "control"), *blocks]})
    texts = [item.text for item in found.remembered]
    assert texts[0] == "control: I drink tea"
    return texts[1:], [warned.message for warned in found.warnings]


@pytest.mark.parametrize("name", COUNTS)
def test_a_real_file_gives_the_messages_that_a_careful_reader_counts(name):
    found = exchange.open_file(str(FIXTURES / name))

    every = [turn for conversation in found.conversations for turn in conversation.turns]
    counted = {
        "conversations": len(found.conversations),
        "messages": len(every),
        "roles": Counter(str(turn.role) for turn in every),
        "tool_calls": sum(len(turn.tool_calls) for turn in every),
        "open_calls": sum("without a result" in warned.message for warned in found.warnings),
        "orphan_results": sum("without its call" in warned.message for warned in found.warnings),
        "sha256": found.digest,
    }
    full = {dict(item.extra)["block"] for item in found.remembered}
    empty = sum(warned.message.endswith("is empty") for warned in found.warnings)
    assert counted == {key: COUNTS[name][key] for key in counted}
    assert f"{len(full) + empty} blocks" == COUNTS[name]["facts"]


def test_the_lines_of_a_real_block_are_statements_and_its_gaps_are_told():
    found = exchange.open_file(str(FIXTURES / "letta/lt01_memgpt_convo.af"))

    assert [item.text for item in found.remembered if item.subject == "human"] == [
        "human: First name: Chad",
        "human: Gender: Male",
        "human: Occupation: Computer science PhD student at UC Berkeley",
        "human: Interests: Formula 1, Sailing, Taste of the Himalayas Restaurant in Berkeley, CSGO",
    ]
    gaps = [warned.message for warned in found.warnings if "only holds a place" in warned.message]
    assert [gap.rpartition(": ")[0].rpartition(": ")[2] + gap[-4:] for gap in gaps[1:]] == [
        '"Last name: ?"',
        '"Age: ?"',
        '"Nationality: ?"',
    ]
    assert found.remembered[0].owner == "memgpt_agent"


def test_a_file_that_is_one_string_of_json_is_read(tmp_path):
    value = agent({"role": "user", "content": text("hi"), "id": "m0"})

    assert opened(tmp_path, json.dumps(value)).conversations == opened(tmp_path, value).conversations


def test_messages_out_of_the_context_stay_and_are_marked(tmp_path):
    messages = [{"role": "user", "content": text(words), "id": f"m{words}"} for words in "ab"]

    newer = opened(tmp_path, agent(*messages, in_context_message_ids=["mb"]))
    older = opened(
        tmp_path,
        {"agent_type": "memgpt_agent", "name": "sam", "core_memory": [block("I drink tea")]}
        | {"messages": messages, "in_context_message_indices": [1]},
    )

    for found in (newer, older):
        (chat,) = found.conversations
        assert [turn.extra for turn in chat.turns] == [(("status", "archived"),), ()]
        assert [warned.message for warned in found.warnings] == [
            '1 of 2 messages of "sam" are out of its context; kept in their place with the status archived'
        ]
    assert [item.text for item in older.remembered] == ["human: I drink tea"]


def test_a_result_that_stands_twice_is_taken_once(tmp_path):
    asked, answered = turns(
        tmp_path,
        {"role": "assistant", "content": [], "tool_calls": [CALL]},
        {
            "role": "tool",
            "content": text("found"),
            "tool_call_id": "c1",
            "tool_returns": [{"tool_call_id": "c1", "status": "error", "func_response": "found", "stdout": ["log"]}],
        },
    )

    assert asked.tool_calls == (ToolCall(id="c1", name="look", arguments='{"q": 1}'),)
    assert (answered.role, answered.content, answered.name) == (Role.TOOL, "found", "look")
    assert answered.extra == (("tool_status", "error"), ("stdout", '["log"]'))


def test_a_result_without_content_is_taken_from_its_copy(tmp_path):
    _, answered = turns(
        tmp_path,
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": [], "tool_returns": [{"tool_call_id": "c1", "func_response": "found"}]},
    )

    assert (answered.content, answered.tool_call_id) == ("found", "c1")


def test_results_of_parallel_calls_are_a_message_each(tmp_path):
    found = opened(
        tmp_path,
        agent(
            {"role": "assistant", "content": [], "tool_calls": [CALL, {**CALL, "id": "c2"}]},
            {
                "role": "tool",
                "content": [*text("one"), *text("two")],
                "tool_call_id": "c1",
                "tool_returns": [
                    {"tool_call_id": "c1", "func_response": "one"},
                    {"tool_call_id": "c2", "func_response": "two", "status": "error"},
                ],
            },
        ),
    )

    _, first, second = found.conversations[0].turns
    assert (first.tool_call_id, first.content, first.extra) == ("c1", "one", ())
    assert (second.tool_call_id, second.content, second.extra) == ("c2", "two", (("tool_status", "error"),))
    assert found.warnings == ()


def test_the_envelope_around_what_a_user_said_is_opened(tmp_path):
    packed = {"type": "user_message", "message": "I moved to Lisbon", "time": "2025-01-02 03:04:05 AM UTC+0000"}
    event = {"type": "heartbeat", "reason": "a call was made", "time": "now"}

    said, beat, plain = turns(
        tmp_path,
        {"role": "user", "content": text(json.dumps(packed)), "created_at": "2025-01-02T03:04:05Z"},
        {"role": "user", "content": text(json.dumps(event))},
        {"role": "user", "content": text('{"type": "pizza"}')},
    )

    assert (said.content, said.name, said.extra) == ("I moved to Lisbon", None, (("envelope.time", packed["time"]),))
    assert said.at == 1_735_787_045_000_000
    assert (beat.content, beat.name) == (json.dumps(event), "heartbeat")
    assert (plain.content, plain.name) == ('{"type": "pizza"}', None)


def test_parts_become_thinking_calls_and_notes(tmp_path):
    (turn,) = turns(
        tmp_path,
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "reasoning": "hm", "signature": "c2ln"},
                {"type": "redacted_reasoning", "data": "QUFB"},
                {"type": "text", "text": "look"},
                {"type": "tool_call", "id": "c1", "name": "look", "input": {"q": 1}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUFB"}},
            ],
            "tool_calls": [CALL],
        },
    )

    assert (turn.content, turn.thinking) == ("look", "hm")
    assert turn.tool_calls == (ToolCall(id="c1", name="look", arguments='{"q": 1}'),)
    assert turn.attachments == ("thinking that was redacted", "image image/png")


def test_an_approval_is_the_agents_question_or_the_persons_answer(tmp_path):
    asked, answered = turns(
        tmp_path,
        {"role": "approval", "content": [], "tool_calls": [CALL]},
        {"role": "approval", "content": [], "approve": False, "denial_reason": "not now"},
    )

    assert (asked.role, answered.role) == (Role.ASSISTANT, Role.USER)
    assert (answered.raw_role, answered.extra) == ("approval", (("approve", "false"), ("denial_reason", "not now")))


@pytest.mark.parametrize(
    "gap",
    [
        "Name: [unknown]",
        "Name: ?",
        "Age: to be filled out",
        "Job: TBD",
        "- City: n/a",
        "[Your name]",
        "Name: {{user_name}}",
        "Nothing yet.",
        "Likes: not yet known",
    ],
)
def test_a_placeholder_is_told_and_not_remembered(tmp_path, gap):
    texts, told = remembered(tmp_path, block(f"{gap}\nDrinks tea"))

    assert texts == ["human: Drinks tea"]
    assert told == [f'the block "human": not taken, since it only holds a place: {json.dumps(gap.removeprefix("- "))}']


@pytest.mark.parametrize(
    "line",
    [
        "Likes [jazz, tea]",
        "Known unknowns bother her: unknown pleasures is her favourite record",
        "She asked what to do next?",
        "Favourite band: The Who",
        "Team: none of the big ones",
    ],
)
def test_what_only_looks_like_a_placeholder_is_remembered(tmp_path, line):
    assert remembered(tmp_path, block(line)) == ([f"human: {line}"], [])


def test_headings_stand_in_front_of_the_lines_below_them(tmp_path):
    texts, told = remembered(
        tmp_path,
        block("# Food\n- Likes tea\n* Hates milk\n\nPlaces:\n1. Lives in Lisbon\n<notes>\nWorks at home\n\n## Later"),
    )

    assert texts == [
        "human: Food: Likes tea",
        "human: Food: Hates milk",
        "human: Places: Lives in Lisbon",
        "human: Works at home",
    ]
    assert told == ['the block "human": not taken, since nothing stands under it: "Later"']


def test_sentences_of_a_line_are_apart_and_quotations_whole(tmp_path):
    texts, _ = remembered(
        tmp_path,
        block('Met Dr. Low at 5 p.m. in Rome. Likes 2.0! Says "So it is. Or is it?" often. 彼は東京に住む。茶が好き。'),
    )

    assert texts == [
        "human: Met Dr. Low at 5 p.m. in Rome.",
        "human: Likes 2.0!",
        'human: Says "So it is. Or is it?" often.',
        "human: 彼は東京に住む。",
        "human: 茶が好き。",
    ]


def test_a_block_carries_what_else_is_said_of_it(tmp_path):
    found = opened(
        tmp_path,
        {"agents": [{"id": "a", "name": "sam", "messages": [], "block_ids": ["block-0"]}]}
        | {"blocks": [block("Drinks tea", read_only=True, limit=5, updated_at="2025-01-02T03:04:05Z")]},
    )

    assert found.remembered == (
        Remembered(
            format="letta",
            text="human: Drinks tea",
            own="Drinks tea",
            subject="human",
            owner="sam",
            at=1_735_787_045_000_000,
            extra=(("block", "block-0"), ("read_only", "true"), ("limit", "5")),
            line=1,
        ),
    )


def test_blocks_of_several_agents_say_whose_they_are(tmp_path):
    found = opened(
        tmp_path,
        {"agents": [{"id": name, "name": name, "block_ids": [name, "both"]} for name in ("sam", "eve")]}
        | {
            "blocks": [
                block("Is calm", "persona", id="sam"),
                block("Is quick", "persona", id="eve"),
                block("Is Chad", id="both"),
            ]
        },
    )

    assert [(item.text, item.owner) for item in found.remembered] == [
        ("sam persona: Is calm", "sam"),
        ("eve persona: Is quick", "eve"),
        ("human: Is Chad", None),
    ]


def test_what_is_no_memory_is_counted_and_secrets_are_not_shown(tmp_path):
    found = opened(
        tmp_path,
        {**agent({"role": "user", "content": text("hi")}, secrets={"KEY": "hush"}), "tools": [1, 2], "files": [{}]},
    )

    assert [warned.message for warned in found.warnings] == [
        "left behind, since it is no memory and no message: 2 tools, 1 files, 1 environment variables or secrets"
    ]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (7, "message 2: skipped what is no message: 7"),
        ({"role": "user", "content": 7}, None),
        ({"role": "user", "content": [7, None, "x"]}, None),
        ({"role": "boss", "content": "x"}, 'message 2: the role "boss" is not known; kept as unknown'),
        ({"role": "user", "content": "x", "tool_calls": 7}, "message 2: its tool_calls are no list: 7"),
        ({"role": "user", "content": "x", "tool_calls": [7]}, "message 2: skipped what is no tool call: 7"),
        ({"role": "tool", "content": "x", "tool_returns": 7}, "message 2: a tool result without its call, id null"),
        (
            {"role": "user", "content": [{"type": "smell"}]},
            'message 2: a part of type "smell" is not known; noted, not read',
        ),
    ],
)
def test_a_message_of_wrong_types_costs_a_warning(tmp_path, wrong, told):
    found = opened(tmp_path, agent({"role": "user", "content": text("tea")}, wrong))

    assert found.conversations[0].turns[0].content == "tea"
    assert [warned.message for warned in found.warnings] == ([] if told is None else [told])


@pytest.mark.parametrize("wrong", [7, None, [], {"label": 5}, block(None), block(["x"])])
def test_a_block_of_wrong_types_costs_a_warning(tmp_path, wrong):
    texts, told = remembered(tmp_path, wrong)

    assert texts == []
    assert [warning.partition(":")[0] for warning in told] == ["skipped a block without text"]
