"""Foreign SQLite databases: opened without a trace beside them, and never written."""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from memcli.errors import Unreadable
from memcli.exchange.looks import looked_for
from memcli.exchange.raw import RECORD_BYTES, Raw
from memcli.exchange.tables import TABLE_READERS
from memcli.facts import Found
from memcli.record import record

if TYPE_CHECKING:
    from memcli.exchange.shapes import TableReader, Warn

_MAGIC = b"SQLite format 3\0"
_OURS = 0x6D656D31
"""The application id of a memory file of mem."""

_STEPS = 200_000_000
"""How many steps of SQLite's machine one file may take: some minutes, which no honest file needs."""


def is_database(head: bytes) -> bool:
    """Return whether the first bytes are those of a SQLite database."""
    return head.startswith(_MAGIC)


@record
class Database:
    """A database whose reader is known."""

    raw: Raw
    reader: "TableReader"
    tried: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the name of its format."""
        return self.reader.name

    @property
    def title(self) -> str:
        """Return what a person calls the format."""
        return self.reader.title

    def read(self, warn: "Warn") -> Iterator[Found]:
        """Yield what stands in it.

        Raises:
            Unreadable: It is damaged, or takes beyond measure.
        """
        with _connected(self.raw) as conn:
            yield from self.reader.read_tables(conn, warn)


def find(raw: Raw, *, name: str) -> Database:
    """Return the reader with the most votes for its tables, or the one that is named.

    Raises:
        Unreadable: It is damaged, a memory file of mem, or has the tables of no known format.
    """
    readers = [reader for reader in TABLE_READERS if name in ("auto", reader.name)]
    tried = tuple(reader.name for reader in readers)
    with _connected(raw) as conn:
        ours = conn.execute("pragma application_id").fetchone()[0] == _OURS
        tables = {} if ours else _tables(conn)
    if ours:
        hint = "compare two with `mem diff`, or import what `mem export` wrote from it"
        raise Unreadable(raw.path, "it is a memory file of mem itself", tried=tried, hint=hint)
    votes = [reader.claims_tables(tables) for reader in readers]
    best = max(votes, default=0)
    if best <= 0:
        names = ", ".join(sorted(tables)[:6]) or "none"
        why = f"unrecognised format: it is a SQLite database with the tables {names}; {looked_for(tried)}"
        raise Unreadable(raw.path, why, tried=tried, hint="export it from the program that wrote it")
    return Database(raw=raw, reader=readers[votes.index(best)], tried=tried)


def _tables(conn: sqlite3.Connection) -> Mapping[str, frozenset[str]]:
    """Return the columns of every real table; views and virtual tables could run anything."""
    names = conn.execute(
        "select name from sqlite_schema where type = 'table' and sql not like 'create virtual%'"
    ).fetchall()
    return {
        str(name).casefold(): frozenset(
            str(column[0]).casefold() for column in conn.execute("select name from pragma_table_info(?)", (name,))
        )
        for (name,) in names
    }


@contextmanager
def _connected(raw: Raw) -> Iterator[sqlite3.Connection]:
    with tempfile.TemporaryDirectory(prefix="mem-") as folder, _sentences(raw.path):
        conn = sqlite3.connect(f"file:{quote(str(_place(raw, Path(folder))))}?mode=ro&immutable=1", uri=True)
        try:
            conn.text_factory = _text
            conn.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, RECORD_BYTES)
            conn.execute("pragma query_only = on")
            conn.execute("pragma trusted_schema = off")
            conn.set_progress_handler(_Patience().spent, 100_000)
            yield conn
        finally:
            conn.close()


class _Patience:
    def __init__(self) -> None:
        self._left = _STEPS // 100_000

    def spent(self) -> bool:
        self._left -= 1
        return self._left < 0


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _place(raw: Raw, folder: Path) -> Path:
    """Return a file to open: the one itself, or a copy where it has a WAL or is no plain file.

    A reader of a database in WAL mode would leave files beside it.
    """
    wal = Path(f"{raw.path}-wal")
    plain = raw.path != "-" and "!" not in raw.path and not raw.packed
    if plain and not (wal.exists() and wal.stat().st_size):
        return Path(raw.path).absolute()
    copy = folder / "copy.db"
    with copy.open("wb") as target:
        raw.handle.seek(0)
        shutil.copyfileobj(raw.handle, target)
    if plain:
        shutil.copy(wal, f"{copy}-wal")
        with sqlite3.connect(copy) as conn:
            conn.execute("pragma wal_checkpoint(truncate)")
        conn.close()
    return copy


@contextmanager
def _sentences(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as problem:
        if problem.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            raise Unreadable(path, "it takes beyond measure to read", hint="export it again") from problem
        raise Unreadable(path, f"its tables cannot be read: {problem}", hint="export it again") from problem
    except (sqlite3.Error, UnicodeError) as problem:
        why = "it is a SQLite database that is damaged, or no database at all"
        raise Unreadable(path, why, hint="restore it from a backup") from problem
