"""mem0's memories: what its calls give, what exports hold, and its table of history."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memcli import exchange
from memcli.exchange import Opened
from memcli.exchange.memories.mem0 import MEM0
from memcli.facts import Remembered, Said
from memcli.terms import State

FIXTURES = Path(__file__).parents[2] / "fixtures"
SEAT = {
    "id": "m-1",
    "memory": "Prefers window seats",
    "hash": "d41d8",
    "metadata": {"source": "chat"},
    "categories": ["travel"],
    "created_at": "2025-07-08T10:00:00-07:00",
    "updated_at": None,
    "user_id": "dana",
}
ADDED = {"memory_id": "m-1", "event": "ADD", "new_memory": "Lives in Porto", "created_at": "2025-01-01T00:00:00Z"}
MOVED = {
    "memory_id": "m-1",
    "event": "UPDATE",
    "old_memory": "Lives in Porto",
    "new_memory": "Lives in Lisbon",
    "created_at": "2025-01-01T00:00:00Z",
    "updated_at": "2025-02-01T00:00:00Z",
    "actor_id": "dana",
}
LEFT = {
    "memory_id": "m-1",
    "event": "DELETE",
    "old_memory": "Lives in Lisbon",
    "updated_at": "2025-03-01T00:00:00Z",
    "is_deleted": 1,
    "actor_id": "bob",
}
JANUARY, FEBRUARY = 1_735_689_600_000_000, 1_738_368_000_000_000
COLUMNS = (
    *("id", "memory_id", "old_memory", "new_memory", "event"),
    *("created_at", "updated_at", "is_deleted", "actor_id", "role"),
)
WRONG = (None, True, 7, 1.5, "x", "\ud800", [], {}, [None], {"a": [1]}, [{"role": "user"}])


def read(tmp_path: Path, value: Any, **options: str) -> Opened:
    path = tmp_path / "mem0.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return exchange.open_file(str(path), **options)


def texts(found: Opened) -> list[str]:
    return [item.text for item in found.remembered]


def history(tmp_path: Path, *rows: dict[str, Any], messages: tuple[tuple[Any, ...], ...] = ()) -> Opened:
    """Write rows as mem0's database holds them and read it."""
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute(f"create table history ({', '.join(COLUMNS)})")
        conn.execute("create table messages (id, session_scope, role, content, name, created_at)")
        for row in rows:
            conn.execute(f"insert into history values ({', '.join('?' * 10)})", [row.get(name) for name in COLUMNS])
        conn.executemany("insert into messages values (?, ?, ?, ?, ?, ?)", messages)
    return exchange.open_file(str(path))


def test_the_damaged_export_gives_two_facts_and_tells_of_the_repeated_id():
    found = exchange.open_file(str(FIXTURES / "malformed/k14_mem0_results.json"))

    assert (found.format, texts(found)) == ("mem0", ["Prefers window seats", "Allergic to peanuts"])
    assert ["again with the same words" in warned.message for warned in found.warnings] == [True]


def test_the_real_history_comes_to_three_memories_with_what_they_said_before():
    found = exchange.open_file(str(FIXTURES / "mem0/me01_history.db"))

    # Five rows: two of the personal best, one of soccer, two of the tournament that was deleted.
    assert [(item.text, len(item.earlier), item.ended) for item in found.remembered] == [
        ("Personal best in the charity 5K is 25:50", 1, None),
        ("Plays soccer with coworkers every two weeks", 0, None),
        ("Has a tennis tournament on May 6", 0, State.REVOKED),
    ]
    assert found.remembered[0].earlier[0].text == "Personal best in the charity 5K is 27:12"
    assert found.warnings == ()


def test_a_memory_keeps_its_owner_its_time_and_what_else_is_said_of_it(tmp_path):
    item = read(tmp_path, {"results": [SEAT], "relations": []}).remembered[0]

    assert (item.origin, item.owner, item.at) == ("m-1", "dana", 1_751_994_000_000_000)
    assert item.extra == (("hash", "d41d8"), ("metadata", '{"source":"chat"}'), ("categories", '["travel"]'))


