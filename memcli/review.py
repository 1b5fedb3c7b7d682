"""Deciding what waits: one short write for each decision, and no lock while a person thinks. Knows no terminal.

`ReviewSession` makes decisions and takes them back. `go_through` leads a `Reviewer`, a person or a script, through the
queue. `apply` makes the decisions of a file.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from memcli import changes, wire
from memcli.changes import Change, correction
from memcli.errors import Busy, Held, MemError, NotAllowed, NotFound, Refused, Stale, Unreadable, UsageError
from memcli.facts import AuditEvent, ErasePlan, Fact, Json, QueueItem, Scalar, Tombstone, TombstonePlan
from memcli.record import record
from memcli.terms import Decision, Op, State, Waiting

if TYPE_CHECKING:
    from memcli.facts import Actor
    from memcli.store.queue import Queue
    from memcli.store.writer import Writer

_ALL = frozenset(Decision)
OPEN_TO: Mapping[Waiting, frozenset[Decision]] = {
    Waiting.TENTATIVE: _ALL,
    Waiting.DISPUTED: _ALL - {Decision.DISPUTE},
    Waiting.NEAR_DUPLICATE: _ALL - {Decision.ACCEPT},
    Waiting.EVIDENCE_ERASED: _ALL - {Decision.KEEP_BOTH},
    Waiting.PROPOSAL: frozenset({Decision.ACCEPT, Decision.REJECT, Decision.SKIP}),
}
"""What may be said of an item, by why it waits."""

_NOT_UNDONE: Mapping[Op, str] = {
    Op.TOMBSTONE: "end it with `mem lift {target} --reason …`",
    Op.LIFT: "reject the value again with `mem tombstone`",
    Op.ERASE: "what was erased is gone",
}
_SILENT = frozenset({Op.KEEP, Op.CORROBORATE, Op.REFUSE, Op.READ, Op.SETTLE})
_ID_CHARS = 16
_NO = (Refused, UsageError, NotFound, Held)
"""What one decision may come to without ending the review."""


@record
class Decided:
    """A decision that was made.

    Args:
        item: As the reviewer saw it.
        fact: As it is now; the fact that was merged into, for a merge.
        operation: The number of its first event; None where nothing was changed.
    """

    item: QueueItem
    decision: Decision
    fact: Fact | None = None
    tombstone: Tombstone | None = None
    operation: int | None = None


@record
class _Told:
    """A decision with what it needs beside the item."""

    item: QueueItem
    text: str | None
    into: str | None
    value: Scalar

    @property
    def fact(self) -> Fact:
        """Return the fact that the decision is about."""
        if self.item.fact is None:
            raise NotAllowed(f"{self.item.id} is about no fact", hint="accept or reject the proposal")
        return self.item.fact


@record
class _Came:
    """What a decision came to: the fact it left, and the tombstone it made."""

    fact: Fact | None = None
    tombstone: Tombstone | None = None


class ReviewSession:
    """Decisions of one reviewer about one queue.

    Args:
        queue: What waits, over a file that is opened to look at.
        reason: Stands in where a decision brings no reason of its own.
    """

    def __init__(self, queue: "Queue", actor: "Actor", reason: str | None = None) -> None:
        self.queue = queue
        self.actor = actor
        self.reason = reason
        self._decided: list[Decided] = []

    @property
    def decided(self) -> tuple[Decided, ...]:
        """Return the decisions that stand, oldest first, skipped items included."""
        return tuple(self._decided)

    def decide(
        self,
        item: QueueItem,
        decision: Decision,
        *,
        text: str | None = None,
        reason: str | None = None,
        into: str | None = None,
        value: Scalar = None,
    ) -> Decided:
        """Make a decision in one short transaction, and return what came of it.

        Args:
            text: What an edited fact should say.
            into: The fact to merge into, by its id; None where only one is shown beside the item.
            value: The slot's value after an edit; None takes it from the text.

        Raises:
            Stale: The item changed since it was shown, or no longer waits.
            Refused: A rule says no, such as a missing reason; nothing was changed.
        """
        if decision not in OPEN_TO[item.why]:
            raise _closed(item, decision)
        if decision is Decision.SKIP:
            done = Decided(item=item, decision=decision, fact=item.fact)
        else:
            done = self._write(decision, reason, _Told(item=item, text=text, into=into, value=value))
        self._decided.append(done)
        return done

    def _write(self, decision: Decision, reason: str | None, told: _Told) -> Decided:
        why = reason if reason is not None and reason.strip() else self.reason
        if told.item.proposal is not None and decision is Decision.ACCEPT:
            why = why or told.item.proposal.reason
        with self.queue.store.write(self.actor, why) as write:
            self._check_fresh(told.item)
            came = _ACTIONS[decision](write, told)
            operation = write.operation
        return Decided(item=told.item, decision=decision, fact=came.fact, tombstone=came.tombstone, operation=operation)

    def _check_fresh(self, item: QueueItem) -> None:
        """Refuse a decision about what is no longer as it was shown; the write lock is held, so nothing moves."""
        entry = self.queue.entry(item.id)
        if entry is not None and self.queue.fits(entry, item.digest):
            return
        name = item.id if item.fact is None else item.fact.id[:8]
        raise Stale(
            f"{item.id[:8]} changed since it was shown, or waits no longer",
            hint="look again with `mem review`" if item.fact is None else f"see its history with `mem why {name}`",
            target=item.id,
        )

    def plan(self, item: QueueItem) -> TombstonePlan | ErasePlan | None:
        """Return what rejecting an item would stop, or what accepting a proposal would stop or erase."""
        write = self.queue.store.planner(self.actor)
        if item.proposal is None:
            return None if item.fact is None else write.plan_facts((item.fact,))
        facts = (self.queue.store.get(item.proposal.fact),) if item.proposal.fact else ()
        change = Change(op=item.proposal.op, facts=facts, arguments=item.proposal.arguments)
        if change.op is Op.TOMBSTONE:
            return changes.plan(write, change)
        return changes.plan_erase(write, change) if change.op is Op.ERASE else None

    def undo(self) -> Decided:
        """Take back the last decision that stands, by new changes, and return it.

        Raises:
            NotAllowed: There is none, or it is none that can be taken back, such as a tombstone.
            Refused: Something came after it.
        """
        if not self._decided:
            raise NotAllowed("nothing was decided in this review yet", hint="undo earlier changes with `mem undo`")
        last = self._decided[-1]
        if last.operation is not None:
            self._take_back(last, self.queue.operation(last.operation))
        return self._decided.pop()

    def _take_back(self, last: Decided, events: list[AuditEvent]) -> None:
        final = next((event for event in events if event.op in _NOT_UNDONE), None)
        if final is not None:
            hint = _NOT_UNDONE[final.op].format(target=final.target)
            raise NotAllowed(f"this decision made a {final.op} that stands; nothing was taken back", hint=hint)
        kept = [event for event in events if event.op is Op.KEEP]
        turned = list(_reversals(events))
        if not kept and not turned:
            raise NotAllowed(f"{last.item.id} was settled, and stays so", hint="it may be asked for again")
        with self.queue.store.write(self.actor, self.reason or f"{last.decision} taken back in review") as write:
            for event in turned:
                write.undo(event)
            for event in kept:
                # A `keep` event without a state behind it: the queue no longer counts the one before.
                write.event(Op.KEEP, event.target, moved=(event.to_state, None))


def _closed(item: QueueItem, decision: Decision) -> NotAllowed:
    rest = ", ".join(str(word) for word in Decision if word in OPEN_TO[item.why])
    return NotAllowed(f"{decision} says nothing of an item that waits as {item.why}", hint=f"one of: {rest}")


def _reversals(events: Iterable[AuditEvent]) -> Iterator[AuditEvent]:
    """Yield for each fact that an operation changed one event from what it was before to what it was after.

    A condense is taken back as a whole.
    """
    events = list(events)
    condensed = [event for event in events if event.op is Op.CONDENSE]
    if condensed:
        yield from condensed
        return
    first: dict[str, AuditEvent] = {}
    last: dict[str, AuditEvent] = {}
    for event in events:
        if event.op not in _SILENT and event.target is not None and len(event.target) == _ID_CHARS:
            first.setdefault(event.target, event)
            last[event.target] = event
    for target, event in first.items():
        yield replace(last[target], before=event.before)


# -------------------------------------------------------------------- the decisions


def _accept(write: "Writer", told: _Told) -> _Came:
    if told.item.proposal is not None:
        done = changes.accept(write, write.store, told.item.proposal)
        return _Came(fact=done.facts[0] if done.facts else told.item.fact, tombstone=done.tombstone)
    if told.item.why is Waiting.EVIDENCE_ERASED:
        _keep(write, told.fact)
        return _Came(fact=told.fact)
    return _Came(fact=write.accept(told.fact))


def _keep(write: "Writer", fact: Fact, *beside: Fact) -> None:
    """Record that a fact stands as it is, alone or beside others, the one that was decided first."""
    write.need_decider("keep a fact", fact.id)
    write.event(Op.KEEP, fact.id, before=write.seen(fact).digest, moved=(fact.state, fact.state))
    for other in beside:
        write.event(Op.KEEP, other.id, moved=(other.state, other.state))


def _verify(write: "Writer", told: _Told) -> _Came:
    return _made(write, Change(op=Op.VERIFY, facts=(told.fact,)))


def _edit(write: "Writer", told: _Told) -> _Came:
    if told.text is None or not told.text.strip():
        raise NotAllowed("an edit needs the text that the fact should have", hint="give its text")
    write.check_reviewer(told.fact)
    return _made(write, Change(op=Op.CORRECT, facts=(told.fact,), arguments=correction(told.text, value=told.value)))


def _reject(write: "Writer", told: _Told) -> _Came:
    if told.item.proposal is not None:
        write.settle(told.item.proposal, accepted=False)
        return _Came(fact=told.item.fact)
    return _made(write, Change(op=Op.TOMBSTONE, facts=(told.fact,)))


def _retract(write: "Writer", told: _Told) -> _Came:
    return _made(write, Change(op=Op.RETRACT, facts=(told.fact,)))


def _dispute(write: "Writer", told: _Told) -> _Came:
    return _made(write, Change(op=Op.DISPUTE, facts=(told.fact,)))


def _made(write: "Writer", change: Change) -> _Came:
    write.need_reason_for(change.op)
    done = changes.perform(write, change)
    fact = write.fact(write.fact_number(change.facts[0].id))
    return _Came(fact=fact, tombstone=done.tombstone)


def _keep_both(write: "Writer", told: _Told) -> _Came:
    """Keep an item beside what it meets: a conflict is held on both sides, a resemblance is left as it is."""
    item, fact = told.item, told.fact
    shown = item.conflicts or tuple(write.store.get(name) for name in _neighbours(item))
    _keep(write, fact, *shown)
    if fact.readable:
        return _Came(fact=fact)
    if item.conflicts and not any(rival.readable for rival in item.conflicts):
        # Both wait already: accepting one side would decide the conflict.
        return _Came(fact=fact if fact.state is State.DISPUTED else write.dispute(fact))
    return _Came(fact=write.keep_both(fact))


def _merge(write: "Writer", told: _Told) -> _Came:
    write.check_reviewer(told.fact)
    return _Came(fact=write.merge(told.fact, _target(write, told)))


def _target(write: "Writer", told: _Told) -> Fact:
    """Return the fact to merge into, as it was shown beside the item."""
    item = told.item
    names = mergeable(item)
    if told.into is None and len(names) != 1:
        raise NotAllowed("a merge needs the fact to merge into", hint="one of: " + (" ".join(names) or "none is shown"))
    name = names[0] if told.into is None else write.store.get(told.into).id
    rival = next((fact for fact in item.conflicts if fact.id == name), None)
    if rival is not None:
        return rival
    shown = next((other for other in item.similar if other.id == name), None)
    if shown is None:
        raise NotAllowed(
            f"{item.id[:8]} neither resembles {name[:8]} nor conflicts with it",
            hint="one of: " + (" ".join(names) or "none is shown"),
        )
    other = write.store.get(name)
    if (other.text, other.state) != (shown.text, shown.state):
        raise Stale(f"fact {name[:8]} changed since it was shown", hint=f"look again with `mem show {name[:8]}`")
    return other


def mergeable(item: QueueItem) -> tuple[str, ...]:
    """Return the ids of the facts that an item may be merged into: what it conflicts with or resembles."""
    return tuple(dict.fromkeys((*(fact.id for fact in item.conflicts), *_neighbours(item))))


def _neighbours(item: QueueItem) -> tuple[str, ...]:
    return tuple(other.id for other in item.similar if other.state is not State.REJECTED)


_ACTIONS: Mapping[Decision, Callable[["Writer", _Told], _Came]] = {
    Decision.ACCEPT: _accept,
    Decision.VERIFY: _verify,
    Decision.EDIT: _edit,
    Decision.REJECT: _reject,
    Decision.RETRACT: _retract,
    Decision.KEEP_BOTH: _keep_both,
    Decision.MERGE: _merge,
    Decision.DISPUTE: _dispute,
}


# -------------------------------------------------------------------- going through the queue


class Turn(StrEnum):
    """What a reviewer may say that is no decision."""

    UNDO = "undo"
    QUIT = "quit"


@record
class Answer:
    """What a reviewer says to one item."""

    say: Decision | Turn
    text: str | None = None
    reason: str | None = None
    into: str | None = None
    value: Scalar = None


class Reviewer(Protocol):
    """Whoever is asked: a person at a terminal, or a script of answers."""

    def answer(self, item: QueueItem, *, position: int, total: int) -> Answer:
        """Return what to do with an item; `position` is 1-based."""

    def hear(self, told: Decided | MemError, *, undone: bool = False) -> None:
        """Take note of what came of an answer."""


def go_through(session: ReviewSession, reviewer: Reviewer) -> None:
    """Ask a reviewer about each item in turn, until the queue ends or the reviewer does.

    What cannot be done is said, and the item is shown again as it is by then; an item that no longer waits is passed.
    """
    places = session.queue.entries
    order = {entry.id: at for at, entry in enumerate(places)}
    at = 0
    while at < len(places):
        item = session.queue.item(places[at])
        if item is None:
            at += 1
            continue
        answer = reviewer.answer(item, position=at + 1, total=len(places))
        if answer.say is Turn.QUIT:
            return
        try:
            if answer.say is Turn.UNDO:
                undone = session.undo()
                reviewer.hear(undone, undone=True)
                at = order[undone.item.id]
            elif isinstance(answer.say, Decision):
                reviewer.hear(_decide(session, item, answer.say, answer))
                at += 1
        except (*_NO, Busy) as problem:
            reviewer.hear(problem)


def _decide(session: ReviewSession, item: QueueItem, decision: Decision, answer: Answer) -> Decided:
    return session.decide(item, decision, text=answer.text, reason=answer.reason, into=answer.into, value=answer.value)


# -------------------------------------------------------------------- decisions from a file


class Outcome(StrEnum):
    """What became of one line of a decisions file."""

    APPLIED = "applied"
    ALREADY = "already"
    REFUSED = "refused"
    SKIPPED = "skipped"
    UNDECIDED = "undecided"
    UNREADABLE = "unreadable"


@record
class Line:
    """One line of a decisions file; no decision means that nobody has filled it in."""

    number: int
    id: str
    digest: str
    decision: Decision | None
    reason: str | None = None
    text: str | None = None
    into: str | None = None
    value: Scalar = None


@record
class Applied:
    """What became of one line, and why where it is not as it says."""

    number: int
    id: str | None
    decision: Decision | None
    outcome: Outcome
    problem: MemError | None = None


def blank(item: QueueItem) -> dict[str, Json]:
    """Return an item as a line to fill in: what is to be decided first, then all that it is decided by."""
    document = wire.queue_item(item)
    empty: dict[str, Json] = {"decision": None, "reason": None, "text": None, "into": None}
    return {"id": document.pop("id"), **empty, "digest": document.pop("digest"), **document}


def applied_document(line: Applied) -> dict[str, Json]:
    """Return what became of one line as JSON; `problem` is an error as every command prints it, or null."""
    return {
        "line": line.number,
        "id": line.id,
        "decision": None if line.decision is None else line.decision.value,
        "outcome": line.outcome.value,
        "problem": None if line.problem is None else wire.error(line.problem),
    }


def apply(session: ReviewSession, lines: Iterable[bytes], path: str) -> Iterator[Applied]:
    """Make the decisions of a file, each in a transaction of its own, and yield what became of each line.

    A line that cannot be read or is refused stops no other. A file may be applied again: what it says and the log
    shows is done already, and is not done twice.
    """
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        try:
            line = read_line(raw, number, path)
        except Unreadable as problem:
            yield Applied(number=number, id=None, decision=None, outcome=Outcome.UNREADABLE, problem=problem)
            continue
        yield _apply(session, line)


def _apply(session: ReviewSession, line: Line) -> Applied:
    outcome, problem = Outcome.UNDECIDED, None
    if line.decision is Decision.SKIP:
        outcome = Outcome.SKIPPED
    elif line.decision is not None:
        try:
            outcome = _apply_decision(session, line, line.decision)
        except _NO as refusal:
            outcome, problem = Outcome.REFUSED, refusal
    return Applied(number=line.number, id=line.id, decision=line.decision, outcome=outcome, problem=problem)


def _apply_decision(session: ReviewSession, line: Line, decision: Decision) -> Outcome:
    queue = session.queue
    entry = queue.entry(line.id)
    item = None if entry is None else queue.item(entry)
    if entry is None or item is None or not queue.fits(entry, line.digest):
        if queue.answered(line.id, line.digest, decision, text=line.text, into=line.into):
            return Outcome.ALREADY
        raise Stale(
            f"{line.id[:8]} changed since it was exported, or waits no longer",
            hint="export the queue again with `mem review export`",
        )
    session.decide(item, decision, text=line.text, reason=line.reason, into=line.into, value=line.value)
    return Outcome.APPLIED


def read_line(raw: bytes, number: int, path: str) -> Line:
    """Return what one line of a decisions file says; keys that decide nothing are passed over.

    Raises:
        Unreadable: It is no JSON object, lacks its id or digest, or a field says what it cannot.
    """
    try:
        document = wire.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise Unreadable(path, "it is not UTF-8", line=number, hint="write the file as UTF-8") from None
    except UsageError as problem:
        why = problem.message.replace("line 1 ", "")  # its own line is the only one, and its number is another
        raise Unreadable(path, why, line=number, hint="give one JSON object on each line") from None
    if not isinstance(document, dict):
        raise Unreadable(path, "it is no JSON object", line=number, hint="give one JSON object on each line")
    words = {name: _word(document, name, number, path) for name in ("decision", "reason", "text", "into")}
    said, value = words.pop("decision"), document.get("value")
    if said is not None and said not in set(Decision):
        hint = "one of: " + ", ".join(Decision)
        raise Unreadable(path, f"“{said}” is no decision", line=number, hint=hint)
    if isinstance(value, list | dict):
        raise Unreadable(path, "value is no scalar", line=number, hint="give a text, a number, true or false")
    named = {name: _word(document, name, number, path) for name in ("id", "digest")}
    if not named["id"] or not named["digest"]:
        hint = "start from `mem review export`"
        raise Unreadable(path, "an item needs its id and its digest", line=number, hint=hint)
    return Line(
        number=number,
        id=named["id"],
        digest=named["digest"],
        decision=None if said is None else Decision(said),
        value=value,
        **words,
    )


def _word(document: Mapping[str, Json], name: str, number: int, path: str) -> str | None:
    found = document.get(name)
    if found is not None and not isinstance(found, str):
        raise Unreadable(path, f"{name} is no text", line=number, hint=f"write {name} as a string, or null")
    return found
