"""Evidence before belief: what is in a prompt leads back to a message, and falls with it."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.driver import Mem
from tests.acceptance.material import EXPORTS, FIXTURES, claude_code, openai, token
from tests.acceptance.questions import (
    EVERYWHERE,
    block,
    events,
    extract,
    facts,
    find,
    readable_anywhere,
    recalled,
    texts,
)

TALKS = [
    *sorted((FIXTURES / "openai_messages").glob("*.json")),
    *sorted((FIXTURES / "claude_code").glob("*.jsonl")),
]


@pytest.mark.shows("evidence.claim_resolves_to_source")
def test_every_fact_of_a_block_leads_to_a_message_that_holds_its_quote(mem):
    talk = claude_code(mem.folder / "talk.jsonl", ["Remember that the north gate opens at nine."])
    mem.ok("import", talk, *map(str, TALKS))
    mem.ok("extract")
    mem.ok("add", "the south gate opens at ten")

    shown = mem.ok("context", "--json").json()
    assert len(shown["facts"]) >= 5
    named = re.findall(r"^- \[([0-9a-f]{8})", shown["text"], re.MULTILINE)
    assert named == [fact["id"][:8] for fact in shown["facts"]]
    for fact in named:
        excerpts = mem.ok("why", fact, "--json").json()["provenance"]
        assert excerpts, fact
        assert all(item["verified"] and item["quote"].strip() in item["content"] for item in excerpts)


@pytest.mark.shows("evidence.claim_resolves_to_source")
def test_a_fact_from_a_real_transcript_leads_to_the_sentence_it_was_read_in(mem):
    mem.ok("import", str(FIXTURES / "openai_messages" / "longmemeval_personal_best.json"))
    mem.ok("extract")

    fact = find(mem, "27:12")
    (excerpt,) = mem.ok("why", fact, "--json").json()["provenance"]
    assert "personal best time in a charity 5K run with a time of 27:12" in excerpt["content"]
    assert excerpt["role"] == "user"
    assert excerpt["before"]["index"] + 1 == excerpt["index"] == excerpt["after"]["index"] - 1


@pytest.mark.shows("evidence.claim_resolves_to_source")
def test_a_quote_that_is_not_in_its_message_makes_no_belief(mem):
    mem.ok("import", openai(mem.folder / "talk.json", ["the north gate opens at nine"]))

    said = mem.ok("add", "the gate is green", "--evidence", "s1#0", "--quote", "the gate is green", "--json").json()
    assert (said["state"], said["provenance"][0]["verified"]) == ("tentative", False)
    assert "green" not in block(mem)
    kept = mem.ok("add", "the gate opens at nine", "--evidence", "s1#0", "--quote", "opens at nine", "--json").json()
    assert kept["readable"]
    assert "the gate opens at nine" in block(mem)


class Erased:
    """A memory of two sources, one of them erased: `gone` stood in that one, `kept` in the other, `both` in both."""

    def __init__(self, mem: Mem) -> None:
        self.mem = mem
        self.gone, self.kept, self.both = token(), token(), token()
        first = [f"FACT: the pass of the depot is {self.gone}", f"FACT: the pass of the yard is {self.both}"]
        second = [
            f"FACT: the pass of the tower is {self.kept}",
            f"In short.\nFACT: the pass of the yard is {self.both}",
        ]
        mem.ok("import", openai(mem.folder / "first.json", first), claude_code(mem.folder / "second.jsonl", second))
        mem.ok("extract")
        self.fact = find(mem, self.gone)
        for kind in ("summary", "belief"):
            mem.ok("add", f"{kind} of depots: {self.gone}", "--derived-from", self.fact, "--kind", kind)
        self.before = readable_anywhere(mem, self.gone)
        self.stats = mem.ok("stats", "--json").json()
        self.plan = mem.ok("erase", "--source", "s1", "--dry-run", "--json").json()
        self.done = mem.ok("erase", "--source", "s1", "--reason", "asked to", "--yes", "--json").json()


@pytest.fixture
def erased(mem: Mem) -> Erased:
    return Erased(mem)


@pytest.mark.shows("evidence.source_delete_reaches_derived")
def test_an_erased_source_takes_the_facts_that_stood_on_it_alone(erased):
    assert erased.before == EVERYWHERE
    assert readable_anywhere(erased.mem, erased.gone) == []
    assert not [text for text in texts(erased.mem, "--all-states") if text and erased.gone in text]
    assert readable_anywhere(erased.mem, erased.kept) == EVERYWHERE


@pytest.mark.shows("evidence.source_delete_reaches_derived")
def test_an_erased_source_takes_summaries_and_inferences(erased):
    left = " ".join(texts(erased.mem, "--all-states"))

    assert "of depots" not in left
    assert erased.kept in left
    assert recalled(erased.mem, "depots") == []
    assert recalled(erased.mem, "tower") == [f"the pass of the tower is {erased.kept}"]


@pytest.mark.shows("evidence.source_delete_reaches_derived")
def test_an_erased_source_leaves_a_fact_that_another_source_holds_and_queues_it(erased):
    fact = find(erased.mem, erased.both)

    assert erased.done["reviewed"] == [fact]
    assert readable_anywhere(erased.mem, erased.both) == EVERYWHERE
    excerpts = erased.mem.ok("why", fact, "--json").json()["provenance"]
    assert [item["source"] for item in excerpts if item["content"]] == ["s2"]
    waiting = erased.mem.ok("review", "list", "--json").json()
    assert [(item["fact"]["id"], item["why"]["code"]) for item in waiting] == [(fact, "evidence-erased")]


@pytest.mark.shows("evidence.source_delete_reaches_derived")
def test_an_erased_source_leaves_messages_only_as_markers(erased):
    mem = erased.mem

    listed = {item["id"]: item for item in mem.ok("import", "--list", "--json").json()}
    assert "s2" in listed
    assert mem.run("add", "the depot is open", "--evidence", "s1#0", "--quote", "depot").code == 3
    assert mem.run("add", "the tower is open", "--evidence", "s2#0", "--quote", "tower").code == 0


@pytest.mark.shows("evidence.source_delete_reaches_derived")
def test_an_erased_source_leaves_no_word_in_indexes_token_counts_and_bytes(erased):
    mem = erased.mem

    held = b"".join(path.read_bytes() for path in mem.files)
    assert erased.gone.encode() not in held
    assert erased.kept.encode() in held
    assert mem.run("check", "--residue", erased.gone).code == 0
    assert mem.run("check", "--residue", erased.kept).code == 1
    with closing(sqlite3.connect(mem.path)) as conn:
        counted = conn.execute("select count(*) from token_counts").fetchone()[0]
        words = conn.execute("select count(*) from versions where text is not null").fetchone()[0]
    assert counted == words > 0


@pytest.mark.shows("evidence.source_delete_reaches_derived")
def test_an_erased_source_is_erased_for_what_is_extracted_later(erased):
    mem = erased.mem

    assert {claim for claim in extract(mem) if erased.gone in claim} == set()
    assert erased.kept in " ".join(extract(mem))
    mem.ok("check")


@pytest.mark.shows("evidence.source_delete_reaches_derived")
def test_the_dry_run_of_an_erase_names_what_goes_before_anything_does(erased):
    planned = [fact["id"] for fact in (*erased.plan["facts"], *erased.plan["falls"])]

    assert erased.fact in planned
    assert sorted(planned) == sorted(erased.done["facts"])
    assert erased.plan["messages"] == erased.done["messages"]


@pytest.mark.shows("evidence.source_delete_reaches_derived")
@pytest.mark.parametrize("form", EXPORTS)
def test_an_export_made_after_an_erased_source_is_without_it(erased, form):
    told = erased.mem.ok("export", "--format", form).out

    assert erased.gone not in told
    assert "of depots" not in told
    assert erased.kept in told


@pytest.mark.shows("evidence.source_delete_reaches_derived")
def test_pages_made_after_an_erased_source_are_without_it(erased):
    told = erased.mem.ok("show", "--html", "-").out + erased.mem.ok("log", "--html", "-").out

    assert erased.gone not in told
    assert erased.kept in told


def drop_views(path: Path) -> None:
    """Empty everything that is derived, as a program that knows nothing of mem may do."""
    with closing(sqlite3.connect(path)) as conn, conn:
        for table in ("current", "tallies", "token_counts"):
            conn.execute(f"delete from {table}")
        for table in ("words", "grams"):
            conn.execute(f"insert into {table} ({table}) values ('delete-all')")


@pytest.mark.shows("evidence.rebuild_from_retained")
def test_what_is_kept_is_enough_to_make_everything_derived_again(mem):
    words = [token() for _ in range(5)]
    mem.ok("import", openai(mem.folder / "talk.json", [f"FACT: pass {n} is {word}" for n, word in enumerate(words)]))
    mem.ok("extract")
    mem.ok("retract", find(mem, words[0]), "--reason", "a test")
    mem.ok("add", "a summary of passes", "--derived-from", find(mem, words[1]), "--kind", "summary")
    before = facts(mem, "--all-states"), mem.ok("recall", "pass", "--json").json(), block(mem)

    drop_views(mem.path)
    assert recalled(mem, words[1]) == []
    assert mem.run("check").code == 1
    mem.ok("rebuild", process=True)
    for word in words[1:]:
        assert readable_anywhere(mem, word) == EVERYWHERE
    assert readable_anywhere(mem, words[0]) == []
    assert facts(mem, "--all-states") == before[0]
    assert [item["id"] for item in mem.ok("recall", "pass", "--json").json()] == [item["id"] for item in before[1]]
    assert block(mem) == before[2]
    mem.ok("check")


@pytest.mark.shows("evidence.rebuild_from_retained")
def test_rebuilding_what_is_whole_changes_no_answer_and_no_history(mem):
    word = token()
    mem.ok("add", f"the pass is {word}")
    before = facts(mem), events(mem)

    mem.ok("rebuild")
    assert facts(mem) == before[0]
    assert events(mem)[: len(before[1])] == before[1]
    mem.ok("log", "verify")
