"""`mem budget` beside LlamaIndex's own `Memory`, and many settings beside one.

Both sides read the same file of messages, write one after the other and ask once for the prompt; where they do not
agree about what is left, nothing is measured.
"""

import json
import random
import statistics
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.kit import MEM, ROOT, Bench, Measured, Unmeasured, beside, duration, spent, told

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
MANY = ("--token-limit", "2k:20k:2k", "--ratio", "0.05:0.95:0.1", "--flush-size", "500:5000:500")
ONE = ("--token-limit", "20k", "--ratio", "0.7", "--flush-size", "3000")


def measure(bench: Bench) -> Iterator[Measured]:
    """Yield the rows about budgets; those about the real library only where it is at hand."""
    few = written(bench.folder, bench.scale.simulated)
    many = written(bench.folder, bench.scale.simulated_many)
    if bench.oracle is not None:
        yield against_library("simulate", bench, bench.oracle, few, rounds=bench.scale.long_rounds)
        yield against_library("simulate-many", bench, bench.oracle, many, rounds=1)
    for key, path in (("sweep", few), ("sweep-many", many)):
        command = [MEM, "budget", "sweep", str(path)]
        yield beside(key, [*command, *MANY], [*command, *ONE], bench.folder, rounds=bench.scale.rounds)


def written(folder: Path, messages: int) -> Path:
    """Return a file of so many messages of 20 to 80 words, in turns of two."""
    chance = random.Random(1)
    path = folder / f"{messages}.json"
    said = [" ".join(chance.choices(WORDS, k=chance.randint(20, 80))) + "." for _ in range(messages)]
    roles = ("user", "assistant")
    path.write_text(json.dumps([{"role": roles[at % 2], "content": text} for at, text in enumerate(said)]))
    return path


def against_library(key: str, bench: Bench, python: str, path: Path, *, rounds: int) -> Measured:
    """Return how many times faster the simulation is than the library, both as whole processes.

    Args:
        rounds: How often the library is asked, which takes long; mem is asked before and after each time.

    Raises:
        Unmeasured: The two do not agree about what is left.
    """
    left = bench.folder / "left.json"
    ours = [MEM, "budget", "simulate", str(path)]
    peer = [python, "-c", PEER, str(ROOT / "tests"), str(path), str(left)]
    told(f"  asking the real library about {path.stem} messages")
    mine, other, around = [], [], range((bench.scale.rounds + 1) // 2)
    for _ in range(rounds):
        mine += [spent(ours, bench.folder).cpu_s for _ in around]
        other.append(spent(peer, bench.folder).cpu_s)
        mine += [spent(ours, bench.folder).cpu_s for _ in around]
    found = subprocess.run([*ours, "--json"], cwd=bench.folder, capture_output=True, check=True)
    totals = json.loads(found.stdout)["totals"]
    if json.loads(left.read_text()) != [totals["window_messages"], totals["thought"]]:
        raise Unmeasured(f"the library has {left.read_text()} messages and tokens left, and mem {totals}")
    ours_s, peer_s = statistics.median(mine), statistics.median(other)
    return Measured(key=key, ours=duration(ours_s), peer=duration(peer_s), figure=peer_s / ours_s)
