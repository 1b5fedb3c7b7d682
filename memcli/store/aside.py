"""Triggers and indexes laid aside while many rows come in, and put back before the transaction ends.

A row that is written beside them costs about half as much, and an index that is made at once costs less than one that
grows row by row. All of it happens inside one transaction: nobody else ever sees the file without them.
"""

import sqlite3
from collections.abc import Collection

_TABLES = ("facts", "versions", "provenance", "audit", "current")

_LOOKED_UP = ("versions_by_text", "versions_by_slot", "facts_by_slot")
"""Indexes by which what comes in is recognised meanwhile."""


class Aside:
    """What was laid aside, by the statements that make it again."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        found = conn.execute(
            "select type, name, sql from sqlite_schema where type in ('trigger', 'index') and sql is not null"
            f" and tbl_name in ({_marks(_TABLES)}) and name not in ({_marks(_LOOKED_UP)}) order by rowid",
            (*_TABLES, *_LOOKED_UP),
        ).fetchall()
        self._statements = [str(sql) for _, _, sql in found]
        for kind, name, _ in found:
            conn.execute(f"drop {kind} {name}")

    def put_back(self) -> None:
        """Make again what was laid aside, once."""
        statements, self._statements = self._statements, []
        for sql in statements:
            self._conn.execute(sql)


def pays(conn: sqlite3.Connection, coming: int, *, least: int) -> bool:
    """Return whether so many facts come in that making the indexes anew costs less than keeping them up to date."""
    held = int(conn.execute("select coalesce(max(id), 0) from versions").fetchone()[0])
    return coming >= max(least, held)


def _marks(names: Collection[str]) -> str:
    return ", ".join("?" * len(names))
