"""How far long work has come: one line on standard error, only at a terminal, only where it takes a while."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memcli.text import shorten, visible

PATIENCE_S = 0.7
"""How long work may take before it says how far it is, in seconds."""


@contextmanager
def counting() -> Iterator[Callable[[str, int], None]]:
    """Yield what is told a path and a count; the line is taken away at the end."""
    if not sys.stderr.isatty():
        yield lambda _path, _count: None
        return
    from rich.console import Console

    status = Console(stderr=True).status("")
    began = time.monotonic()

    def tell(path: str, count: int) -> None:
        if time.monotonic() - began > PATIENCE_S:
            status.start()
            status.update(f"{shorten(visible(path), 60)}: {count:,} taken")

    try:
        yield tell
    finally:
        status.stop()
