"""Sessions of pi: entries, of which some are messages."""

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.facts import ToolCall
from memcli.terms import Role
from tests.agent_files import COUNTED, FIXTURES, counts, expected, lines, said, told, turns

HEAD = {
    "type": "session",
    "id": "s1",
    "timestamp": "2026-01-02T03:09:00Z",
    "cwd": "/srv/app",
    "provider": "p",
    "modelId": "m",
}


def entry(role, content, *, identity=None, parent=None, **more):
    ids = {} if identity is None else {"id": identity, "parentId": parent}
    message = {"role": role, "content": content, "timestamp": 1767323046000, **more}
    return {"type": "message", **ids, "timestamp": "2026-01-02T03:04:06Z", "message": message}


def other(kind, **more):
    return {"type": kind, "timestamp": "2026-01-02T03:04:06Z", **more}


@pytest.mark.parametrize("row", expected("pi/"), ids=lambda row: row["file"])
def test_a_real_session_gives_the_messages_that_a_careful_reader_counts(row):
    found = exchange.open_file(str(FIXTURES / row["file"]))

    assert counts(found) == {key: row[key] for key in COUNTED}
    assert found.format == "pi"


def test_blocks_become_text_thinking_calls_and_notes(tmp_path):
    found = lines(
        tmp_path,
        HEAD,
        entry("user", [{"type": "text", "text": "see"}, {"type": "image", "data": "iVBOR", "mimeType": "image/png"}]),
        entry(
            "assistant",
            [
                {"type": "thinking", "thinking": "hm", "thinkingSignature": "SIGNED"},
                {"type": "text", "text": "reading"},
                {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a"}},
            ],
        ),
        entry(
            "toolResult",
            [{"type": "text", "text": "body"}],
            toolCallId="c1",
            toolName="read",
            isError=True,
            details={"diff": "COPY"},
        ),
    )

    first, second, third = turns(found)
    assert (first.content, first.attachments) == ("see", ("image image/png",))
    assert (second.content, second.thinking) == ("reading", "hm")
    assert second.tool_calls == (ToolCall(id="c1", name="read", arguments='{"path":"a"}'),)
    assert (third.role, third.name, third.content, third.extra) == (Role.TOOL, "read", "body", (("isError", "true"),))
    for gone in ("iVBOR", "SIGNED", "COPY"):
        assert gone not in repr(found)
    assert told(found) == []


def test_the_time_of_the_entry_is_taken_and_else_that_of_its_message(tmp_path):
    bare = entry("user", "two")
    del bare["timestamp"]
    found = lines(tmp_path, HEAD, entry("user", "one", timestamp=1), bare)

    assert [turn.at for turn in turns(found)] == [1_767_323_046_000_000, 1_767_323_046_000_000]


def test_a_command_that_the_user_ran_is_the_user_s(tmp_path):
    ran = entry(
        "bashExecution", None, command="ls", output="a.txt", exitCode=1, cancelled=True, excludeFromContext=True
    )
    found = lines(tmp_path, HEAD, ran)

    (turn,) = turns(found)
    assert (turn.role, turn.name, turn.content) == (Role.USER, "bashExecution", "$ ls\na.txt")
    assert turn.extra == (("exit_code", "1"), ("cancelled", "true"), ("exclude_from_context", "true"))


def test_an_answer_that_was_stopped_is_kept_empty(tmp_path):
    found = lines(
        tmp_path, HEAD, entry("user", "go"), entry("assistant", [], stopReason="aborted", errorMessage="stopped")
    )

    assert said(found) == [("user", "go"), ("assistant", "")]
    assert turns(found)[1].extra == (("stop_reason", "aborted"), ("error", "stopped"))
    assert told(found) == [(3, "a message without content, aborted; kept empty")]


def test_branches_stay_in_the_order_of_the_file_and_skip_what_is_no_message(tmp_path):
    found = lines(
        tmp_path,
        {**HEAD, "version": 3},
        entry("user", "one", identity="e1"),
        other("model_change", id="e2", parentId="e1", modelId="m2"),
        entry("assistant", [{"type": "text", "text": "two"}], identity="e3", parent="e2"),
        other("branch_summary", id="e4", parentId="e1", fromId="e3", summary="tried two"),
        entry("user", "three", identity="e5", parent="e4"),
        other("session_info", id="e6", parentId="e5", name="Numbers"),
        other("label", id="e7", parentId="e6", targetId="e1", label="start"),
    )

    assert [(turn.content, turn.origin, turn.parent) for turn in turns(found)] == [
        ("one", "e1", None),
        ("two", "e3", "e1"),
        ("three", "e5", "e1"),
    ]
    assert (found.conversations[0].session, found.conversations[0].title) == ("s1", "Numbers")
    assert told(found) == [(5, 'another branch was left here, with the summary "tried two"; what was said is kept')]


def test_a_compaction_is_told_and_takes_nothing_away(tmp_path):
    found = lines(
        tmp_path,
        HEAD,
        entry("user", "one"),
        other("compaction", summary="a greeting", firstKeptEntryIndex=40, tokensBefore=9000),
        other("thinking_level_change", thinkingLevel="high"),
        entry("user", "two"),
    )

    assert [content for _, content in said(found)] == ["one", "two"]
    assert told(found) == [(3, 'the context of 9000 tokens was compacted here to "a greeting"; what was said is kept')]


def test_what_an_extension_wrote_is_named_after_it(tmp_path):
    found = lines(
        tmp_path,
        HEAD,
        entry("user", "hello"),
        other("custom_message", id="e1", customType="clock", content="It is noon.", display=False),
        other("custom", customType="clock", data={"n": 1}),
        entry("hookMessage", "old name", customType="clock"),
    )

    assert [(turn.role, turn.name, turn.content) for turn in turns(found)] == [
        (Role.USER, None, "hello"),
        (Role.USER, "clock", "It is noon."),
        (Role.USER, "clock", "old name"),
    ]


def test_two_heads_are_two_conversations(tmp_path):
    found = lines(tmp_path, HEAD, entry("user", "one"), {**HEAD, "id": "s2"}, entry("user", "two"))

    assert [(item.session, item.turns[0].content) for item in found.conversations] == [("s1", "one"), ("s2", "two")]


def test_wrong_types_cost_their_entry_a_warning(tmp_path):
    found = lines(
        tmp_path,
        HEAD,
        other("message", message="text"),
        entry("oracle", [5, {"type": {}}, {"type": "toolCall", "id": [], "name": 4, "arguments": None}]),
        {"type": ["message"]},
        7,
        entry("user", "hello"),
    )

    unknown, user = turns(found)
    assert (unknown.role, unknown.raw_role, unknown.tool_calls[0].name) == (Role.UNKNOWN, "oracle", "4")
    assert user.content == "hello"
    assert {line for line, _ in told(found)} == {2, 3, 4, 5}


def test_a_session_without_a_message_is_refused_by_name(tmp_path):
    with pytest.raises(Unreadable, match="it was read as a pi session"):
        lines(tmp_path, HEAD, other("model_change", modelId="m"))
    assert said(lines(tmp_path, HEAD, entry("user", "hello"))) == [("user", "hello")]
