"""A transcript is kept the same, however many of its messages are written at a time and whatever was there before."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from memcli.exchange.turns import TurnLog
from memcli.facts import Conversation, EventQuery, ToolCall, Turn
from memcli.store.seals import seal
from memcli.terms import Op, Role
from tests.files import ANNA, IMPORTER, memory

ODD = ("", "  even  spaces ", "a\n\n b", "NUL \0 and half \ud83d", "␛241b", "e\u0301", "東京", 'it\'s \\ "quoted"')
COLUMNS = "source, position, role, content, detail, at, evidence, erased_at"


def said(number):
    role = (Role.USER, Role.ASSISTANT, Role.TOOL, Role.SYSTEM, Role.UNKNOWN)[number % 5]
    calls = (ToolCall(id=f"c{number}", name="look", arguments=f"{{{number}}}"),) if number % 7 == 1 else ()
    return Turn(
        role=role,
        content=f"{ODD[number % len(ODD)]}{number if number % 3 else ''}",
        at=number * 1_000_000 if number % 4 else None,
        tool_calls=calls,
        origin=f"m{number}" if number % 2 else None,
        thinking="hm \ud800" if number % 11 == 0 else None,
    )


TURNS = [said(number) for number in range(100)]
TURNS[50] = Turn(role=Role.USER, content="long " * 300_000)


def take(store, turns, name="talk"):
    with store.write(IMPORTER) as write:
        return write.take(Conversation(format="openai", turns=turns, session=name), path="p", digest="0" * 64)


def kept(path):
    with closing(sqlite3.connect(path)) as conn:
        return conn.execute(f"select {COLUMNS} from messages where source = 2 order by position").fetchall()


@pytest.fixture
def start(tmp_path):
    """Return a file with one source in it, which its copies share their keys with."""
    path = tmp_path / "start.db"
    with memory(path) as store:
        take(store, [Turn(role=Role.USER, content="something said before that was erased")])
    return path


def copied(start, name):
    return shutil.copy(start, start.with_name(name))


@pytest.fixture
def plainly(start):
    """Return the rows of a file in which something was erased, where each message is compared with what is gone."""
    path = copied(start, "plain.db")
    with memory(path) as store:
        with store.write(ANNA, "asked for") as write:
            write.erase(write.plan_erase_source("s1"))
        taken = take(store, tuple(TURNS))
        assert (taken.source, taken.new) == ("s2", 100)
        assert [item.content for item in store.messages("s2")] == [turn.content for turn in TURNS]
    return kept(path)


@pytest.mark.parametrize("together", [1, 7, 40, 1_000])
def test_many_messages_with_one_statement_are_the_same_rows(start, plainly, monkeypatch, together):
    monkeypatch.setattr("memcli.store.evidence._TOGETHER", together)
    path = copied(start, "quick.db")

    with memory(path) as store:
        taken = take(store, tuple(TURNS))
        messages = store.messages("s2")

    assert (taken.source, taken.new, taken.same) == ("s2", 100, 0)
    assert kept(path) == plainly
    assert [item.content for item in messages] == [turn.content for turn in TURNS]
    assert len(plainly) == 100


@pytest.mark.parametrize("held", [10, 16 * 1024 * 1024])
def test_a_transcript_that_has_grown_adds_what_is_new_to_its_source(start, plainly, monkeypatch, held):
    monkeypatch.setattr("memcli.exchange.turns.HELD_CHARACTERS", held)
    path = copied(start, "grown.db")

    with memory(path) as store:
        first = take(store, TurnLog(TURNS[:30]))
        again = take(store, TurnLog(TURNS[:20]))
        grown = take(store, TurnLog(TURNS))
        same = take(store, TurnLog(TURNS), "another name")
        messages = store.messages("s2")

    assert [(item.source, item.new, item.same) for item in (first, again, grown, same)] == [
        ("s2", 30, 0),
        ("s2", 0, 20),
        ("s2", 70, 30),
        ("s2", 0, 100),
    ]
    assert kept(path) == plainly
    assert [item.content for item in messages] == [turn.content for turn in TURNS]


def test_a_transcript_that_says_something_else_later_is_another_source(start):
    other = [*TURNS[:60], Turn(role=Role.USER, content="something else"), *TURNS[61:]]
    late = [*TURNS[:61], Turn(role=TURNS[61].role, content=TURNS[61].content, at=5), *TURNS[62:]]

    with memory(start) as store:
        sources = [take(store, turns).source for turns in (TURNS, other, late, TURNS, other)]

    assert sources == ["s2", "s3", "s4", "s2", "s3"]


def test_the_audit_knows_an_import_by_the_evidence_of_every_message_it_added(start):
    with memory(start) as store:
        take(store, TURNS[:30])
        take(store, TURNS)
        events = list(store.events(EventQuery(fact="s2", op=Op.IMPORT)))
        with closing(sqlite3.connect(start)) as conn:
            found = conn.execute("select evidence from messages where source = 2 order by position").fetchall()
            after = [row for (row,) in conn.execute("select after from audit where target = 's2' order by seq")]
        evidence = [item for (item,) in found]

        assert after == [seal(store.key, "import", (2, *part)) for part in (evidence[:30], evidence[30:])]
    assert len(events) == 2


def test_a_short_message_is_known_by_one_that_the_same_transcript_brought_back_as_erased(start):
    words = (
        "the first thing that was said",
        "ok",
        "the thing said after it",
        "another beginning of it",
        "goodbye to all",
    )
    first, ok, after, other, last = (Turn(role=Role.USER, content=text) for text in words)

    with memory(start) as store:
        take(store, [first, ok, after])
        with store.write(ANNA, "asked for") as write:
            write.erase(write.plan_erase_source("s2"))
        source = take(store, [other, ok, after, other, ok, last, ok]).source
        contents = [item.content for item in store.messages(source)]

    assert contents == [words[3], "", "", words[3], "", words[4], "ok"]
