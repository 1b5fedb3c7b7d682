"""Start-up is all imports: what a piped `mem show` loads is kept small, because scripts call it often."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_MODULES = 170  # typer alone loads 139 of them, sqlite3 three more
HEAVY = frozenset(
    {
        "click",
        "confusable_homoglyphs",
        "importlib.metadata",
        "importlib.resources",
        "pydantic",
        "rapidfuzz",
        "regex",
        "rich",
        "sqlite_utils",
        "tiktoken",
    }
)

CHILD = """
import sys

report, *words = sys.argv[1:]
from memcli.cli import main

try:
    code = main(words)
except SystemExit as end:
    code = end.code
loaded = sorted(sys.modules)
import json, pathlib
pathlib.Path(report).write_text(json.dumps({"code": code or 0, "modules": loaded}))
"""


def mem(report, *words):
    """Return what one command prints through a pipe, its exit code and the modules that it loaded."""
    # What measures coverage, or a person's own settings, would load modules or choose another file in the child.
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("COV", "MEM_", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(report), *words],
        env=kept | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(report.read_text())


@pytest.fixture
def shown(tmp_path):
    """A piped `mem show` of a file that holds one readable fact."""
    report, db = tmp_path / "report.json", str(tmp_path / "memory.db")
    for words in (("init", "--admission", "direct", "--db", db), ("add", "tea is hot", "--db", db)):
        output, ended = mem(report, *words)
        assert ended["code"] == 0, output
    return mem(report, "show", "--db", db)


def test_a_piped_show_prints_the_fact(shown):
    output, ended = shown

    assert ended["code"] == 0
    assert "tea is hot" in output


def test_a_piped_show_loads_no_heavy_library(shown):
    _, ended = shown

    assert {"sqlite3", "memcli.cli"} <= set(ended["modules"])
    assert HEAVY & set(ended["modules"]) == set()


def test_a_piped_show_loads_few_modules(shown):
    _, ended = shown

    assert len(ended["modules"]) <= MOST_MODULES, "\n".join(ended["modules"])


@pytest.mark.parametrize("library", sorted(HEAVY))
def test_the_libraries_that_must_not_be_loaded_are_named_as_python_names_them(library, tmp_path):
    report = tmp_path / "modules.json"
    pytest.importorskip(library, reason="not installed here, so nothing could load it")
    child = (
        f"import {library}, json, sys, pathlib; pathlib.Path({str(report)!r}).write_text(json.dumps([*sys.modules]))"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", child], check=True)

    assert library in json.loads(report.read_text())
