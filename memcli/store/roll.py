"""The roll of a file: which event is the newest, and what rows there are of which no event speaks.

A seal tells that a row was altered, and nothing of a row that is gone or there twice; a chain without a key tells
nothing of its end. So each change writes one sealed setting: number and hash of the newest event, and for each table
whose rows the log does not name, how many there are and the sum of their seals, which is the same in any order.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from memcli.errors import Damaged
from memcli.store.basics import ROLL, write_setting
from memcli.store.rows import behind_our_back
from memcli.store.seals import GENESIS, seal

TABLES = ("provenance", "derivations", "origins", "staged", "named", "verdicts", "reads", "premises", "repairs")
"""Tables to which rows are only added, each with a seal, and not each with an event."""

_REASONS = "reasons"
"""Of these only the erased ones are on the roll: of any other the log has the digest."""

_LISTED = (*TABLES, _REASONS)
_MODULUS = 1 << 256

# Digits that nobody types, so that a search for what is left of an erased number does not find it here.
_WRITTEN = str.maketrans("0123456789abcdef", "!#$%&()*+,-./:;<")
_READ = str.maketrans("!#$%&()*+,-./:;<", "0123456789abcdef")

Head = tuple[int, bytes]
"""Number and hash of an event."""


class Roll:
    """The roll as a transaction found it, and what it did to it.

    Args:
        value: What the setting says; None is a file in which nothing is recorded yet.
    """

    def __init__(self, conn: sqlite3.Connection, key: bytes, value: str | None) -> None:
        self._conn = conn
        self._key = key
        self._value = value
        self.head, self._sums = _read(value)
        newest = ", ".join(f"(select coalesce(max(rowid), 0) from {table})" for table in TABLES)
        self._last: dict[str, int] = dict(zip(TABLES, conn.execute(f"select {newest}").fetchone(), strict=True))

    def resealed(self, table: str, row: int, before: bytes, after: bytes) -> None:
        """Put the new seal of a row in the place of its old one; what this transaction added is counted at its end."""
        if row <= self._last[table]:
            self._add(table, 0, _number(after) - _number(before))

    def erased_reason(self, event: int, at: int) -> None:
        """Put the reason of an event on the roll, because it was erased."""
        self._add(_REASONS, 1, _number(_erased(self._key, event, at)))

    def close(self, head: Head) -> None:
        """Put what was added on the roll and write it; called once, before the commit."""
        for table, last in self._last.items():
            self._add(table, *_summed(self._conn, f"select seal from {table} where rowid > ?", last))
        value = _written(head, self._sums)
        if value != self._value:
            write_setting(self._conn, self._key, (ROLL, value))

    def _add(self, table: str, count: int, total: int) -> None:
        known, before = self._sums[table]
        self._sums[table] = (known + count, (before + total) % _MODULUS)


def begin(conn: sqlite3.Connection, key: bytes, path: Path, head: Head) -> Roll:
    """Return the roll for a change that goes on after the newest event.

    Raises:
        Damaged: The file has lost its roll, or its newest event is not the one that was recorded last.
    """
    roll = Roll(conn, key, _setting(conn, key))
    if head[0] and roll.head[0] == 0:
        raise Damaged(f"{path} has lost its settings", hint="restore it from a backup")
    if head != roll.head:
        raise behind_our_back("the end of the log")
    return roll


def count_anew(conn: sqlite3.Connection, key: bytes, head: Head) -> None:
    """Write the roll of a file that has none, from what is there."""
    write_setting(conn, key, (ROLL, _written(head, _counted(conn, key))))


def check_head(conn: sqlite3.Connection, key: bytes) -> None:
    """Say nothing where the newest event is the one that was recorded last.

    Raises:
        Damaged: It is another.
    """
    # In one statement, since another process may write between two.
    found = conn.execute(
        "select s.value, s.seal, a.seq, a.hash from settings s"
        " left join (select seq, hash from audit order by seq desc limit 1) a where s.name = ?",
        (ROLL,),
    ).fetchone()
    if found is None or not _fits(key, *found[:2]) or _read(found[0])[0] != (found[2] or 0, found[3] or GENESIS):
        raise behind_our_back("the end of the log")


def head_differs(conn: sqlite3.Connection, key: bytes, head: Head) -> bool:
    """Return whether the newest event is not the one that was recorded last."""
    value = _setting(conn, key)
    return value is not None and _read(value)[0] != head


def differences(conn: sqlite3.Connection, key: bytes) -> Iterator[tuple[str, str]]:
    """Yield (table, what is wrong) where rows are not those that were written."""
    value = _setting(conn, key)
    if value is None:
        return
    _, recorded = _read(value)
    for table, found in _counted(conn, key).items():
        (count, _), (wanted, _) = found, recorded[table]
        what = "erased rows" if table == _REASONS else "rows"
        if count != wanted:
            yield table, f"holds {count} {what} instead of {wanted}"
        elif found != recorded[table]:
            yield table, f"holds other {what} than were written"


def _counted(conn: sqlite3.Connection, key: bytes) -> dict[str, tuple[int, int]]:
    found = {table: _summed(conn, f"select seal from {table}") for table in TABLES}
    erased = conn.execute(f"select seq, erased_at from {_REASONS} where erased_at is not null").fetchall()
    return {**found, _REASONS: _sum(_erased(key, seq, at) for seq, at in erased)}


def _summed(conn: sqlite3.Connection, sql: str, *bound: int) -> tuple[int, int]:
    return _sum(its_seal for (its_seal,) in conn.execute(sql, bound))


def _sum(seals: Iterable[bytes]) -> tuple[int, int]:
    count = total = 0
    for its_seal in seals:
        count += 1
        total += _number(its_seal)
    return count, total % _MODULUS


def _number(its_seal: bytes) -> int:
    return int.from_bytes(its_seal, "big")


def _erased(key: bytes, event: int, at: int) -> bytes:
    return seal(key, "erased reason", (event, at))


def _setting(conn: sqlite3.Connection, key: bytes) -> str | None:
    found = conn.execute("select value, seal from settings where name = ?", (ROLL,)).fetchone()
    if found is not None and not _fits(key, *found):
        raise behind_our_back(f"the setting {ROLL}")
    return None if found is None else str(found[0])


def _fits(key: bytes, value: str, its_seal: bytes) -> bool:
    return seal(key, "setting", (ROLL, value)) == its_seal


def _written(head: Head, sums: dict[str, tuple[int, int]]) -> str:
    numbers = (head[0], int.from_bytes(head[1], "big"), *(number for table in _LISTED for number in sums[table]))
    return " ".join(f"{number:x}" for number in numbers).translate(_WRITTEN)


def _read(value: str | None) -> tuple[Head, dict[str, tuple[int, int]]]:
    if value is None:
        return (0, GENESIS), dict.fromkeys(_LISTED, (0, 0))
    seq, link, *rest = (int(word, 16) for word in value.translate(_READ).split(" "))
    pairs = zip(rest[::2], rest[1::2], strict=True)
    return (seq, link.to_bytes(len(GENESIS), "big")), dict(zip(_LISTED, pairs, strict=True))
