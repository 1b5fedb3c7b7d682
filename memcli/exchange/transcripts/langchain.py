"""LangChain messages: `messages_to_dict`, the constructor form of `dumpd`, bare dumps, and the SQL message history.

- A list is a conversation; so is each `messages` of an object, of a thread's `values` or of a checkpoint's
  `channel_values` that was saved as JSON. Messages one a line are one conversation.
- `tool_calls` are taken as they stand; the copies that providers leave in `additional_kwargs` and in the content are
  not counted again. Calls that could not be parsed are calls too, with a warning.
- A database has a conversation for each session, in the order of `id`. The packed checkpoints of LangGraph are not
  read; the refusal says so.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from memcli.exchange.loose import Prose, Record
from memcli.exchange.memories.fields import words
from memcli.exchange.shapes import SURE, Draft, Warn, call, first_text, shown, text_or_none, when
from memcli.exchange.transcripts.columns import Table, document, has, plain, tables_with
from memcli.exchange.transcripts.parts import Parts
from memcli.facts import Conversation, Json, Turn, Warned
from memcli.record import record
from memcli.terms import Role

if TYPE_CHECKING:
    import sqlite3

_NAME = "langchain"
_KINDS: Mapping[str, Role] = {
    "human": Role.USER,
    "ai": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "tool": Role.TOOL,
    "function": Role.TOOL,
    "developer": Role.SYSTEM,
}
_OTHERS = frozenset({"chat", "generic", "remove"})
_MARKS = frozenset({"additional_kwargs", "response_metadata", "tool_calls", "tool_call_id", "example"})
_ROOMS = ("values", "channel_values", "chat_memory", "kwargs", "value", "checkpoint", "state")
_LISTS = ("messages", "chat_history", "history")
_SESSION = ("session_id", "thread_id", "conversation_id")
_ROW = ("session_id", "message")
_SPLIT = ("session_id", "type", "content")
_CHECKPOINTS = ("thread_id", "checkpoint_id", "checkpoint")
_TIMES = frozenset({"timestamp", "created_at", "create_time", "time", "date", "at", "ts"})
_SAID = frozenset(
    {"type", "content", "additional_kwargs", "tool_calls", "invalid_tool_calls", "tool_call_chunks", "name", "id"}
    | {"tool_call_id", "role", "example", *_TIMES}
)
_KWARGS = frozenset({"tool_calls", "function_call", "reasoning_content"})
_CALLS = frozenset({"tool_use", "tool_call", "server_tool_call", "server_tool_use", "function_call"})
_MEDIA: Mapping[str, str] = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "file": "file",
    "input_file": "file",
    "document": "document",
    "media": "media",
}
_NAMED = ("url", "filename", "title", "mime_type", "media_type", "format", "file_id", "id")


@record
class LangChain:
    """The reader of LangChain messages."""

    name: str = _NAME
    title: str = "LangChain messages"

    def claims(self, value: Json | Prose) -> int:
        """Return certainty for a list of messages, 3 for a message, and 1 for what may be one."""
        if isinstance(value, list):
            return _votes(value)
        if not isinstance(value, dict):
            return 0
        vote = _vote(value)
        if vote:
            return vote
        votes = [_votes(messages) for _, messages in _held(value)]
        return max(votes, default=0)

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield each conversation in the order it begins in the file."""
        single = Draft(format=_NAME)
        for found in records:
            value, line = found.value, found.line
            if isinstance(value, dict) and _vote(value):
                _message(value, single, line, warn)
            elif isinstance(value, (dict, list)):
                yield from _conversations(value, line, warn)
            else:
                what = "text" if isinstance(value, Prose) else shown(value)
                warn(Warned(line=line, message=f"skipped what is no message: {what}"))
        if single.turns:
            yield single.finished(warn)

    def claims_tables(self, tables: Mapping[str, frozenset[str]]) -> int:
        """Return certainty for a message history, and less for what only may be one."""
        if "message_store" in tables and tables["message_store"].issuperset(_ROW):
            return SURE
        if has(tables, *_CHECKPOINTS):
            return SURE // 2
        return SURE // 4 if has(tables, "id", *_ROW) or has(tables, "id", *_SPLIT) else 0

    def read_tables(self, conn: "sqlite3.Connection", warn: Warn) -> Iterator[Conversation]:
        """Yield a conversation for each session of each table, in the order of their first rows."""
        histories = tables_with(conn, "id", *_ROW)
        for table in histories:
            yield from _of_table(table, conn, warn)
        for table in tables_with(conn, "id", *_SPLIT):
            if table not in histories:
                yield from _of_table(table, conn, warn)
        if tables_with(conn, *_CHECKPOINTS):
            why = "checkpoints of LangGraph are packed objects of Python, which are not read"
            warn(Warned(line=None, message=f"{why}; write their messages with messages_to_dict"))


LANGCHAIN = LangChain()


