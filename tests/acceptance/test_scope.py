"""Scopes: nothing of one is seen, changed or mixed in from another."""

import pytest

from tests.acceptance.driver import Mem
from tests.acceptance.material import openai, token
from tests.acceptance.questions import EVERYWHERE, block, events, facts, find, readable_anywhere, recalled, unbuilt

READS = [
    ("show",),
    ("show", "{id}"),
    ("show", "--source", "s1"),
    ("why", "{id}"),
    ("recall", "{word}"),
    ("context",),
    ("context", "{word}"),
    ("log",),
    ("log", "--fact", "{id}"),
    ("stats",),
    ("import", "--list"),
    ("extract", "--dry-run"),
    ("erase", "{id}", "--dry-run"),
    ("tombstone", "{id}", "--dry-run"),
]
WRITES = [
    ("add", "tea is hot"),
    ("add", "tea is hot", "--derived-from", "{id}"),
    ("correct", "{id}", "tea is warm"),
    ("retract", "{id}"),
    ("dispute", "{id}"),
    ("verify", "{id}"),
    ("undo",),
    ("tombstone", "{id}"),
    ("tombstone", "--value", "tea is hot"),
    ("lift", "t1"),
    ("erase", "{id}"),
    ("import", "{path}"),
    ("extract",),
]
WIDER = ["b", "*", "", "a*", "A", " b"]


def filled(words: tuple[str, ...], mem: Mem, word: str) -> list[str]:
    """Return the words of a command with what this memory holds."""
    known = {"id": find(mem, word, scope="a"), "word": word, "path": str(mem.folder / "talk.json")}
    return [part.format(**known) for part in words]


def explained(words: list[str]) -> list[str]:
    """Return a command with a reason where it takes one."""
    takes = words[0] not in ("show", "why", "recall", "context", "log", "stats")
    return [*words, *(["--reason", "a test"] if takes else [])]


@pytest.fixture
def word() -> str:
    return token()


@pytest.fixture
def two(mem: Mem, word: str) -> Mem:
    """Return a memory whose scope a holds a word that scope b has heard nothing of."""
    openai(mem.folder / "talk.json", [f"FACT: the pass of the depot is {word}"])
    mem.ok("import", "talk.json", scope="a")
    mem.ok("extract", scope="a")
    mem.ok("add", "the depot opens at nine", scope="b")
    return mem


@pytest.mark.shows("scope.cross_tenant_absent")
def test_what_one_scope_holds_and_matches_best_is_absent_in_another(two, word):
    assert readable_anywhere(two, word, scope="a") == EVERYWHERE
    assert readable_anywhere(two, word, scope="b") == []
    assert recalled(two, "depot", scope="b") == ["the depot opens at nine"]
    assert readable_anywhere(two, word) == []


@pytest.mark.shows("scope.cross_tenant_absent")
def test_an_id_of_another_scope_is_not_found(two, word):
    fact = find(two, word, scope="a")

    assert two.run("show", fact, scope="a").code == 0
    for command in ("show", "why", "retract", "tombstone", "erase", "dispute"):
        result = two.run(*explained([command, fact]), "--json", scope="b")
        assert (result.code, result.error) == (4, "not-found"), command
        assert word not in result.out + result.err
    assert find(two, word, scope="a") == fact


@pytest.mark.shows("scope.cross_tenant_absent")
def test_a_tombstone_of_one_scope_stops_nothing_in_another_and_one_for_everywhere_does(two, word):
    two.ok("tombstone", "--value", "tea is hot", "--reason", "a test", scope="a")

    assert two.run("add", "tea is hot", scope="a").code == 3
    assert two.run("add", "tea is hot", scope="b").code == 0
    two.ok("tombstone", "--value", "milk is cold", "--everywhere", "--reason", "a test", scope="a")
    assert two.run("add", "milk is cold", scope="b").code == 3


@pytest.mark.shows("scope.cross_tenant_absent")
def test_forgetting_in_one_scope_leaves_the_same_words_of_another_alone(two, word):
    two.ok("import", "talk.json", scope="b")
    two.ok("extract", scope="b")

    two.ok("erase", "--value", word, "--reason", "a test", "--yes", scope="a")
    assert readable_anywhere(two, word, scope="a") == []
    assert readable_anywhere(two, word, scope="b") == EVERYWHERE


@pytest.mark.shows("scope.caller_cannot_widen")
@pytest.mark.parametrize("words", READS + WRITES, ids=" ".join)
def test_a_bound_process_is_refused_every_other_scope(two, word, words):
    bound = two.bound("a")
    call = explained(filled(words, two, word))
    before = two.ok("log", "head", "--json").json()["head"]

    for wider in WIDER:
        assert bound.run(*call, "--json", scope=wider).code in (2, 3), wider
    assert two.ok("log", "head", "--json").json()["head"] == before
    assert bound.run("add", f"scope a still works for {word}").code == 0
    assert bound.run("recall", word, "--json").json()


