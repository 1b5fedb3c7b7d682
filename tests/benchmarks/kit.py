"""How things are measured, in one place: processes in processor time, in turns with their peer, and work in process."""

import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memcli.facts import Actor, Remembered
from memcli.store import create, open_store
from memcli.terms import ActorKind, Admission, Channel

ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("child.py")
PROGRAMS = Path(sys.executable).parent
MEM = str(PROGRAMS / "mem")
SQLITE_UTILS = str(PROGRAMS / "sqlite-utils")
SCRIPT = Actor(name="bench", kind=ActorKind.SCRIPT, channel=Channel.API)
BATCH = 20_000
NAMES = ("tea", "coffee", "train", "plane", "Lisbon", "Berlin", "budget", "meeting", "invoice", "garden", "piano")


class Unmeasured(Exception):
    """A group could not be measured: a process failed, or the two sides do not agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How large everything is that is measured, and how often.

    Args:
        rounds: How often each pair of short processes is measured; a round that is not counted comes first.
        long_rounds: How often what takes long is measured; what takes minutes is measured once.
    """

    rounds: int
    long_rounds: int
    facts_shown: int
    counted: int
    simulated: int
    simulated_many: int
    facts: int
    large: int
    writes: int
    stones: int
    megabytes: int


SCALES = {
    "tiny": Scale(
        rounds=1, long_rounds=1, facts_shown=60, counted=200, simulated=60, simulated_many=80, facts=40,
        large=60, writes=2, stones=20, megabytes=1,
    ),
    "small": Scale(
        rounds=11, long_rounds=3, facts_shown=100_000, counted=100_000, simulated=1_000,
        simulated_many=10_000, facts=100_000, large=100_000, writes=100, stones=100_000, megabytes=100,
    ),
    "full": Scale(
        rounds=11, long_rounds=3, facts_shown=100_000, counted=100_000, simulated=1_000,
        simulated_many=10_000, facts=100_000, large=1_000_000, writes=500, stones=1_000_000, megabytes=1_000,
    ),
}  # fmt: skip
"""`full` has the sizes of the design, `small` takes minutes, and `tiny` only shows that everything runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a process took: processor time, user and system together, time by the clock, and memory at most."""

    code: int
    cpu_s: float
    wall_s: float
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a row came to.

    Args:
        key: Of the row.
        figure: In the unit of the row's target.
        peak_bytes: The greatest memory that our process had; None where nobody asks.
    """

    key: str
    ours: str
    peer: str
    figure: float
    peak_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What a group is given: a folder of its own run, the scale, and files that several groups ask for.

    Args:
        oracle: An interpreter that has the real LlamaIndex, or None.
    """

    folder: Path
    scale: Scale
    oracle: str | None = None
    made: dict[int, Path] = field(default_factory=dict)

    def filled(self, facts: int) -> Path:
        """Return a memory file with so many facts; it is made once, and nobody may change it."""
        if facts not in self.made:
            told(f"making a file of {facts:,} facts")
            self.made[facts] = fill(self.folder / f"{facts}.db", facts)
        return self.made[facts]


def told(text: str) -> None:
    """Say on standard error what is going on."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def statement(number: int) -> str:
    """Return a statement; `needle` is in one of 10,000, `often` in one of 20, `every` in all."""
    rare = " needle" if number % 10_000 == 17 else ""
    often = " often" if number % 20 == 3 else ""
    return f"every note {number} is about {NAMES[number % 11]} and {NAMES[number // 11 % 11]}{rare}{often}"


def fill(path: Path, facts: int, made: Callable[[int], Remembered] | None = None) -> Path:
    """Make a memory file of so many facts, in batches, each from a source of its own; return it."""
    one = made or (lambda number: Remembered(format="mcp", text=statement(number)))
    create(path, actor=SCRIPT, admission=Admission.DIRECT)
    with open_store(path) as mem:
        for start in range(0, facts, BATCH):
            items = [one(number) for number in range(start, min(facts, start + BATCH))]
            with mem.write(SCRIPT) as write:
                write.remember(items, path=f"batch{start}.jsonl", digest=f"{start:064x}")
    return path


def spent(
    command: Sequence[str],
    folder: Path,
    *,
    how: str = "pipe",
    given: Path | None = None,
    output: Path | None = None,
    codes: Sequence[int] = (0,),
) -> Cost:
    """Return what a whole process took.

    Args:
        how: `pipe`, or `terminal` for one with a terminal of its own.
        given: What its standard input is; None means nothing.
        output: Where its standard output goes; None means nowhere.
        codes: The exit codes that it may end with.

    Raises:
        Unmeasured: It ended with another code, or could not be started.
    """
    streams = [os.devnull if path is None else str(path) for path in (given, output)]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MEM_", "PYTHON", "COV"))}
    found = subprocess.run(
        [sys.executable, str(CHILD), how, *streams, *command],
        cwd=folder, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if found.returncode:
        raise Unmeasured(f"{command[0]} could not be started: {found.stderr.strip().splitlines()[-1]}")
    cost = Cost(**json.loads(found.stdout))
    if cost.code not in codes:
        raise Unmeasured(f"`{shlex.join(command)}` ended with {cost.code}: {found.stderr.strip()[-400:]}")
    return cost


def nothing() -> None:
    """Leave everything as it is."""


def beside(
    key: str,
    ours: Sequence[str],
    peer: Sequence[str],
    folder: Path,
    *,
    rounds: int,
    how: str = "pipe",
    fresh: Callable[[], object] = nothing,
) -> Measured:
    """Return two whole processes measured in turns, by the median of their processor time.

    Args:
        how: How ours is run.
        fresh: Called before each round, so that both begin with the same files; then each round counts, and otherwise
            one that does not comes first.
    """
    warm = rounds > 1 and fresh is nothing
    pairs = []
    for at in range(rounds + warm):
        fresh()
        pair = spent(ours, folder, how=how), spent(peer, folder)
        if at >= warm:
            pairs.append(pair)
    mine, other = (statistics.median([cost.cpu_s for cost in costs]) for costs in zip(*pairs, strict=True))
    peak = max(cost.peak_bytes for cost, _ in pairs)
    return Measured(key=key, ours=duration(mine), peer=duration(other), figure=mine / other, peak_bytes=peak)


def duration(seconds: float) -> str:
    """Return a time as the table shows it."""
    if seconds >= 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def median_s(work: Callable[[], object], rounds: int, *, clock: Callable[[], float] = time.process_time) -> float:
    """Return the median time of some work in this process, in seconds, after once that is not counted."""
    work()
    return statistics.median([once_s(work, clock) for _ in range(rounds)])


def once_s(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Return how long some work takes in this process, in seconds."""
    begun = clock()
    work()
    return clock() - begun


@contextmanager
def environment(**given: str) -> Iterator[None]:
    """Set variables of the environment for a while."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
