"""Scopes: nothing of one is seen, changed or mixed in from another."""

import pytest

from tests.acceptance.driver import Mem
from tests.acceptance.material import EXPORTS, openai, token
from tests.acceptance.questions import (
    EVERYWHERE,
    block,
    condensing,
    events,
    facts,
    find,
    readable_anywhere,
    recalled,
    texts,
)
from tests.acceptance.stores import STORES

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
    ("condense", "--dry-run"),
    ("erase", "{id}", "--dry-run"),
    ("tombstone", "{id}", "--dry-run"),
    ("revoke", "{id}", "--dry-run"),
    ("show", "--html", "-"),
    ("log", "--html", "-"),
    ("export",),
    ("export", "--format", "markdown"),
    ("filter",),
    ("diff", "{db}", "{db}"),
    ("review", "list"),
    ("review", "export"),
    ("review", "--check"),
    ("tx", "show"),
    ("tx", "show", "tx1"),
    ("tx", "check", "tx1"),
    ("act", "list"),
    ("effects",),
    ("eval", "run", "{cases}"),
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
    ("condense",),
    ("import", "{store}"),
    ("revoke", "{id}"),
    ("rebuild", "{id}"),
    ("review", "apply", "{decisions}"),
    ("tx", "begin"),
    ("tx", "read", "tx1"),
    ("tx", "stage", "tx1", "tea is hot"),
    ("tx", "commit", "tx1"),
    ("tx", "abort", "tx1"),
    ("tx", "recover"),
    ("gate", "tx1", "--tool", "pay", "--premise", "{id}"),
    ("act", "begin", "--receipt", "r1"),
]
WIDE = [
    ("show",),
    ("log",),
    ("why", "{id}"),
    ("export",),
    ("diff", "{db}", "{db}"),
    ("show", "--html", "-"),
    ("log", "--html", "-"),
]
REASONED = {
    "add", "correct", "retract", "dispute", "verify", "undo", "tombstone", "lift", "erase", "import", "extract",
    "condense", "revoke", "rebuild",
}  # fmt: skip
WIDER = ["b", "*", "", "a*", "A", " b"]


def filled(words: tuple[str, ...], mem: Mem, word: str) -> list[str]:
    """Return the words of a command with what this memory holds."""
    folder = mem.folder
    (folder / "cases.toml").write_text(f'[[case]]\nid = "c"\nquery = "depot"\nexpect = ["{word}"]\n', encoding="utf-8")
    (folder / "decisions.jsonl").write_text("", encoding="utf-8")
    known = {
        "id": find(mem, word, scope="a"),
        "word": word,
        "path": str(folder / "talk.json"),
        "db": str(mem.path),
        "cases": str(folder / "cases.toml"),
        "decisions": str(folder / "decisions.jsonl"),
        "store": STORES["mem0"].path(folder, word, name="store.json"),
    }
    return [part.format(**known) for part in words]


def explained(words: list[str]) -> list[str]:
    """Return a command with a reason where it takes one, and its answer as JSON where it has that form."""
    reasons = words[0] in REASONED or words[:2] == ["review", "apply"]
    plain = words[0] in ("export", "filter") or words[:2] == ["review", "export"] or "--html" in words
    return [*words, *(["--reason", "a test"] if reasons else []), *([] if plain else ["--json"])]


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
    for command in ("show", "why", "retract", "tombstone", "erase", "dispute", "revoke", "rebuild"):
        result = two.run(*explained([command, fact]), scope="b")
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
    two.ok("tx", "begin", scope="a")
    call = explained(filled(words, two, word))
    before = two.ok("log", "head", "--json").json()["head"]

    for wider in WIDER:
        refused = bound.run(*call, scope=wider)
        # A name that no scope can have may be found to be one before anything else is looked at.
        assert refused.code in ((3,) if wider in ("b", "A") else (2, 3)), wider
        assert word not in refused.out + refused.err.replace(str(two.folder), ""), wider
    assert two.ok("log", "head", "--json").json()["head"] == before
    assert bound.run("add", f"scope a still works for {word}").code == 0
    assert bound.run("recall", word, "--json").json()


