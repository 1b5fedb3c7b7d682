"""Memory files that a crash left, that may only be read, that are links or replaced, and a clock that jumps."""

import os
import shutil
import socket
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from memcli.errors import Stale
from memcli.facts import Claim
from memcli.store import open_store
from tests.cli.driver import NOON, Mem
from tests.cli.test_bad_files import AS_ANYBODY
from tests.cli.test_bad_input import complains
from tests.files import SCRIPT, texts

CRASH = """\
import os, signal, sys
from memcli.facts import Claim
from memcli.store import open_store
from tests.files import SCRIPT
store = open_store(sys.argv[1])
for text in sys.argv[2:]:
    with store.write(SCRIPT) as write:
        write.add(Claim(text=text))
os.kill(os.getpid(), signal.SIGKILL)
"""
HALFWAY = """\
import os, signal, sqlite3, sys
conn = sqlite3.connect(sys.argv[1], isolation_level=None)
conn.execute("pragma journal_mode = delete")
conn.create_function("mem_writer", 0, lambda: 1)
conn.execute("pragma cache_size = 1")
conn.execute("begin immediate")
conn.execute("create table more (text)")
for _ in range(300):
    conn.execute("insert into more values (zeroblob(5000))")
os.kill(os.getpid(), signal.SIGKILL)
"""
HEADER, FRAME = 32, 24 + 4096


def names(mem: Mem) -> list[str]:
    return sorted(path.name for path in mem.home.iterdir())


def crashed(mem: Mem) -> bytes:
    """Leave a file whose newest facts are in a write-ahead log that nobody folded in; return the log."""
    mem("add", "Tea is HOT")
    subprocess.run([sys.executable, "-c", CRASH, str(mem.db), "Milk is cold", "Ice is cold"], env=mem.env, check=False)
    assert names(mem) == ["memory.db", "memory.db-shm", "memory.db-wal"]
    return (mem.home / "memory.db-wal").read_bytes()


def commits(log: bytes) -> list[int]:
    """Return the positions behind the frames of a log that end a transaction."""
    frames = range(HEADER, len(log) - FRAME + 1, FRAME)
    return [at + FRAME for at in frames if any(log[at + 4 : at + 8])]


def shown(mem: Mem) -> list[str]:
    return sorted(fact["text"] for fact in mem.ok("show"))


def whole(mem: Mem) -> None:
    """Check that the file is whole, can be changed, and is one file again."""
    assert mem.ok("check") == []
    assert mem.run("log", "verify").code == 0
    assert mem.run("add", "Water is wet").code == 0
    assert names(mem) == ["memory.db"]


def test_what_was_committed_before_a_crash_is_there(mem: Mem) -> None:
    crashed(mem)

    assert shown(mem) == ["Ice is cold", "Milk is cold", "Tea is HOT"]
    whole(mem)


@pytest.mark.parametrize("kind", ["gone", "noise", "empty", "cut", "of another file"])
def test_an_index_of_the_log_that_is_lost_or_wrong_is_made_anew(mem: Mem, kind: str) -> None:
    crashed(mem)
    index = mem.home / "memory.db-shm"
    was = index.read_bytes()
    made = {"noise": b"\xff" * len(was), "empty": b"", "cut": was[:100], "of another file": was[::-1]}
    index.unlink()
    if kind != "gone":
        index.write_bytes(made[kind])

    assert shown(mem) == ["Ice is cold", "Milk is cold", "Tea is HOT"]
    whole(mem)


def test_a_log_that_was_cut_off_anywhere_gives_the_commits_that_are_whole(mem: Mem) -> None:
    log = crashed(mem)
    before = {name: (mem.home / name).read_bytes() for name in names(mem)}
    ends, seen = commits(log), set()
    for length in sorted({0, 1, 31, 32, 33, *ends, *(end - 1 for end in ends), *(end + 7 for end in ends), len(log)}):
        for name, data in before.items():
            (mem.home / name).write_bytes(data if name != "memory.db-wal" else log[:length])

        found = shown(mem)

        assert found in (["Tea is HOT"], ["Milk is cold", "Tea is HOT"], ["Ice is cold", "Milk is cold", "Tea is HOT"])
        seen.add(len(found))
        whole(mem)
    assert seen == {1, 2, 3}


