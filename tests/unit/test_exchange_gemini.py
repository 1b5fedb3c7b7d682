"""Gemini CLI sessions: one object, lines that grow, and messages alone."""

import json

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.terms import Role
from tests.agent_files import COUNTED, FIXTURES, counts, document, expected, lines, said, told, turns

HEAD = {
    "sessionId": "s1",
    "projectHash": "f0",
    "startTime": "2026-01-02T03:04:05Z",
    "lastUpdated": "2026-01-02T03:05:05Z",
}
COUNTS = [row for row in expected("gemini/") if row["messages"]]


def message(identity, kind, content, **more):
    return {"id": identity, "timestamp": "2026-01-02T03:04:06Z", "type": kind, "content": content, **more}


def tool(identity, *, output=None, **more):
    answer = {"functionResponse": {"id": identity, "name": "ls", "response": {"output": output}}}
    result = {} if output is None else {"result": [answer], "status": "success"}
    return {"id": identity, "name": "ls", "args": {"path": "."}, **result, **more}


def session(*messages, **more):
    return {**HEAD, "messages": list(messages), **more}


@pytest.mark.parametrize("row", COUNTS, ids=lambda row: row["file"])
def test_a_real_session_gives_the_messages_that_a_careful_reader_counts(row):
    found = exchange.open_file(str(FIXTURES / row["file"]))

    assert counts(found) == {key: row[key] for key in COUNTED}
    assert found.format == "gemini"


def test_a_message_alone_is_recognised_by_its_type():
    # The list of counts calls this file unknown, since nothing around the message says what it is. No other tool
    # names its assistant `gemini` and its calls `toolCalls`, so the answer and what came of its call are read.
    found = exchange.open_file(str(FIXTURES / "gemini/gm07_cancelled_tool.json"))

    answer, result = turns(found)
    assert (found.format, answer.role, len(answer.tool_calls)) == ("gemini", Role.ASSISTANT, 1)
    assert (result.name, result.content) == (
        "run_shell_command",
        "[Operation Cancelled] Reason: User cancelled the operation.",
    )
    assert result.extra == (("status", "cancelled"),)
    assert told(found) == []


def test_a_file_with_nothing_but_a_warning_is_refused_by_name():
    with pytest.raises(Unreadable, match="no message stands in it; it was read as a Gemini CLI session") as caught:
        exchange.open_file(str(FIXTURES / "gemini/gm03_warning_only.json"))
    assert "skipped a record of type warning" in caught.value.why


def test_notices_are_told_and_are_no_messages(tmp_path):
    found = document(
        tmp_path,
        session(
            message("m1", "user", "hello"), message("m2", "info", "update!"), message("m3", "error", [{"text": "boom"}])
        ),
    )

    assert said(found) == [("user", "hello")]
    assert [text for _, text in told(found)] == [
        'skipped a record of type info, which nobody said: "update!"',
        'skipped a record of type error, which nobody said: "boom"',
    ]


def test_a_result_is_taken_from_its_answer_and_never_from_what_was_shown(tmp_path):
    call = tool("c1", output="a.txt", resultDisplay="A COPY")
    failed = {
        **tool("c2", status="error"),
        "result": [{"functionResponse": {"id": "c2", "response": {"error": "gone"}}}],
    }
    odd = {**tool("c3"), "result": [{"functionResponse": {"id": "c3", "response": {"rows": [1]}}}]}
    left = tool("c4", resultDisplay="only this is left")
    none = tool("c5", status="executing")
    found = document(tmp_path, session(message("m1", "gemini", "", toolCalls=[call, failed, odd, left, none])))

    assert [(turn.tool_call_id, turn.content) for turn in turns(found)[1:]] == [
        ("c1", "a.txt"),
        ("c2", "gone"),
        ("c3", '{"rows":[1]}'),
        ("c4", "only this is left"),
    ]
    assert "COPY" not in repr(found)
    assert told(found) == [(None, 'message 1: a call of "ls" without a result, id "c5"')]


