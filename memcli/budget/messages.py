"""Messages as a budget sees them: a role, parts in order, and the keywords that travel beside them; and their tokens.

A message comes from an OpenAI dictionary, where every key is kept, or from a `Turn` that a reader found. What is
counted is what LlamaIndex counts after it has written the message to its store as JSON and read it back.
"""

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from itertools import islice
from typing import Any, Final

from memcli.budget import urls
from memcli.budget.fields import MISSING, Fields
from memcli.budget.raised import Raised, first_line
from memcli.errors import UsageError
from memcli.facts import Json, Turn
from memcli.record import record
from memcli.terms import Role

ROLES: Final = ("system", "developer", "user", "assistant", "function", "tool", "chatbot", "model")
"""The roles that LlamaIndex knows, in its own order."""


class PartKind(StrEnum):
    """What a part of a message is."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    DOCUMENT = "document"
    CACHE = "cache"
    TOOL_CALL = "tool_call"
    THINKING = "thinking"
    CITABLE = "citable"
    CITATION = "citation"


FREE: Final = frozenset({PartKind.CACHE, PartKind.TOOL_CALL, PartKind.THINKING, PartKind.CITABLE, PartKind.CITATION})
"""Parts that LlamaIndex counts as nothing."""

_TEXT: Final = PartKind.TEXT
"""By its own name, because looking a member up in its enumeration is most of the time of a look at a message."""

PLACEABLE: Final = frozenset(PartKind) - FREE | {PartKind.CACHE}
"""Parts that a block may hold; one other part, and every reading of that memory fails."""


class ToolCalls(StrEnum):
    """Where the tool calls of a message go, which decides what they cost."""

    KWARGS = "kwargs"
    BLOCKS = "blocks"
    BOTH = "both"


MAPPINGS: Final[Mapping[str, ToolCalls]] = {
    **{mapping.value: mapping for mapping in ToolCalls},
    "openai_dict": ToolCalls.KWARGS,
    "tool_blocks": ToolCalls.BLOCKS,
}
"""Every name of a mapping."""


@record
class Part:
    """One part of a message or block.

    Args:
        text: The words of a text; of thinking, a tool call or a citable source, those that LlamaIndex does not count.
        url: The address of an image, sound, video or document.
        name: The tool that is called.
        call: The id of the call.
    """

    kind: PartKind
    text: str = ""
    url: str | None = None
    name: str | None = None
    call: str | None = None


@record
class BudgetMessage:
    """A message that is counted: `kwargs` in the order they were given, as they read back from JSON."""

    role: str
    parts: tuple[Part, ...]
    kwargs: Mapping[str, Json] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Return whether it is one text with nothing beside it, as most messages are."""
        return not self.kwargs and len(self.parts) == 1 and self.parts[0].kind is _TEXT

    @property
    def words(self) -> str:
        """Return the text parts with nothing between them."""
        return "".join([part.text for part in self.parts if part.kind is PartKind.TEXT])

    @property
    def lines(self) -> str:
        """Return the text parts, each on its own line."""
        return "\n".join([part.text for part in self.parts if part.kind is PartKind.TEXT])


@record
class Estimates:
    """What a part costs whatever is in it, in tokens; may be zero or negative."""

    image: int = 256
    audio: int = 256
    video: int = 256
    document: int = 2048


Count = Callable[[str], int]


def laden(messages: Sequence[BudgetMessage]) -> list[int]:
    """Return the places of the messages that are not plain: asked of all at once, in half the time."""
    return [
        at
        for at, message in enumerate(messages)
        if message.kwargs or len(message.parts) != 1 or message.parts[0].kind is not _TEXT
    ]


def text_part(text: str) -> Part:
    """Return a part that is that text."""
    return Part(kind=_TEXT, text=text)


# --- tokens ---


