"""LangChain messages in each of their forms, and the SQL message history."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.exchange import Opened
from memcli.facts import ToolCall, Turn
from memcli.terms import Role

FIXTURES = Path(__file__).parents[2] / "fixtures"
COUNTS = {
    row["file"]: row
    for row in json.loads((FIXTURES / "EXPECTED_COUNTS.json").read_text(encoding="utf-8"))
    if row["file"].startswith("langchain/")
}
TALK = "langchain/lc01_messages_to_dict.json"
TABLE = "langchain/lc03_sql_message_history.db"


def opened(tmp_path: Path, value: Any) -> Opened:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return exchange.open_file(str(path))


def said(kind: str, content: Any, /, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": {"content": content, "type": kind, "additional_kwargs": {}, **data}}


def made(name: str, /, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}


def turns(tmp_path: Path, *messages: Any) -> tuple[Turn, ...]:
    return opened(tmp_path, list(messages)).conversations[0].turns


def database(path: Path, columns: str, rows: list[tuple[Any, ...]], name: str = "message_store") -> str:
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute(f"create table {name} ({columns})")
        conn.executemany(f"insert into {name} values ({', '.join('?' * len(columns.split(',')))})", rows)
    return str(path)


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
    }
    # Of the database the list counts rows only; it holds the very talk of the other file.
    assert counted == {key: COUNTS[TALK][key] for key in counted}
    assert (found.format, found.digest) == ("langchain", COUNTS[name]["sha256"])


def test_the_database_and_the_file_hold_the_same_talk():
    file, table = (exchange.open_file(str(FIXTURES / name)).conversations[0] for name in (TALK, TABLE))

    assert (table.session, table.turns) == ("airline-8", file.turns)


@pytest.mark.parametrize(
    "message",
    [
        said("human", "tea", name="anna", id="m1", example=False),
        made("HumanMessage", content="tea", name="anna", id="m1"),
        {"type": "human", "content": "tea", "additional_kwargs": {}, "name": "anna", "id": "m1"},
        said("HumanMessageChunk", "tea", name="anna", id="m1"),
    ],
    ids=["messages_to_dict", "dumpd", "bare", "chunk"],
)
def test_every_form_of_a_message_is_the_same_turn(tmp_path, message):
    found = opened(tmp_path, [message])

    assert found.conversations[0].turns == (Turn(role=Role.USER, content="tea", name="anna", origin="m1"),)
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("layout", "session"),
    [
        ([said("human", "tea"), said("ai", "hot")], None),
        ({"messages": [said("human", "tea"), said("ai", "hot")], "session_id": "s1"}, "s1"),
        ({"values": {"messages": [said("human", "tea"), said("ai", "hot")]}, "thread_id": "s1"}, "s1"),
        ({"v": 1, "id": "x", "channel_values": {"messages": [said("human", "tea"), said("ai", "hot")]}}, None),
        ({"chat_memory": {"messages": [said("human", "tea"), said("ai", "hot")]}, "ai_prefix": "AI"}, None),
        (
            made("ChatPromptValue", messages=[made("HumanMessage", content="tea"), made("AIMessage", content="hot")]),
            None,
        ),
        ({"s1": [said("human", "tea"), said("ai", "hot")]}, "s1"),
        ([{"messages": [said("human", "tea"), said("ai", "hot")], "session_id": "s1"}], "s1"),
        ([[said("human", "tea"), said("ai", "hot")]], None),
        ([{"type": "human", "content": "tea"}, {"type": "ai", "content": "hot"}], None),
    ],
    ids=["list", "object", "thread", "checkpoint", "memory", "prompt", "sessions", "objects", "lists", "least"],
)
def test_every_layout_gives_its_conversation(tmp_path, layout, session):
    found = opened(tmp_path, layout)

    assert found.format == "langchain"
    assert [(chat.session, [turn.content for turn in chat.turns]) for chat in found.conversations] == [
        (session, ["tea", "hot"])
    ]


def test_messages_a_line_are_one_conversation(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text("\n".join(json.dumps(said(kind, kind)) for kind in ("human", "ai")), encoding="utf-8")

    (chat,) = exchange.open_file(str(path)).conversations

    assert [turn.role for turn in chat.turns] == [Role.USER, Role.ASSISTANT]


def test_the_types_of_messages_are_roles(tmp_path):
    found = opened(
        tmp_path,
        [
            said("system", "1"),
            said("human", "2"),
            said("ai", "3"),
            said("chat", "4", role="assistant"),
            said("chat", "5", role="narrator"),
            said("function", "6", name="look"),
            said("remove", "", id="m1"),
        ],
    )

    assert [(turn.role, turn.raw_role) for turn in found.conversations[0].turns] == [
        (Role.SYSTEM, None),
        (Role.USER, None),
        (Role.ASSISTANT, None),
        (Role.ASSISTANT, None),
        (Role.UNKNOWN, "narrator"),
        (Role.TOOL, None),
    ]
    assert [warned.message for warned in found.warnings] == [
        'message 5: the role "narrator" is not known; kept as unknown',
        'skipped an order to remove a message, id "m1"',
        "message 6: a tool result without its call, id null",
    ]


def test_calls_and_their_copies_are_counted_once(tmp_path):
    asked, answered = turns(
        tmp_path,
        said(
            "ai",
            [
                {"type": "text", "text": "one moment"},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"q": 1}},
            ],
            tool_calls=[{"name": "look", "args": {"q": 1}, "id": "c1", "type": "tool_call"}],
            additional_kwargs={"tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": '{"q": 1}'}}]},
        ),
        said("tool", "found", tool_call_id="c1", status="error", artifact={"rows": 2}),
    )

    assert (asked.content, asked.tool_calls) == (
        "one moment",
        (ToolCall(id="c1", name="look", arguments='{"q":1}'),),
    )
    assert (answered.name, answered.tool_call_id) == ("look", "c1")
    assert answered.extra == (("status", "error"), ("artifact", '{"rows":2}'))


def test_calls_of_older_releases_stand_only_beside_the_message(tmp_path):
    new, old = turns(
        tmp_path,
        said(
            "ai", "", additional_kwargs={"tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]}
        ),
        said("ai", "", additional_kwargs={"function_call": {"name": "look", "arguments": "{}"}}),
    )

    assert new.tool_calls == (ToolCall(id="c1", name="look", arguments="{}"),)
    assert old.tool_calls == (ToolCall(id=None, name="look", arguments="{}"),)


def test_a_call_that_could_not_be_parsed_is_a_call_and_told(tmp_path):
    broken = {"name": "look", "args": '{"q": ', "id": "c1", "error": "cut", "type": "invalid_tool_call"}

    found = opened(tmp_path, [said("ai", "", invalid_tool_calls=[broken]), said("tool", "no", tool_call_id="c1")])

    assert found.conversations[0].turns[0].tool_calls == (ToolCall(id="c1", name="look", arguments='{"q": '),)
    assert [warned.message for warned in found.warnings] == [
        'message 1: a tool call that could not be parsed, kept as it stood: "cut"'
    ]


def test_a_history_that_was_trimmed_keeps_its_orphans_and_tells(tmp_path):
    call = {"name": "look", "args": {}, "id": "c2"}

    found = opened(tmp_path, [said("tool", "found", tool_call_id="c1"), said("ai", "", tool_calls=[call])])

    assert [turn.role for turn in found.conversations[0].turns] == [Role.TOOL, Role.ASSISTANT]
    assert [warned.message for warned in found.warnings] == [
        'message 1: a tool result without its call, id "c1"',
        'message 2: a call of "look" without a result, id "c2"',
    ]


def test_parts_become_text_thinking_and_notes_never_bytes(tmp_path):
    found = opened(
        tmp_path,
        [
            said(
                "ai",
                [
                    "one",
                    {"type": "text", "text": "two"},
                    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}]},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUFB"}},
                    {"type": "image", "source_type": "base64", "mime_type": "image/jpeg", "data": "QUFB"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "QUFB"}},
                    {"type": "hologram"},
                ],
                additional_kwargs={"reasoning_content": "well"},
            )
        ],
    )

    (turn,) = found.conversations[0].turns
    assert (turn.content, turn.thinking) == ("one\ntwo", "hm\nso\nwell")
    assert turn.attachments == ("image image/png", "image image/jpeg", "image image/gif", "part of type hologram")
    assert [warned.message for warned in found.warnings] == [
        'message 1: a part of type "hologram" is not known; noted, not read'
    ]


def test_what_a_provider_said_of_its_answer_is_carried(tmp_path):
    (turn,) = turns(
        tmp_path,
        said(
            "ai",
            "hot",
            additional_kwargs={"refusal": None, "mood": "calm"},
            response_metadata={"model_name": "m", "created_at": "2026-02-03T00:25:14Z"},
        ),
    )

    assert turn.at == 1_770_078_314_000_000
    assert turn.extra == (
        ("response_metadata", '{"model_name":"m","created_at":"2026-02-03T00:25:14Z"}'),
        ("additional_kwargs.mood", "calm"),
    )


def test_sessions_of_a_table_are_kept_apart_in_the_order_of_their_ids(tmp_path):
    rows = [(3, "b", 0), (1, "a", 0), (2, "b", 0), (4, "a", 0)]
    path = database(
        tmp_path / "chat.db",
        "id, session_id, message",
        [(number, session, json.dumps(said("human", str(number)))) for number, session, _ in rows],
    )

    found = exchange.open_file(path)

    assert [(chat.session, [turn.content for turn in chat.turns]) for chat in found.conversations] == [
        ("a", ["1", "4"]),
        ("b", ["2", "3"]),
    ]


def test_a_table_of_another_name_and_one_with_split_columns_are_read(tmp_path):
    named = database(
        tmp_path / "named.db",
        "id, session_id, message, created_at",
        [(1, "a", json.dumps(said("human", "tea")), "2026-02-03T00:25:14Z")],
        name="my_chats",
    )
    split = database(
        tmp_path / "split.db", "id, session_id, type, content", [(1, "a", "human", "tea")], name="custom_messages"
    )

    assert exchange.open_file(named).conversations[0].turns == (
        Turn(role=Role.USER, content="tea", at=1_770_078_314_000_000),
    )
    assert exchange.open_file(split).conversations[0].turns == (Turn(role=Role.USER, content="tea"),)


def test_a_row_of_wrong_types_costs_that_row(tmp_path):
    path = database(
        tmp_path / "chat.db",
        "id, session_id, message",
        [
            (1, "a", json.dumps(said("human", "kept"))),
            (2, "a", b"\xff"),
            (3, "a", None),
            (4, "a", "{}"),
            (5, None, json.dumps(said("human", ["bare"])).encode()),
        ],
    )

    found = exchange.open_file(path)

    assert {chat.session: [turn.content for turn in chat.turns] for chat in found.conversations} == {
        "a": ["kept"],
        None: ["bare"],
    }
    assert [warned.message for warned in found.warnings] == [
        'row 2: skipped what is no message: "\udcff"',
        "row 3: skipped what is no message: null",
        "row 4: skipped what is no message: {}",
    ]


def test_packed_checkpoints_are_refused_with_the_reason(tmp_path):
    path = database(
        tmp_path / "chat.db",
        "thread_id, checkpoint_ns, checkpoint_id, type, checkpoint, metadata",
        [("1", "", "c1", "msgpack", b"\x85\xa1v\x04", b"{}")],
        name="checkpoints",
    )

    with pytest.raises(Unreadable, match="checkpoints of LangGraph are packed objects of Python, which are not read"):
        exchange.open_file(path)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (7, "skipped what is no message: 7"),
        ({"type": "human", "data": 7}, 'skipped what is no message: {"type":"human","data":7}'),
        ({"lc": 1, "type": "not_implemented", "id": ["x", "HumanMessage"]}, "skipped what is no message: "),
        (said("human", {"x": 1}), "message 2: its content is neither text nor a list; kept as text"),
        (said("ai", "x", tool_calls=5), "message 2: its tool_calls are no list: 5"),
        (said("ai", "x", tool_calls=[5]), "message 2: skipped what is no tool call: 5"),
        ({"type": ["human"], "data": {"content": "x"}}, "message 2: it has no role; kept as unknown"),
    ],
)
def test_a_message_of_wrong_types_costs_a_warning(tmp_path, wrong, told):
    found = opened(tmp_path, [said("human", "tea"), wrong])

    assert found.conversations[0].turns[0].content == "tea"
    assert [warned.message.startswith(told) for warned in found.warnings] == [True]


@pytest.mark.parametrize(
    "foreign",
    [[{"type": "system", "content": "x"}], {"type": "user", "content": "x"}, [{"human": "a", "ai": "b"}]],
    ids=["only a system record", "a user", "pairs"],
)
def test_what_only_looks_alike_is_left_to_others(tmp_path, foreign):
    with pytest.raises(Unreadable, match="unrecognised format"):
        opened(tmp_path, foreign)
    assert opened(tmp_path, [said("human", "tea")]).format == "langchain"