def test_a_log_with_a_flipped_bit_or_of_noise_is_read_up_to_there(mem: Mem) -> None:
    log = crashed(mem)
    before = {name: (mem.home / name).read_bytes() for name in names(mem)}
    for place in (3, 9, 17, 25, 40, 500, commits(log)[0] + 10, commits(log)[0] + 2000, len(log) - 9):
        for name, data in before.items():
            (mem.home / name).write_bytes(data)
        broken = bytearray(log)
        broken[place] ^= 4
        (mem.home / "memory.db-wal").write_bytes(broken)

        assert "Tea is HOT" in shown(mem)
        whole(mem)


def halfway(mem: Mem) -> None:
    """Leave a file in the middle of a change by another program, with the journal that takes it back."""
    mem("add", "Tea is HOT")
    subprocess.run([sys.executable, "-c", HALFWAY, str(mem.db)], env=mem.env, check=False)
    assert names(mem) == ["memory.db", "memory.db-journal"]


def test_a_change_of_another_program_that_was_cut_off_is_taken_back(mem: Mem) -> None:
    halfway(mem)

    assert shown(mem) == ["Tea is HOT"]
    whole(mem)


# -------------------------------------------------------------------- what may only be read


def only_read(mem: Mem, *words: str) -> tuple[int, str, list[str]]:
    """Run a command without the right to write past permissions; nothing else touches the file meanwhile."""
    done = subprocess.run(
        [sys.executable, "-c", AS_ANYBODY, sys.executable, "-m", "memcli", *words],
        cwd=mem.home,
        env=mem.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).decode(), names(mem)


LOOKS: tuple[tuple[str, ...], ...] = (("show",), ("check",), ("log", "verify"), ("stats",), ("export",), ("context",))
CHANGES: tuple[tuple[str, ...], ...] = (("add", "Milk is cold"), ("rebuild",), ("show", "--all-scopes"))


@pytest.mark.parametrize("kind", ["file", "folder", "both"])
def test_what_may_only_be_read_is_looked_at_and_nothing_is_left_beside_it(mem: Mem, kind: str) -> None:
    mem("add", "Tea is HOT")
    before = mem.db.read_bytes()
    if kind != "folder":
        mem.db.chmod(0o444)
    if kind != "file":
        mem.home.chmod(0o555)

    looked = [only_read(mem, *words) for words in LOOKS]
    changed = [only_read(mem, *words) for words in CHANGES]

    mem.home.chmod(0o755)
    assert [(code, left) for code, _, left in looked] == [(0, ["memory.db"])] * len(LOOKS)
    assert [(code, left) for code, _, left in changed] == [(14, ["memory.db"])] * len(CHANGES)
    for _, said, _ in changed:
        assert said.startswith("error: memory.db cannot be written: ")
    assert mem.db.read_bytes() == before
    mem.db.chmod(0o644)
    whole(mem)


@pytest.mark.parametrize("kind", ["empty log", "no log", "log and index"])
def test_in_a_folder_that_may_only_be_read_what_was_committed_is_seen(mem: Mem, kind: str) -> None:
    crashed(mem)
    if kind != "log and index":
        assert mem.run("stats").code == 0  # which folds the log in
        if kind == "empty log":
            (mem.home / "memory.db-wal").touch()
    before = names(mem)
    mem.home.chmod(0o555)

    code, said, left = only_read(mem, "show")

    mem.home.chmod(0o755)
    assert (code, said.count("\n")) == (0, 3), said
    assert left == before


@pytest.mark.parametrize("kind", ["log without its index", "journal"])
@pytest.mark.parametrize("read_only", ["folder", "both"])
def test_a_change_that_was_cut_off_and_cannot_be_settled_is_said_and_not_passed_over(
    mem: Mem, kind: str, read_only: str
) -> None:
    if kind == "journal":
        halfway(mem)
    else:
        crashed(mem)
        (mem.home / "memory.db-shm").unlink()
    before = names(mem)
    if read_only == "both":
        mem.db.chmod(0o444)
    mem.home.chmod(0o555)

    code, said, left = only_read(mem, "show")
    copied = mem.home.parent / "copied"
    shutil.copytree(mem.home, copied)

    for folder in (mem.home, copied):
        folder.chmod(0o755)
        (folder / "memory.db").chmod(0o644)
    assert (code, left) == (14, before)
    assert said.startswith("error: beside memory.db lies a change that was cut off, and nothing may be written there")
    assert mem.run("show", "--db", str(copied / "memory.db")).out.count("Tea is HOT") == 1


