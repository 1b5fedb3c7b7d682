"""The key sets of every JSON document that a command prints. A change here is a change entry."""

import json
from typing import Any

import pytest

from tests.cli.driver import Mem

ACTOR = {"name", "kind", "channel"}
PROVENANCE = {"source", "message", "index", "role", "quote", "verified"}
FACT = {
    "id", "scope", "kind", "subject", "attribute", "value", "text", "state", "readable", "version", "confidence",
    "importance", "authority", "owner", "visibility", "valid_from", "valid_to", "recorded_at", "retired_at", "actor",
    "provenance", "derived_from", "tokens", "encoding",
}  # fmt: skip
EVENT = {
    "seq", "id", "at", "actor", "op", "target", "scope", "from_state", "to_state", "reason", "before", "after",
    "previous", "hash",
}  # fmt: skip
MESSAGE = {
    "id", "source", "index", "role", "name", "content", "at", "at_text", "origin", "parent", "tool_calls",
    "tool_call_id", "thinking", "attachments", "extra", "erased_at",
}  # fmt: skip
SOURCE = {
    "id", "scope", "kind", "format", "path", "session", "title", "digest", "imported_at", "messages", "erased_at",
}  # fmt: skip
EXCERPT = PROVENANCE | {"path", "at", "content", "before", "after"}
RELATIVE = {"id", "how", "state", "text"}
SIMILAR = {"id", "text", "score", "state"}
TOMBSTONE = {
    "id", "scope", "match", "pattern", "normaliser", "fact", "reason", "actor", "at", "lifted_at", "hits",
}  # fmt: skip
PROPOSAL = {"id", "fact", "version", "op", "arguments", "reason", "actor", "at"}
STATS = {
    "path", "schema", "admission", "scope", "states", "scopes", "sources", "messages", "tombstones", "events",
    "waiting", "tokens", "tokens_unknown", "encoding", "file_bytes", "wal_bytes", "free_bytes", "scrub_pending",
}  # fmt: skip
REPORT = {
    "path", "format", "tried", "conversations", "messages", "roles", "tool_calls", "facts", "tombstones", "undated",
    "new", "same", "refused", "conflicting", "mapped", "warnings", "error",
}  # fmt: skip
PLAN = {"scope", "match", "pattern", "values", "slots", "hits", "falls", "near"}
ERASE_PLAN = {"facts", "messages", "sources", "reviewed", "falls"}
OFFERED = {"outcome", "text", "rule", "message", "quote", "fact", "refused"}
WHY = ("--reason", "tidying up")
CHAT = [
    {"role": "user", "content": "Hello. I live in Lisbon."},
    {"role": "assistant", "content": "Noted."},
    {"role": "user", "content": "Remember that tea is hot."},
]


def is_fact(document: Any) -> None:
    assert set(document) == FACT
    assert set(document["actor"]) == ACTOR
    assert all(set(item) == PROVENANCE for item in document["provenance"])


def are_facts(documents: Any, count: int) -> None:
    assert len(documents) == count
    for document in documents:
        is_fact(document)


@pytest.fixture
def filled(mem: Mem) -> Mem:
    """f1 and f2 are extracted, f3 is derived from f2."""
    (mem.home / "chat.json").write_text(json.dumps(CHAT))
    assert mem.run("import", "chat.json").code == 0
    assert mem.run("extract").code == 0
    assert mem.run("add", "Kettles are useful", "--derived-from", "f2").code == 0
    return mem


@pytest.mark.parametrize(
    "words",
    [
        ("show",),
        ("show", "--state", "disputed"),
        ("recall", "tea"),
        ("check",),
        ("policy", "show"),
        ("import", "--list"),
        ("log", "--op", "lift"),
        ("review", "list"),
    ],
    ids=" ".join,
)
def test_a_listing_of_nothing_is_an_empty_list(mem: Mem, words: tuple[str, ...]) -> None:
    assert mem.ok(*words) == []
    assert mem.run(*words, "--jsonl").text == "" or words[0] == "check"


def test_a_new_file(bare: Mem) -> None:
    assert set(bare.ok("init", "--scope", "user/anna")) == {"path", "admission", "scope", "encoding"}


