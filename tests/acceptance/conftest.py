"""Memories for the tests, and `--report FILE.md`, which writes the verdicts of a run."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.acceptance.driver import Mem
from tests.acceptance.report import CONTROLS, FAIL, PASS, UNEXERCISED, Outcome, markdown

KNOWN = "acceptance"
"""The name under which a test carries what it shows, also from a worker to the process that reports."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--report", metavar="FILE.md", default=None, help="write the acceptance verdicts as Markdown")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "shows(id): the id of the protocol that a test belongs to")
    config.addinivalue_line("markers", "matrix(name, row, column): the parameters that place a test in a matrix")
    config.addinivalue_line("markers", "side(name): the side of the split score that a test counts for")
    path = config.getoption("--report", default=None)
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter(Path(path)), "acceptance-report")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        shows, side = (item.get_closest_marker(name) for name in ("shows", "side"))
        for mark in (shows,) if shows else ():
            assert mark.args[0] in CONTROLS, f"the protocol has no {mark.args[0]}"
        known = {"shows": shows and shows.args[0], "side": side and side.args[0], "cell": _cell(item)}
        item.user_properties.append((KNOWN, known))


def _cell(item: pytest.Item) -> list[str] | None:
    mark = item.get_closest_marker("matrix")
    if mark is None or not isinstance(item, pytest.Function):
        return None
    name, *parameters = mark.args
    return [name, *(str(item.callspec.params[parameter]) for parameter in parameters)]


class Reporter:
    """Collects the verdict of every test and writes them when the run ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._outcomes: dict[str, Outcome] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a phase of a test adds to its verdict: a failure stands, a pass counts when the test itself ran."""
        known: dict[str, Any] = dict(report.user_properties).get(KNOWN) or {}  # type: ignore[assignment]
        if not known:
            return
        verdict = FAIL if report.failed or hasattr(report, "wasxfail") else UNEXERCISED if report.skipped else PASS
        if verdict is PASS and (report.when != "call" or report.nodeid in self._outcomes):
            return
        self._outcomes[report.nodeid] = Outcome(
            test=report.nodeid.rpartition("/")[2],
            verdict=verdict,
            why=_why(report) if verdict is UNEXERCISED else "",
            shows=known.get("shows"),
            side=known.get("side"),
            cell=tuple(known["cell"]) if known.get("cell") else None,
        )

    def pytest_sessionfinish(self) -> None:
        """Write the report."""
        self._path.write_text(markdown(list(self._outcomes.values())), encoding="utf-8")


def _why(report: pytest.TestReport) -> str:
    told = report.longrepr
    return str(told[2]).removeprefix("Skipped: ") if isinstance(told, tuple) else ""


@cache
def _made(admission: str) -> bytes:
    """Return what `mem init` makes; a second memory beside a first one is made by a command of its own."""
    with TemporaryDirectory() as folder:
        return Mem(Path(folder), admission=admission).path.read_bytes()


def _new(folder: Path, admission: str = "direct") -> Mem:
    (folder / "memory.db").write_bytes(_made(admission))
    return Mem(folder)


@pytest.fixture
def mem(tmp_path: Path) -> Mem:
    """Return a memory that believes what is written at once."""
    return _new(tmp_path)


@pytest.fixture
def reviewed(tmp_path: Path) -> Mem:
    """Return a memory in which only a person decides."""
    return _new(tmp_path, "review")


@pytest.fixture(scope="module")
def new_mem(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Mem]:
    """Return a maker of memories that live as long as the tests of one file."""
    return lambda: _new(tmp_path_factory.mktemp("memory"))
