"""Anthropic Messages: requests, answers, batches, and blocks that become messages."""

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
ASK = {"role": "user", "content": "where do I live?"}
USE = {"type": "tool_use", "id": "t1", "name": "look", "input": {"q": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "Lisbon"}
CALLED = {"role": "assistant", "content": [{"type": "text", "text": "a moment"}, USE]}
ANSWERED = {"role": "user", "content": [RESULT]}
ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [{"type": "text", "text": "in Lisbon"}],
    "stop_reason": "end_turn",
}


def written(tmp_path: Path, *lines: Any) -> str:
    path = tmp_path / "messages.json"
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return str(path)


def opened(tmp_path: Path, *lines: Any) -> Opened:
    return exchange.open_file(written(tmp_path, *lines))


def said(found: Opened) -> list[list[tuple[str, str]]]:
    return [[(str(turn.role), turn.content) for turn in conversation.turns] for conversation in found.conversations]


def test_a_real_request_gives_the_messages_that_a_careful_reader_counts():
    rows = json.loads((FIXTURES / "EXPECTED_COUNTS.json").read_text(encoding="utf-8"))
    (row,) = (row for row in rows if row["format"] == "anthropic_request")

    found = exchange.open_file(str(FIXTURES / row["file"]))

    (conversation,) = found.conversations
    assert found.format == "anthropic"
    assert Counter(turn.role for turn in conversation.turns) == row["roles"]
    assert sum(len(turn.tool_calls) for turn in conversation.turns) == row["tool_calls"]
    assert found.warnings == ()
    assert {turn.name for turn in conversation.turns if turn.role is Role.TOOL} == {"Bash", "Task"}
    assert "signature" not in repr(found)


@pytest.mark.parametrize("system", ["be brief", [{"type": "text", "text": "be brief", "cache_control": {}}]])
def test_the_system_s_words_come_first(tmp_path, system):
    found = opened(tmp_path, {"model": "claude-x", "system": system, "messages": [ASK]})

    assert said(found) == [[("system", "be brief"), ("user", "where do I live?")]]


def test_a_tool_result_is_a_message_and_what_the_user_adds_another(tmp_path):
    both = {"role": "user", "content": [RESULT, {"type": "text", "text": "and now?"}]}
    found = opened(tmp_path, {"messages": [ASK, CALLED, both]})

    _, called, result, added = found.conversations[0].turns
    assert called.tool_calls == (ToolCall(id="t1", name="look", arguments='{"q":1}'),)
    assert (result.role, result.name, result.content, result.tool_call_id) == (Role.TOOL, "look", "Lisbon", "t1")
    assert (added.role, added.content) == (Role.USER, "and now?")


def test_a_server_s_tool_answers_behind_its_call(tmp_path):
    use = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    hits = {
        "type": "web_search_tool_result",
        "tool_use_id": "s1",
        "content": [{"type": "web_search_result", "url": "u"}],
    }
    done = {"type": "text", "text": "found"}

    found = opened(tmp_path, {"messages": [ASK, {"role": "assistant", "content": [use, hits, done]}]})

    _, answered, result = found.conversations[0].turns
    assert (answered.content, len(answered.tool_calls)) == ("found", 1)
    assert (result.role, result.name) == (Role.TOOL, "web_search")
    assert found.warnings == ()


