"""Memory files that are not there, not ours, damaged, of another age, busy, or on a disk that takes nothing more."""

import os
import random
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.driver import Mem, Ran
from tests.cli.test_bad_input import WHY, complains
from tests.tx_files import step_back

LOOKING: tuple[tuple[str, ...], ...] = (
    ("show",),
    ("show", "abcd"),
    ("why", "abcd"),
    ("recall", "lisbon"),
    ("context",),
    ("log",),
    ("log", "verify"),
    ("log", "head"),
    ("stats",),
    ("check",),
    ("check", "--residue", "lisbon"),
    ("scope", "list"),
    ("policy", "show"),
    ("import", "--list"),
)
CHANGING: tuple[tuple[str, ...], ...] = (
    ("add", "Milk is cold"),
    ("correct", "abcd", "x", *WHY),
    ("retract", "abcd", *WHY),
    ("verify", "abcd"),
    ("dispute", "abcd"),
    ("undo", *WHY),
    ("tombstone", "--value", "x", *WHY),
    ("lift", "t1", *WHY),
    ("erase", "--value", "x", *WHY),
    ("import", "chat.json"),
    ("extract",),
    ("migrate",),
    ("rebuild",),
    ("scope", "rename", "a", "b", *WHY),
    ("policy", "set", "source", "s1", "0.5"),
)
FLIPS = 400 if os.environ.get("MEM_TEST_FULL") else 40


@pytest.mark.parametrize("words", [*LOOKING, *CHANGING], ids=" ".join)
def test_without_a_file_a_command_says_so_and_makes_none(bare: Mem, words: tuple[str, ...]) -> None:
    (bare.home / "chat.json").write_text('[{"role": "user", "content": "hello"}]')

    ran = bare.run(*words)
    as_json = bare.run(*words, "--json")

    complains(ran, 10, "there is no memory file at memory.db")
    assert as_json.out == ""
    assert as_json.complaint["error"] == "no-file"
    assert [path.name for path in bare.home.iterdir()] == ["chat.json"]


def foreign_sqlite(path: Path) -> None:
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("create table facts (id integer primary key, text text)")


NOT_OURS = {
    "empty": b"",
    "text": b"Anna lives in Lisbon\n" * 500,
    "one byte": b"S",
    "a header alone": b"SQLite format 3\x00",
    "a header and noise": b"SQLite format 3\x00" + bytes(range(256)) * 64,
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(5000),
}


@pytest.mark.parametrize("kind", [*NOT_OURS, "another database"])
@pytest.mark.parametrize("words", [("show",), ("check",), ("add", "Milk is cold"), ("migrate",)], ids=" ".join)
def test_a_file_that_is_not_ours_is_refused_and_left_as_it_is(bare: Mem, kind: str, words: tuple[str, ...]) -> None:
    if kind == "another database":
        foreign_sqlite(bare.db)
    else:
        bare.db.write_bytes(NOT_OURS[kind])
    before = bare.db.read_bytes()

    ran = bare.run(*words)
    as_json = bare.run(*words, "--json")

    complains(ran, 13, "memory.db ")
    assert (as_json.out, as_json.complaint["error"]) == ("", "damaged")
    assert bare.db.read_bytes() == before


def filled(mem: Mem) -> bytes:
    """Return the bytes of a file that holds something of everything."""
    mem("add", "Anna lives in Lisbon", "--subject", "anna", "--attribute", "home city", "--value", "Lisbon")
    for number in range(8):
        mem("add", f"Lisbon has had {number} bridges", "--reason", "counted")
    mem("correct", "f1", "Anna lives in Porto", *WHY)
    mem("retract", "f2", *WHY)
    mem("tombstone", "f3", *WHY)
    return mem.db.read_bytes()


def damage(mem: Mem, data: bytes) -> None:
    for name in ("memory.db-wal", "memory.db-shm"):
        (mem.home / name).unlink(missing_ok=True)
    mem.db.write_bytes(data)