def test_a_link_in_a_folder_that_may_only_be_read_leads_to_a_file_that_others_write(mem: Mem) -> None:
    crashed(mem)
    elsewhere = mem.home / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "link.db").symlink_to(mem.db)
    elsewhere.chmod(0o555)

    code, said, _ = only_read(mem, "show", "--db", "elsewhere/link.db")

    elsewhere.chmod(0o755)
    assert (code, said.count("\n")) == (0, 3), said


# -------------------------------------------------------------------- links, and what is no file


def test_a_link_is_the_file_that_it_leads_to(mem: Mem) -> None:
    (mem.home / "link.db").symlink_to("memory.db")

    added = mem.run("add", "Tea is HOT", "--db", "link.db")
    again = mem.run("init", "--db", "link.db")

    assert added.code == 0
    assert shown(mem) == ["Tea is HOT"]
    complains(again, 2, "link.db exists already; nothing was changed")
    assert names(mem) == ["link.db", "memory.db"]
    assert (mem.home / "link.db").is_symlink()


@pytest.mark.parametrize("name", ["dangling.db", "loop.db", "socket"])
def test_a_link_to_nowhere_and_a_socket_are_no_memory_file(mem: Mem, name: str) -> None:
    (mem.home / "dangling.db").symlink_to("nowhere")
    (mem.home / "loop.db").symlink_to("loop.db")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(mem.home / "socket"))
    before = names(mem)
    code = 13 if name == "socket" else 10
    for words in (("show",), ("add", "Tea is HOT"), ("check",), ("migrate",), ("rebuild",)):
        ran = mem.run(*words, "--db", name)

        complains(ran, code, f"{name} is no file" if code == 13 else f"there is no memory file at {name}")
    complains(mem.run("init", "--db", name), 2, f"{name} exists already; nothing was changed")
    assert names(mem) == before


@pytest.mark.parametrize(
    "words",
    [
        ("export", "--force", "-o"),
        ("log", "--force", "--html"),
        ("show", "--force", "--html"),
        ("budget", "simulate", "chat.json", "--force", "--html"),
        ("tx", "replay", "cases.jsonl", "--junit"),
        ("review", "export", "-o"),
    ],
    ids=" ".join,
)
def test_no_report_is_written_over_a_memory_file_and_a_link_stays_one(mem: Mem, words: tuple[str, ...]) -> None:
    mem("add", "Tea is HOT")
    (mem.home / "chat.json").write_text('[{"role": "user", "content": "hello"}]')
    (mem.home / "cases.jsonl").write_text("")
    shutil.copy(mem.db, mem.home / "other.db")
    (mem.home / "link.db").symlink_to("other.db")
    before = mem.db.read_bytes(), (mem.home / "other.db").read_bytes(), names(mem)
    for target in ("memory.db", "./memory.db", "other.db", "link.db"):
        ran = mem.run(*words, target)

        assert (ran.code, ran.err.count("\n")) == (2, 2), ran.text
    assert (mem.db.read_bytes(), (mem.home / "other.db").read_bytes(), names(mem)) == before
    assert (mem.home / "link.db").is_symlink()


@pytest.mark.parametrize(
    "words",
    [
        ("export", "--force", "-o"),
        ("log", "--force", "--html"),
        ("budget", "simulate", "chat.json", "--force", "--html"),
    ],
    ids=" ".join,
)
def test_a_report_goes_through_a_link_and_into_a_pipe(mem: Mem, words: tuple[str, ...]) -> None:
    mem("add", "Tea is HOT")
    (mem.home / "chat.json").write_text('[{"role": "user", "content": "hello"}]')
    (mem.home / "report").write_text("old")
    (mem.home / "link").symlink_to("report")
    os.mkfifo(mem.home / "pipe")

    through = mem.run(*words, "link")
    reader = subprocess.Popen(["cat", "pipe"], cwd=mem.home, stdout=subprocess.PIPE)
    piped = mem.run(*words, "pipe")
    out, _ = reader.communicate()

    assert (through.code, piped.code) == (0, 0), through.text + piped.text
    assert (mem.home / "link").is_symlink()
    assert (mem.home / "report").stat().st_size > len("old")
    assert len(out) > len("old")
    assert (mem.home / "pipe").is_fifo()