def _of_table(table: Table, conn: "sqlite3.Connection", warn: Warn) -> Iterator[Conversation]:
    order = "min({id}) over (partition by {session_id}), {session_id}, {id}"
    rows = table.rows(conn, "session_id", "id", "message", "type", "content", "created_at", order=order)
    for key, group in groupby(rows, lambda row: row[0]):
        draft = Draft(format=_NAME, session=text_or_none(plain(key)))
        for _, number, packed, kind, content, at in group:
            split = {"type": plain(kind), "content": plain(content)}
            message = document(packed) if "message" in table.columns else split
            where = f"row {shown(plain(number))}: "
            if isinstance(message, dict):
                _message(message, draft, None, warn, at=plain(at), where=where)
            else:
                warn(Warned(line=None, message=f"{where}skipped what is no message: {shown(message)}"))
        yield from _finished(draft, None, warn)


def _votes(messages: Json) -> int:
    """Return certainty where most of a list are messages, or lists of them; one vote where they may be."""
    if not isinstance(messages, list) or not messages:
        return 0
    if all(isinstance(item, list) for item in messages):
        return min(_votes(item) for item in messages)
    if all(isinstance(item, dict) and not _vote(item) and _held(item) for item in messages):
        return max(_votes(inner) for item in messages if isinstance(item, dict) for _, inner in _held(item))
    votes = [_vote(item) for item in messages]
    most = 2 * sum(1 for vote in votes if vote) >= len(votes)
    return 0 if not most else SURE if max(votes) == 3 else 1


def _vote(value: Json) -> int:
    if not isinstance(value, dict):
        return 0
    if value.get("lc") == 1:
        return 3 if _class(value).endswith(("Message", "MessageChunk")) else 0
    kind = _kind(value.get("type"))
    if kind not in _KINDS and kind not in _OTHERS:
        return 0
    data = value.get("data")
    if isinstance(data, dict):
        return 3 if "content" in data else 0
    if "role" in value or "content" not in value:
        return 0
    return 3 if not _MARKS.isdisjoint(value) else 1 if kind in ("human", "ai") else 0


def _kind(value: Json) -> str:
    """Return the type of a message in lower case, without what says that it is one: `AIMessageChunk` is `ai`."""
    kind = value.casefold() if isinstance(value, str) else ""
    return kind.removesuffix("chunk").removesuffix("message")


def _class(value: Mapping[str, Json]) -> str:
    path = value.get("id")
    last = path[-1] if isinstance(path, list) and path else None
    return last if isinstance(last, str) else ""


def _held(value: Mapping[str, Json]) -> list[tuple[Mapping[str, Json], Json]]:
    """Return each list of messages that an object holds, with the object that holds it."""
    found: list[tuple[Mapping[str, Json], Json]] = [
        (value, value[key]) for key in _LISTS if isinstance(value.get(key), list)
    ]
    for room in _ROOMS:
        inner = value.get(room)
        if not found and isinstance(inner, dict):
            outer = {key: value[key] for key in _SESSION if key in value}
            found = [({**outer, **source}, messages) for source, messages in _held(inner)]
    if not found and value and all(isinstance(item, list) and _votes(item) for item in value.values()):
        found = [({"session_id": key}, messages) for key, messages in value.items()]
    return found


def _conversations(value: Json, line: int | None, warn: Warn) -> Iterator[Conversation]:
    """Yield what a list or an object holds: messages, or conversations."""
    if isinstance(value, dict):
        held = _held(value)
        for source, messages in held:
            config = source.get("configurable")
            session = first_text(source, *_SESSION) or first_text(config if isinstance(config, dict) else {}, *_SESSION)
            yield from _conversation(messages, session, line, warn)
        if not held:
            warn(Warned(line=line, message=f"skipped what is no message: {shown(value)}"))
        return
    items = value if isinstance(value, list) else []
    if items and all(
        isinstance(item, list) or (isinstance(item, dict) and not _vote(item) and _held(item)) for item in items
    ):
        for item in items:
            yield from _conversations(item, line, warn)
    else:
        yield from _conversation(items, None, line, warn)


def _conversation(messages: Json, session: str | None, line: int | None, warn: Warn) -> Iterator[Conversation]:
    draft = Draft(format=_NAME, session=session)
    for item in messages if isinstance(messages, list) else []:
        message = document(item)
        if isinstance(message, dict):
            _message(message, draft, line, warn)
        else:
            warn(Warned(line=line, message=f"skipped what is no message: {shown(message)}"))
    yield from _finished(draft, line, warn)


def _finished(draft: Draft, line: int | None, warn: Warn) -> Iterator[Conversation]:
    if draft.turns:
        yield draft.finished(warn)
    else:
        warn(Warned(line=line, message=f"skipped a conversation without messages, id {shown(draft.session)}"))


