"""beads: issues, tombstones, and deletions that say no words."""

import json
from pathlib import Path
from typing import Any

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.exchange import Opened
from memcli.exchange.memories.beads import BEADS
from memcli.exchange.shapes import VETO
from memcli.facts import Remembered, Stop

FIXTURES = Path(__file__).parents[2] / "fixtures"
ISSUE = {
    "id": "bd-1",
    "title": "Brew tea",
    "description": "With hot water",
    "status": "open",
    "priority": 2,
    "issue_type": "task",
    "created_at": "2025-01-01T00:00:00Z",
    "updated_at": "2025-02-01T00:00:00Z",
    "created_by": "dana",
    "labels": ["kitchen"],
}
GONE = {
    "id": "bd-2",
    "title": "Brew coffee",
    "description": "With beans",
    "status": "tombstone",
    "issue_type": "task",
    "original_type": "task",
    "deleted_at": "2025-03-01T00:00:00Z",
    "deleted_by": "bob",
    "delete_reason": "never true",
}
LOGGED = {"id": "bd-3", "ts": "2025-12-02T05:05:53Z", "by": "bob", "reason": "batch delete"}
WRONG = (None, True, 7, 1.5, "x", "\ud800", [], {}, [None], {"a": [1]}, [{"role": "user"}])


def read(tmp_path: Path, *records: Any, **options: str) -> Opened:
    path = tmp_path / "issues.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return exchange.open_file(str(path), **options)


def texts(found: Opened) -> list[str]:
    return [item.text for item in found.remembered]


def test_a_real_file_gives_a_fact_for_each_issue_and_no_stop():
    found = exchange.open_file(str(FIXTURES / "beads/bd01_four_issues.jsonl"))

    assert (found.format, len(found.remembered), found.stops) == ("beads", 4, ())
    assert [item.status for item in found.remembered] == ["closed", "closed", "open", "closed"]
    assert found.warnings == ()


def test_a_real_log_of_deletions_stops_nothing_and_says_so_of_every_line():
    path = str(FIXTURES / "beads/bd03_deletions.jsonl")

    with pytest.raises(Unreadable, match="without the words nothing is stopped"):
        exchange.open_file(path)
    named = exchange.open_file(path, format="beads")
    assert (len(named.warnings), named.remembered, named.stops) == (29, (), ())
    assert [warned.line for warned in named.warnings] == list(range(1, 30))


def test_an_issue_is_read_with_its_description_state_author_and_fields(tmp_path):
    item = read(tmp_path, ISSUE | {"status": "closed", "close_reason": "done"}).remembered[0]

    assert (item.text, item.origin, item.status, item.author) == ("Brew tea: With hot water", "bd-1", "closed", "dana")
    assert (item.reason, item.at, item.ended) == ("done", 1_738_368_000_000_000, None)
    assert item.extra == (
        ("priority", "2"),
        ("issue_type", "task"),
        ("created_at", "2025-01-01T00:00:00Z"),
        ("labels", '["kitchen"]'),
    )


def test_a_tombstone_stops_its_title_and_what_the_issue_would_come_in_as(tmp_path):
    found = read(tmp_path, ISSUE, GONE)

    stop = found.stops[0]
    assert (stop.texts, stop.origin, stop.line) == (("Brew coffee", "Brew coffee: With beans"), "bd-2", 2)
    assert (stop.reason, stop.author, stop.at) == ("never true", "bob", 1_740_787_200_000_000)
    assert texts(found) == ["Brew tea: With hot water"]


def test_what_a_stop_cannot_carry_is_told_once_for_each_field(tmp_path):
    found = read(tmp_path, ISSUE, GONE, GONE | {"id": "bd-4", "title": "Brew cocoa"})

    assert [warned.message.partition(",")[0] for warned in found.warnings] == [
        'a stop carries no "issue_type"',
        'a stop carries no "original_type"',
    ]
    assert len(found.stops) == 2


def test_an_issue_that_was_deleted_and_came_back_stands_and_is_told(tmp_path):
    back = ISSUE | {"status": "closed", "deleted_at": "2025-03-01T00:00:00Z", "deleted_by": "bob"}

    found = read(tmp_path, back)

    assert (texts(found), found.stops) == (["Brew tea: With hot water"], ())
    assert [warned.message for warned in found.warnings] == [
        'the issue "bd-1" is "closed" and says that it was deleted; taken as standing'
    ]
    assert ("deleted_by", "bob") in found.remembered[0].extra


def test_a_deletion_among_issues_is_told_and_stops_nothing(tmp_path):
    found = read(tmp_path, ISSUE, LOGGED)

    assert (len(found.remembered), found.stops) == (1, ())
    assert [(warned.line, "without the words" in warned.message) for warned in found.warnings] == [(2, True)]


def test_a_tombstone_that_does_not_say_what_it_was_stops_nothing(tmp_path):
    found = read(tmp_path, GONE, GONE | {"id": "bd-9", "title": "(deleted)", "description": ""})

    assert [stop.origin for stop in found.stops] == ["bd-2"]
    assert [warned.line for warned in found.warnings if "does not say what it was" in warned.message] == [2]


def test_a_time_that_is_no_instant_is_left_out_of_a_stop_and_kept_with_an_issue(tmp_path):
    found = read(tmp_path, ISSUE | {"updated_at": "yesterday"}, GONE | {"deleted_at": "yesterday"})

    assert (found.remembered[0].at, found.remembered[0].at_text) == (None, "yesterday")
    assert found.stops[0].at is None
    assert "which is no instant" in found.warnings[0].message


def test_an_array_of_issues_is_read_and_an_id_that_stands_twice_is_told(tmp_path):
    found = read(tmp_path, [ISSUE, ISSUE | {"title": "Brew more tea"}])

    assert texts(found) == ["Brew tea: With hot water", "Brew more tea: With hot water"]
    assert "stands there again" in found.warnings[0].message


def test_results_of_a_program_that_solves_issues_are_not_claimed():
    assert BEADS.claims({"issue": {"id": 1}, "issue_type": "pr", "history": []}) == 0
    assert BEADS.claims(ISSUE | {"history": []}) == VETO
    assert BEADS.claims({"id": "1", "title": "a", "status": "open"}) == 0
    assert BEADS.claims(ISSUE | {"role": "user"}) == 0
    assert BEADS.claims(ISSUE) == 3


@pytest.mark.parametrize("key", sorted({*ISSUE, *GONE, "close_reason", "history"}))
def test_a_wrong_type_in_any_field_is_no_failure(tmp_path, key):
    odd = [base | {"id": str(place), key: wrong} for place, wrong in enumerate(WRONG) for base in (ISSUE, GONE)]

    found = read(tmp_path, ISSUE | {"title": "first"}, *odd, format="beads")

    assert texts(found)[0] == "first: With hot water"
    assert all(isinstance(item, Remembered) and item.text for item in found.remembered)
    assert all(isinstance(stop, Stop) and all(stop.texts) for stop in found.stops)
