r'''Blocks of your own, and the blocks that a configuration names.

A block is any class with three methods. It knows nothing of mem; messages have `role`, `words` and `kwargs`:

    class Notes:
        """The first line of everything that left the window, newest first."""

        def __init__(self, title="Notes"):
            self.lines = [title]

        def get(self, messages):
            return self.lines if len(self.lines) > 1 else None

        def put(self, messages):
            for message in messages:
                self.lines.insert(1, message.words.split("\n")[0])

        def truncate(self, content, tokens_to_drop):
            kept = content[: len(content) // 2]
            return kept if len(kept) > 1 else None

- `get(messages)` returns what is to stand in the prompt: a text, a list of texts, or None. It is given the messages
  of the window.
- `put(messages)` takes in what left the window, or what must not be forgotten.
- `truncate(content, tokens_to_drop)` returns the content with at least so many tokens less, or None, which means
  “leave me out”. Where it gives back less, it is asked again.

A configuration names it as `class = "notes:Notes"`, or by the name of an entry point of the group `memcli.blocks`.
Keys under `options` are handed to the class.
'''

import math
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Protocol

from memcli.budget.blocks import MemoryBlock, ModelCall, PlacedBlock, StaticBlock, block_from
from memcli.budget.messages import BudgetMessage, Count, Part, text_part
from memcli.budget.raised import Raised, first_line
from memcli.budget.settings import LARGEST_LIMIT
from memcli.budget.shrinking import (
    DEFAULT_CONTEXT,
    DEFAULT_MAX_FACTS,
    DEFAULT_TOP_K,
    FactsBlock,
    GivenFact,
    RetrievedBlock,
)
from memcli.errors import UsageError
from memcli.facts import Json
from memcli.record import record

ENTRY_POINTS: Final = "memcli.blocks"
"""The group in which a package names its block classes."""

METHODS: Final = ("get", "put", "truncate")

RECORDED: Final = ("fact", "vector", "custom")
"""Types that stand in traces recorded from LlamaIndex; `static` is one too, and means the same."""

TYPES: Final = ("static", "facts", "retrieved", "class", *RECORDED)

_NAME: Final = re.compile(r"[^\W\d][\w.-]*")

Read = Callable[[str], str]


class Block(Protocol):
    """The three methods of a class of your own; see above."""

    def get(self, messages: Sequence[BudgetMessage]) -> Any:
        """Return a text, a list of texts, or None."""

    def put(self, messages: Sequence[BudgetMessage]) -> Any:
        """Take in what left the window."""

    def truncate(self, content: Any, tokens_to_drop: int) -> Any:
        """Return the content with at least so many tokens less, or None to be left out."""


class BlockFailed(Raised):
    """A class of somebody else raised, or gave what no block can give; kept as data where a simulation goes on."""

    code = "block-failed"

    def __init__(self, block: str, method: str, kind: str, said: str) -> None:
        super().__init__(kind, said)
        words = f": {said}" if said else ""
        self.message = f"block {block} raised {kind} in its {method}{words}"
        self.hint = "look at the class of that block, or leave the block out"
        self.args = (self.message,)


@record
class BlockSpec:
    """A block as it was asked for; each run makes a new one of it.

    Args:
        kind: One of `TYPES`.
        options: What the type needs, checked.
        priority: For `llamaindex`: 0 is never shortened; of the others the lowest goes first.
        weight: For `mem`: its part of what there is for blocks, above zero.
        accepts: Whether it is given what leaves the window.
        make: Makes the block, given what counts and where the models of recorded fact blocks write.
    """

    name: str
    kind: str
    make: Callable[[Count, list[ModelCall]], MemoryBlock]
    options: Mapping[str, Json]
    priority: int = 0
    weight: float = 1.0
    accepts: bool = True

    def placed(self, count: Count, calls: list[ModelCall]) -> PlacedBlock:
        """Return a new block of this kind in its place.

        Raises:
            UsageError: The class cannot be made with these options.
        """
        made = self.make(count, calls)
        return PlacedBlock(name=self.name, block=made, priority=self.priority, accepts=self.accepts)


def takes(placed: PlacedBlock) -> bool:
    """Return whether a block keeps what leaves the window; a fixed text or list is given it in vain."""
    return placed.accepts and not isinstance(placed.block, StaticBlock) and bool(getattr(placed.block, "takes", True))


# --- a class of somebody else ---


