"""What the checks and the gate look at: facts as records, and all that stands around them, taken at one moment."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from memcli.facts import Micros, Validity
from memcli.record import record
from memcli.terms import Code, Isolation, Kind, Profile, Reversibility, Ruling, State, Tier, Visibility

DEAD = frozenset({State.REVOKED, State.REJECTED})
"""States of an ancestor that take away the ground of what was built on it."""

WIDTH: Mapping[Visibility, int] = {Visibility.PRIVATE: 0, Visibility.SHARED: 1, Visibility.PUBLIC: 2}
"""How many may see a fact; a greater number is more."""


@record
class Ground:
    """One piece of evidence: its digest, its known time, its source, and whether it still says what was quoted."""

    digest: bytes
    at: Micros | None
    source: int
    holds: bool = True


@record
class Record:
    """A fact as the rules see it.

    Args:
        authority: 0 to 1, its own; what counts is the least of it and of all its ancestors'.
        texts: What it says, as text and as the value of its slot.
        origins: Rows of the sources that say so.
        readable_since: When its current version last became readable; None where it is not.
        draft: It is staged in a transaction that is open.
    """

    id: str
    kind: Kind
    state: State
    visibility: Visibility
    owner: str | None
    authority: float
    confidence: float | None
    valid: Validity
    slot: bytes | None
    slot_key: bytes | None
    text_key: bytes
    texts: tuple[str, ...]
    parents: tuple[str, ...] = ()
    origins: frozenset[int] = frozenset()
    grounds: tuple[Ground, ...] = ()
    readable_since: Micros | None = None
    draft: bool = False


@record
class Scene:
    """A transaction that is to be checked, and what its staged facts meet.

    Args:
        snapshot_at: The time of the event that the transaction began after.
        staged: In the order they were staged.
        known: Every other fact that is spoken of below, and all ancestors, by id.
        rivals: By staged fact: settled facts of its slot that hold another value.
        equals: By staged fact: readable facts that hold the same value.
        read: What the transaction has read.
        privates: Private facts of the scope, whatever their state.
        stopped: Staged facts whose value is under a tombstone.
        retried: By staged fact: the evidence its value had when it was aborted as stale before.
        withdrawn: By staged fact: the evidence its value had when it was believed and then ended.
        named: By staged fact: what a person named as superseded by it.
    """

    tier: Tier
    agent: str
    snapshot_at: Micros
    now: Micros
    staged: tuple[Record, ...]
    known: Mapping[str, Record] = field(default_factory=dict)
    rivals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    equals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    read: tuple[str, ...] = ()
    privates: tuple[Record, ...] = ()
    stopped: frozenset[str] = frozenset()
    retried: Mapping[str, tuple[Ground, ...]] = field(default_factory=dict)
    withdrawn: Mapping[str, tuple[Ground, ...]] = field(default_factory=dict)
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def all(self) -> dict[str, Record]:
        """Return every record by id."""
        return {**self.known, **{item.id: item for item in self.staged}}


@record
class Failure:
    """One rule that a staged fact does not pass; `about` names what stands in the way."""

    code: Code
    ruling: Ruling
    about: tuple[str, ...] = ()


@record
class Call:
    """A tool call at the gate.

    Args:
        sink: How widely the tool publishes; None where it does not.
        unsettled: Every draft of the scope, and whether the transaction's snapshot holds it.
        verified: Whether the snapshot holds a verified fact.
        premises: What the call relies on.
        lost: Whether the call names a premise that is not in the file.
        within: Premises that the snapshot holds as they are.
        known: The premises' ancestors and the waiting rivals', by id.
        waiting: By premise: facts of its slot that were held because another source says something else.
    """

    reversibility: Reversibility
    sink: Visibility | None
    tier: Tier
    isolation: Isolation
    profile: Profile
    now: Micros
    unsettled: tuple[tuple[str, bool], ...] = ()
    verified: bool = False
    premises: tuple[Record, ...] = ()
    lost: bool = False
    within: frozenset[str] = frozenset()
    known: Mapping[str, Record] = field(default_factory=dict)
    waiting: Mapping[str, tuple[Record, ...]] = field(default_factory=dict)


def ancestors(item: Record, known: Mapping[str, Record]) -> Iterator[Record]:
    """Yield everything that a record was built from, nearest first, each once."""
    seen = {item.id}
    front = [item]
    while front:
        above: list[Record] = []
        for name in [name for one in front for name in one.parents]:
            if name not in seen and name in known:
                seen.add(name)
                above.append(known[name])
                yield known[name]
        front = above


def authority(item: Record, known: Mapping[str, Record]) -> float:
    """Return what the word of a record counts for: the least authority of it and all its ancestors."""
    return min([item.authority, *(above.authority for above in ancestors(item, known))])


def nothing_new(offered: Iterable[Ground], held: Iterable[Ground]) -> bool:
    """Return whether all that is offered was there: the same words, and no two known times that differ."""
    known = list(held)
    return all(
        any(
            item.digest == other.digest and (item.at is None or other.at is None or item.at == other.at)
            for other in known
        )
        for item in offered
    )
