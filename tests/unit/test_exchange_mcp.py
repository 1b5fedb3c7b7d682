"""MCP memory graphs in the layouts they are met in, whole and damaged."""

import json
from pathlib import Path
from typing import Any

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.exchange import Opened
from memcli.exchange.memories.mcp import MCP

FIXTURES = Path(__file__).parents[2] / "fixtures"
DANA = {"type": "entity", "name": "Dana", "entityType": "person", "observations": ["lives in Lisbon", "likes tea"]}
LISBON = {"type": "entity", "name": "Lisbon", "entityType": "city", "observations": ["capital of Portugal"]}
LIVES = {"type": "relation", "from": "Dana", "to": "Lisbon", "relationType": "lives_in"}
FACTS = ["Dana: lives in Lisbon", "Dana: likes tea", "Lisbon: capital of Portugal", "Dana lives in Lisbon"]


def read(tmp_path: Path, text: str, **options: str) -> Opened:
    path = tmp_path / "memory.json"
    path.write_text(text, encoding="utf-8")
    return exchange.open_file(str(path), **options)


def lines(*records: Any) -> str:
    return "\n".join(json.dumps(record, ensure_ascii=False) for record in records) + "\n"


def texts(found: Opened) -> list[str]:
    return [item.text for item in found.remembered]


@pytest.mark.parametrize(
    ("name", "observations", "relations"),
    [
        ("mcp_memory/mm01_standard.jsonl", 47, 13),
        ("mcp_memory/mm03_think_tank_14.jsonl", 78, 0),
        ("malformed/k01_mcp_truncated.jsonl", 3, 0),
        ("malformed/k03_mcp_glued.jsonl", 3, 1),
        ("malformed/k05_mcp_graph_object.json", 3, 1),
    ],
)
def test_a_real_graph_gives_a_fact_for_each_observation_and_each_relation(name, observations, relations):
    found = exchange.open_file(str(FIXTURES / name))

    related = [item for item in found.remembered if dict(item.extra).get("relationType")]
    assert (found.format, len(found.remembered) - len(related), len(related)) == ("mcp", observations, relations)


def test_an_observation_is_read_with_its_entity_and_the_type_goes_along(tmp_path):
    first = read(tmp_path, lines(DANA)).remembered[0]

    assert (first.text, first.subject, first.extra) == ("Dana: lives in Lisbon", "Dana", (("entityType", "person"),))


@pytest.mark.parametrize("kind", ["lives_in", "LIVES_IN", "livesIn", "lives in"])
def test_a_relation_becomes_words_however_its_type_is_spelled(tmp_path, kind):
    told = read(tmp_path, lines(LIVES | {"relationType": kind})).remembered[0]

    assert (told.text, told.subject) == ("Dana lives in Lisbon", "Dana")
    assert told.extra == (("relationType", kind), ("to", "Lisbon"))


@pytest.mark.parametrize(
    "text",
    [
        lines(DANA, LISBON, LIVES),
        json.dumps([DANA, LISBON, LIVES], indent=2),
        json.dumps({"entities": [DANA, LISBON], "relations": [LIVES]}),
        json.dumps({"structuredContent": {"entities": [DANA, LISBON], "relations": [LIVES]}}),
        json.dumps(
            {"content": [{"type": "text", "text": json.dumps({"entities": [DANA, LISBON], "relations": [LIVES]})}]}
        ),
        lines(
            *({"_type" if key == "type" else key: item for key, item in one.items()} for one in (DANA, LISBON, LIVES))
        ),
        lines(*({key: item for key, item in one.items() if key != "type"} for one in (DANA, LISBON, LIVES))),
    ],
    ids=["lines", "array", "graph", "structured", "tool answer", "_type", "no type"],
)
def test_every_layout_gives_the_same_facts(tmp_path, text):
    found = read(tmp_path, text)

    assert (found.format, texts(found), found.warnings) == ("mcp", FACTS, ())


