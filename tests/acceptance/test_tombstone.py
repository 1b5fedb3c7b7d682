"""A rejected value stays out: laundered, aged, spelt otherwise, or read again from the same transcript."""

from collections.abc import Iterator
from unicodedata import category

import pytest

from tests.acceptance.driver import Result
from tests.acceptance.material import TRANSCRIPTS, claude_code, openai, token
from tests.acceptance.questions import (
    EVERYWHERE,
    condensing,
    events,
    extract,
    find,
    offered,
    readable_anywhere,
    recalled,
    refusals,
    texts,
)
from tests.normalisation_cases import DISTINCT, STOPPED

BECAUSE = ("--reason", "not true")
MAINTENANCE = [
    ("extract", "--all"),
    ("condense",),
    ("rebuild",),
    ("migrate",),
    ("tx", "recover"),
    ("check",),
    ("log", "verify"),
    ("review", "list"),
]
"""Every command that tends a file without being told what to believe."""


@pytest.mark.shows("tombstone.laundering_sequence")
@pytest.mark.parametrize("slot", [True, False], ids=["slot", "free text"])
def test_a_rejected_value_stays_out_through_correction_restatement_and_corroboration(mem, slot):
    wrong, right, near = token(), token(), token()
    named = ("--subject", "depot", "--attribute", "pass")
    first = f"the pass of the depot is {wrong}"
    fact = mem.ok("add", first, *((*named, "--value", wrong) if slot else ()), "--json").json()["id"]
    mem.ok("add", f"the depot stands near {near}")

    mem.ok("tombstone", fact, *BECAUSE)
    mem.ok("correct", fact, f"the pass of the depot is {right}", *BECAUSE)
    restated = mem.run("add", first, *((*named, "--value", wrong) if slot else ()))
    second = mem.ok("import", openai(mem.folder / "second.json", [f"FACT: {first}"]), "--json").json()["sources"][0]
    corroborated = extract(mem)[first]
    cited = mem.run("add", first, "--evidence", f"{second['source']}#0", "--quote", wrong)
    assert (restated.code, corroborated, cited.code) == (3, "tombstoned", 3)
    assert readable_anywhere(mem, wrong) == []
    assert readable_anywhere(mem, right) == EVERYWHERE
    assert readable_anywhere(mem, near) == EVERYWHERE


@pytest.mark.shows("tombstone.laundering_sequence")
def test_another_wording_for_the_same_slot_is_refused_and_another_value_is_not(mem):
    wrong, right = token(), token()
    slot = ("--subject", "depot", "--attribute", "pass", "--value")
    fact = mem.ok("add", f"the pass of the depot is {wrong}", *slot, wrong, "--json").json()["id"]

    mem.ok("tombstone", fact, *BECAUSE)
    assert mem.run("add", f"whoever enters the depot needs {wrong}", *slot, wrong.upper()).code == 3
    assert mem.run("add", f"the pass of the depot is {right}", *slot, right).code == 0
    assert recalled(mem, "depot") == [f"the pass of the depot is {right}"]


@pytest.mark.shows("tombstone.survives_ttl_and_prune")
def test_no_maintenance_and_no_clock_that_runs_years_ahead_ends_a_tombstone(mem):
    wrong, kept = token(), token()
    said = [f"FACT: the pass of the depot is {wrong}", f"FACT: the pass of the tower is {kept}"]
    mem.ok("import", openai(mem.folder / "talk.json", said))
    mem.ok("extract")
    mem.ok("tombstone", find(mem, wrong), *BECAUSE)

    for years, words in enumerate(MAINTENANCE, start=5):
        mem.ok(*words, clock_years_ahead=years)
        refused = mem.run("add", f"the pass of the depot is {wrong}", "--json", clock_years_ahead=years)
        assert (refused.code, refused.error) == (3, "tombstoned"), words
        assert readable_anywhere(mem, wrong) == [], words
        assert recalled(mem, kept) == [f"the pass of the tower is {kept}"], words
    assert mem.run("add", f"the pass of the depot is {wrong}", process=True).code == 3
    mem.ok("lift", "t1", "--reason", "it was true", clock_years_ahead=40)
    assert mem.run("add", f"the pass of the depot is {wrong}", clock_years_ahead=40).code == 0


