"""OpenHands: events of every age, alone, listed, in pairs and in results."""

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.facts import ToolCall
from memcli.terms import Role
from tests.agent_files import COUNTED, FIXTURES, counts, document, expected, lines, said, told, turns

# The list of counts gives the first file one open call, beside one call and one result that names it. What it counts
# is the `finish`, whose id nothing answers; it is text here and there, and the same `finish` in the other file is
# open in neither. A call that has its result is not open.
CORRECTED = {"openhands/oh01_basic.json": {"open_calls": 0}}


def action(identity, kind, source="agent", *, metadata=None, **args):
    called = {} if metadata is None else {"tool_call_metadata": metadata}
    return {
        "id": identity,
        "timestamp": "2026-01-02T03:04:06",
        "source": source,
        "action": kind,
        "args": args,
        **called,
    }


def observed(identity, kind, content, *, cause=None, **more):
    whole = {"id": identity, "source": "agent", "observation": kind, "content": content, "extras": {}, "cause": cause}
    return {**whole, "timestamp": "2026-01-02T03:04:07", **more}


def called(identity, arguments, text=""):
    call = {"id": identity, "type": "function", "function": {"name": "bash", "arguments": arguments}}
    response = {"id": "r", "choices": [{"message": {"role": "assistant", "content": text, "tool_calls": [call]}}]}
    return {"tool_call_id": identity, "function_name": "bash", "model_response": response}


@pytest.mark.parametrize("row", expected("openhands/"), ids=lambda row: row["file"])
def test_real_events_give_the_messages_that_a_careful_reader_counts(row):
    found = exchange.open_file(str(FIXTURES / row["file"]))

    assert counts(found) == {key: row[key] for key in COUNTED} | CORRECTED.get(row["file"], {})
    assert found.format == "openhands"


def test_an_action_is_a_call_and_its_observation_the_result(tmp_path):
    found = document(
        tmp_path,
        [
            action(0, "message", "user", content="list", image_urls=["data:image/png;base64,iVBOR"]),
            action(2, "run", command="ls", thought="I look", metadata=called("c1", '{"command":"ls"}', "I look")),
            observed(
                3,
                "run",
                "a.txt",
                cause=2,
                extras={"metadata": {"exit_code": 0}},
                tool_call_metadata=called("c1", "{}", "I look"),
            ),
            action(5, "read", path="a.txt", thought="", start=0),
            observed(6, "read", "body", cause=5),
            action(8, "finish", outputs={}, thought="Done."),
        ],
    )

    every = turns(found)
    assert said(found) == [
        ("user", "list"),
        ("assistant", "I look"),
        ("tool", "a.txt"),
        ("assistant", ""),
        ("tool", "body"),
        ("assistant", "Done."),
    ]
    assert every[0].attachments == ("image image/png",)
    assert every[1].tool_calls == (ToolCall(id="c1", name="bash", arguments='{"command":"ls"}'),)
    assert (every[2].name, every[2].parent, every[2].extra) == ("bash", "2", (("exit_code", "0"),))
    assert every[3].tool_calls == (ToolCall(id="5", name="read", arguments='{"path":"a.txt","start":0}'),)
    assert (every[4].name, every[4].origin) == ("read", "6")
    assert {turn.at for turn in every} == {None}
    assert every[0].at_text == "2026-01-02T03:04:06"
    assert told(found) == []


def test_what_the_program_did_for_itself_is_no_message(tmp_path):
    found = document(
        tmp_path,
        [
            action(0, "system", content="You are an agent", tools=[]),
            action(1, "message", "user", content="hello"),
            action(2, "recall", "user", query="hello"),
            observed(3, "recall", "Added workspace context", cause=2),
            action(4, "change_agent_state", "environment", agent_state="running"),
            observed(5, "agent_state_changed", ""),
            observed(6, "null", ""),
            action(7, "condensation", forgotten_event_ids=[1], summary="a greeting"),
            action(8, "message", content="hi"),
        ],
    )

    assert said(found) == [("system", "You are an agent"), ("user", "hello"), ("assistant", "hi")]
    assert [message for _, message in told(found)] == [
        'the model\'s context was condensed here to "a greeting"; all is kept'
    ]


