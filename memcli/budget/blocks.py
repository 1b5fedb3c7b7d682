"""Memory blocks: what takes in messages that leave the window and gives back what is to stand in the prompt.

A block has three methods, `get`, `put` and `truncate`. The ones here do what LlamaIndex's own blocks do, with a model
and an embedding that are worked out from the words alone, so that every figure can be checked by hand.
"""

import hashlib
import heapq
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from memcli.budget.fields import MISSING, Fields
from memcli.budget.messages import ROLES, BudgetMessage, Part, part_from, text_part
from memcli.budget.raised import Raised, first_line
from memcli.errors import UsageError
from memcli.record import record

if TYPE_CHECKING:
    from fractions import Fraction


class MemoryBlock(Protocol):
    """The three methods. What content is: a text, a list of parts, or a list of messages; empty means nothing."""

    def get(self, messages: Sequence[BudgetMessage]) -> object:
        """Return the content for a prompt that holds these messages.

        Raises:
            Raised: There is none to be had.
        """

    def put(self, messages: Sequence[BudgetMessage]) -> None:
        """Take in a batch that left the window.

        Raises:
            Raised: The block failed; the batch is not offered again.
        """

    def truncate(self, content: Any, tokens_to_drop: int) -> object:
        """Return the content with about so many tokens less, or None to be left out."""


@record
class PlacedBlock:
    """A block with its place among the others.

    Args:
        priority: 0 is never shortened; of the others the lowest goes first.
        accepts: Whether it is given what leaves the window.
    """

    name: str
    block: MemoryBlock
    priority: int = 0
    accepts: bool = True


class StaticBlock:
    """Always the same parts."""

    __slots__ = ("_content",)

    def __init__(self, content: Sequence[Part]) -> None:
        self._content = list(content)

    def get(self, messages: Sequence[BudgetMessage]) -> list[Part]:  # noqa: ARG002  # the same for every prompt
        """Return the parts."""
        return self._content

    def put(self, messages: Sequence[BudgetMessage]) -> None:
        """Take nothing in."""

    def truncate(self, content: object, tokens_to_drop: int) -> None:
        """Decline; the block is left out."""


@record
class ModelCall:
    """One question that a fact block asked its model. `kind` is `extract` or `condense`."""

    kind: str
    messages: int
    existing: int
    returned: tuple[str, ...]


class LineModel:
    """A model that takes every line beginning with `FACT:` for a fact, and condenses by a rule.

    Args:
        condense: `keep_last`, `merge`, `all`, `dup`, `empty`, `garbage` or `raise`.
        extract: `lines`, or `raise`.
        calls: Where each call is written down.
    """

    __slots__ = ("_calls", "_condense", "_extract")

    def __init__(self, condense: str, extract: str, calls: list[ModelCall]) -> None:
        self._condense = condense
        self._extract = extract
        self._calls = calls

    def extracted(self, messages: Sequence[BudgetMessage], facts: Sequence[str]) -> str:
        """Return the reply that names the facts of a batch.

        Raises:
            Raised: It was told to fail.
        """
        if self._extract == "raise":
            raise Raised("RuntimeError", "extract failed")
        lines = [line for message in messages for line in message.lines.splitlines()]
        found = [line.removeprefix("FACT:").strip() for line in lines if line.startswith("FACT:")]
        return self._reply("extract", messages, len(_quoted(facts)), found)

    def condensed(self, messages: Sequence[BudgetMessage], facts: Sequence[str], max_facts: int) -> str:
        """Return the reply that names fewer facts.

        Raises:
            Raised: It was told to fail, or there is no fact to repeat.
        """
        quoted = _quoted(facts)
        match self._condense:
            case "keep_last":
                kept = quoted[-max(1, max_facts - 1) :]
            case "merge":
                kept = ["; ".join(quoted[at : at + 2]) for at in range(0, len(quoted), 2)]
            case "all":
                kept = quoted
            case "dup":
                if not quoted:
                    raise Raised("IndexError", "list index out of range")
                kept = [quoted[0], quoted[0]]
            case "empty" | "garbage":
                kept = []
            case "raise":
                raise Raised("RuntimeError", "condense failed")
            case _:
                raise Raised("ValueError", self._condense)
        return self._reply("condense", messages, len(quoted), kept)

    def _reply(self, kind: str, messages: Sequence[BudgetMessage], existing: int, facts: list[str]) -> str:
        call = ModelCall(kind=kind, messages=len(messages), existing=existing, returned=tuple(facts))
        self._calls.append(call)
        if kind == "condense" and self._condense == "garbage":
            return "Sorry, I cannot do that."
        return "<facts>\n" + "\n".join(f"  <fact>{fact}</fact>" for fact in facts) + "\n</facts>"


