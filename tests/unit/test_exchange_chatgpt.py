"""ChatGPT exports: the path through a tree, what on it was said, and what is left on other branches."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.exchange import Opened
from memcli.facts import ToolCall, Turn
from memcli.terms import Role

FIXTURES = Path(__file__).parents[2] / "fixtures"


def text(role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": list(parts)}
    return {"author": {"role": role}, "content": content, "metadata": {}, **more}


def content(role: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"author": {"role": role}, "content": {"content_type": kind, **more}, "recipient": "all"}


def chain(*messages: Any, **more: Any) -> dict[str, Any]:
    """Return a conversation in which each message answers the one before."""
    names = ["root", *(f"n{number}" for number in range(1, len(messages) + 1))]
    mapping = {
        name: {"id": name, "parent": names[at - 1] if at else None, "children": names[at + 1 : at + 2], "message": said}
        for at, (name, said) in enumerate(zip(names, (None, *messages), strict=True))
    }
    return {"id": "c1", "title": "Talk", "mapping": mapping, "current_node": names[-1], **more}


def opened(tmp_path: Path, value: Any, format: str = "auto") -> Opened:  # noqa: A002
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return exchange.open_file(str(path), format=format)


def turns(tmp_path: Path, *messages: Any) -> tuple[Turn, ...]:
    return opened(tmp_path, [chain(*messages)]).conversations[0].turns


def texts(found: Opened) -> list[list[str]]:
    return [[turn.content for turn in conversation.turns] for conversation in found.conversations]


def told(found: Opened) -> list[str]:
    return [warned.message for warned in found.warnings]


def branched() -> Opened:
    return exchange.open_file(str(FIXTURES / "malformed/m38_chatgpt_branches.json"))


def every_branch() -> Opened:
    return exchange.open_file(str(FIXTURES / "malformed/m38_chatgpt_branches.json"), format="chatgpt-branches")


def test_the_active_path_is_read_and_other_branches_are_counted():
    found = branched()

    assert found.format == "chatgpt"
    assert [(conversation.session, conversation.title) for conversation in found.conversations] == [("c-1", "Trip")]
    assert texts(found) == [["Plan a trip", "Draft one", "Longer please (edited prompt)", "Long plan"]]
    assert told(found) == [
        'conversation 1, "Trip": 3 messages lie on other branches; `--format chatgpt-branches` reads every branch'
    ]


def test_a_message_answers_the_one_before_it_on_the_path():
    assert [(turn.origin, turn.parent) for turn in branched().conversations[0].turns] == [
        ("u1", None),
        ("a1", "u1"),
        ("u2b", "a1"),
        ("a2b", "u2b"),
    ]


def test_every_branch_is_a_conversation_of_its_own_when_that_is_asked_for():
    found = every_branch()

    assert [conversation.title for conversation in found.conversations] == [
        "Trip (branch 1 of 3)",
        "Trip (branch 2 of 3)",
        "Trip (branch 3 of 3)",
    ]
    assert [[turn.origin for turn in conversation.turns] for conversation in found.conversations] == [
        ["u1", "a1b"],
        ["u1", "a1", "u2", "a2"],
        ["u1", "a1", "u2b", "a2b"],
    ]
    assert found.warnings == ()


def test_a_conversation_without_branches_keeps_its_title_when_every_branch_is_read(tmp_path):
    found = opened(tmp_path, [chain(text("user", "hi"))], "chatgpt-branches")

    assert [(conversation.title, len(conversation.turns)) for conversation in found.conversations] == [("Talk", 1)]


def test_a_branch_in_which_nothing_new_was_said_is_none(tmp_path):
    talk = chain(text("user", "hi"), text("assistant", "hello"))
    talk["mapping"]["empty"] = {"id": "empty", "parent": "n1", "children": [], "message": text("assistant", "")}

    assert texts(opened(tmp_path, [talk])) == [["hi", "hello"]]
    assert opened(tmp_path, [talk]).warnings == ()
    assert texts(opened(tmp_path, [talk], "chatgpt-branches")) == [["hi", "hello"]]


def test_every_type_of_content_comes_to_what_was_said():
    found = exchange.open_file(str(FIXTURES / "malformed/m37_chatgpt_content_types.json"))

    asked, called, printed, quoted, answered = found.conversations[0].turns
    assert (asked.role, asked.content, asked.attachments) == (
        Role.USER,
        "What is this?",
        ("image file-service://file-AAAA",),
    )
    assert (called.content, called.tool_calls) == ("", (ToolCall(id=None, name="python", arguments="print(1)"),))
    assert (printed.role, printed.name, printed.content) == (Role.TOOL, "python", "1\n")
    assert (quoted.role, quoted.content) == (Role.TOOL, "quoted")
    assert quoted.extra == (("title", "Example"), ("url", "https://example.com"))
    assert (answered.content, answered.thinking) == ("final answer", "hm")
    assert answered.at == 1_700_000_008_000_000
    assert found.warnings == ()


def test_the_export_in_a_zip_holds_the_same_conversations(tmp_path):
    packed = zipfile.ZipFile(io.BytesIO((FIXTURES / "synthetic/sy08_chatgpt_export.zip").read_bytes()))
    found = opened(tmp_path, json.loads(packed.read("conversations.json")))

    assert [(conversation.session, len(conversation.turns)) for conversation in found.conversations] == [
        ("c-1", 4),
        ("conv-shapes", 5),
    ]


@pytest.mark.parametrize(
    "layout",
    [lambda talk: [talk], lambda talk: talk, lambda talk: {"conversations": [talk]}],
    ids=["array", "one conversation", "wrapped"],
)
def test_each_layout_is_recognised(tmp_path, layout):
    found = opened(tmp_path, layout(chain(text("user", "hi"))))

    assert (found.format, texts(found)) == ("chatgpt", [["hi"]])


def test_the_order_of_the_map_is_not_the_order_of_the_talk(tmp_path):
    talk = chain(text("user", "one"), text("assistant", "two"), text("user", "three"))
    talk["mapping"] = dict(reversed(talk["mapping"].items()))

    assert texts(opened(tmp_path, [talk])) == [["one", "two", "three"]]


def test_times_do_not_order_messages_and_none_is_invented(tmp_path):
    late, none, zero = turns(
        tmp_path,
        text("user", "late", create_time=1_700_000_009.5),
        text("assistant", "none", create_time=None),
        text("user", "zero", create_time=0),
    )

    assert (late.at, none.at, zero.at) == (1_700_000_009_500_000, None, None)
    assert (late.at_text, none.at_text, zero.at_text) == (None, None, "0")


def test_a_conversation_without_a_time_stops_nothing(tmp_path):
    dated = chain(text("user", "a", create_time=1_700_000_000), create_time=1_700_000_000.0)
    undated = chain(text("user", "b"), create_time=None, id="c2")

    found = opened(tmp_path, [undated, dated])

    assert texts(found) == [["b"], ["a"]]
    assert found.warnings == ()


def test_messages_without_metadata_or_a_recipient_are_read(tmp_path):
    bare = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["hi"]}}
    null = {**bare, "metadata": None, "recipient": None, "create_time": None, "weight": None}

    assert [turn.content for turn in turns(tmp_path, bare, null)] == ["hi", "hi"]


@pytest.mark.parametrize(
    "unseen",
    [
        text("system", "", metadata={"is_visually_hidden_from_conversation": True}),
        text("user", "SECRET", metadata={"is_visually_hidden_from_conversation": True}),
        text("assistant", "SECRET", metadata={"is_visually_hidden": True}),
        text(
            "system", "SECRET", metadata={"is_user_system_message": True, "user_context_message_data": {"a": "SECRET"}}
        ),
        content("user", "user_editable_context", user_profile="SECRET", user_instructions="SECRET"),
        content("assistant", "model_editable_context", model_set_context="SECRET"),
        content("assistant", "reasoning_recap", content="SECRET"),
    ],
    ids=["empty system", "hidden", "hidden of old", "instructions", "profile", "memory", "recap"],
)
def test_what_nobody_saw_is_no_message(tmp_path, unseen):
    found = opened(tmp_path, [chain(unseen, text("user", "hi"))])

    assert texts(found) == [["hi"]]
    assert found.conversations[0].turns[0].parent is None
    assert "SECRET" not in repr(found)


def test_a_weight_of_zero_hides_nothing_that_was_shown(tmp_path):
    assert [turn.content for turn in turns(tmp_path, text("user", "hi", weight=0.0))] == ["hi"]


def test_empty_parts_are_no_messages(tmp_path):
    found = opened(tmp_path, [chain(text("user", ""), text("user"), text("user", None), text("user", "hi"))])

    assert texts(found) == [["hi"]]
    assert found.warnings == ()


def test_a_message_without_parts_costs_a_warning_and_no_more(tmp_path):
    found = opened(
        tmp_path, [chain({"author": {"role": "user"}, "content": {"content_type": "text"}}, text("user", "b"))]
    )

    assert texts(found) == [["b"]]
    assert told(found) == ['conversation 1, "Talk": message 1: content of type "text" holds no text; noted, not read']


def test_pictures_and_sounds_are_notes_and_what_was_said_aloud_is_text(tmp_path):
    (turn,) = turns(
        tmp_path,
        content(
            "user",
            "multimodal_text",
            parts=[
                {"content_type": "audio_transcription", "text": "hello there", "direction": "in"},
                {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_1"},
                {
                    "content_type": "real_time_user_audio_video_asset_pointer",
                    "audio_asset_pointer": {"asset_pointer": "sediment://file_2"},
                },
                {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-3"},
            ],
        )
        | {"metadata": {"attachments": [{"id": "file-3", "name": "a.png"}, {"id": "file-4", "name": "b.pdf"}, "junk"]}},
    )

    assert turn.content == "hello there"
    assert turn.attachments == (
        "audio sediment://file_1",
        "audio sediment://file_2",
        "image file-service://file-3",
        "file b.pdf",
    )


def test_what_is_written_to_a_tool_is_a_call_and_may_have_many_results(tmp_path):
    found = opened(
        tmp_path,
        [
            chain(
                text("user", "look"),
                content("assistant", "code", text='{"q": 1}') | {"recipient": "browser"},
                content("tool", "tether_browsing_display", result="page one")
                | {"author": {"role": "tool", "name": None}},
                content("tool", "tether_quote", text="page two"),
                text("assistant", "found"),
            )
        ],
    )

    asked, called, first, second, answered = found.conversations[0].turns
    assert (called.content, called.tool_calls) == ("", (ToolCall(id=None, name="browser", arguments='{"q": 1}'),))
    assert (first.name, first.content) == ("browser", "page one")
    assert (second.name, second.content) == (None, "page two")
    assert (asked.tool_calls, answered.tool_calls) == ((), ())
    assert found.warnings == ()


def test_a_call_without_a_result_is_told(tmp_path):
    call = content("assistant", "code", text="1") | {"recipient": "python"}
    result = content("tool", "execution_output", text="1") | {"author": {"role": "tool", "name": "python"}}

    found = opened(tmp_path, [chain(call, text("user", "again"), call, result)])

    assert told(found) == ['conversation 1, "Talk": message 1: a call of "python" without a result']


def test_thoughts_go_with_the_answer_that_follows_them(tmp_path):
    thoughts = content("assistant", "thoughts", thoughts=[{"summary": "s", "content": "one"}, {"summary": "two"}])

    called, result, answered = turns(
        tmp_path,
        thoughts,
        content("assistant", "code", text="1") | {"recipient": "python"},
        content("tool", "execution_output", text="1"),
        content("assistant", "thoughts", thoughts=[{"content": "three"}]),
        text("assistant", "done"),
    )

    assert (called.thinking, result.thinking, answered.thinking) == ("one\ntwo", None, "three")


def test_thoughts_that_no_answer_followed_are_told(tmp_path):
    found = opened(
        tmp_path, [chain(text("user", "hi"), content("assistant", "thoughts", thoughts=[{"content": "hm"}]))]
    )

    assert texts(found) == [["hi"]]
    assert told(found) == ['conversation 1, "Talk": skipped thoughts that no answer followed: "hm"']


def test_content_of_a_type_that_is_not_known_is_noted(tmp_path):
    found = opened(tmp_path, [chain(content("assistant", "hologram", data=1))])

    assert found.conversations[0].turns[0].attachments == ("content of type hologram",)
    assert ['"hologram" holds no text' in message for message in told(found)] == [True]


def test_a_screenshot_is_an_image(tmp_path):
    shot = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_9"}

    (turn,) = turns(tmp_path, content("tool", "computer_output", screenshot=shot))

    assert turn.attachments == ("image sediment://file_9",)


@pytest.mark.parametrize("current", [None, "gone", 5])
def test_without_a_current_node_the_last_branch_is_taken_and_that_is_told(tmp_path, current):
    talk = chain(text("user", "hi"), text("assistant", "first"))
    talk["mapping"]["n1"]["children"] = ["n2", "later"]
    talk["mapping"]["later"] = {"id": "later", "parent": "n1", "children": [], "message": text("assistant", "second")}
    talk["current_node"] = current

    found = opened(tmp_path, [talk])

    assert texts(found) == [["hi", "second"]]
    assert "the last branch was taken" in told(found)[0]


def test_messages_that_answer_each_other_in_a_circle_end_the_path(tmp_path):
    talk = chain(text("user", "a"), text("assistant", "b"))
    talk["mapping"]["root"]["parent"] = "n2"

    found = opened(tmp_path, [talk])

    assert texts(found) == [["a", "b"]]
    assert ["in a circle" in message for message in told(found)] == [True]


def test_a_tree_that_only_names_children_is_read(tmp_path):
    talk = chain(text("user", "a"), text("assistant", "b"))
    for node in talk["mapping"].values():
        del node["parent"]

    assert texts(opened(tmp_path, [talk])) == [["a", "b"]]


@pytest.mark.parametrize(
    "bad",
    [
        None,
        5,
        {"title": "no tree"},
        {"title": "a list", "mapping": []},
        {"title": "empty", "mapping": {}, "current_node": None},
        {
            "title": "junk",
            "mapping": {"a": 5, "b": {"message": "text", "parent": {}, "children": 1}},
            "current_node": "b",
        },
    ],
    ids=["null", "number", "no tree", "tree of the wrong type", "empty", "junk"],
)
def test_one_bad_conversation_costs_no_other(tmp_path, bad):
    found = opened(tmp_path, [bad, chain(text("user", "hi"))])

    assert texts(found) == [["hi"]]
    assert any(message.startswith("conversation 1") or "number 1" in message for message in told(found))


@pytest.mark.parametrize("junk", [None, 5, "x", [1], {"a": 1}, [["a"]]])
@pytest.mark.parametrize("key", ["author", "content", "metadata", "create_time", "recipient", "id", "weight"])
def test_a_field_of_the_wrong_type_costs_no_other_message(tmp_path, key, junk):
    found = opened(tmp_path, [chain({**text("user", "odd"), key: junk}, text("assistant", "fine"))])

    assert texts(found)[0][-1] == "fine"


def test_an_export_in_which_nothing_was_said_is_no_success(tmp_path):
    with pytest.raises(Unreadable, match="no message stands in it; it was read as a ChatGPT export"):
        opened(tmp_path, [chain()])
    assert texts(opened(tmp_path, [chain(text("user", "hi"))])) == [["hi"]]


@pytest.mark.parametrize(
    "other",
    [
        [{"conversation_id": "1", "dialog": [{"robot": "hi"}]}],
        {"mapping": {"a": "b"}},
        [{"mapping": ["a"]}],
    ],
)
def test_a_file_that_only_has_the_name_is_refused(tmp_path, other):
    with pytest.raises(Unreadable, match="unrecognised format"):
        opened(tmp_path, other)
    assert opened(tmp_path, chain(text("user", "hi"))).format == "chatgpt"