def _message(
    message: Mapping[str, Json], draft: Draft, line: int | None, warn: Warn, *, at: Json = None, where: str = ""
) -> None:
    kind, data = _unwrapped(message)
    if data is None:
        warn(Warned(line=line, message=f"{where}skipped what is no message: {shown(dict(message))}"))
        return
    if kind == "remove":
        warn(Warned(line=line, message=f"{where}skipped an order to remove a message, id {shown(data.get('id'))}"))
        return
    parts = Parts()
    kwargs = data.get("additional_kwargs")
    beside = kwargs if isinstance(kwargs, dict) else {}
    role, raw_role = _role(kind, data, parts)
    _content(data, beside, parts)
    parts.besides(data, _SAID)
    parts.besides(beside, _KWARGS, "additional_kwargs.")
    if kwargs is not None and not isinstance(kwargs, dict):
        parts.extra.append(("additional_kwargs", words(kwargs)))
    instant, at_text = _when(message, data, beside, at)
    turn = Turn(
        role=role,
        content="",
        name=text_or_none(data.get("name")),
        at=instant,
        at_text=at_text,
        origin=text_or_none(data.get("id")),
        tool_call_id=text_or_none(data.get("tool_call_id")),
        raw_role=raw_role,
    )
    parts.place(turn, draft, line, warn)


def _unwrapped(message: Mapping[str, Json]) -> tuple[str, Mapping[str, Json] | None]:
    """Return the type of a message and its fields, whichever of the forms it has."""
    if message.get("lc") == 1:
        kwargs = message.get("kwargs")
        return _kind(_class(message)), kwargs if isinstance(kwargs, dict) else None
    kind, data = _kind(message.get("type")), message.get("data")
    if isinstance(data, dict):
        return kind, data
    return kind, message if "content" in message else None


def _role(kind: str, data: Mapping[str, Json], parts: Parts) -> tuple[Role, str | None]:
    if kind in _KINDS:
        return _KINDS[kind], None
    return parts.role(data.get("role") if kind in _OTHERS else kind or data.get("role"))


def _when(
    message: Mapping[str, Json], data: Mapping[str, Json], kwargs: Mapping[str, Json], at: Json
) -> tuple[int | None, str | None]:
    metadata = data.get("response_metadata")
    created = metadata.get("created_at") if isinstance(metadata, dict) else None
    for source in ({"at": at}, data, message, kwargs, {"at": created}):
        instant, text = when(source)
        if instant is not None or text is not None:
            return instant, text
    return None, None


def _content(data: Mapping[str, Json], kwargs: Mapping[str, Json], parts: Parts) -> None:
    _listed(data.get("tool_calls"), "tool_calls", parts)
    broken = data.get("invalid_tool_calls")
    for item in broken if isinstance(broken, list) else []:
        _call(item, parts)
        error = item.get("error") if isinstance(item, dict) else None
        parts.doubts.append(f"a tool call that could not be parsed, kept as it stood: {shown(error)}")
    if not parts.calls:
        _listed(kwargs.get("tool_calls"), "tool_calls", parts)
    if not parts.calls and kwargs.get("function_call") is not None:
        _call(document(kwargs["function_call"]), parts)
    content = data.get("content")
    for part in content if isinstance(content, list) else [content]:
        _part(part, parts)
    parts.thought(kwargs.get("reasoning_content"))
    if content is not None and not isinstance(content, (str, list)):
        parts.doubts.append("its content is neither text nor a list; kept as text")


def _listed(calls: Json, key: str, parts: Parts) -> None:
    if calls is not None and not isinstance(calls, list):
        parts.doubts.append(f"its {key} are no list: {shown(calls)}")
    for item in calls if isinstance(calls, list) else []:
        _call(item, parts)


def _part(part: Json, parts: Parts) -> None:
    """Add one part of a content: text, thinking, a call, or a note of what is no text."""
    if not isinstance(part, dict):
        parts.text(part)
        return
    kind = text_or_none(part.get("type")) or ""
    if kind in ("text", "input_text", "output_text", "refusal", "text-plain", ""):
        parts.text(next((part[key] for key in ("text", "refusal", "content") if key in part), part))
    elif kind in ("thinking", "reasoning", "reasoning_content"):
        parts.thought(next((part[key] for key in ("thinking", "reasoning", "text", "summary") if key in part), None))
    elif kind in _CALLS:
        if not parts.calls or text_or_none(part.get("id")) is not None:
            _call(part, parts)
    elif kind in _MEDIA:
        _media(part, kind, parts)
    elif kind == "redacted_thinking":
        parts.attachments.append("thinking that was redacted")
    elif kind != "input_json_delta":  # a piece of a call that is there whole
        parts.text(part.get("text"))
        parts.attachments.append(f"part of type {kind[:40]}")
        parts.doubts.append(f"a part of type {shown(kind)} is not known; noted, not read")


def _media(part: Mapping[str, Json], kind: str, parts: Parts) -> None:
    inner = part.get(kind, part.get("source", part.get("file")))
    source = inner if isinstance(inner, dict) else {"url": inner} if isinstance(inner, str) else part
    parts.note(_MEDIA[kind], source, *_NAMED)


def _call(item: Json, parts: Parts) -> None:
    if not isinstance(item, dict):
        parts.doubts.append(f"skipped what is no tool call: {shown(item)}")
        return
    function = item.get("function")
    inner = function if isinstance(function, dict) else item
    given = next((inner[key] for key in ("args", "arguments", "input") if key in inner), None)
    parts.call(call(first_text(item, "call_id", "id"), inner.get("name"), given))
