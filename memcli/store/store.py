"""`Store`: every question that can be asked of a memory file. It looks; `write()` gives the one way to change."""

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memcli import clock, schema
from memcli.errors import Ambiguous, Busy, Damaged, NoSpace, NotFound, OutOfScope, UsageError
from memcli.facts import (
    Actor,
    AuditEvent,
    Derivation,
    EventQuery,
    Excerpt,
    Fact,
    FactQuery,
    Message,
    Micros,
    PolicyRule,
    Proposal,
    Provenance,
    ScopeInfo,
    Source,
    Stats,
    Tombstone,
)
from memcli.store import basics, file, rows
from memcli.store.basics import checked_scope
from memcli.store.seals import AUDIT_COLUMNS, GENESIS, seal, shown
from memcli.store.tx_store import Transacted
from memcli.terms import DEFAULT_SCOPE, READABLE, Admission, Op, State
from memcli.text import pack

if TYPE_CHECKING:
    from memcli.store.search import Search
    from memcli.store.writer import Writer

PREFIX = 4
"""The fewest characters of an id that may stand for it."""

_CHUNK = 500
_SEALED_AT = len(rows.PROVENANCE_FIELDS)


class Store(Transacted):
    """A memory file, opened to look at in one scope; close it, or use it as a context manager.

    Args:
        path: The file.
        conn: A connection that looks.
        scope: The scope asked for; None is the file's default.
        bound: The scope this process is bound to; None where it is free.
        now: Returns the wall clock; transaction time never goes back behind the newest event.
    """

    def __init__(
        self,
        path: Path,
        conn: sqlite3.Connection,
        *,
        scope: str | None = None,
        bound: str | None = None,
        now: Callable[[], Micros] = clock.now,
    ) -> None:
        self.path = path
        self.conn = conn
        self.now = now
        self.bound = None if bound is None else checked_scope(bound)
        self._writing: sqlite3.Connection | None = None
        self._wrote = False
        self._identity = file.identity(path)
        with file.sentences(str(path)):
            schema.check(conn, str(path))
            self._load(scope)
            basics.check_settings(self.settings, path)

    @classmethod
    def unborn(cls, path: Path, conn: sqlite3.Connection, *, now: Callable[[], Micros]) -> "Store":
        """Return a store over a file that is still being made or upgraded, on the connection that does it."""
        self = cls.__new__(cls)
        self.path, self.conn, self.now, self.bound = path, conn, now, None
        self._writing, self._wrote = None, False
        self._identity = file.identity(path)
        self._load(None)
        return self

    def _load(self, scope: str | None) -> None:
        self.refresh()
        asked = None if scope is None else checked_scope(scope)
        if self.bound is not None and asked not in (None, self.bound):
            raise OutOfScope(
                f"this process is bound to {self.bound} and may not use {asked}", hint="unset MEM_SCOPE to be free"
            )
        self.scope = self.bound or asked or self.settings.get("scope", DEFAULT_SCOPE)
        if self.scope_number in self._merged:
            into = self.reader.scopes[self._final(self._merged[self.scope_number])]
            raise NotFound(f"scope {self.scope} was merged into {into}", hint=f"use --scope {into}")

    def refresh(self) -> None:
        """Read keys, settings and scopes again, as after a change by another process."""
        self.key, self.tombstone_key = basics.read_keys(self.conn, self.path)
        self.settings = basics.read_settings(self.conn, self.key)
        names, self._merged = basics.read_scopes(self.conn, self.key)
        self.reader = rows.Reader(key=self.key, scopes=names)

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def counter(self) -> Callable[[str], int] | None:
        """Return what counts tokens in the file's encoding, or None where its vocabulary is not at hand."""
        from memcli.tokens import try_counter  # loads a vocabulary of some megabytes

        return try_counter(self.settings["encoding"])

    def close(self) -> None:
        """Close the file; where something was written, the WAL is folded back so that one file is left."""
        self.conn.close()
        if self._writing is not None:
            file.close(self._writing, wrote=self._wrote)
            self._writing = None

    @property
    def admission(self) -> Admission:
        """Return whether a written item is trusted at once."""
        return Admission(self.settings["admission"])

    @property
    def scope_number(self) -> int | None:
        """Return the row of the store's scope, or None where nothing was ever written in it."""
        return next((number for number, name in self.reader.scopes.items() if name == self.scope), None)

    @contextmanager
    def write(self, actor: Actor, reason: str | None = None) -> Iterator["Writer"]:
        """Hold the write lock and give the one way to change the file; commit at the end, all or nothing.

        A refusal raised inside is kept in the audit although everything else is rolled back.

        Raises:
            Busy, NoSpace, Damaged: Nothing was changed.
            Stale: Another file lies at the path by now.
            Refused: A rule said no; nothing was changed but the record of the refusal.
        """
        from memcli.store.writer import session

        with file.sentences(str(self.path)):
            conn = self._writer_connection()
            with session(self, conn, actor, reason) as writer:
                yield writer
            self._wrote = True
            self.scope = writer.scope_name
            self.refresh()
            self._scrub(conn, must=writer.scrubs)

    @contextmanager
    def rehearse(self, actor: Actor, reason: str | None = None) -> Iterator["Writer"]:
        """Give a writer like `write()`, and roll everything back at the end: what it did is what would have happened.

        Raises:
            Busy, NoSpace, Damaged: The file cannot be written.
        """
        from memcli.store.writer import rehearsal

        with file.sentences(str(self.path)), rehearsal(self, self._writer_connection(), actor, reason) as writer:
            yield writer

    def _scrub(self, conn: sqlite3.Connection, *, must: bool) -> None:
        """Drive out what an erase left in free pages, now or after an erase that was held up.

        Args:
            must: Whether it failed if this fails; another change that came by is done, whatever becomes of it.
        """
        if self.settings.get("scrub") != "pending":
            return
        from memcli.store.erase import scrub

        def done() -> None:
            with file.immediate(conn):
                basics.write_setting(conn, self.key, ("scrub", "done"))

        try:
            scrub(conn, str(self.path), done, timeout_s=file.timeout_s() if must else 0)
        except (Busy, NoSpace):
            if must:
                raise
        self.refresh()

    def rebuild(self, actor: Actor) -> dict[str, int]:
        """Recreate what is derived and return how many rows each view holds."""
        from memcli.store.views import rebuild

        counter = self.counter()
        with self.write(actor) as write:
            write.scrubs = True
            return rebuild(write.conn, counter, self.settings["encoding"])

    def planner(self, actor: Actor) -> "Writer":
        """Return a writer that can only plan: it looks through the reading connection, and any change fails."""
        from memcli.store.writer import Writer

        return Writer(self, self.conn, actor, None, planning=True)

    def _writer_connection(self) -> sqlite3.Connection:
        file.check_same(self.path, self._identity)
        if self._writing is None:
            self._writing = file.connect(self.path, writing=True)
            schema.check(self._writing, str(self.path))
        return self._writing

    # ---------------------------------------------------------------- facts

    def get(self, prefix: str, *, known_at: Micros | None = None, all_scopes: bool = False) -> Fact:
        """Return one fact of the scope in the version the file holds now, or held at `known_at`.

        Raises:
            NotFound: No fact of this scope has an id that begins so, or it was not known then.
            Ambiguous: Several have.
        """
        with file.sentences(str(self.path)):
            number = self.fact_number(prefix, all_scopes=all_scopes)
            found = self._versions("v.fact = ?" + _known(known_at), number, *_moment(known_at))
            if not found:
                raise NotFound(f"fact {prefix} was not known then", hint="leave out --known-at")
            return self._complete(found[-1:], known_at)[0]

    def fact_number(self, prefix: str, *, all_scopes: bool = False) -> int:
        """Return the row number of the one fact whose id begins with `prefix`."""
        given = prefix.strip().lower()
        hexadecimal = re.fullmatch("[0-9a-f]+", given) is not None
        where = "name = ?" if len(given) == 16 else "name >= ? and name < ? || 'g'"
        bound = (given,) if len(given) == 16 else (given, given)
        scope = "" if all_scopes else " and scope = ?"
        scoped = () if all_scopes else (self.scope_number,)
        sql = f"select id, name from facts where {where}{scope} order by name limit 5"
        found = self.conn.execute(sql, (*bound, *scoped)).fetchall() if hexadecimal else []
        if len(given) < PREFIX or not found:
            short = len(given) < PREFIX and hexadecimal
            raise NotFound(
                f"no fact of {self.scope} has the id {prefix}",
                hint=f"give at least {PREFIX} characters of it"
                if short
                else "list the facts with `mem show --all-states`",
            )
        if len(found) > 1:
            raise Ambiguous(
                f"{prefix} begins the ids of several facts",
                hint="give more of it: " + ", ".join(name for _, name in found),
            )
        return int(found[0][0])

    def versions(self, fact: str, *, known_at: Micros | None = None) -> list[Fact]:
        """Return what a fact said, oldest version first, each as the file holds it now or held it at `known_at`."""
        with file.sentences(str(self.path)):
            number = self._number(fact)
            found = self._versions("v.fact = ?" + _known(known_at), number, *_moment(known_at))
            return self._complete(found, known_at)

    def history(self, fact: str) -> list[Fact]:
        """Return every revision of every version of a fact in the order they were recorded."""
        with file.sentences(str(self.path)):
            found = self._versions("v.fact = ?", self._number(fact), order="v.recorded_at")
            return self._complete(found, None)

    def _number(self, name: str) -> int:
        row = self.conn.execute("select id from facts where name = ?", (name,)).fetchone()
        if row is None:
            raise NotFound(f"no fact has the id {name}", hint="list the facts with `mem show --all-states`")
        return int(row[0])

    def facts(self, query: FactQuery = FactQuery()) -> Iterator[Fact]:
        """Yield the facts a query asks for, newest first; each is checked against its digest.

        Without states, those a prompt may read; with `valid_at`, also superseded ones that were true then.
        """
        with file.sentences(str(self.path)):
            found = self._now(query) if query.known_at is None and query.valid_at is None else self._then(query)
            iterator = iter(found if query.limit is None else islice(found, query.limit))
            current = query.known_at is None and query.valid_at is None
            while chunk := [self.reader.version(raw) for raw in islice(iterator, _CHUNK)]:
                if current and not all(self._as_viewed(row, query) for row in chunk):
                    raise _stale_view()
                yield from self._complete(chunk, query.known_at)

    def _as_viewed(self, row: rows.VersionRow, query: FactQuery) -> bool:
        """Return whether a row is what the view of current states said; nothing guards a view."""
        here = query.all_scopes or row.fact_field("scope") == self.scope_number
        return here and row.field("retired_at") is None and row.field("state") in (query.states or READABLE)

    def _now(self, query: FactQuery) -> Iterable[rows.Row]:
        where, bound = _in_states(query.states or READABLE)
        if not query.all_scopes:
            where.append("c.scope = ?")
            bound.append(self.scope_number)
        if not query.any_validity:
            moment = self.now()
            where.append("(c.valid_from is null or c.valid_from <= ?) and (c.valid_to is null or c.valid_to > ?)")
            bound += [moment, moment]
        self._narrow(query, where, bound)
        select = rows.SELECT_VERSION.replace("from versions v", "from current c join versions v on v.id = c.row", 1)
        return self.conn.execute(f"{select} where {' and '.join(where or ['1'])} order by c.fact desc", bound)

    def _then(self, query: FactQuery) -> Iterable[rows.Row]:
        known = query.known_at if query.known_at is not None else (1 << 62)
        valid = query.valid_at if query.valid_at is not None else known
        covers = (
            ""
            if query.any_validity
            else (
                " and {0}.displaced = 0 and ({0}.valid_from is null or {0}.valid_from <= :valid)"
                " and ({0}.valid_to is null or {0}.valid_to > :valid)"
            )
        )
        held = "{0}.recorded_at <= :known and ({0}.retired_at is null or {0}.retired_at > :known)" + covers
        states = query.states or (READABLE | {State.SUPERSEDED} if query.valid_at is not None else READABLE)
        names = {f"state{index}": str(state) for index, state in enumerate(sorted(states))}
        where = [
            held.format("v"),
            f"v.state in ({','.join(':' + name for name in names)})",
            "v.version = (select max(w.version) from versions w where w.fact = v.fact and " + held.format("w") + ")",
        ]
        bound: dict[str, Any] = {"known": known, "valid": valid, **names}
        if not query.all_scopes:
            where.append("f.scope = :scope")
            bound["scope"] = self.scope_number
        self._narrow(query, where, bound)
        return self.conn.execute(f"{rows.SELECT_VERSION} where {' and '.join(where)} order by v.fact desc", bound)

    def _narrow(self, query: FactQuery, where: list[str], bound: Any) -> None:
        extra: list[tuple[str, str, Any]] = []
        if query.subject is not None:
            extra.append(("subject", "mem_folded(f.subject) = mem_folded({})", pack(query.subject)))
        if query.source is not None:
            number = self.source_number(query.source, all_scopes=query.all_scopes)
            extra.append(("source", "v.fact in (select fact from provenance where source = {})", number))
        if query.after is not None:
            extra.append(("after", "v.fact < {}", self.fact_number(query.after, all_scopes=query.all_scopes)))
        for name, clause, value in extra:
            if isinstance(bound, dict):
                where.append(clause.format(":" + name))
                bound[name] = value
            else:
                where.append(clause.format("?"))
                bound.append(value)

    def numbered(self, numbers: Sequence[int]) -> list[Fact]:
        """Return the current versions of facts by row number, in the order given; unknown ones are left out."""
        with file.sentences(str(self.path)):
            found: dict[int, Fact] = {}
            for start in range(0, len(numbers), _CHUNK):
                part = numbers[start : start + _CHUNK]
                marks = ",".join("?" * len(part))
                select = rows.SELECT_VERSION.replace(
                    "from versions v", "from current c join versions v on v.id = c.row", 1
                )
                chunk = [
                    self.reader.version(raw) for raw in self.conn.execute(f"{select} where c.fact in ({marks})", part)
                ]
                if self.one(f"select count(*) {_MISLED} and c.fact in ({marks})", *part):
                    raise _stale_view()
                found.update(zip((row.fact for row in chunk), self._complete(chunk, None), strict=True))
            return [found[number] for number in numbers if number in found]

    def _versions(self, where: str, *bound: Any, order: str = "v.version") -> list[rows.VersionRow]:
        clause = where if order != "v.version" or "recorded_at" in where else f"{where} and v.retired_at is null"
        return [
            self.reader.version(raw)
            for raw in self.conn.execute(f"{rows.SELECT_VERSION} where {clause} order by {order}", bound)
        ]

    def _complete(self, found: Sequence[rows.VersionRow], known_at: Micros | None) -> list[Fact]:
        if not found:
            return []
        marks = ",".join("?" * len(found))
        numbers = [row.fact for row in found]
        known = 1 << 62 if known_at is None else known_at
        evidence: dict[tuple[int, int], dict[bytes, Provenance]] = {}
        for raw in self.conn.execute(
            f"{rows.SELECT_PROVENANCE} where p.fact in ({marks}) and p.recorded_at <= ? order by p.id",
            (*numbers, known),
        ):
            # By its seal: a row that is there twice says nothing twice.
            evidence.setdefault((raw[0], raw[1]), {})[raw[_SEALED_AT]] = rows.provenance_of(self.key, raw)
        edges = self._edges(f"child in ({marks}) and recorded_at <= ? order by parent", *numbers, known)
        names = self._names({parent for _, parent, _, _ in edges} | {row.field("superseded_by") for row in found})
        parents: dict[int, list[str]] = {}
        for child, parent, _, _ in edges:
            parents.setdefault(child, []).append(names[parent])
        return [
            self.reader.fact(
                row,
                tuple(evidence.get((row.fact, int(row.field("version"))), {}).values()),
                tuple(parents.get(row.fact, ())),
            )
            for row in found
        ]

    def _edges(self, where: str, *bound: Any) -> list[tuple[int, int, str, int]]:
        columns = ", ".join(rows.DERIVATION_FIELDS)
        found = self.conn.execute(f"select {columns}, seal from derivations where {where}", bound)
        return [rows.derivation(self.key, raw) for raw in found]

    def _names(self, numbers: set[int | None]) -> dict[int, str]:
        """Return the ids of facts that others speak of; a number that no fact has is damage."""
        wanted = sorted(number for number in numbers if number is not None)
        if not wanted:
            return {}
        columns, marks = ", ".join(rows.FACT_FIELDS), ",".join("?" * len(wanted))
        found = self.conn.execute(f"select {columns}, seal from facts where id in ({marks})", wanted)
        held = {int(raw[0]): raw for raw in found}
        return {number: self.reader.name_of(number, held.get(number)) for number in wanted}

    def tally(self) -> dict[State, int]:
        """Return how many facts of the scope are in each state now."""
        with file.sentences(str(self.path)):
            found: dict[str, int] = dict(
                self.conn.execute(
                    "select state, facts from tallies where scope = ? and facts > 0", (self.scope_number,)
                )
            )
        if not set(found) <= set(State):
            raise _stale_view()
        return {State(state): number for state, number in found.items()}

    def short_ids(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the shortest prefix, of four characters at least, that names each fact and no other."""
        short: dict[str, str] = {}
        with file.sentences(str(self.path)):
            for name in ids:
                near = [
                    row[0]
                    for row in self.conn.execute(
                        "select max(name) from facts where name < ?1"
                        " union all select min(name) from facts where name > ?1",
                        (name,),
                    )
                    if row[0] is not None
                ]
                length = PREFIX
                while any(other[:length] == name[:length] for other in near):
                    length += 1
                short[name] = name[:length]
        return short

    # ---------------------------------------------------------------- evidence

    def sources(self) -> list[Source]:
        """Return the sources of the scope, oldest first."""
        with file.sentences(str(self.path)):
            return [self.reader.source(raw) for raw in self._source_rows("scope = ?", self.scope_number)]

    def source(self, name: str) -> Source:
        """Return one source of the scope.

        Raises:
            NotFound: There is none with that id, path or session.
        """
        with file.sentences(str(self.path)):
            return self.reader.source(self._source_rows("id = ?", self.source_number(name))[0])

    def source_number(self, name: str, *, all_scopes: bool = False) -> int:
        """Return the row number of a source by its id (`s3`), path, file name or session."""
        scope = "" if all_scopes else " and scope = ?"
        scoped = () if all_scopes else (self.scope_number,)
        match = re.fullmatch(r"s(\d{1,18})", name)
        if match:
            row = self.conn.execute(f"select id from sources where id = ?{scope}", (int(match[1]), *scoped)).fetchone()
            if row is not None:
                return int(row[0])
        found = self.conn.execute(
            "select id from sources where (path = ?1 or session = ?1"
            f" or path like '%/' || replace(replace(?1, '%', ''), '_', '\\_') escape '\\'){scope.replace('?', '?2')}"
            " order by id desc limit 5",
            (pack(name), *scoped),
        ).fetchall()
        if not found:
            raise NotFound(f"no source of {self.scope} is called {name}", hint="list them with `mem import --list`")
        if len(found) > 1:
            raise Ambiguous(
                f"several sources are called {name}",
                hint="give an id: " + ", ".join(f"s{number}" for (number,) in found),
            )
        return int(found[0][0])

    def _source_rows(self, where: str, *bound: Any) -> list[rows.Row]:
        columns = ", ".join(rows.SOURCE_FIELDS)
        return self.conn.execute(
            f"select {columns}, seal, (select count(*) from messages where source = sources.id)"
            f" from sources where {where} order by id",
            bound,
        ).fetchall()

    def messages(self, source: str, *, start: int = 0, stop: int | None = None) -> list[Message]:
        """Return the messages of a source with index from `start` up to, not including, `stop`."""
        with file.sentences(str(self.path)):
            number = self.source_number(source)
            return self._messages("source = ? and position >= ? and position < ?", number, start, stop or (1 << 62))

    def message(self, name: str) -> Message:
        """Return one message of the scope by its id, such as `s3#12`.

        Raises:
            NotFound: There is none.
        """
        with file.sentences(str(self.path)):
            source, position = self.message_place(name)
            return self._messages("source = ? and position = ?", source, position)[0]

    def message_place(self, name: str) -> tuple[int, int]:
        """Return the row number of a message's source and its 0-based index."""
        source, _, index = name.rpartition("#")
        if source and index.isdecimal() and len(index) < 18:
            number = self.source_number(source)
            row = self.conn.execute(
                "select 1 from messages where source = ? and position = ?", (number, int(index))
            ).fetchone()
            if row is not None:
                return number, int(index)
        raise NotFound(
            f"no message of {self.scope} has the id {name}", hint="ids look like s3#12: a source, #, the index from 0"
        )

    def _messages(self, where: str, *bound: Any) -> list[Message]:
        columns = ", ".join(rows.MESSAGE_FIELDS)
        found = self.conn.execute(
            f"select {columns}, seal from messages where {where} order by source, position", bound
        )
        return [self.reader.message(raw) for raw in found]

    def excerpts(self, fact: Fact) -> list[Excerpt]:
        """Return the messages a version came from, each with the one before and the one after."""
        with file.sentences(str(self.path)):
            return [self._excerpt(item) for item in fact.provenance if item.message is not None]

    def _excerpt(self, item: Provenance) -> Excerpt:
        number, position = int(item.source[1:]), item.index or 0
        near = {
            message.index: message
            for message in self._messages("source = ? and position between ? and ?", number, position - 1, position + 1)
        }
        found = self._source_rows("id = ?", number)
        if position not in near or not found:
            raise rows.behind_our_back(f"message {item.message}")
        source = self.reader.source(found[0])
        return Excerpt(
            provenance=item,
            message=near[position],
            before=near.get(position - 1),
            after=near.get(position + 1),
            path=source.path or source.title or source.format,
        )

    def parents(self, fact: str) -> list[tuple[Derivation, Fact]]:
        """Return what a fact was derived from."""
        return self._kin(fact, mine="child", theirs="parent")

    def children(self, fact: str) -> list[tuple[Derivation, Fact]]:
        """Return what was derived from a fact, in any scope."""
        return self._kin(fact, mine="parent", theirs="child")

    def _kin(self, fact: str, *, mine: str, theirs: str) -> list[tuple[Derivation, Fact]]:
        with file.sentences(str(self.path)):
            number = self._number(fact)
            kin: list[tuple[Derivation, Fact]] = []
            for child, parent, how, _ in self._edges(f"{mine} = ? order by {theirs}", number):
                other = child if theirs == "child" else parent
                for relative in self._complete(self._versions("v.fact = ?", other)[-1:], None):
                    names = (relative.id, fact) if theirs == "child" else (fact, relative.id)
                    kin.append((Derivation(child=names[0], parent=names[1], how=rows.how(how)), relative))
            return kin

    # ---------------------------------------------------------------- tombstones, policy, proposals

    def tombstones(self, *, lifted: bool = False) -> list[Tombstone]:
        """Return the tombstones that hold in the scope, oldest first; with `lifted`, also those that ended."""
        where = "(t.scope is null or t.scope = ?)" + ("" if lifted else " and t.lifted_at is null")
        with file.sentences(str(self.path)):
            return self._tombstones(where, self.scope_number)

    def tombstone(self, name: str) -> Tombstone:
        """Return one tombstone that holds in the scope.

        Raises:
            NotFound: There is none of that id, such as `t3`.
        """
        match = re.fullmatch(r"t(\d{1,18})", name.strip().lower())
        with file.sentences(str(self.path)):
            found = (
                self._tombstones("t.id = ? and (t.scope is null or t.scope = ?)", int(match[1]), self.scope_number)
                if match
                else []
            )
        if not found:
            raise NotFound(
                f"no tombstone of {self.scope} is called {name}", hint="list them with `mem log --op tombstone`"
            )
        return found[0]

    def _tombstones(self, where: str, *bound: Any) -> list[Tombstone]:
        return [self.reader.tombstone(raw, self.stops(raw[0])) for raw in self.tombstone_rows(where, *bound)]

    def tombstone_rows(self, where: str, *bound: Any) -> list[rows.Row]:
        """Return rows as `Reader.tombstone` takes them."""
        return self.conn.execute(f"{rows.SELECT_TOMBSTONE} where {where} order by t.id", bound).fetchall()

    def stops(self, tombstone: int) -> list[bytes]:
        """Return the digests that a tombstone stops."""
        return [digest for (digest,) in self.conn.execute("select digest from stops where tombstone = ?", (tombstone,))]

    def policy(self) -> list[PolicyRule]:
        """Return the rules of the file's policy, by kind and name."""
        with file.sentences(str(self.path)):
            found = self.conn.execute("select kind, name, value, seal from policy order by kind, name")
            return [self.reader.policy(raw) for raw in found]

    def proposals(self) -> list[Proposal]:
        """Return the proposals of the scope that wait for a person, oldest first."""
        with file.sentences(str(self.path)):
            found = self.conn.execute(
                f"{rows.SELECT_PROPOSAL} where p.settled_at is null and p.scope = ? order by p.id",
                (self.scope_number,),
            )
            return [self.reader.proposal(raw) for raw in found]

    # ---------------------------------------------------------------- the log

    def head(self) -> tuple[int, str]:
        """Return how many events the log has and the hash of the newest.

        Raises:
            Damaged: The newest event is not the one that was recorded last.
        """
        with file.sentences(str(self.path)):
            self._check_head()
            row = self.conn.execute("select seq, hash from audit order by seq desc limit 1").fetchone()
        return (0, shown(GENESIS) or "") if row is None else (row[0], shown(row[1]) or "")

    def events(self, query: EventQuery = EventQuery()) -> list[AuditEvent]:
        """Return events oldest first; with a limit, the newest that many."""
        return list(self.each_event(query))

    def each_event(self, query: EventQuery = EventQuery()) -> Iterator[AuditEvent]:
        """Yield what `events` returns, one by one, however many there are."""
        where, bound = (["1"], []) if query.all_scopes else self._of_scope()
        if query.fact is not None:
            where.append("a.target = ?")
            bound.append(pack(query.fact))
        if query.op is not None:
            where.append("a.op = ?")
            bound.append(str(query.op))
        if query.since is not None:
            where.append("a.at >= ?")
            bound.append(query.since)
        return self._events(where, bound, query.limit)

    def _of_scope(self) -> tuple[list[str], list[Any]]:
        numbers = [number for number in self.reader.scopes if self._final(number) == self.scope_number]
        return [f"(a.scope is null or a.scope in ({','.join('?' * len(numbers))}))"], list(numbers)

    def _check_head(self) -> None:
        from memcli.store.roll import check_head  # start-up: `show` asks nothing of the log

        check_head(self.conn, self.key)

    def _events(self, where: Sequence[str], bound: Sequence[Any], limit: int | None = None) -> Iterator[AuditEvent]:
        columns, said, newest = ", ".join("a." + name for name in AUDIT_COLUMNS), " and ".join(where), ""
        if limit is not None:  # behind the first one that is too many
            older = f"select a.seq from audit a where {said} order by a.seq desc limit 1 offset ?"
            newest, bound = f" and a.seq > coalesce(({older}), -1)", (*bound, *bound, limit)
        with file.sentences(str(self.path)):
            self._check_head()
            found = self.conn.execute(
                f"select {columns}, a.hash, (select b.hash from audit b where b.seq = a.seq - 1), r.text"
                " from audit a left join reasons r on r.seq = a.seq"
                f" where {said}{newest} order by a.seq",
                bound,
            )
            for raw in found:
                yield rows.event(raw[:-2], raw[-2], self.reader.scopes, self._reason(raw))

    def event(self, name: str) -> AuditEvent:
        """Return one event by its id (`e41`) or number.

        Raises:
            NotFound: There is none.
        """
        match = re.fullmatch(r"[e#]?(\d{1,18})", name.strip().lower())
        where, bound = self._of_scope()
        found = list(self._events([*where, "a.seq = ?"], [*bound, int(match[1])])) if match else []
        if not found:
            raise NotFound(f"no event of {self.scope} is called {name}", hint="list them with `mem log`")
        return found[0]

    def last_change(self) -> AuditEvent:
        """Return the newest event of the scope that changed a fact.

        Raises:
            NotFound: Nothing was changed yet.
        """
        changes = (Op.ADD, Op.CORRECT, Op.RETRACT, Op.VERIFY, Op.DISPUTE, Op.ACCEPT, Op.UNDO, Op.MERGE, Op.CONDENSE)
        for newest in (50, 5_000, None):  # nearly always among the first, however long the log is
            if found := [item for item in self.each_event(EventQuery(limit=newest)) if item.op in changes][-1:]:
                return found[0]
        raise NotFound(f"nothing was changed in {self.scope} yet", hint="see the log with `mem log --all-scopes`")

    def _reason(self, raw: rows.Row) -> str | None:
        text, digest = raw[-1], raw[AUDIT_COLUMNS.index("reason")]
        if text is not None and seal(self.key, "reason", (text,)) != digest:
            raise rows.behind_our_back(f"the reason of event e{raw[0]}")
        return None if text is None else str(text)

    def _final(self, scope: int) -> int:
        while scope in self._merged:
            scope = self._merged[scope]
        return scope

    # ---------------------------------------------------------------- search

    @property
    def search(self) -> "Search":
        """Return the questions that recall asks of the scope."""
        from memcli.store.search import Search  # start-up: `show` searches nothing

        return Search(self)

    # ---------------------------------------------------------------- sizes

    def scopes(self) -> list[ScopeInfo]:
        """Return the scopes of the file by name; a scope that was merged away is left out."""
        from memcli.store.sizes import scopes

        return scopes(self)

    def stats(self) -> Stats:
        """Return sizes and counts of the file; `states` are those of the scope."""
        from memcli.store.sizes import stats

        return stats(self)

    def waiting(self) -> int:
        """Return how many things of the scope wait for a person: undecided facts and proposals."""
        return self.one(
            "select (select coalesce(sum(facts), 0) from tallies where scope = ?1"
            " and state in ('tentative', 'disputed'))"
            " - (select count(*) from current c where c.scope = ?1 and c.state = 'tentative' and c.fact in"
            " (select s.fact from staged s join transactions t on t.id = s.tx where t.status = 'open'))"
            " + (select count(*) from proposals where scope = ?1 and settled_at is null)",
            self.scope_number,
        )

    def one(self, sql: str, *bound: Any) -> int:
        """Return the one number that a query of ours answers."""
        return int(self.conn.execute(sql, bound).fetchone()[0])


_MISLED = (
    "from current c join versions v on v.id = c.row join facts f on f.id = c.fact"
    " where (v.fact <> c.fact or v.state <> c.state or f.scope <> c.scope or v.retired_at is not null)"
)
_SEEN = "c.state in ('accepted', 'verified')"
"""Written out, since a partial index serves only a query that says what the index says."""


def _stale_view() -> Damaged:
    return Damaged("the view of current states does not fit the facts", hint="recreate it with `mem rebuild`")


def _in_states(states: frozenset[State]) -> tuple[list[str], list[Any]]:
    """Return the clause for states; the readable ones and all of them have an index in the order they are shown."""
    if states in {READABLE, frozenset(State)}:
        return ([_SEEN] if states == READABLE else []), []
    return [f"c.state in ({','.join('?' * len(states))})"], sorted(states)


def _known(moment: Micros | None) -> str:
    if moment is None:
        return ""
    return " and v.recorded_at <= ? and (v.retired_at is null or v.retired_at > ?)"


def _moment(moment: Micros | None) -> tuple[Micros, ...]:
    return () if moment is None else (moment, moment)


def op(name: str) -> Op:
    """Return the kind of event that a name stands for.

    Raises:
        UsageError: There is none of that name.
    """
    try:
        return Op(name)
    except ValueError:
        raise UsageError(f"{name} is no kind of event", hint="one of: " + ", ".join(sorted(Op))) from None
