"""What the writers of foreign formats get: readable facts, and what those formats may or may not say of them."""

from collections.abc import Callable, Iterable, Mapping

from memcli.facts import Fact, Micros
from memcli.record import record
from memcli.terms import Kind, Visibility


@record
class Outgoing:
    """One readable fact on its way to another tool.

    Args:
        began: When the file first heard of it.
        extra: What the records that it came from said besides.
    """

    fact: Fact
    began: Micros
    extra: Mapping[str, str]


PARTS: Mapping[str, Callable[[Fact], bool]] = {
    "subject": lambda fact: fact.subject is not None,
    "attribute and value": lambda fact: fact.attribute is not None,
    "validity": lambda fact: fact.valid.start is not None or fact.valid.end is not None,
    "owner": lambda fact: fact.owner is not None,
    "kind": lambda fact: fact.kind is not Kind.BELIEF,
    "visibility": lambda fact: fact.visibility is not Visibility.SHARED,
    "importance": lambda fact: fact.importance is not None,
    "confidence": lambda fact: fact.confidence is not None,
    "pin": lambda fact: fact.pinned,
}
"""Parts of a fact that a format may have no place for, and whether a fact has them."""


def lacking(facts: Iterable[Outgoing], carried: Iterable[str]) -> dict[str, int]:
    """Return how many facts have each of the parts that a format does not carry."""
    missing = {name: has for name, has in PARTS.items() if name not in set(carried)}
    held = list(facts)
    counted = {name: sum(has(item.fact) for item in held) for name, has in missing.items()}
    return {name: number for name, number in counted.items() if number}
