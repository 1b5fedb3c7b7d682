"""Hermes' memory files: entries with the mark between them, and what looks like them."""

from pathlib import Path

import pytest

from memcli import exchange
from memcli.exchange import Opened
from memcli.exchange.loose import Prose
from memcli.exchange.memories.hermes import HERMES

FIXTURES = Path(__file__).parents[2] / "fixtures"


def read(tmp_path: Path, text: str, **options: str) -> Opened:
    path = tmp_path / "MEMORY.md"
    path.write_bytes(text.encode())
    return exchange.open_file(str(path), **options)


def texts(found: Opened) -> list[str]:
    return [item.text for item in found.remembered]


def test_each_entry_of_a_file_is_one_fact_with_its_line():
    found = exchange.open_file(str(FIXTURES / "synthetic/sy03_hermes_MEMORY.md"))

    assert (found.format, [item.line for item in found.remembered]) == ("hermes", [1, 3, 5, 8])
    assert texts(found)[2] == "Deploys only after 18:00 Lisbon time and never on Fridays"
    assert found.warnings == ()


@pytest.mark.parametrize("mark", ["\n§\n", "\r\n§\r\n", "\n § \n", "\n\n§\n\n", "\n§\n\n§\n"])
def test_the_mark_divides_entries_however_lines_end(tmp_path, mark):
    assert texts(read(tmp_path, f"likes tea{mark}lives in Lisbon")) == ["likes tea", "lives in Lisbon"]


def test_the_mark_beside_other_words_is_a_word(tmp_path):
    found = read(tmp_path, "The law is § 12 of the act; write § alone\n§\nquotes §\nand more")

    assert texts(found) == ["The law is § 12 of the act; write § alone", "quotes § and more"]


def test_the_mark_inside_code_that_is_still_open_belongs_to_its_entry_and_is_told(tmp_path):
    found = read(tmp_path, "The file looks so:\n```\none\n§\ntwo\n```\n§\nlikes tea\n")

    assert texts(found) == ["The file looks so:\n```\none\n§\ntwo\n```", "likes tea"]
    assert [(warned.line, "kept as part" in warned.message) for warned in found.warnings] == [(4, True)]


def test_code_that_never_closes_swallows_no_other_entry(tmp_path):
    assert texts(read(tmp_path, "broken ```\n```\n§\nlikes tea\n§\nlikes rain")) == [
        "broken ```\n```",
        "likes tea",
        "likes rain",
    ]


def test_an_entry_of_several_blocks_keeps_its_lines(tmp_path):
    assert texts(read(tmp_path, "Deploy:\n- build\n- push\n§\nlikes\ntea"))[0] == "Deploy:\n- build\n- push"


def test_a_placeholder_in_place_of_an_entry_is_told(tmp_path):
    found = read(tmp_path, "likes tea\n§\n[rest of the entries unchanged]\n")

    assert texts(found) == ["likes tea"]
    assert [(warned.line, "placeholder" in warned.message) for warned in found.warnings] == [(3, True)]


def test_markdown_without_the_mark_is_no_single_entry(tmp_path):
    text = (FIXTURES / "malformed/k09_hermes_raw_markdown.md").read_text(encoding="utf-8")

    assert exchange.open_file(str(FIXTURES / "malformed/k09_hermes_raw_markdown.md")).format == "markdown"
    named = read(tmp_path, text, format="hermes")
    assert texts(named) == [
        "Schedule: Daily: website check",
        "Schedule: Weekly: backup",
        "Projects: FOAF network at /data/dossiers/",
    ]
    assert "no line of nothing but § stands in it" in named.warnings[0].message


@pytest.mark.parametrize("text", ["likes § tea", "User: a\n§\nAssistant: b", "plain"])
def test_a_text_without_entries_is_not_claimed(text):
    assert HERMES.claims(Prose(text=text)) == 0
    assert HERMES.claims(Prose(text="likes tea\n§\nlikes rain")) > 0
