"""A disk that is full at any point of a command: exit 14, the file as it was, and the next command works.

Each command runs with room for no more pages than the file has, then for one more, and so on until it survives; and
again with a limit of the system on the bytes of every file, so that the write-ahead log is what does not fit.
"""

import io
import json
import os
import resource
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, chdir, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import time_machine

from memcli.cli import main
from memcli.store import file
from tests.cli.driver import Mem
from tests.cli.test_bad_files import older

WHY = ("--reason", "tidying up")
SECRET = "swordfish"
CHAT = [{"role": "user", "content": f"Remember that tea number {n} is hot. I live in town {n}."} for n in range(40)]
GRAPH = "".join(
    json.dumps({"type": "entity", "name": f"person {n}", "entityType": "person", "observations": [f"likes tea {n}"]})
    + "\n"
    for n in range(60)
)
FRAME = 4096 + 24
"""What a page takes in the write-ahead log, in bytes."""

FULL = 14
FULL_RUN = bool(os.environ.get("MEM_TEST_FULL"))
LARGE = frozenset({"add", "correct", "import", "import facts", "tombstone many", "policy import", "tx stage"})
"""What writes so much that the pages of the file are too few for it."""

MOST = 400
"""Rounds after which a command must have survived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A command, what is in the file before it runs, and what is told of it.

    Args:
        person: Only a person may run it.
        steps: It changes the file in steps, each whole, so that the first may be kept where the second finds no room.
        ends: Its exit code where there is room.
    """

    words: tuple[str, ...]
    prepare: Callable[[Mem], None]
    admission: str = "direct"
    person: bool = False
    steps: bool = False
    ends: int = 0


