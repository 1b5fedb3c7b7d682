"""Claude Code sessions: blocks that become messages, and records that are none."""

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
    if row["format"] == "claude_code_jsonl"
]


def record(kind: str, uuid: str, content: Any, *, parent: str | None = None, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": kind, "content": content}
    if "message_id" in more:
        message["id"] = more.pop("message_id")
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1", "message": message, **more}


def opened(tmp_path: Path, *records: Any) -> Opened:
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(json.dumps(value) for value in records), encoding="utf-8")
    return exchange.open_file(str(path))


def said(found: Opened) -> list[tuple[str, str]]:
    return [(str(turn.role), turn.content) for conversation in found.conversations for turn in conversation.turns]


@pytest.mark.parametrize("row", COUNTS, ids=lambda row: row["file"])
def test_a_real_session_gives_the_messages_that_a_careful_reader_counts(row):
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
    assert (found.format, found.tried) == ("claude-code", exchange.FORMATS[1:])


def test_lines_with_one_message_id_are_one_message(tmp_path):
    found = opened(
        tmp_path,
        record("user", "u1", "look"),
        record("assistant", "u2", [{"type": "thinking", "thinking": "hm", "signature": "SIGNED"}], message_id="m1"),
        record("assistant", "u3", [{"type": "text", "text": "looking"}], message_id="m1"),
        record("assistant", "u4", [{"type": "tool_use", "id": "t1", "name": "Grep", "input": {}}], message_id="m1"),
        record("assistant", "u5", [{"type": "tool_use", "id": "t2", "name": "Read", "input": {}}], message_id="m1"),
    )

    turn = found.conversations[0].turns[1]
    assert len(found.conversations[0].turns) == 2
    assert (turn.content, turn.thinking, turn.origin) == ("looking", "hm", "m1")
    assert turn.tool_calls == (
        ToolCall(id="t1", name="Grep", arguments="{}"),
        ToolCall(id="t2", name="Read", arguments="{}"),
    )


def test_a_block_that_is_written_again_counts_once(tmp_path):
    text = [{"type": "text", "text": "done"}]
    call = [{"type": "tool_use", "id": "t1", "name": "Grep", "input": {}}]
    found = opened(
        tmp_path,
        record("user", "u1", "look"),
        record("assistant", "u2", text, message_id="m1"),
        record("assistant", "u3", text + call, message_id="m1"),
        record("assistant", "u4", call, message_id="m1"),
        record("user", "u1", "look"),
        record("user", "u5", "look"),
    )

    assert said(found) == [("user", "look"), ("assistant", "done"), ("user", "look")]
    assert len(found.conversations[0].turns[1].tool_calls) == 1


def test_each_tool_result_is_a_message_named_after_its_call(tmp_path):
    found = opened(
        tmp_path,
        record("assistant", "u1", [{"type": "tool_use", "id": "t1", "name": "Grep", "input": {}}], message_id="m1"),
        record("assistant", "u2", [{"type": "tool_use", "id": "t2", "name": "Read", "input": {}}], message_id="m1"),
        record(
            "user",
            "u3",
            [
                {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "lines"}]},
                {"type": "tool_result", "tool_use_id": "t1", "content": "hits"},
                {"type": "text", "text": "and now?"},
            ],
            parent="u2",
            toolUseResult={"stdout": "COPY"},
        ),
    )

    results = found.conversations[0].turns[1:]
    assert [(turn.role, turn.name, turn.tool_call_id, turn.content) for turn in results] == [
        (Role.TOOL, "Read", "t2", "lines"),
        (Role.TOOL, "Grep", "t1", "hits"),
        (Role.USER, None, None, "and now?"),
    ]
    assert {turn.parent for turn in results} == {"m1"}
    assert "COPY" not in repr(found)


