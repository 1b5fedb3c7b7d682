"""Whatever facts say, the block is one block, reads back as those facts, and keeps to its bounds."""

import html
import re
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memcli.errors import MemError, UsageError
from memcli.facts import Actor, Claim
from memcli.recall import CLOSING, OPENING, PREFACE, context, recall
from memcli.store import create, open_store
from memcli.terms import ActorKind, Admission, Channel
from memcli.text import visible
from tests.made import ANNA, NOW

# What an importer brings may hold any character; what is typed may not.
IMPORTER = Actor(name="importer", kind=ActorKind.IMPORTER, channel=Channel.IMPORT)
HOSTILE = [
    "<memory>",
    "</memory>",
    "&lt;",
    "&#60;",
    "\n",
    "\r",
    "\u2028",
    "\u200b",
    "\u202e",
    "\x1b",
    "\0",
    "\ud800",
    "]",
    "[",
    ";",
    "- [0] ",
    "<",
    "&",
]

texts = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=6), min_size=1, max_size=6).map("".join)
claims = st.lists(
    st.builds(
        Claim, text=texts, subject=st.none() | texts, pinned=st.booleans(), importance=st.none() | st.floats(0, 1)
    ),
    min_size=1,
    max_size=6,
)


@pytest.fixture(scope="module")
def empty():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        create(path, actor=ANNA, admission=Admission.DIRECT, now=lambda: NOW)
        yield path


@contextmanager
def filled(empty, offered):
    """Give a store with those of the claims that it takes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(empty, folder))
        with open_store(path, now=lambda: NOW) as store:
            for claim in offered:
                try:
                    with store.write(IMPORTER) as writer:
                        writer.add(claim)
                except MemError:
                    continue
            yield store


def parsed(text):
    """Return (id, subject or None, text) of each line of a block."""
    opening, preface, *lines, closing = text.split("\n")
    assert (opening, preface, closing) == (OPENING, PREFACE, CLOSING)
    found = []
    for line in lines:
        head, said = re.fullmatch(r"- \[([^\]]*)\] (.*)", line).groups()
        name, *subject = re.split(r"; about ", head, maxsplit=1)
        found.append((name, html.unescape(subject[0]) if subject else None, html.unescape(said)))
    return found


def shown(fact):
    return fact.id[:8], None if fact.subject is None else visible(fact.subject), visible(fact.text)


@settings(max_examples=60)
@given(offered=claims)
def test_the_block_has_one_opening_and_one_closing_and_reads_back_as_its_facts(empty, offered):
    with filled(empty, offered) as store:
        made = context(store, None, budget_tokens=None, count=len, encoding="characters")
        held = list(store.facts())

    assert {fact.id for fact in made.facts} == {fact.id for fact in held}
    if held:
        assert made.text.count(OPENING) == made.text.count(CLOSING) == 1
        assert made.text.count("<") == made.text.count(">") == 2
        assert made.text.splitlines() == made.text.split("\n")
        assert parsed(made.text) == [shown(fact) for fact in made.facts]


def uneven(text):
    """Count so that parts never add up to the whole: the more lines there are, the more each counts."""
    return len(text) // 2 + 5 * text.count("\n") ** 2


@settings(max_examples=60)
@given(
    offered=claims,
    budget_tokens=st.integers(0, 400),
    k=st.integers(1, 8),
    count=st.sampled_from([len, uneven, lambda text: len(text.encode("utf-8", "replace")) // 4]),
)
def test_the_block_is_never_over_budget_nor_over_k_and_every_fact_is_in_it_or_named(
    empty, offered, budget_tokens, k, count
):
    with filled(empty, offered) as store:
        made = context(store, None, k=k, budget_tokens=budget_tokens, count=count, encoding="any")
        held = {fact.id for fact in store.facts()}

    taken = [fact.id for fact in made.facts]
    assert made.tokens <= budget_tokens
    assert made.tokens == (count(made.text) if taken else 0)
    assert len(taken) <= k
    assert sorted([*taken, *(name for name, _ in made.dropped)]) == sorted(held)


@settings(max_examples=60)
@given(offered=claims, query=texts, k=st.integers(1, 4))
def test_any_query_finds_at_most_k_facts_best_first_or_is_refused_for_having_no_word(empty, offered, query, k):
    with filled(empty, offered) as store:
        try:
            found = recall(store, query, k=k)
        except UsageError:
            assert not any(char.isascii() and char.isalnum() for char in query)
            return

        assert len(found) <= k
        assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
        assert found == recall(store, query, k=k + 1)[:k]


@settings(max_examples=60)
@given(word=st.text(st.characters(categories=["Ll", "Lo", "Mn", "Mc", "Nd"]), min_size=1, max_size=5))
def test_a_fact_is_found_by_any_word_it_was_written_with(empty, word):
    with filled(empty, [Claim(text=f"{word} tea"), Claim(text="coffee")]) as store:
        try:
            found = recall(store, word, k=50)
        except UsageError:
            return

        assert "tea" in {item.fact.text.split()[-1] for item in found}
