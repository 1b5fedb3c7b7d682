"""Text in which every message begins with who speaks, and text in which that only seems so."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.exchange import Opened
from memcli.exchange.loose import Prose
from memcli.exchange.transcripts.text import TEXT
from memcli.facts import Conversation, Turn
from memcli.terms import Role

FIXTURES = Path(__file__).parents[2] / "fixtures"


def opened(tmp_path: Path, text: str, format: str = "auto") -> Opened:  # noqa: A002
    path = tmp_path / "chat.md"
    path.write_text(text, encoding="utf-8")
    return exchange.open_file(str(path), format=format)


def only(found: Opened) -> Conversation:
    (conversation,) = found.conversations
    return conversation


def turns(tmp_path: Path, text: str) -> tuple[Turn, ...]:
    found = opened(tmp_path, text)
    assert found.format == "text"
    return only(found).turns


def said(tmp_path: Path, text: str) -> list[tuple[str, str]]:
    return [(str(turn.role), turn.content) for turn in turns(tmp_path, text)]


def test_a_real_display_of_messages_gives_those_that_a_careful_reader_counts():
    rows = json.loads((FIXTURES / "EXPECTED_COUNTS.json").read_text(encoding="utf-8"))
    (row,) = (row for row in rows if row["format"] == "text_transcript")

    found = exchange.open_file(str(FIXTURES / row["file"]))

    every = [turn for conversation in found.conversations for turn in conversation.turns]
    assert (found.format, len(found.conversations), len(every)) == ("text", row["conversations"], row["messages"])
    assert Counter(turn.role for turn in every) == row["roles"]
    assert found.warnings == ()
    assert found.conversations[0].turns[3].content == "None"


def test_a_chat_in_plain_lines_is_read():
    found = exchange.open_file(str(FIXTURES / "malformed/n12_prose.txt"))

    assert [(str(turn.role), turn.content) for turn in only(found).turns] == [
        ("user", "hello there"),
        ("assistant", "hi, how can I help?"),
        ("user", "what is 2+2"),
        ("assistant", "4"),
    ]
    assert found.warnings == ()


@pytest.mark.parametrize(
    "text",
    [
        "User: hi\nAssistant: hello\n",
        "user: hi\r\nassistant: hello\r\n",
        "HUMAN: hi\n\nAI: hello",
        "\n\nHuman: hi\n\nAssistant: hello",
        "You: hi\nChatGPT: hello",
        "You said:\nhi\n\nChatGPT said:\nhello\n",
        "User:hi\nBot:hello",
        "**User:** hi\n\n**Assistant:** hello",
        "**User**: hi\n\n**Assistant**: hello",
        "**You**\n\nhi\n\n**Claude**\n\nhello",
        "- **User:** hi\n- **AI:** hello",
        "__User:__ hi\n__AI:__ hello",
        "## User\n\nhi\n\n## Assistant\n\nhello\n",
        "#### You:\nhi\n#### ChatGPT:\nhello",
        "### **Human**\nhi\n### **Assistant**\nhello",
        "## 🧑 User\nhi\n\n---\n\n## 🤖 Assistant\nhello\n\n---\n",
        "🧑 **User:** hi\n🤖 **Assistant:** hello",
    ],
)
def test_every_way_to_name_a_speaker_is_understood(tmp_path, text):
    assert said(tmp_path, text) == [("user", "hi"), ("assistant", "hello")]


def test_lines_that_name_nobody_go_on_with_the_message(tmp_path):
    text = "User: one\ntwo\n\nNote: three\n\nAssistant: - a\n- b: c\n"

    assert said(tmp_path, text) == [("user", "one\ntwo\n\nNote: three"), ("assistant", "- a\n- b: c")]


def test_system_and_tool_have_their_roles(tmp_path):
    assert said(tmp_path, "System: be brief\nUser: look\nAssistant:\nTool: found\nAssistant: done\n") == [
        ("system", "be brief"),
        ("user", "look"),
        ("assistant", ""),
        ("tool", "found"),
        ("assistant", "done"),
    ]


def test_a_speaker_with_a_name_of_its_own_keeps_it(tmp_path):
    asked, answered = turns(tmp_path, "User (Dana): hi\nClaude: hello\n")

    assert (asked.role, asked.name) == (Role.USER, "Dana")
    assert (answered.role, answered.name) == (Role.ASSISTANT, "Claude")


def test_a_time_beside_the_speaker_is_kept_and_none_is_invented(tmp_path):
    zoned, bare, clock, none = turns(
        tmp_path,
        "User (2024-01-02T10:00:00Z): a\nAssistant (2024-01-02 10:01): b\nUser [10:02]: c\nAssistant: d\n",
    )

    assert (zoned.at, zoned.at_text) == (1_704_189_600_000_000, None)
    assert [(turn.at, turn.at_text) for turn in (bare, clock, none)] == [
        (None, "2024-01-02 10:01"),
        (None, "10:02"),
        (None, None),
    ]


def test_a_quoted_chat_is_not_cut_up(tmp_path):
    fenced = "User: how?\nAssistant: so:\n```\nUser: quoted\nAssistant: quoted\n```\nUser: thanks\n"
    other_way = "## User\nhow?\n## Assistant\nUser: quoted\nAssistant: quoted\n## User\nthanks\n"

    expected = [("user", "how?"), ("assistant", "so:\n```\nUser: quoted\nAssistant: quoted\n```"), ("user", "thanks")]
    assert said(tmp_path, fenced) == expected
    assert said(tmp_path, other_way)[1] == ("assistant", "User: quoted\nAssistant: quoted")


def test_a_fence_that_is_never_closed_hides_nobody(tmp_path):
    text = "User: a\nAssistant: cut off\n```python\nx = 1\nUser: b\nAssistant: c\n"

    assert [content for _, content in said(tmp_path, text)] == ["a", "cut off\n```python\nx = 1", "b", "c"]


def test_a_fence_may_open_beside_the_speaker(tmp_path):
    text = "User: ```\nAssistant: quoted\n```\nAssistant: b\n"

    assert said(tmp_path, text) == [("user", "```\nAssistant: quoted\n```"), ("assistant", "b")]


def test_a_title_before_the_chat_is_its_title_and_other_lines_are_told(tmp_path):
    found = opened(tmp_path, "# Lisbon\n\nExported on Monday\n\n## User\nhi\n## Assistant\nhello\n## User\nbye\n")

    assert (only(found).title, len(only(found).turns)) == ("Lisbon", 3)
    assert [warned.message for warned in found.warnings] == ["skipped 1 line before the first message"]


@pytest.mark.parametrize(
    "prose",
    [
        "Note: the user is right\nTODO: ask the assistant\n",
        "An essay begins here.\n\nUser: a person\nAssistant: a program\nUser: a person again\n",
        "User: a person who asks\nUser: written twice\n",
        "user: root\nhost: example.com\nport: 22\nai: false\nlog: all\nkey: x\n",
        "# Roles\n\n## User\nUsers may read.\n\n## Assistant\nAssistants may write.\n",
        "Dear user: hello\nDear assistant: hello\n",
        "system: linux\nuser: dana\n",
        "see user://a and\nassistant://b\n",
        "role,content\nuser,hi\nassistant,hello\n",
        "The assistant: it is good.\nThe user: likewise.\n",
    ],
)
def test_prose_that_only_happens_to_hold_a_colon_is_no_chat(prose):
    assert TEXT.claims(Prose(text=prose)) == 0
    assert TEXT.claims(Prose(text="User: hi\nAssistant: hello\n")) == 3


def test_a_named_format_is_taken_at_its_word(tmp_path):
    found = opened(tmp_path, "A note.\n\nUser: hi\n", "text")

    assert [(turn.role, turn.content) for turn in only(found).turns] == [(Role.USER, "hi")]
    assert [(warned.line, warned.message) for warned in found.warnings] == [
        (1, "skipped 1 line before the first message")
    ]
    with pytest.raises(Unreadable, match="nobody speaks"):
        opened(tmp_path, "no speaker at all\n", "text")


@pytest.mark.parametrize("key", ["messages_display", "transcript", "dialogue"])
def test_a_chat_in_a_json_string_is_read(tmp_path, key):
    record: dict[str, Any] = {"id": "a", key: "user: hi\nassistant: hello", "other": 1}

    for text in (json.dumps(record), json.dumps([record]), f"{json.dumps(record)}\n{json.dumps(record)}"):
        found = opened(tmp_path, text)
        assert found.format == "text"
        assert {conversation.session for conversation in found.conversations} == {"a"}
        assert [turn.content for turn in found.conversations[0].turns] == ["hi", "hello"]


@pytest.mark.parametrize("bad", [{"messages_display": 5}, {"messages_display": "nobody"}, {}, [], 5, "x", None])
def test_a_bad_line_is_named_by_its_number_and_costs_no_other(tmp_path, bad):
    good = json.dumps({"messages_display": "user: hi\nassistant: hello"})

    found = opened(tmp_path, f"{good}\n{json.dumps(bad)}\n{good}\n")

    assert [len(conversation.turns) for conversation in found.conversations] == [2, 2]
    assert {warned.line for warned in found.warnings} <= {2}
    assert bool(found.warnings) == (bad != [])
