"""Edges of a Graphiti graph."""

import json
from pathlib import Path
from typing import Any

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.exchange import Opened
from memcli.facts import Remembered, Validity
from memcli.terms import State

START, END = "2026-02-03T00:25:14Z", "2026-02-04T00:25:14Z"
INSTANT = 1_770_078_314_000_000
DAY = 24 * 3600 * 1_000_000


def opened(tmp_path: Path, value: Any) -> Opened:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return exchange.open_file(str(path))


def edge(fact: Any = "Anna lives in Lisbon", **beside: Any) -> dict[str, Any]:
    ends = {"source_node_uuid": "n1", "target_node_uuid": "n2"}
    return {"uuid": "e1", "name": "LIVES_IN", "fact": fact, **ends, "created_at": START, **beside}


def one(tmp_path: Path, **beside: Any) -> Remembered:
    (found,) = opened(tmp_path, [edge(**beside)]).remembered
    return found


def test_an_edge_is_one_thing_remembered(tmp_path):
    found = opened(
        tmp_path,
        {
            "nodes": [{"uuid": "n1", "name": "Anna"}, {"uuid": "n2", "name": "Lisbon", "summary": "a city"}],
            "edges": [edge(valid_at=START, invalid_at=END, group_id="g", episodes=["p"], fact_embedding=[0.1, 0.2])],
            "episodes": [{"content": "…"}],
        },
    )

    assert found.format == "graphiti"
    assert found.remembered == (
        Remembered(
            format="graphiti",
            text="Anna lives in Lisbon",
            subject="Anna",
            validity=Validity(start=INSTANT, end=INSTANT + DAY),
            owner="g",
            origin="e1",
            at=INSTANT,
            extra=(
                ("target", "Lisbon"),
                ("name", "LIVES_IN"),
                ("source_node_uuid", "n1"),
                ("target_node_uuid", "n2"),
                ("episodes", '["p"]'),
            ),
            line=1,
        ),
    )
    assert [warned.message for warned in found.warnings] == [
        "left behind, since they are no edges: 2 nodes",
        "left behind, since they are no edges: 1 episodes",
        "left behind, since they are made from the words: 1 embeddings",
    ]


def test_an_expired_edge_is_superseded_and_an_invalid_one_only_over(tmp_path):
    expired = one(tmp_path, expired_at=END)
    over = one(tmp_path, invalid_at=END)

    assert (expired.ended, expired.status, expired.validity) == (State.SUPERSEDED, "expired", Validity())
    assert ("expired_at", END) in expired.extra
    assert (over.ended, over.validity) == (None, Validity(end=INSTANT + DAY))


def test_an_edge_that_ends_before_it_begins_keeps_its_times_as_words(tmp_path):
    found = opened(tmp_path, [edge(valid_at=END, invalid_at=START)])

    (kept,) = found.remembered
    assert (kept.validity, kept.extra[:2]) == (Validity(), (("valid_at", END), ("invalid_at", START)))
    assert [warned.message for warned in found.warnings] == [
        'the edge "e1": it ends before it begins; its times are kept as text'
    ]


@pytest.mark.parametrize("when", ["last spring", "2026-02-03T00:25:14", [2026], True])
def test_a_time_that_is_no_instant_stays_text_and_is_told(tmp_path, when):
    found = opened(tmp_path, [edge(valid_at=when)])

    words = when if isinstance(when, str) else json.dumps(when)
    (kept,) = found.remembered
    assert (kept.validity, ("valid_at", words) in kept.extra) == (Validity(), True)
    assert [warned.message for warned in found.warnings] == [
        f'the edge "e1": valid_at is no instant: {json.dumps(words)}; kept as text'
    ]


@pytest.mark.parametrize(
    "layout",
    [
        [edge()],
        {"edges": [edge()]},
        {"message": "Facts retrieved successfully", "facts": [edge()]},
        edge(),
        [
            {
                "type": "relationship",
                "label": "RELATES_TO",
                "start": {"properties": {"name": "Anna"}},
                "end": {"properties": {"name": "Lisbon"}},
                "properties": edge(),
            }
        ],
    ],
    ids=["list", "edges", "facts", "one", "exported"],
)
def test_every_layout_gives_its_edges(tmp_path, layout):
    found = opened(tmp_path, layout)

    assert (found.format, [item.text for item in found.remembered]) == ("graphiti", ["Anna lives in Lisbon"])
    assert found.warnings == ()


def test_names_of_the_ends_may_stand_in_the_edge(tmp_path):
    named = one(tmp_path, source_node_name="Anna", target_node_name="Lisbon")
    nested = one(tmp_path, source={"name": "Anna"}, target={"name": "Lisbon"})
    unnamed = one(tmp_path)

    assert {(item.subject, item.extra[0]) for item in (named, nested)} == {("Anna", ("target", "Lisbon"))}
    assert unnamed.subject is None


@pytest.mark.parametrize(
    "wrong", [7, None, {}, edge(None, uuid="e2"), edge(7, uuid="e2"), edge(" ", uuid="e2"), edge()]
)
def test_an_edge_of_wrong_types_or_twice_costs_a_warning(tmp_path, wrong):
    found = opened(tmp_path, [edge(), wrong])

    assert [item.text for item in found.remembered] == ["Anna lives in Lisbon"]
    assert len(found.warnings) == 1


def test_a_list_of_facts_that_are_no_edges_is_left_to_others(tmp_path):
    with pytest.raises(Unreadable, match="unrecognised format"):
        opened(tmp_path, [{"fact": "Anna lives in Lisbon"}])
    assert opened(tmp_path, [edge()]).format == "graphiti"
