"""Codex sessions in all their layouts, and the stream of `codex exec --json`."""

import json

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.facts import ToolCall
from memcli.terms import Role
from tests.agent_files import COUNTED, FIXTURES, counts, document, expected, lines, said, told, turns

META = {"timestamp": "2026-01-02T03:04:05Z", "type": "session_meta", "payload": {"id": "s1", "cwd": "/srv/app"}}


def item(kind="message", *, at="2026-01-02T03:04:06Z", **payload):
    return {"timestamp": at, "type": "response_item", "payload": {"type": kind, **payload}}


def message(role, text, **more):
    part = "output_text" if role == "assistant" else "input_text"
    return item(role=role, content=[{"type": part, "text": text}], **more)


def event(kind, **payload):
    return {"timestamp": "2026-01-02T03:04:06Z", "type": "event_msg", "payload": {"type": kind, **payload}}


@pytest.mark.parametrize("row", expected("codex/", "synthetic/sy06"), ids=lambda row: row["file"])
def test_a_real_session_gives_the_messages_that_a_careful_reader_counts(row):
    found = exchange.open_file(str(FIXTURES / row["file"]))

    assert counts(found) == {key: row[key] for key in COUNTED}
    assert found.format == ("codex-exec" if row["format"] == "codex_exec_stream" else "codex")


def test_what_events_repeat_is_counted_once(tmp_path):
    found = lines(
        tmp_path,
        META,
        message("user", "hello"),
        event("user_message", message="hello"),
        event("token_count", info=None),
        {"timestamp": "x", "type": "turn_context", "payload": {"model": "m"}},
        event("agent_message", message="hi"),
        message("assistant", "hi"),
    )

    assert said(found) == [("user", "hello"), ("assistant", "hi")]
    assert found.conversations[0].session == "s1"
    assert told(found) == []


def test_calls_and_outputs_of_every_kind_belong_together(tmp_path):
    found = lines(
        tmp_path,
        META,
        item("function_call", name="shell", arguments='{"command":["ls"]}', call_id="c1"),
        item("custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c2", status="completed"),
        item("local_shell_call", call_id="c3", status="completed", action={"type": "exec", "command": ["pwd"]}),
        item("function_call_output", call_id="c3", output="/srv"),
        item("custom_tool_call_output", call_id="c2", output='{"output":"Success","metadata":{"exit_code":0}}'),
        item("function_call_output", call_id="c1", output='{"output":"a.txt\\n","metadata":{"exit_code":1}}'),
    )

    every = turns(found)
    assert [turn.tool_calls for turn in every[:3]] == [
        (ToolCall(id="c1", name="shell", arguments='{"command":["ls"]}'),),
        (ToolCall(id="c2", name="apply_patch", arguments="*** Begin Patch"),),
        (ToolCall(id="c3", name="local_shell", arguments='{"type":"exec","command":["pwd"]}'),),
    ]
    assert [(turn.name, turn.content, turn.extra) for turn in every[3:]] == [
        ("local_shell", "/srv", ()),
        ("apply_patch", "Success", (("exit_code", "0"),)),
        ("shell", "a.txt\n", (("exit_code", "1"),)),
    ]
    assert told(found) == []


@pytest.mark.parametrize(
    ("output", "content"),
    [
        ("plain", "plain"),
        ('{"output":"inner","metadata":{}}', "inner"),
        ('{"rows":[1,2]}', '{"rows":[1,2]}'),
        ('{"output":"cut', '{"output":"cut'),
        ({"content": "boxed", "success": True}, "boxed"),
        ([{"type": "input_text", "text": "one"}, {"type": "output_text", "text": "two"}], "one\ntwo"),
        (None, ""),
        (7, "7"),
    ],
)
def test_an_output_is_read_in_every_wrapping(tmp_path, output, content):
    found = lines(
        tmp_path,
        META,
        item("function_call", name="f", call_id="c1"),
        item("function_call_output", call_id="c1", output=output),
    )

    assert [turn.content for turn in turns(found)] == ["", content]


def test_an_image_is_noted_and_its_bytes_are_no_text(tmp_path):
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo"}
    found = lines(
        tmp_path,
        META,
        item(role="user", content=[{"type": "input_text", "text": "see"}, image]),
        item("function_call", name="view_image", arguments="{}", call_id="c1"),
        item("function_call_output", call_id="c1", output=[image]),
        item("image_generation_call", id="ig1", status="completed", revised_prompt="a cat", result="iVBORw0KGgo"),
    )

    assert [turn.attachments for turn in turns(found)] == [("image image/png",), (), ("image image/png",), ("image",)]
    assert "iVBOR" not in repr(found)


