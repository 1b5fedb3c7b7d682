"""The JSON documents that the commands print have the keys that the README lists, no more and no fewer."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memcli.cli import main
from tests.docs.consoles import ROOT, TRANSCRIPTS, run
from tests.docs.test_readme_reference import in_code, section, table

Keys = frozenset[str]


def listed() -> dict[str, Keys]:
    """Return the keys of each document as the README lists them; some begin with those of another."""
    found: dict[str, Keys] = {}
    for name, _, keys in table(section("JSON documents")):
        found[name] = frozenset(in_code(keys))
        for other in ("fact", "provenance", "transaction"):
            if keys.startswith(f"those of a {other}, and "):
                found[name] |= found[other]
    return found


class Shown:
    """Runs commands and notes the keys of the documents they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self.capsys = capsys
        self.folder = folder
        self.keys: dict[str, set[Keys]] = {}

    def note(self, name: str, *documents: Any) -> None:
        self.keys.setdefault(name, set()).update(frozenset(document) for document in documents)

    def run(self, *words: str, code: int = 0) -> Any:
        """Return the document that a command prints."""
        assert main([*words, "--json"]) == code
        out, err = self.capsys.readouterr()
        if code and not out:
            self.note("error", json.loads(err))
            return None
        return json.loads(out)

    def at_terminal(self, command: str) -> Any:
        """Return the document that a command prints to a person."""
        said, code = run(f"{command} --json", self.folder, piped=False)
        assert code == 0, said
        return json.loads(said)


def look(shown: Shown) -> None:
    """Fill a file and look at it in every way."""
    shown.note("file", shown.run("init", "--admission", "direct"))
    imported = shown.run("import", "running.json", "flights.json")
    shown.note("import", imported)
    shown.note("imported file", *imported["files"])
    shown.note("imported source", *imported["sources"])
    Path("odd.jsonl").write_text('{"role": "user", "content": "hello"}\nnot json\n', encoding="utf-8")
    shown.note("warning", *shown.run("import", "odd.jsonl")["files"][0]["warnings"])
    shown.note("source", *shown.run("import", "--list"))
    extracted = shown.run("extract")
    shown.note("extraction", extracted)
    shown.note("offered fact", *extracted["facts"])
    facts = shown.run("show")
    shown.note("fact", *facts)
    shown.note("actor", *(fact["actor"] for fact in facts))
    shown.note("provenance", *(item for fact in facts for item in fact["provenance"]))
    recalled = shown.run("recall", "where does the user live")
    shown.note("recalled fact", *recalled)
    shown.note("parts of a score", *(fact["parts"] for fact in recalled))
    context = shown.run("context", "--budget", "60")
    shown.note("context", context)
    shown.note("dropped fact", *context["dropped"])


def reasons(shown: Shown) -> None:
    """Ask why, look at the log, and at the file."""
    home = by_value(shown, "Princeton")
    child = shown.run("add", "the user may use Newark airport", "--derived-from", home)["id"]
    for document in (shown.run("why", home), shown.run("why", child)):
        shown.note("why", document)
        shown.note("excerpt", *document["provenance"])
        around = [item[side] for item in document["provenance"] for side in ("before", "after") if item[side]]
        shown.note("message", *around)
        shown.note("tool call", *(call for message in around for call in message["tool_calls"]))
        shown.note("relative", *document["derived"], *document["derived_from"])
        shown.note("event", *document["events"])
    shown.note("event", *shown.run("log"))
    shown.note("log verdict", shown.run("log", "verify"))
    shown.note("head", shown.run("log", "head"))
    shown.note("finding", *shown.run("check", "--residue", "Princeton", code=1))
    shown.note("stats", shown.run("stats"))
    shown.note("migration", shown.run("migrate"))
    shown.note("rebuilt", shown.run("rebuild"))
    shown.note("scope", *shown.run("scope", "list"))


def by_value(shown: Shown, value: str) -> str:
    return next(fact["id"] for fact in shown.run("show", "--all-states") if fact["value"] == value)


def change(shown: Shown) -> None:
    """End facts in every way, and meet an error."""
    home, best = by_value(shown, "Princeton"), by_value(shown, "27:12")
    shown.run("add", "the user lives near Princeton")
    planned = shown.run("tombstone", home, "--dry-run")
    shown.note("tombstone plan", planned)
    shown.note("slot", *planned["slots"])
    shown.note("near miss", *planned["near"])
    shown.note("fact", shown.run("tombstone", home, "--reason", "no"))
    shown.note("tombstone", shown.run("tombstone", "--contains", "secret", "--reason", "no"))
    shown.note("tombstone", shown.run("lift", "t2", "--reason", "yes"))
    shown.run("add", "the user lives in Princeton", code=3)
    shown.note("fact", shown.run("correct", best, "the user's personal best time is 26:00", "--reason", "faster"))
    shown.note("fact", shown.run("undo", "--reason", "no, slower"))
    shown.note("erase plan", shown.run("erase", best, "--dry-run"))
    shown.note("erased", shown.run("erase", best, "--reason", "asked for"))


