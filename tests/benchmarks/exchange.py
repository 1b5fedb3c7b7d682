"""What comes in and goes out: facts beside sqlite-utils, and large transcripts beside bare `json.loads`."""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.kit import MEM, ROOT, SQLITE_UTILS, Bench, Measured, beside, told

SAID = (
    "the agent keeps facts that were drawn from what people said and puts them back into a later prompt so that a"
    " person can look question correct or remove what it holds about tea trains Lisbon invoices gardens and pianos"
)
WORDS = SAID.split()
RECORDINGS = ("cc12_parallel_tools", "cc16_askuserquestion", "cc04_slash_meta", "cc03_small_complete")
LOADS = "import json, sys\nfor line in open(sys.argv[1], 'rb'):\n    json.loads(line)"
INSERTS = """
import json, sys
from sqlite_utils import Database
table = Database(sys.argv[2])["facts"]
table.insert_all(json.loads(line) for line in open(sys.argv[1], "rb"))
table.create_index(["memory"])
table.enable_fts(["memory"], create_triggers=True)
"""


def sentence(chance: random.Random, least: int, most: int) -> str:
    """Return some words."""
    return " ".join(chance.choices(WORDS, k=chance.randint(least, most)))


def remembered(count: int) -> Iterator[str]:
    """Yield the records of a memory store, one line each."""
    chance = random.Random(1)
    for number in range(count):
        yield json.dumps({"id": str(number), "memory": f"person {number} {sentence(chance, 5, 12)}"})


def conversations(size: int) -> Iterator[str]:
    """Yield conversations as JSON Lines until they come to so many bytes: much text, few records."""
    chance, done = random.Random(2), 0
    while done < size:
        talk = [
            {"role": ("user", "assistant")[turn % 2], "content": sentence(chance, 20, 400)}
            for turn in range(chance.randint(2, 10))
        ]
        line = json.dumps({"id": f"c{done}", "messages": talk})
        done += len(line) + 1
        yield line


def session(size: int) -> Iterator[str]:
    """Yield one session of Claude Code until it comes to so many bytes: shipped recordings, again with other ids."""
    recorded = [
        json.loads(line)
        for name in RECORDINGS
        for line in (ROOT / f"fixtures/claude_code/{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    done = turn = 0
    while done < size:
        turn += 1
        for record in recorded:
            line = json.dumps(again(record, turn))
            done += len(line) + 1
            yield line


def again(record: dict[str, object], turn: int) -> dict[str, object]:
    """Return a record with ids of another turn, all in one session."""
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


def emptied(folder: Path) -> Path:
    """Return the folder anew, with an empty memory file in it that admits what is offered."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    words = [MEM, "init", "--db", str(folder / "mine.db"), "--admission", "direct"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return folder


def measure_facts(bench: Bench) -> Iterator[Measured]:
    """Yield the rows about facts: importing them from a memory store, and exporting them."""
    source = written(bench.folder / "memories.jsonl", remembered(bench.scale.facts))
    place = bench.folder / "facts"
    yield beside(
        "import",
        [MEM, "import", str(source), "--format", "mem0", "--db", str(place / "mine.db")],
        [sys.executable, "-c", INSERTS, str(source), str(place / "peer.db")],
        bench.folder,
        rounds=bench.scale.long_rounds,
        fresh=lambda: emptied(place),
    )
    yield beside(
        "export",
        [MEM, "export", "--db", str(place / "mine.db")],
        [SQLITE_UTILS, "rows", str(place / "peer.db"), "facts", "--nl"],
        bench.folder,
        rounds=bench.scale.long_rounds,
    )
    shutil.rmtree(place)


def measure_transcripts(bench: Bench) -> Iterator[Measured]:
    """Yield the rows about large transcripts; a gigabyte is measured once."""
    place, size = bench.folder / "transcripts", bench.scale.megabytes * 1_000_000
    for key, lines in (("transcript", session), ("conversations", conversations)):
        told(f"writing {bench.scale.megabytes:,} MB")
        source = written(bench.folder / "large.jsonl", lines(size))
        yield beside(
            key,
            [MEM, "import", str(source), "--db", str(place / "mine.db")],
            [sys.executable, "-c", LOADS, str(source)],
            bench.folder,
            rounds=1 if bench.scale.megabytes >= 1_000 else bench.scale.long_rounds,
            fresh=lambda: emptied(place),
        )
        source.unlink()
        shutil.rmtree(place)
