"""Traces of a budget: what counts for one, and where two differ."""

from typing import Any

from memcli import tokens


def counting(config: dict[str, Any]) -> tokens.Counter:
    """Return what counts as LlamaIndex does: cl100k_base where nothing is said, and special tokens are tokens."""
    return tokens.counter(config.get("encoding") or "cl100k_base", special=True)


def apart(ours: Any, theirs: Any, place: str = "") -> list[str]:
    """Return a line for each place where two JSON values differ; the order of keys is part of a value."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and list(ours) == list(theirs):
        return [line for key in ours for line in apart(ours[key], theirs[key], f"{place}.{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [line for at, pair in pairs for line in apart(*pair, f"{place}[{at}]")]
    return [] if ours == theirs and type(ours) is type(theirs) else [f"{place}: {ours!r} is not {theirs!r}"]
