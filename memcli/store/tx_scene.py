"""What stands around a transaction: facts as the checks and the gate see them, at this moment or at its snapshot."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memcli import wire
from memcli.errors import Damaged, OutOfScope
from memcli.facts import Fact, Json, Micros, Provenance, Validity
from memcli.store import rows, tx_rows
from memcli.store.erase import Erasing
from memcli.store.evidence import spoken
from memcli.store.seals import Field, seal
from memcli.terms import FINAL, READABLE, Code, Isolation, Kind, State, TxStatus, Visibility
from memcli.text import pack, unpack
from memcli.transactions import checks
from memcli.transactions.scene import DEAD, Failure, Ground, Record, Scene
from memcli.tx import Check, Question, Receipt, Transaction

_NEWEST = "v.retired_at is null and v.version = (select max(w.version) from versions w where w.fact = v.fact)"
_THEN = (
    "v.recorded_at <= :at and (v.retired_at is null or v.retired_at > :at)"
    " and v.version = (select max(w.version) from versions w where w.fact = v.fact"
    " and w.recorded_at <= :at and (w.retired_at is null or w.retired_at > :at))"
)
_FOREVER: Micros = 1 << 62
_UNSTABLE = DEAD | {State.DISPUTED}


class Seeing(Erasing):
    """A ledger that sees its transactions and what they meet. Everything here looks and changes nothing."""

    # ---------------------------------------------------------------- rows

    @property
    def reader(self) -> rows.Reader:
        """Return what turns rows into data, with the scopes that this transaction knows."""
        names = {number: name for name, number in self._scopes.items()}
        return rows.Reader(key=self.key, scopes={**self.store.reader.scopes, **names})

    def moment(self) -> Micros:
        """Return now: the clock, or the newest event where the clock has gone back behind it."""
        return max(self.store.now(), self._at)

    def sealed(self, table: str, where: str, *bound: Any) -> Iterator[tuple[Any, ...]]:
        """Yield rows of one of the tables of transactions, each checked against its seal."""
        columns = ", ".join(tx_rows.SEALED[table][1])
        found = self.conn.execute(f"select {columns}, seal from {table} where {where}", bound).fetchall()
        return (tx_rows.checked(self.key, table, raw) for raw in found)

    def row_of(self, table: str, name: str) -> tuple[Any, ...]:
        """Return the row of a transaction, receipt, action or effect by its id.

        Raises:
            NotFound: There is none.
        """
        for fields in self.sealed(table, "id = ?", tx_rows.number_of(table, name)):
            return fields
        raise tx_rows.missing(table, name)

    def name_of(self, number: int) -> str:
        """Return the id of a fact by its row.

        Raises:
            Damaged: There is no such fact, or it was changed behind the file's back.
        """
        columns = ", ".join(rows.FACT_FIELDS)
        raw = self.conn.execute(f"select {columns}, seal from facts where id = ?", (number,)).fetchone()
        return self.store.reader.name_of(number, raw)

    def transaction(self, name: str) -> Transaction:
        """Return one transaction of the scope.

        Raises:
            NotFound: There is none of that id.
            OutOfScope: It belongs to another scope.
        """
        fields = self.row_of("transactions", name)
        if fields[1] != self.scope:
            raise OutOfScope(
                f"transaction {name} belongs to another scope than {self.scope_name}",
                hint="open the file with --scope and the name of its scope",
                target=name,
            )
        return self._transaction(fields)

    def transactions(self) -> list[Transaction]:
        """Return the transactions of the scope, oldest first."""
        found = self.sealed("transactions", "scope = ? order by id", self.scope)
        return [self._transaction(fields) for fields in found]

    def _transaction(self, fields: Sequence[Any]) -> Transaction:
        staged = [self.name_of(fact) for _, fact, _ in self.sealed("staged", "tx = ? order by at, rowid", fields[0])]
        verdicts = {
            self.name_of(fact): Code(code)
            for _, fact, code, _ in self.sealed("verdicts", "tx = ? order by at, rowid", fields[0])
        }
        return tx_rows.transaction(self.reader, fields, staged, verdicts)

    def receipt(self, name: str) -> Receipt:
        """Return one receipt by its id, such as `r3`.

        Raises:
            NotFound: There is none.
        """
        return self._receipt(self.row_of("receipts", name))

    def _receipt(self, fields: Sequence[Any]) -> Receipt:
        premises = {
            self.name_of(fact): (version, revision)
            for _, fact, version, revision in self.sealed("premises", "receipt = ? order by fact", fields[0])
        }
        return tx_rows.receipt(fields, premises)

    def is_draft(self, number: int) -> bool:
        """Return whether a fact is staged in a transaction that is open, and waits there."""
        return self.draft_of(number) is not None and self.newest(number).field("state") == State.TENTATIVE

    def draft_of(self, number: int) -> str | None:
        """Return the open transaction in which a fact is staged, or None."""
        row = self.conn.execute(
            "select t.id from staged s join transactions t on t.id = s.tx where s.fact = ? and t.status = 'open'",
            (number,),
        ).fetchone()
        return None if row is None else f"tx{row[0]}"

    def snapshot_at(self, tx: Transaction) -> Micros:
        """Return the time of the event after which a transaction began."""
        return int(self.conn.execute("select at from audit where seq = ?", (tx.snapshot,)).fetchone()[0])

    # ---------------------------------------------------------------- facts as of a moment

    def rows_where(self, where: str, bound: Mapping[str, Any], *, at: Micros | None = None) -> list[rows.VersionRow]:
        """Return the newest versions of facts, now or as they were at a moment; erased facts are left out."""
        moment = _NEWEST if at is None else _THEN
        found = self.conn.execute(
            f"{rows.SELECT_VERSION} where {moment} and f.erased_at is null and {where} order by v.fact",
            {**bound, "at": at},
        )
        return [self.reader.version(raw) for raw in found.fetchall()]

    def whole(self, row: rows.VersionRow) -> Fact:
        """Return the fact that a row holds, with its evidence and its parents."""
        evidence = tuple(rows.provenance_of(self.key, raw) for raw in self._evidence_rows(row))
        return self.reader.fact(row, evidence, tuple(self.name_of(number) for number in self.parents_of(row.fact)))

    def whole_at(self, row: rows.VersionRow, at: Micros) -> Fact:
        """Return the fact of a row as it was at a moment: nothing of it had ended or been added that came later."""
        evidence = tuple(rows.provenance_of(self.key, raw) for raw in self._evidence_rows(row, at=at))
        parents = tuple(self.name_of(number) for number in self.parents_of(row.fact, at=at))
        return replace(self.reader.fact(row, evidence, parents), retired_at=None)

    def _evidence_rows(self, row: rows.VersionRow, *, at: Micros = _FOREVER) -> list[rows.Row]:
        return self.conn.execute(
            f"{rows.SELECT_PROVENANCE} where p.fact = ? and p.version = ? and p.recorded_at <= ? order by p.id",
            (row.fact, row.field("version"), at),
        ).fetchall()

    def parents_of(self, number: int, *, at: Micros = _FOREVER) -> list[int]:
        """Return the rows of what a fact was built from, as it was known at a moment."""
        columns = ", ".join((*rows.DERIVATION_FIELDS, "seal"))
        found = self.conn.execute(
            f"select {columns} from derivations where child = ? and recorded_at <= ? order by parent", (number, at)
        )
        return [rows.derivation(self.key, raw)[1] for raw in found]

    def ancestors_of(self, numbers: Iterable[int], *, at: Micros = _FOREVER) -> list[int]:
        """Return the rows of everything that facts were built from, as it was known at a moment, nearest first."""
        start = list(numbers)
        found: dict[int, None] = {}
        front = start
        while front:
            above = [parent for number in front for parent in self.parents_of(number, at=at)]
            front = [number for number in dict.fromkeys(above) if number not in found and number not in start]
            found.update(dict.fromkeys(front))
        return list(found)

    def stable_at(self, number: int, at: Micros) -> bool:
        """Return whether no ancestor of a fact was withdrawn or disputed at a moment."""
        above = self.ancestors_of([number], at=at)
        marks = ",".join(str(int(each)) for each in above)
        found = self.rows_where(f"v.fact in ({marks})", {}, at=at) if above else []
        return not any(State(str(row.field("state"))) in _UNSTABLE for row in found)

    # ---------------------------------------------------------------- records

    def record(self, number: int) -> Record:
        """Return a fact as the checks see it now."""
        return self.as_record(self.newest(number))

    def as_record(self, row: rows.VersionRow) -> Record:
        """Return the fact of a row as the checks see it; what it says of parents and evidence is as of now."""
        value, state = row.field("value"), State(str(row.field("state")))
        said = None if value is None else spoken(json.loads(str(value)))
        texts = tuple(dict.fromkeys(text for text in (unpack(str(row.field("text") or "")), said) if text))
        return Record(
            id=str(row.fact_field("name")),
            kind=Kind(row.fact_field("kind")),
            state=state,
            visibility=Visibility(row.fact_field("visibility")),
            owner=rows.unpacked(row.fact_field("owner")),
            authority=float(row.field("authority")),
            confidence=row.field("confidence"),
            valid=Validity(start=row.field("valid_from"), end=row.field("valid_to")),
            slot=row.fact_field("slot"),
            slot_key=row.field("slot_key"),
            text_key=row.field("text_key"),
            texts=texts,
            parents=tuple(self.name_of(number) for number in self.parents_of(row.fact)),
            origins=self._origins(row.fact),
            grounds=tuple(self._grounds(row)),
            readable_since=self._readable_since(row) if state in READABLE else None,
            draft=state is State.TENTATIVE and self.draft_of(row.fact) is not None,
        )

    def _origins(self, number: int) -> frozenset[int]:
        named = frozenset(source for _, source, _ in self.sealed("origins", "fact = ?", number))
        if named:
            return named
        found = self.conn.execute("select distinct source from provenance where fact = ?", (number,))
        return frozenset(source for (source,) in found)

    def _grounds(self, row: rows.VersionRow) -> Iterator[Ground]:
        columns = ", ".join("m." + name for name in rows.MESSAGE_FIELDS)
        for source, quote, verified, erased_at, *message in self.conn.execute(
            f"select p.source, p.quote, p.verified, p.erased_at, {columns}, m.seal from provenance p"
            " left join messages m on m.id = p.message where p.fact = ? and p.version = ? order by p.id",
            (row.fact, row.field("version")),
        ).fetchall():
            known = dict(zip(rows.MESSAGE_FIELDS, message, strict=False))
            holds = erased_at is None and bool(verified) and self._still_says(message, quote)
            yield Ground(digest=known["evidence"] or b"", at=known["at"], source=source, holds=holds)

    def _still_says(self, message: rows.Row, quote: str | None) -> bool:
        if message[-1] is None:
            return False
        try:
            said = self.reader.message(message)
        except Damaged:
            return False
        return said.erased_at is None and (quote is None or unpack(quote) in said.content)

    def _readable_since(self, row: rows.VersionRow) -> Micros:
        since: Micros = int(row.field("recorded_at"))
        for state, recorded_at in self.conn.execute(
            "select state, recorded_at from versions where fact = ? and version = ? order by revision desc",
            (row.fact, row.field("version")),
        ):
            if state not in READABLE:
                break
            since = recorded_at
        return since

    def known(self, numbers: Iterable[int]) -> dict[str, Record]:
        """Return facts and all their ancestors as records, by id."""
        start = list(dict.fromkeys(numbers))
        found = (self.record(number) for number in (*start, *self.ancestors_of(start)))
        return {item.id: item for item in found}

    # ---------------------------------------------------------------- the scene of a commit

    def scene(self, tx: Transaction) -> Scene:
        """Return what the checks of a transaction look at."""
        staged = {number: self.newest(number) for number in map(self.fact_number, tx.staged)}
        rivals = {number: self._settled_rivals(row, set(staged)) for number, row in staged.items()}
        equals = {number: self._equals(row, set(staged)) for number, row in staged.items()}
        read = self._read_facts(tx)
        others = [number for found in (*rivals.values(), *equals.values(), read) for number in found]
        others += self.ancestors_of([*staged, *others])
        name = {number: str(row.fact_field("name")) for number, row in staged.items()}
        return Scene(
            tier=tx.tier,
            agent=tx.agent,
            snapshot_at=self.snapshot_at(tx),
            now=self.moment(),
            staged=tuple(self.as_record(row) for row in staged.values()),
            known=self.known(number for number in others if number not in staged),
            rivals={name[number]: tuple(map(self.name_of, found)) for number, found in rivals.items()},
            equals={name[number]: tuple(map(self.name_of, found)) for number, found in equals.items()},
            read=tuple(map(self.name_of, read)),
            privates=tuple(map(self.as_record, self._privates())),
            stopped=frozenset(name[number] for number, row in staged.items() if self._under_stone(row)),
            retried=self._held_before(staged, self._stale_before),
            withdrawn=self._held_before(staged, self._ended_before),
            named=self._named(tx),
        )

    def _same_slot(self, row: rows.VersionRow, but: set[int]) -> list[rows.VersionRow]:
        slot = row.fact_field("slot")
        if slot is None:
            return []
        found = self.rows_where("f.slot = :slot and f.scope = :scope", {"slot": slot, "scope": self.scope})
        return [other for other in found if other.fact not in but]

    def _settled_rivals(self, row: rows.VersionRow, but: set[int]) -> list[int]:
        return [
            other.fact
            for other in self._same_slot(row, but)
            if other.field("slot_key") != row.field("slot_key") and other.field("state") in READABLE
        ]

    def _equals(self, row: rows.VersionRow, but: set[int]) -> list[int]:
        return [
            other.fact
            for other in self._same_slot(row, but)
            if other.field("slot_key") == row.field("slot_key") and other.field("state") in READABLE
        ]

    def _read_facts(self, tx: Transaction) -> list[int]:
        number = tx_rows.number_of("transactions", tx.id)
        found = (fact for *_, answer, _ in self.sealed("reads", "tx = ?", number) for fact, _, _ in json.loads(answer))
        return list(dict.fromkeys(found))

    def _privates(self) -> list[rows.VersionRow]:
        return self.rows_where("f.scope = :scope and f.visibility = 'private'", {"scope": self.scope})

    def _under_stone(self, row: rows.VersionRow) -> bool:
        if row.fact_field("erased_at") is not None:
            return True
        fact = self.reader.fact(row)
        return self.stopped(fact.text, fact.slot, fact.value)

    def _held_before(self, staged: Mapping[int, rows.VersionRow], before: Any) -> dict[str, tuple[Ground, ...]]:
        found: dict[str, tuple[Ground, ...]] = {}
        for row in staged.values():
            numbers: list[int] = before(row)
            if numbers:
                held = [item for number in numbers for item in self.stands_on(number)]
                found[str(row.fact_field("name"))] = tuple(
                    Ground(digest=digest, at=at, source=source) for digest, at, source in held
                )
        return found

    def _stale_before(self, row: rows.VersionRow) -> list[int]:
        """Return facts of the same slot and value that were aborted as stale."""
        found = self.conn.execute(
            "select distinct d.fact from verdicts d join facts f on f.id = d.fact join versions v on v.fact = f.id"
            " where d.code = ? and f.scope = ? and v.slot_key = ? and d.fact <> ? order by d.fact",
            (str(Code.C_STALE_LATE_WRITE), self.scope, row.field("slot_key"), row.fact),
        )
        return [number for (number,) in found]

    def _ended_before(self, row: rows.VersionRow) -> list[int]:
        """Return facts that said the same and were believed, and were replaced or withdrawn."""
        column = "slot_key" if row.field("slot_key") is not None else "text_key"
        found = self.conn.execute(
            f"select distinct v.fact from versions v join facts f on f.id = v.fact where v.{column} = ?"
            " and v.retired_at is null and v.state in ('superseded', 'revoked') and f.scope = ? and v.fact <> ?"
            " and exists (select 1 from versions w where w.fact = v.fact and w.version = v.version"
            " and w.state in ('accepted', 'verified')) order by v.fact",
            (row.field(column), self.scope, row.fact),
        )
        return [number for (number,) in found]

    def _named(self, tx: Transaction) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        number = tx_rows.number_of("transactions", tx.id)
        for _, fact, rival in self.sealed("named", "tx = ? order by fact, rival", number):
            name = self.name_of(fact)
            found[name] = (*found.get(name, ()), self.name_of(rival))
        return found

    # ---------------------------------------------------------------- questions

    def examine(self, name: str, *, partial: bool = False) -> list[Check]:
        """Return every rule that each staged fact of a transaction does not pass, by the very code of a commit.

        Args:
            partial: As the commit would be.

        Raises:
            NotFound, OutOfScope: There is no such transaction in the scope.
        """
        found = checks.judge(self.scene(self.transaction(name)), partial=partial)
        return [check for fact, failures in found.items() for check in _checks(fact, failures)]

    def questions(self, name: str, *, partial: bool = False) -> list[Question]:
        """Return what a verifier is to be asked: of each staged fact that passes every check, while it can commit."""
        tx = self.transaction(name)
        if tx.status is not TxStatus.OPEN or tx.lease_until <= self.moment():
            return []
        scene = self.scene(tx)
        return self.questions_in(scene, checks.judge(scene, partial=partial))

    def questions_in(self, scene: Scene, found: Mapping[str, tuple[Failure, ...]]) -> list[Question]:
        """Return what a verifier is to be asked about a scene that has been judged."""
        waiting = {item.id: item for item in scene.staged if item.state not in FINAL}
        return [
            Question(fact=name, request=self._request(waiting[name], scene))
            for name, failures in found.items()
            if not failures and name in waiting
        ]

    def _request(self, item: Record, scene: Scene) -> dict[str, Json]:
        row = self.newest(self.fact_number(item.id))
        rivals = [self.whole(self.newest(self.fact_number(name))) for name in scene.rivals.get(item.id, ())]
        return {
            "candidate": wire.fact(self.whole(row)),
            "rivals": [wire.fact(rival) for rival in rivals],
            "evidence": [self._cited_words(raw) for raw in self._evidence_rows(row)],
        }

    def _cited_words(self, raw: rows.Row) -> Json:
        item: Provenance = rows.provenance_of(self.key, raw)
        words = self.conn.execute("select content from messages where id = ?", (raw[3],)).fetchone()
        content = None if words is None or words[0] is None else unpack(words[0])
        return {"source": item.source, "message": item.message, "quote": item.quote, "content": content}

    # ---------------------------------------------------------------- reads

    def answer(self, tx: Transaction, subject: str | None, attribute: str | None) -> list[rows.VersionRow]:
        """Return what the snapshot of a transaction holds at its level, valid now and permitted to its agent."""
        at, now = self.snapshot_at(tx), self.moment()
        where, bound = "f.scope = :scope", dict[str, Any](scope=self.scope)
        if subject is not None and attribute is not None:
            where, bound = where + " and f.slot = :slot", {**bound, "slot": self.slot_row((subject, attribute))}
        elif subject is not None:
            where += " and mem_folded(f.subject) = mem_folded(:subject)"
            bound["subject"] = pack(subject)
        elif attribute is not None:
            where += " and mem_folded(f.attribute) = mem_folded(:attribute)"
            bound["attribute"] = pack(attribute)
        found = self.rows_where(where, bound, at=at)
        return [row for row in found if self._seen_by(tx, row, at) and _valid(row, now)]

    def _seen_by(self, tx: Transaction, row: rows.VersionRow, at: Micros) -> bool:
        private = row.fact_field("visibility") == Visibility.PRIVATE
        if private and rows.unpacked(row.fact_field("owner")) != tx.agent:
            return False
        state = State(str(row.field("state")))
        if tx.isolation is Isolation.RAW:
            return state in READABLE or state is State.TENTATIVE
        if tx.isolation is Isolation.VERIFIED:
            return state is State.VERIFIED
        return state in READABLE and (tx.isolation is Isolation.ACCEPTED or self.stable_at(row.fact, at))

    def asked(self, subject: str | None, attribute: str | None, found: str) -> bytes:
        """Return the digest that a question and its answer are recognised by; the file keeps no words of it."""
        fields: tuple[Field, ...] = (
            None if subject is None else subject.casefold(),
            None if attribute is None else attribute.casefold(),
            found,
        )
        return seal(self.key, "asked", fields)


def _checks(fact: str, failures: Sequence[Failure]) -> list[Check]:
    if not failures:
        return [Check(fact=fact, code=Code.PASS, ruling=checks.ruling_of(()))]
    return [Check(fact=fact, code=item.code, ruling=item.ruling, about=item.about) for item in failures]


def _valid(row: rows.VersionRow, moment: Micros) -> bool:
    span = Validity(start=row.field("valid_from"), end=row.field("valid_to"))
    return not row.field("displaced") and span.covers(moment)
