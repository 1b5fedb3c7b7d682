"""Whole commands that do little: start-up is what they cost."""

import sys
from collections.abc import Iterator

from tests.benchmarks.kit import MEM, SQLITE_UTILS, Bench, Measured, beside


def measure(bench: Bench) -> Iterator[Measured]:
    """Yield the rows about start-up."""
    small, large = bench.filled(20), bench.filled(bench.scale.facts_shown)
    folder, rounds = bench.folder, bench.scale.rounds
    show = [MEM, "show", "--limit", "20", "--db", str(small)]
    utils = [SQLITE_UTILS, "rows", str(small), "facts"]
    yield beside("show", show, [sys.executable, "-c", "import typer"], folder, rounds=rounds)
    yield beside("show-utils", show, utils, folder, rounds=rounds)
    yield beside("show-terminal", show, utils, folder, rounds=rounds, how="terminal")
    yield beside("show-many", [*show[:-1], str(large)], show, folder, rounds=rounds)
    yield beside("help", [MEM, "--help"], [SQLITE_UTILS, "--version"], folder, rounds=rounds)