def test_what_the_model_thought_goes_with_what_it_did_next(tmp_path):
    thought = {"summary": [{"type": "summary_text", "text": "look first"}], "encrypted_content": "gAAAA"}
    found = lines(
        tmp_path,
        META,
        message("user", "go"),
        item("reasoning", **thought),
        item("function_call", name="shell", arguments="{}", call_id="c1"),
        item("function_call_output", call_id="c1", output="ok"),
        item("reasoning", summary=[], content=[{"type": "reasoning_text", "text": "raw"}]),
        event("turn_aborted", reason="interrupted"),
        message("user", "stop"),
    )

    assert [turn.thinking for turn in turns(found)] == [None, "look first", None, None]
    assert told(found) == [(6, "skipped what the model thought before it was interrupted")]
    assert "gAAAA" not in repr(found)


@pytest.mark.parametrize(
    "text",
    ["<environment_context>\n<cwd>/x</cwd>", "<user_instructions>be brief", "# AGENTS.md instructions for /x\n"],
)
def test_what_codex_put_into_the_user_s_mouth_is_named_context(tmp_path, text):
    found = lines(tmp_path, META, message("user", text), message("user", "add a flag"))

    assert [(turn.role, turn.name) for turn in turns(found)] == [(Role.USER, "context"), (Role.USER, None)]


def test_a_developer_is_the_system_and_a_phase_is_carried(tmp_path):
    found = lines(
        tmp_path, META, message("developer", "sandboxed"), message("assistant", "looking", phase="commentary", id="m1")
    )

    first, second = turns(found)
    assert (first.role, second.origin, second.extra) == (Role.SYSTEM, "m1", (("phase", "commentary"),))


def test_a_compaction_is_told_and_its_copy_is_not_counted(tmp_path):
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}]
    found = lines(
        tmp_path,
        META,
        message("user", "hello"),
        {"timestamp": "x", "type": "compacted", "payload": {"message": "so far", "replacement_history": history}},
        message("assistant", "hi"),
    )

    assert said(found) == [("user", "hello"), ("assistant", "hi")]
    assert told(found) == [
        (3, 'the model\'s context was compacted to 1 items here, with the summary "so far"; what was said is kept')
    ]


def test_a_file_that_begins_with_a_compaction_gives_what_it_kept(tmp_path):
    history = [{"role": "user", "content": "hello"}, {"type": "compaction", "encrypted_content": "CCCC"}]
    found = lines(
        tmp_path,
        META,
        {"timestamp": "2026-01-02T03:04:07Z", "type": "compacted", "payload": {"replacement_history": history}},
        message("assistant", "hi"),
    )

    assert said(found) == [("user", "hello"), ("assistant", "hi")]
    assert told(found) == [(2, "the file begins with a compaction; read the 2 items it kept")]


def test_turns_that_were_taken_back_were_said(tmp_path):
    found = lines(
        tmp_path, META, message("user", "wrong"), event("thread_rolled_back", num_turns=1), message("user", "right")
    )

    assert said(found) == [("user", "wrong"), ("user", "right")]
    assert told(found) == [(3, "the last turns (1) were taken back here; they were said, and are kept")]


def test_the_old_layout_has_a_bare_head_and_bare_items(tmp_path):
    found = lines(
        tmp_path,
        {"id": "old", "timestamp": "2025-06-01T10:00:00Z", "instructions": None, "git": {"branch": "main"}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "function_call", "id": "fc_1", "name": "shell", "arguments": "{}", "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        {"record_type": "state"},
    )

    assert (found.format, found.conversations[0].session) == ("codex", "old")
    assert said(found) == [("user", "hello"), ("assistant", ""), ("tool", "ok")]
    assert {turn.at for turn in turns(found)} == {None}


def test_the_oldest_layout_is_one_document(tmp_path):
    items = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}]
    found = document(tmp_path, {"session": {"id": "oldest", "instructions": ""}, "items": items})

    assert (found.format, found.conversations[0].session, said(found)) == ("codex", "oldest", [("user", "hello")])


def test_a_session_on_one_line_is_one(tmp_path):
    found = lines(tmp_path, message("user", "hello"))

    assert (found.format, said(found)) == ("codex", [("user", "hello")])


def test_ordinals_that_repeat_or_lack_change_nothing(tmp_path):
    found = lines(
        tmp_path,
        {**META, "ordinal": 0},
        {**message("user", "one"), "ordinal": 5},
        {**message("user", "two"), "ordinal": 5},
        message("user", "three"),
        {**message("user", "four"), "ordinal": 1},
    )

    assert [content for _, content in said(found)] == ["one", "two", "three", "four"]


def test_a_fork_that_repeats_the_heads_of_its_parents_is_one_session(tmp_path):
    parent = {**META, "payload": {"id": "s0"}}
    found = lines(tmp_path, META, parent, message("user", "hello"), META, message("user", "again"))

    assert [conversation.session for conversation in found.conversations] == ["s1"]
    assert len(turns(found)) == 2


def test_two_sessions_in_one_file_are_two_conversations(tmp_path):
    found = lines(tmp_path, META, message("user", "one"), {**META, "payload": {"id": "s2"}}, message("user", "two"))

    assert [(item.session, item.turns[0].content) for item in found.conversations] == [("s1", "one"), ("s2", "two")]