def countable(message: BudgetMessage) -> list[str]:
    """Return the texts whose tokens are the message's, besides its flat estimates."""
    texts = [part.text for part in message.parts if part.kind is _TEXT]
    if message.kwargs:
        # Python's own notation, not JSON: this is what LlamaIndex hands to the tokenizer.
        texts.append(str(message.kwargs))
    return texts


def flat(parts: Iterable[Part], estimates: Estimates) -> int:
    """Return the tokens of the parts whose size nobody looks at."""
    return sum([_flat(part.kind, estimates) for part in parts if part.kind is not _TEXT])


def _flat(kind: PartKind, estimates: Estimates) -> int:
    match kind:
        case PartKind.IMAGE:
            return estimates.image
        case PartKind.AUDIO:
            return estimates.audio
        case PartKind.VIDEO:
            return estimates.video
        case PartKind.DOCUMENT:
            return estimates.document
    return 0


def message_tokens(message: BudgetMessage, estimates: Estimates, count: Count) -> int:
    """Return what a message counts as: its parts each by itself, and its keywords."""
    return sum(map(count, countable(message))) + flat(message.parts, estimates)


def parts_tokens(parts: Iterable[Part], estimates: Estimates, count: Count) -> int:
    """Return what parts count as, each by itself."""
    return sum(count(part.text) if part.kind is PartKind.TEXT else _flat(part.kind, estimates) for part in parts)


def all_tokens(
    messages: Sequence[BudgetMessage], estimates: Estimates, count_many: Callable[[Sequence[str]], Sequence[int]]
) -> list[int]:
    """Return what each message counts as, with all texts counted in one call."""
    if not laden(messages):
        return list(count_many([message.parts[0].text for message in messages]))
    texts = [countable(message) for message in messages]
    counts = iter(count_many([text for group in texts for text in group]))
    return [
        next(counts) if message.is_plain else sum(islice(counts, len(group))) + flat(message.parts, estimates)
        for message, group in zip(messages, texts, strict=True)
    ]


def content_tokens(content: object, estimates: Estimates, count: Count) -> int:
    """Return what the content of a block counts as: a text, a list of messages, or a list of parts.

    Raises:
        Raised: It is a mixed list, or holds a part that a block may not hold.
    """
    if isinstance(content, str):
        return count(content)
    if isinstance(content, list):
        if all(isinstance(item, BudgetMessage) for item in content):
            return sum(message_tokens(message, estimates, count) for message in content)
        if all(isinstance(item, Part) and item.kind in PLACEABLE for item in content):
            return parts_tokens(content, estimates, count)
    raise Raised("ValueError", f"Invalid message type: {type(content)}")


# --- from what a reader found ---

_NOTED = {
    "image": PartKind.IMAGE,
    "audio": PartKind.AUDIO,
    "video": PartKind.VIDEO,
    "file": PartKind.DOCUMENT,
    "document": PartKind.DOCUMENT,
}
"""What a note of an attachment begins with; one that begins otherwise stands for nothing that would be counted."""


def from_turn(turn: Turn, mapping: ToolCalls = ToolCalls.KWARGS) -> BudgetMessage:
    """Return the message that a turn becomes; a role that nobody knows is kept as it stood and bounds no turn."""
    parts = [Part(kind=PartKind.THINKING, text=turn.thinking)] if turn.thinking else []
    if turn.content or not (turn.tool_calls or turn.attachments or turn.thinking):
        parts.append(text_part(turn.content))
    parts += [part for note in turn.attachments for part in _noted(note)]
    kwargs: dict[str, Json] = {}
    if turn.tool_calls and mapping is not ToolCalls.BLOCKS:
        kwargs["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in turn.tool_calls
        ]
    if mapping is not ToolCalls.KWARGS:
        parts += [
            Part(kind=PartKind.TOOL_CALL, text=call.arguments, name=call.name, call=call.id) for call in turn.tool_calls
        ]
    if turn.tool_call_id is not None:
        kwargs["tool_call_id"] = turn.tool_call_id
    if turn.name is not None:
        kwargs["name"] = turn.name
    role = (turn.raw_role or turn.role.value) if turn.role is Role.UNKNOWN else turn.role.value
    return BudgetMessage(role=role, parts=tuple(parts), kwargs=kwargs)