class UserBlock:
    """A class of somebody else as a block: its lists of texts become parts, and what it raises becomes a sentence."""

    __slots__ = ("_inner", "_listed", "_name")

    def __init__(self, name: str, inner: Block) -> None:
        self._name = name
        self._inner = inner
        self._listed = False

    def get(self, messages: Sequence[BudgetMessage]) -> object:
        """Return its content, or nothing.

        Raises:
            BlockFailed: It raised, or gave what is no content.
        """
        content = self._called("get", list(messages))
        self._listed = isinstance(content, list | tuple) and all(isinstance(item, str) for item in content)
        return self._content("get", content) or ""

    def put(self, messages: Sequence[BudgetMessage]) -> None:
        """Hand a batch on.

        Raises:
            BlockFailed: It raised.
        """
        self._called("put", list(messages))

    def truncate(self, content: Any, tokens_to_drop: int) -> object:
        """Return what it makes of its content, or None.

        Raises:
            BlockFailed: It raised, or gave what is no content.
        """
        given = [part.text for part in content] if self._listed and isinstance(content, list) else content
        return self._content("truncate", self._called("truncate", given, tokens_to_drop))

    def _called(self, method: str, *arguments: object) -> Any:
        try:
            return getattr(self._inner, method)(*arguments)
        except Exception as problem:
            raise BlockFailed(self._name, method, type(problem).__name__, first_line(problem)) from problem

    def _content(self, method: str, content: Any) -> object:
        if content is None or isinstance(content, str):
            return content
        if isinstance(content, list | tuple):
            parts = [text_part(item) if isinstance(item, str) else item for item in content]
            if all(isinstance(part, Part) for part in parts) or all(isinstance(part, BudgetMessage) for part in parts):
                return parts
        said = f"{method} gives a text, a list of texts or None, not {type(content).__name__}"
        raise BlockFailed(self._name, method, "TypeError", said)


def class_named(place: str) -> Callable[..., Any]:
    """Return the class at `module:Class`, or of the entry point of that name.

    Raises:
        UsageError: There is none, or it has not the three methods.
    """
    found = _imported(place) if ":" in place else _entered(place)
    missing = [method for method in METHODS if not callable(getattr(found, method, None))]
    if missing or not callable(found):
        lacks = f"has no method {missing[0]}" if missing else "is no class"
        raise UsageError(f"the block class {place} {lacks}", hint=f"give it the methods {', '.join(METHODS)}")
    chosen: Callable[..., Any] = found
    return chosen


def _imported(place: str) -> Any:
    name, _, attribute = place.partition(":")
    hint = "write module:Class, with the module where Python finds it, such as in PYTHONPATH"
    try:
        found: Any = import_module(name)
    except Exception as problem:
        said = first_line(problem) or type(problem).__name__
        raise UsageError(f"the block class {place} cannot be imported: {said}", hint=hint) from problem
    for step in attribute.split("."):
        found = getattr(found, step, None)
    if found is None:
        raise UsageError(f"module {name} has no class {attribute}", hint=hint)
    return found


def _entered(name: str) -> Any:
    # Slow to import, and most configurations name no entry point.
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS, name=name):
        return _imported(entry.value)
    hint = f"write module:Class, or the name of an entry point of the group {ENTRY_POINTS}"
    raise UsageError(f"no block class is called {name}", hint=hint)


# --- from a configuration ---


def blocks_from(
    config: Mapping[str, Any], *, read: Read | None = None, facts: Sequence[GivenFact] | None = None
) -> tuple[BlockSpec, ...]:
    """Return the blocks that the tables `[[blocks]]` of a configuration describe, in order.

    Args:
        read: Gives the text of the file that a static block names; None means that files cannot be named.
        facts: What a block of type `facts` shows that has no list of its own, such as those of a memory file.

    Raises:
        UsageError: A type is unknown, a name stands twice, or a value does not fit.
        MemError: What `read` raises.
    """
    tables = config.get("blocks", [])
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise UsageError("blocks must be a list of tables", hint="begin each block with [[blocks]]")
    specs = tuple(_spec(table, _Sources(read=read, facts=facts)) for table in tables)
    names = [spec.name for spec in specs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two blocks are called {name}", hint="give each block a name of its own")
    return specs


@record
class _Sources:
    """What a configuration may point at outside of itself."""

    read: Read | None
    facts: Sequence[GivenFact] | None


def _spec(table: Mapping[str, Any], sources: _Sources) -> BlockSpec:
    kind = table.get("type", "class" if "class" in table else None)
    if kind == "custom" and "class" in table:
        kind = "class"
    if not isinstance(kind, str) or kind not in TYPES:
        raise UsageError(f"there is no block type {kind}", hint=f"take one of {', '.join(TYPES)}")
    name = table.get("name", kind)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"a block cannot be called {name}", hint="begin with a letter, go on with letters and digits")
    _known_keys(name, kind, table)
    return BlockSpec(
        name=name,
        kind=kind,
        make=_maker(name, kind, table, sources),
        options={key: value for key, value in table.items() if key not in _PLACE},
        priority=_whole(name, table, "priority", 0, least=-LARGEST_LIMIT),
        weight=_weight(name, table.get("weight", 1.0)),
        accepts=_truth(name, table, "accept_short_term_memory", default=True),
    )


_PLACE: Final = ("name", "type", "priority", "weight", "accept_short_term_memory")

