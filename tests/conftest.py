"""What holds for every test: how hypothesis looks for counter-examples, where files lie, what coverage watches."""

import os
import shutil
import signal
import tempfile
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest
from hypothesis import settings

# Shared machines are slow now and then, so no example is timed. In CI the same examples run every time: a change
# is judged by what it changes, and the search for new counter-examples happens at the desk.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("desk", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

MEMORY = Path("/dev/shm")
ROOM = 2 << 30
"""Bytes that must be free in memory before temporary files go there; a run takes a fraction of them."""

PLAYED = frozenset({"acceptance", "conformance", "docs", "durability", "property"})
"""Folders whose tests play stories, or one thing on very many examples, over code that the others go through once."""


def _into_memory() -> None:
    """Have temporary files lie in memory, where there is room and nobody said otherwise.

    Every change of a memory file waits for the disk several times, which no test can tell from not waiting.
    """
    if any(name in os.environ for name in ("TMPDIR", "TEMP", "TMP", "PYTEST_DEBUG_TEMPROOT")):
        return
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(MEMORY).free >= ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


_into_memory()

# A run in the background ignores what some tests send to the commands that they start, and so would these.
for ignored, heard in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, heard)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "no_cover: does at length what others do, where coverage multiplies the time")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if PLAYED & set(item.path.relative_to(Path(__file__).parent).parts[:1]):
            item.add_marker("no_cover")


def pytest_collection_finish(session: pytest.Session) -> None:
    # A module runs once, when it is imported first, and that may be in a test that coverage does not watch.
    if session.config.pluginmanager.hasplugin("_cov"):
        for module in walk_packages(import_module("memcli").__path__, "memcli."):
            if not module.name.endswith("__main__"):  # it sets up a process of its own
                import_module(module.name)
