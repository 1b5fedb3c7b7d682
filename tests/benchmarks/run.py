"""Every figure of the memory file beside its peer: `python tests/benchmarks/run.py [--facts N]`, one interleaved run.

Whole processes are measured in processor time, user and system together, over 11 rounds in which the two take turns;
what runs in this process is measured by the clock. Figures move from machine to machine, the ratios of one run hold.
"""

import argparse
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from memcli.facts import Actor, Claim, FactQuery  # noqa: E402 - the checkout has to be on the path first
from memcli.recall import recall  # noqa: E402
from memcli.store import Store, create, open_store  # noqa: E402
from memcli.store.check import verify_log  # noqa: E402
from memcli.terms import ActorKind, Admission, Channel, Match  # noqa: E402

ROUNDS = 11
SCRIPT = Actor(name="bench", kind=ActorKind.SCRIPT, channel=Channel.API)
WORDS = ("tea", "coffee", "train", "plane", "Lisbon", "Berlin", "budget", "meeting", "invoice", "garden", "piano")
WRITER = """
import sys
from memcli.facts import Actor, Claim
from memcli.store import open_store
from memcli.terms import ActorKind, Channel
actor = Actor(name="w" + sys.argv[2], kind=ActorKind.SCRIPT, channel=Channel.API)
with open_store(sys.argv[1]) as mem:
    mem.counter()("warm")
    for number in range(int(sys.argv[3])):
        with mem.write(actor) as write:
            write.add(Claim(text=f"writer {sys.argv[2]} says {number}"))
"""


class Row:
    """One line of the table: what was measured beside what, and the target it is held to."""

    def __init__(self, name: str, ours: str, peer: str, ratio: float, target: str) -> None:
        self.cells = (name, ours, peer, f"{ratio:.2f}", target)


def filled(folder: Path, facts: int) -> Path:
    """Return a memory file with so many facts, admitted directly."""
    path = folder / f"{facts}.db"
    create(path, actor=SCRIPT, admission=Admission.DIRECT)
    with open_store(path) as mem:
        for start in range(0, facts, 20_000):
            with mem.write(SCRIPT) as write:
                for number in range(start, min(facts, start + 20_000)):
                    write.add(Claim(text=text(number)))
    return path


def text(number: int) -> str:
    """Return a statement; `needle` is in one of 10,000, `often` in one of 20, `every` in all."""
    rare = " needle" if number % 10_000 == 17 else ""
    often = " often" if number % 20 == 3 else ""
    return f"every note {number} is about {WORDS[number % 11]} and {WORDS[number // 11 % 11]}{rare}{often}"


def cpu_ms(command: Sequence[str], cwd: Path) -> float:
    """Return the processor time of a whole process in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MEM_", "PYTHON"))}
    subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def beside(name: str, ours: Sequence[str], peer: Sequence[str], cwd: Path, target: str) -> Row:
    """Return two whole processes measured in turns."""
    pairs = [(cpu_ms(ours, cwd), cpu_ms(peer, cwd)) for _ in range(ROUNDS + 1)][1:]
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    return Row(name, f"{mine:.0f} ms", f"{other:.0f} ms", mine / other, target)


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the median of the clock over the rounds, in seconds."""
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def start_up(folder: Path) -> list[Row]:
    """Return the rows about whole commands."""
    bin_ = Path(sys.executable).parent
    mem, utils = str(bin_ / "mem"), str(bin_ / "sqlite-utils")
    small, large = filled(folder, 20), filled(folder, 100_000)
    typer = [sys.executable, "-c", "import typer"]
    show = [mem, "show", "--limit", "20", "--db", str(small)]
    return [
        beside("mem show, piped, 20 facts / import typer", show, typer, folder, "≤ 1.15"),
        beside("same / sqlite-utils rows", show, [utils, "rows", str(small), "facts"], folder, "≤ 0.55"),
        beside("mem show, 100,000 facts, first page / 20 facts", [*show[:-1], str(large)], show, folder, "≤ 1.05"),
        beside("mem --help / sqlite-utils --version", [mem, "--help"], [utils, "--version"], folder, "≤ 0.60"),
    ]


