"""Data sets about long memory: LongMemEval's haystacks, and people who talk in LoCoMo and REALTALK."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.exchange import Opened
from memcli.terms import Role

FIXTURES = Path(__file__).parents[2] / "fixtures"
DATE = "1:56 pm on 8 May, 2023"
ASK = {"role": "user", "content": "my best is 25:50", "has_answer": True}
ANSWER = {"role": "assistant", "content": "well run", "has_answer": False}


def opened(tmp_path: Path, value: Any) -> Opened:
    path = tmp_path / "data.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return exchange.open_file(str(path))


def texts(found: Opened) -> list[list[str]]:
    return [[turn.content for turn in conversation.turns] for conversation in found.conversations]


def question(*sessions: Any, **more: Any) -> dict[str, Any]:
    return {
        "question_id": "q1",
        "question": "QUESTION",
        "answer": "ANSWER",
        "haystack_dates": [f"2023/05/2{number} (Thu) 20:21" for number in range(len(sessions))],
        "haystack_session_ids": [f"s{number}" for number in range(len(sessions))],
        "haystack_sessions": [*sessions],
        "answer_session_ids": ["s0"],
        **more,
    }


def spoken(speaker: Any, text: Any, **more: Any) -> dict[str, Any]:
    return {"speaker": speaker, "dia_id": "D1:1", "text": text, **more}


def people(**sessions: Any) -> dict[str, Any]:
    return {"sample_id": "conv-26", "conversation": {"speaker_a": "Caroline", "speaker_b": "Melanie", **sessions}}


def test_a_real_haystack_gives_the_messages_that_a_careful_reader_counts():
    rows = json.loads((FIXTURES / "EXPECTED_COUNTS.json").read_text(encoding="utf-8"))
    (row,) = (row for row in rows if row["format"] == "longmemeval")
    records = json.loads((FIXTURES / row["file"]).read_text(encoding="utf-8"))

    found = exchange.open_file(str(FIXTURES / row["file"]))

    every = [turn for conversation in found.conversations for turn in conversation.turns]
    assert (found.format, len(found.conversations), len(every)) == (
        "longmemeval",
        row["conversations"],
        row["messages"],
    )
    assert Counter(turn.role for turn in every) == row["roles"]
    assert [
        (conversation.session, {(turn.at, turn.at_text) for turn in conversation.turns})
        for conversation in found.conversations
    ] == [
        (session, {(None, date)})
        for record in records
        for session, date in zip(record["haystack_session_ids"], record["haystack_dates"], strict=True)
    ]
    assert found.warnings == ()


def test_questions_and_answers_are_no_messages(tmp_path):
    found = opened(tmp_path, [question([ASK, ANSWER])])

    assert texts(found) == [["my best is 25:50", "well run"]]
    assert not any(word in repr(found.conversations) for word in ("QUESTION", "ANSWER", "has_answer"))


def test_a_question_a_line_is_read_too(tmp_path):
    found = opened(tmp_path, f"{json.dumps(question([ASK]))}\n{json.dumps(question([ANSWER]))}\n")

    assert (found.format, texts(found)) == ("longmemeval", [["my best is 25:50"], ["well run"]])


@pytest.mark.parametrize("missing", [None, [], "text", 5, {"a": 1}])
def test_a_session_without_its_id_or_date_is_read_and_gets_none(tmp_path, missing):
    found = opened(tmp_path, [question([ASK], haystack_dates=missing, haystack_session_ids=missing)])

    (conversation,) = found.conversations
    assert (conversation.session, conversation.turns[0].at, conversation.turns[0].at_text) == (None, None, None)


@pytest.mark.parametrize("bad", [None, 5, {}, question(), question("text"), question(None), {"haystack_sessions": 5}])
def test_one_bad_question_costs_no_other(tmp_path, bad):
    found = opened(tmp_path, [bad, question([ASK])])

    assert texts(found) == [["my best is 25:50"]]
    assert len(found.warnings) == 1


@pytest.mark.parametrize("junk", [None, 5, "x", [1], {"role": 5, "content": None}])
def test_a_message_of_the_wrong_type_costs_no_other(tmp_path, junk):
    found = opened(tmp_path, [question([junk, ASK])])

    assert texts(found)[0][-1] == "my best is 25:50"
    assert found.warnings


def test_two_people_are_both_users_with_their_names(tmp_path):
    found = opened(
        tmp_path,
        [
            people(
                session_1=[spoken("Caroline", "hey"), spoken("Melanie", "hi", dia_id="D1:2")], session_1_date_time=DATE
            )
        ],
    )

    (conversation,) = found.conversations
    assert (found.format, conversation.session) == ("locomo", "conv-26/session_1")
    assert [(turn.role, turn.name, turn.content, turn.origin) for turn in conversation.turns] == [
        (Role.USER, "Caroline", "hey", "D1:1"),
        (Role.USER, "Melanie", "hi", "D1:2"),
    ]
    assert {(turn.at, turn.at_text) for turn in conversation.turns} == {(None, DATE)}
    assert found.warnings == ()


def test_sessions_follow_their_numbers_and_a_date_alone_is_none(tmp_path):
    talk = people(
        session_10=[spoken("A", "ten")],
        session_2=[spoken("B", "two")],
        session_10_date_time=DATE,
        session_11_date_time=DATE,
    )

    found = opened(tmp_path, [talk])

    assert texts(found) == [["two"], ["ten"]]
    assert found.warnings == ()


def test_what_is_told_about_the_talk_was_not_said(tmp_path):
    about = {
        "qa": [{"question": "SECRET", "answer": 6, "evidence": ["D8:6; D9:17", "D"]}],
        "observation": {"session_1_observation": "SECRET"},
        "session_summary": {"session_1_summary": "SECRET"},
        "event_summary": {"events_session_1": ["SECRET"]},
    }

    found = opened(tmp_path, [people(session_1=[spoken("A", "hey")]) | about])

    assert texts(found) == [["hey"]]
    assert "SECRET" not in repr(found)


def test_a_picture_is_a_note_and_what_a_machine_saw_in_it_travels_along(tmp_path):
    shared = spoken("A", "look", img_url=["https://example.com/a.jpg"], blip_caption="a cat", query="cat photo")

    found = opened(tmp_path, [people(session_1=[shared])])

    (turn,) = found.conversations[0].turns
    assert (turn.content, turn.attachments) == ("look", ("image https://example.com/a.jpg",))
    assert turn.extra == (("blip_caption", "a cat"), ("query", "cat photo"))


@pytest.mark.parametrize("wrapped", [False, True], ids=["object", "list"])
def test_the_older_layout_has_its_sessions_at_the_top(tmp_path, wrapped):
    talk = {
        "name": {"speaker_1": "Emi", "speaker_2": "Elise"},
        "session_1": [
            {"clean_text": "yo", "speaker": "Emi", "date_time": "29.12.2023, 22:42:04", "dia_id": "D1:1"},
            {"clean_text": "hey", "speaker": "elise", "dia_id": "D1:2"},
        ],
        "session_1_date_time": "29.12.2023, 22:40:00",
        "events_session_1": {"agent_a": []},
    }

    found = opened(tmp_path, [talk] if wrapped else talk)

    (conversation,) = found.conversations
    assert (found.format, conversation.session) == ("locomo", "session_1")
    assert [(turn.name, turn.content, turn.at_text) for turn in conversation.turns] == [
        ("Emi", "yo", "29.12.2023, 22:42:04"),
        ("elise", "hey", "29.12.2023, 22:40:00"),
    ]


@pytest.mark.parametrize("bad", [None, 5, {}, people(), people(session_1="text"), people(session_1=[None])])
def test_one_bad_conversation_costs_no_other(tmp_path, bad):
    found = opened(tmp_path, [bad, people(session_1=[spoken("A", "hey")])])

    assert texts(found) == [["hey"]]
    assert found.warnings


@pytest.mark.parametrize("junk", [None, 5, "x", [1], {}, spoken(5, {}), spoken(None, None), spoken("A", ["a"])])
def test_what_was_said_in_the_wrong_type_costs_nothing_else(tmp_path, junk):
    found = opened(tmp_path, [people(session_1=[junk, spoken("A", "hey")], session_1_date_time={"a": 1})])

    assert texts(found)[0][-1] == "hey"
    assert found.warnings


def test_sessions_in_which_nobody_speaks_are_refused(tmp_path):
    with pytest.raises(Unreadable, match="unrecognised format"):
        opened(tmp_path, {"session_1": [{"start": 1}], "session_2": "web"})
    assert opened(tmp_path, people(session_1=[spoken("A", "hey")])).format == "locomo"
