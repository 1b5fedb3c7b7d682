"""What comes in and goes out, beside its peers: `bench_exchange.py [--facts N] [--megabytes N]`.

Whole processes, in processor time, user and system together; the peak is the greatest memory that the process had.
Each pair takes turns over `--rounds`, and the median counts: a round takes long. A gigabyte is `--megabytes 1000`.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
SAID = (
    "the agent keeps facts that were drawn from what people said and puts them back into a later prompt so that a"
    " person can look question correct or remove what it holds about tea trains Lisbon invoices gardens and pianos"
)
WORDS = SAID.split()
LOADS = "import json, sys\nfor line in open(sys.argv[1], 'rb'):\n    json.loads(line)"
PEER = """
import json, sys
from sqlite_utils import Database
table = Database(sys.argv[2])["facts"]
table.insert_all(json.loads(line) for line in open(sys.argv[1], "rb"))
table.create_index(["text"])
table.enable_fts(["text"], create_triggers=True)
"""
CHILD = """
import os, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
"""


def measured(command: Sequence[str], folder: Path) -> tuple[float, int]:
    """Return the processor time of a process in seconds, and the greatest memory it had in bytes."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MEM_", "PYTHON"))}
    said = subprocess.run(
        [sys.executable, "-c", CHILD, *command], cwd=folder, env=env, capture_output=True, text=True, check=True
    ).stdout.split()
    if said[0] != "0":
        raise SystemExit(f"{' '.join(command)} ended with {said[0]}")
    return float(said[1]), int(said[2])


def beside(
    name: str,
    ours: Sequence[str],
    peer: Sequence[str],
    folder: Path,
    *,
    rounds: int,
    target: str,
    fresh: Callable[[], object] = lambda: None,
) -> str:
    """Return the row of two processes measured in turns.

    Args:
        fresh: Called before each round, so that both begin with the same files.
    """
    mine, other, peaks = [], [], []
    for _ in range(rounds):
        fresh()
        seconds, peak = measured(ours, folder)
        mine.append(seconds)
        peaks.append(peak)
        other.append(measured(peer, folder)[0])
    ours_s, peer_s = statistics.median(mine), statistics.median(other)
    peak = f"{max(peaks) / 1e6:.0f} MB"
    return f"| {name} | {ours_s:.2f} s, {peak} | {peer_s:.2f} s | {ours_s / peer_s:.2f} | {target} |"


def sentence(chance: random.Random, least: int, most: int) -> str:
    """Return some words."""
    return " ".join(chance.choices(WORDS, k=chance.randint(least, most)))


def statements(count: int) -> Iterator[str]:
    """Yield the records of a memory store, one line each."""
    chance = random.Random(1)
    for number in range(count):
        yield json.dumps({"id": str(number), "memory": f"person {number} {sentence(chance, 5, 12)}"})


def fine_tuning(size: int) -> Iterator[str]:
    """Yield conversations as JSON Lines until they come to so many bytes: much text, few records."""
    chance, written = random.Random(2), 0
    while written < size:
        talk = [
            {"role": ("user", "assistant")[turn % 2], "content": sentence(chance, 20, 400)}
            for turn in range(chance.randint(2, 10))
        ]
        line = json.dumps({"id": f"c{written}", "messages": talk})
        written += len(line) + 1
        yield line


def session(size: int) -> Iterator[str]:
    """Yield one session of Claude Code until it comes to so many bytes: shipped recordings, again with other ids."""
    names = ("cc12_parallel_tools", "cc16_askuserquestion", "cc04_slash_meta", "cc03_small_complete")
    recorded = [
        json.loads(line)
        for name in names
        for line in (ROOT / f"fixtures/claude_code/{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    written = turn = 0
    while written < size:
        turn += 1
        for record in recorded:
            line = json.dumps(_again(record, turn))
            written += len(line) + 1
            yield line


def _again(record: dict[str, object], turn: int) -> dict[str, object]:
    fresh = dict(record)
    for key in ("uuid", "parentUuid", "leafUuid", "logicalParentUuid"):
        if isinstance(fresh.get(key), str):
            fresh[key] = f"{turn:08x}{str(fresh[key])[8:]}"
    message = fresh.get("message")
    if isinstance(message, dict) and message.get("id"):
        fresh["message"] = message | {"id": f"{turn}-{message['id']}"}
    return fresh | ({"sessionId": "one"} if "sessionId" in fresh else {})


def written(path: Path, lines: Iterator[str]) -> Path:
    """Return a file of these lines."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
    return path


def facts(folder: Path, count: int, rounds: int) -> list[str]:
    """Return the rows about facts: importing them from a memory store, and exporting them."""
    bin_ = Path(sys.executable).parent
    mem, utils = str(bin_ / "mem"), str(bin_ / "sqlite-utils")
    source = written(folder / "memories.jsonl", statements(count))

    def fresh() -> None:
        for name in ("mine.db", "peer.db"):
            for tail in ("", "-wal", "-shm"):
                (folder / f"{name}{tail}").unlink(missing_ok=True)
        subprocess.run([mem, "init", "--db", "mine.db", "--admission", "direct"], cwd=folder, check=True, stdout=-3)

    peer = [sys.executable, "-c", PEER, str(source), "peer.db"]
    ours = [mem, "import", str(source), "--format", "mem0", "--db", "mine.db"]
    return [
        beside(
            f"import {count:,} facts from a store / sqlite-utils insert, index, full text",
            ours,
            peer,
            folder,
            rounds=rounds,
            target="≤ 1.4",
            fresh=fresh,
        ),
        beside(
            f"export {count:,} facts, digests checked / sqlite-utils rows --nl",
            [mem, "export", "--db", "mine.db"],
            [utils, "rows", "peer.db", "facts", "--nl"],
            folder,
            rounds=rounds,
            target="≤ 0.5",
        ),
    ]


def transcripts(folder: Path, megabytes: int, rounds: int) -> list[str]:
    """Return the rows about large transcripts."""
    mem = str(Path(sys.executable).parent / "mem")
    rows = []
    for what, lines in (("one session", session), ("conversations", fine_tuning)):
        source = written(folder / "large.jsonl", lines(megabytes * 1_000_000))

        def fresh() -> None:
            shutil.rmtree(folder / "file", ignore_errors=True)
            (folder / "file").mkdir()
            subprocess.run([mem, "init", "--db", "file/mine.db"], cwd=folder, check=True, stdout=-3)

        rows.append(
            beside(
                f"import {megabytes:,} MB of JSON Lines, {what} / json.loads of each line",
                [mem, "import", str(source), "--db", "file/mine.db"],
                [sys.executable, "-c", LOADS, str(source)],
                folder,
                rounds=rounds,
                target="≤ 3, 150 MB",
                fresh=fresh,
            )
        )
    return rows


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, default=100_000, help="how many facts come in and go out")
    parser.add_argument("--megabytes", type=int, default=100, help="how large the transcripts are")
    parser.add_argument("--rounds", type=int, default=3, help="how often each pair is measured")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = facts(folder, chosen.facts, chosen.rounds)
        table += transcripts(folder, chosen.megabytes, chosen.rounds)
    print("| operation | mem | peer | ratio | target |\n|---|---|---|---|---|")  # noqa: T201 - the table is the output
    print("\n".join(table))  # noqa: T201


if __name__ == "__main__":
    main()
