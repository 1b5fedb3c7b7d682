"""What the built-in rules read in every transcript that is shipped: each claim was judged, and no other may come."""

from pathlib import Path

import pytest

from memcli import exchange
from memcli.errors import MemError
from memcli.extract import RULES, extract
from memcli.facts import Message
from memcli.terms import Role
from tests.made import message

FIXTURES = Path(__file__).parents[2] / "fixtures"

JUDGED = {
    ("my X is Y", "the user ID is aarav_garcia_1177"),
    ("my X is Y", "the user ID is anya_garcia_5901"),
    ("my X is Y", "the user ID is daiki_lee_6144"),
    ("my X is Y", "the user ID is mei_brown_7075"),
    ("my X is Y", "the user ID is mia_li_3668"),
    ("my X is Y", "the user ID is omar_davis_3817"),
    ("my X is Y", "the user's loan term is 30 years"),
    ("my X is Y", "the user's height is 1.75 meters"),
    ("my X of N", "the user's personal best time is 25:50"),
    ("personal best", "the user's personal best time is 27:12"),
    ("I live in", "the user lives in Princeton"),
    ("I moved to", "the user moved to Lisbon"),
    ("I am allergic to", "the user is allergic to peanuts"),
    ("my name is", "the user's name is Dana"),
}
"""Rule and text of every claim that a person who reads these transcripts would note too."""

SILENT = frozenset(RULES) - {rule for rule, _ in JUDGED}
"""Rules for which nobody says anything in these transcripts; they must not fire in any."""


def transcripts() -> dict[str, list[list[Message]]]:
    """Return the messages of each conversation of every shipped file that is a transcript."""
    found: dict[str, list[list[Message]]] = {}
    for path in sorted(FIXTURES.rglob("*.json*")):
        try:
            opened = exchange.open_file(str(path))
        except MemError:
            continue
        talks = [
            [message(at, turn.role, turn.content) for at, turn in enumerate(c.turns)] for c in opened.conversations
        ]
        if talks:
            found[str(path.relative_to(FIXTURES))] = talks
    return found


@pytest.fixture(scope="module")
def read() -> dict[str, list[list[Message]]]:
    return transcripts()


def test_the_transcripts_hold_much_that_could_be_misread(read):
    said = [m for talks in read.values() for talk in talks for m in talk if m.role is Role.USER]

    assert len(read) > 10
    assert len(said) > 100
    assert sum(" my " in m.content.casefold() for m in said) > 20


def test_only_claims_that_were_judged_are_read_in_real_transcripts(read):
    found = {(c.rule, c.text) for talks in read.values() for talk in talks for c in extract(talk)}

    assert found <= JUDGED, f"judge these, or mend their rules: {sorted(found - JUDGED, key=str)}"
    assert ("I live in", "the user lives in Princeton") in found


@pytest.mark.parametrize("rule", sorted(set(RULES)))
def test_a_rule_fires_where_it_should_and_nowhere_else(read, rule):
    found = {c.text for talks in read.values() for talk in talks for c in extract(talk) if c.rule == rule}

    assert found <= {text for name, text in JUDGED if name == rule}
    assert bool(found) is (rule not in SILENT)
