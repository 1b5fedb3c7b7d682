"""Runs of a budget for tests: transcripts as OpenAI's dictionaries, counted in words so that every figure is plain."""

from collections.abc import Mapping, Sequence
from typing import Any

from memcli.budget.findings import find
from memcli.budget.messages import BudgetMessage, from_openai, mapping_named
from memcli.budget.outcome import BudgetFinding, Simulation
from memcli.budget.public import blocks_from
from memcli.budget.run import run as run_policy


def words(text: str) -> int:
    """Return how many words a text has."""
    return len(text.split())


def said(*pairs: str) -> list[dict[str, Any]]:
    """Return messages written as `role:number of words`, or as `role:the words`."""
    made = []
    for pair in pairs:
        role, _, text = pair.partition(":")
        made.append({"role": role, "content": " ".join(["w"] * int(text)) if text.isdigit() else text})
    return made


def messages_of(transcript: Sequence[Any], tool_calls: str = "kwargs") -> list[BudgetMessage]:
    """Return the messages of OpenAI's dictionaries."""
    return [from_openai(message, mapping_named(tool_calls)) for message in transcript]


def run(
    messages: Sequence[BudgetMessage],
    *,
    policy: str = "llamaindex",
    blocks: Sequence[Mapping[str, Any]] = (),
    writes: str = "message",
    **settings: Any,
) -> Simulation:
    """Return a run in words."""
    return run_policy(
        messages,
        policy=policy,
        settings=settings,
        count=words,
        encoding="words",
        blocks=blocks_from({"blocks": list(blocks)}),
        writes=writes,
    )


def findings(
    messages: Sequence[BudgetMessage], *, times: Sequence[int | None] = (), **given: Any
) -> dict[str, BudgetFinding]:
    """Return the findings of a run in words, by code."""
    limits = {block["name"]: block["max_facts"] for block in given.get("blocks", ()) if "max_facts" in block}
    found = find(run(messages, **given), messages=messages, count=words, times=times, max_facts=limits)
    return {finding.code: finding for finding in found}