@pytest.mark.shows("tombstone.survives_ttl_and_prune")
def test_condensing_ends_no_tombstone(mem):
    wrong, one, other = token(), token(), token()
    text = f"the pass of the depot is {wrong}"
    mem.ok("tombstone", mem.ok("add", text, "--json").json()["id"], *BECAUSE)
    ids = [mem.ok("add", f"the gate of {word} is open", "--json").json()["id"] for word in (one, other)]

    assert mem.run("condense", "--condenser", condensing(text, ids)).code == 3
    assert readable_anywhere(mem, wrong) == []
    assert mem.run("condense", "--condenser", condensing(f"the gates of {one} and {other} are open", ids)).code == 0
    assert recalled(mem, one) == [f"the gates of {one} and {other} are open"]
    assert mem.run("add", text).code == 3


def scoped(pairs: list[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield each pair with a scope of its own, so that no pair meets the tombstones of another."""
    for number, (first, second) in enumerate(pairs):
        yield f"pair-{number}", first, second


def refused_for(result: Result) -> bool:
    """Return whether a value was refused because of a tombstone, and for no other reason."""
    return result.code == 3 and result.error == "tombstoned"


def typeable(text: str) -> str:
    """Return a text with a space for each control character; with them it is refused whatever it says."""
    return "".join(" " if category(char) == "Cc" and char not in "\t\r\n" else char for char in text)


@pytest.mark.shows("tombstone.key_normalization_attack")
def test_no_other_way_to_write_a_rejected_value_gets_in(mem):
    passed = []
    for scope, value, variant in scoped(STOPPED):
        mem.ok("tombstone", "--value", value, *BECAUSE, scope=scope)
        if not refused_for(offered(mem, typeable(variant), scope=scope)):
            passed.append((value, variant))
        if typeable(variant) != variant:
            assert offered(mem, variant, scope=scope).code == 2

    assert len(STOPPED) > 90
    assert passed == []
    assert refused_for(mem.run("add", STOPPED[0][1], "--json", scope="pair-0", process=True))
    assert mem.ok("stats", "--json", scope="pair-0").json()["states"] == {}


@pytest.mark.shows("tombstone.key_normalization_attack")
def test_no_other_way_to_write_the_value_of_a_rejected_slot_gets_in(mem):
    slot = ("--subject", "anna", "--attribute", "note")
    passed = []
    for scope, value, variant in scoped(STOPPED[::4]):
        fact = mem.ok("add", "a note of anna", *slot, f"--value={value}", "--json", scope=scope).json()["id"]
        mem.ok("tombstone", fact, *BECAUSE, scope=scope)
        if not refused_for(offered(mem, "said in other words", *slot, f"--value={variant}", scope=scope)):
            passed.append((value, variant))

    assert passed == []
    assert mem.run("add", "said in other words", *slot, "--value", "something else", scope="pair-0").code == 0


@pytest.mark.shows("tombstone.key_normalization_attack")
@pytest.mark.parametrize("turned", [False, True], ids=["first rejected", "second rejected"])
def test_no_tombstone_stops_a_value_that_only_looks_near(mem, turned):
    pairs = [(second, first) for first, second in DISTINCT] if turned else DISTINCT
    blocked, let_through = [], []
    for scope, value, other in scoped(pairs):
        stone = mem.run("tombstone", f"--value={value}", *BECAUSE, scope=scope)
        assert stone.code == 0, (value, stone.err)
        if offered(mem, other, scope=scope).code != 0:
            blocked.append((value, other))
        if not refused_for(offered(mem, value, scope=scope)):
            let_through.append(value)

    assert len(DISTINCT) > 100
    assert blocked == []
    assert let_through == []


@pytest.mark.shows("tombstone.key_normalization_attack")
def test_a_paraphrase_is_stored_and_recalled_and_shown_as_a_near_miss_before(mem):
    mem.ok("add", "Anna lives in Lisbon")
    mem.ok("add", "Lisbon is where Anna lives")

    plan = mem.ok("tombstone", "--value", "anna LIVES in lisbon", "--dry-run", "--json").json()
    assert [fact["text"] for fact in plan["hits"]] == ["Anna lives in Lisbon"]
    assert "Lisbon is where Anna lives" in [near["text"] for near in plan["near"]]
    mem.ok("tombstone", "--value", "anna LIVES in lisbon", *BECAUSE)
    assert recalled(mem, "lisbon") == ["Lisbon is where Anna lives"]


@pytest.mark.shows("tombstone.reextraction_stays_inactive")
@pytest.mark.parametrize("again", ["the same file", "another name", *TRANSCRIPTS])
def test_reading_the_same_transcript_again_brings_no_rejected_fact_back(mem, again):
    wrong, kept = token(), token()
    said = [f"FACT: the pass of the depot is {wrong}", f"Remember that the pass of the tower is {kept}."]
    path = openai(mem.folder / "talk.json", said)
    mem.ok("import", path)
    mem.ok("extract")
    mem.ok("tombstone", find(mem, wrong), *BECAUSE)

    for _ in range(2):
        write = TRANSCRIPTS.get(again, openai)
        mem.ok("import", path if again == "the same file" else write(mem.folder / "again", said))
        assert extract(mem)[f"the pass of the depot is {wrong}"] == "tombstoned"
    assert readable_anywhere(mem, wrong) == []
    assert readable_anywhere(mem, kept) == EVERYWHERE
    assert recalled(mem, "pass") == [f"the pass of the tower is {kept}"]


@pytest.mark.shows("tombstone.reextraction_stays_inactive")
def test_a_transcript_that_has_grown_is_read_on_and_what_was_rejected_stays_out(mem):
    wrong, later = token(), token()
    said = [f"FACT: the pass of the depot is {wrong}"]
    mem.ok("import", claude_code(mem.folder / "talk.jsonl", said))
    mem.ok("extract")
    mem.ok("tombstone", find(mem, wrong), *BECAUSE)

    mem.ok("import", claude_code(mem.folder / "talk.jsonl", [*said, f"FACT: the pass is now {later}"]))
    assert extract(mem) == {f"the pass of the depot is {wrong}": "tombstoned", f"the pass is now {later}": "new"}
    assert readable_anywhere(mem, wrong) == []
    assert readable_anywhere(mem, later) == EVERYWHERE


@pytest.mark.shows("tombstone.no_second_memory_unit")
def test_a_refused_write_makes_no_fact_of_any_state_and_counts_a_hit(mem):
    wrong = token()
    fact = mem.ok("add", f"the pass of the depot is {wrong}", "--json").json()["id"]
    mem.ok("add", "the depot stands by the river")
    mem.ok("tombstone", fact, *BECAUSE)
    before = mem.ok("stats", "--json").json()

    for spelt in (wrong, wrong.upper(), f"{wrong}."):
        assert mem.run("add", f"the pass of the depot is {spelt}").code == 3
    after = mem.ok("stats", "--json").json()
    for counted in ("states", "sources", "messages", "tombstones", "waiting", "tokens"):
        assert after[counted] == before[counted], counted
    assert [text for text in texts(mem, "--all-states") if wrong in text] == [f"the pass of the depot is {wrong}"]
    assert after["events"] == before["events"] + 3
    assert refusals(mem) == ["t1"] * 3
    assert recalled(mem, "depot") == ["the depot stands by the river"]
    assert mem.ok("lift", "t1", "--reason", "a test", "--json").json()["hits"] == 3


@pytest.mark.shows("tombstone.no_second_memory_unit")
def test_what_hangs_on_a_rejected_fact_is_withheld_with_it_and_nothing_else(mem):
    wrong, kept = token(), token()
    fact, other = (mem.ok("add", f"the pass is {word}", "--json").json()["id"] for word in (wrong, kept))
    for parent, word in ((fact, wrong), (other, kept)):
        mem.ok("add", f"who enters says {word}", "--derived-from", parent)

    mem.ok("tombstone", fact, *BECAUSE)
    assert recalled(mem, wrong) == []
    assert sorted(recalled(mem, kept)) == [f"the pass is {kept}", f"who enters says {kept}"]
    assert {event["op"] for event in events(mem)} >= {"tombstone", "reject", "cascade"}
    assert mem.run("add", f"who enters says {wrong} too", "--derived-from", fact).code == 3
