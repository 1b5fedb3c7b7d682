"""A conversation that does not fit into memory is read, changed and kept like one that does."""

import json
from dataclasses import replace

import pytest

from memcli import exchange
from memcli.exchange.turns import Overheard, TurnLog, altered, changed
from memcli.facts import ToolCall, Turn
from memcli.terms import Role
from tests.files import IMPORTER, memory

TURNS = [
    Turn(
        role=Role.USER,
        content="I live in Lisbon \ud83d\x00 東京",
        at=5,
        at_text="five",
        origin="m1",
        extra=(("a", "b"),),
    ),
    Turn(
        role=Role.ASSISTANT,
        content="",
        thinking="hm",
        tool_calls=(ToolCall(id="c1", name="look", arguments="{}"),),
        attachments=("image",),
    ),
    Turn(role=Role.TOOL, content="found", tool_call_id="c1"),
]


@pytest.fixture
def small(monkeypatch):
    """Let everything but the very shortest go into a file."""
    monkeypatch.setattr("memcli.exchange.turns.HELD_CHARACTERS", 10)


def test_turns_come_back_from_a_file_as_they_were(small):
    log = TurnLog(TURNS)

    assert log.spilled
    assert list(log) == TURNS
    assert (log[-1], log[0], len(log)) == (TURNS[2], TURNS[0], 3)
    assert list(log[1:]) == TURNS[1:]


def test_few_turns_stay_in_memory():
    log = TurnLog(TURNS)

    assert not log.spilled
    assert list(log) == TURNS


def test_turns_in_a_file_are_replaced_inserted_and_taken_out(small):
    log = TurnLog(TURNS)
    other = Turn(role=Role.USER, content="another thing that was said")
    log[1] = other
    log.insert(0, other)
    del log[3]

    assert list(log) == [other, TURNS[0], other]
    with pytest.raises(TypeError):
        log[0:1] = [other]


@pytest.mark.parametrize("held", [10, 10_000])
def test_a_change_is_seen_in_every_turn_whether_it_is_in_memory_or_not(monkeypatch, held):
    monkeypatch.setattr("memcli.exchange.turns.HELD_CHARACTERS", held)

    shouted = changed(TurnLog(TURNS), lambda index, turn: Turn(role=turn.role, content=f"{index} {turn.content}"))

    assert [turn.content[:2] for turn in shouted] == ["0 ", "1 ", "2 "]
    assert (len(shouted), shouted[-1].content) == (3, "2 found")
    assert [turn.content[:1] for turn in shouted[1:]] == ["1", "2"]
    with pytest.raises(IndexError):
        shouted[3]


def test_a_long_session_is_kept_as_a_short_one_is(tmp_path, monkeypatch):
    records = []
    for number in range(40):
        identity = {"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "sessionId": "s"}
        said = {"role": "user", "content": f"thing number {number} that was said"}
        records.append(identity | {"type": "user", "message": said, "timestamp": "2026-03-01T10:00:00Z"})
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(json.dumps(item) for item in records))

    def kept(name):
        with memory(tmp_path / name) as store, exchange.reading(str(path)) as place:
            (talk,) = place.found
            with store.write(IMPORTER) as write:
                source = write.take(talk, path=str(path), digest="0" * 64).source
            return [(item.content, item.at, item.parent) for item in store.messages(source)]

    short = kept("short.db")
    monkeypatch.setattr("memcli.exchange.turns.HELD_CHARACTERS", 10)

    assert kept("long.db") == short
    assert len(short) == 40


def test_a_turn_is_altered_in_what_is_named_and_nowhere_else():
    assert altered(TURNS[0], name="ana", parent=None) == replace(TURNS[0], name="ana", parent=None)


def test_turns_are_overheard_once_each_and_in_their_order(small):
    heard = []
    turns = Overheard(TurnLog(TURNS), heard.append)

    assert turns[0] == TURNS[0]
    assert list(turns) == TURNS
    assert turns[2] == TURNS[2]
    assert heard == TURNS


def test_what_nobody_has_read_is_told_at_the_end(small):
    heard = []
    turns = Overheard(TurnLog(TURNS), heard.append)
    next(iter(turns))

    turns.rest()

    assert heard == TURNS


def test_the_newest_turns_of_a_long_log_are_changed_without_the_file(monkeypatch):
    monkeypatch.setattr("memcli.exchange.turns.HELD_CHARACTERS", 100_000)
    said = [Turn(role=Role.USER, content=f"thing {number}") for number in range(2_000)]
    log = TurnLog(said)
    plain = list(said)

    assert log.spilled
    for index in (1_999, 1_990, -3, 0, 5):
        log[index] = plain[index] = Turn(role=Role.ASSISTANT, content=f"other {index}")
    for index in (2_000, 1_950, 3):
        log.insert(index, TURNS[1])
        plain.insert(index, TURNS[1])
    for index in (1_999, 4, -1):
        del log[index], plain[index]

    assert list(log) == plain
    assert [log[index] for index in (0, 700, -1, -1_500)] == [plain[index] for index in (0, 700, -1, -1_500)]
    with pytest.raises(IndexError):
        log[2_000]
