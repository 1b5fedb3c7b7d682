"""Opening, locking and closing the file, and the translation of SQLite's errors into sentences."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memcli import schema
from memcli.errors import Busy, Damaged, Interrupted, MemError, NoFile, NoSpace, Stale, UsageError

TIMEOUT_S = 10.0
_HEADER = b"SQLite format 3\x00"
_ANYBODY_WRITES = 0o222
_NO_ROOM = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR}
)
_UNREAD = frozenset({sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_FSTAT})
"""What SQLite says where the disk gives nothing back."""


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
    if primary in _NO_ROOM:
        return _no_room(problem, path)
    if primary == sqlite3.SQLITE_INTERRUPT:
        return Interrupted("stopped; what was done before is kept")
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA):
        return Damaged(f"{path} is damaged: {problem}", hint="restore it from a backup")
    if isinstance(problem, sqlite3.DatabaseError) and not isinstance(problem, sqlite3.ProgrammingError):
        return Damaged(f"{path} does not hold together: {problem}", hint="see what is wrong with `mem check`")
    return MemError(f"{path}: {problem}", hint="this is a bug in mem; please report it")


def _no_room(problem: sqlite3.Error, path: str) -> NoSpace:
    code = problem.sqlite_errorcode
    if code == sqlite3.SQLITE_FULL:
        return NoSpace(f"the disk that holds {path} is full; the change was not made", hint="make room and try again")
    if code in _UNREAD:
        return NoSpace(f"{path} cannot be read: {problem}", hint="check the disk, or restore the file from a backup")
    return NoSpace(
        f"{path} cannot be written: {problem}; the change was not made",
        hint="check the permissions of the file and its folder, and the room on the disk",
    )


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


def identity(path: Path) -> tuple[int, int] | None:
    """Return what the system knows a file by, whatever it is called; None where none is there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def check_same(path: Path, known: tuple[int, int] | None) -> None:
    """Say nothing where the file at the path is the one that was opened.

    Raises:
        Stale: It is another, or none: what was read belongs to the one file, keys included, and would be written to
            the other.
    """
    if identity(path) != known:
        raise Stale(
            f"{path} was replaced or removed while it was open; the change was not made",
            hint="run the command again, on the file that is there now",
        )


def connect(path: Path, *, writing: bool) -> sqlite3.Connection:
    """Return a connection to an existing file, ready to look or to change.

    Looking opens read-write with `query_only`, since a read-only open leaves `-wal` and `-shm` behind; `immutable`
    is used only where nobody can be writing.

    Raises:
        NoSpace: The file is to be changed and may not be; or a change that was cut off lies beside a file that may
            only be read, and would have to be settled.
    """
    if writing and not os.access(path, os.W_OK):
        # SQLite would open it all the same, and leave a -wal and a -shm beside it that nobody may write.
        raise NoSpace(
            f"{path} cannot be written: it is read-only; the change was not made",
            hint="check the permissions of the file and its folder",
        )
    uri = f"{_uri(path)}?mode=rw" if writing else f"{_uri(path)}?{_manner(path)}"
    conn = sqlite3.connect(uri, uri=True, timeout=timeout_s(), isolation_level=None, check_same_thread=False)
    try:
        configure(conn, writing=writing)
    except BaseException:
        conn.close()
        raise
    return conn


def _manner(path: Path) -> str:
    """Return how to open a file to look at it: as one that others may write, that we may not, or that nobody does."""
    place = Path(os.path.realpath(path))  # a link may lie in a folder of other rights, and SQLite follows it
    # A file without any right to write is one that nobody writes, and -wal and -shm with its rights would stay so.
    sealed = not os.access(place, os.W_OK) and not place.stat().st_mode & _ANYBODY_WRITES
    if sealed or not os.access(place.parent, os.W_OK):
        log, index, journal = (_size(Path(f"{place}{end}")) for end in ("-wal", "-shm", "-journal"))
        if journal or (log and index is None):
            raise NoSpace(
                f"beside {path} lies a change that was cut off, and nothing may be written there to settle it",
                hint=f"copy {path} and what lies beside it to a folder of yours, and look there",
            )
        if not log and (index is None or log is None):
            return "immutable=1"
    return "mode=rw" if os.access(place, os.W_OK) else "mode=ro"


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _uri(path: Path) -> str:
    from urllib.parse import quote

    return "file:" + quote(os.fsencode(path.absolute()))


def configure(conn: sqlite3.Connection, *, writing: bool) -> None:
    """Set what every connection of ours relies on."""
    conn.create_function("mem_writer", 0, _writer)
    conn.create_function("mem_folded", 1, _folded, deterministic=True)
    conn.execute("pragma foreign_keys = on")
    conn.execute(f"pragma cache_size = {-65536 if writing else -16384}")
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


@contextmanager
def moment(conn: sqlite3.Connection) -> Iterator[None]:
    """Let everything that is asked inside see one moment of the file, whoever writes meanwhile."""
    if conn.in_transaction:
        yield
        return
    conn.execute("begin")
    try:
        yield
    finally:
        conn.rollback()  # nothing was changed, and a commit may fail where pages are damaged


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