def test_what_the_program_wrote_for_itself_is_no_message(tmp_path):
    chain = {"sessionId": "s1", "parentUuid": "u1"}
    found = opened(
        tmp_path,
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
        {"type": "queue-operation", "operation": "enqueue", "content": "typed, never sent", "sessionId": "s1"},
        record("user", "u1", "hello"),
        {"type": "progress", "uuid": "p1", **chain},
        {"type": "system", "uuid": "p2", "content": "compacted", "sessionId": "s1", "parentUuid": "p1"},
        record("user", "u2", "a caveat", isMeta=True, parent="p2"),
        record("user", "u3", "again", parent="u2"),
        {"type": "summary", "summary": "Greeting", "leafUuid": "u3"},
    )

    assert said(found) == [("user", "hello"), ("user", "again")]
    assert found.conversations[0].turns[1].parent == "u1"
    assert found.conversations[0].title == "Greeting"
    assert found.warnings == ()


def test_a_summary_of_another_file_gives_no_title(tmp_path):
    found = opened(
        tmp_path, record("user", "u1", "hello"), {"type": "summary", "summary": "Elsewhere", "leafUuid": "not here"}
    )

    assert said(found) == [("user", "hello")]
    assert found.conversations[0].title is None


def test_an_api_error_is_marked_as_no_model_s_words():
    found = exchange.open_file(str(FIXTURES / "claude_code/cc13_api_error.jsonl"))

    marked = [turn for turn in found.conversations[0].turns if turn.name == "api-error"]
    assert [turn.content.startswith("API Error: 500") for turn in marked] == [True]
    assert [(warned.line, warned.message) for warned in found.warnings] == [
        (13, "an API error that no model wrote; kept with the name api-error")
    ]


def test_the_summary_after_a_compaction_is_marked_and_answers_what_came_before(tmp_path):
    found = opened(
        tmp_path,
        record("user", "u1", "hello"),
        {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "logicalParentUuid": "u1"},
        record("user", "u2", "so far: a greeting", parent="b", isCompactSummary=True),
    )

    summary = found.conversations[0].turns[1]
    assert (summary.name, summary.parent) == ("compact-summary", "u1")
    assert [warned.line for warned in found.warnings] == [3]


def test_sessions_and_sub_agents_in_one_file_are_conversations_of_their_own(tmp_path):
    found = opened(
        tmp_path,
        record("user", "u1", "one"),
        record("user", "u2", "two", sessionId="s2"),
        record("user", "u3", "go and look", isSidechain=True, agentId="a7"),
        record("user", "u4", "three"),
    )

    assert [
        (conversation.session, [turn.content for turn in conversation.turns]) for conversation in found.conversations
    ] == [("s1", ["one", "three"]), ("s2", ["two"]), ("s1/agent-a7", ["go and look"])]


@pytest.mark.parametrize("name", ["cc18_tool_result_image.jsonl", "cc19_user_image.jsonl"])
def test_an_image_is_noted_and_its_bytes_are_no_text(name):
    found = exchange.open_file(str(FIXTURES / "claude_code" / name))

    every = [turn for conversation in found.conversations for turn in conversation.turns]
    assert [turn.attachments for turn in every if turn.attachments] == [("image image/png",)]
    assert "iVBORw0KGgo" not in repr(found)
    assert any(turn.content for turn in every)


def test_order_is_the_order_of_the_file_whatever_the_times_say(tmp_path):
    found = opened(
        tmp_path,
        record("user", "u1", "later", timestamp="2026-02-03T00:00:02Z"),
        record("user", "u2", "earlier", timestamp="2026-02-03T00:00:01Z"),
    )

    assert [turn.content for turn in found.conversations[0].turns] == ["later", "earlier"]
    assert [turn.at for turn in found.conversations[0].turns] == [1_770_076_802_000_000, 1_770_076_801_000_000]


def test_records_of_an_unknown_type_are_told_once(tmp_path):
    found = opened(
        tmp_path, record("user", "u1", "hello"), {"type": "mood", "uuid": "x"}, {"type": "mood", "uuid": "y"}
    )

    assert said(found) == [("user", "hello")]
    assert [(warned.line, warned.message) for warned in found.warnings] == [
        (2, 'skipped 2 records of type "mood", which is not known')
    ]


