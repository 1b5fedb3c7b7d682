"""Transcripts as a budget takes them: raw where that is what counts, with ids that name one message each."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from memcli.budget.messages import ROLES, ToolCalls, from_openai
from memcli.budget_input import files, one_of_them, transcripts
from memcli.errors import NotFound, Unreadable, UsageError
from memcli.exchange import open_file

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
CHILD = """
import sys
from contextlib import suppress
from memcli.budget_input import transcripts
from memcli.errors import Unreadable

with suppress(Unreadable):
    transcripts(sys.argv[1])
print("memcli.exchange" in sys.modules)
"""
OTHERS = ("probes", "tau_airline_3", "messages_display")
"""What lies beside OpenAI's messages and is none."""

OPENAI = sorted(
    str(path)
    for path in (FIXTURES / "openai_messages").glob("*.json*")
    if not any(name in path.name for name in OTHERS)
)
CHAT = [{"role": "user", "content": "a", "custom": 1}, {"role": "assistant", "content": "b"}]


def written(folder, value, name="chat.json"):
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(path)


@pytest.mark.parametrize("path", OPENAI, ids=[Path(path).name for path in OPENAI])
def test_a_raw_message_stands_beside_each_turn_that_was_read(path):
    opened = open_file(path, keep_raw=True)

    assert opened.format == "openai"
    assert [len(one) for one in opened.raw] == [len(one.turns) for one in opened.conversations]
    assert open_file(path).raw == ()


def test_every_key_of_a_message_is_taken(tmp_path):
    (found,) = transcripts(written(tmp_path, CHAT))

    assert found.messages == tuple(from_openai(message) for message in CHAT)
    assert found.messages[0].kwargs == {"custom": 1}


def test_messages_of_one_session_on_many_lines_are_one_transcript(tmp_path):
    lines = [{**CHAT[at % 2], "session_id": "xy"[at % 3 == 0]} for at in range(6)]
    found = transcripts(written(tmp_path, "\n".join(map(json.dumps, lines))))

    assert [len(one.messages) for one in found] == [2, 4]
    assert all(message.kwargs["session_id"] == "y" for message in found[0].messages)


def test_what_llamaindex_refuses_is_read_all_the_same_and_told(tmp_path):
    odd = {"role": "human", "content": "hello"}
    (found,) = transcripts(written(tmp_path, [*CHAT, odd]))

    assert list(found.raised) == [2]
    assert "ValidationError" in found.raised[2]
    assert found.words(2) == "hello"


@pytest.mark.parametrize(
    ("given", "ids"),
    [(("a", "b"), ("a", "b")), (("a", "a"), ("0", "1")), (("a", None), ("a", "1")), ((None, None), ("0", "1"))],
)
def test_an_id_of_the_transcript_is_taken_where_it_names_one_message(tmp_path, given, ids):
    chat = [{**message, **({"id": name} if name else {})} for message, name in zip(CHAT, given, strict=True)]
    (found,) = transcripts(written(tmp_path, chat))

    assert found.ids == ids


def test_tool_calls_go_where_they_are_told_to():
    path = str(FIXTURES / "openai_messages" / "ta03_bare_messages.json")
    (kwargs,), (blocks,) = transcripts(path), transcripts(path, tool_calls=ToolCalls.BLOCKS)

    assert any("tool_calls" in message.kwargs for message in kwargs.messages)
    assert not any("tool_calls" in message.kwargs for message in blocks.messages)
    assert "calls [" in kwargs.words(6)


