"""What the policy of a file says of agents and tools."""

from collections.abc import Iterable

from memcli.errors import UsageError
from memcli.facts import PolicyRule
from memcli.terms import DEFAULT_TIER, Reversibility, Tier, Visibility

EVERYBODY = "*"
"""The name of the rule for agents that have none of their own."""

_ORDER = tuple(Tier)


def highest(rules: Iterable[PolicyRule], agent: str) -> Tier:
    """Return the highest tier that an agent may begin."""
    found = {rule.name: rule.value for rule in rules if rule.kind == "agent"}
    return Tier(found.get(agent, found.get(EVERYBODY, DEFAULT_TIER)))


def allows(limit: Tier, wanted: Tier) -> bool:
    """Return whether a tier is within a limit."""
    return _ORDER.index(wanted) <= _ORDER.index(limit)


def tool(rules: Iterable[PolicyRule], name: str) -> tuple[Reversibility, Visibility | None]:
    """Return whether a tool can be made good, and how widely it publishes; an unknown one is irreversible."""
    value = next(
        (rule.value for rule in rules if rule.kind == "tool" and rule.name == name), Reversibility.IRREVERSIBLE
    )
    return read_tool(value)


def read_tool(value: str) -> tuple[Reversibility, Visibility | None]:
    """Return what a rule for a tool says.

    Raises:
        UsageError: It is neither `reversible` nor `irreversible`, or names no visibility after its `@`.
    """
    kind, at, sink = value.strip().partition("@")
    try:
        return Reversibility(kind), Visibility(sink) if at else None
    except ValueError:
        raise UsageError(
            f"{value} says nothing about a tool",
            hint="give reversible or irreversible, and where it publishes, such as irreversible@public",
        ) from None


def check_rule(rule: PolicyRule) -> None:
    """Refuse a rule about an agent or a tool that says nothing.

    Raises:
        UsageError: The value is no tier, or no word about a tool.
    """
    if rule.kind == "tool":
        read_tool(rule.value)
    if rule.kind == "agent" and rule.value not in set(Tier):
        raise UsageError(f"{rule.value} is no tier", hint="one of: " + ", ".join(Tier))