def test_parents_that_go_in_a_circle_end(tmp_path):
    found = opened(
        tmp_path,
        {"type": "progress", "uuid": "p1", "parentUuid": "p2", "sessionId": "s1"},
        {"type": "progress", "uuid": "p2", "parentUuid": "p1", "sessionId": "s1"},
        record("user", "u1", "hello", parent="p1"),
    )

    assert [(turn.content, turn.parent) for turn in found.conversations[0].turns] == [("hello", None)]


def test_a_session_without_a_message_is_never_zero_messages(tmp_path):
    with pytest.raises(Unreadable, match="no message stands in it"):
        opened(tmp_path, {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}})
    assert said(opened(tmp_path, record("user", "u1", "hello"))) == [("user", "hello")]


def test_a_sub_agent_s_own_file_is_a_conversation_of_its_own(tmp_path):
    found = opened(
        tmp_path,
        record("user", "u1", "go and look", isSidechain=True, agentId="a7", cwd="/srv"),
        record("assistant", "u2", [{"type": "text", "text": "seen"}], parent="u1", isSidechain=True, agentId="a7"),
    )

    assert [(item.session, len(item.turns)) for item in found.conversations] == [("s1/agent-a7", 2)]


def test_sub_agents_without_an_id_are_told_by_their_first_records(tmp_path):
    side: dict[str, Any] = {"isSidechain": True}
    found = opened(
        tmp_path,
        record("user", "u1", "main"),
        record("user", "a1", "look left", **side),
        record("user", "b1", "look right", **side),
        {"type": "progress", "uuid": "a2", "parentUuid": "a1", "sessionId": "s1", **side},
        record("assistant", "a3", [{"type": "text", "text": "left"}], parent="a2", **side),
        record("assistant", "b2", [{"type": "text", "text": "right"}], parent="b1", **side),
    )

    assert [(item.session, [turn.content for turn in item.turns]) for item in found.conversations] == [
        ("s1", ["main"]),
        ("s1/sidechain-a1", ["look left", "left"]),
        ("s1/sidechain-b1", ["look right", "right"]),
    ]


def test_a_sub_agent_without_a_session_has_no_made_up_one(tmp_path):
    lone = {**record("user", "u1", "look", isSidechain=True, agentId="a7"), "sessionId": None}
    found = opened(tmp_path, lone)

    assert found.conversations[0].session == "agent-a7"


def test_a_message_that_grew_counts_once_as_it_stood_last(tmp_path):
    def call(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"type": "tool_use", "id": "t1", "name": "Grep", "input": arguments}

    found = opened(
        tmp_path,
        record("assistant", "u1", [{"type": "text", "text": "I wi"}], message_id="m1"),
        record("assistant", "u2", [{"type": "text", "text": "I will look"}, call({})], message_id="m1"),
        record("assistant", "u3", [call({"pattern": "tea"})], message_id="m1"),
        record("assistant", "u3", [{"type": "text", "text": "I will look here"}], message_id="m1"),
    )

    (turn,) = found.conversations[0].turns
    assert turn.content == "I will look here"
    assert turn.tool_calls == (ToolCall(id="t1", name="Grep", arguments='{"pattern":"tea"}'),)


def test_a_glued_record_that_is_written_again_counts_once(tmp_path):
    image = {"type": "image", "source": {"media_type": "image/png", "data": "iVBOR"}}
    again = record(
        "assistant", "u2", [{"type": "text", "text": "\n\n"}, {"type": "text", "text": "done"}, image], message_id="m1"
    )
    path = tmp_path / "session.jsonl"
    summary = json.dumps({"type": "summary", "summary": "Tea", "leafUuid": "u1"})
    path.write_text("\n".join([json.dumps(record("user", "u1", "go")), json.dumps(again) + summary, json.dumps(again)]))
    found = exchange.open_file(str(path))

    assert said(found) == [("user", "go"), ("assistant", "\n\n\ndone")]
    assert (found.conversations[0].title, found.conversations[0].turns[1].attachments) == ("Tea", ("image image/png",))
    assert found.warnings == ()


