"""Every edit of one row that a guarded table allows, read off its columns, keys and constraints.

An edit is a statement of raw SQL. It is made by a process that knows the function which the triggers ask for, drops
the triggers of the table and puts them back as they were, so that neither they nor the schema tell on it.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from memcli import schema
from tests.files import behind

MOST = 2
"""How many rows of a table are edited unless told otherwise; the first and the last are among them."""

_VOCABULARY = re.compile(r"check \((?:\w+ is null or )?(\w+) in\s*\(([^)]*)\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change of a table behind the file's back."""

    table: str
    kind: str
    what: str
    steps: tuple[tuple[str, tuple[Any, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What SQLite says of a table: its columns and their types, its primary key, its unique keys, its vocabularies."""

    table: str
    columns: dict[str, str]
    key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...]
    words: dict[str, tuple[str, ...]]

    @property
    def where(self) -> str:
        return " and ".join(f"{name} = ?" for name in self.key)

    def keyed(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.key)


def columns() -> list[tuple[str, str]]:
    """Return every column of every guarded table of a new file."""
    with sqlite3.connect(":memory:") as conn:
        conn.create_function("mem_writer", 0, lambda: 1)
        schema.upgrade(conn)
        found = [(table, name) for table in schema.GUARDED for name in shape(conn, table).columns]
    conn.close()
    return found


def shape(conn: sqlite3.Connection, table: str) -> Shape:
    """Return the shape of a table."""
    info = conn.execute(f"pragma table_info({table})").fetchall()
    indexes = [row[1] for row in conn.execute(f"pragma index_list({table})") if row[2]]
    unique = [tuple(row[2] for row in conn.execute(f"pragma index_info({name})")) for name in indexes]
    key = tuple(row[1] for row in sorted(info, key=lambda row: row[5]) if row[5])
    sql = conn.execute("select sql from sqlite_schema where name = ?", (table,)).fetchone()[0]
    words = {name: tuple(re.findall(r"'([^']*)'", listed)) for name, listed in _VOCABULARY.findall(sql)}
    return Shape(
        table=table,
        columns={row[1]: row[2].lower() for row in info},
        key=key,
        unique=tuple(dict.fromkeys((key, *unique))),
        words=words,
    )


@contextmanager
def unguarded(path: Path, *tables: str) -> Iterator[sqlite3.Connection]:
    """Open a file past the product with the triggers of tables out of the way; they are put back as they were."""
    with behind(path, as_mem=True) as conn:
        conn.execute("pragma synchronous = off")
        marks = ", ".join("?" * len(tables))
        triggers = conn.execute(
            f"select name, sql from sqlite_schema where type = 'trigger' and tbl_name in ({marks})", tables
        ).fetchall()
        conn.execute("begin")
        for name, _ in triggers:
            conn.execute(f"drop trigger {name}")
        yield conn
        for _, sql in triggers:
            conn.execute(sql)
        conn.execute("commit")


def make(path: Path, edit: Edit) -> bool:
    """Make an edit and return whether the constraints of the table let it be made."""
    with unguarded(path, edit.table) as conn:
        conn.execute("savepoint before")
        try:
            for sql, bound in edit.steps:
                conn.execute(sql, bound)
        except sqlite3.IntegrityError:
            conn.execute("rollback to before")
            return False
    return True


# -------------------------------------------------------------------- one column of one row


def changes(path: Path, table: str, column: str, *, rows_at_most: int = MOST) -> Iterator[Edit]:
    """Yield changes of one column: to nothing, to what another row holds, to another word, to what is near.

    Words are changed in every row, in most to the words of another; anything else in some rows, the first in every way.
    """
    form, held = _held(path, table)
    chosen = spread(held, rows_at_most)
    for row in held if column == "text" else chosen:
        ways = slice(None) if row == held[0] else slice(0 if row in chosen else 1, 2)
        for value in _others(form, held, row, column)[ways]:
            yield Edit(
                table=table,
                kind="number" if (column,) == form.key and form.columns[column] == "integer" else "change",
                what=f"{column} of {form.keyed(row)} from {row[column]!r} to {value!r}",
                steps=((f"update {table} set {column} = ? where {form.where}", (value, *form.keyed(row))),),
            )


def _held(path: Path, table: str) -> tuple[Shape, list[dict[str, Any]]]:
    with behind(path) as conn:
        form = shape(conn, table)
        names = ", ".join(form.columns)
        found = conn.execute(f"select {names} from {table} order by {', '.join(form.key)}")
        return form, [dict(zip(form.columns, row, strict=True)) for row in found]


def spread(held: Sequence[Any], most: int) -> list[Any]:
    """Return at most so many rows, evenly from the first to the last."""
    if len(held) <= most:
        return list(held)
    return [held[index * (len(held) - 1) // (most - 1)] for index in range(most)]


def _others(form: Shape, held: Sequence[dict[str, Any]], row: dict[str, Any], column: str) -> list[Any]:
    was = row[column]
    elsewhere = [other[column] for other in held if other[column] not in {was, None}]
    words = [word for word in form.words.get(column, ()) if word != was]
    # What a neighbour holds is as genuine as a value gets.
    tried = [None, *elsewhere[:1], *words[:1], *_near(form.columns[column], was)]
    return [value for value in dict.fromkeys(tried) if value != was or type(value) is not type(was)]


def _near(kind: str, was: Any) -> list[Any]:
    if kind == "integer":
        return [1] if was is None else [was + 1]
    if kind == "real":
        return [1.0 if was != 1.0 else 0.5]
    if kind == "blob":
        return [bytes(32)] if was is None else [was[:-1] + bytes([was[-1] ^ 1])]
    return ["x"] if was is None else [was + "x"]


# -------------------------------------------------------------------- whole rows


def deletions(path: Path, table: str, *, rows_at_most: int = MOST) -> Iterator[Edit]:
    """Yield the deletion of each row."""
    form, held = _held(path, table)
    for row in spread(held, rows_at_most):
        key = form.keyed(row)
        yield Edit(
            table=table,
            kind="delete",
            what=f"{key}",
            steps=((f"delete from {table} where {form.where}", key),),
        )


def insertions(path: Path, table: str, *, rows_at_most: int = MOST) -> Iterator[Edit]:
    """Yield a copy of each row with nothing changed but what its keys demand."""
    form, held = _held(path, table)
    names, marks = ", ".join(form.columns), ", ".join("?" * len(form.columns))
    for row in spread(held, rows_at_most):
        for fresh in _freed(form, held, row):
            yield Edit(
                table=table,
                kind="insert",
                what=f"{form.keyed(row)} again as {form.keyed(fresh)}",
                steps=((f"insert into {table} ({names}) values ({marks})", tuple(fresh.values())),),
            )


def _freed(form: Shape, held: Sequence[dict[str, Any]], row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield copies of a row that no unique key forbids: in each key one column is another one's or a new one."""
    seen: set[tuple[Any, ...]] = set()
    for chosen in product(*form.unique):
        fresh = dict(row)
        for name in dict.fromkeys(chosen):
            fresh[name] = _unused(form, held, row, name)
        if tuple(fresh.values()) not in seen:
            seen.add(tuple(fresh.values()))
            yield fresh


def _unused(form: Shape, held: Sequence[dict[str, Any]], row: dict[str, Any], column: str) -> Any:
    if form.columns[column] == "integer":
        return max(other[column] or 0 for other in held) + 1
    used = {other[column] for other in held}
    fitting = [word for word in form.words.get(column, ()) if word not in used]
    return (fitting or [value for value in _near(form.columns[column], row[column]) if value not in used])[0]


def swaps(path: Path, table: str, *, rows_at_most: int = MOST) -> Iterator[Edit]:
    """Yield the exchange of neighbours: all that they hold but for the primary key, and each column by itself."""
    form, held = _held(path, table)
    rest = [name for name in form.columns if name not in form.key]
    neighbours = spread(list(pairwise(held)), rows_at_most)
    for one, two in neighbours:
        for names in (rest, *([name] for name in rest)):
            if any(one[name] != two[name] for name in names):
                yield _swap(form, one, two, names)
    integer = len(form.key) == 1 and form.columns[form.key[0]] == "integer"
    for row in spread(held, rows_at_most) if integer else ():
        yield _renumbered(form, row)


def _swap(form: Shape, one: dict[str, Any], two: dict[str, Any], names: Sequence[str]) -> Edit:
    """Return the exchange as delete and insert, so that no unique key is in the way half-way."""
    first = {**one, **{name: two[name] for name in names}}
    second = {**two, **{name: one[name] for name in names}}
    listed, marks = ", ".join(form.columns), ", ".join("?" * len(form.columns))
    delete = f"delete from {form.table} where {form.where}"
    insert = f"insert into {form.table} ({listed}) values ({marks})"
    return Edit(
        table=form.table,
        kind="swap",
        what=f"{form.keyed(one)} and {form.keyed(two)}: {'all' if len(names) > 1 else names[0]}",
        steps=(
            (delete, form.keyed(one)),
            (delete, form.keyed(two)),
            (insert, tuple(first.values())),
            (insert, tuple(second.values())),
        ),
    )


def _renumbered(form: Shape, row: dict[str, Any]) -> Edit:
    """Return the move of a row to a number that nobody has, so that it comes last and references to it break."""
    name = form.key[0]
    last = f"(select max({name}) + 1 from {form.table})"
    return Edit(
        table=form.table,
        kind="number",
        what=f"{form.keyed(row)} behind the others",
        steps=((f"update {form.table} set {name} = {last} where {form.where}", form.keyed(row)),),
    )
