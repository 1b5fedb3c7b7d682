"""LlamaIndex chat stores: what `SimpleChatStore.persist` writes, the dump of a memory around one, and the SQL table.

- Every key is a conversation. Order is the order of the list, and of `id` in a table, never of the timestamps.
- A message has `blocks`, or the `content` of releases before 0.12. Calls stand in blocks of type `tool_call`, in
  `additional_kwargs`, or in both; they are taken once. Images, audio, video and documents are noted, not their bytes.
  The signature of a thinking block is dropped.
- Archived rows of a table are what the agent no longer had in its window. They stay in their place, marked.
- Fact blocks that stand beside the messages in the dump of a memory are read as `llamaindex-facts` reads them.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from memcli.exchange.loose import Prose, Record
from memcli.exchange.memories.llamaindex_facts import facts_of
from memcli.exchange.shapes import SURE, Draft, Warn, call, first_text, shown, text_or_none, when
from memcli.exchange.transcripts.columns import document, has, plain, tables_with
from memcli.exchange.transcripts.parts import Parts
from memcli.facts import Found, Json, Turn, Warned
from memcli.record import record
from memcli.terms import Role

if TYPE_CHECKING:
    import sqlite3

_NAME = "llamaindex"
_ROW = ("id", "key", "timestamp", "role", "status", "data")
_HELD = frozenset({"chat_store", "sql_store", "chat_memory", "memory", "primary_memory"})
_TIMES = frozenset({"timestamp", "created_at", "create_time", "time", "date", "at", "ts"})
_SAID = frozenset({"role", "content", "blocks", "additional_kwargs", "id", "name", "class_name", *_TIMES})
_SPEAKS = frozenset({"role", "content", "blocks", "additional_kwargs"})
_KWARGS = frozenset({"tool_calls", "function_call", "tool_call_id", "name", "images", "thinking"})
_MEDIA = frozenset({"image", "audio", "video", "document"})
_NAMED = ("url", "path", "title", "image_mimetype", "video_mimetype", "document_mimetype", "mimetype", "format")


@record
class _Row:
    """One message and what stands around it where it comes from a table."""

    message: Json
    at: Json = None
    status: Json = None
    role: Json = None
    place: str | None = None


@record
class LlamaIndex:
    """The reader of LlamaIndex chat stores."""

    name: str = _NAME
    title: str = "a LlamaIndex chat store"

    def claims(self, value: Json | Prose) -> int:
        """Return certainty for a chat store or a list of its messages, and 3 for a message."""
        if isinstance(value, list):
            votes = sum(1 for item in value if _is_message(item))
            lists = [item for item in value if isinstance(item, list)]
            if lists and len(lists) == len(value):
                return SURE if all(self.claims(item) for item in lists) else 0
            return SURE if votes and 2 * votes >= len(value) else 0
        if not isinstance(value, dict):
            return 0
        if _is_message(value):
            return 3
        if any(self.claims(document(value[key])) for key in _HELD if key in value):
            return SURE
        messages = value.get("messages", value.get("chat_history"))
        return SURE if _is_store(value) or (isinstance(messages, list) and self.claims(messages)) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Found]:
        """Yield a conversation for each key, in the order of the file; messages a line are one conversation."""
        single = Draft(format=_NAME)
        for found in records:
            if isinstance(found.value, Prose):
                warn(Warned(line=found.line, message="skipped what is no message: text"))
            elif isinstance(found.value, dict) and _is_message(found.value):
                _take(_Row(message=found.value), single, found.line, warn)
            else:
                yield from _conversations(found.value, found.line, warn)
        if single.turns:
            yield single.finished(warn)

    def claims_tables(self, tables: Mapping[str, frozenset[str]]) -> int:
        """Return certainty for a database with a table of messages, whatever its name is."""
        return SURE if has(tables, *_ROW) else 0

    def read_tables(self, conn: "sqlite3.Connection", warn: Warn) -> Iterator[Found]:
        """Yield a conversation for each key of each table, in the order of their first rows."""
        for table in tables_with(conn, *_ROW):
            rows = table.rows(conn, *_ROW, order="min({id}) over (partition by {key}), {key}, {id}")
            for key, group in groupby(rows, lambda row: row[1]):
                session = text_or_none(plain(key))
                yield from _conversation(
                    session,
                    (
                        _Row(
                            message=document(data),
                            at=plain(at),
                            status=plain(status),
                            role=plain(role),
                            place=f"row {shown(plain(number))}",
                        )
                        for number, _, at, role, status, data in group
                    ),
                    None,
                    warn,
                )


LLAMAINDEX = LlamaIndex()


def _is_message(value: Json) -> bool:
    """Return whether a value is a message that no other format writes."""
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        return False
    blocks = value.get("blocks")
    if isinstance(blocks, list):
        return all(not isinstance(block, dict) or "block_type" in block for block in blocks)
    return "content" in value and isinstance(value.get("additional_kwargs"), dict)


def _is_store(value: Mapping[str, Json]) -> bool:
    rows = value.get("db_data")
    if isinstance(rows, list) and ("table_name" in value or "async_database_uri" in value):
        return True
    store = document(value.get("store"))
    if not isinstance(store, dict):
        return False
    name = value.get("class_name")
    if isinstance(name, str) and "chatstore" in name.casefold():
        return True
    lists = [document(messages) for messages in store.values()]
    first = [messages[0] for messages in lists if isinstance(messages, list) and messages]
    return any(_is_message(document(item)) for item in first)


def _conversations(value: Json, line: int | None, warn: Warn) -> Iterator[Found]:
    """Yield what a store, the memory around one, or a list of messages holds."""
    value = document(value)
    if isinstance(value, list) and value and all(isinstance(item, list) for item in value):
        for item in value:
            yield from _conversations(item, line, warn)
    elif isinstance(value, list):
        yield from _conversation(None, (_Row(message=item) for item in value), line, warn)
    elif isinstance(value, dict):
        yield from _of_object(value, line, warn)
    else:
        warn(Warned(line=line, message=f"skipped what is no chat store: {shown(value)}"))


def _of_object(value: Mapping[str, Json], line: int | None, warn: Warn) -> Iterator[Found]:
    store = document(value.get("store"))
    rows = value.get("db_data")
    messages = value.get("messages", value.get("chat_history"))
    inner = [value[key] for key in value if key in _HELD]
    if isinstance(store, dict):
        for key, said in store.items():
            yield from _of_key(key, document(said), line, warn)
    elif isinstance(rows, list):
        yield from _of_rows(rows, line, warn)
    elif isinstance(messages, list):
        session = first_text(value, "chat_store_key", "session_id", "id")
        yield from _conversation(session, (_Row(message=item) for item in messages), line, warn)
    elif not inner:
        warn(Warned(line=line, message=f"skipped what is no chat store: {shown(dict(value))}"))
    for held in inner:
        yield from _conversations(held, line, warn)
    blocks = value.get("memory_blocks")
    for block in blocks if isinstance(blocks, list) else []:
        if isinstance(block, dict) and isinstance(block.get("facts"), list):
            yield from facts_of(block, line, warn)
        else:
            warn(Warned(line=line, message=f"skipped a memory block that holds no facts: {shown(block)}"))


def _of_key(key: str, said: Json, line: int | None, warn: Warn) -> Iterator[Found]:
    if isinstance(said, list):
        yield from _conversation(key, (_Row(message=document(item)) for item in said), line, warn)
    else:
        warn(Warned(line=line, message=f"skipped the key {shown(key)}, which holds no list: {shown(said)}"))


def _of_rows(rows: list[Json], line: int | None, warn: Warn) -> Iterator[Found]:
    """Yield the conversations of rows that were dumped from a table in memory."""
    grouped: dict[str | None, list[_Row]] = {}
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            warn(Warned(line=line, message=f"row {number}: skipped what is no row: {shown(row)}"))
            continue
        grouped.setdefault(text_or_none(row.get("key")), []).append(
            _Row(
                message=document(row.get("data")),
                at=row.get("timestamp"),
                status=row.get("status"),
                role=row.get("role"),
                place=f"row {number}",
            )
        )
    for key, group in grouped.items():
        yield from _conversation(key, iter(group), line, warn)


def _conversation(session: str | None, rows: Iterator[_Row], line: int | None, warn: Warn) -> Iterator[Found]:
    draft = Draft(format=_NAME, session=session)
    for row in rows:
        _take(row, draft, line, warn)
    if not draft.turns:
        warn(Warned(line=line, message=f"skipped a conversation without messages, key {shown(session)}"))
        return
    archived = sum(1 for turn in draft.turns if ("status", "archived") in turn.extra)
    if archived:
        what = f"{archived} of {len(draft.turns)} messages of {shown(session)} are archived"
        warn(Warned(line=line, message=f"{what}; kept in their place with the status archived"))
    yield draft.finished(warn)


def _take(row: _Row, draft: Draft, line: int | None, warn: Warn) -> None:
    message = row.message
    if not isinstance(message, dict) or _SPEAKS.isdisjoint(message):
        where = f"{row.place}: " if row.place is not None else ""
        warn(Warned(line=line, message=f"{where}skipped what is no message: {shown(message)}"))
        return
    parts = Parts()
    kwargs = message.get("additional_kwargs")
    beside = kwargs if isinstance(kwargs, dict) else {}
    if kwargs is not None and not isinstance(kwargs, dict):
        parts.extra.append(("additional_kwargs", shown(kwargs)))
        parts.doubts.append(f"its additional_kwargs are no object: {shown(kwargs)}")
    _content(message, parts)
    _beside(beside, parts)
    role, raw_role = _role(message, row, parts)
    at, at_text = when({"timestamp": row.at} if row.at is not None else message)
    if row.status not in (None, "active"):
        parts.extra.append(("status", text_or_none(row.status) or shown(row.status)))
    parts.besides(message, _SAID)
    turn = Turn(
        role=role,
        content="",
        name=first_text(beside, "name") or first_text(message, "name"),
        at=at,
        at_text=at_text,
        origin=text_or_none(message.get("id")),
        tool_call_id=first_text(beside, "tool_call_id"),
        raw_role=raw_role,
    )
    parts.place(turn, draft, line, warn)


def _role(message: Mapping[str, Json], row: _Row, parts: Parts) -> tuple[Role, str | None]:
    spelling = _spelled(message.get("role"))
    column = _spelled(row.role)
    if spelling in (None, "") and column is not None:
        return parts.role(column)
    if column is not None and column != spelling:
        parts.doubts.append(f"its row says the role {shown(column)}, the message {shown(spelling)}; kept as the latter")
    return parts.role(spelling)


def _spelled(role: Json) -> Json:
    """Return a role without the name of its class, which `str` of an enumeration leaves in front."""
    return role.removeprefix("MessageRole.") if isinstance(role, str) else role


def _content(message: Mapping[str, Json], parts: Parts) -> None:
    blocks, content = message.get("blocks"), message.get("content")
    if "blocks" not in message and "content" not in message:
        parts.doubts.append("it has no content")
    if isinstance(blocks, list) and (blocks or content is None):
        for block in blocks:
            _block(block, parts)
        if content not in (None, "", [], "\n".join(parts.texts)):
            parts.extra.append(("content", content if isinstance(content, str) else shown(content)))
            parts.doubts.append("it has blocks and another content; the content is kept beside them")
        return
    if blocks not in (None, []):
        parts.doubts.append(f"its blocks are no list: {shown(blocks)}")
    for part in content if isinstance(content, list) else [content]:
        _block(part, parts)


def _block(block: Json, parts: Parts) -> None:
    if not isinstance(block, dict):
        parts.text(block)
        if block is not None and not isinstance(block, str):
            parts.doubts.append("a part of it is neither text nor a block; kept as text")
        return
    kind = first_text(block, "block_type", "type") or ""
    if kind in ("text", "") and "text" in block:
        parts.text(block["text"])
    elif kind in ("thinking", "reasoning"):
        parts.thought(block.get("content", block.get("thinking")))
    elif kind == "tool_call":
        identity, name = first_text(block, "tool_call_id", "id"), block.get("tool_name", block.get("name"))
        parts.call(call(identity, name, block.get("tool_kwargs", block.get("arguments"))))
    elif kind in _MEDIA:
        parts.note(kind, {**block, "title": None} if block.get("title") == "input_document" else block, *_NAMED)
    elif kind == "image_url":
        inner = block.get(kind)
        parts.note("image", inner if isinstance(inner, dict) else {"url": inner}, "url")
    elif kind in ("citable", "citation"):
        _cited(block, parts)
    elif kind == "cache":
        parts.besides(block, frozenset({"block_type"}))
    else:
        parts.text(block.get("text"))
        parts.attachments.append(f"block of type {kind[:40]}")
        parts.doubts.append(f"a block of type {shown(kind)} is not known; noted, not read")


def _cited(block: Mapping[str, Json], parts: Parts) -> None:
    """Add what was cited as text, with a note of where it is from."""
    content = block.get("content", block.get("cited_content"))
    for part in content if isinstance(content, list) else [content]:
        if not isinstance(part, dict) or part.get("block_type") not in ("citable", "citation"):
            _block(part, parts)
    parts.note("citation", block, "source", "title")


def _beside(kwargs: Mapping[str, Json], parts: Parts) -> None:
    """Add what stands in `additional_kwargs`: calls, thinking, old images, and whatever else."""
    calls = kwargs.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        parts.doubts.append(f"its tool_calls are no list: {shown(calls)}")
    for item in calls if isinstance(calls, list) else []:
        _call(item, parts)
    if kwargs.get("function_call") is not None:
        _call(document(kwargs["function_call"]), parts)
    thinking = kwargs.get("thinking")
    parts.thought(thinking.get("thinking", thinking.get("content")) if isinstance(thinking, dict) else thinking)
    images = kwargs.get("images")
    for image in images if isinstance(images, list) else []:
        parts.note("image", image if isinstance(image, dict) else {}, "image_url", "image_path", "image_mimetype")
    parts.besides(kwargs, _KWARGS, "additional_kwargs.")


def _call(item: Json, parts: Parts) -> None:
    if not isinstance(item, dict):
        parts.doubts.append(f"skipped what is no tool call: {shown(item)}")
        return
    function = item.get("function")
    inner = function if isinstance(function, dict) else item
    name = inner.get("name", inner.get("tool_name"))
    given = next((inner[key] for key in ("arguments", "input", "args", "tool_kwargs") if key in inner), None)
    parts.call(call(first_text(item, "id", "tool_call_id", "tool_id"), name, given))
