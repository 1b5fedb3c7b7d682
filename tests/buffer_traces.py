"""The trace of a buffer as the driver of the library tells it, worked out by mem: where the prompt after each message
begins and what it counts as."""

from typing import Any

from memcli.budget.honest import Tally
from memcli.budget.messages import from_openai, mapping_named
from memcli.budget.policies.buffer import Joined, settings_from, window_start
from memcli.budget.raised import Raised
from tests.budget_traces import counting


def replayed(config: dict[str, Any], transcript: list[Any]) -> dict[str, Any]:
    """Return the trace of a configuration over a transcript."""
    try:
        settings = settings_from(config)
    except Raised as problem:
        return {"error": {"type": problem.kind, "message": problem.said}}
    mapping = mapping_named(config.get("mapping", "openai_dict"))
    messages = [from_openai(message, mapping) for message in transcript]
    joined = Joined(messages, Tally(counting(config)))
    roles = [message.role for message in messages]
    prompts: list[dict[str, Any]] = []
    for stop in range(len(messages) + 1):
        if settings.initial_token_count > settings.token_limit:
            said = "Initial token count exceeds token limit"
            prompts.append({"error": {"type": "ValueError", "message": said}})
            continue
        start = window_start(joined, roles, stop, settings)
        prompts.append({"start": start, "tokens": joined.tokens(start, stop)})
    return {"effective": {"token_limit": settings.token_limit}, "prompts": prompts}