PLAIN = [{"role": role, "content": f"{role} says\n“so”"} for role in ROLES if role not in ("tool", "function")]
WAYS = {
    "bare": json.dumps(PLAIN),
    "under messages": json.dumps({"messages": PLAIN}),
    "in lines": json.dumps(PLAIN, indent=1),
    "with blanks around": f"\r\n {json.dumps(PLAIN)}\n\n",
    "escaped": json.dumps([{"content": "\ud83d\ude00 \ud800 \0", "role": "user"}]),
    "control characters": '[{"role": "user", "content": "a\tb\nc\x01"}]',
    "one key twice": '[{"role": "user", "role": "assistant", "content": "a", "content": "b"}]',
    "an empty text": '[{"role": "user", "content": ""}]',
    "text that looks like another format": json.dumps([{"role": "user", "content": text} for text in (
        "User: hi\nAssistant: ho", '{"type": "tool_use"}', "# title\n- a fact", "<thinking>", "[10:00] User: hi",
    )]),
}  # fmt: skip
ODD = {
    "a mark before it": "\ufeff" + json.dumps(PLAIN),
    "one key more": json.dumps([*PLAIN, {**PLAIN[0], "name": "Ann"}]),
    "a key beside messages": json.dumps({"messages": PLAIN, "title": "tea"}),
    "a role that readers know alone": json.dumps([*PLAIN, {"role": "human", "content": "hi"}]),
    "a role in capitals": json.dumps([*PLAIN, {"role": "User", "content": "hi"}]),
    "a result without a call": json.dumps([*PLAIN, {"role": "tool", "content": "hi"}]),
    "no text": json.dumps([*PLAIN, {"role": "assistant", "content": None}]),
    "parts": json.dumps([*PLAIN, {"role": "user", "content": [{"type": "text", "text": "hi"}]}]),
    "a number among them": json.dumps([*PLAIN, 1]),
    "a list of lists": json.dumps([PLAIN, PLAIN]),
    "lines": "\n".join(map(json.dumps, PLAIN)),
    "something behind it": json.dumps(PLAIN) + "x",
    "cut": json.dumps(PLAIN)[:-20],
    "nested deeply": "[" * 100_000,
}


def read_by_all(path):
    """Return what the readers, all of them asked, make of a file with one conversation."""
    opened = open_file(path, keep_raw=True)
    ((raw,), (conversation,)) = opened.raw, opened.conversations
    messages = tuple(from_openai(message) for message in raw)
    return opened.format, messages, tuple(turn.at for turn in conversation.turns), opened.warnings


@pytest.mark.parametrize("way", WAYS)
def test_a_list_of_plain_messages_is_what_the_readers_make_of_it(tmp_path, way):
    path = tmp_path / "chat.json"
    path.write_bytes(WAYS[way].encode("utf-8", "surrogatepass"))
    (found,) = transcripts(str(path))

    assert (found.format, found.messages, found.times, found.notes) == read_by_all(str(path))
    assert found.ids == tuple(str(place) for place in range(len(found.messages)))
    assert (found.name, found.path, found.raised) == (str(path), str(path), {})


@pytest.mark.parametrize("way", [*WAYS, *ODD])
def test_the_readers_are_asked_where_a_file_is_anything_else(tmp_path, way):
    path = tmp_path / "chat.json"
    path.write_bytes({**WAYS, **ODD}[way].encode("utf-8", "surrogatepass"))
    loaded = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert loaded.stdout.strip() == str(way in ODD)


@pytest.mark.parametrize("text", ["", " \n", "[]", '{"messages": []}', "\ufeff[]"])
def test_what_holds_no_message_is_an_empty_transcript(tmp_path, text):
    (found,) = transcripts(written(tmp_path, text))

    assert found.messages == ()


@pytest.mark.parametrize("text", ["\0\0\0", "{}", "null", "[1]", "<html>"])
def test_what_is_no_transcript_is_not_taken_for_an_empty_one(tmp_path, text):
    with pytest.raises(Unreadable):
        transcripts(written(tmp_path, text))


def test_a_folder_gives_its_transcripts_by_name_and_a_named_file_is_always_taken(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("b.jsonl", "a.json", "x.txt", "inner/c.json.gz", ".git/d.json", ".e.json"):
        written(tmp_path, CHAT, name)
    found = [Path(path).name for path in files([str(tmp_path), str(tmp_path / "x.txt"), "-"])]

    assert found == ["a.json", "b.jsonl", "c.json.gz", "x.txt", "-"]


def test_a_folder_without_transcripts_cannot_be_read(tmp_path):
    with pytest.raises(Unreadable, match="no transcript is in this folder"):
        files([str(tmp_path)])


def test_of_several_conversations_one_must_be_named(tmp_path):
    found = transcripts(written(tmp_path, [{"messages": CHAT}, {"messages": CHAT[:1]}]))

    assert [one.name.rpartition("/")[2] for one in found] == ["chat.json #0", "chat.json #1"]
    assert len(one_of_them(found, 1).messages) == 1
    with pytest.raises(UsageError, match="holds 2 conversations"):
        one_of_them(found, None)
    with pytest.raises(NotFound, match="has no conversation 2"):
        one_of_them(found, 2)