def wait(shown: Shown) -> None:
    """Let something wait for review, in a file that admits nothing directly."""
    shown.run("init", "--db", "careful.db")
    fact = shown.run("add", "the user prefers tea", "--db", "careful.db", "--actor", "agent")["id"]
    shown.note("proposal", shown.run("retract", fact, "--reason", "no", "--db", "careful.db", code=6))
    items = shown.run("review", "list", "--db", "careful.db")
    shown.note("queue item", *items)
    shown.note("reason to wait", *(item["why"] for item in items))
    shown.note("finding", *shown.run("review", "--check", "--db", "careful.db", code=1))
    assert main(["review", "export", "--db", "careful.db", "--output", "decisions.jsonl"]) == 0
    shown.capsys.readouterr()
    lines = Path("decisions.jsonl").read_text(encoding="utf-8").splitlines()
    shown.note("decision line", *map(json.loads, lines))
    shown.note("applied line", *shown.run("review", "apply", "decisions.jsonl", "--db", "careful.db"))


def decide(shown: Shown) -> None:
    """Do what only people may."""
    shown.note("rule", shown.at_terminal("mem policy set source document 0.4"))
    shown.note("rule", *shown.run("policy", "show"))
    shown.note("changed scope", shown.at_terminal("mem scope rename default mine --reason better"))


def budget(shown: Shown) -> None:
    """Replay a conversation, sweep it, compare two settings and follow a message."""
    Path("blocks.toml").write_text(
        '[[blocks]]\nname = "persona"\ntype = "static"\ntext = "be kind"\n', encoding="utf-8"
    )
    Path("a.toml").write_text("token_limit = 6000\n", encoding="utf-8")
    Path("b.toml").write_text('policy = "mem"\ntoken_limit = 9000\n', encoding="utf-8")
    asked = ("flights.json", "--token-limit", "2k", "--blocks", "blocks.toml")
    run = shown.run("budget", "simulate", *asked)
    shown.note("simulation", run)
    shown.note("fate", *run["messages"])
    shown.note("clamp", *run["clamps"])
    shown.note("prompt part", *run["prompt"])
    shown.note("block", *run["blocks"])
    shown.note("budget finding", *run["findings"])
    shown.note("totals", run["totals"])
    shown.note("setting", *shown.run("budget", "sweep", "flights.json"))
    shown.note("depth", *shown.run("budget", "sweep", "flights.json", "--depth", "5"))
    differing = shown.run("budget", "diff", "a.toml", "b.toml", "flights.json")
    shown.note("difference", differing)
    shown.note("shift", *differing["settings"], *differing["totals"], *differing["blocks"])
    shown.note("parted message", *differing["messages"])
    shown.note("fate", *(one[side] for one in differing["messages"] for side in ("left", "right")))
    told = shown.run("budget", "explain", *asked, "--message", "1")
    shown.note("lives", told)
    shown.note("life", *told["lives"])
    shown.note("flush", *(life["flush"] for life in told["lives"]))


def condense(shown: Shown) -> None:
    """Replace many facts by few, and lose one that was named."""
    shown.run("init", "--db", "many.db", "--admission", "direct")
    for text in ("the user prefers tea", "the user also prefers tea", "the user has a cat"):
        shown.run("add", text, "--db", "many.db")
    cat = next(fact["id"] for fact in shown.run("show", "--db", "many.db") if "cat" in fact["text"])
    planned = shown.run("condense", "--dry-run", "--max-facts", "1", "--allow-loss", cat, "--db", "many.db")
    shown.note("condensation", planned)
    shown.note("merger", *planned["merged"])
    shown.note("loss", *planned["lost"])


def take_out(shown: Shown) -> None:
    """Compare two files that differ in every way, and take an export back."""
    shutil.copy("many.db", "before.db")
    tea = next(fact["id"] for fact in shown.run("show", "--db", "many.db") if "also" in fact["text"])
    shown.run("correct", tea, "the user prefers coffee", "--reason", "asked", "--db", "many.db")
    shown.run("tombstone", "--value", "the user prefers milk", "--reason", "no", "--db", "many.db")
    found = shown.run("diff", "before.db", "many.db")
    shown.note("comparison", found)
    shown.note("compared file", found["before"], found["after"])
    shown.note("changed fact", *found["changed"])
    shown.note("compared tombstones", found["tombstones"])
    shown.note("tombstone", *found["tombstones"]["added"])
    assert main(["export", "--db", "many.db", "-o", "many.jsonl"]) == 0
    shown.capsys.readouterr()
    shown.run("init", "--db", "again.db")
    shown.note("restored", shown.at_terminal("mem import many.jsonl --restore --db again.db"))


