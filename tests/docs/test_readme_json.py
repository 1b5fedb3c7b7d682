"""The JSON documents that the commands print have the keys that the README lists, no more and no fewer."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memcli.cli import main
from tests.docs.consoles import TRANSCRIPTS, run
from tests.docs.test_readme_reference import in_code, section, table

Keys = frozenset[str]


def listed() -> dict[str, Keys]:
    """Return the keys of each document as the README lists them; some begin with those of another."""
    found: dict[str, Keys] = {}
    for name, _, keys in table(section("JSON documents")):
        found[name] = frozenset(in_code(keys))
        for other in ("fact", "provenance"):
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


@pytest.fixture
def keys(tmp_path, monkeypatch, capsys):
    """Give the keys of every document that the commands printed."""
    monkeypatch.chdir(tmp_path)
    for transcript in TRANSCRIPTS.glob("*.json"):
        shutil.copy(transcript, tmp_path)
    shown = Shown(capsys, tmp_path)
    stages: tuple[Callable[[Shown], None], ...] = (look, reasons, change, wait, decide, budget)
    for stage in stages:
        stage(shown)
    return shown.keys


def test_every_document_has_the_keys_that_the_readme_lists(keys):
    assert {name: sorted(sorted(found) for found in several) for name, several in keys.items()} == {
        name: [sorted(found)] for name, found in listed().items()
    }
    assert len(keys) >= 40
