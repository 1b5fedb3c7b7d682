"""Notes of basic-memory: observations, relations, and the rest of a note."""

from pathlib import Path

import pytest

from memcli import exchange
from memcli.exchange import Opened
from memcli.exchange.loose import Prose
from memcli.exchange.memories.basic_memory import BASIC_MEMORY

FIXTURES = Path(__file__).parents[2] / "fixtures"
FRONT = "---\ntitle: Tea\ntype: note\npermalink: notes/tea\n---\n\n# Tea\n\n"


def read(tmp_path: Path, text: str, **options: str) -> Opened:
    path = tmp_path / "note.md"
    path.write_text(text, encoding="utf-8")
    return exchange.open_file(str(path), **options)


def texts(found: Opened) -> list[str]:
    return [item.text for item in found.remembered]


def test_a_note_gives_its_observations_and_relations():
    found = exchange.open_file(str(FIXTURES / "synthetic/sy05_basic_memory_note.md"))

    # A count of its bullets is 8; two of them are the tags of its front matter, which go along with every fact.
    assert found.format == "basic-memory"
    assert texts(found) == [
        "Coffee Brewing: Pour over highlights subtle flavours",
        "Coffee Brewing: Water at 94 C extracts evenly",
        "Coffee Brewing: Dana likes lighter roasts",
        "Coffee Brewing relates to Coffee Bean Origins",
        "Coffee Brewing requires Gooseneck Kettle",
        "Coffee Brewing relates to Morning Routine",
    ]
    assert {item.subject for item in found.remembered} == {"Coffee Brewing"}
    assert all(("tags", "coffee, brewing") in item.extra for item in found.remembered)
    assert found.warnings == ()


def test_an_observation_keeps_category_tags_and_context(tmp_path):
    item = read(tmp_path, FRONT + "- [method] Steep #3 minutes at 80 C #green #hot (by the book)\n").remembered[0]

    assert (item.text, item.line) == ("Tea: Steep #3 minutes at 80 C", 9)
    assert item.extra[:4] == (("category", "method"), ("tag", "green"), ("tag", "hot"), ("context", "by the book"))


def test_a_relation_keeps_its_type_its_target_and_context(tmp_path):
    plain, bare = read(tmp_path, FRONT + "- grown_in [[Uji|the town]] (since 1200)\n- [[Water]]\n").remembered

    assert (plain.text, plain.extra[:3]) == (
        "Tea grown in Uji",
        (("relationType", "grown_in"), ("to", "Uji"), ("context", "since 1200")),
    )
    assert (bare.text, bare.extra[0]) == ("Tea relates to Water", ("to", "Water"))


def test_the_rest_of_a_note_is_read_as_markdown(tmp_path):
    found = read(tmp_path, FRONT + "Dana drinks it daily.\n\n- [ ] buy more\n- see [[Uji]] some day\n- [kind] green\n")

    assert texts(found) == ["Dana drinks it daily.", "Tea: buy more", "Tea: see [[Uji]] some day", "Tea: green"]
    assert found.remembered[1].status == "open"


def test_observations_without_front_matter_need_a_relation_beside_them(tmp_path):
    note = "# Tea\n\n- [method] steep\n- grown_in [[Uji]]\n"

    assert read(tmp_path, note).format == "basic-memory"
    assert texts(read(tmp_path, note)) == ["Tea: steep", "Tea grown in Uji"]
    assert BASIC_MEMORY.claims(Prose(text="# Tea\n\n- [method] steep\n")) == 0


@pytest.mark.parametrize(
    "text",
    ["# List\n- [ ] buy tea\n- [x] drink it\n", "# Links\n- [Uji](uji.md)\n", "User: - [a] b\nAssistant: c\n", "words"],
)
def test_other_markdown_is_not_claimed(text):
    assert BASIC_MEMORY.claims(Prose(text=text)) == 0
    assert BASIC_MEMORY.claims(Prose(text=FRONT + "- [method] steep\n")) > 0
