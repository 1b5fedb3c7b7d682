"""`mem import`: every shipped file, folders and archives, stores as facts, plans, and what was not taken."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.cli.driver import Mem

FIXTURES = Path(__file__).parents[2] / "fixtures"
COUNTED = [
    row
    for row in json.loads((FIXTURES / "EXPECTED_COUNTS.json").read_text(encoding="utf-8"))
    if row["messages"] and not row["file"].startswith(("openai_messages/lf02",))
]
STORES = {
    "mcp_memory/mm01_standard.jsonl": ("mcp", 60),
    "mem0/me01_history.db": ("mem0", 3),
    "llamaindex/li07_fact_block_model_dump.json": ("llamaindex-facts", 2),
    "synthetic/sy03_hermes_MEMORY.md": ("hermes", 4),
    "synthetic/sy05_basic_memory_note.md": ("basic-memory", 6),
}
ELSEWHERE = {
    "aider/ai01_head.md": 24,
    "gemini/gm07_cancelled_tool.json": 2,
    "letta/lt01_memgpt_convo.af": 1,
}
"""Where the number of messages differs from the list, the tests of the reader say why."""


def only(document: Any) -> Any:
    (report,) = document["files"]
    return report


@pytest.mark.parametrize("row", COUNTED, ids=lambda row: row["file"])
def test_every_shipped_transcript_is_kept_with_the_messages_it_has(mem: Mem, row: dict[str, Any]) -> None:
    path = FIXTURES / row["file"]
    before = path.read_bytes()

    report = only(mem.ok("import", str(path)))

    kept = {source["source"]: source["new"] for source in mem.ok("import", str(path))["sources"]}
    assert report["error"] is None
    assert report["messages"] == ELSEWHERE.get(row["file"], row["messages"])
    assert sum(report["roles"].values()) == report["messages"]
    assert set(kept.values()) == {0}
    assert path.read_bytes() == before
    assert mem.ok("check") == []


@pytest.mark.parametrize("name", STORES)
def test_a_memory_store_becomes_facts_with_their_records_as_evidence(mem: Mem, name: str) -> None:
    form, count = STORES[name]

    report = only(mem.ok("import", str(FIXTURES / name)))
    facts = mem.ok("show", "--all-states")

    assert (report["format"], report["facts"]) == (form, count)
    assert report["new"] + report["same"] + report["refused"] + report["conflicting"] == count
    assert len(facts) == report["new"] + report["conflicting"]
    assert all(place["verified"] and place["message"] for fact in facts for place in fact["provenance"])
    assert mem.ok("check") == []


def test_a_store_waits_for_review_where_only_people_decide(reviewed: Mem) -> None:
    reviewed.ok("import", str(FIXTURES / "mcp_memory/mm01_standard.jsonl"))

    assert reviewed.ok("show") == []
    assert {fact["state"] for fact in reviewed.ok("show", "--all-states")} == {"tentative"}
    assert len(reviewed.ok("review", "list")) > 0


def test_a_store_is_refused_where_facts_enter_through_transactions(checked: Mem) -> None:
    ran = checked.run("import", str(FIXTURES / "mcp_memory/mm01_standard.jsonl"), "--json")

    assert (ran.code, ran.complaint["error"]) == (3, "not-permitted")
    assert checked.ok("import", "--list") == []


def test_a_history_becomes_versions_and_what_was_deleted_is_withdrawn(mem: Mem) -> None:
    report = only(mem.ok("import", str(FIXTURES / "mem0/me01_history.db")))
    facts = mem.ok("show", "--all-states")

    assert report["mapped"]
    assert any(fact["version"] > 1 for fact in facts) or any(fact["state"] == "revoked" for fact in facts)


def test_a_plan_is_what_would_happen_and_changes_nothing(mem: Mem) -> None:
    mem.ok("add", "tea is hot")
    fact = mem.ok("add", "Anna lives in Lisbon")["id"]
    mem.ok("tombstone", fact, "--reason", "wrong")
    store = mem.home / "memory.json"
    said = ("Anna lives in Lisbon", "tea is hot", "Anna works in Porto")
    store.write_text(json.dumps({"results": [{"id": str(n), "memory": text} for n, text in enumerate(said)]}))
    (mem.home / "notes.bin").write_bytes(bytes(range(256)) * 4)

    ran = mem.run("import", "memory.json", "notes.bin", "--dry-run", "--json")
    plan, unread = json.loads(ran.out)["files"]
    real = only(mem.ok("import", "memory.json"))

    assert ran.code == 5
    assert (plan["new"], plan["same"], plan["refused"]) == (1, 1, 1)
    assert plan == real
    assert unread["error"]
    assert [fact["text"] for fact in mem.ok("show")] == ["Anna works in Porto", "tea is hot"]


def test_importing_twice_changes_nothing(mem: Mem) -> None:
    path = str(FIXTURES / "mcp_memory/mm01_standard.jsonl")
    mem.ok("import", path)
    before = mem.ok("show", "--all-states")

    again = only(mem.ok("import", path))

    assert (again["new"], again["same"]) == (0, again["facts"])
    assert mem.ok("show", "--all-states") == before


def test_a_folder_is_read_file_by_file_and_says_what_was_not_understood(mem: Mem) -> None:
    folder = mem.home / "exports"
    (folder / "deep").mkdir(parents=True)
    chat = json.dumps([{"role": "user", "content": "I live in Lisbon"}])
    (folder / "a.json").write_text(chat)
    (folder / "deep" / "b.json").write_text(chat.replace("Lisbon", "Porto"))
    (folder / "c.bin").write_bytes(bytes(range(256)) * 4)

    ran = mem.run("import", "exports", "--json")
    files = json.loads(ran.out)["files"]

    assert ran.code == 5
    assert [(item["path"], item["error"] is None) for item in files] == [
        ("exports/a.json", True),
        ("exports/c.bin", False),
        ("exports/deep/b.json", True),
    ]
    assert len(mem.ok("import", "--list")) == 2


def test_a_folder_that_holds_the_memory_file_is_read_without_it(mem: Mem) -> None:
    (mem.home / "chat.json").write_text(json.dumps([{"role": "user", "content": "I live in Lisbon"}]))

    files = mem.ok("import", ".")["files"]
    named = mem.run("import", "memory.db", "--json")

    assert [item["path"] for item in files] == ["chat.json"]
    assert (named.code, named.complaint["error"]) == (5, "unreadable")


def test_an_archive_is_one_report_that_names_what_was_left_out(mem: Mem) -> None:
    with zipfile.ZipFile(mem.home / "x.zip", "w") as packed:
        packed.writestr("chat.json", json.dumps([{"role": "user", "content": "I live in Lisbon"}]))
        packed.writestr("user.json", json.dumps({"id": "1", "email": "a@example.com"}))

    report = only(mem.ok("import", "x.zip"))

    assert (report["conversations"], report["messages"]) == (1, 1)
    assert [warned["message"].partition(":")[0] for warned in report["warnings"]] == ["user.json"]


@pytest.mark.parametrize("name", ["gzip", "zip"])
def test_a_bomb_is_refused_with_a_sentence_and_the_file_stays_as_it_is(mem: Mem, name: str) -> None:
    path = mem.home / "bomb"
    if name == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("../climbs.json", "[]")
    else:
        path.write_bytes(b"\x1f\x8b" + b"\0" * 50)
    before = mem.db.read_bytes()

    ran = mem.run("import", "bomb", "--json")

    assert (ran.code, ran.complaint["error"]) == (5, "unreadable")
    assert mem.db.read_bytes() == before


def test_an_unknown_time_is_counted_and_never_invented(mem: Mem) -> None:
    chat = [
        {"role": "user", "content": "I live in Lisbon", "timestamp": "2026-03-01T10:00:00Z"},
        {"role": "user", "content": "I like tea", "timestamp": "1 March, at ten"},
        {"role": "user", "content": "I work in Porto"},
    ]
    (mem.home / "chat.json").write_text(json.dumps(chat))

    assert only(mem.ok("import", "chat.json"))["undated"] == 2


def test_a_tombstone_that_comes_in_with_a_file_is_counted_and_holds(mem: Mem) -> None:
    issue = {"id": "bd-1", "title": "Anna lives in Lisbon", "status": "tombstone", "issue_type": "task"}
    issue |= {"deleted_at": "2026-03-01T10:00:00Z", "deleted_by": "anna", "delete_reason": "asked for"}
    other = {"id": "bd-2", "title": "Water the plants", "status": "open", "issue_type": "task"}
    (mem.home / "issues.jsonl").write_text("\n".join(json.dumps(item) for item in (issue, other)))

    report = only(mem.ok("import", "issues.jsonl"))
    ran = mem.run("add", "anna lives in lisbon", "--json")

    assert (report["tombstones"], report["facts"]) == (1, 1)
    assert (ran.code, ran.complaint["error"]) == (3, "tombstoned")
    assert mem.run("add", "Anna lives in Porto").code == 0
