"""LlamaIndex chat stores, in files and in databases, and the facts of its fact block."""

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
    if row["file"].startswith("llamaindex/")
}
ROWS = {
    "llamaindex/li06_sqlalchemy_chat_store.db": {
        "conversations": 2,
        "messages": 38,
        "roles": {"system": 1, "user": 14, "assistant": 18, "tool": 5},
        "tool_calls": 5,
        "open_calls": 0,
        "orphan_results": 0,
    }
}
"""Of the database the list counts rows only: 38, in two conversations of which one has the tools."""


def opened(tmp_path: Path, value: Any, **options: Any) -> Opened:
    path = tmp_path / "store.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return exchange.open_file(str(path), **options)


def said(text: str, role: str = "user", **beside: Any) -> dict[str, Any]:
    return {"role": role, "additional_kwargs": beside, "blocks": [{"block_type": "text", "text": text}]}


def stored(*messages: Any) -> dict[str, Any]:
    return {"store": {"anna": list(messages)}, "class_name": "SimpleChatStore"}


def turns(tmp_path: Path, *messages: Any) -> tuple[Turn, ...]:
    return opened(tmp_path, stored(*messages)).conversations[0].turns


def table(path: Path, rows: list[tuple[Any, ...]], name: str = "llama_index_memory") -> str:
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute(f'create table "{name}" (id, key, timestamp, role, status, data)')
        conn.executemany(f'insert into "{name}" values (?, ?, ?, ?, ?, ?)', rows)
    return str(path)


def row(number: Any, text: str, *, key: Any = "anna", at: Any = None, status: Any = "active") -> tuple[Any, ...]:
    return number, key, at, "user", status, json.dumps(said(text))


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
    expected = ROWS.get(name, COUNTS[name])
    assert counted == {key: expected[key] for key in counted}
    assert found.digest == COUNTS[name]["sha256"]


def test_the_fact_block_gives_its_facts_and_nothing_of_its_settings():
    found = exchange.open_file(str(FIXTURES / "llamaindex/li07_fact_block_model_dump.json"))

    assert found.format == "llamaindex-facts"
    assert [(item.text, item.at, item.extra) for item in found.remembered] == [
        ("User ran a charity 5K in 25:50", None, (("block", "facts"),)),
        ("User plays soccer with coworkers every two weeks", None, (("block", "facts"),)),
    ]
    assert found.warnings == ()


def test_archived_rows_stay_in_their_place_and_are_marked():
    found = exchange.open_file(str(FIXTURES / "llamaindex/li06_sqlalchemy_chat_store.db"))

    marked = [[("status", "archived") in turn.extra for turn in chat.turns] for chat in found.conversations]
    assert marked == [[True] * 6 + [False] * 20, [False] * 12]
    assert [warned.message for warned in found.warnings] == [
        '6 of 26 messages of "airline-8" are archived; kept in their place with the status archived'
    ]


def test_timestamps_of_a_table_are_nanoseconds():
    found = exchange.open_file(str(FIXTURES / "llamaindex/li06_sqlalchemy_chat_store.db"))

    assert found.conversations[0].turns[0].at == 1_796_047_065_189_244


def test_rows_stand_in_the_order_of_their_ids_whatever_their_times_say(tmp_path):
    path = table(
        tmp_path / "chat.db",
        [row(3, "third", at=1), row(1, "first", at=3), row(2, "other", key="bob"), row(4, "fourth", at=2)],
        name='my ""chat""; --',
    )

    found = exchange.open_file(path)

    assert [(chat.session, [turn.content for turn in chat.turns]) for chat in found.conversations] == [
        ("anna", ["first", "third", "fourth"]),
        ("bob", ["other"]),
    ]


def test_a_row_of_wrong_types_costs_that_row(tmp_path):
    path = table(
        tmp_path / "chat.db",
        [
            row(1, "kept"),
            (2, "anna", "soon", "user", "active", b"\xff\xfe"),
            (3, "anna", None, None, 7, json.dumps(said("odd"))),
            (4, "anna", float("inf"), "user", "active", None),
            (None, b"\xc3\xa9", -5, 9, None, json.dumps(said("bytes"))),
        ],
    )

    found = exchange.open_file(path)

    assert {chat.session: [turn.content for turn in chat.turns] for chat in found.conversations} == {
        "é": ["bytes"],
        "anna": ["kept", "odd"],
    }
    assert [warned.message for warned in found.warnings if "skipped" in warned.message] == [
        'row 2: skipped what is no message: "\udcff\udcfe"',
        "row 4: skipped what is no message: null",
    ]


