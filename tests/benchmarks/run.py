"""Every figure beside its peer and its target, as one table: `python tests/benchmarks/run.py [--scale full]`.

Processes are measured in processor time, user and system together, and take turns with their peer; the median counts.
What runs in threads, or in several processes at once, is measured by the clock. Figures move from machine to machine,
the ratios of one run hold.

The real LlamaIndex is asked where an interpreter that has llama-index-core 0.14.25 is named by --oracle or by
MEM_ORACLE_PYTHON; without one its rows are left out, and the table says so.
"""

import argparse
import os
import platform
import shlex
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from memcli import __version__  # noqa: E402 - the checkout has to be on the path first
from tests.benchmarks import budget, counting, exchange, large, startup  # noqa: E402
from tests.benchmarks.kit import SCALES, Bench, Measured, Scale, Unmeasured, told  # noqa: E402
from tests.benchmarks.rows import GROUPS, ROWS, Row  # noqa: E402

MEASURES: Mapping[str, Callable[[Bench], Iterator[Measured]]] = {
    "startup": startup.measure,
    "counting": counting.measure,
    "budget": budget.measure,
    "facts": exchange.measure_facts,
    "log": large.measure_log,
    "recall": large.measure_recall,
    "writers": large.measure_writers,
    "tombstones": large.measure_tombstones,
    "transcripts": exchange.measure_transcripts,
}
"""What measures each group."""

NO_ORACLE = "no Python with llama-index-core was named, with --oracle or MEM_ORACLE_PYTHON"


def measured(bench: Bench, groups: Sequence[str]) -> tuple[dict[str, Measured], dict[str, str]]:
    """Return what each row came to, by its key, and why a group could not be measured, by its name."""
    found: dict[str, Measured] = {}
    failed: dict[str, str] = {}
    for group in groups:
        told(f"measuring {group}")
        try:
            for one in MEASURES[group](bench):
                told(f"  {one.key}: {one.ours}, beside {one.peer}")
                found[one.key] = one
        except (Unmeasured, OSError, subprocess.CalledProcessError) as problem:
            told(f"  stopped: {problem}")
            failed[group] = str(problem)
    return found, failed


def table(found: Mapping[str, Measured], groups: Sequence[str], scale: Scale) -> list[str]:
    """Return the lines of the table: every row of these groups, those that were not measured too."""
    sizes = {name: f"{getattr(scale, name):,}" for name in Scale.__dataclass_fields__}
    lines = ["| operation | peer | mem | peer took | figure | target | verdict |", "|---|---|---|---|---|---|---|"]
    for row in ROWS:
        if row.group in groups:
            words = (row.operation.format(**sizes), row.peer)
            lines.append("| " + " | ".join([*words, *cells(row, found.get(row.key))]) + " |")
    return lines


def cells(row: Row, one: Measured | None) -> tuple[str, ...]:
    """Return what is behind the names of a row: both sides, the figure, the target and the verdict."""
    if one is None:
        return "–", "–", "–", str(row.target), "not measured"
    memory = "" if row.target.peak_mb is None or one.peak_bytes is None else f", {one.peak_bytes / 1e6:.0f} MB"
    figure = f"{one.figure:.2f}" if one.figure < 10 else f"{one.figure:,.0f}"
    unit = "×" if row.target.unit == "×" else f" {row.target.unit}"
    verdict = "held" if row.target.holds(one.figure, one.peak_bytes) else "missed"
    return one.ours + memory, one.peer, figure + unit, str(row.target), verdict


def header(command: str) -> list[str]:
    """Return where, when and how the table was made."""
    machine = f"{os.cpu_count()} processors ({platform.machine()})"
    versions = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    what = f"mem {__version__} on {datetime.now(UTC):%Y-%m-%d}, {machine}, {versions}, as printed by"
    return [what, "", f"    {command}", ""]


def report(bench: Bench, groups: Sequence[str], command: str) -> tuple[str, bool]:
    """Return the whole page in Markdown, and whether every group could be measured."""
    found, failed = measured(bench, groups)
    lines = [*header(command), *table(found, groups, bench.scale)]
    notes = [f"{group} stopped: {why}" for group, why in failed.items()]
    if bench.oracle is None and "budget" in groups:
        notes.append(f"not measured beside the real library: {NO_ORACLE}")
    if notes:
        lines += ["", *(f"- {note}" for note in notes)]
    return "\n".join(lines) + "\n", not failed


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--scale",
        choices=SCALES,
        default="small",
        help="full: the sizes of the targets; tiny: only to see that all of it runs [small]",
    )
    parser.add_argument("--only", nargs="+", choices=GROUPS, metavar="GROUP", help=f"some of {', '.join(GROUPS)}")
    parser.add_argument("--oracle", metavar="PYTHON", default=os.environ.get("MEM_ORACLE_PYTHON") or None)
    parser.add_argument("--output", type=Path, metavar="FILE.md", help="write the page there too")
    words = list(sys.argv[1:] if argv is None else argv)
    chosen = parser.parse_args(words)
    groups = [group for group in GROUPS if chosen.only is None or group in chosen.only]
    with tempfile.TemporaryDirectory(prefix="mem-bench-") as folder:
        bench = Bench(folder=Path(folder), scale=SCALES[chosen.scale], oracle=chosen.oracle)
        page, whole = report(bench, groups, shlex.join(["python", "tests/benchmarks/run.py", *words]))
    if chosen.output is not None:
        chosen.output.write_text(page, encoding="utf-8")
    sys.stdout.write(page)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
