"""OpenAI chat messages: an array, `{"messages": […]}`, lists and lines of either, and lines of single messages.

Each `messages` list is a conversation of its own. Single messages that stand one a line are one conversation, or
one for each session they name. Order is the order of the file. A message is kept whatever its role or content; what
is odd about it is told. Text parts are joined by a line feed; images, audio and files become short notes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field

from memcli.exchange.loose import Prose, Record, parse
from memcli.exchange.shapes import (
    ROLES,
    VETO,
    Draft,
    Warn,
    call,
    compact,
    first_text,
    media,
    shown,
    text_or_none,
    when,
)
from memcli.facts import Conversation, Json, ToolCall, Turn, Warned
from memcli.record import record
from memcli.terms import Role

_NAME = "openai"
_CONTENT = frozenset({"content", "tool_calls", "function_call", "refusal"})
_SESSION = ("session_id", "sessionId", "conversation_id", "thread_id")
# Keys and part types that look alike and mean another format, whose tools and thinking would be lost here.
_FOREIGN_KEYS = frozenset({"blocks", "additional_kwargs", "record_type", "payload", "parentUuid", "mapping"})
_FOREIGN_PARTS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "toolCall", "input_text", "output_text"}
)
_THINKING = ("reasoning_content", "reasoning", "thinking")
_MEDIA: Mapping[str, str] = {
    "image_url": "image",
    "image": "image",
    "input_image": "image",
    "input_audio": "audio",
    "audio": "audio",
    "audio_url": "audio",
    "video": "video",
    "video_url": "video",
    "file": "file",
    "input_file": "file",
    "document": "document",
}


@record
class _Parts:
    """What the content of one message comes to."""

    texts: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


@record
class _Piece:
    """Messages that stand together in the file; pieces of one key are one conversation."""

    key: object
    session: str | None
    title: str | None
    messages: list[Json]
    line: int | None


@record
class OpenAI:
    """The reader of OpenAI chat messages."""

    name: str = _NAME
    title: str = "OpenAI messages"

    def claims(self, value: Json | Prose) -> int:
        """Return how many conversations or single messages stand in the value."""
        if isinstance(value, dict):
            if isinstance(value.get("messages"), list):
                return VETO if "system" in value or _FOREIGN_KEYS & value.keys() else _votes(value["messages"])
            return _vote(value)
        if not isinstance(value, list):
            return 0
        if [item for item in value if isinstance(item, list) or (isinstance(item, dict) and "messages" in item)]:
            votes = [self.claims(item) for item in value if isinstance(item, (dict, list))]
            return VETO if any(vote < 0 for vote in votes) else sum(votes)
        return _votes(value)

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield each conversation in the order it begins in the file."""
        drafts: dict[object, Draft] = {}
        for piece in _pieces(records, warn):
            draft = drafts.get(piece.key) or Draft(format=_NAME, session=piece.session, title=piece.title)
            for message in piece.messages:
                if (turn := _plain(message)) is not None:
                    draft.add(turn, piece.line)
                else:
                    add_message(message, piece.line, draft, warn)
            if isinstance(piece.key, tuple):  # a conversation of its own, which nothing later adds to
                yield from _finished(draft, warn)
            else:
                drafts[piece.key] = draft
        for draft in drafts.values():
            yield from _finished(draft, warn)


OPENAI = OpenAI()


def _finished(draft: Draft, warn: Warn) -> Iterator[Conversation]:
    if draft.turns:
        yield draft.finished(warn)
    else:
        warn(Warned(line=None, message=f"skipped a conversation without messages, id {shown(draft.session)}"))


def raw_messages(records: Iterator[Record]) -> tuple[tuple[Mapping[str, Json], ...], ...]:
    """Return the messages of each conversation as they stand in the file, one for each turn that is read."""
    found: dict[object, list[Mapping[str, Json]]] = {}
    for piece in _pieces(records, lambda _: None):
        found.setdefault(piece.key, []).extend(item for item in piece.messages if isinstance(item, dict))
    return tuple(tuple(messages) for messages in found.values() if messages)


