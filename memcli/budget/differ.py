"""Two runs over one transcript, message by message where they part."""

from collections.abc import Iterator, Sequence
from typing import Final

from memcli.budget.outcome import Fate, Simulation, Totals
from memcli.budget.presence import ends_of, turn_after
from memcli.errors import UsageError
from memcli.record import record


@record
class Parted:
    """A message that fared differently. `what` names the fields in which the two fates differ."""

    index: int
    id: str
    role: str
    left: Fate
    right: Fate
    what: tuple[str, ...]


@record
class Shift:
    """One figure that differs between the runs, or a setting."""

    name: str
    left: object
    right: object


@record
class Difference:
    """Where two runs part.

    Args:
        settings: Effective settings that differ.
        totals: Sums that differ.
        blocks: Block by block, what it got in one and in the other; None where it is not there.
        only_left: How many messages only the first run can still reach.
        only_right: How many only the second can.
        first_turn: The user turn in which a message first fared differently, or None.
    """

    settings: tuple[Shift, ...]
    totals: tuple[Shift, ...]
    blocks: tuple[Shift, ...]
    messages: tuple[Parted, ...]
    only_left: int
    only_right: int
    first_turn: int | None


_COMPARED: Final = ("ended", "blocks", "reachable", "thought", "real")
_SUMS: Final = tuple(Totals.__dataclass_fields__)


def differ(left: Simulation, right: Simulation) -> Difference:
    """Return where the second run parts from the first.

    Raises:
        UsageError: They are not of one transcript.
    """
    if [(fate.id, fate.role) for fate in left.fates] != [(fate.id, fate.role) for fate in right.fates]:
        raise UsageError("the two runs are of different transcripts", hint="compare two settings over one transcript")
    messages = tuple(_parted(left, right))
    return Difference(
        settings=tuple(_settings(left, right)),
        totals=tuple(
            _shift(name, getattr(left.totals, name), getattr(right.totals, name)) for name in _changed(left, right)
        ),
        blocks=tuple(_blocks(left, right)),
        messages=messages,
        only_left=sum(parted.left.reachable and not parted.right.reachable for parted in messages),
        only_right=sum(parted.right.reachable and not parted.left.reachable for parted in messages),
        first_turn=_first_turn(messages, left, right),
    )


def _parted(left: Simulation, right: Simulation) -> Iterator[Parted]:
    """Yield the messages whose fates differ; how long one was seen is told in messages, since writes may be larger."""
    ends, others = ends_of(left), ends_of(right)
    for one, other in zip(left.fates, right.fates, strict=True):
        what = [name for name in _COMPARED if getattr(one, name) != getattr(other, name)]
        if _seen_to(one, ends) != _seen_to(other, others):
            what.append("last_seen")
        if what:
            yield Parted(index=one.index, id=one.id, role=one.role, left=one, right=other, what=tuple(what))


def _seen_to(fate: Fate, ends: Sequence[int]) -> int | None:
    """Return how many messages had been written when the message was in a prompt for the last time."""
    return None if fate.last_seen is None else ends[fate.last_seen]


def _shift(name: str, left: object, right: object) -> Shift:
    return Shift(name=name, left=left, right=right)


def _changed(left: Simulation, right: Simulation) -> list[str]:
    return [name for name in _SUMS if getattr(left.totals, name) != getattr(right.totals, name)]


def _settings(left: Simulation, right: Simulation) -> Iterator[Shift]:
    """Yield the policy, the encoding and every effective setting that is not the same; one that is absent is None."""
    if left.policy != right.policy:
        yield _shift("policy", left.policy, right.policy)
    if left.encoding != right.encoding:
        yield _shift("encoding", left.encoding, right.encoding)
    for name in dict.fromkeys([*left.effective, *right.effective]):
        one, other = left.effective.get(name), right.effective.get(name)
        if one != other:
            yield _shift(name, one, other)


def _blocks(left: Simulation, right: Simulation) -> Iterator[Shift]:
    ours = {block.name: block.got for block in left.blocks}
    theirs = {block.name: block.got for block in right.blocks}
    for name in dict.fromkeys([*ours, *theirs]):
        if ours.get(name) != theirs.get(name):
            yield _shift(name, ours.get(name), theirs.get(name))


def _first_turn(messages: tuple[Parted, ...], left: Simulation, right: Simulation) -> int | None:
    """Return the turn of the first message at which only one of the prompts held some other one."""
    ends, others = ends_of(left), ends_of(right)
    stops = []
    for parted in messages:
        seen = (_seen_to(parted.left, ends), _seen_to(parted.right, others))
        if seen[0] != seen[1]:
            stops.append(1 + min(parted.index if stop is None else stop for stop in seen))
    return turn_after(min(stops), left.fates) if stops else None
