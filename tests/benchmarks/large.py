"""A large memory file: its log, recall, many writers at once, and a look among a great many tombstones."""

import os
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing

from memcli.facts import FactQuery
from memcli.recall import recall
from memcli.store import create, open_store
from memcli.store.check import verify_log
from memcli.terms import Admission, Match
from tests.benchmarks.kit import BATCH, ROOT, SCRIPT, Bench, Measured, Unmeasured, duration, median_s, once_s, told

WORDS = (("recall-rare", "needle"), ("recall-middling", "often"), ("recall-common", "every"))
ASKED = 51
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


def measure_log(bench: Bench) -> Iterator[Measured]:
    """Yield the rows about the log: its chain, and with the rows that it speaks of."""
    path = bench.filled(bench.scale.large)
    with open_store(path) as mem, closing(sqlite3.connect(path)) as plain:
        if mem.head()[0] < bench.scale.large:
            raise Unmeasured(f"the log has only {mem.head()[0]:,} rows")
        turns = [
            (
                once_s(lambda: [None for _ in plain.execute("select * from audit order by seq")]),
                once_s(lambda: verify_log(mem, deep=False)),
                once_s(lambda: verify_log(mem)),
            )
            for _ in range(bench.scale.long_rounds)
        ]
    bare, chain, deep = (statistics.median(column) for column in zip(*turns, strict=True))
    for key, taken in (("verify", chain), ("verify-deep", deep)):
        yield Measured(key=key, ours=duration(taken), peer=duration(bare), figure=taken / bare)


def measure_recall(bench: Bench) -> Iterator[Measured]:
    """Yield the rows about recall: a rare, a middling and a very common word."""
    with open_store(bench.filled(bench.scale.large)) as mem:
        for key, word in WORDS:
            taken = median_s(lambda word=word: recall(mem, word, k=10), ASKED)
            yield Measured(key=key, ours=f"{1000 * taken:.2f} ms", peer="–", figure=1000 * taken)


def measure_writers(bench: Bench) -> Iterator[Measured]:
    """Yield how eight processes that write at once keep up with one, by the clock.

    Raises:
        Unmeasured: A writer failed, or a write was lost.
    """
    one, eight = (rate(bench, count) for count in (1, 8))
    yield Measured(key="writers", ours=f"{eight:.0f}/s", peer=f"{one:.0f}/s", figure=eight / one)


def rate(bench: Bench, count: int) -> float:
    """Return how many writes so many processes make in a second."""
    path, each = bench.folder / f"writers{count}.db", bench.scale.writes
    create(path, actor=SCRIPT, admission=Admission.DIRECT)
    command = [sys.executable, "-c", WRITER, str(path)]
    env = os.environ | {"PYTHONPATH": str(ROOT), "MEM_TIMEOUT": "60"}
    begun = time.perf_counter()
    children = [subprocess.Popen([*command, str(number), str(each)], env=env) for number in range(count)]
    if any([child.wait() for child in children]):  # noqa: C419 - every one is waited for
        raise Unmeasured("a writer failed")
    taken = time.perf_counter() - begun
    with open_store(path) as mem:
        held = sum(1 for _ in mem.facts(FactQuery()))
    if held != count * each:
        raise Unmeasured(f"{count * each - held:,} writes were lost")
    return count * each / taken


def measure_tombstones(bench: Bench) -> Iterator[Measured]:
    """Yield what one look among so many tombstones costs."""
    path, stones = bench.folder / "stones.db", bench.scale.stones
    told(f"burying {stones:,} values")
    create(path, actor=SCRIPT, admission=Admission.DIRECT)
    with open_store(path) as mem:
        for start in range(0, stones, BATCH):
            with mem.write(SCRIPT, "benchmark") as write:
                for number in range(start, min(stones, start + BATCH)):
                    write.bury(Match.VALUE, None, [number.to_bytes(32, "big")], scope=write.scope, fact=None)
        planner = mem.planner(SCRIPT)
        taken_us = 1e6 * median_s(lambda: planner.check_tombstones("nothing stops this note", None, None), 1001)
    path.unlink()
    yield Measured(key="tombstones", ours=f"{taken_us:.0f} µs", peer="–", figure=taken_us)
