"""Items of a LangGraph store, as LangMem fills it."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.exchange import Opened
from memcli.facts import Remembered

CREATED, UPDATED = "2026-02-03T00:25:14+00:00", "2026-02-04T00:25:14+00:00"
INSTANT = 1_770_078_314_000_000
DAY = 24 * 3600 * 1_000_000


def opened(tmp_path: Path, value: Any) -> Opened:
    path = tmp_path / "store.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return exchange.open_file(str(path))


def item(value: Any, key: Any = "k1", **beside: Any) -> dict[str, Any]:
    return {"namespace": ["memories", "anna"], "key": key, "value": value, "created_at": CREATED, **beside}


def memory(text: Any) -> dict[str, Any]:
    return {"kind": "Memory", "content": {"content": text}}


def texts(found: Opened) -> list[str]:
    return [one.text for one in found.remembered]


def database(path: Path, rows: list[tuple[Any, ...]]) -> str:
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute("create table store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)")
        conn.execute("create table store_vectors (prefix, key, field_name, embedding)")
        conn.executemany("insert into store values (?, ?, ?, ?, ?, ?, ?)", rows)
    return str(path)


def test_an_item_is_one_thing_remembered(tmp_path):
    found = opened(tmp_path, [item(memory("Anna drinks tea"), updated_at=UPDATED, score=0.5)])

    assert found.format == "langmem"
    assert found.remembered == (
        Remembered(
            format="langmem",
            text="Anna drinks tea",
            owner="memories.anna",
            origin="k1",
            at=INSTANT + DAY,
            extra=(("created_at", CREATED), ("kind", "Memory"), ("score", "0.5")),
            line=1,
        ),
    )
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("value", "text", "subject"),
    [
        (memory("Anna drinks tea"), "Anna drinks tea", None),
        ({"content": "Anna drinks tea", "tags": ["a"]}, "Anna drinks tea", None),
        ({"memory": "Anna drinks tea"}, "Anna drinks tea", None),
        ("Anna drinks tea", "Anna drinks tea", None),
        (json.dumps(memory("Anna drinks tea")), "Anna drinks tea", None),
        (
            {"kind": "Triple", "content": {"subject": "Anna", "predicate": "drinks", "object": "tea", "context": None}},
            "Anna drinks tea",
            "Anna",
        ),
        (
            {"kind": "Preference", "content": {"drink": "tea", "milk": False, "sugar": None}},
            "Preference: drink: tea; milk: false",
            None,
        ),
        ({"drink": "tea", "cups": 3}, "drink: tea; cups: 3", None),
    ],
    ids=["memory", "content", "other key", "text", "json text", "triple", "fields of a kind", "fields"],
)
def test_every_shape_of_a_value_becomes_a_statement(tmp_path, value, text, subject):
    (one,) = opened(tmp_path, [item(value)]).remembered

    assert (one.text, one.subject) == (text, subject)


@pytest.mark.parametrize("room", ["items", "results", None], ids=["items", "results", "lines"])
def test_every_layout_gives_its_items(tmp_path, room):
    items = [item(memory("tea"), "k1"), item(memory("milk"), "k2")]
    path = tmp_path / "store.json"
    lines = "\n".join(json.dumps(one) for one in items)
    path.write_text(lines if room is None else json.dumps({room: items}), encoding="utf-8")

    found = exchange.open_file(str(path))

    assert (found.format, texts(found)) == ("langmem", ["tea", "milk"])


def test_an_item_that_two_searches_gave_is_taken_once(tmp_path):
    other = {**item(memory("tea")), "namespace": ["memories", "bob"]}

    found = opened(tmp_path, [item(memory("tea")), item(memory("tea"), score=1), item(memory("milk")), other])

    assert [(one.owner, one.text) for one in found.remembered] == [
        ("memories.anna", "tea"),
        ("memories.anna", "milk"),
        ("memories.bob", "tea"),
    ]
    assert [warned.message for warned in found.warnings] == [
        'item "k1": it stands there twice; taken once',
        'item "k1": it stands there twice; with other words, and both are taken',
    ]


def test_a_time_without_a_zone_stays_text(tmp_path):
    (one,) = opened(tmp_path, [item(memory("tea"), created_at="2026-02-03T00:25:14")]).remembered

    assert (one.at, one.at_text) == (None, "2026-02-03T00:25:14")


@pytest.mark.parametrize(
    "wrong", [7, None, item({}), item(None), item({"content": "  "}), item([]), item(memory(None))]
)
def test_an_item_of_wrong_types_costs_a_warning(tmp_path, wrong):
    found = opened(tmp_path, [item(memory("tea"), "k0"), wrong])

    assert texts(found) == ["tea"]
    assert [warned.message.partition(" what ")[0].rpartition(" ")[2] for warned in found.warnings] == ["skipped"]


def test_the_sqlite_store_is_read_and_its_times_are_utc(tmp_path):
    stamp = "2026-02-03 00:25:14"
    path = database(
        tmp_path / "store.db",
        [
            ("memories.anna", "k2", json.dumps(memory("milk")), stamp, "soon", None, None),
            ("memories.anna", "k1", json.dumps(memory("tea")).encode(), stamp, stamp, stamp, 5.0),
        ],
    )

    found = exchange.open_file(path)

    first, second = found.remembered
    assert found.format == "langmem"
    assert (first.text, first.at, first.owner, first.origin) == ("tea", INSTANT, "memories.anna", "k1")
    assert first.extra == (("kind", "Memory"), ("expires_at", f"{stamp}+00:00"), ("ttl_minutes", "5.0"))
    assert (second.text, second.at, second.at_text) == ("milk", None, "soon")


def test_a_row_of_wrong_types_costs_that_row(tmp_path):
    path = database(
        tmp_path / "store.db",
        [
            (None, 1, "[]", None, None, None, None),
            (b"\xff", b"\xff", b"\xff tea", float("inf"), 7, "", ""),
            ("a", "b", None, None, None, None, None),
        ],
    )

    found = exchange.open_file(path)

    assert texts(found) == ["\udcff tea"]
    assert [warned.message for warned in found.warnings] == [
        'item "1": skipped what says nothing: []',
        'item "b": skipped what says nothing: null',
    ]


def test_a_list_of_keys_and_values_is_not_taken_for_a_store(tmp_path):
    with pytest.raises(Unreadable, match="unrecognised format"):
        opened(tmp_path, [{"key": "colour", "value": "blue"}, {"namespace": "ui", "key": "size", "value": "3"}])
    assert opened(tmp_path, [item(memory("tea"))]).format == "langmem"
