"""What foreign stores remember, taken in as facts: each record is a message of its own, and the writer decides anew."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any

from memcli.errors import Echo, NotPermitted, Refused, Tombstoned
from memcli.facts import (
    Claim,
    Conversation,
    Evidence,
    Imported,
    Micros,
    Remembered,
    Said,
    Stop,
    Tombstone,
    Turn,
    Written,
)
from memcli.keys import NORMALISER, TombstoneKey, value_digest
from memcli.store import basics
from memcli.store.bulk import Became, Bulk, Plain, plain
from memcli.store.keep import Keeping
from memcli.store.seals import seal
from memcli.terms import FINAL, READABLE, Admission, Match, Op, Role, State
from memcli.text import pack


class Remembering(Keeping):
    """A ledger that takes in what other stores remember, and the tombstones they carry."""

    _own: Mapping[str, str] = MappingProxyType({})

    def remember(
        self, items: Sequence[Remembered], *, path: str, digest: str, title: str | None = None
    ) -> tuple[Imported, list[Became]]:
        """Keep the records of a store as one source, offer each as a fact, and return what became of them.

        What a store said before becomes older versions, and what it deleted ends; a store that is imported again, with
        more in it or under another name, makes no second fact.

        Args:
            items: In the order of the store, at least one.

        Raises:
            NotPermitted: Facts enter this file only through transactions.
        """
        turns = [_turn(item, said) for item in items for said in _sayings(item)]
        self._own = {item.text: item.own for item in items if item.own is not None}
        taken = self.take(
            Conversation(format=items[0].format, turns=tuple(turns), title=title), path=path, digest=digest
        )
        return taken, self._all(items, taken.source)

    def _all(self, items: Sequence[Remembered], source: str) -> list[Became]:
        """Offer everything in its order, what is plainly new in batches."""
        outcomes: list[Became] = []
        bulk: Bulk | None = None
        placed = _placed(items)
        while part := list(islice(placed, BATCH)):
            several = [_claims(item, source, places) for item, places in part]
            single = [
                claims[0] if len(claims) == 1 and self._stands(item) else None
                for claims, (item, _) in zip(several, part, strict=True)
            ]
            for plainly, claims, (item, places) in zip(self._plain(single), several, part, strict=True):
                if plainly is not None:
                    bulk = bulk or Bulk(self, self.backing(claims[0])[0], len(items) - len(outcomes))
                    outcomes.append(bulk.put(plainly, places[0]))
                    continue
                if bulk is not None:
                    bulk.close()
                outcomes.append(_became(self._remembered(item, claims)))
                if bulk is not None:
                    bulk.renumber()
            if bulk is not None:
                bulk.flush()
        if bulk is not None:
            bulk.close()
        return outcomes

    def _plain(self, claims: Sequence[Claim | None]) -> list[Plain | None]:
        """Return which claims are plainly new; none is where facts enter through transactions only."""
        if self.store.admission is Admission.CHECKED:
            return [None] * len(claims)
        asked = iter(plain(self, [claim for claim in claims if claim is not None]))
        return [None if claim is None else next(asked) for claim in claims]

    def _stands(self, item: Remembered) -> bool:
        """Return whether its store still holds it, and no tombstone stops what it says without its context."""
        return item.ended is None and (item.own is None or not self.stopped(item.own, None, None))

    def _remembered(self, item: Remembered, claims: Sequence[Claim]) -> Written | Refused:
        said = claims[-1]
        try:
            if item.own is not None:
                self.check_tombstones(item.own, None, None)
            # Before its message is looked at, which holds no words where they were erased.
            self.check_tombstones(said.text, said.slot, said.value)
            self._check_own_fact(item, said)
        except Refused as problem:
            self.refused(problem)
            return problem
        return self._allowed(item, claims)

    def _allowed(self, item: Remembered, claims: Sequence[Claim]) -> Written | Refused:
        if len(claims) == 1 and item.ended is None:
            return self.offer(claims[0])
        held = self._held_already(claims[-1])
        if held is not None:
            return Written(fact=self.fact(held), outcome="same")
        allowed = [claim for claim in claims if not self._refused_before(claim)]
        if not allowed or allowed[-1] is not claims[-1]:
            return self.offer(claims[-1])
        made = self.offer(allowed[0])
        if isinstance(made, Refused):
            # What it said first may be known to be over while what it says now is not.
            return self.offer(claims[-1]) if len(allowed) > 1 and item.ended is None else made
        if made.outcome not in ("new", "superseded"):
            return self.offer(claims[-1])
        number = self.fact_number(made.fact.id)
        for claim in allowed[1:]:
            self._replaced(number, claim)
        if item.ended is not None:
            self._over(number, item)
        return Written(fact=self.fact(number), outcome=made.outcome, rival=made.rival)

    def _was_erased(self, turns: Sequence[Turn], marks: Sequence[tuple[bytes, Micros | None]], index: int) -> bool:
        """Return whether the words of a message were erased before, or are a value of a fact that was."""
        turn = turns[index]
        if super()._was_erased(turns, marks, index):
            return True
        if turn.role is not Role.UNKNOWN or not self._erased_something():
            return False
        return any(self._is_erased_value(said) for said in {turn.content, self._own.get(turn.content, turn.content)})

    def _is_erased_value(self, text: str) -> bool:
        digests = [
            value_digest(key, text, normaliser=normaliser)
            for key in self.tombstone_keys()
            for normaliser in range(1, NORMALISER + 1)
        ]
        found = self.conn.execute(
            "select 1 from stops s join tombstones t on t.id = s.tombstone join facts f on f.id = t.fact"
            f" where s.digest in ({','.join('?' * len(digests))}) and t.lifted_at is null and f.erased_at is not null"
            " and (t.scope is null or t.scope = ?) limit 1",
            (*digests, self.scope),
        ).fetchone()
        return found is not None

    def _check_own_fact(self, item: Remembered, claim: Claim) -> None:
        """Let pass what is no fact of this very file, come back in an older export, that was withdrawn here since.

        Raises:
            Echo: It is one; what it stood on is known, in whatever format it arrives.
        """
        withdrawn = self._same_value(self.keyed(claim), "'revoked','superseded'")
        if item.ended is None and item.origin in {name for _, name in withdrawn}:
            raise Echo(
                f"that value was withdrawn as fact {item.origin[:8]}, and an older export brings nothing new",
                hint=f"see why with `mem why {item.origin[:8]}`; new evidence may bring it back",
                target=item.origin,
                offered=claim.text,
            )

    def offer(self, claim: Claim) -> Written | Refused:
        """Offer one fact of many: return what became of it, or the refusal, which is recorded and stops nothing else.

        Raises:
            NotPermitted: Nothing may be offered to this file at all.
        """
        try:
            return self.add(claim)
        except NotPermitted:
            raise
        except Refused as problem:
            if problem.target is not None:
                self.refused(problem)
            return problem

    def refused(self, problem: Refused) -> None:
        """Record a refusal: what stood in the way, and the digest of what was offered."""
        offered = problem.offered
        self.event(
            Op.REFUSE,
            problem.target,
            after=None if offered is None else seal(self.key, "offered", (pack(offered),)),
            reason=problem.code,
        )

    def _refused_before(self, claim: Claim) -> bool:
        """Return whether a tombstone stops what a store said at some time; each such refusal is recorded."""
        try:
            self.check_tombstones(claim.text, claim.slot, claim.value)
        except Tombstoned as problem:
            self.refused(problem)
            return True
        return False

    def _held_already(self, claim: Claim) -> int | None:
        """Return the fact that came from this very record before, in whatever state it is now."""
        (backing,) = self.backing(claim)
        found = self.conn.execute(
            "select p.fact from provenance p join messages m on m.id = p.message join facts f on f.id = p.fact"
            " join versions v on v.fact = p.fact and v.text_key = ? where m.evidence = ? and f.scope = ?"
            " order by p.fact limit 1",
            (self.keyed(claim).text_key, backing.digest, self.scope),
        ).fetchone()
        return None if found is None else int(found[0])

    def _replaced(self, number: int, claim: Claim) -> None:
        """Close what the store said before, and begin what it said then."""
        row = self.newest(number)
        state = State(str(row.field("state")))
        if state in FINAL:
            return
        keyed, backing = self.keyed(claim), self.backing(claim)
        was = row.digest
        if state in READABLE:
            row = self._end(row, claim.validity.start, row.fact, None)
        else:
            row = self.move(row, State.REVOKED, Op.RETRACT, reason="replaced in the store it came from")
        version, at = self.next_version(
            row,
            State.ACCEPTED if self.decides else State.TENTATIVE,
            Op.CORRECT,
            before=was,
            reason=self.reason or "replaced in the store it came from",
            **self._said(keyed, max(item.authority for item in backing)),
        )
        self._link(number, version, backing, claim.text, at)

    def _over(self, number: int, item: Remembered) -> None:
        """End a fact that its store no longer holds."""
        row = self.newest(number)
        if State(str(row.field("state"))) not in FINAL:
            why = item.reason or f"{item.status or 'deleted'} in the store it came from"
            self.move(row, State.REVOKED, Op.RETRACT, reason=why)
            self.cascade(number)

    # ---------------------------------------------------------------- tombstones of other stores

    def take_stop(self, stop: Stop) -> Tombstone | None:
        """Keep a tombstone of another store, which holds from now on; None where the file has it already.

        It stops what comes, whoever imports it: to refuse is safe. What stands already is ended by
        `apply_stops` where the actor decides, and proposed for rejection elsewhere.
        """
        stops = {value_digest(self.store.tombstone_key, text) for text in stop.texts} | set(stop.digests)
        scope = None if stop.everywhere and self.store.bound is None else self.scope
        if self._stopped_already(stop, stops, scope):
            return None
        key = self._known_key(stop)
        why = stop.reason if self.reason is None else self.reason
        asked, self.reason = self.reason, why
        try:
            return self.bury(
                stop.match, stop.pattern, sorted(stops), scope=scope, fact=None, key=key, normaliser=stop.normaliser
            )
        finally:
            self.reason = asked

    def _stopped_already(self, stop: Stop, stops: set[bytes], scope: int | None) -> bool:
        if stop.match is not Match.VALUE:
            return any(
                (match, pattern) == (stop.match, stop.pattern)
                for match, pattern in ((item.match, item.pattern) for item in self.patterns())
            )
        return bool(stops) and all(
            self.conn.execute(
                "select 1 from stops s join tombstones t on t.id = s.tombstone where s.digest = ?"
                " and t.lifted_at is null and (t.scope is null or t.scope is ?)",
                (digest, scope),
            ).fetchone()
            for digest in stops
        )

    def _known_key(self, stop: Stop) -> TombstoneKey | None:
        """Return the key of foreign digests, kept in the file from its first use on."""
        if stop.key is None:
            return None
        name, secret = stop.key
        held = self.conn.execute("select secret from keys where id = ? and purpose = 'tombstone'", (name,)).fetchone()
        if held is None:
            basics.write_key(self.conn, self.key, (name, "tombstone", secret))
            self.forget_secrets()
        return TombstoneKey(id=name, secret=secret)

    def apply_stops(self) -> tuple[list[str], list[str]]:
        """Reject what stands although a tombstone stops it; return the ids of what was rejected, and of proposals."""
        ended, proposed = [], []
        for number, text, value in list(self._current(everywhere=False)):
            fact = self.fact(number)
            if not self.stopped(text, fact.slot, value):
                continue
            if self.decides:
                self.end_value(number)
                ended.append(fact.id)
            elif not self._proposed_already(number):
                asked, self.reason = self.reason, self.reason or "a tombstone that came with an import stops it"
                proposed.append(self.propose(Op.TOMBSTONE, fact, {"everywhere": False, "all_versions": False}).id)
                self.reason = asked
        return ended, proposed

    def _proposed_already(self, number: int) -> bool:
        found: Any = self.conn.execute(
            "select 1 from proposals where fact = ? and op = ? and settled_at is null", (number, str(Op.TOMBSTONE))
        ).fetchone()
        return found is not None


BATCH = 5_000
"""How many records are looked up together."""


def _placed(items: Sequence[Remembered]) -> Iterator[tuple[Remembered, range]]:
    """Yield each record with the positions of its messages."""
    index = 0
    for item in items:
        count = 1 + len(item.earlier)
        yield item, range(index, index + count)
        index += count


def _claims(item: Remembered, source: str, places: Iterable[int]) -> list[Claim]:
    return [_claim(item, said, f"{source}#{place}") for said, place in zip(_sayings(item), places, strict=True)]


def _became(outcome: Written | Refused) -> Became:
    if isinstance(outcome, Refused):
        return Became(outcome=outcome.code)
    return Became(outcome=outcome.outcome, fact=outcome.fact.id, state=outcome.fact.state)


def _sayings(item: Remembered) -> list[Said]:
    now = Said(text=item.text, value=item.value, at=item.at, at_text=item.at_text)
    return [*item.earlier, now]


def _turn(item: Remembered, said: Said) -> Turn:
    extra = {"status": item.status, **dict(item.extra)}
    return Turn(
        role=Role.UNKNOWN,
        content=said.text,
        name=item.author,
        at=said.at,
        at_text=said.at_text,
        origin=item.origin,
        extra=tuple((name, words) for name, words in extra.items() if words is not None),
    )


def _claim(item: Remembered, said: Said, place: str) -> Claim:
    slot = item.subject is not None and item.attribute is not None and said.value is not None
    return Claim(
        text=said.text,
        subject=item.subject,
        attribute=item.attribute if slot else None,
        value=said.value if slot else None,
        kind=item.kind,
        validity=item.validity,
        confidence=item.confidence,
        importance=item.importance,
        owner=item.owner,
        visibility=item.visibility,
        pinned=item.pinned,
        evidence=(Evidence(message=place, quote=said.text),),
        rule=f"import:{item.format}",
    )