def test_a_half_record_before_a_whole_one_costs_only_itself(tmp_path):
    whole = json.dumps(message("user", "whole"))
    found = lines(tmp_path, META, message("user", "first"), whole[:60] + whole, message("user", "last"))

    assert [content for _, content in said(found)] == ["first", "whole", "last"]
    assert [line for line, _ in told(found)] == [3]


def test_nul_bytes_in_a_name_stay(tmp_path):
    found = lines(tmp_path, META, item("function_call", name="sh\0ell", arguments="{}", call_id="c1"))

    assert turns(found)[0].tool_calls[0].name == "sh\0ell"


def test_a_time_that_is_a_number_is_a_time(tmp_path):
    found = lines(tmp_path, META, {**message("user", "hello"), "timestamp": 1767323045.5})

    assert turns(found)[0].at == 1_767_323_045_500_000


def test_wrong_types_cost_their_record_a_warning(tmp_path):
    found = lines(
        tmp_path,
        META,
        {"timestamp": [], "type": "response_item", "payload": "text"},
        {"timestamp": {}, "type": "response_item", "payload": {"type": {}, "role": 5}},
        {"timestamp": "x", "type": "response_item", "payload": {"type": "message", "role": ["user"], "content": 7}},
        {"timestamp": "x", "type": "mood", "payload": {}},
        42,
        message("user", "hello"),
    )

    assert said(found) == [("unknown", ""), ("unknown", "7"), ("user", "hello")]
    assert {line for line, _ in told(found)} == {2, 3, 4, 5, 6}
    assert (turns(found)[1].at, turns(found)[1].at_text) == (None, "x")


def test_a_session_without_a_message_is_refused_by_name(tmp_path):
    with pytest.raises(Unreadable, match="it was read as a Codex session"):
        lines(tmp_path, META, event("token_count", info=None))
    assert said(lines(tmp_path, META, message("user", "hello"))) == [("user", "hello")]


def test_a_stream_keeps_thoughts_apart_and_begun_things_out(tmp_path):
    found = lines(
        tmp_path,
        {"type": "thread.started", "thread_id": "t1"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "look"}},
        {"type": "item.started", "item": {"id": "item_1", "type": "command_execution", "command": "ls"}},
        {
            "type": "item.completed",
            "item": {
                "id": "item_1",
                "type": "command_execution",
                "command": "ls",
                "aggregated_output": "a.txt\n",
                "exit_code": 2,
                "status": "failed",
            },
        },
        {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": "one file"}},
        {"type": "item.started", "item": {"id": "item_3", "type": "command_execution", "command": "sleep 9"}},
        {"type": "turn.failed", "error": {"message": "out of quota"}},
    )

    first, second = turns(found)
    assert (found.format, found.conversations[0].session) == ("codex-exec", "t1")
    assert (first.role, first.name, first.content) == (Role.TOOL, "command_execution", "$ ls\na.txt\n")
    assert first.extra == (("status", "failed"), ("exit_code", "2"))
    assert (second.content, second.thinking, second.origin) == ("one file", "look", "item_2")
    assert told(found) == [
        (7, "a command_execution began and did not end; skipped"),
        (8, 'the run reports an error: "out of quota"'),
    ]


def test_other_items_of_a_stream_are_tool_messages(tmp_path):
    def done(identity, kind, **more):
        return {"type": "item.completed", "item": {"id": identity, "type": kind, **more}}

    image = {"type": "image", "data": "iVBORw0KGgo", "mimeType": "image/png"}
    found = lines(
        tmp_path,
        {"type": "thread.started", "thread_id": "t1"},
        done(
            "i1",
            "mcp_tool_call",
            server="fs",
            tool="read",
            arguments={"p": 1},
            result={"content": [{"type": "text", "text": "body"}, image]},
        ),
        done("i2", "mcp_tool_call", server="fs", tool="read", result=None, error={"message": "no file"}),
        done("i3", "file_change", changes=[{"path": "a", "kind": "add"}], status="completed"),
        done("i4", "web_search", query="tea"),
        {"type": "item.updated", "item": {"id": "i5", "type": "todo_list", "items": []}},
        done("i5", "todo_list", items=[{"text": "step", "completed": True}]),
        done("i6", "error", message="slow"),
        done("i7", "mood"),
        {"type": "item.completed", "item": None},
    )

    assert [(turn.name, turn.content) for turn in turns(found)] == [
        ("read", "body"),
        ("read", "no file"),
        ("file_change", '[{"path":"a","kind":"add"}]'),
        ("web_search", "tea"),
        ("todo_list", '[{"text":"step","completed":true}]'),
    ]
    assert turns(found)[0].attachments == ("image image/png",)
    assert [line for line, _ in told(found)] == [8, 9, 10]
