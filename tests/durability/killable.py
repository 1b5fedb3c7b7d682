"""A process that runs commands in forks of itself, each killed before its Nth SQL statement.

Reads one JSON request a line: `{"words": [...], "kill": N or null}`; answers with one line: how many statements ran
and how it ended. Forking a process that has imported everything and loaded the vocabulary takes milliseconds, where
starting one takes seconds.
"""

import gc
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from typing import Any

import time_machine

from memcli.cli import GROUPS, main
from memcli.store import file
from memcli.terms import DEFAULT_ENCODING
from memcli.tokens import load_vocabulary

for module in (
    *GROUPS,
    "memcli.store.writer",
    "memcli.store.upgrade",
    "memcli.store.check",
    "memcli.bring",
    "memcli.render.layout",
    "memcli.render.terminal",
    "memcli.render.words",
    "sqlite_utils",
):
    import_module(module)
load_vocabulary(DEFAULT_ENCODING)


def count_statements(limit: int | None, seen: list[str]) -> None:
    """Watch every connection to a memory file, and end this process before statement `limit`."""

    def before(statement: str) -> None:
        if len(seen) == limit:
            os.kill(os.getpid(), signal.SIGKILL)
        seen.append(" ".join(statement.split())[:60])

    def watched(opening: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
        def opened(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            conn = opening(*args, **kwargs)
            conn.set_trace_callback(before)
            return conn

        return opened

    # Where connections are made, not what is done with them: everything else is what users run.
    file.connect = watched(file.connect)
    file.create = watched(file.create)


def run(words: list[str], limit: int | None, report: int) -> None:
    """Run one command in this process, say what it executed, and end."""
    seen: list[str] = []
    count_statements(limit, seen)
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    code = main(words)
    with os.fdopen(report, "w") as answer:
        json.dump({"code": code, "statements": seen}, answer)
    os._exit(0)


def serve() -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            run(request["words"], request["kill"], writing)
        os.close(writing)
        with os.fdopen(reading) as answer:
            said = answer.read()
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        told = json.loads(said) if said else {"code": None, "statements": []}
        sys.stdout.write(json.dumps({"killed": killed, **told}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    # A fork that collects garbage, or counts references of its own, copies the pages it touches.
    gc.collect()
    gc.freeze()
    with time_machine.travel(datetime.fromisoformat(sys.argv[1]), tick=False):
        serve()
