"""Aider's chat history: who wrote a line, and where a session begins."""

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.terms import Role
from tests.agent_files import FIXTURES, counts, expected, said, text, told, turns

HEAD = "# aider chat started at 2026-01-02 03:04:05"


def test_a_real_history_gives_a_conversation_for_each_session_in_which_something_was_said():
    # The list of counts takes the file for one conversation, though each header begins a session with an empty
    # context: eight of its thirteen sessions say anything. It takes `/diff` and `/ex`, which stand as two prompts
    # with a blank line between them, for one message of the user; all other numbers are the same.
    (row,) = expected("aider/")
    found = exchange.open_file(str(FIXTURES / row["file"]))

    got = counts(found)
    assert (row["conversations"], row["messages"], row["roles"]["user"]) == (1, 23, 6)
    assert (got["conversations"], got["messages"]) == (8, 24)
    assert got["roles"] == {**row["roles"], "user": 7}
    assert [turn.content for turn in turns(found) if turn.role is Role.USER][2:4] == ["/diff", "/ex"]
    assert got["tool_calls"] == got["open_calls"] == got["orphan_results"] == 0


def test_the_beginning_of_a_line_says_who_wrote_it(tmp_path):
    answer = [
        "Certainly!",
        "",
        "#### A heading of the answer",
        "```python",
        "<<<<<<< SEARCH",
        "red",
        "=======",
        "blue",
        ">>>>>>> REPLACE",
        "```",
    ]
    asked = ["#### make it blue  ", "####   ", "#### please  "]
    whole = ["", HEAD, "", "> Aider v1  ", "> Git repo: none  ", "", *asked, "", *answer, "", "> Applied edit  ", ">"]
    found = text(tmp_path, "\n".join(whole))

    assert found.format == "aider"
    assert said(found) == [
        ("tool", "Aider v1\nGit repo: none"),
        ("user", "make it blue\n\nplease"),
        ("assistant", "\n".join(answer)),
        ("tool", "Applied edit"),
    ]
    assert told(found) == []


def test_a_prompt_is_one_also_where_an_editor_took_the_blanks_away(tmp_path):
    found = text(tmp_path, f"{HEAD}\n\n#### one\n\nanswer\n\n#### two\n\n#### three\n")

    assert said(found) == [("user", "one"), ("assistant", "answer"), ("user", "two"), ("user", "three")]


def test_text_before_the_first_header_is_a_session_that_is_cut(tmp_path):
    found = text(tmp_path, f"the end of an answer\n\n{HEAD}\n\n#### hi  \n")

    assert [(item.title, item.turns[0].content) for item in found.conversations] == [
        (None, "the end of an answer"),
        ("aider chat started at 2026-01-02 03:04:05", "hi"),
    ]
    assert told(found) == [(1, "the file begins within a session; its beginning is not there")]


def test_empty_sessions_are_none(tmp_path):
    found = text(tmp_path, f"{HEAD}\n\n\n{HEAD}\n\n#### hi  \n\n{HEAD}\n\n>  \n")

    assert [len(item.turns) for item in found.conversations] == [1]


def test_the_time_stays_text_and_there_is_no_id(tmp_path):
    found = text(tmp_path, f"{HEAD}\n\n> banner  \n\n#### hi  \n")

    assert [(turn.at, turn.at_text) for turn in turns(found)] == [(None, "2026-01-02 03:04:05"), (None, None)]
    assert found.conversations[0].session is None


def test_line_ends_of_windows_are_no_part_of_what_was_said(tmp_path):
    found = text(tmp_path, f"{HEAD}\n\n> banner  \n\n#### hi  \n\nhello\nagain\n".replace("\n", "\r\n"))

    assert said(found) == [("tool", "banner"), ("user", "hi"), ("assistant", "hello\nagain")]


def test_what_is_no_text_is_refused_by_name(tmp_path):
    with pytest.raises(Unreadable, match="read as an Aider chat history, and skipped what is no text"):
        text(tmp_path, '{"role": "user"}', format="aider")
    assert said(text(tmp_path, f"{HEAD}\n\n#### hi  \n", format="aider")) == [("user", "hi")]
