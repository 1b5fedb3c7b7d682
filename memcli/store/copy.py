"""Complete rows of a scope, or of all, for an export: page by page, each checked against its seal before it is given.

Rows are plain tuples, since a large file has millions of them; what stands in each is said where it is made. Texts
stay as they are stored (`memcli.text.pack`), so that what JSON has no words for is carried too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

from memcli.errors import Damaged, NotAllowed
from memcli.facts import Fact, Micros, Tombstone
from memcli.keys import TombstoneKey, slot_digest, value_digest
from memcli.store import basics, file, honest, rows
from memcli.store.ledger import Ledger
from memcli.store.seals import seal
from memcli.store.store import Store
from memcli.terms import READABLE, Op, State
from memcli.text import unpack

PAGE = 1_000
"""Facts that are looked at in one go."""

Row: TypeAlias = tuple[Any, ...]

_VERSION_COLUMNS = len(rows.VERSION_FIELDS)
_VERSIONS = (
    f"select {', '.join('v.' + name for name in rows.VERSION_FIELDS)}, v.retired_at, v.erased_at, v.digest, v.seal,"
    " s.name, null from versions v left join facts s on s.id = v.superseded_by"
)
_NEWEST = (
    rows.SELECT_VERSION.replace("versions v join facts f on f.id = v.fact", "facts f cross join versions v")
    + " where v.fact = f.id and v.retired_at is null"
    " and v.version = (select max(w.version) from versions w where w.fact = f.id)"
)
"""In this order, so that SQLite goes through the facts as they lie there, and sorts nothing."""
_FACT_AT = 1 + len(honest.VERSION_COLUMNS)
_REST_AT = _FACT_AT + len(honest.FACT_COLUMNS)
_NAME_AT = _FACT_AT + rows.FACT_FIELDS.index("name")
_ERASED_AT = 1 + honest.VERSION_COLUMNS.index("erased_at")
_ERASED = ("erased",)
_said = itemgetter(
    *(
        1 + rows.VERSION_FIELDS.index(name)
        for name in ("text", "value", "state", "valid_from", "valid_to", "confidence", "importance", "authority")
    ),
    *(_FACT_AT + rows.FACT_FIELDS.index(name) for name in ("subject", "attribute", "kind", "owner", "visibility")),
)
"""What a fact says and is, as the file holds it: what `memcli.diff` compares."""

_PROVENANCE = (
    f"select {', '.join('p.' + name for name in rows.PROVENANCE_FIELDS)}, m.source, m.position, m.role, p.seal"
    " from provenance p left join messages m on m.id = p.message"
)
_PROVENANCE_COLUMNS = len(rows.PROVENANCE_FIELDS)
_SEALED_COLUMNS = len(honest.VERSION_COLUMNS)
_RECORDED_AT = rows.VERSION_FIELDS.index("recorded_at")
_DETAIL_AT = rows.MESSAGE_FIELDS.index("detail")
_FIRST = itemgetter(0)
READABLE_PAGE = 500


class Copy:
    """What an export asks of a memory file, all of it as it stood at one moment.

    Args:
        store: The file, opened to look at.
        all_scopes: Every scope; the caller has been allowed to.
    """

    def __init__(self, store: Store, *, all_scopes: bool = False) -> None:
        self.store = store
        self.all_scopes = all_scopes
        self.names = store.reader.scopes
        here = [*self.names] if all_scopes else [store.scope_number]
        self._scopes = tuple(number for number in here if number is not None)
        self._marks = ",".join("?" * len(self._scopes))
        self._whole = len(self._scopes) == len(self.names)
        self._joins: list[str] | None = None

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Hold one moment of the file, whoever writes meanwhile.

        Raises:
            Damaged: A row was changed behind the file's back.
        """
        conn = self.store.conn
        with file.sentences(str(self.store.path)):
            conn.execute("begin")
            try:
                yield
            finally:
                if conn.in_transaction:
                    conn.execute("commit")

    # ---------------------------------------------------------------- tombstones

    def keys(self) -> list[tuple[str, bytes]]:
        """Return id and secret of the file's own tombstone key, then of each other that a tombstone here was made with.

        The secret travels with the tombstones, so that another file can consult them.
        """
        own = self.store.tombstone_key
        used = {row[3] for row in self._stones()}
        others = self.store.conn.execute("select id, secret from keys where purpose = 'tombstone' order by rowid")
        return [(own.id, own.secret), *((name, secret) for name, secret in others if name in used - {own.id})]

    def _stones(self) -> list[rows.Row]:
        return self.store.tombstone_rows(f"t.scope is null or t.scope in ({self._marks})", *self._scopes)

    def tombstones(self) -> Iterator[Row]:
        """Yield number, scope, match, pattern, key, normaliser, stops, fact, reason, actor, times, why it was lifted.

        The scope is None for everywhere, the actor is name, kind and channel; times are when it was made and lifted.
        The fact is None where it is in another scope.
        """
        columns = len(rows.TOMBSTONE_FIELDS)
        for raw in self._stones():
            number, match, pattern, key, normaliser, fact, _, *who, at = raw[:columns]
            scope, lifted_at, _, name = raw[columns : columns + 4]
            stops = sorted(self.store.stops(number))
            stone = self.store.reader.tombstone(raw, stops)
            where = None if scope is None else self.names[scope]
            target = name if fact is not None and self._is_here(fact) else None
            reason = raw[columns + 4] if stone.reason is not None else None
            why = None if lifted_at is None else self._why_lifted(number, lifted_at)
            yield (
                number, where, match, pattern, key, normaliser, stops, target, reason, tuple(who), at, lifted_at, why,
            )  # fmt: skip

    def _is_here(self, fact: int) -> bool:
        found = self.store.conn.execute("select scope from facts where id = ?", (fact,)).fetchone()
        return found is not None and found[0] in self._scopes

    def _why_lifted(self, number: int, lifted_at: Micros) -> str | None:
        found = self.store.conn.execute(
            "select r.text from audit a join reasons r on r.seq = a.seq where a.target = ? and a.before is not null"
            " and (a.op = ? or (a.op = ? and a.at = ?)) order by a.seq desc limit 1",
            (f"t{number}", str(Op.RESTORE), str(Op.LIFT), lifted_at),
        ).fetchone()
        return None if found is None else found[0]

    def stones(self) -> list[tuple[Tombstone, tuple[str, tuple[bytes, ...]]]]:
        """Return every tombstone that holds here, lifted ones too, each with its key's id and the digests it stops."""
        found = []
        for raw in self._stones():
            stops = sorted(self.store.stops(raw[0]))
            found.append((self.store.reader.tombstone(raw, stops), (str(raw[3]), tuple(stops))))
        return found

    # ---------------------------------------------------------------- evidence

    def sources(self) -> Iterator[tuple[Row, Iterator[Row]]]:
        """Yield each source with its messages in order, which are read as they are taken, before the next source.

        A source is number, scope, kind, format, path, session, title, digest, imported_at, erased_at; a message is
        source, position, role, content, detail, at, evidence, recorded_at, erased_at. `detail` is JSON or None.
        """
        whole = honest.sealed(self.store.key, "source")
        said = groupby(self._messages(), key=_FIRST)
        spoken: tuple[int, Iterator[Row]] | None = next(said, None)
        for row in self.store.conn.execute(
            f"select {', '.join(rows.SOURCE_FIELDS)}, seal from sources where +scope in ({self._marks}) order by id",
            self._scopes,
        ):
            number, scope, *rest, _ = row
            if not whole(row):
                raise rows.behind_our_back(f"source s{number}")
            mine = spoken is not None and spoken[0] == number
            yield (number, self.names[scope], *rest), spoken[1] if spoken is not None and mine else iter(())
            if mine:
                spoken = next(said, None)

    def _messages(self) -> Iterator[Row]:
        whole = honest.sealed(self.store.key, "message")
        for raw in self.store.conn.execute(
            f"select {', '.join('m.' + name for name in rows.MESSAGE_FIELDS)}, m.seal from messages m"
            f" cross join sources s on s.id = m.source where s.scope in ({self._marks}) order by m.source, m.position",
            self._scopes,
        ):
            if not whole(raw):
                raise rows.behind_our_back(f"message {rows.message_id(raw[0], raw[1])}")
            yield raw

    # ---------------------------------------------------------------- facts

    def facts(self) -> Iterator[tuple[Row, list[Row], list[Row], list[Row], list[Row]]]:
        """Yield each fact, oldest first, with versions, provenance, what it was derived from, and who staged it.

        A fact is id, scope, kind, subject, attribute, slot, owner, visibility, recorded_at, erased_at. A version is
        the columns of `rows.VERSION_FIELDS`, retired_at, erased_at, digest, seal, the id of its successor, and the
        reason of the event that recorded it; every revision is one. Provenance is the columns of
        `rows.PROVENANCE_FIELDS`, its seal and the position of the message. A derivation is child, parent, how and
        recorded_at; an origin is the fact, the source that a transaction named for it, and recorded_at.
        """
        conn, after = self.store.conn, 0
        whole = honest.facts(self.store.key)
        select = f"select {', '.join(rows.FACT_FIELDS)}, seal from facts where scope in ({self._marks})"
        while page := conn.execute(f"{select} and id > ? order by id limit ?", (*self._scopes, after, PAGE)).fetchall():
            span = (*(() if self._whole else self._scopes), after, page[-1][0])
            versions, provenance = self._versions(span), self._provenance(span)
            parents, origins = self._derivations(span), self._origins(span)
            for row in page:
                number, name, scope, *rest, _ = row
                if not whole(row):
                    raise rows.behind_our_back(f"fact {name}")
                yield (
                    (name, self.names[scope], *rest),
                    versions(number),
                    provenance(number),
                    parents(number),
                    origins(number),
                )
            after = page[-1][0]

    def _within(self, column: str) -> str:
        if self._whole:
            return f" where {column} > ? and {column} <= ?"
        # The plus keeps SQLite at the order of the rows: the index of scopes would be gone through once for each page.
        return f" join facts f on f.id = {column} where +f.scope in ({self._marks}) and {column} > ? and {column} <= ?"

    def _versions(self, span: Row) -> Callable[[int], list[Row]]:
        whole = honest.versions(self.store.key)
        found = self.store.conn.execute(
            f"{_VERSIONS}{self._within('v.fact')} order by v.fact, v.version, v.revision", span
        ).fetchall()
        for row in found:
            if not whole(row[:_SEALED_COLUMNS]):
                raise self._tampered(row[0])
        why = self._reasons(span)
        if why:
            found = [(*row[:-1], why.get(row[_RECORDED_AT])) for row in found]
        return _groups(found)

    def _tampered(self, number: int) -> Damaged:
        found = self.store.conn.execute("select name from facts where id = ?", (number,)).fetchone()
        return rows.behind_our_back(f"fact number {number}" if found is None else f"fact {found[0]}")

    def _reasons(self, span: Row) -> dict[Micros, str]:
        """Return why versions were recorded, by their time; what was restored has an event of a later time."""
        where = self._within("v.fact")
        select = "select v.recorded_at, r.text, a.reason, a.seq from versions v"
        own = " join audit a on a.at = v.recorded_at join reasons r on r.seq = a.seq"
        restored = (
            " join facts n on n.id = v.fact join audit a on a.target = n.name and a.op = 'restore'"
            " and a.after = v.digest join reasons r on r.seq = a.seq"
        )
        if self._joins is None:
            conn = self.store.conn
            joins = [own] if conn.execute("select 1 from reasons where text is not null limit 1").fetchone() else []
            if joins and conn.execute(f"select 1 from audit where op = '{Op.RESTORE}' limit 1").fetchone():
                joins.append(restored)
            self._joins = joins
        why: dict[Micros, str] = {}
        for join in self._joins:
            for at, text, digest, seq in self.store.conn.execute(f"{select}{join}{where} and r.text is not null", span):
                if seal(self.store.key, "reason", (text,)) != digest:
                    raise rows.behind_our_back(f"the reason of event e{seq}")
                why[at] = text
        return why

    def _provenance(self, span: Row) -> Callable[[int], list[Row]]:
        whole = honest.sealed(self.store.key, "provenance")
        here = "" if self._whole else f" join sources s on s.id = p.source and +s.scope in ({self._marks})"
        found = self.store.conn.execute(
            f"{_PROVENANCE}{here}{self._within('p.fact')} order by p.fact, p.version, p.id",
            (*(() if self._whole else self._scopes), *span),
        ).fetchall()
        for row in found:
            if not whole(row):
                raise rows.behind_our_back(f"the evidence of fact number {row[0]}")
        return _groups((*row[:_PROVENANCE_COLUMNS], row[-1], row[-3]) for row in found)

    def _derivations(self, span: Row) -> Callable[[int], list[Row]]:
        found = self.store.conn.execute(
            "select d.child, d.parent, d.how, d.recorded_at, d.seal, p.name from derivations d"
            f" join facts p on p.id = d.parent and +p.scope in ({self._marks}){self._within('d.child')}"
            " order by d.child, d.parent",
            (*self._scopes, *span),
        ).fetchall()
        for *fields, its_seal, _ in found:
            if seal(self.store.key, "derivation", fields) != its_seal:
                raise rows.behind_our_back(f"the derivation of fact number {fields[0]}")
        return _groups((child, parent, how, at) for child, _, how, at, _, parent in found)

    def _origins(self, span: Row) -> Callable[[int], list[Row]]:
        found = self.store.conn.execute(
            "select o.fact, o.source, o.recorded_at, o.seal from origins o join sources s on s.id = o.source"
            f" and +s.scope in ({self._marks}){self._within('o.fact')} order by o.fact",
            (*self._scopes, *span),
        ).fetchall()
        for row in found:
            if seal(self.store.key, "origin", row[:-1]) != row[-1]:
                raise rows.behind_our_back(f"the origin of fact number {row[0]}")
        return _groups(row[:-1] for row in found)

    # ---------------------------------------------------------------- one fact, and what is left behind

    def readable(self, states: frozenset[State] | None) -> Iterator[tuple[Fact, Micros, dict[str, str]]]:
        """Yield the facts that another tool gets, oldest first: those that are valid now.

        With each come when the file first heard of it, and what the records that it came from said besides, such as
        the type of an MCP entity.

        Args:
            states: Only facts in these; None means every readable one.

        Raises:
            Damaged: A row was changed behind the file's back, or the view of current states does not fit.
        """
        conn, after, moment = self.store.conn, 0, self.store.now()
        wanted = sorted(states or READABLE)
        select = (
            f"select c.fact, f.recorded_at from current c join facts f on f.id = c.fact where +c.scope in"
            f" ({self._marks}) and +c.state in ({','.join('?' * len(wanted))}) and (c.valid_from is null or"
            " c.valid_from <= ?) and (c.valid_to is null or c.valid_to > ?) and c.fact > ? order by c.fact limit ?"
        )
        bound = (*self._scopes, *wanted, moment, moment)
        while page := conn.execute(select, (*bound, after, READABLE_PAGE)).fetchall():
            numbers = [number for number, _ in page]
            said = self._besides(numbers)
            facts = self.store.numbered(numbers)
            if len(facts) != len(page):
                raise Damaged(
                    "the view of current states does not fit the facts", hint="recreate it with `mem rebuild`"
                )
            for fact, (_, began) in zip(facts, page, strict=True):
                besides: dict[str, str] = {}
                for item in fact.provenance:
                    besides = said.get((item.source, item.index), {}) | besides
                yield fact, int(began), besides
            after = numbers[-1]

    def _besides(self, numbers: Sequence[int]) -> dict[tuple[str, int | None], dict[str, str]]:
        """Return what messages say besides, by source and index, for all that facts came from."""
        columns = ", ".join(f"m.{name}" for name in rows.MESSAGE_FIELDS)
        whole = honest.sealed(self.store.key, "message")
        said: dict[tuple[str, int | None], dict[str, str]] = {}
        for raw in self.store.conn.execute(
            f"select {columns}, m.seal from provenance p join messages m on m.id = p.message"
            f" where p.fact in ({','.join('?' * len(numbers))})",
            numbers,
        ):
            if raw[_DETAIL_AT] is not None:
                said[f"s{raw[0]}", raw[1]] = dict(self.store.reader.message(raw).extra)
            elif not whole(raw):
                raise rows.behind_our_back(f"message {rows.message_id(raw[0], raw[1])}")
        return said

    def states(self) -> dict[State, int]:
        """Return how many facts are in each state now."""
        found = self.store.conn.execute(
            f"select state, count(*) from current where scope in ({self._marks}) group by state order by state",
            self._scopes,
        )
        return {State(state): number for state, number in found}

    def newest(self) -> Iterator[Fact]:
        """Yield every fact in the version it has now, oldest first; of an erased one no words are left."""
        for row in self._newest():
            yield self.store.reader.fact(rows.VersionRow(raw=row))

    def seen(self) -> Iterator[tuple[str, tuple[Any, ...], int]]:
        """Yield id, what it says and row number of each of these facts: two with equal parts say the same.

        What an erased one says is that it is erased.
        """
        for row in self._newest():
            said = _ERASED if row[_ERASED_AT] is not None else _said(row)
            yield row[_NAME_AT], said, row[1]

    def fact(self, number: int) -> Fact:
        """Return one of these facts by its row number."""
        row = self.store.conn.execute(f"{_NEWEST} and f.id = ?", (number,)).fetchone()
        return self.store.reader.fact(self.store.reader.version(row))

    def _newest(self) -> Iterator[Row]:
        version, fact = honest.versions(self.store.key), honest.facts(self.store.key)
        select = f"{_NEWEST} and +f.scope in ({self._marks}) order by f.id"
        for row in self.store.conn.execute(select, self._scopes):
            if not version(row[1:_FACT_AT]) or not fact(row[_FACT_AT:_REST_AT]):
                raise rows.behind_our_back(f"fact {row[_NAME_AT]}")
            yield row

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how much there is beside the facts as they are now, by its noun in both numbers."""
        within = f"in (select id from facts where scope in ({self._marks}))"
        here = f"scope in ({self._marks})"
        return {
            (one, many or f"{one}s"): self.store.one(f"select count(*) from {what}", *self._scopes)
            for one, many, what in (
                ("tombstone", "", f"tombstones where lifted_at is null and (scope is null or {here})"),
                ("earlier version", "", f"versions where revision = 1 and version > 1 and fact {within}"),
                ("piece of evidence", "pieces of evidence", f"provenance where fact {within}"),
                ("derivation", "", f"derivations where child {within}"),
                ("message", "", f"messages where source in (select id from sources where {here})"),
            )
        }

    def staying(self) -> dict[tuple[str, str], int]:
        """Return how much belongs to the file and is in no export: what waits or is under way, and links out."""
        facts = f"(select id from facts where scope in ({self._marks}))"
        sources = f"(select id from sources where scope in ({self._marks}))"
        within = f"in ({self._marks})"
        nouns: tuple[tuple[str, str, str], ...] = (
            ("proposal", "proposals", f"proposals where settled_at is null and scope {within}"),
            ("open transaction", "open transactions", f"transactions where status = 'open' and scope {within}"),
            (
                "derivation from another scope",
                "derivations from other scopes",
                f"derivations where child in {facts} and parent not in {facts}",
            ),
            (
                "piece of evidence in another scope",
                "pieces of evidence in other scopes",
                f"provenance where fact in {facts} and source not in {sources}",
            ),
            ("rule of the policy", "rules of the policy", "policy"),
        )
        return {
            (one, many): self.store.one(f"select count(*) from {what}", *self._scopes * what.count(within))
            for one, many, what in nouns
        }


def _groups(found: Iterable[Row]) -> Callable[[int], list[Row]]:
    """Return what gives the rows of a number, asked for in rising order; rows come sorted by their first column."""
    held = {number: list(group) for number, group in groupby(found, key=_FIRST)}
    return lambda number: held.get(number, [])


# -------------------------------------------------------------------- the way back


class Restoring(Ledger):
    """A ledger that writes an export back, row by row, as it was."""

    def may_restore(self) -> None:
        """Say nothing where an export may be written back by this actor, into this file.

        Raises:
            NotPermitted: This is no person at a terminal.
            NotAllowed: The file holds something already.
        """
        self.need_person("restore an export")
        for table in ("facts", "sources", "tombstones", "proposals"):
            if self.conn.execute(f"select 1 from {table} limit 1").fetchone():
                raise NotAllowed(
                    f"an export is restored into an empty file, and this one holds {table} already",
                    hint="make a new file with `mem init --db FILE`, or import without --restore",
                    target="restore",
                )

    def restore(
        self,
        *,
        keys: Sequence[tuple[str, bytes]],
        found: Iterator[tuple[str, Row]],
        facts: Mapping[str, int],
        latest: Micros,
        digest: bytes,
    ) -> None:
        """Write back what an export holds; the caller has looked at all of it.

        Each row that the log speaks of has an event of its own, later than everything that is restored.

        Args:
            keys: Ids and secrets of tombstone keys, the file's own first.
            found: Types and rows as `memcli.exchange.mem_records` says.
            facts: The row number of each fact by its id.
            latest: The latest time at which something was recorded.
            digest: What the first event calls the export.

        Raises:
            NotPermitted, NotAllowed: As `may_restore` says.
        """
        self.may_restore()
        self._at = max(self._at, latest)
        self.event(Op.RESTORE, None, after=digest)
        asked, self.reason = self.reason, None
        # Facts and tombstones name facts that come later.
        self.conn.execute("pragma defer_foreign_keys = on")
        self._own_key(keys)
        back = _Back(self, TombstoneKey(id=keys[0][0], secret=keys[0][1]), facts)
        for kind, row in found:
            back.take(kind, row)
        back.end_source()
        self.reason = asked

    def _own_key(self, keys: Sequence[tuple[str, bytes]]) -> None:
        """Let the first key be the file's own, which nothing was keyed with yet, and write the others."""
        name, secret = keys[0]
        self.conn.execute(
            "update keys set id = ?, secret = ?, seal = ? where rowid ="
            " (select min(rowid) from keys where purpose = 'tombstone')",
            (name, secret, seal(self.key, "key", (name, "tombstone", secret))),
        )
        for other, its_secret in keys[1:]:
            basics.write_key(self.conn, self.key, (other, "tombstone", its_secret))

    @property
    def next_event(self) -> int:
        """Return the number that the next event will have."""
        return self._seq + 1

    def restore_version(self, values: Row, rest: tuple[Micros | None, Micros | None]) -> bytes:
        """Write one revision as it was and return its digest; `rest` is when it was retired and erased."""
        digest = seal(self.key, "version", values)
        its_seal = rows.version_seal(self.key, values, (digest, *rest))
        cursor = self.conn.execute(_INSERT_VERSION, (*values, *rest, digest, its_seal))
        text = values[_TEXT_AT]
        if text is not None:
            self._fresh.append((int(cursor.lastrowid or 0), text))
        return digest

    def restore_view(self, fact: int) -> None:
        """Let the views take up a fact that they do not know."""
        self._touched[fact] = None


