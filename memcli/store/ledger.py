"""The ground of every change: transaction time, audit events, revisions, and who may decide."""

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from memcli.errors import NoReason, NotAllowed, NotPermitted, OutOfScope, Stale
from memcli.facts import Actor, Fact, Micros, Provenance, Scalar
from memcli.keys import slot_digest, value_digest
from memcli.store import roll, rows, views
from memcli.store.basics import checked_scope
from memcli.store.seals import AUDIT_COLUMNS, GENESIS, Field, chained, seal
from memcli.store.store import Store
from memcli.terms import EXPLAINED, MOVES, READABLE, VIEWS, Admission, Channel, Kind, Op, State
from memcli.text import pack, unpack
from memcli.transactions.cascade import fate

_AUDIT = f"insert into audit ({', '.join(AUDIT_COLUMNS)}, hash) values ({', '.join('?' * (len(AUDIT_COLUMNS) + 1))})"
_VERSION = (
    f"insert into versions ({', '.join(rows.VERSION_FIELDS)}, digest, seal)"
    f" values ({', '.join('?' * (len(rows.VERSION_FIELDS) + 2))})"
)


def as_json(value: Scalar) -> str | None:
    """Return a scalar as the file holds it."""
    return None if value is None else json.dumps(value, ensure_ascii=True)


