"""What changed between two memory files, fact by fact: by id, then by slot, then by value."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, TypeAlias

from memcli import wire
from memcli.digest import blake2b
from memcli.facts import Fact, Json, Tombstone
from memcli.keys import normalise
from memcli.record import record
from memcli.terms import FINAL

Stone: TypeAlias = tuple[Tombstone, tuple[str, tuple[bytes, ...]]]
"""A tombstone, with the id of its key and the digests that it stops."""

ID, SLOT, VALUE = "id", "slot", "value"
"""By what two facts were taken for the same one."""


@record
class Changed:
    """One fact that says something else, or is in another state.

    Args:
        by: `id`, `slot` or `value`: what shows that these two are the same fact.
        what: The parts that differ, as the fact's JSON calls them; `erased` where its words are gone.
    """

    before: Fact
    after: Fact
    by: str
    what: tuple[str, ...]


@record
class Difference:
    """What one memory has that another has not. Facts are in the order of their scope, subject and text.

    Args:
        gone: Tombstones that only the first has.
        same: Facts that both have, and that say the same.
    """

    added: tuple[Fact, ...]
    removed: tuple[Fact, ...]
    changed: tuple[Changed, ...]
    tombstones: tuple[Tombstone, ...]
    lifted: tuple[Tombstone, ...]
    gone: tuple[Tombstone, ...]
    same: int

    def __bool__(self) -> bool:
        return any((self.added, self.removed, self.changed, self.tombstones, self.lifted, self.gone))

    def whole(self, before: Callable[[Fact], Fact], after: Callable[[Fact], Fact]) -> "Difference":
        """Return the same with each fact as a memory gives it whole, with evidence and parents."""
        changed = (replace(item, before=before(item.before), after=after(item.after)) for item in self.changed)
        return replace(
            self,
            added=tuple(map(after, self.added)),
            removed=tuple(map(before, self.removed)),
            changed=tuple(changed),
        )


def compare(
    before: Iterable[Fact],
    after: Iterable[Fact],
    *,
    stones: tuple[Sequence[Stone], Sequence[Stone]] = ((), ()),
    scoped: bool = False,
) -> Difference:
    """Return what changed.

    Args:
        before: Each fact of the first memory in its newest version, erased ones without their words.
        after: The same of the second.
        stones: The tombstones of both, lifted ones too.
        scoped: Facts of different scopes are different facts; otherwise each memory is one scope, whatever its name.
    """
    old, new = _side(before, "before"), _side(after, "after")
    return compare_sides(old, new, stones=stones, scoped=scoped)


@record
class Side:
    """One of two memories that are compared, which is never held whole where the other is much the same.

    Args:
        seen: Of each fact in its newest version the id, what it says, and what `fact` knows it by. Two facts of one id
            that say equal things do not differ; the others are looked at.
        fact: Returns a fact; an erased one without its words.
    """

    seen: Iterable[tuple[str, tuple[object, ...], Any]]
    fact: Callable[[Any], Fact]


def _side(facts: Iterable[Fact], which: str) -> Side:
    """Return a memory that is held whole, and says nothing that the other says, so that all its facts are looked at."""
    held = {fact.id: fact for fact in facts}
    return Side(seen=((name, (which,), name) for name in held), fact=held.__getitem__)


def compare_sides(
    before: Side,
    after: Side,
    *,
    stones: tuple[Sequence[Stone], Sequence[Stone]] = ((), ()),
    scoped: bool = False,
) -> Difference:
    """Return what changed, as `compare` does."""
    met = _Met(before, after)
    left, right = met.alone()
    for by, key in ((SLOT, _slot), (VALUE, _value)):
        for one, other in _matched(left, right, key, scoped=scoped):
            met.look(one, other, by)
    new, lifted, gone = _stones(*stones)
    # A fact whose words are gone, and that only one of the two ever heard of, says nothing.
    return Difference(
        added=_sorted(fact for fact in right.values() if fact.erased_at is None),
        removed=_sorted(fact for fact in left.values() if fact.erased_at is None),
        changed=tuple(sorted(met.changed, key=lambda item: _place(item.before))),
        tombstones=new,
        lifted=lifted,
        gone=gone,
        same=met.same,
    )


class _Met:
    """Facts of two memories that met by their id. Both are read in step; what has not met yet is held as a digest."""

    def __init__(self, before: Side, after: Side) -> None:
        self._sides = before, after
        self._waiting: tuple[dict[str, tuple[bytes, Any]], dict[str, tuple[bytes, Any]]] = ({}, {})
        self.changed: list[Changed] = []
        self.same = 0
        for one, other in zip_longest(before.seen, after.seen):
            if one is not None and other is not None and one[0] == other[0]:
                self._meet(one[2], other[2], equal=one[1] == other[1])
                continue
            for place, item in enumerate((one, other)):
                if item is not None:
                    self._take(place, *item)

    def _take(self, place: int, name: str, said: tuple[object, ...], known: Any) -> None:
        """Take a fact of one memory, which the other may have given before or give later."""
        digest = blake2b(repr(said).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        met = self._waiting[1 - place].pop(name, None)
        if met is None:
            self._waiting[place][name] = digest, known
        else:
            pair = (known, met[1]) if place == 0 else (met[1], known)
            self._meet(*pair, equal=digest == met[0])

    def _meet(self, one: Any, other: Any, *, equal: bool) -> None:
        if equal:
            self.same += 1
        else:
            before, after = self._sides
            self.look(before.fact(one), after.fact(other), ID)

    def look(self, before: Fact, after: Fact, by: str) -> None:
        """Look at two facts that are the same one, and remember where they differ."""
        what = _what(before, after)
        if what:
            self.changed.append(Changed(before=before, after=after, by=by, what=what))
        else:
            self.same += 1

    def alone(self) -> tuple[dict[str, Fact], dict[str, Fact]]:
        """Return by their ids the facts that did not meet, of both memories in their order."""
        left, right = (
            {name: side.fact(known) for name, (_, known) in waiting.items()}
            for side, waiting in zip(self._sides, self._waiting, strict=True)
        )
        return left, right


def _slot(fact: Fact) -> Hashable:
    """Return the slot that a fact holds now; None where it holds none."""
    if fact.slot is None or fact.state in FINAL:
        return None
    return tuple(normalise(part) for part in fact.slot)


def _value(fact: Fact) -> Hashable:
    return None if fact.erased_at is not None else normalise(fact.text)


def _matched(
    left: dict[str, Fact], right: dict[str, Fact], key: Callable[[Fact], Hashable], *, scoped: bool
) -> Iterator[tuple[Fact, Fact]]:
    """Yield facts with the same key, out of both; those of several with one key in their order."""
    waiting: dict[Hashable, list[str]] = {}
    for name, fact in right.items():
        if (found := key(fact)) is not None:
            waiting.setdefault((fact.scope if scoped else "", found), []).append(name)
    for name, fact in [*left.items()]:
        others = waiting.get((fact.scope if scoped else "", key(fact)), [])
        if others:
            yield left.pop(name), right.pop(others.pop(0))


_PARTS = (
    "text", "value", "state", "subject", "attribute", "kind", "valid_from", "valid_to", "owner", "visibility",
    "confidence", "importance", "authority",
)  # fmt: skip


def _what(before: Fact, after: Fact) -> tuple[str, ...]:
    if before.erased_at is not None or after.erased_at is not None:
        return () if before.erased_at is not None and after.erased_at is not None else ("erased",)
    one, other = wire.fact(before), wire.fact(after)
    return tuple(part for part in _PARTS if one[part] != other[part])


def _place(fact: Fact) -> tuple[str, str, str, str]:
    return fact.scope, fact.subject or "", fact.text, fact.id


def _sorted(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    return tuple(sorted(facts, key=_place))


def _stones(
    before: Sequence[Stone], after: Sequence[Stone]
) -> tuple[tuple[Tombstone, ...], tuple[Tombstone, ...], tuple[Tombstone, ...]]:
    """Return tombstones that are new, that were lifted, and that are gone; a lifted one that is unknown is neither."""
    old, new = ({_mark(*item): item[0] for item in sorted(side, key=_standing)} for side in (before, after))
    stand = {mark: stone for mark, stone in new.items() if stone.lifted_at is None}
    stood = {mark: stone for mark, stone in old.items() if stone.lifted_at is None}
    return (
        tuple(stone for mark, stone in stand.items() if mark not in stood),
        tuple(stone for mark, stone in new.items() if mark in stood and stone.lifted_at is not None),
        tuple(stone for mark, stone in stood.items() if mark not in new),
    )


def _standing(item: Stone) -> tuple[bool, int]:
    """Of several that stop the same, the one that stands counts, and of these the newest."""
    stone, _ = item
    return stone.lifted_at is None, int(stone.id[1:])


def _mark(stone: Tombstone, stops: tuple[str, tuple[bytes, ...]]) -> Hashable:
    """Return what makes two tombstones the same: what they stop, under which key, and whether everywhere."""
    return stone.match, stone.pattern, stone.scope is None, stops if stops[1] else ()


# -------------------------------------------------------------------- as JSON


def document(found: Difference, *, paths: tuple[str, str], scopes: tuple[str | None, str | None]) -> Json:
    """Return the JSON document of a difference.

    Args:
        scopes: What was compared of each; None for all scopes.
    """
    return {
        "before": {"path": paths[0], "scope": scopes[0]},
        "after": {"path": paths[1], "scope": scopes[1]},
        "differs": bool(found),
        "same": found.same,
        "added": [wire.fact(fact) for fact in found.added],
        "removed": [wire.fact(fact) for fact in found.removed],
        "changed": [
            {"by": item.by, "what": [*item.what], "before": wire.fact(item.before), "after": wire.fact(item.after)}
            for item in found.changed
        ],
        "tombstones": {
            "added": [wire.tombstone(stone) for stone in found.tombstones],
            "lifted": [wire.tombstone(stone) for stone in found.lifted],
            "gone": [wire.tombstone(stone) for stone in found.gone],
        },
    }