_INSERT_VERSION = (
    f"insert into versions ({', '.join(rows.VERSION_FIELDS)}, retired_at, erased_at, digest, seal)"
    f" values ({', '.join('?' * (_VERSION_COLUMNS + 4))})"
)
_TEXT_AT = rows.VERSION_FIELDS.index("text")


_WITH_FACTS = frozenset({"statement", "reference"})
"""Formats of sources of which the log does not speak: they came with a fact."""


class _Back:
    """Rows on their way back: numbers in place of names, fresh digests and seals, an event for each."""

    def __init__(self, write: Restoring, key: TombstoneKey, facts: Mapping[str, int]) -> None:
        self.write = write
        self.conn = write.conn
        self.key = key
        self.facts = facts
        self._scopes: dict[str, int] = {}
        self._source: Row = ()
        self._messages: dict[tuple[int, int], int] = {}
        self._groups: dict[Micros, list[bytes]] = {}
        self._fact: Row = ()
        self._kinds: Mapping[str, Callable[[Row], None]] = {
            "tombstone": self._tombstone,
            "source": self._take_source,
            "message": self._message,
            "fact": self._take_fact,
            "version": self._version,
            "provenance": self._provenance,
            "derivation": self._derivation,
            "origin": self._origin,
        }

    def take(self, kind: str, row: Row) -> None:
        """Write one row."""
        self._kinds[kind](row)

    def _scope(self, name: str) -> int:
        if name not in self._scopes:
            self._scopes[name] = self.write.scope_row(name)
        return self._scopes[name]

    def _insert(self, table: str, fields: Sequence[str], values: Sequence[Any]) -> int:
        """Write a row with its seal and return its number."""
        marks = ", ".join("?" * (len(fields) + 1))
        its_seal = seal(self.write.key, _KINDS[table], values)
        cursor = self.conn.execute(
            f"insert into {table} ({', '.join(fields)}, seal) values ({marks})", (*values, its_seal)
        )
        return int(cursor.lastrowid or 0)

    # ---------------------------------------------------------------- tombstones

    def _tombstone(self, row: Row) -> None:
        number, scope, match, pattern, key, normaliser, stops, name, reason, who, at, lifted_at, why = row
        where = None if scope is None else self._scope(scope)
        fact = None if name is None else self.facts[name]
        fields = (number, match, pattern, key, normaliser, fact, self.write.next_event, *who, at)
        made, lifted = (rows.tombstone_digest(self.write.key, fields, stops, moment) for moment in (None, lifted_at))
        self.conn.execute(
            f"insert into tombstones ({', '.join(rows.TOMBSTONE_FIELDS)}, scope, lifted_at, seal)"
            f" values ({', '.join('?' * (len(fields) + 3))})",
            (*fields, where, lifted_at, seal(self.write.key, "stop", (lifted, where))),
        )
        self.conn.executemany("insert into stops values (?, ?)", [(stop, number) for stop in stops])
        self._event(f"t{number}", where, made, reason)
        if lifted_at is not None:
            self._event(f"t{number}", where, lifted, why, before=made)

    def _event(self, target: str, scope: int | None, after: bytes, reason: str | None, **more: Any) -> None:
        words = None if reason is None else unpack(reason)
        here = self.write.scope if scope is None else scope
        self.write.event(Op.RESTORE, target, scope=here, after=after, reason=words, **more)

    # ---------------------------------------------------------------- evidence

    def _take_source(self, row: Row) -> None:
        self.end_source()
        number, scope, *rest = row
        self._source = (number, self._scope(scope), *rest)
        self._insert("sources", rows.SOURCE_FIELDS, self._source)

    def _message(self, row: Row) -> None:
        (source, position), role, content, detail, at, evidence, recorded_at, erased_at = row
        values = (source, position, role, content, detail, at, evidence, recorded_at, erased_at)
        self._messages[source, position] = self._insert("messages", rows.MESSAGE_FIELDS, values)
        self._groups.setdefault(recorded_at, []).append(evidence)

    def end_source(self) -> None:
        """Record what a source was given at each time; a statement or reference is in the log with its fact."""
        if self._source and self._source[3] not in _WITH_FACTS:
            number, scope, *_ = self._source
            for evidence in self._groups.values():
                self._event(f"s{number}", scope, seal(self.write.key, "import", (number, *evidence)), None)
        self._groups.clear()

    # ---------------------------------------------------------------- facts

    def _take_fact(self, row: Row) -> None:
        self.end_source()
        self._source = ()
        name, scope, kind, subject, attribute, slot, *rest = row
        number = self.facts[name]
        if subject is not None and attribute is not None:
            slot = slot_digest(self.key, unpack(subject), unpack(attribute), "")
        self._fact = (number, name, self._scope(scope), kind, subject, attribute, slot, *rest)
        self._insert("facts", rows.FACT_FIELDS, self._fact)
        self.write.restore_view(number)

    def _version(self, row: Row) -> None:
        _, version, revision, state, text, value, *numbers, successor, rule, text_key, slot_key, who = row[:18]
        recorded_at, retired_at, erased_at, reason = row[18:]
        number, name, scope, _, subject, attribute, *_rest = self._fact
        if text is not None:
            text_key = value_digest(self.key, unpack(text))
        if value is not None:
            slot_key = slot_digest(self.key, unpack(subject), unpack(attribute), rows.from_json(value))
        taken_by = None if successor is None else self.facts[successor]
        said = (number, version, revision, state, text, value, *numbers, taken_by, rule, text_key, slot_key)
        values = (*said, *who, recorded_at)
        digest = self.write.restore_version(values, (retired_at, erased_at))
        self._event(name, scope, digest, reason, moved=(None, State(state)))

    def _provenance(self, row: Row) -> None:
        _, version, source, message, quote, span, verified, recorded_at, erased_at = row
        number = None if message is None else self._messages[message]
        place = span or (None, None)
        values = (self._fact[0], version, source, number, quote, *place, verified, recorded_at, erased_at)
        self.write.insert_provenance_row(values)

    def _derivation(self, row: Row) -> None:
        child, parent, how, recorded_at = row
        edge = (self.facts[child], self.facts[parent], how, recorded_at)
        self._insert("derivations", ("child", "parent", "how", "recorded_at"), edge)

    def _origin(self, row: Row) -> None:
        name, source, recorded_at = row
        self._insert("origins", ("fact", "source", "recorded_at"), (self.facts[name], source, recorded_at))


_KINDS = {
    "sources": "source",
    "messages": "message",
    "facts": "fact",
    "provenance": "provenance",
    "derivations": "derivation",
    "origins": "origin",
}
"""What the seal of a table's rows is called."""