def test_images_and_documents_are_notes_and_thinking_is_kept_apart(tmp_path):
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAABBBB"}}
    document = {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}
    thinking = {"type": "thinking", "thinking": "hm", "signature": "SIGNED"}
    found = opened(
        tmp_path,
        {
            "messages": [
                {"role": "user", "content": [image, document, {"type": "text", "text": "what is it?"}]},
                {"role": "assistant", "content": [thinking, {"type": "redacted_thinking", "data": "SIGNED"}]},
            ]
        },
    )

    asked, thought = found.conversations[0].turns
    assert asked.attachments == ("image image/png", "document https://example.com/a.pdf")
    assert (thought.thinking, thought.content, thought.attachments) == ("hm", "", ("thinking that was redacted",))
    assert not any(word in repr(found) for word in ("SIGNED", "AAAA"))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([[ASK, CALLED, ANSWERED]], [["user", "assistant", "tool"]]),
        ([ASK, CALLED, ANSWERED], [["user", "assistant", "tool"]]),
        ([{"system": "s", "messages": [ASK]}, {"system": "s", "messages": [ASK]}], [["system", "user"]] * 2),
        ([[{"system": "s", "messages": [ASK]}, {"system": "s", "messages": [ASK]}]], [["system", "user"]] * 2),
        ([{"request": {"system": "s", "messages": [ASK]}, "response": ANSWER}], [["system", "user", "assistant"]]),
        ([ANSWER], [["assistant"]]),
        ([{"custom_id": "b1", "params": {"model": "claude-x", "messages": [ASK]}}], [["user"]]),
        ([{"custom_id": "b1", "result": {"type": "succeeded", "message": ANSWER}}], [["assistant"]]),
        ([{"model": "claude-x", "max_tokens": 5, "messages": [ASK]}], [["user"]]),
    ],
    ids=[
        "list of messages",
        "message a line",
        "request a line",
        "list of requests",
        "request and answer",
        "answer",
        "batch",
        "results of a batch",
        "named model",
    ],
)
def test_every_layout_gives_its_conversations(tmp_path, lines, expected):
    found = opened(tmp_path, *lines)

    assert found.format == "anthropic"
    assert [[role for role, _ in conversation] for conversation in said(found)] == expected
    assert found.warnings == ()


def test_an_answer_keeps_its_id_and_a_batch_its_own(tmp_path):
    found = opened(tmp_path, {"custom_id": "b1", "result": {"type": "succeeded", "message": ANSWER}})

    (conversation,) = found.conversations
    assert (conversation.session, conversation.turns[0].origin) == ("b1", "msg_1")


def test_messages_that_could_be_anybody_s_are_read_as_openai_s(tmp_path):
    assert opened(tmp_path, [ASK, {"role": "assistant", "content": "in Lisbon"}]).format == "openai"
    assert opened(tmp_path, [ASK, CALLED]).format == "anthropic"


def test_a_call_without_a_result_and_a_result_without_a_call_are_told(tmp_path):
    found = opened(tmp_path, {"messages": [ANSWERED, {**CALLED, "content": [{**USE, "id": "t2"}]}]})

    assert [warned.message for warned in found.warnings] == [
        'message 1: a tool result without its call, id "t1"',
        'message 2: a call of "look" without a result, id "t2"',
    ]


@pytest.mark.parametrize("junk", [None, 5, "x", [1], {"a": 1}, {"role": "user"}, {"role": 5, "content": []}])
def test_a_message_of_the_wrong_type_costs_no_other(tmp_path, junk):
    found = opened(tmp_path, {"system": "s", "messages": [junk, ASK]})

    assert said(found)[0][-1] == ("user", "where do I live?")
    assert found.warnings


@pytest.mark.parametrize(
    "junk", [None, 5, [1], {"a": 1}, {"type": 5}, {"type": "tool_use"}, {"type": "hologram"}, [[]]]
)
def test_a_block_of_the_wrong_type_costs_no_other(tmp_path, junk):
    found = opened(
        tmp_path, {"system": "s", "messages": [{"role": "user", "content": [junk, {"type": "text", "text": "hi"}]}]}
    )

    assert said(found)[0][-1] == ("user", "hi")
    assert found.warnings


def test_a_bad_line_is_named_by_its_number(tmp_path):
    path = Path(written(tmp_path, {"system": "s", "messages": [ASK]}, 5, {"system": "s", "messages": [ASK]}))
    found = exchange.open_file(str(path))

    assert [(warned.line, warned.message) for warned in found.warnings] == [(2, "skipped what is no message: 5")]
    assert len(found.conversations) == 2


def test_a_request_without_messages_is_no_success(tmp_path):
    path = written(tmp_path, {"system": "be brief", "messages": []})

    with pytest.raises(Unreadable):
        exchange.open_file(path)
    assert said(opened(tmp_path, {"system": "s", "messages": [ASK]})) == [
        [("system", "s"), ("user", "where do I live?")]
    ]
