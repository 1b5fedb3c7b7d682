"""What leaves the memory: the gate, receipts, actions, what they owe, and the cascade that reaches them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memcli.errors import LeaseOver, NotAllowed, NotFound, NotPermitted, OutOfScope, Stale, UsageError
from memcli.facts import Claim, Fact, Micros, Validity
from memcli.store import rows, tx_rows
from memcli.store.seals import Field
from memcli.store.transact import Transacting
from memcli.terms import (
    FINAL,
    READABLE,
    VIEWS,
    ActionState,
    Admission,
    Code,
    EffectState,
    How,
    Isolation,
    Op,
    Profile,
    State,
    TxStatus,
    Visibility,
)
from memcli.text import check_typed, pack
from memcli.transactions import cascade, gate, settings
from memcli.transactions.scene import DEAD, WIDTH, Call, Record
from memcli.tx import Action, Effect, Fall, GateAnswer, Receipt, Repair, Transaction


class Acting(Transacting):
    """A ledger that lets tool calls through, keeps what became of them, and knows what they owe."""

    # ---------------------------------------------------------------- the gate

    def gate(
        self,
        tx_id: str,
        tool: str,
        args_digest: str,
        premises: Sequence[str] = (),
        profile: Profile = Profile.STRICT,
    ) -> GateAnswer:
        """Return whether a tool call may go ahead, with all reasons why not, and where it may, a receipt for it.

        Args:
            args_digest: What the caller knows the arguments by; the receipt is good for these and no others.
            premises: Whole ids of the facts that the call relies on.

        Raises:
            NotFound: There is no such transaction, or a premise of a call that may go ahead is not in the file.
            OutOfScope: The transaction or a premise belongs to another scope.
            Closed, LeaseOver: The transaction is over.
        """
        tx = self.living(tx_id)
        check_typed(tool, what="the tool")
        check_typed(args_digest, what="the digest of the arguments")
        if not tool.strip() or not args_digest.strip():
            raise UsageError("a call needs a tool and a digest of its arguments", hint="see `mem gate --help`")
        places = {name: self._premise(name) for name in dict.fromkeys(premises)}
        relied = {number: self.newest(number) for number in places.values() if number is not None}
        call = self._call(tx, tool, profile, relied, lost=None in places.values())
        answer = gate.pass_gate(call)
        if not answer.allow:
            self.event(Op.GATE, tx.id, reason=f"{tool} blocked: {', '.join(answer.reasons)}")
            return answer
        self._check_found(places)
        leave = self._leave(tx, tool, args_digest, call, relied)
        return GateAnswer(allow=True, reasons=(), blockers=(), receipt=leave)

    def _call(
        self, tx: Transaction, tool: str, profile: Profile, relied: Mapping[int, rows.VersionRow], *, lost: bool
    ) -> Call:
        reversibility, sink = settings.tool(self.store.policy(), tool)
        waiting = {str(row.fact_field("name")): tuple(self._waiting(row)) for row in relied.values()}
        rivals = [self.fact_number(item.id) for found in waiting.values() for item in found]
        return Call(
            reversibility=reversibility,
            sink=sink,
            tier=tx.tier,
            isolation=tx.isolation,
            profile=profile,
            now=self.moment(),
            unsettled=tuple(self._unsettled(tx)),
            verified=self._holds_verified(tx),
            premises=tuple(map(self.as_record, relied.values())),
            lost=lost,
            within=frozenset(str(row.fact_field("name")) for row in relied.values() if self._within(tx, row)),
            known=self.known([*relied, *rivals]),
            waiting=waiting,
        )

    def _check_found(self, places: Mapping[str, int | None]) -> None:
        for name, number in places.items():
            if number is None:
                raise NotFound(f"no fact has the id {name}", hint="name each premise by its whole id")

    def _premise(self, name: str) -> int | None:
        row = self.conn.execute("select id, scope from facts where name = ?", (pack(name),)).fetchone()
        if row is None:
            return None
        if row[1] != self.scope:
            raise OutOfScope(
                f"premise {name} belongs to another scope than {self.scope_name}",
                hint="an action relies on facts of its transaction's scope",
                target=name,
            )
        return int(row[0])

    def _unsettled(self, tx: Transaction) -> Iterable[tuple[str, bool]]:
        """Yield every draft of the scope, and whether the snapshot of a transaction holds it."""
        at = self.snapshot_at(tx)
        for number, staged_at in self.conn.execute(
            "select s.fact, min(s.at) from staged s join transactions t on t.id = s.tx"
            " where t.status = 'open' and t.scope = ? group by s.fact order by s.fact",
            (self.scope,),
        ).fetchall():
            if self.newest(number).field("state") == State.TENTATIVE:
                yield self.name_of(number), tx.isolation is Isolation.RAW and staged_at <= at

    def _holds_verified(self, tx: Transaction) -> bool:
        found = self.rows_where(
            "f.scope = :scope and v.state = 'verified'", {"scope": self.scope}, at=self.snapshot_at(tx)
        )
        return bool(found)

    def _within(self, tx: Transaction, row: rows.VersionRow) -> bool:
        """Return whether the snapshot of a transaction holds a premise as it is: settled, and readable if it is now."""
        held = self.rows_where("v.fact = :fact", {"fact": row.fact}, at=self.snapshot_at(tx))
        if not held or held[0].field("version") != row.field("version"):
            return False
        then = State(str(held[0].field("state")))
        if then is State.TENTATIVE and self._was_draft(row.fact, self.snapshot_at(tx)):
            return tx.isolation is Isolation.RAW
        return then in READABLE or row.field("state") not in READABLE

    def _was_draft(self, number: int, at: Micros) -> bool:
        found = self.conn.execute(
            "select 1 from staged s join transactions t on t.id = s.tx where s.fact = ? and s.at <= ?"
            " and (t.closed_at is null or t.closed_at > ?)",
            (number, at, at),
        )
        return found.fetchone() is not None

    def _waiting(self, row: rows.VersionRow) -> Iterable[Record]:
        """Yield facts held in a premise's slot because an equal says something else, at some same moment."""
        mine = self._validity(row)
        for other in self._same_slot(row, {row.fact}):
            waits = other.field("state") == State.DISPUTED and self._last_code(other.fact) in (
                None,
                Code.C_EQUAL_AUTHORITY,
            )
            if waits and other.field("slot_key") != row.field("slot_key") and self._validity(other).overlaps(mine):
                yield self.as_record(other)

    def _last_code(self, number: int) -> str | None:
        """Return the newest verdict on a fact; None where no transaction ever had one."""
        found = self.conn.execute("select code from verdicts where fact = ? order by at desc, tx desc", (number,))
        row = found.fetchone()
        return None if row is None else str(row[0])

    def _leave(
        self, tx: Transaction, tool: str, args_digest: str, call: Call, relied: Mapping[int, rows.VersionRow]
    ) -> Receipt:
        number, seq, at = self._next("receipts"), self._seq, self.tick()
        said = (pack(tool), str(call.reversibility), pack(args_digest), str(call.profile))
        fields: tuple[Field, ...] = (number, tx_rows.number_of("transactions", tx.id), *said, seq, at)
        self.write_row("receipts", fields)
        for fact, row in relied.items():
            self.write_row("premises", (number, fact, row.field("version"), row.field("revision")))
        self.event(Op.GATE, f"r{number}", at=at, after=tx_rows.recorded(self.key, "receipts", fields))
        return self.receipt(f"r{number}")

    # ---------------------------------------------------------------- actions

    def action(self, name: str) -> Action:
        """Return one action by its id, such as `a2`, or by its receipt's.

        Raises:
            NotFound: There is none.
        """
        if name[:1].lower() == "r":
            number = tx_rows.number_of("receipts", name)
            for fields in self.sealed("actions", "receipt = ?", number):
                return self._action(fields)
        return self._action(self.row_of("actions", name))

    def _action(self, fields: Sequence[Any]) -> Action:
        return tx_rows.action(fields, self.receipt(f"r{fields[1]}"))

    def actions(self) -> list[Action]:
        """Return the actions of the scope, oldest first."""
        mine = {f"tx{fields[0]}" for fields in self.sealed("transactions", "scope = ?", self.scope)}
        found = self.sealed(
            "actions",
            "receipt in (select r.id from receipts r join transactions t on t.id = r.tx where t.scope = ?) order by id",
            self.scope,
        )
        return [action for action in map(self._action, found) if action.tx in mine]

    def act_plan(self, receipt: str, args_digest: str) -> Action:
        """Record that a call will be made on a receipt, which uses it up, and return the planned action.

        Raises:
            NotFound, OutOfScope, NotAllowed, LeaseOver, Stale: As `act_begin`.
        """
        return self._record(receipt, args_digest, ActionState.PLANNED)

    def act_begin(self, receipt: str, args_digest: str) -> Action:
        """Record that the call of a receipt, or a planned one, is being made now, and return the running action.

        Raises:
            NotFound: There is no such receipt.
            OutOfScope: It belongs to another scope.
            NotAllowed: It was used already, is for other arguments, or its transaction was held or aborted.
            LeaseOver: The lease of its transaction is over.
            Stale: A premise has changed since; ask the gate again.
        """
        return self._record(receipt, args_digest, ActionState.RUNNING)

    def _record(self, name: str, args_digest: str, state: ActionState) -> Action:
        leave = self.receipt(name)
        number = tx_rows.number_of("receipts", leave.id)
        self._check_leave(leave, args_digest)
        for fields in self.sealed("actions", "receipt = ?", number):
            known = self._action(fields)
            if known.state is not ActionState.PLANNED or state is ActionState.PLANNED:
                raise NotAllowed(
                    f"receipt {leave.id} was used for action {known.id}, which is {known.state}",
                    hint="ask the gate again with `mem gate`",
                    target=leave.id,
                )
            return self._change(known, state)
        at, fresh = self.tick(), self._next("actions")
        row: tuple[Field, ...] = (fresh, number, str(state), at, at)
        self.write_row("actions", row)
        self.event(Op.ACT, f"a{fresh}", at=at, after=tx_rows.recorded(self.key, "actions", row))
        return self._grounded(self.action(f"a{fresh}"))

    def _grounded(self, action: Action) -> Action:
        """Return an action, after what a dead premise means for it: a planned one is cancelled, a done one owes."""
        dead = self._dead_ground(action)
        if dead is None:
            return action
        self._settle_action(action, dead)
        return self.action(action.id)

    def _check_leave(self, leave: Receipt, args_digest: str) -> None:
        tx = self.transaction(leave.tx)
        if leave.args_digest != args_digest:
            raise NotAllowed(
                f"receipt {leave.id} is for other arguments", hint="ask the gate about these with `mem gate`",
                target=leave.id,
            )  # fmt: skip
        if tx.status in (TxStatus.HELD, TxStatus.ABORTED):
            raise NotAllowed(
                f"transaction {tx.id} of receipt {leave.id} is {tx.status}",
                hint="begin another with `mem tx begin`, and ask the gate again",
                target=leave.id,
            )
        if tx.status is TxStatus.OPEN and tx.lease_until <= self.moment():
            raise LeaseOver(
                f"the lease of transaction {tx.id} is over", hint="begin another with `mem tx begin`", target=leave.id
            )
        for name, (version, revision) in leave.premises.items():
            row = self.newest(self.fact_number(name))
            if (row.field("version"), row.field("revision")) != (version, revision):
                raise Stale(
                    f"premise {name[:8]} changed since receipt {leave.id} was written",
                    hint="ask the gate again with `mem gate`",
                    target=leave.id,
                )

    def act_done(self, name: str) -> Action:
        """Record that a running action happened, and return it; what a dead premise makes it owe is written down.

        Raises:
            NotFound: There is no such action or receipt.
            NotAllowed: It does not run.
        """
        return self._end_action(name, ActionState.DONE)

    def act_failed(self, name: str) -> Action:
        """Record that a running action did not happen, and return it.

        Raises:
            NotFound: There is no such action or receipt.
            NotAllowed: It does not run.
        """
        return self._end_action(name, ActionState.FAILED)

    def _end_action(self, name: str, state: ActionState) -> Action:
        found = self._here(self.action(name))
        if found.state is state:
            return found
        if found.state is not ActionState.RUNNING:
            unsure = found.state is ActionState.UNKNOWN
            raise NotAllowed(
                f"action {found.id} is {found.state} and does not become {state}",
                hint=f"say what became of it with `mem act reconcile {found.id}`" if unsure else "see `mem act list`",
                target=found.id,
            )
        return self._change(found, state)

    def act_unknown(self, name: str) -> Action:
        """Record that nobody saw how a running action ended, and return it.

        Raises:
            NotFound: There is no such action or receipt.
            NotAllowed: It does not run.
        """
        return self._end_action(name, ActionState.UNKNOWN)

    def act_reconcile(self, name: str, state: ActionState) -> Action:
        """Record what somebody found out about an action whose end nobody saw, and return it.

        Raises:
            NotFound: There is no such action or receipt.
            UsageError: The state is neither done nor failed.
            NotAllowed: Its end is known already, or it still runs.
        """
        if state not in (ActionState.DONE, ActionState.FAILED):
            raise UsageError(f"an action does not become {state} by being looked at", hint="one of: done, failed")
        found = self._here(self.action(name))
        if found.state is state:
            return found
        if found.state is not ActionState.UNKNOWN:
            raise NotAllowed(
                f"action {found.id} is {found.state}, which is no open question",
                hint="see `mem act list`",
                target=found.id,
            )
        return self._change(found, state)

    def _here(self, action: Action) -> Action:
        self.transaction(action.tx)
        return action

    def _change(self, action: Action, state: ActionState) -> Action:
        at = self.tick()
        fields = self.row_of("actions", action.id)
        self.change_row("actions", fields, Op.ACT, at=at, state=str(state), changed_at=at)
        return self._grounded(self.action(action.id))

    def lose_sight(self, over: Sequence[Transaction]) -> None:
        """Mark the running actions of transactions whose lease is over as unknown."""
        names = {tx.id for tx in over}
        for found in self.actions() if names else ():
            if found.state is ActionState.RUNNING and found.tx in names:
                self._change(found, ActionState.UNKNOWN)

    # ---------------------------------------------------------------- what falls

    def revoke(self, seen: Fact) -> Fact:
        """Withdraw a fact and everything that was built on it, actions included, and return it.

        A second time it changes nothing. A fact that is over already stays as it is, and what stands on it still falls.

        Raises:
            NoReason, NotPermitted, OutOfScope, Stale: Nothing was changed.
        """
        self.need_reason()
        self.need_decider("revoke a fact", seen.id)
        row = self.newest(self.fact_number(seen.id))
        self.check_here(row)
        if State(str(row.field("state"))) not in FINAL:
            self.seen(seen)
        self.withdraw(row.fact, Op.REVOKE, None)
        return self.fact(row.fact)

    def cascade(self, number: int) -> list[int]:
        """Withdraw what was built on a fact and settle the actions that rest on it; return the facts that fell.

        What was done is written down once for each root and record.
        """
        fell = super().cascade(number)
        for child in fell:
            self._repaired(number, fact=child, outcome=str(self.newest(child).field("state")))
        for found in self._resting_on([number, *self.descendants(number)]):
            self._settle_action(found, number)
        return fell

    def _resting_on(self, numbers: Sequence[int]) -> list[Action]:
        marks = ",".join(str(int(number)) for number in numbers)
        found = self.sealed("actions", f"receipt in (select receipt from premises where fact in ({marks})) order by id")
        return [self._action(fields) for fields in found]

    def _settle_action(self, action: Action, root: int) -> None:
        if action.state is ActionState.PLANNED:
            at = self.tick()
            self.change_row(
                "actions",
                self.row_of("actions", action.id),
                Op.ACT,
                at=at,
                reason=f"fell with {self.name_of(root)}",
                state=str(ActionState.CANCELLED),
                changed_at=at,
            )
            self._repaired(root, action=action.id, outcome=str(ActionState.CANCELLED))
        else:
            self._owe(action, root)

    def _owe(self, action: Action, root: int) -> None:
        """Write down what a done action owes: once for the action, and that it was for this root."""
        kind = cascade.owes(action.state, action.reversibility)
        if kind is None:
            return
        number = tx_rows.number_of("actions", action.id)
        if not any(self.sealed("effects", "action = ?", number)):
            at, fresh = self.tick(), self._next("effects")
            fields: tuple[Field, ...] = (fresh, number, str(kind), root, str(EffectState.OPEN), at)
            self.write_row("effects", fields)
            self.event(Op.EFFECT, f"x{fresh}", at=at, after=tx_rows.recorded(self.key, "effects", fields))
        self._repaired(root, action=action.id, outcome=str(kind))

    def _repaired(self, root: int, *, outcome: str, fact: int | None = None, action: str | None = None) -> None:
        number = None if action is None else tx_rows.number_of("actions", action)
        known = self.sealed("repairs", "root = ? and fact is ? and action is ?", root, fact, number)
        if not any(known):
            self.write_row("repairs", (self._next("repairs"), root, fact, number, outcome, self._at))

    def _dead_ground(self, action: Action) -> int | None:
        """Return the nearest fact under an action that was withdrawn or rejected."""
        premises = [self.fact_number(name) for name in action.premises]
        for number in (*premises, *self.ancestors_of(premises)):
            if State(str(self.newest(number).field("state"))) in DEAD:
                return number
        return None

    def plan_revoke(self, seen: Fact) -> Fall:
        """Return what would fall with a fact, as a tree; nothing is changed."""
        root = self.newest(self.fact_number(seen.id))
        self.check_here(root)
        return cascade.tree(self.whole(root), children=self._children, actions=self._actions_on)

    def _children(self, names: Sequence[str]) -> dict[str, list[Fact]]:
        found: dict[str, list[Fact]] = {}
        for name in names:
            for (child,) in self.conn.execute(
                "select child from derivations where parent = ? order by child", (self.fact_number(name),)
            ).fetchall():
                found.setdefault(name, []).append(self.whole(self.newest(child)))
        return found

    def _actions_on(self, names: Sequence[str]) -> dict[str, list[Action]]:
        return {name: self._resting_on([self.fact_number(name)]) for name in names}

    # ---------------------------------------------------------------- effects

    def effects(self) -> list[Effect]:
        """Return what actions of the scope owe or owed, oldest first."""
        mine = {action.id: action for action in self.actions()}
        found = (fields for fields in self.sealed("effects", "1 order by id") if f"a{fields[1]}" in mine)
        return [self._effect(fields, mine[f"a{fields[1]}"].tool) for fields in found]

    def _effect(self, fields: Sequence[Any], tool: str) -> Effect:
        return tx_rows.effect(fields, tool, self.name_of(fields[3]))

    def repairs(self) -> list[Repair]:
        """Return what cascades did, oldest first, where their root is of the scope."""
        found = self.sealed("repairs", "root in (select id from facts where scope = ?) order by id", self.scope)
        return [
            tx_rows.repair(fields, self.name_of(fields[1]), None if fields[2] is None else self.name_of(fields[2]))
            for fields in found
        ]

    def effect_ack(self, name: str) -> Effect:
        """Record that somebody has seen an effect, and return it; one that is seen or dealt with stays so.

        Raises:
            NotFound: There is no such effect.
        """
        return self._move_effect(name, EffectState.ACKED)

    def effect_done(self, name: str) -> Effect:
        """Record that an effect is dealt with, and return it.

        Raises:
            NotFound: There is no such effect.
        """
        return self._move_effect(name, EffectState.DONE)

    def _move_effect(self, name: str, state: EffectState) -> Effect:
        fields = self.row_of("effects", name)
        found = self._here(self.action(f"a{fields[1]}"))
        order = list(EffectState)
        if order.index(EffectState(fields[4])) < order.index(state):
            fields = self.change_row("effects", fields, Op.EFFECT, state=str(state))
        return self._effect(fields, found.tool)

    # ---------------------------------------------------------------- views

    def stale(self, seen: Fact) -> bool:
        """Return whether a fact was built on a value that another has taken the place of."""
        above = self.ancestors_of([self.fact_number(seen.id)])
        return any(self.newest(number).field("state") == State.SUPERSEDED for number in above)

    def rebuild_view(self, seen: Fact, text: str | None = None) -> Fact:
        """Build a view anew from the parents that survive, as a new fact in the place of the old one, and return it.

        A parent that was superseded is stood for by what took its place. The new text is the parents' texts in the
        order of their rows, joined by `; `, unless one is given. The new view is seen by no more than the narrowest
        parent, and is tentative where the actor may not decide.

        Raises:
            NotAllowed: It is no view, is over already, or none of its parents survives.
            NotPermitted: The caller gives a text in a file whose facts enter through transactions only.
            Tombstoned, Stale, OutOfScope: Nothing was changed.
        """
        row = self.seen(seen)
        if seen.kind not in VIEWS:
            raise NotAllowed(
                f"fact {seen.id[:8]} is a {seen.kind} and no view", hint="change it with `mem correct`", target=seen.id
            )
        if seen.state in FINAL:
            raise NotAllowed(f"view {seen.id[:8]} is {seen.state}", hint="write another", target=seen.id)
        if text is not None and self.store.admission is Admission.CHECKED:
            raise NotPermitted(
                "facts enter this file only through transactions", hint="leave out the text, or stage the view"
            )
        parents = self._surviving(row.fact)
        if not parents:
            raise NotAllowed(
                f"nothing that view {seen.id[:8]} was built from survives",
                hint=f"end it with `mem revoke {seen.id[:8]}`",
                target=seen.id,
            )
        return self._rebuilt(row, seen, parents, text)

    def _rebuilt(self, row: rows.VersionRow, seen: Fact, parents: Sequence[rows.VersionRow], text: str | None) -> Fact:
        grounds = [self.whole(parent) for parent in parents]
        said = "; ".join(parent.text for parent in grounds) if text is None else text
        width = min([seen.visibility, *(parent.visibility for parent in grounds)], key=WIDTH.__getitem__)
        claim = Claim(
            text=said,
            subject=seen.subject,
            attribute=seen.attribute,
            value=said if seen.slot is not None else None,
            kind=seen.kind,
            validity=_shared(seen, grounds),
            importance=seen.importance,
            owner=seen.owner,
            visibility=Visibility(width),
            pinned=seen.pinned,
            derived_from=tuple(parent.id for parent in grounds),
            how=How.SUMMARISED,
        )
        self.check_texts(claim)
        self.check_tombstones(claim.text, claim.slot, claim.value)
        authority = min(seen.authority, *(parent.authority for parent in grounds))
        believed = self.believes and not self._contested(row, claim)
        keyed, backing = self.keyed(claim), self.backing(claim)
        numbers = [parent.fact for parent in parents]
        number = self._insert(keyed, backing, numbers, authority, accepted=believed, op=Op.REBUILD)
        if believed:
            self.move(row, State.SUPERSEDED, Op.REBUILD, superseded_by=number, displaced=1)
        return self.fact(number)

    def _contested(self, row: rows.VersionRow, claim: Claim) -> bool:
        keyed = self.keyed(claim)
        return bool(self.rivals(keyed.slot, keyed.slot_key, claim.validity, but=row.fact))

    def _surviving(self, number: int) -> list[rows.VersionRow]:
        found: dict[int, rows.VersionRow] = {}
        for parent in self.parents_of(number):
            row, seen = self.newest(parent), set[int]()
            while row.field("state") == State.SUPERSEDED and row.field("superseded_by") not in (None, row.fact, *seen):
                seen.add(row.fact)
                row = self.newest(int(row.field("superseded_by")))
            if row.field("state") in READABLE and row.fact != number:
                found[row.fact] = row
        return [found[key] for key in sorted(found)]


def _shared(seen: Fact, grounds: Sequence[Fact]) -> Validity:
    """Return when a view and everything it stands on are true at once.

    Raises:
        NotAllowed: Never.
    """
    valid = [seen.valid, *(parent.valid for parent in grounds)]
    start = max((one.start for one in valid if one.start is not None), default=None)
    end = min((one.end for one in valid if one.end is not None), default=None)
    if start is not None and end is not None and end <= start:
        raise NotAllowed(
            f"what fact {seen.id[:8]} was built on is never true at one time",
            hint="retract it, and add what holds now with `mem add --derived-from`",
            target=seen.id,
        )
    return Validity(start=start, end=end)
