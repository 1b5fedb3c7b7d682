"""What falls with a fact, and what an action owes: the rules of the cascade, and the tree that shows them first."""

from collections.abc import Callable, Mapping, Sequence

from memcli.facts import Fact
from memcli.terms import FINAL, VIEWS, ActionState, EffectKind, Kind, Reversibility, State
from memcli.tx import Action, Fall

UNCHANGED = "unchanged"


def fate(kind: Kind, state: State) -> State | None:
    """Return the state that a fact falls into when something it was built from is withdrawn; None where it stays.

    A view that is or was believed is held, to be rebuilt; one that only waits is withdrawn like any belief.
    """
    to = State.DISPUTED if kind in VIEWS and state is not State.TENTATIVE else State.REVOKED
    return None if state in FINAL or state is to else to


def owes(state: ActionState, reversibility: Reversibility) -> EffectKind | None:
    """Return what an action owes whose ground is dead; None while it is not done."""
    if state is not ActionState.DONE:
        return None
    return EffectKind.COMPENSATION if reversibility is Reversibility.REVERSIBLE else EffectKind.LEAK


def fate_of_action(action: Action) -> str:
    """Return what becomes of an action when a premise is withdrawn, in a word."""
    if action.state is ActionState.PLANNED:
        return str(ActionState.CANCELLED)
    owed = owes(action.state, action.reversibility)
    return UNCHANGED if owed is None else str(owed)


def tree(
    root: Fact,
    *,
    children: Callable[[Sequence[str]], Mapping[str, Sequence[Fact]]],
    actions: Callable[[Sequence[str]], Mapping[str, Sequence[Action]]],
) -> Fall:
    """Return what would fall with a fact, breadth-first, each record below the nearest of those it came from.

    Args:
        children: Returns what was built on each of these facts.
        actions: Returns the actions that rest on each of these facts.
    """
    below: dict[str, list[Fact | Action]] = {}
    seen, order, front = {root.id}, [root], [root.id]
    while front:
        found, taken = children(front), actions(front)
        fresh: list[str] = []
        for name in front:
            both: list[Fact | Action] = [*found.get(name, ()), *taken.get(name, ())]
            for item in both:
                if item.id not in seen:
                    seen.add(item.id)
                    below.setdefault(name, []).append(item)
                    if isinstance(item, Fact):
                        fresh.append(item.id)
                        order.append(item)
        front = fresh
    made: dict[str, Fall] = {}
    for fact in reversed(order):
        kin = tuple(
            made[item.id] if isinstance(item, Fact) else Fall(fact=None, action=item, becomes=fate_of_action(item))
            for item in below.get(fact.id, ())
        )
        made[fact.id] = Fall(fact=fact, action=None, becomes=_becomes(fact, root), below=kin)
    return made[root.id]


def _becomes(fact: Fact, root: Fact) -> str:
    if fact.id == root.id:
        return UNCHANGED if fact.state in FINAL else str(State.REVOKED)
    to = fate(fact.kind, fact.state)
    return UNCHANGED if to is None else str(to)