def test_the_last_words_are_the_agent_s_and_else_the_program_s(tmp_path):
    found = document(
        tmp_path,
        [
            action(1, "finish", final_thought="final", thought="thought"),
            action(2, "finish", outputs={"content": "output"}, thought=""),
            {**action(3, "finish", outputs={}, thought=""), "message": "All done!"},
        ],
    )

    assert [content for _, content in said(found)] == ["final", "output", "All done!"]


def test_a_thought_that_is_a_call_counts_once(tmp_path):
    found = document(tmp_path, [action(1, "think", thought="hm"), observed(2, "think", "logged", cause=1)])

    first, second = turns(found)
    assert (first.content, first.tool_calls[0].arguments) == ("", '{"thought":"hm"}')
    assert (second.name, second.content) == ("think", "logged")


def test_old_pairs_without_ids_are_linked_by_their_order_and_no_role_is_made_up(tmp_path):
    pairs = [
        [{"action": "message", "args": {"content": "fix it"}}, {"observation": "null", "content": "", "extras": {}}],
        [
            {"action": "run", "args": {"command": "ls", "thought": ""}},
            {"observation": "run", "content": "a", "extras": {}},
        ],
        [{"action": "finish", "args": {"thought": "done"}}, {"observation": "null", "content": "", "extras": {}}],
    ]
    found = lines(
        tmp_path, {"instance_id": "i1", "git_patch": "", "history": pairs}, {"instance_id": "i2", "history": pairs[1:]}
    )

    assert found.format == "openhands"
    assert [item.session for item in found.conversations] == ["i1", "i2"]
    assert [(turn.role, turn.content, turn.name) for turn in found.conversations[0].turns] == [
        (Role.UNKNOWN, "fix it", None),
        (Role.ASSISTANT, "", None),
        (Role.TOOL, "a", "run"),
        (Role.ASSISTANT, "done", None),
    ]
    assert {(turn.origin, turn.at, turn.at_text, turn.parent) for turn in turns(found)} == {(None, None, None, None)}
    assert told(found) == [(1, "a message of the source null; its role is kept as unknown")]


def test_the_output_of_a_resolver_is_no_list_of_issues(tmp_path):
    issue = {"owner": "o", "repo": "r", "number": 7, "title": "It breaks", "body": "…"}
    result = {
        "issue": issue,
        "issue_type": "issue",
        "history": [action(0, "message", "user", content="fix")],
        "success": True,
    }
    found = lines(tmp_path, result)

    (one,) = found.conversations
    assert (found.format, one.session, one.title, said(found)) == ("openhands", "7", "It breaks", [("user", "fix")])


def test_events_one_a_line_and_in_an_envelope_are_read(tmp_path):
    events = [action(0, "message", "user", content="hello"), action(1, "message", content="hi")]

    for found in (
        lines(tmp_path, *events),
        document(tmp_path, {"trajectory": events}),
        document(tmp_path, {"conversation_id": "x", "events": events}),
        document(tmp_path, {"id": "x", "history": events, "test_result": {}}),
    ):
        assert (found.format, said(found)) == ("openhands", [("user", "hello"), ("assistant", "hi")])


def test_a_result_without_its_call_and_a_call_without_its_result_are_told(tmp_path):
    found = document(tmp_path, [observed(1, "run", "lost", cause=0), action(2, "run", command="ls")])

    assert [message for _, message in told(found)] == [
        'message 1: a tool result without its call, id "0"',
        'message 2: a call of "run" without a result, id "2"',
    ]


def test_a_screenshot_is_noted(tmp_path):
    found = document(
        tmp_path,
        [
            action(1, "browse", url="https://example.com"),
            observed(
                2, "browse", "page", cause=1, extras={"screenshot": "data:image/png;base64,iVBOR", "set_of_marks": "x"}
            ),
        ],
    )

    assert turns(found)[1].attachments == ("image image/png",)
    assert "iVBOR" not in repr(found)