class _Tty(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def person(mem: Mem, *words: str) -> tuple[int, str]:
    """Run a command as if a person sat at both ends; return its exit code and what it complained of."""
    out, err = io.BytesIO(), io.BytesIO()
    with ExitStack() as stack:
        stack.enter_context(patch.object(sys, "stdin", _Tty(io.BytesIO(b""), encoding="utf-8")))
        for name, taken in (("stdout", out), ("stderr", err)):
            stack.enter_context(patch.object(sys, name, _Tty(taken, encoding="utf-8", write_through=True)))
        stack.enter_context(patch.dict("os.environ", mem.env, clear=True))
        stack.enter_context(chdir(mem.home))
        stack.enter_context(time_machine.travel(mem.now, tick=False))
        code = main(mem.real(words))
        sys.stderr.flush()
        return code, err.getvalue().decode()


def facts(mem: Mem) -> None:
    mem("add", f"Anna's word is {SECRET}", "--subject", "anna", "--attribute", "word", "--value", SECRET)
    mem("add", "Anna keeps secrets", "--derived-from", "f1")
    mem("add", "Tea is HOT")


def many(mem: Mem) -> None:
    facts(mem)
    (mem.home / "graph.jsonl").write_text(GRAPH)
    assert mem.run("import", "graph.jsonl").code == 0


def dated(mem: Mem) -> None:
    many(mem)
    older(mem)


def corrected(mem: Mem) -> None:
    facts(mem)
    mem("correct", "f3", "Tea is warm", *WHY)


def rejected(mem: Mem) -> None:
    facts(mem)
    mem("tombstone", "f1", *WHY)


def transcript(mem: Mem) -> None:
    facts(mem)
    (mem.home / "chat.json").write_text(json.dumps(CHAT))


def graph(mem: Mem) -> None:
    facts(mem)
    (mem.home / "graph.jsonl").write_text(GRAPH)


def imported(mem: Mem) -> None:
    transcript(mem)
    mem("import", "chat.json")


def alike(mem: Mem) -> None:
    facts(mem)
    mem("add", "The tea is really hot")


def proposed(mem: Mem) -> None:
    """Leave several things to decide, and a file of decisions that accepts them."""
    for n in range(6):
        mem("add", f"Milk number {n} is cold " * 40, "--actor", "bob")
    lines = [{**json.loads(line), "decision": "accept"} for line in mem.run("review", "export").out.splitlines()]
    assert len(lines) == 6
    (mem.home / "decisions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def scoped(mem: Mem) -> None:
    facts(mem)
    mem("add", "Milk is cold", "--scope", "user/anna")


def ruled(mem: Mem) -> None:
    facts(mem)
    assert person(mem, "policy", "set", "agent", "*", "external", *WHY)[0] == 0
    assert person(mem, "policy", "set", "tool", "wire", "irreversible", *WHY)[0] == 0
    (mem.home / "policy.toml").write_text("[sources]\n" + "".join(f'"source {n}" = 0.5\n' for n in range(80)))


def begun(mem: Mem) -> None:
    ruled(mem)
    mem("tx", "begin", "--tier", "low")


def staged(mem: Mem) -> None:
    begun(mem)
    ran = mem.run(
        "tx", "stage", "tx1", "--subject", "order7", "--attribute", "refund due", "--value", "yes",
        "--reference", "src:a", "--source", "a", "--confidence", "0.8",
    )  # fmt: skip
    assert ran.code == 0, ran.text


def gated(mem: Mem) -> None:
    begun(mem)
    assert mem.run("gate", "tx1", "--tool", "wire", "--premise", "f3").code == 0


def acting(mem: Mem) -> None:
    gated(mem)
    assert mem.run("act", "begin", "--receipt", "r1").code == 0


def acted(mem: Mem) -> None:
    acting(mem)
    assert mem.run("act", "done", "a1").code == 0


def owing(mem: Mem) -> None:
    acted(mem)
    assert mem.run("revoke", "f3", *WHY).code == 0
    assert mem.ok("effects")


CASES = {
    "add": Case(words=("add", "Milk is cold " * 900, "--subject", "milk"), prepare=facts),
    "correct": Case(words=("correct", "f1", "Anna's word is tunafish " * 900, *WHY), prepare=facts),
    "retract": Case(words=("retract", "f1", *WHY), prepare=facts),
    "verify": Case(words=("verify", "f1"), prepare=facts, person=True),
    "dispute": Case(words=("dispute", "f1", *WHY), prepare=facts),
    "undo": Case(words=("undo", "e6", *WHY), prepare=corrected),
    "tombstone": Case(words=("tombstone", "f1", *WHY), prepare=facts),
    "tombstone many": Case(words=("tombstone", "--contains", "tea", *WHY), prepare=many),
    "lift": Case(words=("lift", "t1", *WHY), prepare=rejected),
    "erase": Case(words=("erase", "f1", *WHY), prepare=facts, steps=True),
    "refused": Case(words=("add", f"Anna's WORD is {SECRET}"), prepare=rejected, ends=3),
    "import": Case(words=("import", "chat.json"), prepare=transcript),
    "import facts": Case(words=("import", "graph.jsonl"), prepare=graph),
    "extract": Case(words=("extract",), prepare=imported),
    "condense": Case(words=("condense",), prepare=alike),
    "rebuild": Case(words=("rebuild",), prepare=many),
    "migrate": Case(words=("migrate",), prepare=dated),
    "review apply": Case(
        words=("review", "apply", "decisions.jsonl"), prepare=proposed, admission="review", steps=True
    ),
    "scope rename": Case(words=("scope", "rename", "default", "new", *WHY), prepare=scoped, person=True),
    "scope merge": Case(words=("scope", "merge", "user/anna", "default", *WHY), prepare=scoped, person=True),
    "policy set": Case(words=("policy", "set", "source", "a" * 9000, "0.5", *WHY), prepare=facts, person=True),
    "policy drop": Case(words=("policy", "drop", "tool", "wire", *WHY), prepare=ruled, person=True),
    "policy import": Case(words=("policy", "import", "policy.toml", *WHY), prepare=ruled, person=True),
    "tx begin": Case(words=("tx", "begin"), prepare=ruled),
    "tx read": Case(words=("tx", "read", "tx1", "--subject", "anna", "--attribute", "word"), prepare=begun),
    "tx stage": Case(words=("tx", "stage", "tx1", "Milk is cold " * 900, "--reference", "src:a"), prepare=begun),
    "tx commit": Case(words=("tx", "commit", "tx1"), prepare=staged),
    "tx abort": Case(words=("tx", "abort", "tx1"), prepare=staged),
    "gate": Case(words=("gate", "tx1", "--tool", "wire", "--premise", "f3"), prepare=begun),
    "act begin": Case(words=("act", "begin", "--receipt", "r1"), prepare=gated),
    "act done": Case(words=("act", "done", "a1"), prepare=acting),
    "act failed": Case(words=("act", "failed", "a1"), prepare=acting),
    "revoke": Case(words=("revoke", "f3", *WHY), prepare=acted),
    "effects ack": Case(words=("effects", "ack", "x1"), prepare=owing),
    "effects done": Case(words=("effects", "done", "x1"), prepare=owing),
    "all scopes": Case(words=("show", "--all-scopes"), prepare=facts),
}


@contextmanager
def few_pages(kept: Path, more: int) -> Iterator[None]:
    """Let no connection use more pages than the file had, and these."""
    most = pages(kept) + more

    def limited(opening: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
        def opened(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            conn = opening(*args, **kwargs)
            conn.execute(f"pragma max_page_count = {most}")
            return conn

        return opened

    # Where connections are made, not what is done with them: everything else is what users run.
    with patch.object(file, "connect", limited(file.connect)):
        yield


@contextmanager
def few_bytes(most: int) -> Iterator[None]:
    """Let the system refuse every write past these bytes of any file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def run(mem: Mem, case: Case, words: list[str]) -> tuple[int, str]:
    if case.person:
        return person(mem, *words)
    ran = mem.run(*words)
    return ran.code, ran.err


def rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table, views of full text left out: they are made of the others."""
    with closing(sqlite3.connect(path)) as conn:
        names = [name for (name,) in conn.execute("select name from sqlite_schema where type = 'table' order by name")]
        return {
            name: conn.execute(f"select * from {name}").fetchall()
            for name in names
            if not name.startswith(("words", "grams", "sqlite_"))
        }


def pages(path: Path) -> int:
    with closing(sqlite3.connect(path)) as conn:
        return int(conn.execute("pragma page_count").fetchone()[0])


@pytest.fixture
def bare(tmp_path: Path) -> Mem:
    """A folder with no file in it."""
    home = tmp_path / "home"
    home.mkdir()
    return Mem(home)


def prepared(mem: Mem, case: Case, kept: Path) -> list[str]:
    """Make the file that a command runs on, keep a copy, and return what lies in the folder."""
    assert mem.run("init", "--admission", case.admission).code == 0
    case.prepare(mem)
    shutil.copy(mem.db, kept)
    return sorted(path.name for path in mem.home.iterdir())


def reset(mem: Mem, kept: Path, names: list[str]) -> None:
    for path in mem.home.iterdir():
        if path.name not in names or path == mem.db:
            path.unlink()
    shutil.copy(kept, mem.db)


def holds(mem: Mem, case: Case, words: list[str], *, changed: bool) -> None:
    """Check that the file holds together and that the next command works: the same, where it did nothing yet."""
    if case.words[0] != "migrate":
        found = {item["code"] for item in mem.run("check", "--json").document}
        assert found <= ({"scrub-pending"} if changed else set())
    code, said = run(mem, case, words) if not changed else (mem.run("add", "Water is wet").code, "")
    assert code in {0, 3}, said
    assert mem.run("check", "--json").document == []


def tried(mem: Mem, case: Case, kept: Path, limits: Iterable[AbstractContextManager[None]]) -> list[int]:
    """Run a command under each limit until it survives; return its exit codes, the last is that of success."""
    before = prepared(mem, case, kept)
    old, words, codes = rows(kept), mem.real(case.words), []
    for round_, limit in enumerate(limits):
        reset(mem, kept, before)
        with limit:
            code, said = run(mem, case, words)
        codes.append(code)
        if code != FULL:
            break
        assert said.startswith("error: "), round_
        assert said.count("\n") == 2, round_
        assert names(mem) - set(before) <= {"memory.db-wal", "memory.db-shm"}, round_
        changed = rows(mem.db) != old
        assert not changed or case.steps, (round_, said)
        assert not changed or "nothing" not in said, said
        holds(mem, case, words, changed=changed)
    return codes


def names(mem: Mem) -> set[str]:
    return {path.name for path in mem.home.iterdir()}


@pytest.mark.parametrize("name", CASES)
def test_with_too_few_pages_a_command_changes_nothing(bare: Mem, tmp_path: Path, name: str) -> None:
    kept = tmp_path / "kept.db"

    codes = tried(bare, CASES[name], kept, (few_pages(kept, more) for more in range(MOST)))

    assert codes[:-1] == [FULL] * (len(codes) - 1)
    assert codes[-1] == CASES[name].ends
    assert len(codes) > 1 or name not in LARGE


@pytest.mark.parametrize("name", CASES)
def test_with_too_few_bytes_a_command_changes_nothing(bare: Mem, tmp_path: Path, name: str) -> None:
    frames = (0, 1, 3, 7, 8, 9, *range(10, MOST, 7 if FULL_RUN else 21))

    # Not whole frames, so that the last one is torn.
    codes = tried(bare, CASES[name], tmp_path / "kept.db", (few_bytes(frame * FRAME + 1000) for frame in frames))

    assert codes[:-1] == [FULL] * (len(codes) - 1)
    assert codes[-1] == CASES[name].ends
    assert len(codes) > 1


def test_an_erase_that_cannot_write_the_file_anew_says_so_and_the_next_change_does_it(
    bare: Mem, tmp_path: Path
) -> None:
    case, kept = CASES["erase"], tmp_path / "kept.db"
    before = prepared(bare, case, kept)
    words = bare.real(case.words)
    said = ""
    for frames in range(10, 60, 3):
        reset(bare, kept, before)
        with few_bytes(frames * FRAME):
            _, said = run(bare, case, words)
        if said.startswith("error: erased"):
            break

    assert said.startswith("error: erased, but memory.db cannot be written anew (disk I/O error), so the words may ")
    assert [item["code"] for item in bare.run("check", "--json").document] == ["scrub-pending"]
    with few_bytes(frames * FRAME):
        added = bare.run("add", "Milk is cold")
    assert (added.code, added.err) == (0, "")
    assert bare.run("add", "Water is wet").code == 0
    assert bare.ok("check") == []
    assert SECRET.encode() not in bare.db.read_bytes()


def test_an_init_that_does_not_fit_leaves_nothing(bare: Mem) -> None:
    codes = []
    for frames in range(0, MOST, 3):
        with few_bytes(frames * FRAME + 1000):
            codes.append(bare.run("init").code)
        if codes[-1] == 0:
            break
        assert names(bare) == set()

    assert codes == [*[FULL] * (len(codes) - 1), 0]
    assert names(bare) == {"memory.db"}
    assert bare.ok("check") == []
