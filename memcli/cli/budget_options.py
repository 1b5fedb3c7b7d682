"""The options of `mem budget`, and what they come to: one `Wanted` for every command."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from memcli.budget.messages import ToolCalls
from memcli.budget.settings import Constructor, InsertMethod
from memcli.cli import budget_work as work
from memcli.cli.budget_work import Wanted
from memcli.errors import Unreadable, UsageError
from memcli.facts import Json

Transcripts = Annotated[
    list[str] | None,
    typer.Argument(metavar="TRANSCRIPT...", help="Transcripts, or folders of them; `-` is standard input."),
]
OneTranscript = Annotated[str, typer.Argument(metavar="TRANSCRIPT", help="A transcript; `-` is standard input.")]
PolicyName = Annotated[
    str,
    typer.Option("--policy", metavar="NAME", help="llamaindex, mem, buffer, sliding, token or unbounded."),
]
TokenLimit = Annotated[
    str | None, typer.Option("--token-limit", metavar="N", help="Tokens of the whole prompt, such as 4k [30000].")
]
Ratio = Annotated[
    str | None, typer.Option("--ratio", metavar="X", help="The share of the limit that messages may take [0.7].")
]
FlushSize = Annotated[
    str | None, typer.Option("--flush-size", metavar="N", help="Tokens that leave at least at once [3000].")
]
Insert = Annotated[
    str | None, typer.Option("--insert-method", metavar="WHERE", help="system or user: which message takes memory in.")
]
Depth = Annotated[
    str | None,
    typer.Option("--depth", metavar="N", help="For sliding: so many messages, or a time such as 12h, 7d or 2w [20]."),
]
Encoding = Annotated[str | None, typer.Option("--encoding", metavar="NAME", help="What counts tokens [cl100k_base].")]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Count as this model does, in place of --encoding.")
]
Blocks = Annotated[str | None, typer.Option("--blocks", metavar="FILE", help="A TOML file of memory blocks.")]
Facts = Annotated[
    str | None, typer.Option("--db", metavar="FILE", help="A memory file whose readable facts make a facts block.")
]
At = Annotated[
    str | None, typer.Option("--at", metavar="N", help="Stop after the first N messages, and look at the prompt there.")
]
Writes = Annotated[
    str, typer.Option("--writes", metavar="UNIT", help="message or turn: what is written to the memory at once.")
]
Made = Annotated[
    str,
    typer.Option("--constructor", metavar="NAME", help="from_defaults or direct: how LlamaIndex's Memory is made."),
]
Calls = Annotated[
    str, typer.Option("--tool-calls", metavar="WHERE", help="kwargs, blocks or both: where tool calls are kept.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file that --html names.")]

ALIASES: Mapping[str, str] = {
    "ratio": "chat_history_token_ratio",
    "flush_size": "token_flush_size",
}
"""Keys of a settings file that are spelled as the option is, and what LlamaIndex calls them."""

LOWEST_LEVEL = frozenset({"policy", "encoding", "model", "blocks", "db", "scope", "at", "writes", "tool_calls"})


def wanted(
    *,
    policy: str = "llamaindex",
    token_limit: str | None = None,
    ratio: str | None = None,
    flush_size: str | None = None,
    insert_method: str | None = None,
    depth: str | None = None,
    encoding: str | None = None,
    model: str | None = None,
    blocks: str | None = None,
    db: str | None = None,
    scope: str | None = None,
    at: str | None = None,
    writes: str = "message",
    constructor: str = "from_defaults",
    tool_calls: str = "kwargs",
) -> Wanted:
    """Return what the options of a command come to.

    Raises:
        MemError: One of them means nothing, or names a file that cannot be used.
    """
    settings: dict[str, Json] = {}
    if token_limit is not None:
        settings["token_limit"] = one_whole(token_limit, "--token-limit", least=1)
    if ratio is not None:
        settings["chat_history_token_ratio"] = share(ratio)
    if flush_size is not None:
        settings["token_flush_size"] = one_whole(flush_size, "--flush-size", least=None)
    if insert_method is not None:
        settings["insert_method"] = one_of(insert_method, "--insert-method", [item.value for item in InsertMethod])
    settings |= {} if depth is None else _depth(depth)
    if one_of(constructor, "--constructor", [item.value for item in Constructor]) != Constructor.FROM_DEFAULTS.value:
        settings["constructor"] = constructor
    config, folder = ({}, ".") if blocks is None else (toml(blocks), str(Path(blocks).parent))
    return Wanted(
        policy=work.known_policy(policy),
        settings=settings,
        encoding=work.encoding_named(encoding, model),
        config=work.with_facts(config, named=db is not None),
        folder=folder,
        facts=None if db is None else work.readable_facts(db, scope),
        at=None if at is None else one_whole(at, "--at", least=0),
        writes=one_of(writes, "--writes", ["message", "turn"]),
        tool_calls=ToolCalls(one_of(tool_calls, "--tool-calls", [item.value for item in ToolCalls])),
    )


def wanted_from(path: str) -> Wanted:
    """Return what a settings file says: options as keys, LlamaIndex's own names too, and `[[blocks]]`.

    Raises:
        MemError: It cannot be read, or something in it means nothing.
    """
    config = dict(toml(path))
    taken = {name: config.pop(name) for name in LOWEST_LEVEL if name in config}
    for name, value in taken.items():
        fits = isinstance(value, int if name == "at" else list if name == "blocks" else str)
        if not fits or isinstance(value, bool):
            raise UsageError(f"{path}: {name} cannot be {value}", hint="write it as the option of that name takes it")
    text = {name: str(value) for name, value in taken.items() if name != "blocks"}
    try:
        base = wanted(**text)
    except UsageError as problem:
        raise UsageError(f"{path}: {problem.message}", hint=problem.hint) from problem
    blocks = {"blocks": taken.get("blocks", [])}
    return Wanted(
        policy=base.policy,
        settings={ALIASES.get(name, name): _setting(name, value) for name, value in config.items()},
        encoding=base.encoding,
        config=work.with_facts(blocks, named=base.facts is not None),
        folder=str(Path(path).parent),
        facts=base.facts,
        at=base.at,
        writes=base.writes,
        tool_calls=base.tool_calls,
    )


def _setting(name: str, value: Any) -> Json:
    """Return a setting as the policies take it; what is no JSON value is said as a text, which they refuse."""
    if isinstance(value, str) and name in ("token_limit", "token_flush_size", "flush_size"):
        return one_whole(value, name, least=None)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | list) else str(value)


def toml(path: str) -> Mapping[str, Any]:
    """Return what a TOML file says.

    Raises:
        Unreadable: It cannot be read, or is no TOML.
    """
    import tomllib

    try:
        with Path(path).open("rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError) as problem:
        why = (problem.strerror or str(problem)).lower() if isinstance(problem, OSError) else f"no TOML: {problem}"
        raise Unreadable(path, why, hint="check the path, and the file against toml.io") from problem
    except RecursionError as problem:
        raise Unreadable(path, "it is nested too deeply", hint="write plain tables") from problem


# --- single values ---


def one_of(given: str, option: str, allowed: list[str]) -> str:
    """Return the word.

    Raises:
        UsageError: It is none of those allowed.
    """
    if given not in allowed:
        raise UsageError(f"{option} cannot be {given or 'empty'}", hint=f"take {' or '.join(allowed)}")
    return given


def one_whole(given: str, option: str, *, least: int | None) -> int:
    """Return a whole number such as 30000, 30_000 or 4k.

    Args:
        least: The smallest that is allowed; None leaves that to the policy, which says it in its own words.

    Raises:
        UsageError: It is none, or too small, or several.
    """
    from memcli.budget.spans import whole_numbers

    found = whole_numbers(given, what=option, least=-(10**15) if least is None else least)
    if len(found) != 1:
        raise UsageError(f"{option} takes one number", hint="compare several with `mem budget sweep`")
    return found[0]


def share(given: str) -> Json:
    """Return a ratio: a number, or the name of one that JSON lacks.

    Raises:
        UsageError: It is no number.
    """
    text = given.strip().lower()
    try:
        value = float(text)
    except ValueError:
        raise UsageError(
            f"--ratio takes a number, and was given {given or 'nothing'}", hint="try --ratio 0.7"
        ) from None
    return value if math.isfinite(value) else str(value)


def _depth(given: str) -> dict[str, Json]:
    from memcli.budget.spans import depths

    found = depths(given)
    if len(found) != 1:
        raise UsageError("--depth takes one depth", hint="compare several with `mem budget sweep --depth`")
    if found[0].messages is not None:
        return {"depth": found[0].messages}
    return {"hours": (found[0].micros or 0) / 3_600_000_000}
