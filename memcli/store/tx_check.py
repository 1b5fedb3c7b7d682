"""Whether transactions, actions and what they owe hold together: the log's word for each, and the invariants."""

from collections.abc import Iterator
from typing import Any

from memcli.facts import Finding
from memcli.store import tx_rows
from memcli.store.store import Store

_OPS = {
    "transactions": ("begin", "commit", "hold", "abort"),
    "receipts": ("gate",),
    "actions": ("act",),
    "effects": ("effect",),
}


def events(store: Store) -> Iterator[Finding]:
    """Yield transactions, receipts, actions and effects that are not as the log last recorded them."""
    for table, ops in _OPS.items():
        columns = ", ".join(tx_rows.SEALED[table][1])
        prefix, marks = tx_rows.PREFIXES[table], ", ".join(f"'{op}'" for op in ops)
        said: dict[str, Any] = dict(
            store.conn.execute(
                f"select target, after from audit where op in ({marks}) and after is not null"
                f" and target glob '{prefix}[0-9]*' order by seq"
            ).fetchall()
        )
        for fields in store.conn.execute(f"select {columns} from {table} order by id"):
            name = f"{prefix}{fields[0]}"
            if said.pop(name, None) != tx_rows.recorded(store.key, table, fields):
                yield Finding(code="row-differs", place=name, message="it is not what the log recorded")
        for name in said:
            yield Finding(code="row-missing", place=name, message="the log recorded it, and it is not there")


def sealed_rows(store: Store) -> Iterator[tuple[Any, ...]]:
    """Yield every row of the tables of transactions with its seal, after the name of its table."""
    for table, (_, columns) in tx_rows.SEALED.items():
        for raw in store.conn.execute(f"select {', '.join(columns)}, seal from {table}"):
            yield table, *raw


def invariants(store: Store) -> Iterator[Finding]:
    """Yield what no sequence of permitted changes to transactions and actions leads to."""
    for name, number in store.conn.execute(
        "select f.name, max(s.tx) from staged s join facts f on f.id = s.fact join current c on c.fact = s.fact"
        " where c.state = 'tentative' and not exists (select 1 from staged o join transactions t on t.id = o.tx"
        " where o.fact = s.fact and t.status = 'open') group by f.name order by f.name"
    ):
        yield Finding(code="draft-left", place=name, message=f"is unsettled, and its transaction tx{number} is closed")
    for action, name in store.conn.execute(
        "with recursive under (action, fact) as (select a.id, p.fact from actions a join premises p on"
        " p.receipt = a.receipt where a.state = 'done' union select under.action, d.parent from under"
        " join derivations d on d.child = under.fact)"
        " select u.action, min(f.name) from under u join current c on c.fact = u.fact join facts f on f.id = u.fact"
        " where c.state in ('revoked', 'rejected') and not exists (select 1 from effects e where e.action = u.action)"
        " group by u.action order by u.action"
    ):
        yield Finding(
            code="effect-missing",
            place=f"a{action}",
            message=f"was done on {name}, which was withdrawn, and owes nothing",
        )
    for (name,) in store.conn.execute(
        "select 'a' || a.id from actions a join receipts r on r.id = a.receipt join effects e on e.action = a.id"
        " where (e.kind = 'leak') <> (r.kind = 'irreversible') or a.state <> 'done' order by a.id"
    ):
        yield Finding(code="effect-wrong", place=name, message="what it owes does not fit what it is")