def _noted(note: str) -> list[Part]:
    kind, _, detail = note.partition(" ")
    if kind not in _NOTED:
        return []
    return [Part(kind=_NOTED[kind], url=detail if "://" in detail else None)]


# --- from OpenAI's dictionaries ---

_NOTHING: Final[Mapping[str, Json]] = {}
"""What stands beside a plain message; one for all of them, since nobody changes it."""


def mapping_named(name: object) -> ToolCalls:
    """Return the mapping of that name.

    Raises:
        UsageError: There is none.
    """
    mapping = MAPPINGS.get(name) if isinstance(name, str) else None
    if mapping is None:
        raise UsageError(f"there is no mapping of tool calls called {name}", hint=f"take one of {', '.join(MAPPINGS)}")
    return mapping


def from_openai(message: object, mapping: ToolCalls = ToolCalls.KWARGS) -> BudgetMessage:
    """Return the message that a dictionary becomes; every key but role and content travels beside it, in order.

    Raises:
        Raised: No message can be made of it; what is said is what LlamaIndex and Python say.
    """
    if (plain := all_plain((message,))) is not None:
        return plain[0]
    try:
        return _openai(message, mapping)
    except (LookupError, TypeError, AttributeError, ValueError) as problem:
        raise Raised(type(problem).__name__, first_line(problem)) from problem


def all_plain(messages: Iterable[object]) -> tuple[BudgetMessage, ...] | None:
    """Return the messages where each of them is a known role and a text and nothing else; None where one is not."""
    made = []
    for message in messages:
        if not isinstance(message, dict) or len(message) != 2:
            return None
        role, content = message.get("role"), message.get("content")
        if not isinstance(content, str) or not isinstance(role, str) or role not in ROLES:
            return None
        made.append(BudgetMessage(role=role, parts=(Part(kind=_TEXT, text=content),), kwargs=_NOTHING))
    return tuple(made)


def _openai(message: Any, mapping: ToolCalls) -> BudgetMessage:
    content = message.get("content")
    kwargs = {key: value for key, value in message.items() if key not in ("role", "content")}
    parts: list[Part] = []
    if isinstance(content, str):
        parts.append(text_part(content))
    elif isinstance(content, list):
        parts += [part_from(item) for item in content]
    calls = message.get("tool_calls")
    if calls and mapping is not ToolCalls.KWARGS:
        parts += [_called(call) for call in calls]
        if mapping is ToolCalls.BLOCKS:
            del kwargs["tool_calls"]
    fields = Fields()
    role = fields.one_of("role", message["role"], ROLES)
    fields.check()
    # An old convention: pictures that travel as objects of LlamaIndex, which no transcript can hold.
    for image in kwargs.get("images") or ():
        raise AttributeError(f"{type(image).__name__!r} object has no attribute 'resolve_image'")
    return BudgetMessage(role=role, parts=tuple(parts), kwargs={key: stored(value) for key, value in kwargs.items()})


def _called(call: Any) -> Part:
    function = call.get("function", {})
    return _tool_call(
        {
            "tool_call_id": call.get("id"),
            "tool_name": function.get("name", ""),
            "tool_kwargs": function.get("arguments", {}),
        }
    )