_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "static": ("text", "file", "content"),
    "facts": ("facts", "max_facts", "learn"),
    "retrieved": ("top_k", "context_messages"),
    "class": ("class", "options"),
    "fact": ("facts", "max_facts", "condense", "extract"),
    "vector": ("similarity_top_k", "retrieval_context_window", "format_template"),
    "custom": ("content", "returns", "truncate", "on_put"),
}
"""What each type of block takes besides its place."""


def _known_keys(name: str, kind: str, table: Mapping[str, Any]) -> None:
    for key in table:
        if key not in _PLACE and key not in _KEYS[kind]:
            hint = f"a block of type {kind} takes {', '.join((*_PLACE, *_KEYS[kind]))}"
            raise UsageError(f"block {name} has an unknown key {key}", hint=hint)


def _maker(
    name: str, kind: str, table: Mapping[str, Any], sources: _Sources
) -> Callable[[Count, list[ModelCall]], MemoryBlock]:
    """Return what makes the block, with everything checked that can be before."""
    match kind:
        case "static" if "content" not in table:
            parts = [text_part(_static_text(name, table, sources.read))]
            return lambda _, __: StaticBlock(parts)
        case "facts":
            facts = _facts(name, table.get("facts"), sources.facts)
            most = _whole(name, table, "max_facts", DEFAULT_MAX_FACTS)
            learns = _truth(name, table, "learn", default=False)
            return lambda count, _: FactsBlock(facts, count, max_facts=most, learns=learns)
        case "retrieved":
            top_k = _whole(name, table, "top_k", DEFAULT_TOP_K, least=1)
            context = _whole(name, table, "context_messages", DEFAULT_CONTEXT, least=1)
            return lambda count, _: RetrievedBlock(count, top_k=top_k, context=context)
        case "class":
            return _user_maker(name, table)
    recorded = {**table, "name": name}
    _recorded(name, recorded, [])
    return lambda _, calls: _recorded(name, recorded, calls)


def _recorded(name: str, table: Mapping[str, Any], calls: list[ModelCall]) -> MemoryBlock:
    try:
        return block_from(table, calls).block
    except Raised as problem:
        raise UsageError(f"block {name} cannot be made: {problem.said}", hint="correct the value it names") from problem


def _user_maker(name: str, table: Mapping[str, Any]) -> Callable[[Count, list[ModelCall]], MemoryBlock]:
    place, options = table.get("class"), table.get("options", {})
    if not isinstance(place, str) or not place:
        raise UsageError(f"block {name} names no class", hint='write class = "module:Class"')
    if not isinstance(options, Mapping):
        raise UsageError(f"the options of block {name} are no table", hint="write options = { key = value }")
    wanted = class_named(place)

    def make(_: Count, __: list[ModelCall]) -> MemoryBlock:
        try:
            made = wanted(**options)
        except Exception as problem:
            said = first_line(problem) or type(problem).__name__
            hint = "look at what the class is made with, and at options"
            raise UsageError(f"block {name} cannot be made: {said}", hint=hint) from problem
        return UserBlock(name, made)

    return make


def _static_text(name: str, table: Mapping[str, Any], read: Read | None) -> str:
    text, file = table.get("text"), table.get("file")
    if (text is None) == (file is None):
        raise UsageError(f"block {name} needs either a text or a file", hint='write text = "…" or file = "…"')
    if isinstance(text, str):
        return text
    if isinstance(file, str) and read is not None:
        return read(file)
    what = "text is no text" if file is None else "file cannot be read here"
    raise UsageError(f"block {name}: its {what}", hint='write text = "…"')


def _facts(name: str, listed: object, given: Sequence[GivenFact] | None) -> tuple[GivenFact, ...]:
    if listed is None and given is not None:
        return tuple(given)
    if not isinstance(listed, list):
        hint = 'write facts = ["…", "…"], or name a memory file with --db and --scope'
        raise UsageError(f"block {name} has no list of facts", hint=hint)
    return tuple(_fact(name, item) for item in listed)


def _fact(name: str, item: object) -> GivenFact:
    text = item.get("text") if isinstance(item, Mapping) else item
    importance = item.get("importance") if isinstance(item, Mapping) else None
    numeric = importance is None or (isinstance(importance, int | float) and math.isfinite(importance))
    if not isinstance(text, str) or not text.strip() or not numeric:
        hint = 'write "…" or { text = "…", importance = 0.5 }'
        raise UsageError(f"a fact of block {name} cannot be read", hint=hint)
    return GivenFact(text=text, importance=importance)


def _whole(name: str, table: Mapping[str, Any], key: str, default: int, *, least: int = 0) -> int:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{key} of block {name} cannot be {value}", hint=f"give a whole number from {least} on")
    return value


def _truth(name: str, table: Mapping[str, Any], key: str, *, default: bool) -> bool:
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise UsageError(f"{key} of block {name} cannot be {value}", hint="give true or false")
    return value


def _weight(name: str, value: object) -> float:
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if not numeric or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise UsageError(f"the weight of block {name} cannot be {value}", hint="give a number above zero")
    return float(value)
