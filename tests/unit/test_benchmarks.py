"""The table of figures: every row has what it is held to and somebody who measures it. No time is looked at here."""

import dataclasses
import os
import sqlite3
from pathlib import Path

import pytest

from tests.benchmarks.kit import SCALES, Measured, Scale, Unmeasured, spent
from tests.benchmarks.rows import GROUPS, ROWS, Target
from tests.benchmarks.run import MEASURES, cells, main, table

ROOT = Path(__file__).parents[2]
CHEAP = ("startup", "log", "recall", "tombstones")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of a tiny run of the cheap groups, and the exit code."""
    output = tmp_path_factory.mktemp("page") / "figures.md"
    code = main(["--scale", "tiny", "--only", *reversed(CHEAP), "--output", str(output)])
    return output.read_text(encoding="utf-8"), code


def lines_of(page):
    """Return the cells of each line of the table."""
    return [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("|")]


def test_every_row_has_a_group_a_target_and_a_key_of_its_own():
    assert len({row.key for row in ROWS}) == len(ROWS) > 20
    assert {row.group for row in ROWS} == set(GROUPS) == set(MEASURES)
    assert all(row.target.bound > 0 and row.operation and row.peer for row in ROWS)


def test_the_rows_of_a_group_stand_together_in_the_order_of_the_groups():
    places = [GROUPS.index(row.group) for row in ROWS]

    assert places == sorted(places)


@pytest.mark.parametrize("scale", SCALES)
def test_every_size_of_a_row_is_one_of_the_scale(scale):
    lines = lines_of("\n".join(table({}, GROUPS, SCALES[scale])))

    assert len(lines) == len(ROWS) + 2
    assert not any("{" in line[0] for line in lines)
    assert {line[-1] for line in lines[2:]} == {"not measured"}


def test_no_scale_is_larger_than_the_full_one():
    for name in Scale.__dataclass_fields__:
        assert getattr(SCALES["tiny"], name) <= getattr(SCALES["small"], name) <= getattr(SCALES["full"], name)


@pytest.mark.parametrize(
    ("target", "figure", "peak_bytes", "held", "said"),
    [
        (Target(bound=1.15), 1.15, None, True, "≤ 1.15×"),
        (Target(bound=1.15), 1.16, None, False, "≤ 1.15×"),
        (Target(bound=50, at_least=True), 49.9, None, False, "≥ 50×"),
        (Target(bound=50, at_least=True), 50, None, True, "≥ 50×"),
        (Target(bound=5, unit="ms"), 4, None, True, "≤ 5 ms"),
        (Target(bound=3, peak_mb=150), 2, 150_000_000, True, "≤ 3×, 150 MB"),
        (Target(bound=3, peak_mb=150), 2, 150_000_001, False, "≤ 3×, 150 MB"),
        (Target(bound=3, peak_mb=150), 4, 1, False, "≤ 3×, 150 MB"),
    ],
)
def test_a_target_says_what_holds_it(target, figure, peak_bytes, held, said):
    assert target.holds(figure, peak_bytes) is held
    assert str(target) == said


def test_a_verdict_stands_beside_both_sides_the_figure_and_the_target():
    row = next(row for row in ROWS if row.key == "transcript")
    one = Measured(key=row.key, ours="20 s", peer="10 s", figure=2.0, peak_bytes=100_000_000)

    assert cells(row, one) == ("20 s, 100 MB", "10 s", "2.00×", "≤ 3×, 150 MB", "held")
    assert cells(row, dataclasses.replace(one, figure=1_234))[2:] == ("1,234×", "≤ 3×, 150 MB", "missed")


def test_a_tiny_run_measures_each_row_of_its_groups(page):
    text, code = page
    head, rule, *lines = lines_of(text)

    assert code == 0
    assert head == ["operation", "peer", "mem", "peer took", "figure", "target", "verdict"]
    assert set(rule[0]) == {"-", "|"}
    assert len(lines) == len([row for row in ROWS if row.group in CHEAP])
    assert all(len(line) == len(head) for line in lines)
    assert {line[-1] for line in lines} <= {"held", "missed"}


def test_the_page_says_where_when_and_how_it_was_made(page):
    text, _ = page
    head = text.partition("|")[0]

    assert f"{os.cpu_count()} processors" in head
    assert f"SQLite {sqlite3.sqlite_version}" in head
    assert "python tests/benchmarks/run.py --scale tiny --only tombstones" in head


def test_a_group_that_cannot_be_measured_is_told_and_stops_no_other(capsys, tmp_path):
    nobody = str(tmp_path / "no-python")
    code = main(["--scale", "tiny", "--only", "budget", "tombstones", "--oracle", nobody])
    verdicts = {line[0]: line[-1] for line in lines_of(capsys.readouterr().out)[2:]}

    assert code == 1
    assert verdicts.pop("tombstone check at 20 value tombstones") in {"held", "missed"}
    assert set(verdicts.values()) == {"not measured"}


def test_without_the_real_library_its_rows_are_left_out_and_that_is_said(capsys, monkeypatch):
    monkeypatch.delenv("MEM_ORACLE_PYTHON", raising=False)
    code = main(["--scale", "tiny", "--only", "budget"])
    out = capsys.readouterr().out

    assert code == 0
    assert "not measured beside the real library" in out
    assert [line[-1] == "not measured" for line in lines_of(out)[2:]] == [True, True, False, False]


def test_what_a_process_took_is_measured_with_files_or_a_terminal(tmp_path):
    asks = ["python3", "-c", "import os, sys; print(os.isatty(0), os.isatty(1)); sys.exit(len(sys.stdin.readline()))"]
    given, output = tmp_path / "given", tmp_path / "output"
    given.write_text("ab\n")
    piped = spent(asks, tmp_path, given=given, output=output, codes=(3,))

    assert (piped.code, output.read_text()) == (3, "False False\n")
    assert piped.cpu_s > 0
    assert piped.peak_bytes > 1_000_000
    shown = ["python3", "-c", "import os, sys; sys.exit(os.isatty(0) + os.isatty(1) + os.get_terminal_size().lines)"]
    assert spent(shown, tmp_path, how="terminal", codes=(62,)).code == 62


def test_a_process_that_fails_is_named_with_what_it_said(tmp_path):
    with pytest.raises(Unmeasured, match=r"exit.* ended with 7"):
        spent(["python3", "-c", "exit(7)"], tmp_path)
    with pytest.raises(Unmeasured, match="could not be started"):
        spent([str(tmp_path / "nothing")], tmp_path)


def test_the_readme_names_the_command():
    assert "python tests/benchmarks/run.py" in (ROOT / "README.md").read_text(encoding="utf-8")