def stored(value: Any) -> Json:
    """Return what LlamaIndex reads back after it has stored the value as JSON.

    Raises:
        TypeError: It cannot be stored.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {_key(key): stored(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [stored(item) for item in value]
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def part_from(item: Any) -> Part:
    """Return the part that one of OpenAI's becomes, or one that names its `block_type` as LlamaIndex does.

    Raises:
        Raised: A field does not fit.
        LookupError: A key is missing, or the kind unknown.
        TypeError: It is no dictionary.
        ValueError: OpenAI's kind is unknown.
    """
    if "block_type" in item:
        return _NATIVE[item["block_type"]](item)
    match item["type"]:
        case "text":
            return _text({"text": item["text"]})
        case "image_url":
            return _media(PartKind.IMAGE, {"url": item["image_url"]["url"]})
        case "input_audio":
            sound = item["input_audio"]
            sound["data"].encode()
            return _media(PartKind.AUDIO, {"format": sound.get("format")})
        case "file":
            item["file"]["file_data"].encode()
            return Part(kind=PartKind.DOCUMENT)
    raise ValueError(f"Unsupported message type: {item['type']}")


def _text(given: Mapping[str, Any]) -> Part:
    fields = Fields()
    text = fields.text("text", given.get("text", MISSING))
    fields.check()
    return text_part(text)


def _media(kind: PartKind, given: Mapping[str, Any]) -> Part:
    """Return an image, sound or video. A local path is never looked up, so that no file stands there."""
    fields = Fields()
    if given.get("path") is not None:
        fields.refuse("path", "Path does not point to a file")
    url = given.get("url")
    if url is not None and not isinstance(url, str):
        fields.refuse("url.function-wrap[wrap_val()]", "URL input should be a string or URL")
        fields.refuse("url.str", "Input should be a valid string")
    fields.text_or_none("format", given.get("format"))
    fields.check()
    return Part(kind=kind, url=None if url is None else urls.normal(url))


def _document(given: Mapping[str, Any]) -> Part:
    fields = Fields()
    url = fields.text_or_none("url", given.get("url"))
    fields.check()
    return Part(kind=PartKind.DOCUMENT, url=url)


def _thinking(given: Mapping[str, Any]) -> Part:
    fields = Fields()
    text = fields.text_or_none("content", given.get("content"))
    fields.check()
    return Part(kind=PartKind.THINKING, text=text or "")


def _tool_call(given: Mapping[str, Any]) -> Part:
    fields = Fields()
    call = fields.text_or_none("tool_call_id", given.get("tool_call_id"))
    name = fields.text("tool_name", given.get("tool_name", MISSING))
    arguments = given.get("tool_kwargs", {})
    if not isinstance(arguments, (dict, str)):
        fields.refuse("tool_kwargs.dict[str,any]", "Input should be a valid dictionary")
        fields.refuse("tool_kwargs.str", "Input should be a valid string")
    fields.check()
    return Part(kind=PartKind.TOOL_CALL, text=str(arguments), name=name, call=call)


def _citable(given: Mapping[str, Any]) -> Part:
    fields = Fields()
    fields.text("title", given.get("title", MISSING))
    fields.text("source", given.get("source", MISSING))
    content = given.get("content", MISSING)
    if content is MISSING:
        fields.refuse("content", "Field required")
    elif not isinstance(content, (str, list)):
        fields.refuse("content", "Input should be a valid list")
    fields.check()
    return Part(kind=PartKind.CITABLE, text=content if isinstance(content, str) else "")


def _cache(given: Mapping[str, Any]) -> Part:
    fields = Fields()
    fields.text("type", given.get("type", "ephemeral"))
    fields.check()
    return Part(kind=PartKind.CACHE)


_NATIVE: Final[Mapping[str, Callable[[Mapping[str, Any]], Part]]] = {
    "text": _text,
    "image": lambda given: _media(PartKind.IMAGE, given),
    "audio": lambda given: _media(PartKind.AUDIO, given),
    "video": lambda given: _media(PartKind.VIDEO, given),
    "document": _document,
    "cache": _cache,
    "thinking": _thinking,
    "tool_call": _tool_call,
    "citable": _citable,
}
"""LlamaIndex's own kinds of parts, each with what takes it."""