@pytest.mark.shows("scope.caller_cannot_widen")
@pytest.mark.parametrize("words", [("show",), ("log",), ("why", "{id}")], ids=" ".join)
def test_a_bound_process_may_not_look_into_all_scopes(two, word, words):
    call = filled(words, two, word)

    refused = two.bound("a").run(*call, "--all-scopes", "--json")
    assert (refused.code, refused.error) == (3, "out-of-scope")
    assert two.bound("a").run(*call, "--json").code == 0
    assert two.run(*call, "--all-scopes", "--json").code == 0


@pytest.mark.shows("scope.caller_cannot_widen")
def test_a_bound_process_cannot_act_everywhere_or_list_or_change_other_scopes(two, word):
    bound = two.bound("a")

    assert bound.run("tombstone", "--value", "tea is hot", "--everywhere", "--reason", "a test").code == 3
    assert [scope["name"] for scope in bound.ok("scope", "list", "--json").json()] == ["a"]
    assert {"a", "b"} <= {scope["name"] for scope in two.ok("scope", "list", "--json").json()}
    for change in (("rename", "b", "c"), ("merge", "b", "a")):
        assert bound.run("scope", *change, "--reason", "a test", at_terminal=True).code == 3
    assert recalled(two, "depot", scope="b") == ["the depot opens at nine"]


@pytest.mark.shows("scope.caller_cannot_widen")
@pytest.mark.parametrize("scope", ["", "*", "a/*"])
def test_an_empty_scope_and_a_wildcard_are_usage_errors_also_for_who_is_not_bound(two, word, scope):
    for call in (("show",), ("recall", word), ("add", "tea is hot")):
        assert two.run(*call, scope=scope).code == 2
    assert two.run("show", scope="a").code == 0


@pytest.mark.shows("scope.caller_cannot_widen")
def test_a_bound_process_cannot_copy_a_fact_of_another_scope_into_its_own(two, word):
    fact = find(two, word, scope="a")
    said = two.ok("show", fact, "--json", scope="a").json()["text"]

    assert two.bound("b").run("add", said, "--derived-from", fact).code in (3, 4)
    assert readable_anywhere(two, word, scope="b") == []
    assert two.run("add", said, "--derived-from", fact, scope="b").code == 0
    assert readable_anywhere(two, word, scope="b") == EVERYWHERE


@pytest.mark.shows("scope.background_respects_boundary")
def test_nothing_but_a_copy_is_derived_over_the_border_of_a_scope(two, word):
    fact = find(two, word, scope="a")

    assert two.run("add", f"a summary that says {word}", "--derived-from", fact, scope="b").code == 3
    assert readable_anywhere(two, word, scope="b") == []
    assert two.run("add", f"a summary that says {word}", "--derived-from", fact, scope="a").code == 0


@pytest.mark.shows("scope.caller_cannot_widen")
def test_a_wide_look_is_written_to_the_log(two):
    before = len(events(two, "--op", "read"))

    two.ok("show", "--all-scopes")
    assert len(events(two, "--op", "read")) == before + 1


@pytest.mark.shows("scope.background_respects_boundary")
def test_after_rebuild_over_overlapping_content_nothing_derived_mixes_scopes(mem):
    mine, theirs = token(), token()
    for scope, own in (("a", mine), ("b", theirs)):
        mem.ok("add", f"the depot pass of the north gate is {own}", scope=scope)
        fact = find(mem, own, scope=scope)
        mem.ok("add", f"summary: gates have passes, {own}", "--derived-from", fact, "--kind", "summary", scope=scope)

    mem.ok("rebuild", process=True)
    for scope, own, other in (("a", mine, theirs), ("b", theirs, mine)):
        found = recalled(mem, "depot pass gate summary", scope=scope)
        assert len(found) == 2
        assert all(own in text for text in found)
        assert own in block(mem, scope=scope)
        assert other not in block(mem, scope=scope) + " ".join(found)
        assert {fact["scope"] for fact in facts(mem, "--all-states", scope=scope)} == {scope}


@pytest.mark.shows("scope.background_respects_boundary")
def test_what_one_scope_holds_does_not_move_the_ranks_of_another(mem):
    mem.ok("add", "the depot opens at nine", scope="a")
    before = mem.ok("recall", "depot nine", "--json", scope="a").json()[0]["parts"]["relevance"]

    for number in range(20):
        mem.ok("add", f"depot {number} is closed at nine", scope="b")
    after = mem.ok("recall", "depot nine", "--json", scope="a").json()
    assert len(after) == 1
    assert after[0]["parts"]["relevance"] == before


@pytest.mark.shows("scope.background_respects_boundary")
def test_condense_stays_within_a_scope(mem):
    unbuilt(mem, "condense")
