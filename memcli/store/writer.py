"""`Writer`: the one way to change a memory file, inside one transaction."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from memcli.errors import Refused
from memcli.facts import Actor
from memcli.store import file
from memcli.store.copy import Restoring
from memcli.store.effects import Acting
from memcli.store.remember import Remembering
from memcli.store.store import Store


class Writer(Remembering, Acting, Restoring):
    """Changes to one file in one scope by one actor: every method checks, changes and writes its audit row.

    Checks come in this order: scope, tombstone, the version the caller saw, slot conflict, duplicate.
    """


@contextmanager
def session(store: Store, conn: sqlite3.Connection, actor: Actor, reason: str | None) -> Iterator[Writer]:
    """Hold the write lock around a writer; a refusal rolls everything back and is then recorded by itself."""
    try:
        with file.immediate(conn):
            store.refresh()  # another process may have changed settings or scopes since they were read
            writer = Writer(store, conn, actor, reason)
            yield writer
            writer.finish()
    except Refused as problem:
        if problem.target is not None:
            with file.immediate(conn):
                writer = Writer(store, conn, actor, None)
                writer.refused(problem)
                writer.finish()
        raise


class _Over(Exception):
    """A rehearsal is over; everything is rolled back."""


@contextmanager
def rehearsal(store: Store, conn: sqlite3.Connection, actor: Actor, reason: str | None) -> Iterator[Writer]:
    """Hold the write lock around a writer, and keep nothing of what it did."""
    with suppress(_Over), file.immediate(conn):
        store.refresh()
        yield Writer(store, conn, actor, reason)
        raise _Over
