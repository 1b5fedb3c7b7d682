"""A command that is killed leaves the old state or the new one, nothing between, and a file that is whole.

Each command runs in a process that is ended with SIGKILL before its first SQL statement, before its second, and so on
until it survives. A quick run takes the statements at which transactions begin and end, the one behind each, and an
even choice of the others; MEM_TEST_FULL=1 takes every one.
"""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.driver import NOON, Mem
from tests.cli.test_bad_files import older

FULL = bool(os.environ.get("MEM_TEST_FULL"))
CHOSEN = 8
"""How many statements between the ends of transactions a quick run kills at."""

WHY = ("--reason", "tidying up")
SECRET = "swordfish"
CHAT = [{"role": "user", "content": f"Remember that tea number {n} is hot. I live in town {n}."} for n in range(4)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A command, and what is in the file before it runs."""

    words: tuple[str, ...]
    prepare: Callable[[Mem], None]


def nothing(mem: Mem) -> None:
    """Leave the file as it is."""


def facts(mem: Mem) -> None:
    mem("add", f"Anna's word is {SECRET}", "--subject", "anna", "--attribute", "word", "--value", SECRET)
    mem("add", "Anna keeps secrets", "--derived-from", "f1")
    mem("add", "Tea is HOT")


def corrected(mem: Mem) -> None:
    facts(mem)
    mem("correct", "f3", "Tea is warm", *WHY)


def rejected(mem: Mem) -> None:
    facts(mem)
    mem("tombstone", "f1", *WHY)


def transcript(mem: Mem) -> None:
    facts(mem)
    (mem.home / "chat.json").write_text(json.dumps(CHAT))


def imported(mem: Mem) -> None:
    transcript(mem)
    mem("import", "chat.json")


def proposed(mem: Mem) -> None:
    """Leave one thing to decide, and a file of decisions that accepts it."""
    mem("add", "Milk is cold", "--actor", "bob")
    (item,) = mem.ok("review", "list")
    line = mem.run("review", "export").out
    decided = {**json.loads(line), "decision": "accept"}
    assert item["id"] == decided["id"]
    (mem.home / "decisions.jsonl").write_text(json.dumps(decided) + "\n")


def dated(mem: Mem) -> None:
    facts(mem)
    older(mem)


CASES = {
    "add": Case(words=("add", "Milk is cold", "--subject", "milk"), prepare=facts),
    "correct": Case(words=("correct", "f1", "Anna's word is tunafish", *WHY), prepare=facts),
    "retract": Case(words=("retract", "f1", *WHY), prepare=facts),
    "dispute": Case(words=("dispute", "f1", *WHY), prepare=facts),
    "tombstone": Case(words=("tombstone", "f1", *WHY), prepare=facts),
    "lift": Case(words=("lift", "t1", *WHY), prepare=rejected),
    "erase": Case(words=("erase", "f1", *WHY), prepare=facts),
    "undo": Case(words=("undo", "e6", *WHY), prepare=corrected),
    "refused": Case(words=("add", f"Anna's WORD is {SECRET}"), prepare=rejected),
    "import": Case(words=("import", "chat.json"), prepare=transcript),
    "extract": Case(words=("extract",), prepare=imported),
    "rebuild": Case(words=("rebuild",), prepare=facts),
    "review apply": Case(words=("review", "apply", "decisions.jsonl"), prepare=proposed),
}


class Killer:
    """Runs commands in forks that may be killed."""

    def __init__(self, mem: Mem) -> None:
        self.mem = mem
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.durability.killable", NOON.isoformat()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=mem.home,
            env=mem.env,
        )

    def run(self, words: tuple[str, ...], kill: int | None) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"words": self.mem.real(words), "kill": kill}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture
def bare(tmp_path: Path) -> Mem:
    """A folder with no file in it."""
    home = tmp_path / "home"
    home.mkdir()
    return Mem(home)


@pytest.fixture
def killer(bare: Mem) -> Iterator[Killer]:
    running = Killer(bare)
    yield running
    running.close()


def chosen(statements: list[str]) -> list[int]:
    """Return the statements to be killed before."""
    if FULL:
        return list(range(len(statements)))
    ends = ("begin", "commit", "vacuum", "pragma wal_checkpoint", "insert into audit")
    edges = [at for at, said in enumerate(statements) if said.lower().startswith(ends)]
    step = max(1, len(statements) // CHOSEN)
    near = (
        {at + after for at in edges for after in (0, 1)}
        if len(edges) < 2 * CHOSEN
        else {*edges[:CHOSEN], *edges[-CHOSEN:]}
    )
    return sorted(at for at in near | set(range(0, len(statements), step)) if at < len(statements))


def raw(mem: Mem) -> dict[str, list[Any]]:
    """Return every row of the file past everything that knows what it means; ids of facts by the order they came in.

    Digests and what depends on them are left to `mem check`.
    """
    with closing(sqlite3.connect(mem.db)) as conn:
        names = {name: f"f{number}" for number, name in conn.execute("select id, name from facts")}
        tables = conn.execute(
            "select name from sqlite_schema where type = 'table' and sql like '%strict%' order by name"
        ).fetchall()

        def shown(cell: Any) -> Any:
            if isinstance(cell, bytes):
                return None
            return re.sub(r"\b[0-9a-f]{16}\b", lambda found: names.get(found[0], found[0]), str(cell))

        return {
            table: [tuple(map(shown, row)) for row in conn.execute(f"select * from {table}")]
            for (table,) in tables
            if table not in ("settings", "keys")
        }


def state(mem: Mem) -> str:
    """Return all that commands tell of the file, with ids and times replaced."""
    seen = [
        mem.run(*words, "--json").text
        for words in (("show", "--all-states"), ("log",), ("import", "--list"), ("scope", "list"), ("review", "list"))
    ]
    return "".join(seen)


def reset(mem: Mem, kept: Path) -> None:
    """Make the folder what it was, without what a killed process left behind."""
    for path in mem.home.iterdir():
        if path.name.startswith((".memory.db", "memory.db")):
            path.unlink()
    if kept.exists():
        shutil.copy(kept, mem.db)


def findings(mem: Mem) -> set[str]:
    ran = mem.run("check", "--json")
    assert ran.code in (0, 1), ran.text
    return {item["code"] for item in ran.document}


@pytest.mark.parametrize("name", CASES)
def test_a_killed_change_is_made_whole_or_not_at_all(bare: Mem, killer: Killer, tmp_path: Path, name: str) -> None:
    case, mem, kept = CASES[name], bare, tmp_path / "kept.db"
    mem("init", "--admission", "review" if name == "review apply" else "direct")
    case.prepare(mem)
    shutil.copy(mem.db, kept)
    old, told = raw(mem), [state(mem)]
    whole = killer.run(case.words, None)
    assert whole["code"] == (3 if name == "refused" else 0), whole
    new = raw(mem)
    told.append(state(mem))
    outcomes = set()

    for kill in chosen(whole["statements"]):
        reset(mem, kept)
        ended = killer.run(case.words, kill)

        place = (kill, whole["statements"][kill])
        found = findings(mem)
        after = raw(mem)
        assert ended["killed"], place
        assert after in (old, new), place
        made = after == new
        assert found <= ({"scrub-pending"} if name == "erase" and made else set()), place
        # What is told depends on the rows alone, and those are the old ones or the new ones.
        if FULL or made not in outcomes:
            assert state(mem) == told[made], place
        outcomes.add(made)
        assert mem.run("add", "Water is wet").code == 0, place
        assert findings(mem) == set(), place
        assert name != "erase" or not made or SECRET.encode() not in mem.db.read_bytes(), place
    # Nothing runs behind the commit of a refusal, so that no kill comes after it. To rebuild a sound file is no change.
    assert (old == new) == (name == "rebuild")
    assert outcomes == ({False} if name == "refused" else {old == new, True})


def test_a_killed_init_makes_a_whole_file_or_none(bare: Mem, killer: Killer, tmp_path: Path) -> None:
    words = ("init", "--scope", "user/anna")
    whole = killer.run(words, None)
    assert whole["code"] == 0
    new = state(bare)
    seen = set()

    for kill in chosen(whole["statements"]):
        reset(bare, tmp_path / "none")
        ended = killer.run(words, kill)

        place = (kill, whole["statements"][kill])
        assert ended["killed"], place
        seen.add(bare.db.exists())
        assert bare.db.exists() or bare.run("init", "--scope", "user/anna").code == 0, place
        assert state(bare) == new, place
        assert findings(bare) == set(), place
    assert seen == {False, True}


def test_a_killed_migration_leaves_an_older_file_or_a_newer_one(bare: Mem, killer: Killer, tmp_path: Path) -> None:
    kept = tmp_path / "kept.db"
    bare("init", "--admission", "direct")
    dated(bare)
    shutil.copy(bare.db, kept)
    whole = killer.run(("migrate",), None)
    assert whole["code"] == 0
    new = state(bare)
    codes = set()

    for kill in chosen(whole["statements"]):
        reset(bare, kept)
        ended = killer.run(("migrate",), kill)

        place = (kill, whole["statements"][kill])
        assert ended["killed"], place
        code = bare.run("show").code
        codes.add(code)
        assert code in (0, 12), place
        assert bare.run("migrate").code == 0, place
        assert state(bare) == new, place
        assert findings(bare) == set(), place
    assert codes == {0, 12}