def sdk(kind, identity, source="agent", **more):
    return {"kind": kind, "id": identity, "timestamp": "2026-01-02T03:04:06Z", "source": source, **more}


def test_what_was_said_in_events_of_the_sdk_is_read(tmp_path):
    image = {"type": "image", "image_urls": ["data:image/png;base64,iVBOR"]}
    asked = {"role": "user", "content": [{"type": "text", "text": "list"}, image]}
    found = document(
        tmp_path,
        [
            sdk("SystemPromptEvent", "e0", system_prompt={"type": "text", "text": "be good"}, tools=[]),
            sdk("MessageEvent", "e1", "user", llm_message=asked),
            sdk("ConversationStateUpdateEvent", "e2", "environment", key="x", value=1),
            sdk("Condensation", "e3", "environment", summary="so far", forgotten_event_ids=[]),
        ],
    )

    assert [(turn.role, turn.content, turn.origin) for turn in turns(found)] == [
        (Role.SYSTEM, "be good", "e0"),
        (Role.USER, "list", "e1"),
    ]
    assert turns(found)[1].attachments == ("image image/png",)
    assert len(told(found)) == 1


def test_calls_and_results_in_events_of_the_sdk_belong_together(tmp_path):
    ran = {
        "thought": [{"type": "text", "text": "I look"}],
        "reasoning_content": "hm",
        "action": {"kind": "TerminalAction", "command": "ls"},
        "tool_call": {"id": "c1", "name": "terminal", "arguments": '{"command":"ls"}'},
    }
    output = {"kind": "TerminalObservation", "content": [{"type": "text", "text": "a.txt"}], "exit_code": 0}
    found = document(
        tmp_path,
        [
            sdk("ActionEvent", "e1", tool_name="terminal", tool_call_id="c1", **ran),
            sdk("ObservationEvent", "e2", "environment", action_id="e1", tool_call_id="c1", observation=output),
            sdk("ActionEvent", "e3", action={"kind": "X", "n": 1}, tool_name="x", tool_call_id="c2"),
            sdk("AgentErrorEvent", "e4", error="no such tool", tool_name="x", tool_call_id="c2"),
        ],
    )

    every = turns(found)
    assert said(found) == [("assistant", "I look"), ("tool", "a.txt"), ("assistant", ""), ("tool", "no such tool")]
    assert [turn.tool_calls[0].arguments for turn in every[::2]] == ['{"command":"ls"}', '{"n":1}']
    assert [turn.name for turn in every[1::2]] == ["terminal", "x"]
    assert (every[0].thinking, every[1].parent, every[1].extra) == ("hm", "e1", (("exit_code", "0"),))
    assert told(found) == []


def test_an_action_of_another_program_is_not_taken_for_one(tmp_path):
    with pytest.raises(Unreadable, match="unrecognised format"):
        lines(tmp_path, {"action": "login", "args": {}, "user": "ann"}, {"action": "logout", "args": {}})
    assert said(lines(tmp_path, action(0, "message", "user", content="hello"))) == [("user", "hello")]


def test_wrong_types_cost_their_event_a_warning(tmp_path):
    found = document(
        tmp_path,
        [
            action(0, "message", "user", content="hello"),
            {"id": [], "source": {}, "action": "run", "args": "x", "tool_call_metadata": 4},
            {"id": 3, "source": "agent", "observation": "run", "content": {"a": 1}, "extras": 5, "cause": []},
            {"id": 4, "action": 7},
            action(5, "message", "nobody", content=["x"]),
            6,
            action(
                6,
                "edit",
                metadata={"tool_call_id": "c1", "model_response": {"choices": [3, {"message": {"tool_calls": [4]}}]}},
            ),
        ],
    )

    assert [(turn.role, turn.content) for turn in turns(found)] == [
        (Role.USER, "hello"),
        (Role.ASSISTANT, ""),
        (Role.TOOL, '{"a":1}'),
        (Role.UNKNOWN, '["x"]'),
        (Role.ASSISTANT, ""),
    ]
    assert turns(found)[3].raw_role == "nobody"
    assert len(told(found)) == 5
