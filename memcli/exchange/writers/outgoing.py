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


class Lacking:
    """Counts the facts that have each of the parts that a format does not carry."""

    def __init__(self, carried: Iterable[str]) -> None:
        self._missing = {name: has for name, has in PARTS.items() if name not in set(carried)}
        self._counts = dict.fromkeys(self._missing, 0)

    def count(self, fact: Fact) -> None:
        """Count the parts that one fact loses."""
        for name, has in self._missing.items():
            if has(fact):
                self._counts[name] += 1

    def counted(self) -> dict[str, int]:
        """Return how many facts lost each part; parts that none lost are left out."""
        return {name: number for name, number in self._counts.items() if number}
