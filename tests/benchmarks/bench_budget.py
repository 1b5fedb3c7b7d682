"""`mem budget` beside LlamaIndex's own `Memory`: `python tests/benchmarks/bench_budget.py [--oracle PYTHON] [--large]`.

PYTHON is an interpreter that has llama-index-core 0.14.25, by default the one that MEM_ORACLE_PYTHON names; without one
the rows about the real library are left out. Both sides read the same file of messages, write one after the other and
ask once for the prompt, and the run ends if they do not agree about what is left. Whole processes are measured in
processor time, user and system together, in turns; what runs in this process is measured by the clock. The real library
is asked 3 times for 1,000 messages, and with --large once for 10,000, which takes minutes.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from decimal import Decimal
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from memcli.budget.sweep import Grid  # noqa: E402 - the checkout has to be on the path first
from memcli.budget.window import Timeline  # noqa: E402
from memcli.budget_input import transcripts  # noqa: E402
from memcli.cli.budget_options import wanted  # noqa: E402
from memcli.cli.budget_sweep import Asked, swept  # noqa: E402
from tests.benchmarks.run import Row, beside, cpu_ms, seconds  # noqa: E402

MEM = str(Path(sys.executable).parent / "mem")
WORDS = (
    "tea", "coffee", "train", "plane", "Lisbon", "Berlin", "budget", "meeting", "garden", "the", "a", "of", "and", "we",
    "should", "look", "at", "this", "again", "tomorrow", "because", "it", "was", "not", "what", "anybody", "wanted",
)  # fmt: skip
PEER = """
import asyncio, json, pathlib, sys
sys.path.insert(0, sys.argv[1])
from oracle_llamaindex import Memory, chat_message
async def main():
    memory = Memory.from_defaults(session_id="bench")
    for message in json.loads(pathlib.Path(sys.argv[2]).read_text()):
        await memory.aput(chat_message(message, "openai_dict"))
    left = await memory.aget()
    tokens = sum(memory._estimate_token_count(message) for message in left)
    pathlib.Path(sys.argv[3]).write_text(json.dumps([len(left), tokens]))
asyncio.run(main())
"""
GRID = Grid(
    token_limits=tuple(range(2_000, 20_001, 2_000)),
    ratios=tuple(Decimal(number) / 20 for number in range(1, 20, 2)),
    flush_sizes=tuple(range(500, 5_001, 500)),
)
MANY = ["--token-limit", "2k:20k:2k", "--ratio", "0.05:0.95:0.1", "--flush-size", "500:5000:500"]
ONE = ["--token-limit", "20k", "--ratio", "0.7", "--flush-size", "3000"]


def written(folder: Path, messages: int) -> Path:
    """Return a file of so many messages of 20 to 80 words, in turns of two."""
    chance = random.Random(1)
    path = folder / f"{messages}.json"
    said = [" ".join(chance.choices(WORDS, k=chance.randint(20, 80))) + "." for _ in range(messages)]
    roles = ("user", "assistant")
    path.write_text(json.dumps([{"role": roles[at % 2], "content": text} for at, text in enumerate(said)]))
    return path


def against_library(python: str, folder: Path, messages: int, *, rounds: int, target: str) -> Row:
    """Return how many times faster the simulation is than the library, both as whole processes.

    Raises:
        SystemExit: The two do not agree about what is left.
    """
    path, told = written(folder, messages), folder / "left.json"
    ours = [MEM, "budget", "simulate", str(path)]
    peer = [python, "-c", PEER, str(ROOT / "tests"), str(path), str(told)]
    pairs = [(cpu_ms(ours, folder), cpu_ms(peer, folder)) for _ in range(rounds)]
    found = subprocess.run([*ours, "--json"], cwd=folder, capture_output=True, check=True)
    totals = json.loads(found.stdout)["totals"]
    if json.loads(told.read_text()) != [totals["window_messages"], totals["thought"]]:
        raise SystemExit(f"the library has {told.read_text()} messages and tokens left, and mem {totals}")
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    name = f"budget simulate, {messages:,} messages / the real Memory, times faster"
    return Row(name, f"{mine:.0f} ms", f"{other / 1000:.1f} s", other / mine, target)


def sweeping(folder: Path, messages: int) -> list[Row]:
    """Return what a thousand settings cost beside one: as whole commands, and in this process."""
    path = written(folder, messages)
    command = [MEM, "budget", "sweep", str(path)]
    whole = beside(
        f"budget sweep, {len(GRID):,} settings, {messages:,} messages / one setting",
        [*command, *MANY],
        [*command, *ONE],
        folder,
        "≤ 2",
    )
    transcript = transcripts(str(path))[0]
    one = Grid(token_limits=(20_000,), flush_sizes=(3_000,))
    many_s, one_s = (
        seconds(partial(swept, transcript, wanted(), Asked(grid=grid, depths=None, probes=None, best=None)))
        for grid in (GRID, one)
    )
    inside = Row("same, in process", f"{1000 * many_s:.0f} ms", f"{1000 * one_s:.0f} ms", many_s / one_s, "≤ 2")
    return [whole, inside]


def one_setting(messages: int, floor_ms: float) -> Row:
    """Return what one more setting costs where every message has been counted."""
    chance = random.Random(1)
    timeline = Timeline([chance.randint(20, 110) for _ in range(messages)], [at % 2 == 0 for at in range(messages)])
    taken = 1000 * seconds(lambda: timeline.flushes(threshold=21_000, flush_size=3_000), 101)
    name = f"one setting over {messages:,} counted messages / floor"
    return Row(name, f"{taken:.3f} ms", f"{floor_ms:g} ms", taken / floor_ms, "–")


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", metavar="PYTHON", default=os.environ.get("MEM_ORACLE_PYTHON"))
    parser.add_argument("--large", action="store_true", help="also 10,000 messages, which takes the library minutes")
    chosen = parser.parse_args()
    table = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if chosen.oracle:
            table.append(against_library(chosen.oracle, folder, 1_000, rounds=3, target="≥ 50"))
        if chosen.oracle and chosen.large:
            table.append(against_library(chosen.oracle, folder, 10_000, rounds=1, target="≥ 500"))
        for messages in (1_000, 10_000) if chosen.large else (1_000,):
            table += sweeping(folder, messages)
    table += [one_setting(10_000, 0.066), one_setting(100_000, 0.94)]
    if not chosen.oracle:
        print("NOT MEASURED BESIDE THE REAL LIBRARY: name a Python that has llama-index-core with --oracle\n")  # noqa: T201
    print("| operation | mem | peer | ratio | target |\n|---|---|---|---|---|")  # noqa: T201 - the table is the output
    for row in table:
        print("| " + " | ".join(row.cells) + " |")  # noqa: T201


if __name__ == "__main__":
    main()