def _votes(messages: Json) -> int:
    """Return 1 where most of a list are messages, with nothing of another format among them."""
    votes = [_vote(message) for message in messages] if isinstance(messages, list) else []
    if VETO in votes:
        return VETO
    good = sum(votes)
    return 1 if good and 2 * good >= len(votes) else 0


def _vote(message: Json) -> int:
    if not isinstance(message, dict):
        return 0
    content = message.get("content")
    if not _FOREIGN_KEYS.isdisjoint(message):
        return VETO
    if isinstance(content, list) and any(_kind(part) in _FOREIGN_PARTS for part in content):
        return VETO
    return 0 if _CONTENT.isdisjoint(message) or not isinstance(message.get("role"), str) else 1


def _kind(part: Json) -> str | None:
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else None


def _pieces(records: Iterator[Record], warn: Warn) -> Iterator[_Piece]:
    """Yield what the file holds, piece by piece; lists hold messages or conversations, two deep at most."""
    for number, found in enumerate(records):
        value, line = found.value, found.line
        if isinstance(value, dict) and not isinstance(value.get("messages"), list):
            session = first_text(value, *_SESSION)
            yield _Piece(key=session, session=session, title=None, messages=[value], line=line)
        elif isinstance(value, list) and _holds_conversations(value):
            for place, item in enumerate(value):
                if _is_conversation(item):
                    yield _conversation(item, line, (number, place))
                else:
                    warn(Warned(line=line, message=f"skipped what is no conversation: {shown(item)}"))
        elif isinstance(value, (dict, list)):
            yield _conversation(value, line, (number, 0))
        else:
            what = "text" if isinstance(value, Prose) else shown(value)
            warn(Warned(line=line, message=f"skipped what is no message: {what}"))


def _is_conversation(item: Json) -> bool:
    return isinstance(item, list) or (isinstance(item, dict) and isinstance(item.get("messages"), list))


def _holds_conversations(items: list[Json]) -> bool:
    # Nearly every list holds messages and nothing else, so all of it is looked at, and that without a call for each.
    maybe = [item for item in items if isinstance(item, list) or (isinstance(item, dict) and "messages" in item)]
    return any(map(_is_conversation, maybe))


def _conversation(value: Json, line: int | None, key: tuple[int, int]) -> _Piece:
    """Return a conversation of its own: a list of messages, or a dictionary around one."""
    source = value if isinstance(value, dict) else {}
    messages = source.get("messages") if isinstance(value, dict) else value
    return _Piece(
        key=key,
        session=first_text(source, *_SESSION, "id", "uuid"),
        title=first_text(source, "title", "name"),
        messages=messages if isinstance(messages, list) else [],
        line=line,
    )


def add_message(message: Json, line: int | None, draft: Draft, warn: Warn) -> None:
    """Add a message to its conversation, whatever its role and content; what is odd about it is told."""
    if not isinstance(message, dict):
        warn(Warned(line=line, message=f"skipped what is no message: {shown(message)}"))
        return
    parts = _content(message)
    role, raw_role = _role(message, parts)
    at, at_text = when(message)
    turn = Turn(
        role=role,
        content="\n".join(parts.texts),
        name=text_or_none(message.get("name")),
        at=at,
        at_text=at_text,
        origin=first_text(message, "id", "uuid"),
        parent=first_text(message, "parent", "parent_id", "parentId"),
        tool_calls=tuple(parts.calls),
        tool_call_id=first_text(message, "tool_call_id", "toolCallId"),
        thinking="\n".join(parts.thinking) or None,
        attachments=tuple(parts.attachments),
        raw_role=raw_role,
    )
    index = draft.add(turn, line)
    for doubt in parts.doubts:
        warn(Warned(line=line, message=f"message {index + 1}: {doubt}"))


def _plain(message: Json) -> Turn | None:
    """Return the turn of a message with a known role, a text and nothing else, which most are; None for any other."""
    if not isinstance(message, dict) or len(message) != 2:
        return None
    role, content = message.get("role"), message.get("content")
    if not isinstance(content, str) or not isinstance(role, str) or role not in ROLES:
        return None
    return Turn(role=ROLES[role], content=content)