def transact(shown: Shown) -> None:
    """Stage, check and commit; act on it, and withdraw what it rested on."""
    shown.run("init", "--db", "orders.db", "--admission", "checked")
    Path("policy.toml").write_text('[tools]\nrefund = "irreversible"\n', encoding="utf-8")
    taken = shown.at_terminal("mem policy import policy.toml --reason agreed --db orders.db")
    shown.note("policy taken", taken)
    shown.note("taken rule", *taken["rules"])
    db = ("--db", "orders.db")
    begun = shown.run("tx", "begin", *db)
    shown.note("transaction", begun)
    shown.note("actor", begun["actor"])
    paid = shown.run("tx", "stage", "tx1", "order 7 is unpaid", "--reference", "erp", *db)
    due = shown.run("tx", "stage", "tx1", "order 7 is due", "--reference", "erp", "--derived-from", paid["id"], *db)
    shown.note("fact", paid, due)
    checked = shown.run("tx", "check", "tx1", *db)
    shown.note("transaction checked", checked)
    whole = shown.run("tx", "show", "tx1", *db)
    shown.note("transaction in full", whole)
    shown.note("staged fact", *whole["records"])
    shown.note("ground", *(ground for record in whole["records"] for ground in record["stands_on"]))
    shown.note("check", *checked["checks"], *(item for record in whole["records"] for item in record["checks"]))
    shown.note("transaction settled", shown.run("tx", "commit", "tx1", *db))
    shown.run("tx", "begin", *db)
    shown.note("fact", *shown.run("tx", "read", "tx2", *db))
    shown.note("gate", shown.run("gate", "tx2", "--tool", "refund", *db, code=1))
    shown.note("gate", shown.run("gate", "tx2", "--tool", "refund", "--premise", due["id"], *db))
    shown.note("action", shown.run("act", "begin", "--receipt", "r1", *db), shown.run("act", "done", "a1", *db))
    shown.note("action", *shown.run("act", "list", *db))
    shown.note("transaction", shown.run("tx", "abort", "tx2", *db), *shown.run("tx", "show", *db))
    recovered = shown.run("tx", "recover", *db)
    shown.note("recovery", recovered)
    planned = shown.at_terminal(f"mem revoke {paid['id']} --dry-run --db orders.db")
    shown.note("cascade", planned)
    shown.note("fall", *planned["falls"])
    shown.note("fact", shown.at_terminal(f"mem revoke {paid['id']} --reason no --db orders.db"))
    shown.note("effect", *shown.run("effects", "--check", *db, code=1))
    shown.note("effect", shown.run("effects", "ack", "x1", *db), shown.run("effects", "done", "x1", *db))


def replay(shown: Shown) -> None:
    """Run the published cases of transactions."""
    cases = ROOT / "fixtures/transactions"
    asked = ("tx", "replay", str(cases / "paper.jsonl"), "--tools", str(cases / "tools.json"), "--profile", "paper")
    found = shown.run(*asked)
    shown.note("replay", found)
    shown.note("replayed case", *found["cases"])


def evaluate(shown: Shown) -> None:
    """Ask cases of two memories, with evidence and with a program that answers."""
    Path("cases.jsonl").write_text(
        '{"id": "tea", "query": "what does the user prefer", "expect": ["coffee"], "forbid": ["milk"],'
        ' "control": ["user"], "evidence": ["s1#0"]}\n',
        encoding="utf-8",
    )
    Path("answer.py").write_text(
        'import json, sys\nprint(json.dumps({"answer": json.load(sys.stdin)["context"]}))\n', encoding="utf-8"
    )
    asked = ("eval", "run", "cases.jsonl", "--answerer", f"{sys.executable} answer.py")
    found = shown.run(*asked, "--compare", "before.db", "many.db", code=1)
    shown.note("evaluation", found, shown.run(*asked, "--db", "many.db"))
    for case in found["cases"]:
        shown.note("evaluated case", case)
        shown.note("text looked for", *case["expected"], *case["controls"])
        shown.note("forbidden text", *case["forbidden"])
        shown.note("references", case["references"])
        shown.note("task", case["task"])
    measures = found["measures"]
    shown.note("measures", measures)
    for name, key in (
        ("correctness", "correctness"),
        ("all references", "references"),
        ("forbidden hits", "forbidden"),
        ("tokens of blocks", "tokens"),
        ("ablation", "task"),
    ):
        shown.note(name, measures[key])
    shown.note("scores", measures["references"]["micro"], measures["references"]["macro"])
    shown.note("latency", *measures["latency_ms"].values())
    shown.note("two memories", found["compare"])
    shown.note("compared figure", *found["compare"]["measures"].values())


STAGES: tuple[Callable[[Shown], None], ...] = (
    look,
    reasons,
    change,
    wait,
    decide,
    budget,
    condense,
    take_out,
    transact,
    replay,
    evaluate,
)
"""Each goes on in the folder that those before it left."""


@pytest.fixture
def keys(tmp_path, monkeypatch, capsys):
    """Give the keys of every document that the commands printed."""
    monkeypatch.chdir(tmp_path)
    for transcript in TRANSCRIPTS.glob("*.json"):
        shutil.copy(transcript, tmp_path)
    shown = Shown(capsys, tmp_path)
    for stage in STAGES:
        stage(shown)
    return shown.keys


def test_every_document_has_the_keys_that_the_readme_lists(keys):
    assert {name: sorted(sorted(found) for found in several) for name, several in keys.items()} == {
        name: [sorted(found)] for name, found in listed().items()
    }
    assert len(keys) >= 80
