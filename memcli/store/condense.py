"""Condensing: many facts become few. Every one is accounted for, and what may not vanish does not.

A merged fact is superseded by the one that says its words now, and what was built on it stands, now also on that one:
withdrawing it reaches everything that the merged facts had carried. A dropped fact is revoked, with what was built on
it. Nothing outside the scope is touched.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from memcli.errors import Conflict, Echo, Loss, NotAllowed, NotPermitted, Stale
from memcli.facts import AuditEvent, Claim, Condensable, CondensePlan, Fact, Merging, Validity, Vanishing
from memcli.record import record
from memcli.store.evidence import Backing, Keyed
from memcli.store.keep import Keeping
from memcli.store.seals import Field, seal
from memcli.terms import FINAL, READABLE, Admission, How, Kind, Op, State, Visibility
from memcli.text import unpack

NARROWEST = (Visibility.PRIVATE, Visibility.SHARED, Visibility.PUBLIC)
"""Who may see a fact, the narrowest first."""

_RESTORED = frozenset({Op.SUPERSEDE, Op.RETRACT, Op.CASCADE})
_NAMED = 5


@record
class Material:
    """What a plan to condense is made from.

    Args:
        facts: What a prompt may read now of the scope, oldest first.
        protected: By the ids of those that may never vanish, the reason: `verified`, `corrected`, `pinned`,
            `evidence erased`, or the kind of what is no belief.
        apart: Pairs that a person wanted to keep beside each other.
    """

    facts: tuple[Fact, ...]
    protected: Mapping[str, str]
    apart: frozenset[frozenset[str]]


class Condensing(Keeping):
    """A ledger in which many facts become few."""

    # ---------------------------------------------------------------- before

    def material(self) -> Material:
        """Return what can be condensed: the facts of the scope that a prompt may read now.

        Raises:
            NotPermitted: Facts enter this file through transactions only.
        """
        self._need_open()
        facts = tuple(reversed(list(self.store.facts())))
        found = {fact.id: why for fact in facts if (why := self._protection(fact)) is not None}
        return Material(facts=facts, protected=found, apart=frozenset(self._kept_apart()))

    def _need_open(self) -> None:
        if self.store.admission is Admission.CHECKED:
            raise NotPermitted(
                "facts change in this file only through transactions, and condensing is none",
                hint="it was made with --admission checked; make one with `mem init --admission review`",
            )

    def _protection(self, fact: Fact) -> str | None:
        if fact.state is State.VERIFIED:
            return "verified"
        if fact.version > 1 and self._has("select 1 from audit where target = ? and op = 'correct'", fact.id):
            return "corrected"
        if fact.pinned:
            return "pinned"
        if fact.kind is not Kind.BELIEF:
            return str(fact.kind)
        # It waits for a person, who is to see it as it is.
        where = "fact = ? and version = ? and erased_at is not null"
        number = self.fact_number(fact.id)
        if self._has(f"select 1 from provenance where {where}", number, fact.version):
            return "evidence erased"
        return None

    def _has(self, sql: str, *bound: Field) -> bool:
        return self.conn.execute(f"{sql} limit 1", bound).fetchone() is not None

    def _kept_apart(self) -> Iterator[frozenset[str]]:
        """Yield pairs that a person kept beside each other and has not taken back."""
        kept: dict[frozenset[str], bool] = {}
        found = self.conn.execute(
            "select operation, target, to_state from audit where op = 'keep' and scope = ? order by operation, seq",
            (self.scope,),
        )
        for _, group in groupby(found, key=lambda row: row[0]):
            (_, first, state), *others = group
            kept |= {frozenset((first, other)): state is not None for _, other, _ in others}
        return (pair for pair, stands in kept.items() if stands)

    def foresee(self, plan: CondensePlan) -> CondensePlan:
        """Return the plan with everything that would vanish: what it drops, and what falls with that."""
        numbers = {item.id: self.fact_number(item.id) for item in plan.facts}
        names = {number: name for name, number in numbers.items()}
        merged = {name for item in plan.merged for name in (*item.parents, *([item.keep] if item.keep else []))}
        lost = {item.id: item for item in plan.lost}
        for name in plan.dropped:
            for number in self.descendants(numbers[name]):
                row = self.newest(number)
                child = str(row.fact_field("name"))
                if State(str(row.field("state"))) in FINAL or child in lost:
                    continue
                if row.fact_field("scope") != self.scope or child in merged:
                    where = "of another scope" if child not in merged else "which the plan merges"
                    raise NotAllowed(
                        f"fact {name[:8]} cannot be dropped: {child[:8]}, {where}, is built on it",
                        hint=f"keep it, or end it with `mem retract {name[:8]}`, which reaches everything",
                        target=name,
                    )
                text = unpack(str(row.field("text")))
                lost[child] = Vanishing(id=child, text=text, why=f"falls with {name[:8]}")
        gone = {*lost, *(name for item in plan.merged for name in item.parents)}
        fallen = [names[number] for number in names if names[number] in lost and names[number] not in plan.dropped]
        return replace(
            plan,
            facts=tuple(
                replace(item, protected=self._protection(self.fact(numbers[item.id]))) if item.id in gone else item
                for item in plan.facts
            ),
            kept=tuple(name for name in plan.kept if name not in fallen),
            dropped=(*plan.dropped, *fallen),
            lost=tuple(lost.values()),
        )

    def judge(self, plan: CondensePlan) -> Loss | None:
        """Return why a plan loses too much to be made, or None; the plan is one that was foreseen."""
        protected = {item.id: item.protected for item in plan.facts if item.protected is not None}
        gone = [*(name for item in plan.merged for name in item.parents), *plan.dropped]
        for name in gone:
            if name in protected:
                return Loss(
                    f"fact {name[:8]} is protected ({protected[name]}), and such a fact never vanishes",
                    hint="let it be kept, or decide about it by itself first",
                    target=name,
                )
        unnamed = [item.id for item in plan.lost if item.id not in plan.allowed]
        if unnamed:
            names = ", ".join(name[:8] for name in unnamed[:_NAMED])
            more = f" and {len(unnamed) - _NAMED:,} more" if len(unnamed) > _NAMED else ""
            count = "1 fact" if len(unnamed) == 1 else f"{len(unnamed):,} facts"
            return Loss(
                f"{count} would vanish that nobody named: {names}{more}",
                hint="name each with --allow-loss ID, or let it be kept or merged",
            )
        if plan.max_facts is not None and plan.left > plan.max_facts:
            return Loss(
                f"{plan.left:,} facts are left when what says the same is merged, and at most {plan.max_facts:,}"
                " were asked for",
                hint="name what may go with --allow-loss ID, or let a program put it in fewer words with --condenser",
            )
        return None

    def check_condense(self, plan: CondensePlan) -> CondensePlan:
        """Return the plan as foreseen, where it may be made as the file is now.

        Raises:
            Stale: A fact changed since the plan was made.
            Loss: Something would vanish that nobody named, or that never may.
            Tombstoned, Echo, Conflict: Something else stands against what a new fact would say.
            NotAllowed: Not every fact is accounted for once, or facts are merged that do not belong together.
        """
        self._need_open()
        _check_accounts(plan)
        for item in plan.facts:
            self._check_unchanged(item)
        whole = self.foresee(plan)
        problem = self.judge(whole)
        if problem is not None:
            raise problem
        gone = {self.fact_number(name) for item in whole.merged for name in item.parents}
        gone |= {self.fact_number(name) for name in whole.dropped}
        for merging in whole.merged:
            self._check_merging(merging, gone)
        return whole

    def _check_unchanged(self, item: Condensable) -> None:
        row = self.newest(self.fact_number(item.id))
        self.check_here(row)
        seen = (row.field("version"), row.field("revision")) == (item.version, item.revision)
        if not seen or State(str(row.field("state"))) not in READABLE:
            raise Stale(
                f"fact {item.id[:8]} changed since the plan was made",
                hint="plan again with `mem condense --dry-run`",
                target=item.id,
            )

    def _check_merging(self, item: Merging, gone: set[int]) -> None:
        parents = [self.fact(self.fact_number(name)) for name in item.parents]
        kept = None if item.keep is None else self.fact(self.fact_number(item.keep))
        _check_together([*parents, *([kept] if kept else [])])
        if kept is not None:
            _check_keeper(kept, parents)
            return
        claim = self._claim(item, parents)
        self.check_texts(claim)
        self.check_tombstones(claim.text, claim.slot, claim.value)
        keyed = self.keyed(claim)
        self._check_new(keyed, set(item.parents), gone)

    def _check_new(self, keyed: Keyed, parents: set[str], gone: set[int]) -> None:
        """Let a new fact pass that brings nothing back, repeats nothing and contradicts nothing."""
        text = keyed.claim.text
        for _, name in self._same_value(keyed, "'revoked','superseded'"):
            if name not in parents:
                raise Echo(
                    f"that value was withdrawn as fact {name[:8]}, and a condensed fact brings nothing back",
                    hint=f"see why with `mem why {name[:8]}`",
                    target=name,
                    offered=text,
                )
        for number in self.duplicates(keyed):
            name = self._name(number)
            raise NotAllowed(
                f"fact {name[:8]} says that already",
                hint="let it be kept, and let the others be merged into it",
                target=name,
                offered=text,
            )
        for number in self.rivals(keyed.slot, keyed.slot_key, keyed.claim.validity):
            if number not in gone:
                name = self._name(number)
                raise Conflict(
                    f"fact {name[:8]} holds another value in the same slot at the same time",
                    hint=f"correct or retract that one first: `mem show {name[:8]}`",
                    target=name,
                    offered=text,
                )

    def _claim(self, item: Merging, parents: Sequence[Fact]) -> Claim:
        """Return the new fact: true where all of its parents are, as narrow as the narrowest, as sure as the least."""
        owners = {parent.owner for parent in parents}
        sure = [parent.confidence for parent in parents if parent.confidence is not None]
        weights = [parent.importance for parent in parents if parent.importance is not None]
        starts = [parent.valid.start for parent in parents if parent.valid.start is not None]
        return Claim(
            text=item.text,
            subject=item.subject,
            attribute=item.attribute,
            value=item.value,
            validity=Validity(start=max(starts, default=None), end=parents[0].valid.end),
            confidence=min(sure) if len(sure) == len(parents) else None,
            importance=max(weights, default=None),
            owner=owners.pop() if len(owners) == 1 else None,
            visibility=min((parent.visibility for parent in parents), key=NARROWEST.index),
            derived_from=item.parents,
            how=How.CONDENSED,
        )

    # ---------------------------------------------------------------- doing it

    def condense(self, plan: CondensePlan) -> list[Fact]:
        """Make a plan true, all of it or nothing, and return the one fact of each merging, in the plan's order.

        Raises:
            NotPermitted: This actor may only propose it.
            Refused: As of `check_condense`.
        """
        self.need_decider("condense facts")
        whole = self.check_condense(plan)
        made = [self._become_one(item) for item in whole.merged]
        for name in whole.dropped:
            self._drop(name)
        one = next((self._name(number) for number in made), None) or next(iter(whole.dropped), None)
        if one is not None:
            words = _account(whole, [self._name(number) for number in made])
            self.event(Op.CONDENSE, one, reason=words if self.reason is None else f"{self.reason} · {words}")
        return [self.fact(number) for number in made]

    def _become_one(self, item: Merging) -> int:
        numbers = [self.fact_number(name) for name in item.parents]
        if item.keep is None:
            one = self._make(item, numbers)
        else:
            one = self.fact_number(item.keep)
            self._endow(one, numbers)
        for number in numbers:
            self._give_way(number, one)
            self._hand_over(number, one)
        return one

    def _make(self, item: Merging, numbers: Sequence[int]) -> int:
        parents = [self.fact(number) for number in numbers]
        backing: dict[tuple[int | None, str | None], Backing] = {}
        for parent, number in zip(parents, numbers, strict=True):
            for found in self._backed(number, parent):
                backing.setdefault((found.message, found.quote), found)
        authority = min(parent.authority for parent in parents)
        return self._insert(
            self.keyed(self._claim(item, parents)), list(backing.values()), numbers, authority, accepted=True
        )

    def _backed(self, number: int, fact: Fact) -> Iterator[Backing]:
        for raw in self._provenance(number):
            _, version, source, message, quote, start, stop, verified, _, _, digest, at, _ = raw
            if version == fact.version:
                yield Backing(
                    source=source,
                    message=message,
                    quote=None if quote is None else unpack(quote),
                    span=None if start is None else (start, stop),
                    verified=bool(verified),
                    digest=digest,
                    at=at,
                    authority=fact.authority,
                )

    def _endow(self, one: int, numbers: Sequence[int]) -> None:
        """Give a fact that stays the evidence of those that go."""
        row, held, at = self.newest(one), self.stands_on(one), self.tick()
        fresh = [
            raw
            for number in numbers
            for raw in self._provenance(number)
            if not any(raw[-3] == digest and raw[-2] == known for digest, known, _ in held)
        ]
        for raw in fresh:
            self._copy_provenance(raw, row, at)
        if fresh:
            state, name = State(str(row.field("state"))), str(row.fact_field("name"))
            self.event(Op.CORROBORATE, name, at=at, before=row.digest, after=row.digest, moved=(state, state))

    def _give_way(self, number: int, one: int) -> None:
        """Supersede a fact; what it says of a time before the other begins still answers for that time."""
        row = self.newest(number)
        begins, start = self.newest(one).field("valid_from"), row.field("valid_from")
        changes: dict[str, Field] = {"superseded_by": one}
        changes |= {"displaced": 1} if begins is None or (start is not None and begins <= start) else {}
        changes |= {} if "displaced" in changes else {"valid_to": begins}
        self.move(row, State.SUPERSEDED, Op.SUPERSEDE, reason=f"condensed into {self._name(one)}", **changes)

    def _hand_over(self, number: int, one: int) -> None:
        """Let what was built on a fact stand on the other too, so that withdrawing that one reaches it."""
        found: list[tuple[int, Any]] = self.conn.execute(
            "select child, how from derivations where parent = ? and child <> ? and child not in"
            " (select child from derivations where parent = ?)",
            (number, one, one),
        ).fetchall()
        into = self.fact(one)
        for child, how in found:
            built = self.fact(child)
            if NARROWEST.index(built.visibility) > NARROWEST.index(into.visibility):
                raise NotAllowed(
                    f"fact {built.id[:8]} was built on what would be merged and is {built.visibility}, which is wider",
                    hint="leave the facts it was built on as they are, or retract it first",
                    target=built.id,
                )
            if one not in self.descendants(child):
                edge = (child, one, how, self.tick())
                self.conn.execute(
                    "insert into derivations values (?, ?, ?, ?, ?)", (*edge, seal(self.key, "derivation", edge))
                )

    def _drop(self, name: str) -> None:
        row = self.newest(self.fact_number(name))
        if State(str(row.field("state"))) not in FINAL:
            self.move(row, State.REVOKED, Op.RETRACT, reason=self.reason or "dropped when the memory was condensed")
            self.cascade(row.fact)

    # ---------------------------------------------------------------- taking it back

    def undo(self, event: AuditEvent) -> Fact:
        """Record a new change whose content is what was before an event, and return the fact.

        Undoing a condense brings back every fact that it merged or dropped and supersedes what it made. Evidence that
        was added to a fact stays there.

        Raises:
            NotAllowed: The event is no change of a fact, ended a value for good, or something came after it.
            Tombstoned: What was before stands under a tombstone.
        """
        if event.op is not Op.CONDENSE:
            return super().undo(event)
        self.need_reason()
        self.need_decider("undo a change", event.target)
        events = self._beside(event)
        for item in events:
            if item.op is Op.ADD:
                self._unmake(item)
        for item in events:
            if item.op in _RESTORED:
                super().undo(item)
        return self.fact(self.fact_number(event.target or ""))

    def _beside(self, event: AuditEvent) -> list[AuditEvent]:
        """Return the events of the same operation before an event, oldest first."""
        found = self.conn.execute(
            "select seq from audit where operation = (select operation from audit where seq = ?) and seq < ?"
            " order by seq",
            (event.seq, event.seq),
        ).fetchall()
        return [self.store.event(f"e{seq}") for (seq,) in found]

    def _unmake(self, event: AuditEvent) -> None:
        """Supersede a fact that was made of others by the first of them: what was built on them stands."""
        row = self.newest(self.fact_number(event.target or ""))
        first = self.conn.execute(
            "select parent from derivations where child = ? and how = 'condensed' order by parent limit 1", (row.fact,)
        ).fetchone()
        if first is None:
            return
        if row.field("recorded_at") != event.at:
            raise NotAllowed(
                f"fact {event.target} changed after event {event.id}",
                hint=f"undo the later change first: `mem log --fact {event.target}`",
            )
        self.move(row, State.SUPERSEDED, Op.UNDO, superseded_by=first[0], displaced=1)


def _check_accounts(plan: CondensePlan) -> None:
    """Refuse a plan in which a fact is not accounted for, or twice.

    Raises:
        NotAllowed: There is one.
    """
    merged = (name for item in plan.merged for name in item.parents)
    places = Counter([*plan.kept, *merged, *plan.dropped])
    known = {item.id for item in plan.facts}
    for name in (*known, *places):
        if name not in known or places[name] != 1:
            raise NotAllowed(
                f"the plan accounts for fact {name[:8]} {places[name]} times",
                hint="keep, merge or drop each fact once",
            )
    keepers = [item.keep for item in plan.merged if item.keep is not None]
    if not set(keepers) <= set(plan.kept) or len(set(keepers)) != len(keepers):
        raise NotAllowed("the plan merges facts into one that it does not keep", hint="keep each of them once")
    if any(not item.parents for item in plan.merged):
        raise NotAllowed("the plan makes a fact of nothing", hint="name the facts that it comes from")


def _check_together(facts: Sequence[Fact]) -> None:
    """Refuse to merge facts that do not end together or are of different kinds."""
    first = facts[0]
    for other in facts[1:]:
        if other.valid.end != first.valid.end:
            raise NotAllowed(
                f"facts {first.id[:8]} and {other.id[:8]} end at different times, and one fact cannot say both",
                hint="keep them apart",
                target=other.id,
            )


def _check_keeper(kept: Fact, parents: Sequence[Fact]) -> None:
    """Refuse to merge into a fact that more people may see, that is somebody else's, or that says less of a slot."""
    for parent in parents:
        wider = NARROWEST.index(kept.visibility) > NARROWEST.index(parent.visibility)
        if wider or kept.owner != parent.owner:
            what = f"is {kept.visibility}, which is wider" if wider else "belongs to somebody else"
            raise NotAllowed(
                f"fact {parent.id[:8]} cannot be merged into {kept.id[:8]}, which {what}",
                hint="keep them apart",
                target=parent.id,
            )


def _account(plan: CondensePlan, made: Sequence[str]) -> str:
    """Return in one line which facts became which, and which were dropped; ids in full."""
    parts = [f"{' + '.join(item.parents)} → {one}" for item, one in zip(plan.merged, made, strict=True)]
    parts += [f"dropped {' '.join(plan.dropped)}"] if plan.dropped else []
    return "; ".join(parts)
