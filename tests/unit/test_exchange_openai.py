"""OpenAI messages in the layouts they are met in."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memcli import exchange
from memcli.exchange import Opened
from memcli.exchange.transcripts.openai import OPENAI
from memcli.facts import ToolCall, Turn
from memcli.terms import Role

FIXTURES = Path(__file__).parents[2] / "fixtures"
COUNTS = [
    row
    for row in json.loads((FIXTURES / "EXPECTED_COUNTS.json").read_text(encoding="utf-8"))
    if row["format"].startswith("openai")
]
ASK = {"role": "user", "content": "where do I live?"}
ANSWER = {"role": "assistant", "content": "in Lisbon"}


def written(tmp_path: Path, text: str, name: str = "chat.json") -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def opened(tmp_path: Path, value: Any) -> Opened:
    return exchange.open_file(written(tmp_path, json.dumps(value)))


def turns(tmp_path: Path, *messages: Any) -> tuple[Turn, ...]:
    return opened(tmp_path, list(messages)).conversations[0].turns


def texts(found: Opened) -> list[list[str]]:
    return [[turn.content for turn in conversation.turns] for conversation in found.conversations]


@pytest.mark.parametrize("row", COUNTS, ids=lambda row: row["file"])
def test_a_real_file_gives_the_messages_that_a_careful_reader_counts(row):
    found = exchange.open_file(str(FIXTURES / row["file"]))

    every = [turn for conversation in found.conversations for turn in conversation.turns]
    assert {
        "conversations": len(found.conversations),
        "messages": len(every),
        "roles": Counter(turn.role for turn in every),
        "tool_calls": sum(len(turn.tool_calls) for turn in every),
        "open_calls": sum("without a result" in warned.message for warned in found.warnings),
        "orphan_results": sum("without its call" in warned.message for warned in found.warnings),
        "sha256": found.digest,
    } == {key: row[key] for key in row if key not in ("file", "format", "bytes", "facts")}
    assert found.format == "openai"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps([ASK, ANSWER]), [["where do I live?", "in Lisbon"]]),
        (json.dumps([ASK, ANSWER], indent=2), [["where do I live?", "in Lisbon"]]),
        (json.dumps({"messages": [ASK, ANSWER]}), [["where do I live?", "in Lisbon"]]),
        (json.dumps(ASK) + "\n" + json.dumps(ANSWER) + "\n", [["where do I live?", "in Lisbon"]]),
        (json.dumps(ASK, indent=2) + "\n" + json.dumps(ANSWER, indent=2), [["where do I live?", "in Lisbon"]]),
        (json.dumps(ASK) + json.dumps(ANSWER), [["where do I live?", "in Lisbon"]]),
        (
            json.dumps({"messages": [ASK]}) + "\n" + json.dumps({"messages": [ANSWER]}),
            [["where do I live?"], ["in Lisbon"]],
        ),
        (json.dumps([{"messages": [ASK]}, {"messages": [ANSWER]}]), [["where do I live?"], ["in Lisbon"]]),
        (json.dumps([[ASK], [ANSWER]]), [["where do I live?"], ["in Lisbon"]]),
        (json.dumps([ASK]) + "\n" + json.dumps([ANSWER]), [["where do I live?"], ["in Lisbon"]]),
        (json.dumps(json.dumps(json.dumps([ASK, ANSWER]))), [["where do I live?", "in Lisbon"]]),
        (json.dumps(ASK), [["where do I live?"]]),
    ],
    ids=[
        "array",
        "array over lines",
        "object",
        "message a line",
        "objects over lines",
        "objects without a break",
        "conversation a line",
        "conversations",
        "lists",
        "list a line",
        "text in text",
        "one message",
    ],
)
def test_every_layout_gives_its_conversations(tmp_path, text, expected):
    found = exchange.open_file(written(tmp_path, text))

    assert texts(found) == expected
    assert found.warnings == ()


def test_the_name_of_a_file_does_not_decide(tmp_path):
    path = written(tmp_path, json.dumps([ASK, ANSWER]), name="session.csv")

    assert exchange.open_file(path).format == "openai"


def test_messages_that_name_their_session_are_kept_apart(tmp_path):
    path = written(
        tmp_path,
        "\n".join(json.dumps({**ASK, "content": text, "session_id": session}) for text, session in ("1a", "2b", "3a")),
    )

    found = exchange.open_file(path)

    assert [(conversation.session, len(conversation.turns)) for conversation in found.conversations] == [
        ("a", 2),
        ("b", 1),
    ]


def test_a_conversation_keeps_its_id_and_title(tmp_path):
    found = opened(tmp_path, [{"id": "c1", "title": "Home", "messages": [ASK]}])

    assert (found.conversations[0].session, found.conversations[0].title) == ("c1", "Home")


def test_calls_and_their_results_find_each_other(tmp_path):
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}}
    asked, answered = turns(
        tmp_path,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    )

    assert asked.tool_calls == (ToolCall(id="c1", name="look", arguments='{"q": 1}'),)
    assert (answered.role, answered.name, answered.tool_call_id) == (Role.TOOL, "look", "c1")


def test_ids_that_begin_again_in_every_turn_are_no_orphans(tmp_path):
    look, save = (
        {"role": "assistant", "tool_calls": [{"id": "call_0", "function": {"name": name, "arguments": "{}"}}]}
        for name in ("look", "save")
    )
    result = {"role": "tool", "tool_call_id": "call_0", "content": "found"}

    twice = opened(tmp_path, [look, result, save, result])
    once_too_often = opened(tmp_path, [look, result, result])

    assert twice.warnings == ()
    assert [turn.name for turn in twice.conversations[0].turns if turn.role is Role.TOOL] == ["look", "save"]
    assert [warned.message for warned in once_too_often.warnings] == [
        'message 3: a tool result without its call, id "call_0"'
    ]


def test_the_older_function_call_is_a_call_too(tmp_path):
    asked, answered = turns(
        tmp_path,
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "found"},
    )

    assert asked.tool_calls == (ToolCall(id=None, name="look", arguments="{}"),)
    assert (answered.role, answered.name) == (Role.TOOL, "look")


def test_parts_become_text_thinking_calls_and_notes(tmp_path):
    (turn,) = turns(
        tmp_path,
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "one"},
                {"type": "text", "value": "two"},
                {"type": "reasoning", "value": "hm"},
                {"type": "tool_call", "value": '{"name": "look", "arguments": {"q": 1}}'},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAABBBB"}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                {"type": "image_url", "value": "b.png"},
            ],
        },
    )

    assert (turn.content, turn.thinking) == ("one\ntwo", "hm")
    assert turn.tool_calls == (ToolCall(id=None, name="look", arguments='{"q":1}'),)
    assert turn.attachments == ("image image/png", "image https://example.com/a.png", "image b.png")


@pytest.mark.parametrize("key", ["timestamp", "created_at", "create_time", "time", "date", "at", "ts"])
def test_a_time_is_found_under_its_usual_keys(tmp_path, key):
    zoned, bare = turns(tmp_path, {**ASK, key: "2026-02-03T00:25:14Z"}, {**ANSWER, key: "last Tuesday"})

    assert (zoned.at, zoned.at_text) == (1_770_078_314_000_000, None)
    assert (bare.at, bare.at_text) == (None, "last Tuesday")


@pytest.mark.parametrize(
    "foreign",
    [
        {"system": "be brief", "messages": [ASK, ANSWER]},
        {"messages": [ASK, {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n"}]}]},
        [{"role": "user", "blocks": [{"block_type": "text", "text": "hi"}]}, ASK],
        [{"traj": [ASK, ANSWER], "task_id": 1}],
        [{"conversations": [{"from": "human", "value": "hi"}]}],
        [{"chat_messages": [{"sender": "human", "text": "hi"}]}],
        [{"haystack_sessions": [[ASK, ANSWER]]}],
        {"history": [ASK, ANSWER]},
    ],
    ids=[
        "Anthropic",
        "Anthropic blocks",
        "LlamaIndex",
        "tau-bench",
        "ShareGPT",
        "Claude.ai",
        "LongMemEval",
        "SWE-agent",
    ],
)
def test_a_format_that_only_looks_alike_is_not_taken(tmp_path, foreign):
    assert OPENAI.claims(foreign) <= 0
    assert OPENAI.claims({"messages": [ASK, ANSWER]}) > 0


def test_gzip_is_unpacked_and_the_digest_is_of_the_file(tmp_path):
    path = tmp_path / "chat.json.gz"
    path.write_bytes(gzip.compress(json.dumps([ASK, ANSWER]).encode(), mtime=0))
    plain = opened(tmp_path, [ASK, ANSWER])

    packed = exchange.open_file(str(path))

    assert packed.conversations == plain.conversations
    assert packed.digest != plain.digest


def test_the_shipped_sessions_are_those_of_the_data_set():
    record = json.loads((FIXTURES / "datasets/ds01_longmemeval_2.json").read_text(encoding="utf-8"))[0]

    found = exchange.open_file(str(FIXTURES / "openai_messages/longmemeval_personal_best.json"))

    assert texts(found) == [[turn["content"] for turn in session] for session in record["haystack_sessions"]]
    assert [
        (conversation.session, {turn.at for turn in conversation.turns}, {turn.at_text for turn in conversation.turns})
        for conversation in found.conversations
    ] == [
        (session, {None}, {date})
        for session, date in zip(record["haystack_session_ids"], record["haystack_dates"], strict=True)
    ]