@pytest.mark.parametrize("share", [0.0005, 0.01, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("words", [("show",), ("recall", "lisbon"), ("log",), ("check",)], ids=" ".join)
def test_a_file_that_was_cut_short_is_damaged_and_never_empty(mem: Mem, share: float, words: tuple[str, ...]) -> None:
    whole = filled(mem)
    honest = mem.run(*words)
    damage(mem, whole[: int(len(whole) * share)])

    ran = mem.run(*words)

    if words[0] == "check":
        assert ran.code in (1, 13), ran.text
    else:
        assert ran.code == 13 or (ran.code == 0 and ran.out == honest.out), ran.text
    assert share > 0.9 or ran.code == 13


def places(whole: bytes) -> Iterator[int]:
    """Yield the positions to flip a bit at: all over the header, where texts stand, and anywhere."""
    yield from range(0, 100, 7)
    for word in (b"Anna lives in Porto", b"Lisbon has had 5", b"counted", b"tidying up", b"create table facts"):
        yield from (at for at in (whole.find(word), whole.rfind(word)) if at > 0)
    yield from (random.Random(20).randrange(len(whole)) for _ in range(FLIPS))


def test_a_flipped_bit_is_refused_or_does_not_matter(mem: Mem) -> None:
    whole = filled(mem)
    looks = (("show", "--json"), ("recall", "lisbon", "--json"), ("log", "--json"), ("why", mem.ids()[0], "--json"))
    honest = {words: mem.run(*words).out for words in looks}
    dice, ids, refused = random.Random(7), mem.ids(), 0
    for place in places(whole):
        bit = dice.randrange(8)
        data = bytearray(whole)
        data[place] ^= 1 << bit
        damage(mem, bytes(data))

        answers = {words: mem.run(*words) for words in looks}
        checked = mem.run("check", "--json")

        assert checked.code in (0, 1, 12, 13), (place, bit, checked.text)
        for words, ran in answers.items():
            assert ran.code in (0, 12, 13, 14), (place, bit, ran.text)
            # A view is derived and carries no seal: what it loses, `mem check` finds and `mem rebuild` mends.
            assert ran.code or ran.out == honest[words] or (checked.code and ran.out != "[]\n"), (place, bit, words)
            refused += ran.code > 0
    assert refused > len(looks)
    assert ids


def test_a_change_to_a_file_with_a_flipped_bit_is_made_whole_or_not_at_all(mem: Mem) -> None:
    whole = filled(mem)
    dice = random.Random(11)
    for place in places(whole):
        data = bytearray(whole)
        data[place] ^= 1 << dice.randrange(8)
        damage(mem, bytes(data))

        ran = mem.run("add", "lisbon has had 1 BRIDGES", "--json")

        assert ran.code in (3, 12, 13, 14), (place, ran.text)
        assert ran.out == ""


def set_schema(mem: Mem, version: int) -> None:
    with closing(sqlite3.connect(mem.db)) as conn:
        conn.execute(f"pragma user_version = {version}")


def older(mem: Mem) -> None:
    """Take from a file what the migrations after the first gave it."""
    with closing(sqlite3.connect(mem.db, isolation_level=None)) as conn:
        conn.create_function("mem_writer", 0, lambda: 1)
        step_back(conn)
        for table in ("current", "tallies", "token_counts", "words", "grams"):
            conn.execute(f"drop table {table}")
        conn.execute("delete from _sqlite_migrations where name = 'm002_views'")
        conn.execute("pragma user_version = 1")


def without_tokens(mem: Mem) -> list[dict[str, Any]]:
    """Return every fact but for its tokens, which an upgrade leaves to be counted by `mem rebuild`."""
    return [{**fact, "tokens": None, "encoding": None} for fact in mem.ok("show", "--all-states")]


@pytest.mark.parametrize("words", [("show",), ("add", "x"), ("check",), ("migrate",), ("log", "verify")], ids=" ".join)
def test_a_file_of_a_newer_mem_is_left_alone(mem: Mem, words: tuple[str, ...]) -> None:
    set_schema(mem, 99)
    before = mem.db.read_bytes()

    ran = mem.run(*words)

    complains(ran, 12, "memory.db has schema 99, newer than the ")
    assert "hint: upgrade mem" in ran.err
    assert mem.db.read_bytes() == before


def test_an_older_file_is_migrated_on_request_only_and_loses_nothing(mem: Mem) -> None:
    filled(mem)
    facts, log = without_tokens(mem), mem.ok("log")
    older(mem)
    before = mem.db.read_bytes()

    refused = mem.run("show")
    unchanged = mem.db.read_bytes()
    migrated = mem.ok("migrate")

    complains(refused, 12, "memory.db has schema 1, older than ")
    assert "hint: run `mem migrate`; it keeps a backup" in refused.err
    assert unchanged == before
    assert set(migrated) == {"applied", "backup"}
    assert migrated["applied"] == ["m002_views", "m003_transactions"]
    assert without_tokens(mem) == facts
    assert mem.ok("log")[:-1] == log
    assert mem.ok("check") == []
    assert mem.run("show", "--db", migrated["backup"]).code == 12
    assert mem.ok("migrate") == {"applied": [], "backup": None}


def test_a_busy_file_is_waited_for_and_then_named(mem: Mem) -> None:
    mem("add", "Tea is HOT")
    brief = {"MEM_TIMEOUT": "0.05"}
    before = mem.events()
    with closing(sqlite3.connect(mem.db, isolation_level=None)) as other:
        other.execute("begin immediate")

        for words in (("add", "x"), ("rebuild",), ("retract", "f1", *WHY), ("show", "--all-scopes")):
            complains(mem.run(*words, env=brief), 11, "memory.db is busy: another process holds it")
        seen = mem.run("show", env=brief)
        other.execute("rollback")

    assert (seen.code, seen.out.count("Tea is HOT")) == (0, 1)
    assert mem.events() == before
    assert mem.run("add", "x y").code == 0


def test_a_file_held_for_itself_by_another_program_is_busy_to_look_at(mem: Mem) -> None:
    with closing(sqlite3.connect(mem.db, isolation_level=None)) as other:
        other.execute("pragma locking_mode = exclusive")
        other.execute("begin exclusive")

        ran = mem.run("show", env={"MEM_TIMEOUT": "0.05"})

    complains(ran, 11, "memory.db is busy")


AS_ANYBODY = """\
import ctypes, os, sys
for capability in (1, 2):  # the superuser may write where nobody may, until these are dropped
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def as_anybody(mem: Mem, *words: str) -> Ran:
    """Run a command without the right to write past permissions."""
    return mem.spawn(*words, around=f"exec '{sys.executable}' -c '{AS_ANYBODY}' \"$@\"")


def test_a_file_that_may_not_be_written_can_be_looked_at_and_not_changed(mem: Mem) -> None:
    mem("add", "Tea is HOT")
    before = mem.db.read_bytes()
    mem.db.chmod(0o444)

    seen, refused = as_anybody(mem, "show", "--json"), as_anybody(mem, "add", "Milk is cold")

    assert [fact["text"] for fact in seen.document] == ["Tea is HOT"]
    complains(refused, 14, "memory.db cannot be written")
    assert mem.db.read_bytes() == before


def test_a_folder_that_may_not_be_written_can_be_looked_into_and_not_changed(mem: Mem) -> None:
    mem("add", "Tea is HOT")
    before = mem.db.read_bytes()
    mem.home.chmod(0o555)

    seen, refused, made = (
        as_anybody(mem, *words) for words in (("show", "--json"), ("add", "Milk is cold"), ("init", "--db", "new.db"))
    )
    wide = as_anybody(mem, "show", "--all-scopes")

    mem.home.chmod(0o755)
    assert [fact["text"] for fact in seen.document] == ["Tea is HOT"]
    complains(refused, 14, "memory.db cannot be written")
    complains(made, 14, "new.db cannot be made: ")
    complains(wide, 14, "memory.db cannot be written")
    assert mem.db.read_bytes() == before
    assert [path.name for path in mem.home.iterdir()] == ["memory.db"]


def test_a_file_that_may_not_be_read_is_not_missing(mem: Mem) -> None:
    mem.db.chmod(0)

    ran = as_anybody(mem, "show")

    complains(ran, 14, "memory.db cannot be opened: Permission denied")


@pytest.mark.parametrize(
    "words", [("add", "word " * 9000), ("rebuild",), ("init", "--db", "new.db")], ids=lambda w: w[0]
)
def test_a_disk_that_takes_nothing_more_leaves_the_file_as_it_was(mem: Mem, words: tuple[str, ...]) -> None:
    mem("add", "Tea is HOT")
    facts, log = mem.ok("show"), mem.ok("log")

    # The system refuses every write past 8 KiB of any file.
    ran = mem.spawn(*words, around='ulimit -f 8; "$@"')

    assert ran.code == 14, ran.text
    assert ran.err.startswith("error: ")
    assert (mem.ok("show"), mem.ok("log")) == (facts, log)
    assert mem.ok("check") == []
    assert not (mem.home / "new.db").exists()


def test_a_folder_or_a_pipe_is_no_memory_file(mem: Mem) -> None:
    os.mkfifo(mem.home / "pipe")
    (mem.home / "folder").mkdir()
    for name in ("pipe", "folder", "/dev/null"):
        complains(mem.run("show", "--db", name), 13, f"{name} is no file")
        complains(mem.run("init", "--db", name), 2, f"{name} exists already")


ODD_NAMES = (
    "a b.db",
    "it's.db",
    '"quoted".db',
    "“ünïcode” 東京.db",
    "two\nlines.db",
    "a?mode=ro&b#c%20.db",
    "--x.db",
    "\udcff.db",
    "a\x1b[31m.db",
)


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_a_path_may_hold_any_character(bare: Mem, name: str) -> None:
    made = bare.run("init", f"--db={name}", "--json")
    added = bare.run("add", "Tea is HOT", f"--db={name}")
    shown = bare.run("show", "--all-states", f"--db={name}")
    stats = [bare.run("stats", f"--db={name}"), bare.run("check", f"--db={name}"), bare.run("init", f"--db={name}")]

    assert made.document["path"] == name
    assert (added.code, shown.code, shown.out.count("Tea is HOT")) == (0, 0, 1)
    assert [ran.code for ran in stats] == [0, 0, 2]
    assert os.listdir(bare.home) == [name]  # noqa: PTH208  # the name as the system has it
    assert "\x1b" not in "".join(ran.text for ran in stats)


def test_a_second_init_changes_nothing(mem: Mem) -> None:
    mem("add", "Tea is HOT")
    before = mem.db.read_bytes()

    ran = mem.run("init")

    complains(ran, 2, "memory.db exists already; nothing was changed")
    assert mem.db.read_bytes() == before
    assert [path.name for path in mem.home.iterdir()] == ["memory.db"]