def _role(message: Mapping[str, Json], parts: _Parts) -> tuple[Role, str | None]:
    spelling = message.get("role")
    if spelling is None or spelling == "":
        parts.doubts.append("it has no role; kept as unknown")
        return Role.UNKNOWN, None
    raw = spelling if isinstance(spelling, str) else compact(spelling)
    role = ROLES.get(raw.strip().casefold())
    if role is None:
        parts.doubts.append(f"the role {shown(raw)} is not known; kept as unknown")
        return Role.UNKNOWN, raw
    return role, None


def _content(message: Mapping[str, Json]) -> _Parts:
    parts = _Parts()
    content = message.get("content")
    if isinstance(content, list):
        for part in content:
            _part(part, parts)
    elif content is not None:
        _part(content, parts)
        if not isinstance(content, str):
            parts.doubts.append("its content is neither text nor a list; kept as text")
    elif isinstance(message.get("refusal"), str):
        _part(message["refusal"], parts)
    for key in _THINKING:
        thinking = message.get(key)
        if isinstance(thinking, str) and thinking:
            parts.thinking.append(thinking)
            break
    _calls(message, parts)
    if content is None and not parts.texts and not parts.calls:
        parts.doubts.append("it has no content")
    return parts


def _part(part: Json, parts: _Parts) -> None:
    """Add one part of a content list: text, thinking, a call, or a note of what is no text."""
    kind = _kind(part)
    if isinstance(part, str):
        parts.texts.append(part)
    elif not isinstance(part, dict):
        parts.texts.append(compact(part))
    elif kind is not None and kind in _MEDIA:
        parts.attachments.append(media(_MEDIA[kind], _where(part, kind)))
    elif kind == "tool_call":
        _call(_decoded(part.get("value")) or part, parts)
    else:
        text = next((part[key] for key in ("text", "value", "content", "refusal", "reasoning") if key in part), part)
        if text is None:
            return
        taken = text if isinstance(text, str) else compact(text)
        if kind in ("reasoning", "thinking"):
            parts.thinking.append(taken)
        elif kind is None or kind in ("text", "refusal", "input_text", "output_text"):
            parts.texts.append(taken)
        else:
            parts.attachments.append(f"part of type {kind[:40]}")
            parts.doubts.append(f"a part of type {shown(kind)} is not known; noted, not read")


def _where(part: Mapping[str, Json], kind: str) -> Json:
    """Return the address, name or format of an image, sound or file."""
    inner = part.get(kind, part.get(kind.removeprefix("input_")))
    if isinstance(inner, dict):
        return next((inner[key] for key in ("url", "filename", "format", "file_id") if key in inner), None)
    return inner if inner is not None else part.get("url", part.get("value"))


def _calls(message: Mapping[str, Json], parts: _Parts) -> None:
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        for item in calls:
            _call(item, parts)
    elif calls is not None:
        parts.doubts.append("its tool_calls are no list; skipped")
    if message.get("function_call") is not None:
        _call(_decoded(message["function_call"]), parts)


def _call(item: Json, parts: _Parts) -> None:
    if not isinstance(item, dict):
        parts.doubts.append(f"skipped what is no tool call: {shown(item)}")
        return
    inner = item
    for key in ("custom", "function"):
        nested = item.get(key)
        if isinstance(nested, dict):
            inner = nested
    arguments = next((inner[key] for key in ("arguments", "args", "input", "parameters") if key in inner), None)
    taken = call(item.get("id"), inner.get("name"), arguments)
    parts.calls.append(taken)
    if not taken.name:
        parts.doubts.append("a tool call has no name")


def _decoded(value: Json) -> Json:
    """Return the value, or what its JSON text says."""
    if not isinstance(value, str):
        return value
    parsed = parse(value)
    return parsed.values[0] if len(parsed.values) == 1 and parsed.problem is None else value
