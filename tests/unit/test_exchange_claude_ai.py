"""Claude.ai exports: what was said, and not the text in which thinking and answer are glued together."""

import json
from pathlib import Path
from typing import Any

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.exchange import Opened
from memcli.facts import ToolCall
from memcli.terms import Role


def message(sender: str, *blocks: Any, **more: Any) -> dict[str, Any]:
    return {"sender": sender, "text": "GLUED", "content": list(blocks), "attachments": [], "files": [], **more}


def said(text: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, "citations": []}


def talk(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"uuid": "c1", "name": "Trip", "created_at": "2025-03-01T10:00:00Z", "chat_messages": [*messages], **more}


def opened(tmp_path: Path, value: Any, format: str = "auto") -> Opened:  # noqa: A002
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return exchange.open_file(str(path), format=format)


def texts(found: Opened) -> list[list[str]]:
    return [[turn.content for turn in conversation.turns] for conversation in found.conversations]


def told(found: Opened) -> list[str]:
    return [warned.message for warned in found.warnings]


def test_content_is_read_and_the_glued_text_is_not(tmp_path):
    found = opened(
        tmp_path,
        [
            talk(
                message("human", said("where to?"), uuid="m1", created_at="2025-03-01T10:00:00.5Z"),
                message("assistant", {"type": "thinking", "thinking": "hm"}, said("to Lisbon"), uuid="m2"),
            )
        ],
    )

    asked, answered = found.conversations[0].turns
    assert found.format == "claude-ai"
    assert (found.conversations[0].session, found.conversations[0].title) == ("c1", "Trip")
    assert (asked.role, asked.content, asked.at, asked.origin) == (Role.USER, "where to?", 1_740_823_200_500_000, "m1")
    assert (answered.role, answered.content, answered.thinking) == (Role.ASSISTANT, "to Lisbon", "hm")
    assert (answered.at, answered.at_text) == (None, None)
    assert "GLUED" not in repr(found)
    assert found.warnings == ()


def test_an_older_export_without_content_gives_its_text(tmp_path):
    bare = {"sender": "human", "text": "hi"}

    assert texts(opened(tmp_path, [talk(bare, {**bare, "content": []})])) == [["hi", "hi"]]


@pytest.mark.parametrize(
    "layout",
    [lambda item: [item], lambda item: item, lambda item: {"conversations": [item]}],
    ids=["array", "one conversation", "wrapped"],
)
def test_each_layout_is_recognised(tmp_path, layout):
    found = opened(tmp_path, layout(talk(message("human", said("hi")))))

    assert (found.format, texts(found)) == ("claude-ai", [["hi"]])


def test_a_tool_result_is_a_message_of_its_own_behind_the_one_it_stands_in(tmp_path):
    found = opened(
        tmp_path,
        [
            talk(
                message("human", said("look")),
                message(
                    "assistant",
                    said("looking"),
                    {"type": "tool_use", "id": "t1", "name": "web_search", "input": {"q": 1}},
                    {"type": "tool_result", "tool_use_id": "t1", "content": [said("a hit")]},
                    {"type": "token_budget"},
                    said("found"),
                    uuid="m2",
                ),
            )
        ],
    )

    _, answered, result = found.conversations[0].turns
    assert answered.content == "looking\nfound"
    assert answered.tool_calls == (ToolCall(id="t1", name="web_search", arguments='{"q":1}'),)
    assert (result.role, result.name, result.content, result.origin) == (Role.TOOL, "web_search", "a hit", "m2")
    assert found.warnings == ()


def test_calls_and_results_without_ids_find_each_other(tmp_path):
    blocks = (
        {"type": "tool_use", "name": "repl", "input": {}},
        {"type": "tool_result", "name": "repl", "content": "42"},
    )

    found = opened(tmp_path, [talk(message("assistant", *blocks, said("done")))])

    assert [turn.name for turn in found.conversations[0].turns] == [None, "repl"]
    assert found.warnings == ()


def test_files_are_notes_and_the_words_of_a_pasted_one_travel_along(tmp_path):
    pasted = {"file_name": "paste.txt", "file_type": "txt", "extracted_content": "my notes"}

    found = opened(
        tmp_path,
        [
            talk(
                message("human", attachments=[pasted, "junk"], files=[{"file_name": "a.png"}, {"file_uuid": "f"}, None])
            )
        ],
    )

    turn = found.conversations[0].turns[0]
    assert turn.content == "GLUED"
    assert turn.attachments == ("file paste.txt", "file junk", "file a.png", "file f", "file")
    assert turn.extra == (("text of paste.txt", "my notes"),)


def test_a_file_that_was_sent_without_a_word_is_no_defect(tmp_path):
    found = opened(tmp_path, [talk(message("human", files=[{"file_name": "a.png"}], text=""))])

    assert texts(found) == [[""]]
    assert found.warnings == ()


def test_an_empty_message_is_kept_and_told(tmp_path):
    found = opened(tmp_path, [talk(message("assistant", text=""))])

    assert texts(found) == [[""]]
    assert told(found) == ['conversation 1, "Trip": message 1: a message without content; kept empty']


def test_messages_stay_in_the_order_of_the_file_and_branches_are_told(tmp_path):
    root = "00000000-0000-4000-8000-000000000000"
    found = opened(
        tmp_path,
        [
            talk(
                message("human", said("a"), uuid="m1", parent_message_uuid=root, created_at="2025-03-02T00:00:00Z"),
                message("assistant", said("b"), uuid="m2", parent_message_uuid="m1", created_at="2025-03-01T00:00:00Z"),
                message("assistant", said("c"), uuid="m3", parent_message_uuid="m1"),
            )
        ],
    )

    assert texts(found) == [["a", "b", "c"]]
    assert [turn.parent for turn in found.conversations[0].turns] == [None, "m1", "m1"]
    assert told(found) == [
        'conversation 1, "Trip": 1 message answers what another one answers too; all are kept, in the file\'s order'
    ]


@pytest.mark.parametrize("bad", [None, 5, {}, {"uuid": "x", "chat_messages": "text"}, talk(), talk(None)])
def test_one_bad_conversation_costs_no_other(tmp_path, bad):
    found = opened(tmp_path, [bad, talk(message("human", said("hi")))])

    assert texts(found) == [["hi"]]
    assert len(found.warnings) in (1, 2)


@pytest.mark.parametrize("junk", [None, 5, "x", [1], {"a": 1}, [["a"]], [{"type": 5}], [{"type": "tool_use"}]])
@pytest.mark.parametrize("key", ["sender", "content", "text", "attachments", "files", "created_at", "uuid"])
def test_a_field_of_the_wrong_type_costs_no_other_message(tmp_path, key, junk):
    found = opened(tmp_path, [talk({**message("human", said("odd")), key: junk}, message("human", said("fine")))])

    assert texts(found)[0][-1] == "fine"


def test_a_sender_that_is_not_known_is_kept_as_unknown(tmp_path):
    found = opened(tmp_path, [talk(message("narrator", said("once")))])

    turn = found.conversations[0].turns[0]
    assert (turn.role, turn.raw_role) == (Role.UNKNOWN, "narrator")
    assert ["is not known; kept as unknown" in message for message in told(found)] == [True]


def test_an_export_in_which_nothing_was_said_is_no_success(tmp_path):
    with pytest.raises(Unreadable, match="no message stands in it"):
        opened(tmp_path, [talk()])
    assert texts(opened(tmp_path, [talk(message("human", said("hi")))])) == [["hi"]]