# -------------------------------------------------------------------- replaced while it is open


@pytest.mark.parametrize("kind", ["replaced", "removed", "moved away"])
@pytest.mark.parametrize("wrote", [False, True], ids=["looked", "wrote"])
def test_a_file_that_is_another_by_now_is_not_written(mem: Mem, kind: str, wrote: bool) -> None:
    other = Mem(mem.home / "other")
    other.home.mkdir()
    other("init", "--admission", "direct")
    other("add", "Water is wet")
    with open_store(mem.db) as store:
        if wrote:
            with store.write(SCRIPT) as write:
                write.add(Claim(text="Tea is HOT"))
        if kind == "replaced":
            shutil.copy(other.db, mem.home / "new.db")
            (mem.home / "new.db").replace(mem.db)
        elif kind == "removed":
            mem.db.unlink()
        else:
            mem.db.rename(mem.home / "old.db")

        with pytest.raises(Stale, match="was replaced or removed while it was open"), store.write(SCRIPT) as write:
            write.add(Claim(text="Milk is cold"))
    for path in ("memory.db-wal", "memory.db-shm"):
        (mem.home / path).unlink(missing_ok=True)
    if kind == "replaced":
        assert shown(mem) == ["Water is wet"]
        assert mem.ok("check") == []
    elif kind == "moved away":
        with open_store(mem.home / "old.db") as store:
            assert texts(store.facts()) == (["Tea is HOT"] if wrote else [])


# -------------------------------------------------------------------- a clock that jumps


TIMES = [
    datetime(2060, 1, 1, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
    datetime(1902, 1, 1, tzinfo=UTC),
    datetime(2106, 2, 8, tzinfo=UTC),
    datetime(2300, 1, 1, tzinfo=UTC),
]


@pytest.mark.parametrize("moment", TIMES, ids=lambda moment: moment.strftime("%Y"))
def test_a_clock_that_jumps_never_takes_transaction_time_back(mem: Mem, moment: datetime) -> None:
    (mem.home / "chat.json").write_text('[{"role": "user", "content": "Remember that ice is cold."}]')
    steps: tuple[tuple[str, ...], ...] = (
        ("add", "Tea is HOT", "--subject", "tea"),
        ("correct", "f1", "Tea is warm", "--reason", "it cooled"),
        ("import", "chat.json"),
        ("extract",),
        ("tombstone", "--value", "milk", "--reason", "never"),
        ("undo", "--reason", "a slip"),
        ("retract", "f1", "--reason", "over"),
    )
    for at, words in enumerate(steps):
        mem.now = moment if at % 2 else NOON
        ran = mem.run(*words)

        assert ran.code == 0, (words, ran.text)
    for now in (moment, NOON):
        mem.now = now
        times = [datetime.fromisoformat(event["at"]) for event in mem.ok("log")]

        assert times == sorted(times)
        assert len(set(times)) == len(times) > len(steps)
        assert mem.ok("check") == []
        for words in (
            ("show", "f1"),
            ("why", "f1"),
            ("log",),
            ("stats",),
            ("show", "--all-states"),
            ("review", "list"),
        ):
            ran = mem.run(*words)
            assert (ran.code, ran.err) == (0, ""), (words, ran.text)


@pytest.mark.parametrize("moment", TIMES, ids=lambda moment: moment.strftime("%Y"))
def test_a_file_can_be_begun_at_any_time_and_gone_on_with_at_another(bare: Mem, moment: datetime) -> None:
    bare.now = moment
    begun = bare.run("init", "--admission", "direct")
    bare.now = NOON
    added = bare.run("add", "Tea is HOT")

    assert (begun.code, added.code) == (0, 0), begun.text + added.text
    times = [datetime.fromisoformat(event["at"]) for event in bare.ok("log")]
    assert times == sorted(times)
    assert len(times) == 2
    assert bare.ok("check") == []