class Ledger:
    """What every change is made of. One writer lives in one transaction.

    Args:
        store: The file, opened to look at.
        conn: A connection that holds the write lock.
        actor: Who acts, as the channel showed.
        reason: Why, in the actor's words; None where none was given.
        planning: Only questions are asked; a scope that was never used is then empty instead of made.
    """

    def __init__(
        self, store: Store, conn: sqlite3.Connection, actor: Actor, reason: str | None, *, planning: bool = False
    ) -> None:
        self.store = store
        self.conn = conn
        self.actor = actor
        self.reason = None if reason is None or not reason.strip() else reason.strip()
        self.key = store.key
        self.scope_name = store.scope
        self.scrubs = False
        self.operation: int | None = None
        last = conn.execute("select seq, at, hash from audit order by seq desc limit 1").fetchone()
        self._seq: int = last[0] if last else 0
        self._at: int = last[1] if last else 0
        self._hash: bytes = last[2] if last else GENESIS
        head = (self._seq, self._hash)
        self.roll = roll.Roll(conn, self.key, None) if planning else roll.begin(conn, self.key, store.path, head)
        self._scopes: dict[str, int] = {
            name: number for number, name in conn.execute("select id, name from scopes where merged_into is null")
        }
        if planning:
            self._scopes.setdefault(store.scope, -1)
        self._touched: dict[int, views.Shown | None] = {}
        self._fresh: list[tuple[int, str]] = []

    # ---------------------------------------------------------------- time, events

    def tick(self) -> Micros:
        """Return the next transaction time: the clock, or just after the newest event where the clock is behind."""
        self._at = max(self.store.now(), self._at + 1)
        return self._at

    def event(
        self,
        op: Op,
        target: str | None,
        *,
        at: Micros | None = None,
        scope: int | None = None,
        before: bytes | None = None,
        after: bytes | None = None,
        moved: tuple[State | None, State | None] = (None, None),
        reason: str | None = None,
    ) -> int:
        """Append one row to the audit and return its number; `reason` stands in for the actor's own."""
        row = self.chain(op, target, at=at, scope=scope, before=before, after=after, moved=moved, reason=reason)
        self.conn.execute(_AUDIT, row)
        why = self.reason if reason is None else reason
        if why is not None:
            self.keep_reasons([self._seq], why)
        return self._seq

    def keep_reasons(self, events: Sequence[int], reason: str | None = None) -> None:
        """Write the words of a reason beside events that carry its digest; None is the actor's own."""
        why = self.reason if reason is None else reason
        if why is not None:
            words = pack(why)
            self.conn.executemany("insert into reasons (seq, text) values (?, ?)", [(seq, words) for seq in events])

    def chain(
        self,
        op: Op,
        target: str | None,
        *,
        at: Micros | None = None,
        scope: int | None = None,
        before: bytes | None = None,
        after: bytes | None = None,
        moved: tuple[State | None, State | None] = (None, None),
        reason: str | None = None,
    ) -> tuple[Field, ...]:
        """Return the next row of the audit with its hash; whoever asks for it writes it before any other."""
        why = self.reason if reason is None else reason
        words = None if why is None else pack(why)
        self._seq += 1
        self.operation = self._seq if self.operation is None else self.operation
        fields: tuple[Field, ...] = (
            self._seq,
            self.tick() if at is None else at,
            pack(self.actor.name),
            str(self.actor.kind),
            str(self.actor.channel),
            str(op),
            target,
            self.scope if scope is None else scope,
            None if moved[0] is None else str(moved[0]),
            None if moved[1] is None else str(moved[1]),
            None if words is None else seal(self.key, "reason", (words,)),
            before,
            after,
            self.operation,
        )
        self._hash = chained(self._hash, fields)
        return (*fields, self._hash)

    # ---------------------------------------------------------------- who may

    @property
    def decides(self) -> bool:
        """Return whether this actor changes what is believed at once, or may only propose."""
        return (
            self.store.admission is Admission.DIRECT
            or self.actor.is_person
            or self.actor.channel in (Channel.DECISIONS, Channel.ORACLE)
        )

    def need_reason(self) -> None:
        """Refuse a change that must be explained and is not."""
        if self.reason is None:
            raise NoReason("this change needs a reason, and none was given", hint="say why with --reason TEXT")

    def need_reason_for(self, op: Op) -> None:
        """Refuse a kind of change that must be explained and is not."""
        if op in EXPLAINED:
            self.need_reason()

    def need_decider(self, what: str, target: str | None = None) -> None:
        """Refuse a change of what is believed by an actor who may only propose it.

        Raises:
            NotPermitted: Under this admission the channel has no say.
        """
        if not self.decides:
            raise NotPermitted(
                f"{self.actor.name} may not {what} through {self.actor.channel} in a file that is reviewed",
                hint="propose it, and let a person decide with `mem review`",
                target=target,
            )

    def need_person(self, what: str) -> None:
        """Refuse what only a person at a terminal may do."""
        if not self.actor.is_person:
            raise NotPermitted(
                f"only a person at a terminal may {what}", hint="run it in a terminal, without pipes", target=what
            )

    # ---------------------------------------------------------------- scopes

    @property
    def scope(self) -> int:
        """Return the row of the store's scope, made on its first use."""
        return self.scope_row(self.scope_name)

    def scope_row(self, name: str) -> int:
        """Return the row of a scope, made on its first use."""
        if name not in self._scopes:
            number = 1 + int(self.conn.execute("select coalesce(max(id), 0) from scopes").fetchone()[0])
            wanted = checked_scope(name)
            if self.conn.execute("select 1 from scopes where name = ?", (wanted,)).fetchone():
                raise NotAllowed(f"scope {wanted} was merged into another", hint="list them with `mem scope list`")
            self.conn.execute(
                "insert into scopes (id, name, seal) values (?, ?, ?)",
                (number, wanted, seal(self.key, "scope", (number, wanted, None))),
            )
            self._scopes[name] = number
        return self._scopes[name]

    # ---------------------------------------------------------------- rows

    def seen(self, fact: Fact) -> rows.VersionRow:
        """Return the current row of a fact that the caller looked at.

        Raises:
            OutOfScope: It belongs to another scope.
            Stale: It has changed since.
        """
        row = self.newest(self.fact_number(fact.id))
        self.check_here(row)
        self.check_kept(row)
        if (row.field("version"), row.field("revision")) != (fact.version, fact.revision):
            raise Stale(
                f"fact {fact.id} changed since version {fact.version} was read",
                hint=f"look again with `mem show {fact.id}`",
                target=fact.id,
            )
        return row

    def check_here(self, row: rows.VersionRow) -> None:
        """Refuse a fact of another scope: a write sees one scope and no other.

        Raises:
            OutOfScope: It belongs to another.
        """
        if row.fact_field("scope") != self.scope:
            raise OutOfScope(
                f"fact {row.fact_field('name')} belongs to another scope than {self.scope_name}",
                hint="open the file with --scope and the name of its scope",
            )

    def check_kept(self, row: rows.VersionRow) -> None:
        """Refuse a change of a fact whose words are gone.

        Raises:
            NotAllowed: It was erased.
        """
        if row.fact_field("erased_at") is not None:
            name = row.fact_field("name")
            raise NotAllowed(f"fact {name} was erased", hint=f"see when with `mem log --fact {name}`", target=name)

    def fact_number(self, name: str) -> int:
        """Return the row of a fact by its whole id."""
        row = self.conn.execute("select id from facts where name = ?", (pack(name),)).fetchone()
        if row is None:
            raise NotAllowed(f"fact {name} is not in this file", hint="list the facts with `mem show --all-states`")
        return int(row[0])

    def newest(self, number: int) -> rows.VersionRow:
        """Return the newest revision of the newest version of a fact."""
        return self._row("v.fact = ? and v.retired_at is null order by v.version desc limit 1", number)

    def version_row(self, number: int, version: int) -> rows.VersionRow:
        """Return the newest revision of one version of a fact."""
        return self._row("v.fact = ? and v.version = ? and v.retired_at is null", number, version)

    def _row(self, where: str, *bound: Field) -> rows.VersionRow:
        raw = self.conn.execute(f"{rows.SELECT_VERSION} where {where}", bound).fetchone()
        return self.store.reader.version(raw)

    def fact(self, number: int) -> Fact:
        """Return a fact as this transaction sees it."""
        row = self.newest(number)
        found = self.conn.execute(
            f"{rows.SELECT_PROVENANCE} where p.fact = ? and p.version = ? order by p.id", (number, row.field("version"))
        )
        evidence: tuple[Provenance, ...] = tuple(rows.provenance_of(self.key, raw) for raw in found)
        parents = tuple(
            name
            for (name,) in self.conn.execute(
                "select f.name from derivations d join facts f on f.id = d.parent where d.child = ? order by d.parent",
                (number,),
            )
        )
        reader = rows.Reader(key=self.key, scopes={number: name for name, number in self._scopes.items()})
        return reader.fact(row, evidence, parents)

    def insert_version(self, values: Mapping[str, Any], at: Micros) -> bytes:
        """Write one revision recorded at `at` and return its digest."""
        fields = tuple(at if name == "recorded_at" else values[name] for name in rows.VERSION_FIELDS)
        digest = seal(self.key, "version", fields)
        cursor = self.conn.execute(_VERSION, (*fields, digest, seal(self.key, "retired", (digest, None, None))))
        self._fresh.append((int(cursor.lastrowid or 0), values["text"]))
        return digest

    def insert_provenance_row(self, fields: Sequence[Any]) -> None:
        """Write a piece of evidence, given as the columns of `PROVENANCE_FIELDS`."""
        self.conn.execute(
            f"insert into provenance ({', '.join(rows.PROVENANCE_FIELDS)}, seal) values ({', '.join('?' * 11)})",
            (*fields, rows.provenance_seal(self.key, fields, self.place_of(fields[3]))),
        )

    def place_of(self, message: int | None) -> rows.Row:
        """Return source, position and role of a message by its row number, or three times None for none."""
        found: rows.Row = (None, None, None)
        if message is not None:
            found = self.conn.execute("select source, position, role from messages where id = ?", (message,)).fetchone()
        return found

    def retire(self, row: rows.VersionRow, at: Micros) -> None:
        """End the time in which the file held a revision."""
        self.touch(row.fact)
        self.conn.execute(
            "update versions set retired_at = ?, seal = ? where id = ?",
            (at, seal(self.key, "retired", (row.digest, at, None)), row.row),
        )

    def move(
        self,
        row: rows.VersionRow,
        to: State,
        op: Op,
        *,
        reason: str | None = None,
        **changes: Field,
    ) -> rows.VersionRow:
        """Record that a version is in another state from now on, with its audit event."""
        was = State(str(row.field("state")))
        if (was, to) not in MOVES:
            raise NotAllowed(
                f"fact {row.fact_field('name')} is {was}, and a {was} version does not become {to}",
                hint=f"see its history with `mem why {str(row.fact_field('name'))[:8]}`",
            )
        at = self.tick()
        self.retire(row, at)
        values = self._values(row, state=str(to), revision=int(row.field("revision")) + 1, **changes)
        digest = self.insert_version(values, at)
        self.event(
            op,
            str(row.fact_field("name")),
            at=at,
            scope=int(row.fact_field("scope")),
            before=row.digest,
            after=digest,
            moved=(was, to),
            reason=reason,
        )
        return self.version_row(row.fact, int(row.field("version")))

    def _values(self, row: rows.VersionRow, **changes: Field) -> dict[str, Field]:
        values: dict[str, Field] = {name: row.field(name) for name in rows.VERSION_FIELDS}
        values.update(
            actor_name=pack(self.actor.name),
            actor_kind=str(self.actor.kind),
            actor_channel=str(self.actor.channel),
        )
        values.update(changes)
        return values

    def next_version(
        self,
        row: rows.VersionRow,
        state: State,
        op: Op,
        *,
        before: bytes | None = None,
        reason: str | None = None,
        **changes: Field,
    ) -> tuple[int, Micros]:
        """Begin the next version of a fact whose present one is final; return its number and its time.

        Args:
            before: The digest the event speaks of as what was before; None means the present row.
        """
        at = self.tick()
        version = int(row.field("version")) + 1
        self.touch(row.fact)
        values = self._values(
            row, version=version, revision=1, state=str(state), displaced=0, superseded_by=None, **changes
        )
        digest = self.insert_version(values, at)
        self.event(
            op,
            str(row.fact_field("name")),
            at=at,
            scope=int(row.fact_field("scope")),
            before=before or row.digest,
            after=digest,
            moved=(State(str(row.field("state"))), state),
            reason=reason,
        )
        return version, at

    def descendants(self, number: int) -> list[int]:
        """Return every fact built on this one, in any scope, nearest first, each once."""
        found: dict[int, None] = {}
        front = [number]
        while front:
            marks = ",".join("?" * len(front))
            children = self.conn.execute(
                f"select distinct child from derivations where parent in ({marks}) order by child", front
            ).fetchall()
            front = [child for (child,) in children if child not in found and child != number]
            found.update(dict.fromkeys(front))
        return list(found)

    def cascade(self, number: int) -> list[int]:
        """Withdraw what was built on a fact: beliefs are revoked, views held to be rebuilt; return which."""
        root = str(self.newest(number).fact_field("name"))
        fell = []
        for child in self.descendants(number):
            row = self.newest(child)
            state = State(str(row.field("state")))
            to = fate(Kind(row.fact_field("kind")), state)
            if to is not None:
                self.move(row, to, Op.CASCADE, reason=f"fell with {root}")
                fell.append(child)
        return fell

    def outdate(self, number: int) -> None:
        """Hold the views that were built on what a fact said before, to be rebuilt; a correction revokes nothing."""
        root = str(self.newest(number).fact_field("name"))
        for child in self.descendants(number):
            row = self.newest(child)
            if row.fact_field("kind") in VIEWS and row.field("state") in READABLE:
                self.move(row, State.DISPUTED, Op.CASCADE, reason=f"built on what {root} said before")

    def keys_for(self, text: str, slot: tuple[str, str] | None, value: Scalar) -> dict[str, bytes | None]:
        """Return the columns that recognise a value: of its text, and of its slot."""
        key = self.store.tombstone_key
        return {
            "text_key": value_digest(key, text),
            "slot_key": None if slot is None or value is None else slot_digest(key, *slot, value),
        }

    # ---------------------------------------------------------------- views

    def touch(self, number: int) -> None:
        """Remember what the views hold of a fact, before it changes."""
        if number not in self._touched:
            self._touched[number] = views.shown(self.conn, number)

    def finish(self) -> None:
        """Bring the views and the roll up to date with what was changed; called once, before the commit."""
        for number, was in self._touched.items():
            if was is not None:
                views.hide(self.conn, number, was)
            views.show(self.conn, number)
        counter = self.store.counter() if self._fresh else None
        if counter is not None:
            encoding = self.store.settings["encoding"]
            self.conn.executemany(
                "insert into token_counts values (?, ?, ?)",
                ((row, counter(unpack(text)), encoding) for row, text in self._fresh),
            )
        self._touched.clear()
        self._fresh.clear()
        self.roll.close((self._seq, self._hash))


def new_name() -> str:
    """Return a new id of a fact: 16 hexadecimal digits of chance, so that prefixes differ early."""
    return os.urandom(8).hex()
