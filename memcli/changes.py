"""A change as data: asked for once, made at once by whoever may decide, kept as a proposal for everybody else.

A proposal that a person accepts runs the same code with the same arguments, so there is one way to make a change.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memcli import wire
from memcli.clock import format_instant, parse_instant
from memcli.errors import Held, NotAllowed, NotFound
from memcli.facts import (
    Actor,
    Claim,
    ErasePlan,
    Evidence,
    Fact,
    Json,
    Proposal,
    Scalar,
    Tombstone,
    TombstonePlan,
    Validity,
)
from memcli.terms import Match, Op

if TYPE_CHECKING:
    from memcli.store.store import Store
    from memcli.store.writer import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is asked for: the kind of change, the facts it is about, and arguments that JSON can carry."""

    op: Op
    facts: tuple[Fact, ...] = ()
    arguments: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of it: facts as they are now, a tombstone, what was erased, or the proposals that wait instead."""

    op: Op
    facts: tuple[Fact, ...] = ()
    tombstone: Tombstone | None = None
    erased: ErasePlan | None = None
    proposals: tuple[Proposal, ...] = ()

    def settled(self) -> "Done":
        """Return the outcome itself, where the change was made.

        Raises:
            Held: It waits in the review queue.
        """
        if self.proposals:
            names = " ".join(item.id for item in self.proposals)
            raise Held(
                f"nothing changed yet: this became proposal {names}",
                hint="a person decides it with `mem review`",
            )
        return self


def request(store: "Store", actor: Actor, reason: str | None, change: Change) -> Done:
    """Make a change, or keep it as a proposal where the actor may not decide, and return what came of it.

    Raises:
        Refused: A rule said no; nothing was changed.
    """
    with store.write(actor, reason) as write:
        write.need_reason_for(change.op)
        if not write.decides:
            return Done(op=change.op, proposals=_proposed(write, change))
        done = perform(write, change)
    return Done(
        op=done.op,
        facts=tuple(store.get(fact.id, all_scopes=True) for fact in done.facts),
        tombstone=done.tombstone,
        erased=done.erased,
    )


def _proposed(write: "Writer", change: Change) -> tuple[Proposal, ...]:
    if change.op is Op.TOMBSTONE:
        plan(write, change)  # what cannot be done is said now and not to the reviewer
    if change.op is Op.CONDENSE:
        write.check_condense(wire.condense_plan(change.arguments))
    if not change.facts:
        return (write.propose(change.op, None, change.arguments),)
    return tuple(write.propose(change.op, fact, change.arguments) for fact in change.facts)


def perform(write: "Writer", change: Change) -> Done:
    """Make a change through the writer of a transaction, and return what came of it."""
    return _ACTIONS[change.op](write, change)


def accept(write: "Writer", store: "Store", proposal: Proposal) -> Done:
    """Settle a proposal and make its change, in one transaction.

    Raises:
        NotPermitted: Who proposed it cannot accept it through a pipe.
        Refused: A rule says no to the change by now; the proposal stays open.
    """
    facts = (store.get(proposal.fact),) if proposal.fact else ()
    write.settle(proposal, accepted=True)
    return perform(write, Change(op=proposal.op, facts=facts, arguments=proposal.arguments))


def correction(
    text: str,
    *,
    value: Scalar = None,
    validity: Validity | None = None,
    evidence: Evidence | None = None,
    importance: float | None = None,
) -> dict[str, Json]:
    """Return the arguments of a correction; without a validity the old one stays."""
    arguments: dict[str, Json] = {"text": text}
    if value is not None:
        arguments["value"] = value
    if validity is not None:
        for name, moment in (("valid_from", validity.start), ("valid_to", validity.end)):
            arguments[name] = None if moment is None else format_instant(moment)
    if evidence is not None:
        arguments |= {"evidence": evidence.message, "quote": evidence.quote}
    if importance is not None:
        arguments["importance"] = importance
    return arguments


def plan(write: "Writer", change: Change, *, near: bool = True) -> TombstonePlan:
    """Return what a tombstone that is asked for would do, with the near misses of facts where they are wanted."""
    everywhere = change.arguments.get("everywhere") is True
    text = change.arguments.get("text")
    if change.facts:
        every = change.arguments.get("all_versions") is True
        return write.plan_facts(change.facts, all_versions=every, everywhere=everywhere, near=near)
    match = Match(str(change.arguments.get("match", Match.VALUE)))
    if match is Match.VALUE:
        return write.plan_value(str(text), everywhere=everywhere)
    return write.plan_pattern(match, str(text), everywhere=everywhere)


def plan_erase(write: "Writer", change: Change) -> ErasePlan:
    """Return what an erase that is asked for would remove.

    Raises:
        NotFound: Nothing of it is in the scope.
    """
    source, value = change.arguments.get("source"), change.arguments.get("value")
    if source is not None:
        found = write.plan_erase_source(str(source))
    elif value is not None:
        found = write.plan_erase_value(str(value))
    else:
        found = write.plan_erase_facts(change.facts)
    if not (found.facts or found.messages or found.sources):
        raise NotFound("nothing in this scope holds that", hint="see what is there with `mem show --all-states`")
    return found


def _one(change: Change) -> Fact:
    if not change.facts:
        raise NotAllowed(f"{change.op} needs a fact", hint="name one by its id")
    return change.facts[0]


def _correct(write: "Writer", change: Change) -> Done:
    told = change.arguments
    validity = None
    if "valid_from" in told or "valid_to" in told:
        start, end = (_moment(told.get(name)) for name in ("valid_from", "valid_to"))
        validity = Validity(start=start, end=end)
    evidence, quote = told.get("evidence"), told.get("quote")
    importance = told.get("importance")
    text, value = str(told.get("text", "")), told.get("value")
    claim = Claim(
        text=text,
        importance=float(importance) if isinstance(importance, int | float) else None,
        evidence=()
        if evidence is None
        else (Evidence(message=str(evidence), quote=None if quote is None else str(quote)),),
    )
    scalar = value if value is None or isinstance(value, str | int | float | bool) else str(value)
    return Done(op=change.op, facts=(write.correct(_one(change), text, value=scalar, validity=validity, claim=claim),))


def _moment(value: Json) -> int | None:
    return None if value is None else parse_instant(str(value), option="the proposal")


def _retract(write: "Writer", change: Change) -> Done:
    return Done(op=change.op, facts=tuple(write.retract(fact) for fact in change.facts))


def _revoke(write: "Writer", change: Change) -> Done:
    return Done(op=change.op, facts=tuple(write.revoke(fact) for fact in change.facts))


def _dispute(write: "Writer", change: Change) -> Done:
    return Done(op=change.op, facts=tuple(write.dispute(fact) for fact in change.facts))


def _verify(write: "Writer", change: Change) -> Done:
    oracle = change.arguments.get("oracle")
    named = None if oracle is None else str(oracle)
    return Done(op=change.op, facts=tuple(write.verify(fact, oracle=named) for fact in change.facts))


def _tombstone(write: "Writer", change: Change) -> Done:
    wanted = plan(write, change, near=False)
    stone = write.tombstone(wanted)
    return Done(op=change.op, facts=wanted.hits, tombstone=stone)


def _lift(write: "Writer", change: Change) -> Done:
    return Done(op=change.op, tombstone=write.lift(str(change.arguments.get("tombstone"))))


def _undo(write: "Writer", change: Change) -> Done:
    event = write.store.event(str(change.arguments.get("event")))
    return Done(op=change.op, facts=(write.undo(event),))


def _erase(write: "Writer", change: Change) -> Done:
    wanted = plan_erase(write, change)
    value = change.arguments.get("value")
    write.erase(wanted, texts=() if value is None else (str(value),))
    return Done(op=change.op, erased=wanted)


def _condense(write: "Writer", change: Change) -> Done:
    return Done(op=change.op, facts=tuple(write.condense(wire.condense_plan(change.arguments))))


_ACTIONS: Mapping[Op, Callable[["Writer", Change], Done]] = {
    Op.CORRECT: _correct,
    Op.RETRACT: _retract,
    Op.REVOKE: _revoke,
    Op.DISPUTE: _dispute,
    Op.VERIFY: _verify,
    Op.TOMBSTONE: _tombstone,
    Op.LIFT: _lift,
    Op.UNDO: _undo,
    Op.ERASE: _erase,
    Op.CONDENSE: _condense,
}