def test_thoughts_are_kept_apart_and_images_are_noted(tmp_path):
    found = document(
        tmp_path,
        session(
            message(
                "m1",
                "user",
                [
                    {"text": "see"},
                    {"inlineData": {"mimeType": "image/png", "data": "iVBOR"}},
                    {"fileData": {"fileUri": "gs://x/y"}},
                ],
            ),
            message(
                "m2",
                "gemini",
                [{"text": "hidden", "thought": True}, {"text": "seen"}, {"thoughtSignature": "SIGNED"}],
                thoughts=[{"subject": "Plan", "description": "first look", "timestamp": "x"}],
            ),
        ),
    )

    first, second = turns(found)
    assert first.attachments == ("image image/png", "file gs://x/y")
    assert (second.content, second.thinking) == ("seen", "hidden\nPlan\nfirst look")
    assert "iVBOR" not in repr(found)
    assert "SIGNED" not in repr(found)


def test_an_image_that_a_tool_gave_is_noted(tmp_path):
    answer = {
        "id": "c1",
        "response": {"output": "a picture"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": "iVBOR"}}],
    }
    call = {
        **tool("c1"),
        "result": [{"functionResponse": answer}, {"inlineData": {"mimeType": "image/jpeg", "data": "/9j"}}],
    }
    found = document(tmp_path, session(message("m1", "gemini", "", toolCalls=[call])))

    result = turns(found)[1]
    assert (result.content, result.attachments) == ("a picture", ("image image/png", "image image/jpeg"))


def test_what_was_typed_is_a_copy_of_what_was_sent(tmp_path):
    found = document(
        tmp_path,
        session(message("m1", "user", [{"text": "explain @a"}, {"text": "BODY"}], displayContent="explain @a")),
    )

    assert said(found) == [("user", "explain @a\nBODY")]


def test_the_preamble_is_named_context(tmp_path):
    found = document(
        tmp_path, session(message("m1", "user", "<session_context>\nToday is …"), message("m2", "user", "hi"))
    )

    assert [turn.name for turn in turns(found)] == ["context", None]


def test_a_message_that_grows_keeps_its_place_and_counts_once(tmp_path):
    found = lines(
        tmp_path,
        HEAD,
        message("u1", "user", "list"),
        message("g1", "gemini", "", toolCalls=[tool("c1", status="executing")]),
        message("u2", "user", [{"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "early"}}}]),
        message("g2", "gemini", "done"),
        {"$set": {"lastUpdated": "2026-01-02T03:06:00Z"}},
        message("g1", "gemini", "", toolCalls=[tool("c1", output="a.txt")]),
        {"id": "g2", "type": "gemini", "tokens": {"total": 9}},
    )

    assert said(found) == [("user", "list"), ("assistant", ""), ("tool", "a.txt"), ("assistant", "done")]
    assert [turn.origin for turn in turns(found)] == ["u1", "g1", None, "g2"]
    assert (found.format, found.conversations[0].session, told(found)) == ("gemini", "s1", [])


def test_calls_and_answers_that_stand_in_the_contents_belong_together(tmp_path):
    found = lines(
        tmp_path,
        HEAD,
        message("g1", "gemini", [{"text": "look"}, {"functionCall": {"id": "c1", "name": "ls", "args": {}}}]),
        message("u1", "user", [{"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a.txt"}}}]),
    )

    assert said(found) == [("assistant", "look"), ("tool", "a.txt")]
    assert turns(found)[1].name == "ls"
    assert told(found) == []


def test_what_was_taken_back_was_said(tmp_path):
    found = lines(
        tmp_path,
        HEAD,
        message("u1", "user", "keep"),
        message("u2", "user", "wrong"),
        message("g2", "gemini", "answer"),
        {"$rewindTo": "u2"},
        message("u3", "user", "right"),
        {"$rewindTo": "nowhere"},
    )

    assert [content for _, content in said(found)] == ["keep", "wrong", "answer", "right"]
    assert told(found) == [
        (5, "2 messages were taken back here; kept, since it was said"),
        (7, 'what followed "nowhere", which is not in the file, was taken back here; kept, since it was said'),
    ]


def test_a_context_that_is_set_again_gives_what_is_new_in_it(tmp_path):
    found = lines(
        tmp_path,
        HEAD,
        {"$set": {"messages": [message("u1", "user", "yes")]}},
        {"$set": {"messages": [message("u1", "user", "yes"), message("g1", "gemini", "good")]}},
        {
            "$set": {
                "messages": [
                    message("x1", "user", "yes"),
                    message("x2", "gemini", "good"),
                    message("x3", "user", "yes"),
                ]
            }
        },
        {"$set": {"messages": []}},
    )

    assert said(found) == [("user", "yes"), ("assistant", "good"), ("user", "yes")]


def test_a_compression_takes_nothing_away_and_adds_nothing(tmp_path):
    found = lines(
        tmp_path,
        HEAD,
        message("u1", "user", "first"),
        message("g1", "gemini", "answer"),
        {
            "$set": {
                "messages": [
                    message("x1", "user", "<state_snapshot>SUMMARY</state_snapshot>"),
                    message("x2", "gemini", "Got it."),
                    message("x3", "gemini", "answer"),
                ]
            }
        },
        message("u2", "user", "second"),
    )

    assert [content for _, content in said(found)] == ["first", "answer", "second"]
    assert told(found) == [(4, "the model's context was compressed here; 2 messages written for that are skipped")]


def test_a_cut_line_costs_only_itself(tmp_path):
    found = lines(
        tmp_path,
        HEAD,
        message("u1", "user", "one"),
        json.dumps(message("u2", "user", "two"))[:50],
        message("u3", "user", "three"),
    )

    assert [content for _, content in said(found)] == ["one", "three"]
    assert [line for line, _ in told(found)] == [3]


def test_sessions_in_one_file_are_conversations_of_their_own(tmp_path):
    found = lines(
        tmp_path, HEAD, message("u1", "user", "one"), {**HEAD, "sessionId": "s2"}, message("u1", "user", "two")
    )
    listed = document(
        tmp_path, [{"messages": [message("u1", "gemini", "one")]}, {"messages": [message("u1", "gemini", "two")]}]
    )

    assert [(item.session, item.turns[0].content) for item in found.conversations] == [("s1", "one"), ("s2", "two")]
    assert [item.turns[0].content for item in listed.conversations] == ["one", "two"]


def test_a_saved_chat_is_a_list_of_contents(tmp_path):
    contents = [
        {"role": "user", "parts": [{"text": "hello"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}}]},
        {"role": "function", "parts": [{"functionResponse": {"name": "ls", "response": {"output": "a.txt"}}}]},
        {"role": "model", "parts": [{"text": "one file"}]},
    ]
    want = [("user", "hello"), ("assistant", ""), ("tool", "a.txt"), ("assistant", "one file")]

    for value in (contents, {"history": contents, "authType": "oauth"}):
        found = document(tmp_path, value)
        assert (found.format, said(found), told(found)) == ("gemini", want, [])


def test_a_type_that_is_not_known_is_kept_as_unknown(tmp_path):
    found = document(tmp_path, session(message("m1", "oracle", "hm"), message("m2", "user", "hello")))

    assert [(turn.role, turn.raw_role) for turn in turns(found)] == [(Role.UNKNOWN, "oracle"), (Role.USER, None)]
    assert told(found) == [(None, 'the type "oracle" is not known; kept as unknown')]


def test_wrong_types_cost_their_message_a_warning(tmp_path):
    found = document(
        tmp_path,
        session(
            5,
            message("m1", "user", 7),
            message(
                [], "gemini", None, toolCalls=["x", {"id": {}, "name": 3, "result": 9}], thoughts=["t", 4], timestamp={}
            ),
            message("m2", "user", [{"mystery": 1}, None, "text"]),
        ),
    )

    assert said(found) == [("user", "7"), ("assistant", ""), ("tool", "9"), ("user", "text")]
    assert [text for _, text in told(found)][:2] == [
        "skipped what is no message: 5",
        "its content is neither text nor a list; kept as text",
    ]


def test_a_time_without_a_zone_stays_text(tmp_path):
    found = document(
        tmp_path,
        session(
            message("m1", "user", "a", timestamp="2026-01-02T03:04:05"), {"id": "m2", "type": "user", "content": "b"}
        ),
    )

    assert [(turn.at, turn.at_text) for turn in turns(found)] == [(None, "2026-01-02T03:04:05"), (None, None)]
