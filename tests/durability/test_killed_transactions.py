"""A killed step of a transaction leaves the old rows or the new ones, and what was let through once is not repeated.

Each command runs in a process that is ended with SIGKILL before its Nth SQL statement. A quick run takes the ends of
its transaction and an even choice of the others; MEM_TEST_FULL=1 takes every one. Afterwards the file is whole, the
command can be given again, and `tx recover` ends what nobody will.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.driver import NOON, Mem
from tests.durability.test_killed import FULL, Killer, findings, raw, reset

CHOSEN = 6
"""How many statements a quick run kills at between the first and the last ones."""

DUE = ("--subject", "order 7", "--attribute", "due", "--source", "erp", "--reference", "erp")
LATE = timedelta(days=1)
"""When every lease of these tests is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A command, what is in the file before it, how it ends, and how a second one ends that finds it done."""

    words: tuple[str, ...]
    prepare: Callable[[Mem], None]
    code: int = 0
    again: int = 0


def done(mem: Mem, *words: str, code: int = 0) -> None:
    ran = mem.run(*words)
    assert ran.code == code, ran.text


def premise(mem: Mem) -> None:
    """Make a file that believes f1, and f2 that was built on it."""
    done(mem, "init", "--admission", "direct")
    done(mem, "tx", "begin")
    done(mem, "tx", "stage", "tx1", *DUE, "--value", "900")
    done(mem, "tx", "commit", "tx1")
    done(mem, "add", "Order 7 is late", "--derived-from", "f1")


def opened(mem: Mem) -> None:
    premise(mem)
    done(mem, "tx", "begin")


def drafts(mem: Mem) -> None:
    """Leave tx2 with f3, which takes the place of f1, and f4, which was built on it."""
    opened(mem)
    done(mem, "tx", "stage", "tx2", *DUE, "--value", "800")
    done(mem, "tx", "stage", "tx2", "Order 7 is cheap", "--reference", "erp", "--derived-from", "f3")


def doubted(mem: Mem) -> None:
    drafts(mem)
    done(mem, "tx", "stage", "tx2", "Order 7 is blue", "--reference", "erp", "--confidence", "0.2")


def outranked(mem: Mem) -> None:
    """Leave a draft that is refused, another that was built on it, and a third that passes."""
    opened(mem)
    rumour = ("--subject", "order 7", "--attribute", "due", "--source", "rumour", "--authority", "0.1")
    done(mem, "tx", "stage", "tx2", *rumour, "--reference", "rumour", "--value", "1")
    done(mem, "tx", "stage", "tx2", "Order 7 is a gift", "--reference", "rumour", "--derived-from", "f3")
    done(mem, "tx", "stage", "tx2", "Order 7 is blue", "--reference", "erp")


def many(mem: Mem) -> None:
    opened(mem)
    lines = [f'{{"text": "Order {number} is blue", "references": ["erp"]}}\n' for number in range(3)]
    (mem.home / "facts.jsonl").write_text("".join(lines))


def allowed(mem: Mem) -> None:
    opened(mem)
    done(mem, "gate", "tx2", "--tool", "wire", "--premise", "f1")


def blocked(mem: Mem) -> None:
    drafts(mem)


def running(mem: Mem) -> None:
    allowed(mem)
    done(mem, "act", "begin", "--receipt", "r1")


def paid(mem: Mem) -> None:
    running(mem)
    done(mem, "act", "done", "a1")


def groundless(mem: Mem) -> None:
    """Leave a call under way whose premise was withdrawn meanwhile."""
    running(mem)
    done(mem, "revoke", "f1", "--reason", "it was wrong")


def forgotten(mem: Mem) -> None:
    """Leave tx2 past its lease, with drafts and a call that runs, and tx3 within its own."""
    mem.now = NOON - LATE
    running(mem)
    done(mem, "tx", "stage", "tx2", *DUE, "--value", "800")
    done(mem, "tx", "stage", "tx2", "Order 7 is cheap", "--reference", "erp", "--derived-from", "f3")
    mem.now = NOON
    done(mem, "tx", "begin")


CASES = {
    "begin": Case(words=("tx", "begin", "--tier", "low"), prepare=premise),
    "stage": Case(words=("tx", "stage", "tx2", *DUE, "--value", "800"), prepare=opened),
    "stage many": Case(words=("tx", "stage", "tx2", "--file", "facts.jsonl"), prepare=many),
    "commit": Case(words=("tx", "commit", "tx2"), prepare=drafts, again=3),
    "commit each": Case(words=("tx", "commit", "tx2", "--partial"), prepare=doubted, again=3),
    "commit held": Case(words=("tx", "commit", "tx2"), prepare=doubted, code=6, again=3),
    "commit refused": Case(words=("tx", "commit", "tx2"), prepare=outranked, code=3, again=3),
    "gate": Case(words=("gate", "tx2", "--tool", "wire", "--premise", "f1"), prepare=opened),
    "gate shut": Case(words=("gate", "tx2", "--tool", "wire", "--premise", "f1"), prepare=blocked, code=1, again=1),
    "act begin": Case(words=("act", "begin", "--receipt", "r1"), prepare=allowed, again=3),
    "act done": Case(words=("act", "done", "a1"), prepare=running),
    "act done in vain": Case(words=("act", "done", "a1"), prepare=groundless),
    "revoke": Case(words=("revoke", "f1", "--reason", "it was wrong"), prepare=paid),
    "abort": Case(words=("tx", "abort", "tx2"), prepare=drafts),
    "recover": Case(words=("tx", "recover"), prepare=forgotten),
}


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
    """Return the statements to be killed before: the ends of every transaction, those beside them, some between."""
    if FULL:
        return list(range(len(statements)))
    ends = [at for at, said in enumerate(statements) if said.lower().startswith(("begin", "commit"))]
    near = {at + beside for at in ends for beside in (0, 1)} if len(ends) < CHOSEN else {*ends[:2], *ends[-3:]}
    return sorted(at for at in near | set(range(0, len(statements), len(statements) // CHOSEN)) if at < len(statements))


def column(mem: Mem, sql: str) -> list[Any]:
    with closing(sqlite3.connect(mem.db)) as conn:
        return [value for (value,) in conn.execute(sql)]


@pytest.mark.parametrize("name", CASES)
def test_a_killed_step_is_made_whole_or_not_at_all(bare: Mem, killer: Killer, tmp_path: Path, name: str) -> None:
    case, mem, kept = CASES[name], bare, tmp_path / "kept.db"
    case.prepare(mem)
    kept.write_bytes(mem.db.read_bytes())
    old = raw(mem)
    whole = killer.run(case.words, None)
    assert whole["code"] == case.code, whole
    new = raw(mem)
    seen = set()

    for kill in chosen(whole["statements"]):
        reset(mem, kept)
        ended = killer.run(case.words, kill)

        place = (kill, whole["statements"][kill])
        after = raw(mem)
        assert ended["killed"], place
        assert findings(mem) == set(), place
        assert after in (old, new), place
        assert mem.run(*case.words).code == (case.again if after == new else case.code), place
        used_once(mem, place)
        # What follows depends on the rows alone, and those are the old ones or the new ones.
        if FULL or (after == new) not in seen:
            mended(mem, place)
        seen.add(after == new)
    assert seen == {False, True}


def used_once(mem: Mem, place: Any) -> None:
    """Look that no receipt carries two calls, and that a third one is refused."""
    receipts = column(mem, "select receipt from actions")
    assert len(receipts) == len(set(receipts)), place
    for receipt in receipts:
        assert mem.run("act", "begin", "--receipt", f"r{receipt}").code == 3, place
    owed = column(mem, "select action from effects")
    assert len(owed) == len(set(owed)) <= len(receipts) == len(column(mem, "select id from actions")), place


def mended(mem: Mem, place: Any) -> None:
    """Look that what nobody ends is ended by `tx recover`, and that the gate is open again."""
    mem.now = NOON + LATE
    assert mem.run("tx", "recover").code == 0, place
    assert column(mem, "select id from transactions where status = 'open'") == [], place
    assert column(mem, "select fact from current where state = 'tentative'") == [], place
    running = "select a.id from actions a join receipts r on r.id = a.receipt join transactions t on t.id = r.tx"
    assert column(mem, f"{running} where a.state = 'running' and t.status = 'aborted'") == [], place
    tx = mem.ok("tx", "begin")["id"]
    done(mem, "add", "The shop is open", "--subject", "shop", "--attribute", "state", "--value", "open")
    ground = f"f{len(mem.ids())}"
    assert mem.run("gate", tx, "--tool", "wire", "--premise", ground).code == 1, place  # it came after the snapshot
    tx = mem.ok("tx", "begin")["id"]
    assert mem.run("gate", tx, "--tool", "wire", "--premise", ground).code == 0, place
    assert findings(mem) == set(), place
    mem.now = NOON
