"""What goes into a prompt: never more than was asked for."""

import pytest

from memcli import tokens
from tests.acceptance.driver import Mem
from tests.acceptance.material import openai
from tests.acceptance.questions import extract, recalled

LONG = "the depot of the north gate by the river, which the guards of the tower watch on every second night of the week"
MANY = 40


@pytest.fixture(scope="module")
def crowded(new_mem) -> Mem:
    """Return a memory with many long facts that all match, believed because of one transcript."""
    mem: Mem = new_mem()
    said = "\n".join(f"FACT: {LONG}, number {number}" for number in range(MANY))
    mem.ok("import", openai(mem.folder / "talk.json", [said]))
    assert set(extract(mem).values()) == {"new"}
    return mem


def measured(block: str, encoding: str = "o200k_base") -> int:
    """Return the tokens of a block as it is, counted apart from what `context` says of itself."""
    return tokens.counter(encoding)(block)


@pytest.mark.shows("retrieval.k_is_an_upper_bound")
@pytest.mark.parametrize("k", [1, 2, 7, MANY - 1, MANY])
def test_of_many_long_matches_exactly_k_come_back(crowded, k):
    assert len(recalled(crowded, "depot")) == 10
    assert len(crowded.ok("recall", "depot tower", "-k", str(k), "--json").json()) == k
    for query in ((), ("depot",)):
        block = crowded.ok("context", *query, "-k", str(k), "--json").json()
        assert len(block["facts"]) == k
        assert block["text"].count(LONG) == k


@pytest.mark.shows("retrieval.k_is_an_upper_bound")
def test_k_is_no_lower_bound_and_less_than_one_is_no_number_of_facts(crowded):
    assert len(crowded.ok("recall", "depot", "-k", "1000", "--json").json()) == MANY
    for wrong in ("0", "-1", "some"):
        assert crowded.run("recall", "depot", "-k", wrong).code == 2
        assert crowded.run("context", "-k", wrong).code == 2


@pytest.mark.shows("retrieval.k_is_an_upper_bound")
@pytest.mark.parametrize("budget", [80, 120, 500, 900])
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_the_block_as_it_is_assembled_stays_within_the_budget(crowded, budget, encoding):
    words = ("context", "depot", "-k", "30", "--budget", str(budget), "--encoding", encoding)
    told = crowded.ok(*words, "--json").json()

    printed = crowded.ok(*words, process=True).out
    assert measured(told["text"], encoding) == told["tokens"] <= budget
    assert measured(printed.rstrip("\n"), encoding) <= budget
    assert printed.rstrip("\n") == told["text"]
    assert told["facts"]
    assert len(told["facts"]) + len([item for item in told["dropped"] if item["reason"] == "over budget"]) == 30


@pytest.mark.shows("retrieval.k_is_an_upper_bound")
def test_a_budget_with_room_for_nothing_gives_nothing_and_says_what_was_dropped(crowded):
    for budget in (0, 1, 20):
        told = crowded.ok("context", "depot", "-k", "3", "--budget", str(budget), "--json").json()
        assert (told["text"], told["tokens"], told["facts"]) == ("", 0, [])
        assert {"over budget", "beyond k"} == {item["reason"] for item in told["dropped"]}
    assert crowded.run("context", "--budget", "-1").code == 2
    assert crowded.ok("context", "--budget", "5000", "--json").json()["facts"]


@pytest.mark.shows("retrieval.k_is_an_upper_bound")
def test_a_short_fact_comes_in_where_a_long_one_did_not_fit(mem):
    mem.ok("add", "the depot is open")
    mem.ok("add", f"the depot: {LONG * 20}", "--pin")

    told = mem.ok("context", "depot", "--budget", "100", "--json").json()
    assert [fact["text"] for fact in told["facts"]] == ["the depot is open"]
    assert [item["reason"] for item in told["dropped"]] == ["over budget"]
