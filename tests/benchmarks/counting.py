"""Counting tokens beside tiktoken, which reads its own form of the same vocabulary, as after its first download."""

import base64
import hashlib
import random
import statistics
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from memcli import tokens
from tests.benchmarks.kit import ROOT, Bench, Measured, Unmeasured, beside, duration, environment, once_s

ENCODING = "o200k_base"
URL = f"https://openaipublic.blob.core.windows.net/encodings/{ENCODING}.tiktoken"
OURS = f"from memcli.tokens import counter; counter({ENCODING!r})('tea is hot'); import os; os._exit(0)"
STOCK = f"import tiktoken; len(tiktoken.get_encoding({ENCODING!r}).encode('tea is hot', disallowed_special=()))"
WORDS = (
    "the", "tea", "was", "hot", "Anna", "moved", "Lisbon;", "total(rows):", "42", "naïve", "東京", "\n", "https://x.org",
)  # fmt: skip


def cached(folder: Path) -> Path:
    """Return a folder with the shipped vocabulary as the file that tiktoken keeps."""
    data = zlib.decompress((ROOT / f"memcli/data/{ENCODING}.zlib").read_bytes())
    held = [bytes([byte]) for byte in data[:256]] + data[256:].split(b"\xff")
    text = b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(held))
    (folder / hashlib.sha1(URL.encode(), usedforsecurity=False).hexdigest()).write_bytes(text)
    return folder


def measure(bench: Bench) -> Iterator[Measured]:
    """Yield the rows about counting: the first count of a process, left as a command leaves it, and many texts."""
    with environment(TIKTOKEN_CACHE_DIR=str(cached(bench.folder))):
        ours, stock = ([sys.executable, "-c", code] for code in (OURS, STOCK))
        yield beside("first-count", ours, stock, bench.folder, rounds=bench.scale.rounds)
        yield many(bench)


def many(bench: Bench) -> Measured:
    """Return many texts by the clock, since they are counted in threads.

    Raises:
        Unmeasured: The two do not agree.
    """
    import tiktoken

    chance = random.Random(1)
    texts = [" ".join(chance.choices(WORDS, k=chance.randint(3, 60))) for _ in range(bench.scale.counted)]
    stock, counter = tiktoken.get_encoding(ENCODING), tokens.counter(ENCODING)

    def plain() -> list[int]:
        return [len(stock.encode(text, disallowed_special=())) for text in texts]

    if tokens.count_many(texts, counter) != plain():
        raise Unmeasured("the counts of mem and tiktoken differ")
    pairs = [
        (once_s(lambda: tokens.count_many(texts, counter), time.perf_counter), once_s(plain, time.perf_counter))
        for _ in range(bench.scale.rounds)
    ]
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    return Measured(key="count-many", ours=duration(mine), peer=duration(other), figure=mine / other)