def test_facts(filled: Mem) -> None:
    are_facts(filled.ok("show"), 3)
    are_facts(filled.ok("show", "--all-states", "--all-scopes"), 3)
    are_facts(filled.ok("show", "f1", "f2"), 2)
    is_fact(filled.ok("show", "f1"))
    is_fact(filled.ok("add", "Milk is cold"))
    is_fact(filled.ok("correct", "f1", "I live in Porto", *WHY))
    is_fact(filled.ok("dispute", "f2", *WHY))
    is_fact(filled.ok("retract", "f1", *WHY))
    is_fact(filled.ok("undo", *WHY))
    is_fact(filled.ok("tombstone", "f4", *WHY))


def test_lines_are_the_elements_of_the_list(filled: Mem) -> None:
    for words in (("show",), ("log",), ("recall", "tea"), ("import", "--list"), ("scope", "list"), ("check",)):
        lines = filled.run(*words, "--jsonl")

        assert lines.err == ""
        assert [json.loads(line) for line in lines.out.splitlines()] == filled.ok(*words)


def test_recall(filled: Mem) -> None:
    found = filled.ok("recall", "tea")

    assert [set(item) for item in found] == [FACT | {"score", "parts"}]
    assert set(found[0]["parts"]) == {"relevance", "recency", "importance"}
    assert filled.ok("recall", "tea", "--explain") == found


def test_context(filled: Mem) -> None:
    whole, cut = filled.ok("context"), filled.ok("context", "--budget", "0")

    assert set(whole) == set(cut) == {"text", "tokens", "encoding", "facts", "dropped"}
    are_facts(whole["facts"], 3)
    assert [set(item) for item in cut["dropped"]] == [{"id", "reason"}] * 3


def test_why(filled: Mem) -> None:
    filled("correct", "f2", "Tea is warm", *WHY)
    document = filled.ok("why", "f2")

    assert set(document) == {"fact", "versions", "provenance", "derived_from", "derived", "events"}
    is_fact(document["fact"])
    are_facts(document["versions"], 2)
    assert all(set(item) == EXCERPT for item in document["provenance"])
    assert [set(item) for item in document["derived"]] == [RELATIVE]
    assert [set(item) for item in filled.ok("why", "f3")["derived_from"]] == [RELATIVE]
    assert all(set(item) == EVENT for item in document["events"])
    excerpt = filled.ok("why", "f1")["provenance"][0]
    assert excerpt["before"] is None
    assert set(excerpt["after"]) == MESSAGE


def test_the_log(filled: Mem) -> None:
    log = filled.ok("log")

    assert all(set(event) == EVENT and set(event["actor"]) == ACTOR for event in log)
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    assert set(filled.ok("log", "verify")) == {"events", "head", "findings"}
    assert filled.ok("log", "head") == {"events": len(log), "head": log[-1]["hash"]}


def test_a_broken_log_is_an_answer_and_an_error(filled: Mem) -> None:
    ran = filled.run("log", "verify", "--head", "blake2b:00", "--json")

    assert (ran.code, ran.complaint["error"]) == (13, "damaged")
    assert [set(item) for item in ran.document["findings"]] == [{"code", "place", "message"}]


def test_the_file(filled: Mem) -> None:
    assert set(filled.ok("stats")) == STATS
    assert set(filled.ok("migrate")) == {"applied", "backup"}
    assert set(filled.ok("rebuild")) == {"current", "words", "grams", "token_counts"}
    assert [set(item) for item in filled.ok("scope", "list")] == [
        {"name", "facts", "readable", "sources", "tombstones"}
    ]
    residue = filled.run("check", "--residue", "lisbon", "--json")
    assert residue.code == 1
    assert {frozenset(item) for item in residue.document} == {frozenset({"code", "place", "message"})}
    orphans = filled.run("check", "--orphans", "--output-format", "json")
    assert (orphans.code, orphans.document) == (0, [])


