"""ShareGPT data sets: who spoke, which call which observation answers, and what was never said."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.exchange import Opened
from memcli.facts import ToolCall
from memcli.terms import Role

FIXTURES = Path(__file__).parents[2] / "fixtures"
COUNTS = [
    row
    for row in json.loads((FIXTURES / "EXPECTED_COUNTS.json").read_text(encoding="utf-8"))
    if row["format"] == "sharegpt"
]
ASK = {"from": "human", "value": "where do I live?"}
ANSWER = {"from": "gpt", "value": "in Lisbon"}


def opened(tmp_path: Path, value: Any) -> Opened:
    path = tmp_path / "data.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return exchange.open_file(str(path))


def said(found: Opened) -> list[list[tuple[str, str]]]:
    return [[(str(turn.role), turn.content) for turn in conversation.turns] for conversation in found.conversations]


@pytest.mark.parametrize("row", COUNTS, ids=lambda row: row["file"])
def test_a_real_data_set_gives_the_messages_that_a_careful_reader_counts(row):
    found = exchange.open_file(str(FIXTURES / row["file"]))

    every = [turn for conversation in found.conversations for turn in conversation.turns]
    assert (found.format, len(found.conversations), len(every)) == ("sharegpt", row["conversations"], row["messages"])
    assert Counter(turn.role for turn in every) == row["roles"]
    assert sum(len(turn.tool_calls) for turn in every) == row["tool_calls"]
    assert all(turn.name for turn in every if turn.role is Role.TOOL)
    assert found.warnings == ()


def test_each_conversation_of_a_list_and_of_lines_is_read(tmp_path):
    one, two = {"id": "a", "conversations": [ASK]}, {"id": "b", "conversations": [ASK, ANSWER]}

    for text in (json.dumps([one, two]), f"{json.dumps(one)}\n{json.dumps(two)}\n"):
        found = opened(tmp_path, text)
        assert found.format == "sharegpt"
        assert [(talk.session, len(talk.turns)) for talk in found.conversations] == [("a", 1), ("b", 2)]


def test_the_system_s_words_come_first_and_the_tools_are_none(tmp_path):
    found = opened(tmp_path, [{"conversations": [ASK], "system": "be brief", "tools": '[{"name": "TOOL"}]'}])

    assert said(found) == [[("system", "be brief"), ("user", "where do I live?")]]
    assert "TOOL" not in repr(found)


@pytest.mark.parametrize(
    ("speaker", "role"),
    [
        ("human", Role.USER),
        ("user", Role.USER),
        ("GPT", Role.ASSISTANT),
        ("chatgpt", Role.ASSISTANT),
        ("bing", Role.ASSISTANT),
        ("system", Role.SYSTEM),
        ("observation", Role.TOOL),
        ("function_response", Role.TOOL),
    ],
)
def test_every_speaker_that_is_known_has_a_role(tmp_path, speaker, role):
    found = opened(tmp_path, [{"conversations": [{"from": speaker, "value": "x"}]}])

    assert [(turn.role, turn.raw_role) for turn in found.conversations[0].turns] == [(role, None)]


def test_a_speaker_that_is_not_known_is_kept_as_unknown(tmp_path):
    found = opened(tmp_path, [{"conversations": [{"from": "narrator", "value": "once"}, {"value": "upon"}]}])

    assert [(turn.role, turn.raw_role) for turn in found.conversations[0].turns] == [
        (Role.UNKNOWN, "narrator"),
        (Role.UNKNOWN, None),
    ]
    assert len(found.warnings) == 2


def test_a_call_is_answered_by_the_next_observation(tmp_path):
    calls = [{"name": "look", "arguments": {"q": 1}}, {"name": "save", "arguments": "{}"}]
    found = opened(
        tmp_path,
        [
            {
                "conversations": [
                    {"from": "function_call", "value": json.dumps(calls)},
                    {"from": "observation", "value": "found"},
                    {"from": "observation", "value": "saved"},
                ]
            }
        ],
    )

    called, first, second = found.conversations[0].turns
    assert called.tool_calls == (
        ToolCall(id=None, name="look", arguments='{"q":1}'),
        ToolCall(id=None, name="save", arguments="{}"),
    )
    assert (called.role, called.content) == (Role.ASSISTANT, "")
    assert [(turn.name, turn.content) for turn in (first, second)] == [("look", "found"), ("save", "saved")]
    assert found.warnings == ()


@pytest.mark.parametrize("value", ["look for it", '{"name": ', "[1]", '{"arguments": {}}', None, 5])
def test_a_call_that_is_none_is_kept_as_text_and_told(tmp_path, value):
    found = opened(tmp_path, [{"conversations": [{"from": "function_call", "value": value}, ASK]}])

    odd, asked = found.conversations[0].turns
    assert (odd.role, odd.tool_calls) == (Role.ASSISTANT, ())
    assert odd.content == ("" if value is None else str(value))
    assert asked.content == "where do I live?"
    assert any("is no call" in warned.message for warned in found.warnings)


@pytest.mark.parametrize("chosen", [ANSWER, "in Lisbon", [ANSWER], [ASK, ANSWER]])
def test_the_chosen_answer_was_said_and_the_rejected_one_never(tmp_path, chosen):
    bad = {"from": "gpt", "value": "REJECTED"}
    found = opened(tmp_path, [{"conversations": [ASK], "chosen": chosen, "rejected": bad}])

    assert said(found) == [[("user", "where do I live?"), ("assistant", "in Lisbon")]]
    assert "REJECTED" not in repr(found)
    assert [warned.message for warned in found.warnings] == ["1 rejected answer was not taken: nobody said them"]


def test_openai_s_messages_under_conversations_are_read_as_what_they_are(tmp_path):
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    talk = [{"role": "user", "content": "look"}, {"role": "assistant", "content": None, "tool_calls": [call]}]

    found = opened(tmp_path, [{"conversations": talk}])

    assert found.format == "sharegpt"
    assert [turn.role for turn in found.conversations[0].turns] == [Role.USER, Role.ASSISTANT]
    assert found.conversations[0].turns[1].tool_calls == (ToolCall(id="c1", name="look", arguments="{}"),)


@pytest.mark.parametrize("bad", [None, 5, {"conversations": "text"}, {"conversations": []}, {"other": 1}])
def test_one_bad_record_costs_no_other(tmp_path, bad):
    found = opened(tmp_path, [bad, {"conversations": [ASK]}])

    assert said(found) == [[("user", "where do I live?")]]
    assert len(found.warnings) == 1


@pytest.mark.parametrize("junk", [None, 5, "x", [1], {"from": 5, "value": {}}, {"from": "human"}, {"value": None}])
def test_a_turn_of_the_wrong_type_costs_no_other(tmp_path, junk):
    found = opened(tmp_path, [{"conversations": [junk, ASK]}])

    assert said(found)[0][-1] == ("user", "where do I live?")
    assert found.warnings


def test_a_bad_line_is_named_by_its_number(tmp_path):
    found = opened(tmp_path, f"{json.dumps({'conversations': [ASK]})}\n5\n{json.dumps({'conversations': [ASK]})}")

    assert [warned.line for warned in found.warnings] == [2]
    assert len(found.conversations) == 2


def test_conversations_of_something_else_are_refused(tmp_path):
    with pytest.raises(Unreadable, match="unrecognised format"):
        opened(tmp_path, {"conversations": [{"steps": ["greet"]}]})
    assert opened(tmp_path, {"conversations": [ASK]}).format == "sharegpt"