def verifying(mem: Store) -> list[Row]:
    """Return the rows about the log: its chain, and with the rows that it speaks of."""
    events = mem.head()[0]
    plain = sqlite3.connect(mem.path)
    bare = seconds(lambda: [None for _ in plain.execute("select * from audit order by seq")], 3)
    chain = seconds(lambda: verify_log(mem, deep=False), 3)
    deep = seconds(lambda: verify_log(mem), 3)
    plain.close()
    return [
        Row(
            f"verify {events:,} events, chain / a bare select", f"{chain:.2f} s", f"{bare:.2f} s", chain / bare, "≤ 2.2"
        ),
        Row("same, with the rows it speaks of", f"{deep:.2f} s", f"{bare:.2f} s", deep / bare, "≤ 5"),
    ]


def recalling(mem: Store, facts: int) -> list[Row]:
    """Return the rows about recall: a rare, a middling and a very common word, in milliseconds."""
    rows = []
    for word, limit in (("needle", 1.0), ("often", 5.0), ("every", 20.0)):
        taken = 1000 * seconds(lambda word=word: recall(mem, word, k=10))
        rows.append(
            Row(
                f"recall “{word}” at {facts:,} facts / target", f"{taken:.2f} ms", f"{limit:g} ms", taken / limit, "≤ 1"
            )
        )
    return rows


def writers(folder: Path, each: int) -> Row:
    """Return how eight processes that write at once keep up with one."""
    rates = []
    for count in (1, 8):
        path = folder / f"writers{count}.db"
        create(path, actor=SCRIPT, admission=Admission.DIRECT)
        command = [sys.executable, "-c", WRITER, str(path)]
        env = os.environ | {"PYTHONPATH": str(ROOT), "MEM_TIMEOUT": "60"}
        start = time.perf_counter()
        children = [subprocess.Popen([*command, str(number), str(each)], env=env) for number in range(count)]
        if any(child.wait() for child in children):
            raise SystemExit("a writer failed")
        rates.append(count * each / (time.perf_counter() - start))
        with open_store(path) as mem:
            held = sum(1 for _ in mem.facts(FactQuery()))
        if held != count * each:
            raise SystemExit(f"{count * each - held} writes were lost")
    one, eight = rates
    return Row(f"8 processes × {each} writes / one writer", f"{eight:.0f}/s", f"{one:.0f}/s", eight / one, "≥ 0.60")


def tombstones(mem: Store, stones: int) -> Row:
    """Return what one look at so many tombstones costs, in microseconds."""
    with mem.write(SCRIPT, "benchmark") as write:
        for number in range(stones):
            write.bury(Match.VALUE, None, [number.to_bytes(32, "big")], scope=write.scope, fact=None)
    planner = mem.planner(SCRIPT)
    planner.check_tombstones("warm", None, None)
    taken = 1e6 * seconds(lambda: planner.check_tombstones("nothing stops this note", None, None), 1001)
    return Row(f"tombstone check at {stones:,} tombstones / target", f"{taken:.0f} µs", "50 µs", taken / 50, "≤ 1")


def peer_adding(folder: Path, facts: int) -> float:
    """Return the seconds that sqlite-utils needs for plain inserts, an index and full text."""
    from sqlite_utils import Database

    start = time.perf_counter()
    table = Database(folder / "peer.db")["facts"]
    table.insert_all({"id": number, "text": text(number)} for number in range(facts))
    table.create_index(["text"])
    table.enable_fts(["text"], create_triggers=True)
    return time.perf_counter() - start


def large(folder: Path, facts: int) -> list[Row]:
    """Return the rows about a large file: filling it, recall, the log, tombstones."""
    start = time.perf_counter()
    path = filled(folder, facts)
    mine, other = time.perf_counter() - start, peer_adding(folder, facts)
    name = f"add {facts:,} facts one by one / sqlite-utils insert, index, full text"
    rows = [Row(name, f"{mine:.1f} s", f"{other:.1f} s", mine / other, "–")]
    with open_store(path) as mem:
        return [*rows, *recalling(mem, facts), *verifying(mem), tombstones(mem, facts)]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, default=100_000, help="how many facts the large file holds")
    parser.add_argument("--writes", type=int, default=500, help="how many writes each of eight processes makes")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = start_up(folder)
        table += large(made(folder), chosen.facts)
        table.append(writers(folder, chosen.writes))
    print("| operation | mem | peer | ratio | target |\n|---|---|---|---|---|")  # noqa: T201 - the table is the output
    for row in table:
        print("| " + " | ".join(row.cells) + " |")  # noqa: T201


def made(folder: Path) -> Path:
    """Return a new folder inside another."""
    return Path(tempfile.mkdtemp(dir=folder))


if __name__ == "__main__":
    main()