_FACT = re.compile(r"<fact>(.*?)</fact>", re.DOTALL)


def _quoted(facts: Sequence[str]) -> list[str]:
    """Return the facts as they are read out of the prompt again; one that holds a tag is cut there."""
    inner = _tagged(facts) + "\n"
    return _FACT.findall(inner.split("<existing_facts>")[0].split("</existing_facts>")[0])


def _tagged(facts: Sequence[str]) -> str:
    return "\n".join([f"<fact>{fact}</fact>" for fact in facts])


class FactBlock:
    """Facts that a model finds in what leaves the window.

    Args:
        max_facts: Above it the model is asked to condense; what it then says is taken as it is, so this is no bound.
    """

    __slots__ = ("_max_facts", "_model", "facts")

    def __init__(self, model: LineModel, facts: Sequence[str] = (), max_facts: int = 50) -> None:
        self._model = model
        self._max_facts = max_facts
        self.facts = list(facts)

    def get(self, messages: Sequence[BudgetMessage]) -> str:  # noqa: ARG002  # the same for every prompt
        """Return a line for each fact, or nothing."""
        return _tagged(self.facts)

    def put(self, messages: Sequence[BudgetMessage]) -> None:
        """Add the facts of the batch that are not there in the same words; they stay if condensing fails.

        Raises:
            Raised: The model failed.
        """
        for fact in _facts(self._model.extracted(messages, self.facts)):
            if fact not in self.facts:
                self.facts.append(fact)
        if len(self.facts) > self._max_facts:
            self.facts = _facts(self._model.condensed(messages, self.facts, self._max_facts)) or self.facts

    def truncate(self, content: object, tokens_to_drop: int) -> None:
        """Decline; the block is left out."""


def _facts(reply: str) -> list[str]:
    return [fact for found in _FACT.findall(reply) if (fact := found.strip())]


class VectorBlock:
    """Batches that left the window, those most like the end of the prompt first.

    A text is a bag of its lower-cased words, each put into one of 64 places by its SHA-1; two texts are as alike as
    the cosine of their bags. It is compared exactly, as a fraction, so equal is equal; where LlamaIndex compares
    rounded doubles, equally alike batches may come in another order there.

    Args:
        top_k: How many batches come back; 0 means all.
        context_window: How many messages are looked at; 0 and 1 mean all of them.
        template: Makes the text of the block of what was found.
    """

    __slots__ = ("_bags", "_context_window", "_template", "_top_k", "nodes", "ties")

    def __init__(
        self, top_k: int = 2, context_window: int = 5, template: Callable[[str], str] = lambda text: text
    ) -> None:
        self._top_k = top_k
        self._context_window = context_window
        self._template = template
        self._bags: list[Mapping[int, int]] = []
        self.nodes: list[str] = []
        self.ties = 0
        """How often a batch that came back was exactly as alike as another one."""

    def get(self, messages: Sequence[BudgetMessage]) -> str:
        """Return the batches that are most like the messages, or nothing."""
        window = self._context_window
        context = messages[-window:] if 1 < window <= len(messages) else messages
        query = " ".join([message.words for message in context])
        found = self._nearest(_bag(query)) if query else []
        return self._template("\n\n".join([self.nodes[place] for place in found])) if found else ""

    def put(self, messages: Sequence[BudgetMessage]) -> None:
        """Keep the batch as one text; messages without words are lost."""
        texts = [_told(message) for message in messages if message.words]
        if texts:
            self.nodes.append("\n".join(texts))
            self._bags.append(_bag(self.nodes[-1]))

    def truncate(self, content: object, tokens_to_drop: int) -> None:
        """Decline; the block is left out."""

    def _nearest(self, query: Mapping[int, int]) -> list[int]:
        """Return the places of the nearest batches, nearest first; of equals those that the heap puts first."""
        scores = [_likeness(query, bag) for bag in self._bags]
        heap: list[tuple[Fraction, int]] = []
        for place, score in enumerate(scores):
            heapq.heappush(heap, (score, place))
            if self._top_k and len(heap) > self._top_k:
                heapq.heappop(heap)
        often = Counter(scores)
        self.ties += any(often[score] > 1 for score, _ in heap)
        return [place for _, place in sorted(heap, key=lambda item: item[0], reverse=True)]


