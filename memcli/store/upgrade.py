"""Bringing an older file to the present schema, after a backup."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memcli import clock, schema
from memcli.errors import Damaged, WrongSchema
from memcli.facts import Actor, Micros
from memcli.store import basics, file, roll, rows, views
from memcli.store.seals import seal
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
    backup = _backup_path(place, version, now())
    try:
        with _kept_if_used(backup):
            _back_up(conn, backup)
            with file.immediate(conn):
                if _version(conn, place) == schema.VERSION:  # another process was faster
                    raise _Done
                applied = schema.upgrade(conn)
                _check_chain(conn, place, now)
                _seal_anew(conn, place)
                _record(place, conn, actor, applied, now)
        file.close(conn, wrote=True)
        return applied, backup
    except _Done:
        return [], None
    finally:
        conn.close()


class _Done(Exception):
    """There was nothing left to do."""


@contextmanager
def _kept_if_used(backup: Path) -> Iterator[None]:
    """Take the backup away where nothing was changed, so that no half of one is taken for a whole."""
    try:
        yield
    except BaseException:
        for end in ("", "-journal", "-wal", "-shm"):
            Path(f"{backup}{end}").unlink(missing_ok=True)
        raise


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


def _backup_path(place: Path, version: int, moment: Micros) -> Path:
    stamp = clock.format_instant(moment - moment % 1_000_000).replace(":", "")
    return place.with_name(f"{place.name}.schema{version}.{stamp}.backup")


def _back_up(conn: sqlite3.Connection, target: Path) -> None:
    copy = sqlite3.connect(target)
    try:
        conn.backup(copy)
    finally:
        copy.close()


def _check_chain(conn: sqlite3.Connection, place: Path, now: Callable[[], Micros]) -> None:
    """Say nothing where every event follows from the one before, so that no broken log is sealed as if it were whole.

    Raises:
        Damaged: One does not.
    """
    from memcli.store.check import verify_log

    for finding in verify_log(Store.unborn(place, conn, now=now), deep=False).findings:
        raise Damaged(f"{place}: at {finding.place} {finding.message}", hint="restore it from a backup")


def _seal_anew(conn: sqlite3.Connection, place: Path) -> None:
    """Seal evidence together with the place of its message, and count the rows of which no event speaks.

    Before schema 3 neither was so.

    Raises:
        Damaged: A row that would be sealed or counted was changed behind the file's back.
    """
    key, _ = basics.read_keys(conn, place)
    columns = len(rows.PROVENANCE_FIELDS)
    fresh: list[tuple[bytes, int]] = []
    for *raw, number in conn.execute(rows.SELECT_PROVENANCE.replace(" from ", ", p.id from ", 1)):
        fields, (its_seal, *message) = raw[:columns], raw[columns:]
        if seal(key, "provenance", fields) != its_seal:
            raise rows.behind_our_back(f"the evidence of fact number {fields[0]}")
        fresh.append((rows.provenance_seal(key, fields, message), number))
    conn.executemany("update provenance set seal = ? where id = ?", fresh)
    for raw in conn.execute(f"select {', '.join(rows.DERIVATION_FIELDS)}, seal from derivations"):
        rows.derivation(key, raw)
    newest = conn.execute("select seq, hash from audit order by seq desc limit 1").fetchone()
    roll.count_anew(conn, key, newest)


def _record(place: Path, conn: sqlite3.Connection, actor: Actor, applied: list[str], now: Callable[[], Micros]) -> None:
    from memcli.store.writer import Writer

    store = Store.unborn(place, conn, now=now)
    views.rebuild(conn, None, store.settings["encoding"])
    writer = Writer(store, conn, actor, None)
    writer.event(Op.MIGRATE, None, reason="applied " + ", ".join(applied))
    writer.finish()