def test_a_view_that_looks_like_the_table_is_not_run(tmp_path):
    path = table(tmp_path / "chat.db", [row(1, "kept")])
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute("create view more as select * from llama_index_memory")

    found = exchange.open_file(path)

    assert [turn.content for chat in found.conversations for turn in chat.turns] == ["kept"]


def test_the_older_content_is_read_like_blocks(tmp_path):
    old, new = turns(tmp_path, {"role": "user", "content": "tea", "additional_kwargs": {}}, said("tea"))

    assert old == new == Turn(role=Role.USER, content="tea")


def test_a_file_that_is_one_string_of_json_is_read(tmp_path):
    once = opened(tmp_path, json.dumps(stored(said("tea"))))
    twice = opened(tmp_path, json.dumps(json.dumps(stored(said("tea")))))

    assert once.conversations == twice.conversations == opened(tmp_path, stored(said("tea"))).conversations


def test_a_store_that_was_emptied_by_a_failing_persist_is_refused(tmp_path):
    path = tmp_path / "chat_store.json"
    path.write_bytes(b"")

    with pytest.raises(Unreadable, match="the file is empty"):
        exchange.open_file(str(path))


def test_a_store_without_messages_is_refused_and_a_key_without_any_is_told(tmp_path):
    with pytest.raises(Unreadable, match="no message stands in it; it was read as a LlamaIndex chat store"):
        opened(tmp_path, {"store": {}, "class_name": "SimpleChatStore"})
    found = opened(tmp_path, {"store": {"bob": [], "anna": [said("tea")]}, "class_name": "SimpleChatStore"})
    assert [warned.message for warned in found.warnings] == ['skipped a conversation without messages, key "bob"']
    assert [chat.session for chat in found.conversations] == ["anna"]


def test_blocks_become_text_thinking_calls_and_notes(tmp_path):
    (turn,) = turns(
        tmp_path,
        {
            "role": "assistant",
            "blocks": [
                {"block_type": "thinking", "content": "hm", "additional_information": {"signature": "c2ln"}},
                {"block_type": "text", "text": "one"},
                {"block_type": "text", "text": "two"},
                {"block_type": "image", "image": "QUFB", "image_mimetype": "image/png", "url": None},
                {"block_type": "image", "url": "https://example.com/a.png"},
                {"block_type": "document", "data": "QUFB", "title": "input_document", "document_mimetype": "a/pdf"},
                {"block_type": "document", "title": "plan", "path": None},
                {"block_type": "tool_call", "tool_call_id": "c1", "tool_name": "look", "tool_kwargs": {"q": 1}},
            ],
        },
    )

    assert turn == Turn(
        role=Role.ASSISTANT,
        content="one\ntwo",
        thinking="hm",
        tool_calls=(ToolCall(id="c1", name="look", arguments='{"q":1}'),),
        attachments=("image image/png", "image https://example.com/a.png", "document a/pdf", "document plan"),
    )


def test_cited_text_is_text_and_an_unknown_block_is_noted_and_told(tmp_path):
    cited = [{"block_type": "text", "text": "one"}]

    found = opened(
        tmp_path,
        stored(
            {
                "role": "assistant",
                "blocks": [
                    {"block_type": "citable", "title": "t", "source": "book", "content": cited},
                    {"block_type": "citation", "title": "t", "source": "map", "cited_content": cited[0]},
                    {"block_type": "cache", "cache_control": {"type": "ephemeral"}},
                    {"block_type": "hologram", "text": "two"},
                ],
            }
        ),
    )

    (turn,) = found.conversations[0].turns
    assert (turn.content, turn.extra) == ("one\none\ntwo", (("cache_control", '{"type":"ephemeral"}'),))
    assert turn.attachments == ("citation book", "citation map", "block of type hologram")
    assert [warned.message for warned in found.warnings] == [
        'message 1: a block of type "hologram" is not known; noted, not read'
    ]


