"""Coming to believe: add, correct, accept, verify, dispute, merge, keep both, undo."""

import json
import math
from collections.abc import Sequence
from typing import Any

from memcli.errors import Conflict, NotAllowed, NotFound, NotPermitted
from memcli.facts import AuditEvent, Claim, Fact, Micros, Scalar, Validity, Written
from memcli.store import rows
from memcli.store.evidence import Backing, Evidenced, Keyed, spoken
from memcli.store.ledger import as_json, new_name
from memcli.store.seals import Field, seal
from memcli.terms import FINAL, READABLE, ActorKind, Admission, Channel, How, Op, State, Visibility
from memcli.text import pack
from memcli.transactions.scene import WIDTH

_UNSETTLED = frozenset(State) - READABLE
_DEAD = FINAL - {State.SUPERSEDED}


class Believing(Evidenced):
    """A ledger in which facts are offered, believed, corrected and held."""

    # ---------------------------------------------------------------- add

    def add(self, claim: Claim) -> Written:
        """Offer a fact and return what became of it.

        Raises:
            Tombstoned: The value was rejected for good.
            Conflict: A source of more authority holds the slot.
            Echo: The value was withdrawn, and nothing new stands behind it.
            NotPermitted: Facts enter this file through transactions only.
            NotFound, NotAllowed: The evidence or a parent cannot carry it.
        """
        if self.store.admission is Admission.CHECKED:
            raise NotPermitted(
                "facts enter this file only through transactions",
                hint="it was made with --admission checked; make one with `mem init --admission review`",
            )
        self.check_texts(claim)
        backing = self.backing(claim)
        self.check_tombstones(claim.text, claim.slot, claim.value)
        parents, firm = self._parents(claim)
        keyed = self.keyed(claim)
        self.check_echo(keyed, backing)
        trusted = self.decides and firm and all(item.verified for item in backing)
        authority = max(item.authority for item in backing)
        if claim.authority is not None:
            authority = min(authority, claim.authority)
        for number in self.duplicates(keyed):
            if trusted and self._only_waits(number):
                return self._believe(number, claim, backing, authority)
            return self._corroborate(number, claim, backing)
        outcome, rivals = self.weigh(keyed, authority, backing)
        number = self._insert(keyed, backing, parents, authority, accepted=trusted and outcome != "hold")
        return self._settle(number, outcome if trusted or outcome == "hold" else "free", rivals)

    def _settle(self, number: int, outcome: str, rivals: Sequence[int]) -> Written:
        if outcome == "hold":
            self.move(
                self.newest(number), State.DISPUTED, Op.DISPUTE, reason="a rival of the same authority holds the slot"
            )
            return Written(fact=self.fact(number), outcome="held", rival=self._name(rivals[0]))
        if outcome == "supersede":
            self._supersede(rivals, number)
            return Written(fact=self.fact(number), outcome="superseded", rival=self._name(rivals[0]))
        return Written(fact=self.fact(number), outcome="new")

    def _only_waits(self, number: int) -> bool:
        return self.newest(number).field("state") == State.TENTATIVE and self._unsettled_parent(number) is None

    def _believe(self, number: int, claim: Claim, backing: Sequence[Backing], authority: float) -> Written:
        """Accept what waited, now that somebody who decides says it too; its own slot is weighed as in any offer."""
        fact = self.fact(number)
        self._check_width(number, fact)
        waiting = Claim(
            text=fact.text, subject=fact.subject, attribute=fact.attribute, value=fact.value, validity=fact.valid
        )
        outcome, rivals = self.weigh(self.keyed(waiting), authority, backing)
        self._corroborate(number, claim, backing)
        if outcome != "hold":
            self.move(self.newest(number), State.ACCEPTED, Op.ACCEPT, authority=max(authority, fact.authority))
        written = self._settle(number, outcome, rivals)
        return Written(fact=written.fact, outcome="corroborated") if outcome == "free" else written

    def _name(self, number: int) -> str:
        return str(self.newest(number).fact_field("name"))

    def _parents(self, claim: Claim) -> tuple[list[int], bool]:
        """Return the rows of the parents, and whether all of them are believed."""
        numbers, firm = [], True
        for name in claim.derived_from:
            number = self.fact_number(name)
            row = self.newest(number)
            # A copy may come from another scope; anything else that is derived stays where its parents are.
            if claim.how is not How.COPIED or self.store.bound is not None:
                self.check_here(row)
            state = State(str(row.field("state")))
            if state in FINAL:
                raise NotAllowed(
                    f"fact {name[:8]}, which this would be derived from, is {state}",
                    hint=f"see why with `mem why {name[:8]}`",
                    target=name,
                    offered=claim.text,
                )
            firm = firm and state in READABLE
            numbers.append(number)
        narrower = self._narrower(numbers, claim.visibility)
        if narrower is not None:
            name, visibility = narrower
            raise NotAllowed(
                f"fact {name[:8]}, which this would be derived from, is {visibility}, and this would be"
                f" {claim.visibility}",
                hint=f"offer it with --visibility {visibility}",
                target=name,
                offered=claim.text,
            )
        return numbers, firm

    def _narrower(self, numbers: Sequence[int], visibility: Visibility) -> tuple[str, Visibility] | None:
        """Return the id and visibility of the narrowest of facts and all their ancestors, where that is less."""
        marks = ",".join("?" * len(numbers))
        found = self.conn.execute(
            f"with recursive above (fact) as (select id from facts where id in ({marks}) union"
            " select d.parent from derivations d join above on d.child = above.fact)"
            " select f.name, f.visibility from facts f join above on f.id = above.fact order by f.id",
            tuple(numbers),
        ).fetchall()
        width, name, seen = min(
            ((WIDTH[Visibility(seen)], name, seen) for name, seen in found), default=(WIDTH[visibility], "", visibility)
        )
        return (name, Visibility(seen)) if width < WIDTH[visibility] else None

    def _check_width(self, number: int, seen: Fact) -> None:
        """Refuse to believe what more people may see than what it was derived from, at any depth."""
        narrower = self._narrower([number], seen.visibility)
        if narrower is not None:
            raise NotAllowed(
                f"fact {seen.id[:8]} is {seen.visibility}, and {narrower[0][:8]}, which it was derived from, is"
                f" {narrower[1]}",
                hint=f"reject or retract it, and add it anew with --visibility {narrower[1]}",
                target=seen.id,
            )

    def _corroborate(self, number: int, claim: Claim, backing: Sequence[Backing]) -> Written:
        fresh = [item for item in backing if not self.only_known([item], self.stands_on(number))]
        if not fresh:
            return Written(fact=self.fact(number), outcome="same")
        row = self.newest(number)
        at = self.tick()
        self._link(number, int(row.field("version")), fresh, claim.text, at)
        self.event(
            Op.CORROBORATE,
            str(row.fact_field("name")),
            at=at,
            before=row.digest,
            after=row.digest,
            moved=(State(str(row.field("state"))), State(str(row.field("state")))),
        )
        return Written(fact=self.fact(number), outcome="corroborated")

    def _link(self, number: int, version: int, backing: Sequence[Backing], text: str, at: Micros) -> None:
        for item in backing:
            if item.message is not None:
                self.insert_provenance(number, version, item, at)
                continue
            source, message = self.file_statement(text, at)
            filed = Backing(
                source=source,
                message=message,
                quote=item.quote,
                span=item.span,
                verified=item.verified,
                digest=item.digest,
                at=at,
                authority=item.authority,
            )
            self.insert_provenance(number, version, filed, at)

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
        claim, at = keyed.claim, self.tick()
        number = 1 + int(self.conn.execute("select coalesce(max(id), 0) from facts").fetchone()[0])
        name = new_name()
        texts = [None if text is None else pack(text) for text in (claim.subject, claim.attribute)]
        owner = None if claim.owner is None else pack(claim.owner)
        fields: tuple[Field, ...] = (
            number, name, self.scope, str(claim.kind), *texts, keyed.slot, owner, str(claim.visibility), at, None,
        )  # fmt: skip
        self.conn.execute(
            f"insert into facts ({', '.join(rows.FACT_FIELDS)}, seal) values ({', '.join('?' * 12)})",
            (*fields, seal(self.key, "fact", fields)),
        )
        self._touched[number] = None
        state = State.ACCEPTED if accepted else State.TENTATIVE
        digest = self.insert_version(self.first_row(number, keyed, authority, state), at)
        self._link(number, 1, backing, claim.text, at)
        for parent in dict.fromkeys(parents):
            edge = (number, parent, str(claim.how), at)
            self.conn.execute(
                "insert into derivations values (?, ?, ?, ?, ?)", (*edge, seal(self.key, "derivation", edge))
            )
        self.event(op, name, at=at, after=digest, moved=(None, state))
        return number

    def first_row(self, number: int, keyed: Keyed, authority: float, state: State) -> dict[str, Any]:
        """Return the columns of a fact's first version, but for its time."""
        claim = keyed.claim
        return {
            "fact": number,
            "version": 1,
            "revision": 1,
            "state": str(state),
            "text": pack(claim.text),
            "value": as_json(claim.value),
            "confidence": None if claim.confidence is None else float(claim.confidence),
            "importance": None if claim.importance is None else float(claim.importance),
            "authority": float(authority),
            "pinned": int(claim.pinned),
            "valid_from": claim.validity.start,
            "valid_to": claim.validity.end,
            "displaced": 0,
            "superseded_by": None,
            "rule": None if claim.rule is None else pack(claim.rule),
            "text_key": keyed.text_key,
            "slot_key": keyed.slot_key,
            "actor_name": pack(self.actor.name),
            "actor_kind": str(self.actor.kind),
            "actor_channel": str(self.actor.channel),
        }

    def _supersede(self, rivals: Sequence[int], winner: int) -> None:
        """End the rivals in favour of the winner, whose validity says until when they still answer."""
        row = self.newest(winner)
        begins: Any = row.field("valid_from")
        for number in rivals:
            self._end(self.newest(number), begins, winner, f"superseded by {row.fact_field('name')}")

    def _end(self, row: rows.VersionRow, begins: Micros | None, winner: int, reason: str | None) -> rows.VersionRow:
        """Record that a version was replaced: cut where the successor begins, or displaced where it covers all.

        Views that were built on it are held.
        """
        start: Any = row.field("valid_from")
        end: Any = row.field("valid_to")
        changes: dict[str, Field] = {"superseded_by": winner}
        if begins is None or (start is not None and begins <= start):
            changes["displaced"] = 1
        elif end is None or begins < end:
            changes["valid_to"] = begins
        ended = self.move(row, State.SUPERSEDED, Op.SUPERSEDE, reason=reason, **changes)
        self.outdate(row.fact)
        return ended

    # ---------------------------------------------------------------- correct

    def correct(
        self,
        seen: Fact,
        text: str,
        *,
        value: Scalar = None,
        validity: Validity | None = None,
        claim: Claim | None = None,
        op: Op = Op.CORRECT,
    ) -> Fact:
        """Close the current version and start the next, and return the fact as it is now.

        Args:
            value: The slot's new value; None takes it from the text (`slot_value`).
            validity: None keeps the validity there was. A beginning later than the old one means that the world
                changed then, and the old value still answers for its own time.
            claim: Carries evidence and importance; None makes the correction its own evidence.

        Raises:
            Stale, Tombstoned, Conflict, NotAllowed, NoReason: Nothing was changed.
        """
        self.need_reason()
        self.need_decider("correct a fact", seen.id)
        told = self._told(seen, text, value, validity, claim)
        self.check_texts(told)
        self.check_tombstones(told.text, told.slot, told.value)
        row = self.seen(seen)
        keyed, backing = self.keyed(told), self.backing(told)
        self._check_change(seen, row, keyed)
        state = State(str(row.field("state")))
        was = row.digest
        if state in READABLE:
            row = self._end(row, told.validity.start, row.fact, None)
        elif state not in FINAL:
            row = self.move(row, State.REVOKED, Op.RETRACT)
        version, at = self.next_version(
            row,
            State.ACCEPTED,
            op,
            before=was,
            **self._said(keyed, max(item.authority for item in backing)),
        )
        self._link(row.fact, version, backing, told.text, at)
        return self.fact(row.fact)

    def _told(self, seen: Fact, text: str, value: Scalar, validity: Validity | None, claim: Claim | None) -> Claim:
        slot = seen.slot
        return Claim(
            text=text,
            subject=seen.subject,
            attribute=seen.attribute,
            value=None if slot is None else slot_value(seen, text) if value is None else value,
            validity=seen.valid if validity is None else validity,
            confidence=None if claim is None else claim.confidence,
            importance=seen.importance if claim is None or claim.importance is None else claim.importance,
            pinned=seen.pinned or (claim is not None and claim.pinned),
            evidence=() if claim is None else claim.evidence,
        )

    def _check_change(self, seen: Fact, row: rows.VersionRow, keyed: Keyed) -> None:
        same = row.field("text_key") == keyed.text_key and row.field("slot_key") == keyed.slot_key
        if same and seen.valid == keyed.claim.validity and seen.text == keyed.claim.text:
            raise NotAllowed(f"fact {seen.id[:8]} says that already", hint=f"see it with `mem show {seen.id[:8]}`")
        start, now = keyed.claim.validity.start, self.store.now()
        if seen.readable and start is not None and start > now and seen.valid.covers(now) and start != seen.valid.start:
            raise NotAllowed(
                "that begins in the future, and nothing would be said until then",
                hint=f"end {seen.id[:8]} with `mem correct … --valid-to` and `mem add` what follows with --valid-from",
            )
        self._check_parents(row.fact, states=_DEAD)
        if not seen.readable:
            self._check_width(row.fact, seen)
        for number in self.rivals(keyed.slot, keyed.slot_key, keyed.claim.validity, but=row.fact):
            name = self._name(number)
            raise Conflict(
                f"fact {name[:8]} holds another value in the same slot at the same time",
                hint=f"correct or retract that one first: `mem show {name[:8]}`",
                target=name,
                offered=keyed.claim.text,
            )

    def _said(self, keyed: Keyed, authority: float) -> dict[str, Any]:
        claim = keyed.claim
        return {
            "text": pack(claim.text),
            "value": as_json(claim.value),
            "authority": float(authority),
            "confidence": claim.confidence,
            "importance": claim.importance,
            "pinned": int(claim.pinned),
            "valid_from": claim.validity.start,
            "valid_to": claim.validity.end,
            "text_key": keyed.text_key,
            "slot_key": keyed.slot_key,
            "rule": None,
        }

    # ---------------------------------------------------------------- decide

    def accept(self, seen: Fact, *, op: Op = Op.ACCEPT) -> Fact:
        """Believe what waits; rivals in its slot are superseded, because a person looked at both.

        Raises:
            Stale, Tombstoned, NotAllowed: Nothing was changed.
        """
        self.need_decider("accept a fact", seen.id)
        self.check_tombstones(seen.text, seen.slot, seen.value)
        row = self.seen(seen)
        self.check_reviewer(seen)
        self._check_parents(row.fact)
        self._check_width(row.fact, seen)
        rivals = self.rivals(self.slot_row(seen.slot), self._slot_key(row), seen.valid, but=row.fact)
        moved = self.move(row, State.ACCEPTED, op)
        self._supersede(rivals, moved.fact)
        return self.fact(moved.fact)

    def check_reviewer(self, seen: Fact) -> None:
        """Refuse that who offered a fact accepts it through a pipe.

        Raises:
            NotPermitted: The names are the same and this is no terminal.
        """
        if self.actor.channel is not Channel.DECISIONS:
            return
        offered = self.conn.execute(
            "select actor_name from versions where fact = ? and version = ? and revision = 1",
            (self.fact_number(seen.id), seen.version),
        ).fetchone()
        if offered is not None and offered[0] == pack(self.actor.name):
            raise NotPermitted(
                f"{self.actor.name} offered {seen.id[:8]} and cannot accept it through a pipe",
                hint="let another person decide, or decide at a terminal",
                target=seen.id,
            )

    def _check_parents(self, number: int, *, states: frozenset[State] = _UNSETTLED) -> None:
        found = self._unsettled_parent(number, states=states)
        if found is not None:
            raise NotAllowed(
                f"fact {found[0][:8]}, which it was derived from, is {found[1]}",
                hint=f"decide that one first: `mem why {found[0][:8]}`",
                target=found[0],
            )

    def _unsettled_parent(self, number: int, *, states: frozenset[State] = _UNSETTLED) -> tuple[str, State] | None:
        """Return the id and state of a parent that is in one of these states, or of an older ancestor that is dead."""
        front, known = [number], {number}
        while front:
            above: list[int] = []
            for parent, name, state in self._parent_states(front):
                if state in states:
                    return name, state
                above += [] if parent in known else [parent]
                known.add(parent)
            front, states = above, _DEAD
        return None

    def _parent_states(self, numbers: Sequence[int]) -> list[tuple[int, str, State]]:
        marks = ",".join("?" * len(numbers))
        return [
            (parent, name, State(state))
            for parent, name, state in self.conn.execute(
                "select f.id, f.name, (select v.state from versions v where v.fact = f.id and v.retired_at is null"
                " order by v.version desc limit 1) from facts f where f.id in"
                f" (select parent from derivations where child in ({marks})) order by f.id",
                tuple(numbers),
            )
        ]

    def _slot_key(self, row: rows.VersionRow) -> bytes | None:
        key: bytes | None = row.field("slot_key")
        return key

    def verify(self, seen: Fact, *, oracle: str | None = None) -> Fact:
        """Raise a fact to verified; what waits is accepted first.

        Args:
            oracle: The name of the oracle that confirmed it; None where a person at a terminal does.

        Raises:
            NotPermitted: Neither a person at a terminal nor an oracle that the policy names.
            Stale, NotAllowed, Tombstoned: Nothing was changed.
        """
        if oracle is not None:
            known = {name for rule in self.store.policy() if rule.kind == "oracle" for name in (rule.name, rule.value)}
            if oracle not in known or self.actor.kind is not ActorKind.ORACLE:
                raise NotPermitted(
                    f"the policy of this file names no oracle {oracle}",
                    hint="list them with `mem policy show`",
                    target=seen.id,
                )
        elif not self.actor.is_person:
            raise NotPermitted(
                "only a person at a terminal, or an oracle that the policy names, makes a fact verified",
                hint="run it in a terminal, or use --oracle",
                target=seen.id,
            )
        if seen.state in (State.TENTATIVE, State.DISPUTED):
            seen = self.accept(seen)
        return self.fact(self.move(self.seen(seen), State.VERIFIED, Op.VERIFY).fact)

    def dispute(self, seen: Fact) -> Fact:
        """Hold a fact until a person decides."""
        self.need_decider("dispute a fact", seen.id)
        return self.fact(self.move(self.seen(seen), State.DISPUTED, Op.DISPUTE).fact)

    def keep_both(self, seen: Fact) -> Fact:
        """Keep an item beside what it conflicts with: both are held; without a conflict it is simply accepted."""
        self.need_decider("keep two facts", seen.id)
        self.check_tombstones(seen.text, seen.slot, seen.value)
        row = self.seen(seen)
        rivals = self.rivals(self.slot_row(seen.slot), self._slot_key(row), seen.valid, but=row.fact)
        if not rivals:
            return self.accept(seen)
        for number in rivals:
            self.move(self.newest(number), State.DISPUTED, Op.DISPUTE, reason=f"kept beside {seen.id}, undecided")
        if seen.state is not State.DISPUTED:
            self.move(row, State.DISPUTED, Op.DISPUTE)
        return self.fact(row.fact)

    def merge(self, seen: Fact, into: Fact) -> Fact:
        """Give the evidence of an item to another fact, end the item, and return the other."""
        self.need_decider("merge facts", seen.id)
        row, other = self.seen(seen), self.seen(into)
        if row.fact == other.fact or into.state in FINAL:
            raise NotAllowed(f"fact {seen.id[:8]} cannot be merged into {into.id[:8]}", hint="name another fact")
        at = self.tick()
        held = self.stands_on(other.fact)
        for fields in self._provenance(row.fact):
            digest, moment, _ = fields[-3:]
            if not any(digest == theirs and moment == known for theirs, known, _ in held):
                self._copy_provenance(fields, other, at)
        state = State(str(other.field("state")))
        self.event(Op.CORROBORATE, into.id, at=at, before=other.digest, after=other.digest, moved=(state, state))
        self.move(row, State.REVOKED, Op.MERGE, reason=self.reason or f"merged into {into.id}")
        self.cascade(row.fact)
        return self.fact(other.fact)

    def _provenance(self, number: int) -> list[rows.Row]:
        columns = ", ".join("p." + name for name in rows.PROVENANCE_FIELDS)
        return self.conn.execute(
            f"select {columns}, m.evidence, m.at, m.source from provenance p join messages m on m.id = p.message"
            " where p.fact = ? and p.erased_at is null order by p.id",
            (number,),
        ).fetchall()

    def _copy_provenance(self, fields: rows.Row, other: rows.VersionRow, at: Micros) -> None:
        _, _, source, message, quote, start, stop, verified, *_ = fields
        self.insert_provenance_row(
            (other.fact, other.field("version"), source, message, quote, start, stop, verified, at, None)
        )

    # ---------------------------------------------------------------- undo

    def undo(self, event: AuditEvent) -> Fact:
        """Record a new change whose content is what was before an event, and return the fact.

        Raises:
            NotAllowed: The event is no change of a fact, ended a value for good, or something came after it.
            Tombstoned: What was before stands under a tombstone.
        """
        self.need_reason()
        self.need_decider("undo a change", event.target)
        number = self._undoable(event)
        row = self.newest(number)
        self.check_here(row)
        self.check_kept(row)
        after = self._by_time(number, event.at)
        if after.field("version") != row.field("version") or (str(row.field("state")) != str(after.field("state"))):
            raise NotAllowed(
                f"fact {event.target} changed after event {event.id}",
                hint=f"undo the later change first: `mem log --fact {event.target}`",
            )
        before = self._before(number, event)
        if before is None or State(str(before.field("state"))) in FINAL:
            if State(str(row.field("state"))) in FINAL:
                raise NotAllowed(f"event {event.id} is undone already", hint="see `mem log`")
            self.move(row, State.REVOKED, Op.UNDO)
            self.cascade(number)
            return self.fact(number)
        return self._restore(row, before)

    def _undoable(self, event: AuditEvent) -> int:
        stops = {
            Op.TOMBSTONE: "lift the tombstone with `mem lift`",
            Op.REJECT: "lift the tombstone with `mem lift`",
            Op.LIFT: "reject the value again with `mem tombstone`",
            Op.ERASE: "what was erased is gone",
        }
        changes = (
            Op.ADD, Op.CORRECT, Op.RETRACT, Op.VERIFY, Op.DISPUTE, Op.ACCEPT, Op.SUPERSEDE, Op.CASCADE, Op.MERGE,
            Op.UNDO,
        )  # fmt: skip
        if event.op not in changes or event.target is None:
            raise NotAllowed(
                f"event {event.id} ({event.op}) cannot be undone",
                hint=stops.get(event.op, "choose an event that changed a fact: `mem log`"),
            )
        return self.fact_number(event.target)

    def _by_time(self, number: int, at: Micros) -> rows.VersionRow:
        found = self.conn.execute(
            f"{rows.SELECT_VERSION} where v.fact = ? and v.recorded_at = ?", (number, at)
        ).fetchone()
        if found is None:
            raise NotFound(f"the change at that event is not in this file: {number}", hint="run `mem check`")
        return self.store.reader.version(found)

    def _before(self, number: int, event: AuditEvent) -> rows.VersionRow | None:
        found = [
            self.store.reader.version(raw)
            for raw in self.conn.execute(
                f"{rows.SELECT_VERSION} where v.fact = ? and v.recorded_at < ? order by v.recorded_at desc",
                (number, event.at),
            )
        ]
        # A correction retires a version in its own event first; what was before is the row its digest names.
        wanted = event.before
        return next((row for row in found if wanted == "blake2b:" + row.digest.hex()), None)

    def _restore(self, row: rows.VersionRow, before: rows.VersionRow) -> Fact:
        fact = self.store.reader.fact(before)
        self.check_tombstones(fact.text, fact.slot, fact.value)
        if State(str(before.field("state"))) in READABLE:
            self._check_parents(row.fact, states=_DEAD)
            self._check_slot_free(row, before, fact)
        state = State(str(row.field("state")))
        was = row.digest
        if state in READABLE:
            row = self.move(row, State.SUPERSEDED, Op.SUPERSEDE, superseded_by=row.fact, displaced=1)
            self.outdate(row.fact)
        elif state not in FINAL:
            row = self.move(row, State.REVOKED, Op.RETRACT)
        skip = {"fact", "version", "revision", "state", "displaced", "superseded_by", "recorded_at"}
        said: dict[str, Any] = {
            name: before.field(name) for name in rows.VERSION_FIELDS if name not in skip and "actor" not in name
        }
        restored = State(str(before.field("state")))
        if restored is State.VERIFIED and not self.actor.is_person:
            restored = State.ACCEPTED  # nobody but a person or an oracle says that it is confirmed
        version, at = self.next_version(row, restored, Op.UNDO, before=was, **said)
        for fields in self._provenance(row.fact):
            if fields[1] == before.field("version"):
                self._copy_provenance(fields, self.version_row(row.fact, version), at)
        return self.fact(row.fact)

    def _check_slot_free(self, row: rows.VersionRow, before: rows.VersionRow, fact: Fact) -> None:
        for number in self.rivals(self.slot_row(fact.slot), self._slot_key(before), fact.valid, but=row.fact):
            name = self._name(number)
            raise Conflict(
                f"fact {name[:8]} took its place since then",
                hint=f"retract that one first: `mem retract {name[:8]}`",
                target=name,
                offered=fact.text,
            )


def slot_value(seen: Fact, text: str) -> Scalar:
    """Return the value a corrected text gives to a slot.

    Where the old text holds the old value, what stands in its place; otherwise the text itself is the value.
    """
    old = spoken(seen.value)
    before, found, after = seen.text.rpartition(old) if old else ("", "", "")
    if not (found and text.startswith(before) and text.endswith(after) and len(text) > len(before) + len(after)):
        return text
    return _like(seen.value, text[len(before) : len(text) - len(after)])


def _like(old: Scalar, new: str) -> Scalar:
    """Return a number or a truth value where the old value was one and the new words read as one."""
    if isinstance(old, str):
        return new
    try:
        read: Scalar = json.loads(new)
    except ValueError:
        return new
    return read if isinstance(read, int) or (isinstance(read, float) and math.isfinite(read)) else new
