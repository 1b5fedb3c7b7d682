"""The review queue: what of a scope waits for a person, oldest first. Each item is made in full when it is asked for.

In it stand tentative and disputed facts, open proposals, readable facts whose evidence was erased and that nobody has
confirmed since, and readable facts that say almost the same as an older one. A decision to leave something as it
stands is a `keep` event: of one fact after an erase, of several facts for near duplicates, the newer one first; one
without a state behind it takes the decision back.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from memcli.errors import MemError
from memcli.facts import (
    AuditEvent,
    EventQuery,
    Excerpt,
    Fact,
    Micros,
    Proposal,
    QueueItem,
    QueueQuery,
    Similar,
    Validity,
)
from memcli.record import record
from memcli.store import file, rows
from memcli.store.alike import Alike
from memcli.store.seals import AUDIT_COLUMNS, shown
from memcli.terms import FINAL, READABLE, Decision, Op, State, Waiting
from memcli.text import unpack

if TYPE_CHECKING:
    from memcli.store.store import Store

NEAR_DUPLICATE_SCORE = 85.0
"""How alike, of 100, the sorted words of two readable facts are before a person is asked whether both are needed."""

SIMILAR_SCORE = 80.0
"""How alike, of 100, a fact or a rejected value is to an item before it is shown beside it."""

MOST_COMPARED = 10_000
"""The newest facts of a scope, and the newest tombstones, among which likeness is looked for."""

SIMILAR_FACTS = 3
SIMILAR_TOMBSTONES = 2
_CHUNK = 500
_DIGEST = re.compile(r"(?:p\d+|blake2b:[0-9a-f]{64})")


def _marks(states: Collection[State]) -> str:
    return ", ".join(f"'{state}'" for state in sorted(states))


_READABLE = _marks(READABLE)
_LIVE = _marks(set(State) - FINAL)
_UNDECIDED = {State.TENTATIVE: Waiting.TENTATIVE, State.DISPUTED: Waiting.DISPUTED}
_CURRENT = "from current c join versions v on v.id = c.row join facts f on f.id = c.fact"
_NO_DRAFT = (
    "not (c.state = 'tentative' and c.fact in"
    " (select s.fact from staged s join transactions t on t.id = s.tx where t.status = 'open'))"
)
"""What is staged is for its transaction to decide, while that is open."""

_ERASED = (
    f"select c.fact, f.name, c.state, max(p.erased_at) {_CURRENT}"
    " join provenance p on p.fact = c.fact and p.version = v.version"
    f" where c.scope = ? and c.state in ({_READABLE}) and p.erased_at is not null"
)
_ANSWERS: Mapping[Decision, Collection[Op]] = {
    Decision.ACCEPT: {Op.ACCEPT, Op.KEEP},
    Decision.VERIFY: {Op.VERIFY},
    Decision.EDIT: {Op.CORRECT},
    Decision.REJECT: {Op.REJECT},
    Decision.RETRACT: {Op.RETRACT},
    Decision.KEEP_BOTH: {Op.KEEP},
    Decision.MERGE: {Op.MERGE},
    Decision.DISPUTE: {Op.DISPUTE},
}
"""The event on its fact by which the log shows that a decision was made."""


@record
class Entry:
    """A place in the queue, before anything of it is shown.

    Args:
        fact: The row of its fact; None for a proposal that speaks of none.
        since: When it began to wait: recorded, erased or proposed.
        partners: Rows of the older facts it almost repeats, with their scores.
    """

    id: str
    why: Waiting
    fact: int | None
    since: Micros
    proposal: Proposal | None = None
    partners: tuple[tuple[int, float], ...] = ()


@record
class _Said:
    """What is compared of one fact, unchecked."""

    name: str
    state: State
    since: Micros
    subject: str | None
    slot: bytes | None
    valid: Validity
    text: str


@record
class _Standing:
    """What an entry comes to now: all that a decision about it rests on."""

    why: Waiting
    fact: Fact | None
    rivals: tuple[Fact, ...]
    partners: tuple[tuple[Fact, float], ...]
    digest: str


class Queue:
    """What waits in the store's scope as it was when first asked; items are read from the file as it is by then."""

    def __init__(self, store: "Store", query: QueueQuery = QueueQuery()) -> None:
        self.store = store
        self._query = query
        self._scope = store.scope_number or 0

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Return what waits, oldest first."""
        with file.sentences(str(self.store.path)), self._snapshot():
            found = [*self._undecided(), *self._proposed(), *self._bereft()]
            found += self._repeated({entry.id for entry in found})
        found.sort(key=lambda entry: (entry.since, entry.id))
        return tuple(found if self._query.limit is None else found[: self._query.limit])

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[QueueItem]:
        return (item for entry in self.entries if (item := self.item(entry)) is not None)

    def entry(self, name: str) -> Entry | None:
        """Return the place of an item by its id, or None where nothing of that id waited."""
        return self._by_id.get(name)

    @cached_property
    def _by_id(self) -> dict[str, Entry]:
        return {entry.id: entry for entry in self.entries}

    def item(self, entry: Entry) -> QueueItem | None:
        """Return an item as it is now, with its evidence and neighbours, or None where it no longer waits.

        Raises:
            Damaged: Something of it was changed behind the file's back.
        """
        with file.sentences(str(self.store.path)), self._snapshot():
            now = self._standing(entry)
            if now is None:
                return None
            evidence = () if now.fact is None else tuple(self.store.excerpts(now.fact))
            return QueueItem(
                id=entry.id,
                fact=now.fact,
                why=now.why,
                detail=self._detail(entry, now, evidence),
                evidence=evidence,
                conflicts=now.rivals,
                similar=self._similar(entry, now),
                digest=now.digest,
                proposal=entry.proposal,
            )

    def fits(self, entry: Entry, digest: str) -> bool:
        """Return whether a decision about what had that digest may be made about an item as it is now.

        The item itself has to be the same and still wait. Of what stands beside it (`+…`) some may be gone by now;
        nothing that the reviewer did not see may have come.
        """
        with file.sentences(str(self.store.path)), self._snapshot():
            now = self._standing(entry)
        if now is None:
            return False
        head, *beside = now.digest.split("+")
        seen, *seen_beside = digest.split("+")
        return head == seen and set(beside) <= set(seen_beside)

    def outlines(self) -> Iterator[tuple[Entry, Fact | None]]:
        """Yield each place with its fact and nothing more, for listings."""
        for start in range(0, len(self.entries), _CHUNK):
            part = self.entries[start : start + _CHUNK]
            numbers = [entry.fact for entry in part if entry.fact is not None]
            facts = {fact.id: fact for fact in self.store.numbered(numbers)}
            names = self._names(numbers)
            for entry in part:
                yield entry, None if entry.fact is None else facts.get(names.get(entry.fact, ""))

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Let every question be about one state of the file, so that a digest names what is shown beside it."""
        conn = self.store.conn
        if conn.in_transaction:
            yield
            return
        conn.execute("begin")
        try:
            yield
        finally:
            conn.execute("rollback")

    # ---------------------------------------------------------------- what waits

    def _undecided(self) -> Iterator[Entry]:
        states = [state for state in _UNDECIDED if self._query.states is None or state in self._query.states]
        found = self.store.conn.execute(
            f"select c.fact, f.name, c.state, v.recorded_at {_CURRENT}"
            f" where c.scope = ? and c.state in ({_marks(states)}) and {_NO_DRAFT}",
            (self._scope,),
        )
        for number, name, state, since in found:
            if self._wanted(number, state, since):
                yield Entry(id=name, why=_UNDECIDED[State(state)], fact=number, since=since)

    def _proposed(self) -> Iterator[Entry]:
        places = {
            f"p{number}": (fact, state)
            for number, fact, state in self.store.conn.execute(
                "select p.id, p.fact, c.state from proposals p left join current c on c.fact = p.fact"
                " where p.settled_at is null and p.scope = ?",
                (self._scope,),
            )
        }
        for asked in self.store.proposals():
            number, state = places[asked.id]
            if self._wanted(number, state, asked.at):
                yield Entry(id=asked.id, why=Waiting.PROPOSAL, fact=number, since=asked.at, proposal=asked)

    def _bereft(self) -> Iterator[Entry]:
        """Yield readable facts some of whose evidence was erased."""
        for number, name, state, since in self.store.conn.execute(f"{_ERASED} group by c.fact", (self._scope,)):
            if self._wanted(number, state, since) and not self._confirmed(name, since):
                yield Entry(id=name, why=Waiting.EVIDENCE_ERASED, fact=number, since=since)

    def _confirmed(self, name: str, since: Micros) -> bool:
        """Return whether somebody who decides has confirmed a fact after a moment."""
        found = self.store.conn.execute(
            "select a.op, a.to_state from audit a where a.target = ? and a.at > ?"
            " and (a.op in ('accept', 'verify') or (a.op = 'keep' and not exists"
            " (select 1 from audit b where b.operation = a.operation and b.op = 'keep' and b.seq <> a.seq)))"
            " order by a.seq desc limit 1",
            (name, since),
        ).fetchone()
        return found is not None and found[1] is not None

    def _repeated(self, but: Collection[str]) -> Iterator[Entry]:
        """Yield readable facts that say almost the same as older ones, and that nobody wanted to keep beside them."""
        if self._query.states is not None and not self._query.states & READABLE:
            return
        readable = {number: said for number, said in self._live.items() if said.state in READABLE}
        partners: dict[int, list[tuple[int, float]]] = {}
        for newer, older, score in self._alike.pairs(list(readable), least=NEAR_DUPLICATE_SCORE):
            if _comparable(readable[newer], readable[older]) and not self._kept(newer, older):
                partners.setdefault(newer, []).append((older, score))
        for number, others in partners.items():
            said = readable[number]
            if said.name not in but and self._wanted(number, said.state, said.since):
                best = tuple(sorted(others, key=lambda found: -found[1])[:SIMILAR_FACTS])
                yield Entry(id=said.name, why=Waiting.NEAR_DUPLICATE, fact=number, since=said.since, partners=best)

    def _kept(self, newer: int, older: int) -> bool:
        """Return whether a person kept both facts, since each of them says what it says now."""
        said = self.store.conn.execute(
            f"select max(begun) from (select (select min(w.recorded_at) from versions w where w.fact = c.fact"
            f" and w.version = v.version) as begun {_CURRENT} where c.fact in (?, ?))",
            (newer, older),
        ).fetchone()[0]
        found = self.store.conn.execute(
            "select a.to_state from audit a join audit b on b.operation = a.operation and b.op = 'keep'"
            " join facts f on f.name = a.target join facts g on g.name = b.target"
            " where a.op = 'keep' and a.seq <> b.seq and a.at > ?"
            " and a.target = (select name from facts where id = ?) and g.id = ?"
            " and min(a.seq, b.seq) ="
            " (select min(k.seq) from audit k where k.operation = a.operation and k.op = 'keep')"
            " order by a.seq desc limit 1",
            (said or 0, newer, older),
        ).fetchone()
        return found is not None and found[0] is not None

    def _wanted(self, fact: int | None, state: str | None, since: Micros) -> bool:
        query = self._query
        return (
            (query.states is None or (state is not None and State(state) in query.states))
            and (self._of_source is None or fact in self._of_source)
            and (query.older_than is None or since < query.older_than)
            and (query.newer_than is None or since > query.newer_than)
        )

    @cached_property
    def _of_source(self) -> Collection[int] | None:
        """Return the facts whose current version came from the source that was asked for."""
        if self._query.source is None:
            return None
        found = self.store.conn.execute(
            f"select c.fact {_CURRENT} join provenance p on p.fact = c.fact and p.version = v.version"
            " where c.scope = ? and p.source = ?",
            (self._scope, self.store.source_number(self._query.source)),
        )
        return {number for (number,) in found}

    # ---------------------------------------------------------------- one item

    def _standing(self, entry: Entry) -> _Standing | None:
        if entry.proposal is not None:
            return self._proposal_standing(entry, entry.proposal)
        fact, digest = self._now(entry.fact)
        if fact is None:
            return None
        partners = tuple(self._partners(entry, fact))
        why = _UNDECIDED.get(fact.state)
        if why is None and fact.readable:
            why = self._left(entry, fact, partners)
        if why is None:
            return None
        rivals = tuple(self._rivals(entry.fact or 0, fact))
        about = [rival.id for rival in rivals if rival.readable]
        about += [other.id for other, _ in partners if why is Waiting.NEAR_DUPLICATE]
        return _Standing(
            why=why,
            fact=fact,
            rivals=rivals,
            partners=partners if why is Waiting.NEAR_DUPLICATE else (),
            digest="+".join([digest, *(self._short_digest(name) for name in about)]),
        )

    def _left(self, entry: Entry, fact: Fact, partners: Sequence[tuple[Fact, float]]) -> Waiting | None:
        """Return why a readable fact still waits."""
        erased = self.store.conn.execute(f"{_ERASED} and c.fact = ? group by c.fact", (self._scope, entry.fact))
        if any(not self._confirmed(fact.id, since) for *_, since in erased.fetchall()):
            return Waiting.EVIDENCE_ERASED
        return Waiting.NEAR_DUPLICATE if partners else None

    def _proposal_standing(self, entry: Entry, asked: Proposal) -> _Standing | None:
        number = int(asked.id[1:])
        open_now = self.store.conn.execute(
            "select 1 from proposals where id = ? and settled_at is null", (number,)
        ).fetchone()
        if open_now is None:
            return None
        fact, digest = self._now(self._about(asked) if entry.fact is None else entry.fact)
        parts = [asked.id] if fact is None else [asked.id, digest.removeprefix("blake2b:")]
        return _Standing(why=Waiting.PROPOSAL, fact=fact, rivals=(), partners=(), digest=":".join(parts))

    def _about(self, asked: Proposal) -> int | None:
        """Return the fact that is behind a proposal without one: of the tombstone to lift, of the event to undo."""
        name: str | None = None
        try:
            if asked.op is Op.LIFT:
                name = self.store.tombstone(str(asked.arguments.get("tombstone"))).fact
            elif asked.op is Op.UNDO:
                name = self.store.event(str(asked.arguments.get("event"))).target
            return None if name is None else self.store.fact_number(name)
        except MemError:
            return None

    def _now(self, number: int | None) -> tuple[Fact | None, str]:
        """Return the current version of a fact and the digest that the log knows it by."""
        found = [] if number is None else self.store.numbered([number])
        row = self.store.conn.execute(
            f"select v.digest {_CURRENT} where c.fact = ? and c.scope = ? and {_NO_DRAFT}", (number, self._scope)
        ).fetchone()
        return (found[0], shown(row[0]) or "") if found and row is not None else (None, "")

    def _short_digest(self, name: str) -> str:
        row = self.store.conn.execute(f"select v.digest {_CURRENT} where f.name = ?", (name,)).fetchone()
        return bytes(row[0]).hex()[:16]

    def _rivals(self, number: int, fact: Fact) -> Iterator[Fact]:
        """Yield facts, believed or waiting, that hold another value in the slot at some same moment."""
        found = self.store.conn.execute(
            f"select f.id {_CURRENT} join facts g on g.slot = f.slot and g.scope = f.scope"
            " join current d on d.fact = g.id join versions w on w.id = d.row"
            f" where g.id = ? and f.id <> g.id and c.state in ({_LIVE}) and v.slot_key is not w.slot_key order by f.id",
            (number,),
        ).fetchall()
        for rival in self.store.numbered([row[0] for row in found]):
            if rival.valid.overlaps(fact.valid):
                yield rival

    def _partners(self, entry: Entry, fact: Fact) -> Iterator[tuple[Fact, float]]:
        if not fact.readable:
            return
        for number, score in entry.partners:
            for other in self.store.numbered([number]):
                if other.readable and not self._kept(entry.fact or 0, number):
                    yield other, score

    def _similar(self, entry: Entry, now: _Standing) -> tuple[Similar, ...]:
        said = now.fact.text if now.fact is not None else ""
        if entry.proposal is not None:
            said = str(entry.proposal.arguments.get("text", "")) if entry.proposal.op is Op.CORRECT else ""
        first = [_similar_to(other, score) for other, score in now.partners]
        known = {fact.id for fact in (*now.rivals, *(other for other, _ in now.partners))}
        known |= {now.fact.id} if now.fact is not None else set()
        ranked = self._alike.like(said, least=SIMILAR_SCORE) if said else []
        facts: list[Similar] = []
        stones: list[Similar] = []
        for number, score in ranked:
            if number < 0 and len(stones) < SIMILAR_TOMBSTONES:
                stones += self._stone(-number, score)
            elif number > 0 and len(first) + len(facts) < SIMILAR_FACTS:
                near = [fact for fact in self.store.numbered([number]) if fact.state not in FINAL]
                facts += [_similar_to(fact, score) for fact in near if fact.id not in known]
        return (*first, *facts, *stones)

    def _stone(self, number: int, score: float) -> Iterator[Similar]:
        """Yield a tombstone as it may be shown: checked, standing, and by the words of the fact it rejected."""
        stone = self.store.tombstone(f"t{number}")
        if stone.lifted_at is None and stone.fact is not None:
            for fact in self.store.versions(stone.fact):
                if fact.state is State.REJECTED and fact.erased_at is None:
                    yield Similar(id=stone.id, text=fact.text, score=round(score, 1), state=fact.state)
                    return

    @cached_property
    def _live(self) -> dict[int, _Said]:
        """Return what is compared of the newest facts that are not final, by their rows."""
        found = self.store.conn.execute(
            "select c.fact, f.name, c.state, v.recorded_at, f.subject, f.slot, v.valid_from, v.valid_to, v.text"
            f" {_CURRENT} where c.scope = ? and c.state in ({_LIVE}) order by c.fact desc limit ?",
            (self._scope, MOST_COMPARED),
        )
        return {
            number: _Said(
                name=name,
                state=State(state),
                since=since,
                subject=rows.unpacked(subject),
                slot=slot,
                valid=Validity(start=start, end=end),
                text=unpack(text or ""),
            )
            for number, name, state, since, subject, slot, start, end, text in found
        }

    @cached_property
    def _alike(self) -> Alike:
        texts = {number: said.text for number, said in self._live.items()}
        for number, text in self.store.conn.execute(
            "select t.id, v.text from tombstones t join versions v on v.fact = t.fact and v.state = 'rejected'"
            " where t.lifted_at is null and (t.scope is null or t.scope = ?) and v.retired_at is null"
            " and v.text is not null order by t.id desc limit ?",
            (self._scope, MOST_COMPARED),
        ):
            texts[-number] = unpack(text)
        return Alike(texts)

    # ---------------------------------------------------------------- words

    def _detail(self, entry: Entry, now: _Standing, evidence: Sequence[Excerpt]) -> str:
        fact = now.fact
        if entry.proposal is not None:
            asked = entry.proposal
            moved = fact is not None and entry.fact is not None and fact.version != asked.version
            changed = f"; the fact changed since, version {fact.version} is shown" if moved and fact is not None else ""
            return f"{asked.op} asked by {asked.actor.name} through {asked.actor.channel}{changed}"
        if fact is None or now.why is Waiting.TENTATIVE:
            return "" if fact is None else _origin(fact, evidence)
        if now.why is Waiting.DISPUTED:
            events = self.store.events(EventQuery(fact=fact.id))
            held = next((event for event in reversed(events) if event.to_state is State.DISPUTED), None)
            return "" if held is None else held.reason or f"held by {held.actor.name}"
        if now.why is Waiting.NEAR_DUPLICATE:
            return f"says almost the same as {now.partners[0][0].id[:8]}"
        gone = sum(shown.message.erased_at is not None for shown in evidence)
        return f"{gone} of {len(fact.provenance)} pieces of its evidence erased"

    def _names(self, numbers: Sequence[int]) -> dict[int, str]:
        marks = ",".join("?" * len(numbers))
        return dict(self.store.conn.execute(f"select id, name from facts where id in ({marks})", numbers).fetchall())

    # ---------------------------------------------------------------- what was decided

    def operation(self, number: int) -> list[AuditEvent]:
        """Return the events of one operation, oldest first, by the number of its first event."""
        columns = ", ".join("a." + name for name in AUDIT_COLUMNS)
        with file.sentences(str(self.store.path)):
            found = self.store.conn.execute(
                f"select {columns}, a.hash, (select b.hash from audit b where b.seq = a.seq - 1) from audit a"
                " where a.operation = ? order by a.seq",
                (number,),
            ).fetchall()
            return [rows.event(raw[:-1], raw[-1], self.store.reader.scopes, None) for raw in found]

    def answered(self, name: str, digest: str, decision: Decision, *, text: str | None, into: str | None) -> bool:
        """Return whether the log shows that this very decision was made about what has this digest."""
        head = _DIGEST.match(digest)
        if head is None:
            return False
        with file.sentences(str(self.store.path)):
            if name.startswith("p"):
                return head[0] == name and self._settled(name, decision)
            if not head[0].startswith("blake2b:"):
                return False
            found = self.store.conn.execute(
                "select distinct operation from audit where target = ? and before = ? order by operation desc",
                (name, bytes.fromhex(head[0].partition(":")[2])),
            ).fetchall()
        return any(self._answers(self.operation(number), name, decision, text, into) for (number,) in found)

    def _settled(self, name: str, decision: Decision) -> bool:
        row = self.store.conn.execute("select outcome from proposals where id = ?", (int(name[1:]),)).fetchone()
        wanted = {Decision.ACCEPT: "accepted", Decision.REJECT: "refused"}.get(decision)
        return row is not None and wanted is not None and row[0] == wanted

    def _answers(
        self, events: Sequence[AuditEvent], name: str, decision: Decision, text: str | None, into: str | None
    ) -> bool:
        mine = {event.op for event in events if event.target == name and event.to_state is not None}
        if decision is Decision.ACCEPT and sum(event.op is Op.KEEP for event in events) > 1:
            mine -= {Op.KEEP}
        if not mine & set(_ANSWERS.get(decision, ())) or (decision is Decision.RETRACT and Op.CORRECT in mine):
            return False
        if decision is Decision.EDIT:
            return any(version.text == text for version in self.store.versions(name))
        if decision is Decision.MERGE:
            others = [event.target or "" for event in events if event.op is Op.CORROBORATE]
            return into is not None and any(other.startswith(into) for other in others)
        return True


def _comparable(one: _Said, other: _Said) -> bool:
    """Return whether two facts can be duplicates: of one subject, at some same moment, and not both values of slots.

    Values of slots are compared when they are written: the same value is one fact, another value is a rival.
    """
    same = one.subject is None or other.subject is None or one.subject.casefold() == other.subject.casefold()
    return same and one.valid.overlaps(other.valid) and (one.slot is None or other.slot is None)


def _similar_to(fact: Fact, score: float) -> Similar:
    return Similar(id=fact.id, text=fact.text, score=round(score, 1), state=fact.state)


def _origin(fact: Fact, evidence: Sequence[Excerpt]) -> str:
    """Return where a tentative fact came from, in words."""
    cited = next((shown for shown in evidence if shown.path != "statement"), None)
    if cited is None:
        return f"offered by {fact.actor.name} through {fact.actor.channel}"
    place = f"{(cited.path or '').rpartition('/')[2] or cited.message.source} #{cited.message.index}"
    return f"extracted from {place} by rule “{fact.rule}”" if fact.rule else f"from {place}"