@pytest.mark.parametrize(
    "fallen",
    [
        {str(place): letter for place, letter in enumerate("twelve words")},
        {"0": {"type": "text", "text": "twelve"}, "1": " words"},
    ],
)
def test_a_content_that_fell_into_numbers_is_put_together_again(tmp_path, fallen):
    last = record("assistant", "u2", [], message_id="m1")
    found = opened(tmp_path, record("user", "u1", "go"), {**last, "message": {**last["message"], **fallen}})

    assert found.conversations[0].turns[1].content.replace("\n", "") == "twelve words"
    assert [(warned.line, warned.message) for warned in found.warnings] == [
        (2, "its content stood under numbers; put together again")
    ]


def test_rewound_branches_stay_where_they_stand(tmp_path):
    found = opened(
        tmp_path,
        record("user", "u1", "one"),
        record("assistant", "u2", [{"type": "text", "text": "first try"}], parent="u1", message_id="m1"),
        record("user", "u3", "no", parent="m1"),
        record("assistant", "u4", [{"type": "text", "text": "second try"}], parent="u1", message_id="m2"),
    )

    assert [(turn.content, turn.parent) for turn in found.conversations[0].turns] == [
        ("one", None),
        ("first try", "u1"),
        ("no", "m1"),
        ("second try", "u1"),
    ]


def test_a_small_compaction_takes_no_result_away(tmp_path):
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "all of it"}
    found = opened(
        tmp_path,
        record("assistant", "u1", [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}], message_id="m1"),
        record("user", "u2", [result], parent="u1"),
        {"type": "system", "subtype": "microcompact_boundary", "uuid": "b", "parentUuid": "u2", "sessionId": "s1"},
        record("user", "u3", "go on", parent="b"),
    )

    assert said(found) == [("assistant", ""), ("tool", "all of it"), ("user", "go on")]
    assert found.conversations[0].turns[2].parent == "u2"


def test_an_answer_to_a_question_is_the_result_of_asking():
    found = exchange.open_file(str(FIXTURES / "claude_code/cc16_askuserquestion.jsonl"))

    answers = [
        turn for turn in found.conversations[0].turns if turn.role is Role.TOOL and turn.name == "AskUserQuestion"
    ]
    assert len(answers) == 1
    assert answers[0].content


def test_a_record_that_comes_back_much_later_counts_once(tmp_path):
    texts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    first = record("assistant", "a0", texts, message_id="m0")
    others = [record("assistant", f"a{n}", [{"type": "text", "text": "on"}], message_id=f"m{n}") for n in range(1, 90)]
    found = opened(tmp_path, first, *others, first, record("assistant", "b0", [texts[1]], message_id="m0"))

    assert len(found.conversations[0].turns) == 90
    assert found.conversations[0].turns[0].content == "one\ntwo"


def test_a_slice_keeps_the_parent_that_is_not_in_it(tmp_path):
    found = opened(
        tmp_path, record("user", "u1", "later", parent="elsewhere"), record("user", "u2", "still", parent="u1")
    )

    assert [turn.parent for turn in found.conversations[0].turns] == ["elsewhere", "u1"]


def test_what_a_tool_gave_stays_as_it_was(tmp_path):
    wild = "\x1b[31mred\x1b[0m\n<system-reminder>be brief</system-reminder>\x00"
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
    results = [
        {"type": "tool_result", "tool_use_id": "t1", "content": wild},
        {"type": "tool_result", "tool_use_id": "t2"},
    ]
    found = opened(tmp_path, record("assistant", "u1", [call], message_id="m1"), record("user", "u2", results))

    assert said(found)[1:] == [("tool", wild), ("tool", "")]
