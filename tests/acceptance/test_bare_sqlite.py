"""The file as any program with SQLite meets it: nothing that counts can be written, and what was altered is refused."""

import hashlib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memcli.schema import GUARDED
from tests.acceptance.driver import Mem
from tests.acceptance.material import openai, token
from tests.acceptance.questions import find
from tests.acceptance.stores import STORES

FOREIGN = [
    "insert into {table} select * from {table} limit 1",
    "insert or replace into {table} select * from {table} limit 1",
    "insert or ignore into {table} select * from {table} limit 1",
    "replace into {table} select * from {table} order by 1 desc limit 1",
    "update {table} set {column} = {column}",
    "update or replace {table} set {column} = {column} + 1",
    "delete from {table}",
    "delete from {table} where {column} = (select max({column}) from {table})",
]
COUNTING = ["facts", "versions", "tombstones", "audit"]


def guarded(path: Path) -> list[str]:
    """Return the tables that the file itself guards."""
    with closing(sqlite3.connect(path)) as conn:
        named = "select tbl_name from sqlite_schema where type = 'trigger' and name like '%guard_insert'"
        return sorted(name for (name,) in conn.execute(named))


def live(mem: Mem, *, review: bool) -> None:
    """Put a row into every table that a foreign program may be tempted by; what only waits is in a reviewed file."""
    mem.ok("import", openai(mem.folder / "talk.json", ["FACT: the pass is q1", "FACT: the gate is q2"]))
    mem.ok("import", STORES["mem"].path(mem.folder, "q3"))
    mem.ok("extract")
    if review:
        mem.run("tombstone", find(mem, "q1", "--all-states"), "--reason", "not true")
        return
    mem.ok("tombstone", find(mem, "q1"), "--reason", "not true")
    gate = find(mem, "q2")
    mem.ok("add", "a summary", "--derived-from", gate, "--kind", "summary")
    mem.ok("policy", "set", "tool", "pay", "irreversible", "--reason", "a test", at_terminal=True)
    mem.ok("tx", "begin")
    mem.ok("tx", "read", "tx1")
    staged = ("tx", "stage", "tx1", "the gate is open", "--reference", "erp", "--source", "clerk")
    named = ("--supersedes", gate)
    mem.ok(*staged, *named, at_terminal=True)
    mem.ok("tx", "commit", "tx1")
    opened = find(mem, "the gate is open")
    mem.ok("tx", "begin")
    receipt = mem.ok("gate", "tx2", "--tool", "pay", "--premise", opened, "--json").json()["receipt"]
    action = mem.ok("act", "begin", "--receipt", receipt, "--json").json()["id"]
    mem.ok("act", "done", action)
    mem.ok("revoke", opened, "--reason", "not true")


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Mem]:
    """Return a maker of the memory that has rows in a table, one file for all of them but one."""
    made: dict[bool, Mem] = {}

    def memory(table: str) -> Mem:
        review = table == "proposals"
        if review not in made:
            made[review] = Mem(tmp_path_factory.mktemp("memory"), admission="review" if review else "direct")
            live(made[review], review=review)
        return made[review]

    return memory


@pytest.mark.shows("gateway.no_bypass_path")
def test_the_file_guards_every_table_in_which_something_is_kept(mem):
    held = guarded(mem.path)

    assert held == sorted(GUARDED)
    assert {*COUNTING, "sources", "messages", "provenance", "stops", "receipts", "effects"} <= set(held)


@pytest.mark.shows("gateway.no_bypass_path")
@pytest.mark.parametrize("table", GUARDED)
def test_bare_sqlite_changes_nothing_of_what_counts(lived_in, table):
    mem = lived_in(table)
    path = mem.path
    before = hashlib.sha256(path.read_bytes()).hexdigest()

    with closing(sqlite3.connect(path)) as conn:
        column = conn.execute(f"select name from pragma_table_info('{table}') limit 1").fetchone()[0]
        assert conn.execute(f"select count(*) from {table}").fetchone()[0] > 0
        for statement in FOREIGN:
            with pytest.raises(sqlite3.OperationalError, match="no such function: mem_writer"), conn:
                conn.execute(statement.format(table=table, column=column))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    mem.ok("check")


@pytest.mark.shows("gateway.no_bypass_path")
def test_mem_itself_still_writes_to_the_file_that_others_cannot(lived_in):
    mem, word = lived_in("facts"), token()

    mem.ok("add", f"the door is {word}")
    assert find(mem, word)


@pytest.mark.shows("gateway.no_bypass_path")
@pytest.mark.parametrize("table", COUNTING)
def test_a_file_whose_triggers_were_dropped_is_refused_and_never_read_as_true(mem, table):
    mem.ok("import", openai(mem.folder / "talk.json", ["FACT: the pass is q1", "FACT: the gate is q2"]))
    mem.ok("extract")
    mem.ok("tombstone", find(mem, "q1"), "--reason", "not true")
    mem.ok("check")

    with closing(sqlite3.connect(mem.path)) as conn, conn:
        for (name,) in conn.execute(
            "select name from sqlite_schema where type = 'trigger' and tbl_name = ?", (table,)
        ).fetchall():
            conn.execute(f"drop trigger {name}")
        conn.execute(f"delete from {table} where rowid = (select max(rowid) from {table})")
    for call in (("show",), ("add", "the pass is q1"), ("recall", "pass"), ("export",), ("tx", "begin")):
        assert mem.run(*call).code == 13
    assert mem.run("check").code in (1, 13)