@pytest.mark.parametrize(
    "value",
    [
        {"results": [SEAT]},
        {"count": 1, "next": None, "previous": None, "results": [SEAT]},
        {"memories": [SEAT]},
        [SEAT],
        SEAT,
        [SEAT | {"score": 0.83}],
        [{"id": "m-1", "payload": {"data": SEAT["memory"], "hash": "d41d8", "user_id": "dana"}}],
        {"items": [{"id": "m-1", "content": SEAT["memory"], "state": "active", "app_name": "cursor"}], "total": 1},
        [{"id": "m-1", "data": SEAT["memory"], "user_id": "dana"}],
        [{"id": "m-1", "text": SEAT["memory"], "agent_id": "dana"}],
    ],
    ids=["results", "page", "memories", "list", "one", "search", "points", "items", "data", "text"],
)
def test_every_layout_gives_the_memory(tmp_path, value):
    found = read(tmp_path, value)

    assert (found.format, texts(found), found.remembered[0].origin) == ("mem0", [SEAT["memory"]], "m-1")


def test_of_an_agent_without_a_user_the_agent_is_the_owner(tmp_path):
    agent = {"id": "m-2", "memory": "Answers in French", "agent_id": "guide", "run_id": "r-1"}

    item = read(tmp_path, [agent]).remembered[0]

    assert (item.owner, item.extra) == ("guide", (("run_id", "r-1"),))


def test_the_same_id_with_other_words_is_read_and_told(tmp_path):
    found = read(tmp_path, [SEAT, SEAT | {"memory": "Prefers aisle seats"}])

    assert texts(found) == ["Prefers window seats", "Prefers aisle seats"]
    assert "again with other words" in found.warnings[0].message


@pytest.mark.parametrize(
    "gone",
    [{"state": "deleted"}, {"is_deleted": True}, {"event": "DELETE"}, {"expired": True}, {"status": "expired"}],
)
def test_a_memory_that_was_deleted_or_has_expired_is_withdrawn(tmp_path, gone):
    stays, went = read(tmp_path, [SEAT, SEAT | {"id": "m-2", "memory": "Smokes"} | gone]).remembered

    assert (stays.ended, went.ended) == (None, State.REVOKED)


def test_an_expiry_is_the_end_of_validity_and_a_bare_day_a_note(tmp_path):
    instant = SEAT | {"expiration_date": "2025-02-01T00:00:00Z"}
    day = SEAT | {"id": "m-2", "expiration_date": "2025-02-01"}

    found = read(tmp_path, [instant, day])

    assert [item.validity.end for item in found.remembered] == [FEBRUARY, None]
    assert ("expiration_date", "2025-02-01") in found.remembered[1].extra
    assert ["which is no instant" in warned.message for warned in found.warnings] == [True]


def test_the_answer_to_an_update_keeps_what_was_said_before(tmp_path):
    item = read(
        tmp_path, {"results": [{"id": "m-1", "memory": "Eats fish", "event": "UPDATE", "previous_memory": "Eats meat"}]}
    ).remembered[0]

    assert (item.text, item.status, item.earlier) == ("Eats fish", "UPDATE", (Said(text="Eats meat"),))


@pytest.mark.parametrize(
    "relations",
    [
        [{"source": "dana", "relationship": "works_at", "target": "harbour"}],
        [{"source": "dana", "relation": "works_at", "destination": "harbour"}],
        {"added_entities": [[{"source": "dana", "relationship": "works_at", "target": "harbour"}]]},
    ],
)
def test_relations_become_words(tmp_path, relations):
    found = read(tmp_path, {"results": [SEAT], "relations": relations})

    assert texts(found) == ["Prefers window seats", "dana works at harbour"]
    assert found.remembered[1].extra == (("relationType", "works_at"), ("to", "harbour"))


def test_a_relation_that_was_deleted_is_withdrawn_and_one_without_an_end_is_told(tmp_path):
    gone = {"source": "dana", "relationship": "likes", "target": "tea"}

    found = read(tmp_path, {"results": [SEAT], "relations": {"deleted_entities": [gone, {"source": "dana"}]}})

    assert (found.remembered[1].text, found.remembered[1].ended) == ("dana likes tea", State.REVOKED)
    assert "lacks an end" in found.warnings[0].message


