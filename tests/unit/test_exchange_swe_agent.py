"""Trajectories of SWE-agent: what was said once, though it stands there several times."""

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.facts import ToolCall
from memcli.terms import Role
from tests.agent_files import COUNTED, FIXTURES, counts, document, expected, said, text, told, turns

COUNTS = [row for row in expected("swe_agent/") if row["messages"]]


def item(role, content, **more):
    return {"role": role, "content": content, "agent": "main", **more}


def called(identity, name="open"):
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": '{"path":"a"}'}}


@pytest.mark.parametrize("row", COUNTS, ids=lambda row: row["file"])
def test_a_real_trajectory_gives_the_messages_that_a_careful_reader_counts(row):
    found = exchange.open_file(str(FIXTURES / row["file"]))

    assert counts(found) == {key: row[key] for key in COUNTED}
    assert found.format == "swe-agent"


def test_yaml_is_refused_by_name():
    with pytest.raises(Unreadable, match="it is YAML, which is not read") as caught:
        exchange.open_file(str(FIXTURES / "swe_agent/sw06_anthropic_demo.yaml"))
    assert "read as a SWE-agent trajectory" in caught.value.why


@pytest.mark.parametrize(
    "first", ["role: system", "agent: main\n    role: user", "content: |-\n      hi\n    role: user"]
)
def test_yaml_is_known_by_its_history(tmp_path, first):
    with pytest.raises(Unreadable, match="YAML"):
        text(tmp_path, f"# a demo\nhistory:\n  - {first}\n    content: hi\n", format="swe-agent")
    with pytest.raises(Unreadable, match="it is text, not JSON"):
        text(tmp_path, "history: long ago\n", format="swe-agent")


def test_the_trajectory_repeats_the_history(tmp_path):
    step = {"action": "open a", "observation": "body", "response": "looking", "thought": "looking", "state": "{}"}
    history = [
        item("user", "fix it"),
        item("assistant", "looking\n```\nopen a\n```", thought="looking", action="open a"),
    ]
    found = document(tmp_path, {"environment": "main", "trajectory": [step], "history": history, "info": {}})

    assert said(found) == [("user", "fix it"), ("assistant", "looking\n```\nopen a\n```")]
    assert turns(found)[1].thinking is None
    assert told(found) == []


def test_without_a_history_the_steps_are_read(tmp_path):
    step = {"action": "open a", "observation": "body", "response": "looking", "thought": "looking", "state": "{}"}
    found = document(tmp_path, {"environment": "main", "trajectory": [step, "x"], "history": [], "info": {}})

    assert said(found) == [("assistant", "looking"), ("user", "body")]
    assert [message for _, message in told(found)] == [
        "there is no history; read the steps of the trajectory instead",
        'skipped what is no step: "x"',
    ]


def test_a_result_belongs_to_the_call_that_it_lists(tmp_path):
    found = document(
        tmp_path,
        {
            "history": [
                item("assistant", "", tool_calls=[called("c1"), called("c2", "edit")], message_type="action"),
                item("tool", "edited\r\n", tool_call_ids=["c2"]),
                item("tool", [{"type": "text", "text": "opened", "cache_control": {}}], tool_call_ids=["c1", "c9"]),
            ]
        },
    )

    first, second, third = turns(found)
    assert first.tool_calls[0] == ToolCall(id="c1", name="open", arguments='{"path":"a"}')
    assert (second.name, second.content) == ("edit", "edited\r\n")
    assert (third.name, third.content) == ("open", "opened")
    assert told(found) == [(None, "message 3: one result for 2 calls; kept as that of the first")]


def test_a_demonstration_is_named_and_an_observation_keeps_its_role(tmp_path):
    found = document(
        tmp_path,
        {
            "history": [
                item("system", "be good", message_type="system_prompt"),
                item("user", "here is a demonstration", is_demo=True, message_type="demonstration"),
                item("user", "(Open file: n/a)", message_type="observation"),
            ]
        },
    )

    assert [(turn.role, turn.name, turn.extra) for turn in turns(found)] == [
        (Role.SYSTEM, None, ()),
        (Role.USER, "demonstration", (("message_type", "demonstration"),)),
        (Role.USER, None, (("message_type", "observation"),)),
    ]


def test_agents_side_by_side_are_conversations_of_their_own(tmp_path):
    history = [item("user", "one"), item("user", "two", agent="helper"), item("assistant", "three", action="x")]
    found = document(tmp_path, {"instance_id": "i1", "history": history})

    assert [(one.session, [turn.content for turn in one.turns]) for one in found.conversations] == [
        ("i1", ["one", "three"]),
        ("i1/helper", ["two"]),
    ]


def test_thinking_is_kept_apart_and_images_are_noted(tmp_path):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBOR"}}
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "SIGNED"}]
    found = document(
        tmp_path,
        {
            "history": [
                item("user", [{"type": "text", "text": "see"}, image]),
                item("assistant", "seen", thinking_blocks=blocks),
                item("assistant", "done", thought="but why"),
            ]
        },
    )

    assert [(turn.content, turn.thinking, turn.attachments) for turn in turns(found)] == [
        ("see", None, ("image image/png",)),
        ("seen", "hm", ()),
        ("done", "but why", ()),
    ]
    assert "iVBOR" not in repr(found)


def test_wrong_types_cost_their_message_a_warning(tmp_path):
    found = document(
        tmp_path,
        {
            "trajectory": {},
            "history": [
                item("user", "hello"),
                5,
                {
                    "role": 4,
                    "content": 7,
                    "agent": [],
                    "tool_calls": "x",
                    "tool_call_ids": {"a": 1},
                    "thinking_blocks": 3,
                },
                item("oracle", None, tool_calls=[3, {"function": 4, "id": []}]),
            ],
        },
    )

    assert [(turn.role, turn.content) for turn in turns(found)] == [
        (Role.USER, "hello"),
        (Role.UNKNOWN, ""),
        (Role.UNKNOWN, "7"),
    ]
    assert len(told(found)) >= 5