def test_what_is_brought_in(filled: Mem) -> None:
    for words in (("import", "chat.json"), ("import", "chat.json", "--dry-run")):
        document = filled.ok(*words)

        assert set(document) == {"files", "sources"}
        assert [set(report) for report in document["files"]] == [REPORT]
        assert [set(item) for item in document["sources"]] == [{"source", "new", "same", "session", "title"}]
    assert {frozenset(item) for item in filled.ok("import", "--list")} == {frozenset(SOURCE)}
    (filled.home / "cut.jsonl").write_text('{"role": "user", "content": "tea"}\n{"role": "us')
    warned = filled.ok("import", "cut.jsonl")["files"][0]["warnings"]
    assert [set(item) for item in warned] == [{"line", "message"}]


def test_what_is_extracted(filled: Mem) -> None:
    again, planned = filled.ok("extract", "--all"), filled.ok("extract", "--all", "--dry-run")

    for document in (again, planned):
        assert set(document) == {"messages", "claims", "counts", "facts"}
        assert [set(item) for item in document["facts"]] == [OFFERED] * 2
    are_facts([item["fact"] for item in again["facts"]], 2)
    assert [item["fact"] for item in planned["facts"]] == [None, None]
    assert all(isinstance(text, str) for text in filled.ok("extract", "--rules").values())


def test_an_extracted_fact_is_the_fact_that_is_shown(mem: Mem) -> None:
    (mem.home / "chat.json").write_text(json.dumps(CHAT))
    mem("import", "chat.json")

    made = [item["fact"] for item in mem.ok("extract")["facts"]]

    assert made == [mem.ok("show", fact["id"]) for fact in made]


def test_tombstones(filled: Mem) -> None:
    plan = filled.ok("tombstone", "f2", "--dry-run")
    assert set(plan) == PLAN
    are_facts(plan["hits"], 1)
    are_facts(plan["falls"], 1)
    assert all(set(item) == SIMILAR for item in plan["near"])
    assert set(filled.ok("tombstone", "--value", "milk is cold", *WHY)) == TOMBSTONE
    assert set(filled.ok("tombstone", "--contains", "password", *WHY)) == TOMBSTONE
    assert set(filled.ok("tombstone", "f1", "f2", *WHY)) == TOMBSTONE
    assert set(filled.ok("lift", "t1", *WHY)) == TOMBSTONE


def test_erasing(filled: Mem) -> None:
    plan = filled.ok("erase", "f2", "--dry-run")
    assert set(plan) == ERASE_PLAN
    are_facts(plan["facts"], 1)
    are_facts(plan["falls"], 1)
    done = filled.ok("erase", "f2", *WHY)
    assert set(done) == {"facts", "messages", "sources", "reviewed"}
    assert all(isinstance(name, str) for names in done.values() for name in names)


@pytest.mark.parametrize(
    "words",
    [
        ("correct", "f1", "Tea is warm"),
        ("retract", "f1"),
        ("tombstone", "f1"),
        ("tombstone", "--value", "tea"),
        ("erase", "f1"),
        ("undo", "e2"),
        ("dispute", "f1"),
    ],
    ids=" ".join,
)
def test_a_proposal(reviewed: Mem, words: tuple[str, ...]) -> None:
    reviewed("add", "Tea is HOT")

    ran = reviewed.run(*words, *WHY, "--json")

    assert (ran.code, ran.complaint["error"]) == (6, "held")
    assert set(ran.document) == PROPOSAL
    assert set(ran.document["actor"]) == ACTOR


def test_the_manual(mem: Mem) -> None:
    assert mem.ok("help") == ["exit-codes", "environment", "json"]
    for page in mem.ok("help"):
        assert all(isinstance(text, str) for text in mem.ok("help", page).values())
    assert mem.ok("glossary")["fact"]


def test_what_json_prints_is_ascii_and_escapes_what_moves_a_cursor(mem: Mem) -> None:
    chat = [{"role": "user", "content": "\u001b[2J\u202e東京\u0000 is \ud800 big"}]
    mem.run("import", "-", stdin=json.dumps(chat).encode())
    mem("add", "東京 is \u202ebig", "--evidence", "s1#0")

    shown = mem.run("why", "f1", "--json")

    assert shown.out.isascii()
    assert shown.out.removesuffix("\n").isprintable()
    assert shown.document["fact"]["text"] == "東京 is \u202ebig"
    assert shown.document["provenance"][0]["content"] == chat[0]["content"]