@pytest.mark.shows("scope.caller_cannot_widen")
@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_a_bound_process_still_reads_its_own_scope(two, word, words):
    two.ok("tx", "begin", scope="a")
    call = explained(filled(words, two, word))

    own = two.bound("a").run(*call)
    assert own.code == 0, own.err
    assert own.err == "" or words[0] in ("export", "filter", "context", "eval", "diff")


@pytest.mark.shows("scope.caller_cannot_widen")
@pytest.mark.parametrize("words", WIDE, ids=" ".join)
def test_a_bound_process_may_not_look_into_all_scopes(two, word, words):
    call = filled(words, two, word)

    refused = two.bound("a").run(*call, "--all-scopes")
    assert (refused.code, refused.out) == (3, "")
    assert "bound to a" in refused.err
    assert two.bound("a").run(*call).code == 0
    assert two.run(*call, "--all-scopes").code == 0


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
    for scope in ("a", "b"):
        for text in ("the depot opens at nine", "the depot really opens at nine"):
            mem.ok("add", text, scope=scope)
    before = texts(mem, "--all-states", scope="b")

    mem.ok("condense", scope="a")
    assert texts(mem, scope="a") == ["the depot opens at nine"]
    assert texts(mem, "--all-states", scope="b") == before


@pytest.mark.shows("scope.background_respects_boundary")
def test_a_condenser_is_told_of_one_scope_only_and_cannot_build_on_another(mem):
    words = [token(), token()]
    ids = [
        mem.ok("add", f"the pass is {word}", "--json", scope=scope).json()["id"]
        for scope, word in zip("ab", words, strict=True)
    ]

    assert mem.run("condense", "--condenser", condensing("the passes are known", ids), scope="a").code in (3, 4, 5)
    assert readable_anywhere(mem, words[0], scope="a") == readable_anywhere(mem, words[1], scope="b") == EVERYWHERE
    assert mem.run("condense", "--condenser", condensing(f"a pass, {words[0]}", ids[:1]), scope="a").code == 0
    assert texts(mem, scope="a") == [f"a pass, {words[0]}"]
    assert texts(mem, scope="b") == [f"the pass is {words[1]}"]


@pytest.mark.shows("scope.background_respects_boundary")
def test_a_summary_that_is_built_anew_and_every_export_stay_within_a_scope(mem):
    words = {scope: token() for scope in ("a", "b")}
    for scope, word in words.items():
        fact = mem.ok("add", f"the pass is {word}", "--json", scope=scope).json()["id"]
        view = ("add", "a summary", "--derived-from", fact, "--kind", "summary", "--json")
        mem.ok("rebuild", mem.ok(*view, scope=scope).json()["id"], "--reason", "a test", scope=scope)

    for scope, word in words.items():
        (other,) = (theirs for theirs in words.values() if theirs != word)
        assert texts(mem, scope=scope) == [f"the pass is {word}", f"the pass is {word}"]
        for form in EXPORTS:
            told = mem.ok("export", "--format", form, scope=scope).out
            assert word in told
            assert other not in told
        page = mem.ok("show", "--html", "-", scope=scope).out
        assert word in page
        assert other not in page


@pytest.mark.shows("scope.cross_tenant_absent")
def test_a_transaction_of_one_scope_reads_and_stages_nothing_of_another(two, word):
    fact = find(two, word, scope="a")
    for scope in ("a", "b"):
        two.ok("tx", "begin", scope=scope)

    assert word in two.ok("tx", "read", "tx1", "--json", scope="a").out
    assert word not in two.ok("tx", "read", "tx2", "--json", scope="b").out
    assert two.run("tx", "read", "tx1", "--json", scope="b").code == 3
    assert two.run("tx", "stage", "tx2", "a pass is known", "--derived-from", fact, scope="b").code == 3
    assert two.run("gate", "tx2", "--tool", "pay", "--premise", fact, scope="b").code in (1, 3, 4)
    assert two.run("gate", "tx1", "--tool", "pay", "--premise", fact, scope="a").code == 0