def test_a_dated_observation_keeps_its_time_and_what_else_it_says(tmp_path):
    dated = {"text": "likes tea", "timestamp": "2025-05-11T15:54:05Z", "version": "1.0"}
    loose = {"text": "likes rain", "timestamp": "last May"}

    first, second = read(tmp_path, lines(DANA | {"observations": [dated, loose]})).remembered

    assert (first.at, first.at_text) == (1_746_978_845_000_000, None)
    assert ("version", "1.0") in first.extra
    assert (second.at, second.at_text) == (None, "last May")


def test_an_entity_without_observations_is_told_and_its_type_goes_with_its_relations(tmp_path):
    found = read(tmp_path, lines(DANA, LISBON | {"observations": []}, LIVES))

    assert texts(found) == ["Dana: lives in Lisbon", "Dana: likes tea", "Dana lives in Lisbon"]
    assert ("toType", "city") in found.remembered[2].extra
    assert [(warned.line, warned.message) for warned in found.warnings] == [
        (2, 'nothing is remembered of "Lisbon", an entity of type "city"')
    ]


def test_one_name_with_several_types_keeps_each_type(tmp_path):
    found = read(tmp_path, lines(DANA, DANA | {"entityType": "climber", "observations": ["climbs"]}))

    assert [dict(item.extra)["entityType"] for item in found.remembered] == ["person", "person", "climber"]


def test_the_file_of_parallel_calls_loses_only_what_is_not_whole(tmp_path):
    torn = lines(DANA)[:-1] + json.dumps(LISBON) + '\n{"type":"entity","name":"Ha\n' + lines(LIVES)

    found = read(tmp_path, torn)

    assert texts(found) == FACTS
    assert [warned.line for warned in found.warnings] == [2]


def test_a_save_that_was_cut_costs_the_last_line(tmp_path):
    found = read(tmp_path, lines(DANA, LISBON) + json.dumps(LIVES)[:-9])

    assert texts(found) == FACTS[:3]
    assert [warned.line for warned in found.warnings] == [3]


@pytest.mark.parametrize("start", ["[]", "{}", '{"entities": [], "relations": []}'])
def test_what_a_new_store_begins_with_is_empty_where_the_format_is_named(tmp_path, start):
    found = read(tmp_path, start, format="mcp")

    assert texts(found) == []
    assert "the store holds nothing" in found.warnings[0].message


@pytest.mark.parametrize("name", ["k07_mcp_empty_array.json", "n03_empty_array.json", "n02_empty_object.json"])
def test_an_empty_list_that_nobody_names_could_be_anything_and_is_refused(name):
    # The same two bytes are expected to be an empty store and to be unrecognised; only the name can tell them apart.
    path = str(FIXTURES / "malformed" / name)

    with pytest.raises(Unreadable, match="unrecognised format: it holds an empty JSON"):
        exchange.open_file(path)
    assert exchange.open_file(path, format="mcp").remembered == ()


@pytest.mark.parametrize(
    "value",
    [
        {"text": "Dana works", "entities": [{"text": "Dana", "label": "PERSON"}], "relations": []},
        {"role": "user", "content": "hi", "name": "Dana", "observations": []},
        {"entities": ["Dana"], "relations": ["knows"]},
    ],
)
def test_what_only_looks_like_a_graph_is_not_claimed(value):
    assert MCP.claims(value) == 0
    assert MCP.claims(DANA) == 3


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        (DANA | {"observations": ["likes tea", None, " ", {"version": 1}]}, ["observation 2", "observation 3", "4 of"]),
        (LIVES | {"to": None}, ["lacks an end"]),
        ({"type": "entity", "name": ["Dana"], "observations": ["x"]}, ["no entity and no relation"]),
        ("likes tea", ["no entity and no relation"]),
    ],
)
def test_a_record_with_wrong_types_costs_a_warning(tmp_path, odd, told):
    found = read(tmp_path, lines(LISBON, odd), format="mcp")

    assert texts(found)[0] == "Lisbon: capital of Portugal"
    assert len(found.warnings) == len(told)
    assert all(part in warned.message for part, warned in zip(told, found.warnings, strict=True))
    assert {warned.line for warned in found.warnings} == {2}


def test_a_single_observation_that_is_no_list_is_read(tmp_path):
    assert texts(read(tmp_path, lines(LISBON, DANA | {"observations": "likes tea"})))[1:] == ["Dana: likes tea"]
