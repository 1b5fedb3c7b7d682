"""Opening, locking and closing the file, and the translation of SQLite's errors into sentences."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memcli import schema
from memcli.errors import Busy, Damaged, MemError, NoFile, NoSpace, UsageError

TIMEOUT_S = 10.0
_HEADER = b"SQLite format 3\x00"


def _writer() -> int:
    return 1


def _folded(text: str | None) -> str | None:
    return None if text is None else text.casefold()


@contextmanager
def sentences(path: str) -> Iterator[None]:
    """Turn what SQLite raises into the error a person can act on.

    Raises:
        Busy: Another process holds the file past the timeout.
        NoSpace: The disk is full, or nothing can be written there.
        Damaged: The bytes are no database, or pages do not hold together.
    """
    try:
        yield
    except sqlite3.Error as problem:
        raise translated(problem, path) from problem
    except UnicodeDecodeError as problem:
        raise Damaged(f"{path} is damaged: a text in it is not UTF-8", hint="restore it from a backup") from problem


def translated(problem: sqlite3.Error, path: str) -> MemError:
    """Return the error that stands for what SQLite said."""
    code = getattr(problem, "sqlite_errorcode", None)
    primary = (code or 0) & 0xFF
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Busy(f"{path} is busy: another process holds it", hint="try again, or wait longer with MEM_TIMEOUT=60")
    if primary == sqlite3.SQLITE_FULL:
        return NoSpace(f"the disk that holds {path} is full; nothing was changed", hint="make room and try again")
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR):
        return NoSpace(
            f"{path} cannot be written: {problem}; nothing was changed",
            hint="check the permissions of the file and its folder",
        )
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA):
        return Damaged(f"{path} is damaged: {problem}", hint="restore it from a backup")
    if isinstance(problem, sqlite3.DatabaseError) and not isinstance(problem, sqlite3.ProgrammingError):
        return Damaged(f"{path} does not hold together: {problem}", hint="see what is wrong with `mem check`")
    return MemError(f"{path}: {problem}", hint="this is a bug in mem; please report it")


def timeout_s() -> float:
    """Return how long to wait for a busy file, in seconds: `MEM_TIMEOUT`, or 10.

    Raises:
        UsageError: It is set to no number of seconds.
    """
    given = os.environ.get("MEM_TIMEOUT")
    if given is None:
        return TIMEOUT_S
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise UsageError("MEM_TIMEOUT is no number of seconds from 0 to 3600", hint="try MEM_TIMEOUT=60")
    return seconds


def inspect(path: Path) -> None:
    """Say nothing where the path looks like a SQLite file.

    Raises:
        NoFile: Nothing is there.
        Damaged: It is a folder, empty, or no database.
    """
    shown = str(path)
    try:
        if not path.exists():
            raise NoFile(f"there is no memory file at {shown}", hint="make one with `mem init`, or name one with --db")
        if not path.is_file():
            raise Damaged(f"{shown} is no file", hint="name a memory file with --db")
        with path.open("rb") as stream:
            header = stream.read(16)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise NoSpace(f"{shown} cannot be opened: {reason}", hint="check the path and its permissions") from problem
    if not header:
        raise Damaged(f"{shown} is empty", hint="it was cut off or never written; restore it from a backup")
    if header != _HEADER:
        raise Damaged(f"{shown} is no memory file", hint="name another with --db, or make one with `mem init`")


def connect(path: Path, *, writing: bool) -> sqlite3.Connection:
    """Return a connection to an existing file, ready to look or to change.

    Looking opens read-write with `query_only`, since a read-only open leaves `-wal` and `-shm` behind; `immutable`
    is used only where the folder cannot be written and no WAL is there, so that nobody can be writing.
    """
    uri = _uri(path)
    wal = Path(f"{path}-wal")
    if not writing and not os.access(path.parent, os.W_OK) and not wal.exists():
        uri += "?immutable=1"
    elif not writing and not os.access(path, os.W_OK):
        uri += "?mode=ro"
    else:
        uri += "?mode=rw"
    conn = sqlite3.connect(uri, uri=True, timeout=timeout_s(), isolation_level=None, check_same_thread=False)
    try:
        configure(conn, writing=writing)
    except BaseException:
        conn.close()
        raise
    return conn


def _uri(path: Path) -> str:
    from urllib.parse import quote

    return "file:" + quote(os.fsencode(path.absolute()))


def configure(conn: sqlite3.Connection, *, writing: bool) -> None:
    """Set what every connection of ours relies on."""
    conn.create_function("mem_writer", 0, _writer)
    conn.create_function("mem_folded", 1, _folded, deterministic=True)
    conn.execute("pragma foreign_keys = on")
    conn.execute("pragma cache_size = -16384")
    if writing:
        conn.execute("pragma secure_delete = on")
        conn.execute("pragma synchronous = full")
        if conn.execute("pragma journal_mode").fetchone()[0] != "wal":
            conn.execute("pragma journal_mode = wal")
    else:
        conn.execute("pragma query_only = on")


def close(conn: sqlite3.Connection, *, wrote: bool) -> None:
    """Close, after folding the WAL back where we wrote, so that one file is left."""
    if wrote:
        try:
            conn.execute("pragma busy_timeout = 0")
            conn.execute("pragma wal_checkpoint(truncate)").fetchone()
        except sqlite3.Error:
            pass  # a reader or another writer is at work; the last one to close does it
    conn.close()


@contextmanager
def immediate(conn: sqlite3.Connection) -> Iterator[None]:
    """Hold the write lock; commit at the end, roll back on any error.

    Raises:
        Busy: This connection holds it already.
    """
    if conn.in_transaction:
        raise Busy("a change of this file is being made already", hint="end that one first")
    conn.execute("begin immediate")
    try:
        yield
        conn.execute("commit")
    except BaseException:
        conn.rollback()  # which does nothing where SQLite has rolled back by itself
        raise


def create(path: Path, *, shown: Path) -> sqlite3.Connection:
    """Return a connection to a new file with the tables in it, inside a transaction that the caller commits.

    Args:
        shown: What the file will be called, for the sentence.

    Raises:
        UsageError: Something is there already.
        NoSpace: The folder is missing or cannot be written.
    """
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    except FileExistsError:
        raise UsageError(f"{shown} exists already; nothing was changed", hint="name another file with --db") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise NoSpace(f"{shown} cannot be made: {reason}", hint="check its folder") from problem
    os.close(handle)
    conn = sqlite3.connect(_uri(path) + "?mode=rw", uri=True, timeout=timeout_s(), isolation_level=None)
    try:
        configure(conn, writing=True)
        conn.execute("begin immediate")
        schema.upgrade(conn)
    except BaseException:
        conn.close()
        raise
    return conn
