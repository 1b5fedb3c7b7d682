"""A policy as a file in TOML, so that it can be looked at, kept and compared like code."""

import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from memcli.errors import Unreadable, UsageError
from memcli.facts import PolicyRule
from memcli.terms import Tier
from memcli.text import check_typed
from memcli.transactions.settings import read_tool

HINT = "see `mem policy import --help`"


def read(path: str, raw: bytes) -> list[PolicyRule]:
    """Return the rules that a file sets, in its order.

    Args:
        path: What the file is called in errors.

    Raises:
        Unreadable: It is no TOML, or a table, key or value of it is none of a policy; the sentence names it.
    """
    try:
        document = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as problem:
        raise Unreadable(path, f"byte {problem.start + 1} is no UTF-8", hint="save it as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        why = str(problem) or "it is nested too deep"
        raise Unreadable(path, f"it is no TOML: {why[:1].lower()}{why[1:]}", hint=HINT) from None
    rules: list[PolicyRule] = []
    for table, found in document.items():
        reader = _TABLES.get(table)
        if reader is None:
            raise Unreadable(path, f"{table} is no table of a policy", hint="one of: " + ", ".join(_TABLES))
        if not isinstance(found, Mapping):
            raise Unreadable(path, f"{table} must be a table", hint=f"begin it with [{table}]")
        rules += [_rule(path, table, name, value, reader) for name, value in found.items()]
    if not rules:
        raise Unreadable(path, "it sets no rule", hint=HINT)
    return rules


def _rule(path: str, table: str, name: str, value: Any, reader: Callable[[str, Any], PolicyRule]) -> PolicyRule:
    key = f"{table}.{name}"
    try:
        check_typed(name, what="the name of a rule")
        return reader(name, value)
    except UsageError as problem:
        raise Unreadable(path, f"{key}: {problem.message}", hint=problem.hint or HINT) from None


def _source(name: str, value: Any) -> PolicyRule:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UsageError("an authority is a number from 0 to 1", hint="write it like 0.8, without quotes")
    return PolicyRule(kind="source", name=name, value=f"{value:g}" if isinstance(value, int) else repr(value))


def _oracle(name: str, value: Any) -> PolicyRule:
    if not isinstance(value, str):
        raise UsageError("an oracle is the command line that it runs", hint='write it like "python check.py"')
    return PolicyRule(kind="oracle", name=name, value=check_typed(value, what="the command line"))


def _agent(name: str, value: Any) -> PolicyRule:
    if not isinstance(value, Mapping):
        raise UsageError("an agent is a table with tiers", hint=f'write [agents.{name}] and tiers = ["low"] below it')
    for key in value:
        if key != "tiers":
            raise UsageError(f"{key} is no key of an agent", hint="one of: tiers")
    tiers = value.get("tiers")
    if not isinstance(tiers, list) or not tiers:
        raise UsageError("tiers is a list of the tiers that it may begin", hint='write tiers = ["low", "medium"]')
    return PolicyRule(kind="agent", name=name, value=str(_highest(tiers)))


def _highest(tiers: list[Any]) -> Tier:
    """Return the highest of some tiers; whoever may go so high may do less, so a list with a gap is a mistake."""
    for tier in tiers:
        if not isinstance(tier, str) or tier not in set(Tier):
            raise UsageError(f"{tier} is no tier", hint="one of: " + ", ".join(Tier))
    if len(set(tiers)) < len(tiers):
        raise UsageError("tiers names one twice", hint="name each once")
    order = list(Tier)
    highest = max(map(Tier, tiers), key=order.index)
    missing = [tier for tier in order[: order.index(highest)] if tier not in tiers]
    if missing:
        raise UsageError(
            f"tiers has {highest} and not {', '.join(missing)}", hint="who may begin a tier may begin all below it"
        )
    return highest


def _tool(name: str, value: Any) -> PolicyRule:
    if not isinstance(value, str):
        raise UsageError("a tool is reversible or irreversible", hint='write it like "irreversible@public"')
    read_tool(value)
    return PolicyRule(kind="tool", name=name, value=value.strip())


_TABLES: Mapping[str, Callable[[str, Any], PolicyRule]] = {
    "sources": _source,
    "oracles": _oracle,
    "agents": _agent,
    "tools": _tool,
}
"""By table: what reads one rule of it."""
