"""Transactions: begin, read, stage, commit, abort, recover."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memcli.errors import Closed, Cycle, LeaseOver, NotAllowed, NotPermitted, Stale, UnknownParent, UsageError
from memcli.facts import Actor, Claim, Fact, Micros, Scalar
from memcli.keys import evidence_digest
from memcli.store import rows, tx_rows
from memcli.store.evidence import Backing, Keyed
from memcli.store.seals import Field, seal
from memcli.store.store import Store
from memcli.store.tx_scene import Seeing
from memcli.terms import (
    DEFAULT_AUTHORITY,
    DEFAULT_ISOLATION,
    FINAL,
    HELD_FOR_REVIEW,
    HELD_WITH_TX,
    Admission,
    Code,
    How,
    Isolation,
    Op,
    Role,
    Ruling,
    SourceKind,
    State,
    Tier,
    TxStatus,
)
from memcli.text import check_typed, pack
from memcli.transactions import checks, settings
from memcli.transactions.scene import Failure, Scene
from memcli.transactions.verifier import digest_of
from memcli.tx import Answer, Transaction, Verdict

LEASE_S = 900.0
"""How long a transaction may stay open unless told otherwise, in seconds."""

LONGEST_LEASE_S = 30 * 24 * 3600.0
_RESERVED = frozenset({"statement", *DEFAULT_AUTHORITY})
_CLOSING: Mapping[TxStatus, Op] = {
    TxStatus.COMMITTED: Op.COMMIT,
    TxStatus.HELD: Op.HOLD,
    TxStatus.ABORTED: Op.ABORT,
}


class Transacting(Seeing):
    """A ledger in which facts are staged, checked and committed together.

    Under `direct` and `checked` a commit believes what passes its checks at once, whoever commits. Under `review` only
    a person at a terminal (or a decisions file) changes what is believed: a commit through any other channel checks
    everything, and then holds what passed, so that it waits in the review queue as disputed with the reason
    HELD_FOR_REVIEW while its verdict stays PASS.
    """

    def __init__(
        self, store: Store, conn: sqlite3.Connection, actor: Actor, reason: str | None, *, planning: bool = False
    ) -> None:
        super().__init__(store, conn, actor, reason, planning=planning)
        self._flags_only = False

    # ---------------------------------------------------------------- begin

    def begin(
        self,
        agent: str | None = None,
        tier: Tier = Tier.MEDIUM,
        isolation: Isolation | None = None,
        lease_s: float = LEASE_S,
    ) -> Transaction:
        """Open a transaction on what the file knows now, and return it.

        Args:
            agent: For whom it reads and writes; None is the actor's own name.
            isolation: What it reads; None is what its tier asks for.
            lease_s: Seconds until it may be aborted by anybody, more than 0 and up to 30 days.

        Raises:
            NotPermitted: The policy of the file does not let the agent go up to this tier.
            UsageError: The lease is no such number of seconds.
        """
        name = self.actor.name if agent is None else agent.strip()
        check_typed(name, what="the name of the agent")
        if not name:
            raise UsageError("an agent needs a name", hint="give one with --agent")
        if not 0 < lease_s <= LONGEST_LEASE_S:
            raise UsageError(f"a lease of {lease_s:g} s is none", hint="give seconds, more than 0 and up to 30 days")
        limit = settings.highest(self.store.policy(), name)
        if not settings.allows(limit, tier):
            raise NotPermitted(
                f"{name} may begin transactions up to tier {limit}, and this is {tier}",
                hint=f"a person may raise it with `mem policy set agent {name} {tier}`",
                target=f"agent:{pack(name)}",
            )
        snapshot, now = self._seq, self.moment()
        at = self.tick()
        number = self._next("transactions")
        fields: tuple[Field, ...] = (
            number, self.scope, pack(name), str(tier), str(isolation or DEFAULT_ISOLATION[tier]), snapshot,
            str(TxStatus.OPEN), pack(self.actor.name), str(self.actor.kind), str(self.actor.channel), at,
            max(at, now + round(lease_s * 1_000_000)), None,
        )  # fmt: skip
        self.write_row("transactions", fields)
        self.event(Op.BEGIN, f"tx{number}", at=at, after=tx_rows.recorded(self.key, "transactions", fields))
        return self.transaction(f"tx{number}")

    def _next(self, table: str) -> int:
        return 1 + int(self.conn.execute(f"select coalesce(max(id), 0) from {table}").fetchone()[0])

    def write_row(self, table: str, fields: Sequence[Field]) -> None:
        """Insert a row with its seal."""
        kind, columns = tx_rows.SEALED[table]
        marks = ", ".join("?" * (len(columns) + 1))
        self.conn.execute(
            f"insert into {table} ({', '.join(columns)}, seal) values ({marks})",
            (*fields, seal(self.key, kind, fields)),
        )

    def change_row(
        self,
        table: str,
        fields: Sequence[Any],
        op: Op,
        *,
        at: Micros | None = None,
        reason: str | None = None,
        **changes: Field,
    ) -> tuple[Any, ...]:
        """Change columns of a row that has an id, with its audit event, and return the columns it has now."""
        kind, columns = tx_rows.SEALED[table]
        after = tuple((dict(zip(columns, fields, strict=True)) | changes).values())
        marks = ", ".join(f"{name} = ?" for name in changes)
        self.conn.execute(
            f"update {table} set {marks}, seal = ? where id = ?",
            (*changes.values(), seal(self.key, kind, after), fields[0]),
        )
        self.event(
            op,
            f"{tx_rows.PREFIXES[table]}{fields[0]}",
            at=at,
            before=tx_rows.recorded(self.key, table, fields),
            after=tx_rows.recorded(self.key, table, after),
            reason=reason,
        )
        return after

    def living(self, name: str, *, offered: str | None = None) -> Transaction:
        """Return a transaction that is open and within its lease.

        Raises:
            NotFound, OutOfScope: There is none of that id in the scope.
            Closed, LeaseOver: It is over; the refusal is recorded.
        """
        tx = self.transaction(name)
        if tx.status is not TxStatus.OPEN:
            raise Closed(
                f"transaction {tx.id} is {tx.status}", hint="begin another with `mem tx begin`", target=tx.id,
                offered=offered,
            )  # fmt: skip
        if tx.lease_until <= self.moment():
            raise LeaseOver(
                f"the lease of transaction {tx.id} is over",
                hint="abort it with `mem tx recover`, and begin another",
                target=tx.id,
                offered=offered,
            )
        return tx

    # ---------------------------------------------------------------- read

    def read(self, tx_id: str, subject: str | None = None, attribute: str | None = None) -> tuple[Fact, ...]:
        """Return what the snapshot holds at the transaction's level, valid now and permitted, and remember it was read.

        The same question gets the same answer within the transaction, whatever was written since. Only time and erasure
        change it: what has ended since is left out, and so are words that were erased.

        Raises:
            NotFound, OutOfScope, Closed, LeaseOver: The transaction cannot read.
        """
        tx = self.living(tx_id)
        seen, at = self.answer(tx, subject, attribute), self.snapshot_at(tx)
        found = json.dumps([[row.fact, row.field("version"), row.field("revision")] for row in seen])
        number, asked = tx_rows.number_of("transactions", tx.id), self.asked(subject, attribute, found)
        if not any(self.sealed("reads", "tx = ? and asked = ?", number, asked)):
            self.write_row("reads", (self._next("reads"), number, asked, found, self.moment()))
        return tuple(self.whole_at(row, at) for row in seen)

    # ---------------------------------------------------------------- stage

    def stage(self, tx_id: str, claim: Claim, supersedes: str | Sequence[str] | None = None) -> Fact:
        """Offer a fact inside a transaction and return it: tentative, and seen by nobody until the commit.

        Args:
            supersedes: Ids of the facts whose place it is to take, whatever the authorities; people only.

        Raises:
            Tombstoned, UnknownParent, Cycle, NotAllowed: It is refused at once, and the refusal recorded.
            NotPermitted: Somebody else than a person named what is superseded.
            NotFound, OutOfScope, Closed, LeaseOver: The transaction takes nothing any more.
        """
        tx = self.living(tx_id, offered=claim.text)
        self.check_texts(claim)
        parents = self._known_parents(claim)
        self.check_tombstones(claim.text, claim.slot, claim.value)
        named = self._named_rivals([supersedes] if isinstance(supersedes, str) else supersedes or ())
        backing = [*map(self._cited, claim.evidence), *self._referenced(claim)]
        authority = self.source_authority(claim, backing)
        told = claim if claim.owner is not None else replace(claim, owner=tx.agent)
        number = self._insert(self.keyed(told), backing, parents, authority, accepted=False, op=Op.STAGE)
        self._enlist(tx, number, named)
        return self.fact(number)

    def restage(self, tx_id: str, seen: Fact, derived_from: Sequence[str] = ()) -> Fact:
        """Take a fact that was held into a transaction, so that its commit checks it again; return it, tentative.

        Args:
            derived_from: Facts to declare as parents besides those it has, such as one that was read and not named.

        Raises:
            NotAllowed: The fact is not held.
            UnknownParent, Cycle, Tombstoned, Stale, Closed, LeaseOver: It is refused, and the refusal recorded.
        """
        tx = self.living(tx_id, offered=seen.text)
        row = self.seen(seen)
        parents = self._known_parents(Claim(text=seen.text, derived_from=tuple(derived_from)))
        self._check_acyclic(row.fact, parents, seen)
        if row.field("state") != State.DISPUTED:
            raise NotAllowed(
                f"fact {seen.id[:8]} is {row.field('state')}, and only what is held is checked again",
                hint="stage its value as a new fact",
                target=seen.id,
            )
        self.check_tombstones(seen.text, seen.slot, seen.value)
        moved = self.move(row, State.TENTATIVE, Op.STAGE)
        have = set(self.parents_of(row.fact))
        for parent in (number for number in parents if number not in have):
            edge = (row.fact, parent, str(How.INFERRED), int(moved.field("recorded_at")))
            self.conn.execute(
                "insert into derivations values (?, ?, ?, ?, ?)", (*edge, seal(self.key, "derivation", edge))
            )
        self._enlist(tx, row.fact, ())
        return self.fact(row.fact)

    def _enlist(self, tx: Transaction, number: int, named: Sequence[int]) -> None:
        into = tx_rows.number_of("transactions", tx.id)
        self.write_row("staged", (into, number, self._at))
        for rival in dict.fromkeys(named):
            self.write_row("named", (into, number, rival))

    def _known_parents(self, claim: Claim) -> list[int]:
        numbers = []
        for name in claim.derived_from:
            row = self.conn.execute("select id, scope from facts where name = ?", (pack(name),)).fetchone()
            if row is None:
                raise UnknownParent(
                    f"no fact has the id {name}, from which this would be derived",
                    hint="stage or add the parent first; list what is there with `mem show --all-states`",
                    target=f"fact:{pack(name)}",
                    offered=claim.text,
                )
            if claim.how is not How.COPIED or self.store.bound is not None:
                self.check_here(self.newest(row[0]))
            numbers.append(int(row[0]))
        return numbers

    def _check_acyclic(self, number: int, parents: Sequence[int], seen: Fact) -> None:
        if number in parents or number in self.ancestors_of(parents):
            raise Cycle(
                f"fact {seen.id[:8]} would be derived from itself",
                hint=f"see what it came from with `mem why {seen.id[:8]}`",
                target=seen.id,
                offered=seen.text,
            )

    def _named_rivals(self, names: Sequence[str]) -> list[int]:
        if names and not self.actor.is_person:
            raise NotPermitted(
                "only a person at a terminal may say what a fact supersedes",
                hint="leave out --supersedes, and let the authorities decide",
                target=names[0],
            )
        numbers = [self.fact_number(name) for name in names]
        for number in numbers:
            self.check_here(self.newest(number))
        return numbers

    # ---------------------------------------------------------------- named sources, evidence by reference

    def backing(self, claim: Claim, *, at: Micros | None = None) -> list[Backing]:
        """Return what a claim stands on: messages of the file, references by name, or else the statement itself."""
        found = self._referenced(claim)
        if claim.evidence or not found:
            found = [*super().backing(claim, at=at), *found]
        if claim.source is None:
            return found
        authority = self.source_authority(claim, found)
        return [replace(item, authority=authority) for item in found]

    def _referenced(self, claim: Claim) -> list[Backing]:
        return [self._reference(name) for name in dict.fromkeys(claim.references)]

    def _reference(self, name: str) -> Backing:
        """Return evidence that lies outside the file and has a name; its row is made on its first use."""
        check_typed(name, what="a reference")
        source = self._named_source(name, "reference", SourceKind.DOCUMENT)
        found = self.conn.execute(
            "select id, evidence, erased_at from messages where source = ? and position = 0", (source,)
        ).fetchone()
        if found is not None and found[2] is not None:
            raise NotAllowed(f"reference {name} was erased", hint="name other evidence")
        digest = evidence_digest(self.store.tombstone_key.secret, str(Role.UNKNOWN), name)
        if found is None:
            number = self.insert_message(
                source, 0, role=Role.UNKNOWN, content=pack(name), detail=None, at=None, digest=digest,
                recorded_at=self._at,
            )  # fmt: skip
            found = (number, digest, None)
        return Backing(
            source=source,
            message=found[0],
            quote=None,
            span=None,
            verified=True,
            digest=found[1],
            at=None,
            authority=self._authority([name, "reference"], SourceKind.DOCUMENT),
        )

    def _named_source(self, name: str, form: str, kind: SourceKind) -> int:
        found = self.conn.execute(
            "select id from sources where scope = ? and session = ? and format = ? and erased_at is null",
            (self.scope, pack(name), form),
        ).fetchone()
        return int(found[0]) if found else self.insert_source(kind=kind, form=form, at=self._at, session=name)

    def source_authority(self, claim: Claim, backing: Sequence[Backing]) -> float:
        """Return what a claim's own word counts for: its source's by the policy, or less where it claims less.

        Without a named source, that of its best evidence. Nobody but a person at a terminal speaks for a human.
        """
        if claim.source is not None:
            names = [claim.source] if claim.source not in _RESERVED else []
            known = self._authority(names, self._spoken_by(claim))
        elif backing:
            known = max(item.authority for item in backing)
        else:
            known = self._authority([], SourceKind.HUMAN if self.actor.is_person else SourceKind.AGENT)
        return known if claim.authority is None else min(known, claim.authority)

    def _spoken_by(self, claim: Claim) -> SourceKind:
        kind = claim.source_kind or SourceKind.AGENT
        return SourceKind.AGENT if kind is SourceKind.HUMAN and not self.actor.is_person else kind

    def _insert(
        self,
        keyed: Keyed,
        backing: Sequence[Backing],
        parents: Sequence[int],
        authority: float,
        *,
        accepted: bool,
        op: Op = Op.ADD,
    ) -> int:
        number = super()._insert(keyed, backing, parents, authority, accepted=accepted, op=op)
        claim = keyed.claim
        if claim.source is not None:
            check_typed(claim.source, what="the source")
            source = self._named_source(claim.source, "named", self._spoken_by(claim))
            self.write_row("origins", (number, source, self._at))
        return number

    def duplicates(self, keyed: Keyed) -> list[int]:
        """Return facts that hold the same value; a draft is nobody's yet."""
        return [number for number in super().duplicates(keyed) if not self.is_draft(number)]

    def _current(self, *, everywhere: bool) -> Iterator[tuple[int, str, Scalar]]:
        """Yield what stands; a draft meets a tombstone when it is committed."""
        return (found for found in super()._current(everywhere=everywhere) if not self.is_draft(found[0]))

    def _holding(self, keys: set[bytes], *, everywhere: bool) -> list[int]:
        return [number for number in super()._holding(keys, everywhere=everywhere) if not self.is_draft(number)]

    def move(
        self, row: rows.VersionRow, to: State, op: Op, *, reason: str | None = None, **changes: Field
    ) -> rows.VersionRow:
        """Record that a version is in another state; what is staged in an open transaction is decided by that."""
        waits = row.field("state") == State.TENTATIVE and op in _DECISIONS
        if waits and (draft := self.draft_of(row.fact)) is not None:
            name = str(row.fact_field("name"))
            raise NotAllowed(
                f"fact {name[:8]} is staged in {draft}, which is open",
                hint=f"commit or abort that first: `mem tx show {draft}`",
                target=name,
            )
        return super().move(row, to, op, reason=reason, **changes)

    def outdate(self, number: int) -> None:
        """Hold the views that were built on what a fact said before; a commit only leaves them stale."""
        if not self._flags_only:
            super().outdate(number)

    # ---------------------------------------------------------------- commit

    def commit(self, tx_id: str, partial: bool = False, verdicts: Mapping[str, Answer] | None = None) -> Verdict:
        """Check what was staged, parents first, and return what became of it.

        Atomic: one refusal revokes everything and aborts; one hold holds everything. Partial: each fact for itself.
        A transaction whose lease is over is aborted instead.

        Args:
            verdicts: What a verifier said (`transactions.verifier.ask`), by fact; None where there is none.

        Raises:
            NotFound, OutOfScope, Closed: There is nothing to commit.
            Stale: Something changed since the verifier was asked; ask it again.
        """
        tx = self.transaction(tx_id)
        if tx.status is not TxStatus.OPEN:
            raise Closed(f"transaction {tx.id} is {tx.status}", hint="begin another with `mem tx begin`", target=tx.id)
        if tx.lease_until <= self.moment():
            return self._verdict(self._abort(tx, Code.X_LEASE_OVER), verdicts)
        scene = self.scene(tx)
        self._check_answers(scene, verdicts, partial=partial)
        found = checks.judge(scene, verdicts, partial=partial)
        status = checks.outcome((checks.ruling_of(failures) for failures in found.values()), partial=partial)
        if not partial and status is not TxStatus.COMMITTED:
            for name, failures in found.items():
                self._fail(tx, name, failures, status, verdicts)
        else:
            status = self._settle_each(tx, found, status, verdicts)
        return self._verdict(self._close(tx, status), verdicts)

    def _verdict(self, tx: Transaction, answers: Mapping[str, Answer] | None) -> Verdict:
        return Verdict(tx=tx.id, status=tx.status, verdicts=tx.verdicts, calls=len(answers or ()))

    def _check_answers(self, scene: Scene, answers: Mapping[str, Answer] | None, *, partial: bool) -> None:
        if answers is None:
            return
        for item in self.questions_in(scene, checks.judge(scene, partial=partial)):
            said = answers.get(item.fact)
            if said is None or said.asked != digest_of(item.request):
                raise Stale(f"fact {item.fact[:8]} changed since the verifier was asked", hint="ask it again")

    @property
    def believes(self) -> bool:
        """Return whether a commit by this actor changes what is believed."""
        return self.decides or self.store.admission is Admission.CHECKED

    def _fail(
        self,
        tx: Transaction,
        name: str,
        failures: Sequence[Failure],
        status: TxStatus,
        answers: Mapping[str, Answer] | None,
    ) -> None:
        """Settle one fact of an atomic transaction that is held or aborted as a whole."""
        code = checks.code_of(failures)
        why = _reason(code, answers, name) if failures else HELD_WITH_TX
        self._note(tx, name, code)
        number = self.fact_number(name)
        if status is TxStatus.HELD:
            self._hold(number, why)
        else:
            self.withdraw(number, Op.ABORT, why if failures else f"aborted with {tx.id}")

    def _settle_each(
        self,
        tx: Transaction,
        found: Mapping[str, Sequence[Failure]],
        status: TxStatus,
        answers: Mapping[str, Answer] | None,
    ) -> TxStatus:
        waits = False
        for name, failures in found.items():
            number, code, ruling = self.fact_number(name), checks.code_of(failures), checks.ruling_of(failures)
            self._note(tx, name, code)
            if ruling is Ruling.REFUSE:
                self.withdraw(number, Op.ABORT, _reason(code, answers, name))
            elif ruling is Ruling.HOLD:
                self._hold(number, _reason(code, answers, name))
            elif self.believes:
                self._believed(number, tx.tier)
            else:
                self._hold(number, HELD_FOR_REVIEW)
                waits = True
        return TxStatus.HELD if waits else status

    def _note(self, tx: Transaction, name: str, code: Code) -> None:
        number = tx_rows.number_of("transactions", tx.id)
        self.write_row("verdicts", (number, self.fact_number(name), str(code), self.moment()))

    def _hold(self, number: int, why: str) -> None:
        row = self.newest(number)
        if row.field("state") == State.TENTATIVE:
            self.move(row, State.DISPUTED, Op.HOLD, reason=why)

    def _believed(self, number: int, tier: Tier) -> None:
        row = self.newest(number)
        valid = self._validity(row)
        rivals = self.rivals(row.fact_field("slot"), row.field("slot_key"), valid, but=number)
        moved = self.move(row, State.ACCEPTED, Op.COMMIT)
        self._flags_only = True
        self._supersede(rivals, number)
        self._flags_only = False
        if tier is Tier.EXTERNAL:
            self.move(moved, State.VERIFIED, Op.VERIFY, reason="committed in an external transaction")

    def _close(self, tx: Transaction, status: TxStatus) -> Transaction:
        at = self.tick()
        fields = self.row_of("transactions", tx.id)
        self.change_row("transactions", fields, _CLOSING[status], at=at, status=str(status), closed_at=at)
        return self.transaction(tx.id)

    # ---------------------------------------------------------------- abort, recover

    def withdraw(self, number: int, op: Op, reason: str | None) -> None:
        """Withdraw a fact and all that was built on it: the one repair routine. A second time it changes nothing."""
        row = self.newest(number)
        if State(str(row.field("state"))) not in FINAL:
            self.move(row, State.REVOKED, op, reason=reason)
        self.cascade(number)

    def abort(self, tx_id: str) -> Transaction:
        """Withdraw what a transaction staged, close it and return it; a transaction that is aborted stays as it is.

        Raises:
            NotFound, OutOfScope: There is none of that id in the scope.
            Closed: It was committed or held.
        """
        tx = self.transaction(tx_id)
        if tx.status is TxStatus.ABORTED:
            return tx
        if tx.status is not TxStatus.OPEN:
            raise Closed(
                f"transaction {tx.id} is {tx.status}",
                hint="withdraw what it brought with `mem revoke`",
                target=tx.id,
            )
        return self._abort(tx, Code.X_ABORTED)

    def _abort(self, tx: Transaction, code: Code) -> Transaction:
        for name in tx.staged:
            self._note(tx, name, code)
            self.withdraw(self.fact_number(name), Op.ABORT, self.reason or f"{tx.id} was aborted: {code}")
        return self._close(tx, TxStatus.ABORTED)

    def recover(self) -> list[Transaction]:
        """Abort every transaction of the scope whose lease is over, and return them.

        Their actions that were running are `unknown` from then on: nobody can say whether they happened.
        """
        now = self.moment()
        over = [tx for tx in self.transactions() if tx.status is TxStatus.OPEN and tx.lease_until <= now]
        self.lose_sight(over)
        return [self._abort(tx, Code.X_LEASE_OVER) for tx in over]

    def lose_sight(self, over: Sequence[Transaction]) -> None:
        """Mark the running actions of transactions whose lease is over as unknown."""


_DECISIONS = frozenset({Op.ACCEPT, Op.VERIFY, Op.DISPUTE, Op.MERGE, Op.RETRACT, Op.CORRECT})
"""Moves that decide about a fact by itself, which is not open to anybody while it is a draft."""


def _reason(code: Code, answers: Mapping[str, Answer] | None, name: str) -> str:
    said = None if answers is None or code is not Code.X_VERIFIER else answers.get(name)
    return str(code) if said is None or not said.reason else f"{code}: {said.reason}"