def test_history_is_the_newest_words_and_the_older_ones_with_their_times(tmp_path):
    item = history(tmp_path, ADDED, MOVED).remembered[0]

    assert (item.text, item.at, item.origin, item.author) == ("Lives in Lisbon", FEBRUARY, "m-1", "dana")
    assert item.earlier == (Said(text="Lives in Porto", at=JANUARY),)


def test_a_deletion_withdraws_the_memory_and_says_who_and_when(tmp_path):
    item = history(tmp_path, ADDED, MOVED, LEFT).remembered[0]

    assert (item.text, item.ended, item.author) == ("Lives in Lisbon", State.REVOKED, "dana")
    assert {("deleted_at", "2025-03-01T00:00:00Z"), ("deleted_by", "bob")} <= set(item.extra)


def test_a_memory_that_was_added_again_after_its_deletion_stands(tmp_path):
    item = history(tmp_path, ADDED, MOVED, LEFT, ADDED).remembered[0]

    assert (item.text, item.ended) == ("Lives in Porto", None)


def test_a_memory_whose_addition_is_missing_keeps_what_it_was_updated_from(tmp_path):
    found = history(tmp_path, MOVED)

    assert found.remembered[0].earlier == (Said(text="Lives in Porto", at=JANUARY),)
    assert ["was never added" in warned.message for warned in found.warnings] == [True]


def test_a_deletion_of_which_nothing_else_is_left_still_says_what_was_deleted(tmp_path):
    found = history(tmp_path, LEFT, {"memory_id": "m-2", "event": "DELETE", "is_deleted": 1})

    assert [(item.text, item.ended) for item in found.remembered] == [("Lives in Lisbon", State.REVOKED)]
    assert 'the memory "m-2" has no words' in found.warnings[-1].message


def test_an_update_that_does_not_follow_from_the_row_before_is_told(tmp_path):
    found = history(tmp_path, ADDED, MOVED | {"old_memory": "Lives in Braga"})

    assert [said.text for said in found.remembered[0].earlier] == ["Lives in Porto", "Lives in Braga"]
    assert ["said something else before" in warned.message for warned in found.warnings] == [True]


def test_an_older_table_with_other_column_names_is_read(tmp_path):
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute("create table history (id, memory_id, prev_value, new_value, event, timestamp, is_deleted)")
        conn.execute("insert into history values ('1', 'm-1', null, 'Likes tea', 'ADD', null, 0)")

    assert texts(exchange.open_file(str(path))) == ["Likes tea"]


def test_the_messages_beside_the_history_are_a_conversation(tmp_path):
    found = history(tmp_path, ADDED, messages=(("1", "user_id=dana", "user", "I moved", None, "2025-01-01T00:00:00Z"),))

    assert [(one.session, one.turns[0].content) for one in found.conversations] == [("user_id=dana", "I moved")]
    assert texts(found) == ["Lives in Porto"]


def test_rows_of_history_in_json_come_to_the_same(tmp_path):
    found = read(tmp_path, [{"id": "1", **ADDED}, {"id": "2", **MOVED}])

    assert [(item.text, len(item.earlier)) for item in found.remembered] == [("Lives in Lisbon", 1)]


def test_a_message_with_a_role_is_no_memory():
    assert MEM0.claims([{"id": "1", "role": "user", "text": "hi", "user_id": "dana"}]) == 0
    assert MEM0.claims([SEAT | {"role": "user"}]) > 0


@pytest.mark.parametrize("key", [*SEAT, "payload", "event", "expiration_date", "previous_memory"])
def test_a_wrong_type_in_any_field_of_a_memory_is_no_failure(tmp_path, key):
    odd = [SEAT | {key: wrong} for wrong in WRONG]

    found = read(tmp_path, {"results": [{"id": "m-0", "memory": "first"}, *odd]}, format="mem0")

    assert texts(found)[0] == "first"
    assert all(isinstance(item, Remembered) and item.text for item in found.remembered)


@pytest.mark.parametrize("key", [*MOVED, "is_deleted"])
def test_a_wrong_type_in_any_field_of_history_is_no_failure(tmp_path, key):
    odd = [MOVED | {"memory_id": str(place)} | {key: wrong} for place, wrong in enumerate(WRONG)]

    found = read(tmp_path, [ADDED | {"memory_id": "m-0"}, *odd], format="mem0")

    assert texts(found)[0] == "Lives in Porto"
    assert all(item.text for item in found.remembered)