def _told(message: BudgetMessage) -> str:
    # LlamaIndex marks messages with the session on their way to the blocks and takes the mark away here.
    beside = {key: value for key, value in message.kwargs.items() if key != "session_id"}
    info = f"\nAdditional Info: ({beside})" if beside else ""
    return f"<message role='{message.role}'>{message.words}{info}</message>"


_WORD = re.compile(r"\w+")
_PLACES = 64


def _bag(text: str) -> Mapping[int, int]:
    """Return how often each place is hit; a text without words hits every place once."""
    return Counter(map(_place, _WORD.findall(text.lower()))) or dict.fromkeys(range(_PLACES), 1)


@lru_cache(maxsize=4096)
def _place(word: str) -> int:
    digest = hashlib.sha1(word.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big") % _PLACES


def _likeness(query: Mapping[int, int], bag: Mapping[int, int]) -> "Fraction":
    """Return the square of the cosine, but for the length of the query, which is the same for all."""
    from fractions import Fraction  # few transcripts are simulated with such a block, and it takes decimal with it

    product = sum(often * bag.get(place, 0) for place, often in query.items())
    return Fraction(product * product, sum(often * often for often in bag.values()))


class CustomBlock:
    """A block that does what it is told, to try how a policy takes it.

    Args:
        returns: `str`, `blocks` (`a|b`), `messages` (`role:text|role:text`), `messages_shared` (the same list every
            time), `empty`, `dict` or `mixed`.
        truncates: `none`, `words`, `half`, `noop`, `grow`, `empty` or `elist`.
        on_put: `ignore`, `append` or `raise`.
    """

    __slots__ = ("_content", "_on_put", "_returns", "_shared", "_truncates")

    def __init__(
        self, content: str = "", *, returns: str = "str", truncates: str = "none", on_put: str = "ignore"
    ) -> None:
        self._content = content
        self._returns = returns
        self._truncates = truncates
        self._on_put = on_put
        self._shared: list[BudgetMessage] | None = None

    def get(self, messages: Sequence[BudgetMessage]) -> object:  # noqa: ARG002  # the same for every prompt
        """Return the content in the shape it was told.

        Raises:
            Raised: A role or the shape is unknown.
        """
        match self._returns:
            case "str":
                return self._content
            case "blocks":
                return [text_part(text) for text in self._content.split("|")]
            case "messages":
                return self._messages()
            case "messages_shared":
                self._shared = self._messages() if self._shared is None else self._shared
                return self._shared
        return self._odd()

    def put(self, messages: Sequence[BudgetMessage]) -> None:
        """Add the text of the batch, or nothing, as it was told.

        Raises:
            Raised: It was told to fail.
        """
        if self._on_put == "raise":
            raise Raised("RuntimeError", "block put failed")
        if self._on_put == "append":
            self._content = " ".join([self._content, *(message.lines for message in messages)]).strip()

    def truncate(self, content: object, tokens_to_drop: int) -> object:
        """Return what it was told to make of the content.

        Raises:
            Raised: The way is unknown.
        """
        match self._truncates:
            case "none":
                return None
            case "noop":
                return content
            case "empty":
                return ""
            case "elist":
                return []
        return self._shortened(content, tokens_to_drop) if isinstance(content, str) else content

    def _odd(self) -> object:
        match self._returns:
            case "empty":
                return ""
            case "dict":
                return {"text": self._content}
            case "mixed":
                return [BudgetMessage(role="user", parts=(text_part(self._content),)), text_part("x")]
        raise Raised("ValueError", self._returns)

    def _shortened(self, content: str, tokens_to_drop: int) -> str | None:
        words = content.split()
        match self._truncates:
            case "words":
                keep = len(words) - tokens_to_drop
                return " ".join(words[:keep]) if keep > 0 else None
            case "half":
                return " ".join(words[: len(words) // 2])
            case "grow":
                return content + " " + content
        raise Raised("ValueError", self._truncates)

    def _messages(self) -> list[BudgetMessage]:
        made = []
        for piece in self._content.split("|"):
            role, _, text = piece.partition(":")
            fields = Fields()
            role = fields.one_of("role", role, ROLES)
            fields.check()
            made.append(BudgetMessage(role=role, parts=(text_part(text),)))
        return made


# --- from a configuration ---


def block_from(given: Mapping[str, Any], calls: list[ModelCall]) -> PlacedBlock:
    """Return the block that a table of a configuration describes.

    Args:
        calls: Where the models of fact blocks write down what they were asked.

    Raises:
        Raised: LlamaIndex refuses a value.
        UsageError: The format template says more than `{{ text }}`.
    """
    try:
        kind = given["type"]
        make = _MAKERS.get(kind) if isinstance(kind, str) else None
        if make is None:
            raise ValueError(f"unknown block type {kind!r}")
        fields = Fields()
        name = fields.text("name", given.get("name", _NAMES.get(kind, MISSING)))
        priority = fields.whole("priority", given.get("priority", 0))
        accepts = fields.truth("accept_short_term_memory", given.get("accept_short_term_memory", True))
        block = make(given, fields, calls)
        fields.check()
    except (LookupError, TypeError, AttributeError, ValueError) as problem:
        raise Raised(type(problem).__name__, first_line(problem)) from problem
    return PlacedBlock(name=name, priority=priority, accepts=accepts, block=block)


_NAMES = {"static": "StaticContent", "fact": "ExtractedFacts", "vector": "RetrievedMessages"}
"""What a block is called that was given no name; two that were given none therefore collide."""


def _static(given: Mapping[str, Any], fields: Fields, _: list[ModelCall]) -> MemoryBlock:
    content = given["content"]
    if isinstance(content, str):
        return StaticBlock([text_part(content)])
    if not isinstance(content, list):
        fields.refuse("static_content", "Input should be a valid list")
        return StaticBlock([])
    parts = [part_from(item) for item in content if isinstance(item, dict)]
    for index, item in enumerate(content):
        if not isinstance(item, dict):
            words = "Input should be a valid dictionary or object to extract fields from"
            fields.refuse(f"static_content.{index}", words)
    return StaticBlock(parts)


def _fact(given: Mapping[str, Any], fields: Fields, calls: list[ModelCall]) -> MemoryBlock:
    asked = Fields()
    condense = asked.text("condense", given.get("condense", "keep_last"))
    extract = asked.text("extract", given.get("extract", "lines"))
    asked.check()  # the model is made before the block, so its fields are refused first
    facts = fields.texts("facts", given.get("facts", []))
    return FactBlock(LineModel(condense, extract, calls), facts, fields.whole("max_facts", given.get("max_facts", 50)))


def _vector(given: Mapping[str, Any], fields: Fields, _: list[ModelCall]) -> MemoryBlock:
    return VectorBlock(
        fields.whole("similarity_top_k", given.get("similarity_top_k", 2)),
        fields.whole("retrieval_context_window", given.get("retrieval_context_window", 5)),
        _template(given.get("format_template", "{{ text }}"), fields),
    )


def _custom(given: Mapping[str, Any], fields: Fields, _: list[ModelCall]) -> MemoryBlock:
    return CustomBlock(
        fields.text("content", given.get("content", "")),
        returns=fields.text("returns", given.get("returns", "str")),
        truncates=fields.text("truncate", given.get("truncate", "none")),
        on_put=fields.text("on_put", given.get("on_put", "ignore")),
    )


_MAKERS: Mapping[str, Callable[[Mapping[str, Any], Fields, list[ModelCall]], MemoryBlock]] = {
    "static": _static,
    "fact": _fact,
    "vector": _vector,
    "custom": _custom,
}

_RICH = re.compile(r"\{\{\s*text\s*\}\}")
_PLAIN = re.compile(r"\{([^{}]+)\}")


def _template(template: object, fields: Fields) -> Callable[[str], str]:
    """Return what puts a text into a template: `{{ text }}`, or `{text}` where there are no double braces.

    Raises:
        UsageError: The template says more than that.
    """
    if not isinstance(template, str):
        fields.refuse("format_template", "Input should be a valid dictionary or instance of BasePromptTemplate")
        return str
    if "{{" not in template or "}}" not in template:
        return lambda text: _PLAIN.sub(lambda found: text if found[1] == "text" else found[0], template)
    pieces = _RICH.split(template.removesuffix("\n"))
    if any(mark in piece for piece in pieces for mark in ("{{", "{%", "{#")):
        raise UsageError("a format template may hold {{ text }} and no other markup", hint="write {{ text }} alone")
    return lambda text: text.join(pieces)