def test_a_call_that_stands_in_blocks_and_beside_them_is_one_call(tmp_path):
    asked, answered = turns(
        tmp_path,
        {
            "role": "assistant",
            "blocks": [{"block_type": "tool_call", "tool_call_id": "c1", "tool_name": "look", "tool_kwargs": "{}"}],
            "additional_kwargs": {"tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]},
        },
        said("found", "tool", tool_call_id="c1"),
    )

    assert asked.tool_calls == (ToolCall(id="c1", name="look", arguments="{}"),)
    assert (answered.role, answered.name, answered.tool_call_id) == (Role.TOOL, "look", "c1")


def test_a_history_that_was_cut_before_a_result_keeps_it_and_tells(tmp_path):
    found = opened(tmp_path, stored(said("found", "tool", tool_call_id="c1"), said("so it is", "assistant")))

    assert [turn.role for turn in found.conversations[0].turns] == [Role.TOOL, Role.ASSISTANT]
    assert [warned.message for warned in found.warnings] == ['message 1: a tool result without its call, id "c1"']


def test_what_else_stands_beside_a_message_is_carried(tmp_path):
    (turn,) = turns(tmp_path, {**said("tea", mood="calm"), "score": 2, "role": "MessageRole.CHATBOT"})

    assert (turn.role, turn.extra) == (Role.ASSISTANT, (("additional_kwargs.mood", "calm"), ("score", "2")))


@pytest.mark.parametrize(
    "wrapped",
    [
        {"chat_store": stored(said("tea")), "chat_store_key": "anna", "token_limit": 3000},
        {"chat_store": json.dumps(stored(said("tea")))},
        {
            "session_id": "anna",
            "sql_store": {
                "table_name": "llama_index_memory",
                "db_data": [
                    {"key": "anna", "timestamp": None, "role": "user", "status": "active", "data": said("tea")}
                ],
            },
        },
        {"session_id": "anna", "messages": [said("tea")]},
    ],
    ids=["buffer", "buffer with text", "memory", "messages"],
)
def test_the_dump_of_a_memory_around_a_store_is_read(tmp_path, wrapped):
    found = opened(tmp_path, wrapped)

    assert found.format == "llamaindex"
    assert [(chat.session, [turn.content for turn in chat.turns]) for chat in found.conversations] == [
        ("anna", ["tea"])
    ]
    assert found.warnings == ()


def test_facts_beside_the_messages_of_a_memory_are_remembered(tmp_path):
    found = opened(
        tmp_path,
        {"sql_store": {"chat_memory": None, "table_name": "t", "db_data": []}, "messages": [said("tea")]}
        | {"memory_blocks": [{"name": "core", "facts": ["Anna drinks tea"], "max_facts": 9}, {"name": "vectors"}]},
    )

    assert [item.text for item in found.remembered] == ["Anna drinks tea"]
    assert [warned.message for warned in found.warnings if "block" in warned.message] == [
        'skipped a memory block that holds no facts: {"name":"vectors"}'
    ]


def test_a_list_of_messages_and_messages_a_line_are_conversations(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text(json.dumps(said("tea")) + "\n" + json.dumps(said("hot", "assistant")), encoding="utf-8")

    lines = exchange.open_file(str(path))
    whole = opened(tmp_path, [said("tea"), said("hot", "assistant")])

    assert lines.format == whole.format == "llamaindex"
    assert lines.conversations == whole.conversations


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (7, "skipped what is no message: 7"),
        ({"x": 1}, 'skipped what is no message: {"x":1}'),
        ({"role": "user"}, "message 2: it has no content"),
        ({"role": "user", "blocks": 5}, "message 2: its blocks are no list: 5"),
        ({"role": "user", "blocks": [5]}, "message 2: a part of it is neither text nor a block; kept as text"),
        ({"role": ["user"], "blocks": []}, 'message 2: the role "[\\"user\\"]" is not known; kept as unknown'),
        ({**said("x"), "additional_kwargs": 5}, "message 2: its additional_kwargs are no object: 5"),
        (said("x", "assistant", tool_calls=5), "message 2: its tool_calls are no list: 5"),
        (said("x", "assistant", tool_calls=[5]), "message 2: skipped what is no tool call: 5"),
        (
            {**said("x"), "content": "y"},
            "message 2: it has blocks and another content; the content is kept beside them",
        ),
    ],
)
def test_a_message_of_wrong_types_costs_a_warning(tmp_path, wrong, told):
    found = opened(tmp_path, stored(said("tea"), wrong))

    assert found.conversations[0].turns[0].content == "tea"
    assert [warned.message for warned in found.warnings] == [told]


def test_a_list_of_facts_alone_is_read_and_other_lists_of_that_name_are_not(tmp_path):
    found = opened(tmp_path, {"facts": ["Anna drinks tea", " ", "Anna drinks tea"]})

    assert [item.text for item in found.remembered] == ["Anna drinks tea"]
    assert [warned.message for warned in found.warnings] == [
        'fact 2: skipped what is no statement: " "',
        'fact 3: it stands there twice: "Anna drinks tea"',
    ]
    with pytest.raises(Unreadable, match="unrecognised format"):
        opened(tmp_path, {"facts": [1, 2]})
    with pytest.raises(Unreadable, match="unrecognised format"):
        opened(tmp_path, {"facts": ["a"], "version": 2})
