"""Token counting beside tiktoken, in one interleaved run: `python tests/benchmarks/bench_tokens.py [ROUNDS]`.

The first count is measured over whole processes, in seconds of processor time, user and system together; tiktoken
reads its own form of the same vocabulary from a folder, as it does after its first download. Counting many texts is
measured in seconds of the clock, since it runs in threads. Every figure is the median of the rounds.
"""

import base64
import hashlib
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from memcli import tokens  # noqa: E402 - the checkout has to be on the path first

ROUNDS = 11
MESSAGES = 100_000
NAMES = ("o200k_base", "cl100k_base")
URL = "https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
OURS = "from memcli.tokens import counter; counter({name!r})('tea is hot')"
STOCK = "import tiktoken; len(tiktoken.get_encoding({name!r}).encode('tea is hot', disallowed_special=()))"
WORDS = [
    "the",
    "tea",
    "was",
    "hot",
    "Anna",
    "moved",
    "Lisbon;",
    "total(rows):",
    "42",
    "naïve",
    "東京",
    "\n",
    "https://x.org",
]


def write_cache(folder: Path) -> None:
    """Write the shipped vocabularies as the files that tiktoken keeps."""
    for name in NAMES:
        data = zlib.decompress((ROOT / f"memcli/data/{name}.zlib").read_bytes())
        held = [bytes([byte]) for byte in data[:256]] + data[256:].split(b"\xff")
        text = b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(held))
        key = hashlib.sha1(URL.format(name=name).encode(), usedforsecurity=False).hexdigest()
        (folder / key).write_bytes(text)


def process_seconds(code: str) -> float:
    """Return the processor time of a fresh Python that runs the code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def clock_seconds(work: Callable[[], object]) -> float:
    """Return how long the work takes by the clock."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def report(label: str, peer: list[float], ours: list[float]) -> None:
    """Write one row: the peer's median, ours, and ours as a share of the peer's."""
    theirs, mine = statistics.median(peer), statistics.median(ours)
    sys.stdout.write(f"{label:<44} {theirs:>9.3f} {mine:>9.3f} {mine / theirs:>7.2f}\n")


def bench_first_count(name: str, rounds: int) -> None:
    """Report the first count of a process: tiktoken's own loading beside ours.

    Once as Python ends, and once as a command may end that has flushed everything: freeing a vocabulary piece by
    piece takes longer than unpacking it.
    """
    peer, ours, left = [], [], []
    for _ in range(rounds):
        peer.append(process_seconds(STOCK.format(name=name)))
        ours.append(process_seconds(OURS.format(name=name)))
        left.append(process_seconds(OURS.format(name=name) + "; import os; os._exit(0)"))
    report(f"first count, {name}", peer, ours)
    report(f"first count, {name}, left by os._exit", peer, left)


def bench_many(name: str, rounds: int) -> None:
    """Report many texts: a plain loop over tiktoken beside `count_many`.

    Raises:
        SystemExit: The two do not agree.
    """
    import tiktoken

    chance = random.Random(1)
    texts = [" ".join(chance.choices(WORDS, k=chance.randint(3, 60))) for _ in range(MESSAGES)]
    stock, counter = tiktoken.get_encoding(name), tokens.counter(name)
    counted = tokens.count_many(texts, counter)
    if counted != [len(stock.encode(text, disallowed_special=())) for text in texts]:
        raise SystemExit("the counts differ")
    peer, ours = [], []
    for _ in range(rounds):
        peer.append(clock_seconds(lambda: [len(stock.encode(text, disallowed_special=())) for text in texts]))
        ours.append(clock_seconds(lambda: tokens.count_many(texts, counter)))
    report(f"{MESSAGES:,} messages, {name}, {os.cpu_count()} cores", peer, ours)


def main() -> None:
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        write_cache(Path(folder))
        os.environ["TIKTOKEN_CACHE_DIR"] = folder
        sys.stdout.write(f"{'seconds, median of ' + str(rounds):<44} {'tiktoken':>9} {'mem':>9} {'ratio':>7}\n")
        for name in NAMES:
            bench_first_count(name, rounds)
        for name in NAMES:
            bench_many(name, rounds)


if __name__ == "__main__":
    main()
