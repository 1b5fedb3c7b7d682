"""What the readers of foreign databases share: which tables there are, and values of any type made harmless."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from memcli.exchange.loose import parse
from memcli.facts import Json
from memcli.record import record

if TYPE_CHECKING:
    import sqlite3


@record
class Table:
    """A table: its name, and its columns by their case-folded names."""

    name: str
    columns: Mapping[str, str]

    def rows(self, conn: "sqlite3.Connection", *wanted: str, order: str) -> Iterator[tuple[Any, ...]]:
        """Yield the wanted columns of every row, None for a column that is not there.

        Args:
            wanted: Case-folded names.
            order: What to sort by, with columns in braces.
        """
        names = {column: quoted(name) for column, name in self.columns.items()}
        columns = ", ".join(names.get(column, "null") for column in wanted)
        # Names are quoted, values never become part of it.
        yield from conn.execute(f"select {columns} from {quoted(self.name)} order by {order.format_map(names)}")  # noqa: S608


def has(tables: Mapping[str, frozenset[str]], *columns: str) -> bool:
    """Return whether one of the tables has all of the columns."""
    return any(there.issuperset(columns) for there in tables.values())


def tables_with(conn: "sqlite3.Connection", *columns: str) -> list[Table]:
    """Return the tables that have all of the columns, in the order they were made; a view is no table."""
    made = conn.execute(
        "select name from sqlite_schema where type = 'table' and sql not like 'create virtual%' order by rowid"
    ).fetchall()
    found = []
    for (name,) in made:
        there = [str(row[0]) for row in conn.execute("select name from pragma_table_info(?)", (name,))]
        table = Table(name=str(name), columns={column.casefold(): column for column in there})
        if table.columns.keys() >= set(columns):
            found.append(table)
    return found


def quoted(name: str) -> str:
    """Return a name of a table or column as SQL wants it."""
    return '"' + name.replace('"', '""') + '"'


def plain(value: object) -> Json:
    """Return what stands in a column as JSON has it; bytes become the text that they are."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, (str, int, float)) else None


def document(value: object) -> Json:
    """Return what the JSON text in a column or field says, or the value itself where it is no JSON text."""
    there = value if isinstance(value, (dict, list)) else plain(value)
    if not isinstance(there, str):
        return there
    parsed = parse(there)
    return parsed.values[0] if len(parsed.values) == 1 and parsed.problem is None else there
