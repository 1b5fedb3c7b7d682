"""Bringing an older file to the present schema, after a backup."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from memcli import clock, schema
from memcli.errors import Damaged, WrongSchema
from memcli.facts import Actor, Micros
from memcli.store import file, views
from memcli.store.store import Store
from memcli.terms import Op


def upgrade(place: Path, *, actor: Actor, now: Callable[[], Micros]) -> tuple[list[str], Path | None]:
    """Apply what is missing inside one transaction, and return the steps and the path of the backup.

    A file that is up to date gets no backup and no change.
    """
    version = _seen(place)
    if version == schema.VERSION:
        return [], None
    conn = file.connect(place, writing=True)
    try:
        backup = _backup(conn, place, version, now())
        with file.immediate(conn):
            if _version(conn, place) == schema.VERSION:  # another process was faster
                backup.unlink()
                return [], None
            applied = schema.upgrade(conn)
            _record(place, conn, actor, applied, now)
        file.close(conn, wrote=True)
        return applied, backup
    finally:
        conn.close()


def _seen(place: Path) -> int:
    # Looked at first: opening to write would turn a foreign database into one with a write-ahead log.
    conn = file.connect(place, writing=False)
    try:
        return _version(conn, place)
    finally:
        conn.close()


def _version(conn: sqlite3.Connection, place: Path) -> int:
    if conn.execute("pragma application_id").fetchone()[0] != schema.APPLICATION_ID:
        raise Damaged(f"{place} is no memory file", hint="name another with --db")
    version = int(conn.execute("pragma user_version").fetchone()[0])
    if version > schema.VERSION:
        raise WrongSchema(
            f"{place} has schema {version}, newer than the {schema.VERSION} this mem knows", hint="upgrade mem"
        )
    if version not in schema.DIGESTS or schema.digest(conn) != schema.DIGESTS[version]:
        raise Damaged(
            f"the tables or triggers of {place} were altered by another program", hint="restore it from a backup"
        )
    return version


def _backup(conn: sqlite3.Connection, place: Path, version: int, moment: Micros) -> Path:
    stamp = clock.format_instant(moment - moment % 1_000_000).replace(":", "")
    target = place.with_name(f"{place.name}.schema{version}.{stamp}.backup")
    copy = sqlite3.connect(target)
    try:
        conn.backup(copy)
    finally:
        copy.close()
    return target


def _record(place: Path, conn: sqlite3.Connection, actor: Actor, applied: list[str], now: Callable[[], Micros]) -> None:
    from memcli.store.writer import Writer

    store = Store.unborn(place, conn, now=now)
    views.rebuild(conn, None, store.settings["encoding"])
    writer = Writer(store, conn, actor, None)
    writer.event(Op.MIGRATE, None, reason="applied " + ", ".join(applied))
