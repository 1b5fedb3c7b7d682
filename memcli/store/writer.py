"""`Writer`: the one way to change a memory file, inside one transaction."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from memcli.errors import NotPermitted, Refused
from memcli.facts import Actor, Claim, Written
from memcli.store import file
from memcli.store.erase import Erasing
from memcli.store.seals import seal
from memcli.store.store import Store
from memcli.terms import Op
from memcli.text import pack


class Writer(Erasing):
    """Changes to one file in one scope by one actor: every method checks, changes and writes its audit row.

    Checks come in this order: scope, tombstone, the version the caller saw, slot conflict, duplicate.
    """

    def offer(self, claim: Claim) -> Written | Refused:
        """Offer one fact of many: return what became of it, or the refusal, which is recorded and stops nothing else.

        Raises:
            NotPermitted: Nothing may be offered to this file at all.
        """
        try:
            return self.add(claim)
        except NotPermitted:
            raise
        except Refused as problem:
            if problem.target is not None:
                self.refused(problem)
            return problem

    def refused(self, problem: Refused) -> None:
        """Record a refusal: what stood in the way, and the digest of what was offered."""
        offered = problem.offered
        self.event(
            Op.REFUSE,
            problem.target,
            after=None if offered is None else seal(self.key, "offered", (pack(offered),)),
            reason=problem.code,
        )


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
                Writer(store, conn, actor, None).refused(problem)
        raise
