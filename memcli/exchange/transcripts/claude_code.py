"""Claude Code sessions: JSON Lines, one record for each block of a message.

- Lines with one `message.id` are one assistant message, standing where the first of them stood. Each `tool_result`
  becomes a tool message of its own, named after its call. Order is the order of the file; parents are kept as links.
- Thinking is kept apart and its signature dropped. `toolUseResult` is a copy and never read. Images and documents
  are noted, not their bytes.
- What the program wrote for itself is skipped: progress, snapshots, the queue, system records, summaries, `isMeta`.
- A record with `isApiErrorMessage` is not what a model said. It stays in its place, since the next message may speak
  of it, with the name `api-error` and a warning. The summary after a compaction stays with the name `compact-summary`.
- Every session, and every sub-agent (`isSidechain`) of one, is a conversation: their contexts never were one. Older
  versions give a sub-agent no id; its records are told by the first of them, from which all the others descend.
- A message that was rewritten as it grew counts once, as it stood last. Rewound branches stay in their places.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TypeAlias

from memcli.exchange.loose import Prose, Record
from memcli.exchange.shapes import ROLES, Draft, Warn, call, compact, first_text, media, shown, text_or_none, when
from memcli.exchange.turns import changed
from memcli.facts import Conversation, Json, ToolCall, Turn, Warned
from memcli.record import record
from memcli.terms import Role

_NAME = "claude-code"
_SPOKEN = frozenset({"user", "assistant"})
_SILENT = frozenset(
    {
        "progress",
        "system",
        "file-history-snapshot",
        "queue-operation",
        "summary",
        "pr-link",
        "attachment",
        "ai-title",
        "custom-title",
        "last-prompt",
    }
)
_TITLES = ("custom-title", "ai-title", "summary")
_MEDIA = frozenset({"image", "document", "container_upload", "file"})
_GROWING = 64
"""How many messages are expected to grow at a time."""

_Key: TypeAlias = tuple[str | None, str | None]


@record
class _Message:
    """One record's message, taken apart."""

    texts: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    results: list[Turn] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    @property
    def speaks(self) -> bool:
        """Return whether there is anything beside tool results."""
        return bool(self.texts or self.thinking or self.calls or self.attachments)


_BESIDE: Mapping[str, str] = {
    "summary": "leafUuid",
    "file-history-snapshot": "snapshot",
    "queue-operation": "operation",
}
"""Kinds of records beside the chain of a session, each with a key that it has."""


@record
class ClaudeCode:
    """The reader of Claude Code sessions."""

    name: str = _NAME
    title: str = "a Claude Code session"

    def claims(self, value: Json | Prose) -> int:
        """Return 3 for a record in the chain of a session, 1 for one beside it."""
        if isinstance(value, list):
            return sum([self.claims(item) for item in value if isinstance(item, dict)])
        if not isinstance(value, dict):
            return 0
        if "parentUuid" in value and "sessionId" in value:
            return 3
        kind = value.get("type")
        if kind in ("user", "assistant"):
            return 3 if isinstance(value.get("message"), dict) and "uuid" in value else 0
        return 1 if isinstance(kind, str) and _BESIDE.get(kind, "\0") in value else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield a conversation for each session and each sub-agent, in the order they begin in the file."""
        session = _Sessions(warn)
        for found in records:
            for value in found.value if isinstance(found.value, list) else (found.value,):
                session.take(value, found.line)
        yield from session.finished()


CLAUDE_CODE = ClaudeCode()


class _Sessions:
    """Conversations that grow record by record."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._drafts: dict[_Key, Draft] = {}
        self._seen: set[tuple[str | None, str]] = set()
        self._places: dict[tuple[_Key, str], int] = {}
        self._merged: dict[tuple[_Key, int], _Message] = {}
        self._sides: dict[str, str] = {}
        self._origins: dict[str, str | None] = {}
        self._links: dict[str, str | None] = {}
        self._titles: list[tuple[str, str | None, str]] = []
        self._unknown: dict[str, list[int | None]] = {}

    def take(self, value: Json | Prose, line: int | None) -> None:
        """Add one record."""
        if not isinstance(value, dict):
            what = "text" if isinstance(value, Prose) else shown(value)
            self._tell(line, f"skipped what is no record: {what}")
            return
        kind = text_or_none(value.get("type"))
        if value.get("isSidechain") is True:
            self._descend(value)
        if kind in _SILENT or value.get("isMeta") is True:
            self._pass_over(value)
        elif kind not in _SPOKEN:
            self._pass_over(value)
            self._unknown.setdefault(shown(kind), []).append(line)
        elif kind == "assistant" or self._is_new(value):
            message = value.get("message")
            if isinstance(message, dict) and isinstance(message.get("content"), (str, list)):
                self._add(value, message, line)
            else:
                self._tell(line, f"skipped a record of type {kind} whose message has no content")

    def finished(self) -> Iterator[Conversation]:
        """Yield the conversations, with parents and titles that only the whole file tells."""
        for kind, lines in self._unknown.items():
            self._tell(lines[0], f"skipped {len(lines)} records of type {kind}, which is not known")
        for (session, _), draft in self._drafts.items():
            if draft.turns:
                found = replace(draft, title=self._title(session)).finished(self._warn)
                yield replace(found, turns=changed(found.turns, self._linked))

    def _tell(self, line: int | None, message: str) -> None:
        self._warn(Warned(line=line, message=message))

    def _is_new(self, value: Mapping[str, Json]) -> bool:
        # A record that was glued to another one is often written a second time further on.
        uuid = text_or_none(value.get("uuid"))
        return uuid is None or (_session(value), uuid) not in self._seen

    def _pass_over(self, value: Mapping[str, Json]) -> None:
        """Remember where a skipped record stands in the chain, and the title it may give."""
        kind = value.get("type")
        uuid = text_or_none(value.get("uuid"))
        if uuid is not None:
            self._links.setdefault(uuid, first_text(value, "logicalParentUuid", "parentUuid"))
        title = first_text(value, "customTitle", "aiTitle", "title", "summary")
        if isinstance(kind, str) and kind in _TITLES and title is not None:
            self._titles.append((kind, first_text(value, "sessionId", "leafUuid"), title))

    def _descend(self, value: Mapping[str, Json]) -> None:
        """Remember the first record of the sub-agent that a record belongs to, where it has no id of its own."""
        uuid = text_or_none(value.get("uuid"))
        if uuid is not None and "parentUuid" in value:
            parent = text_or_none(value.get("parentUuid"))
            self._sides.setdefault(uuid, self._sides.get(parent, uuid) if parent is not None else uuid)

    def _key(self, value: Mapping[str, Json]) -> _Key:
        if value.get("isSidechain") is not True:
            return _session(value), None
        agent = text_or_none(value.get("agentId"))
        if agent is not None:
            return _session(value), f"agent-{agent}"
        uuid = text_or_none(value.get("uuid"))
        return _session(value), f"sidechain-{self._sides[uuid]}" if uuid in self._sides else "sidechain"

    def _add(self, value: Mapping[str, Json], message: Mapping[str, Json], line: int | None) -> None:
        uuid = text_or_none(value.get("uuid"))
        again = not self._is_new(value)
        if uuid is not None:
            self._seen.add((_session(value), uuid))
        key = self._key(value)
        draft = self._drafts.setdefault(key, Draft(format=_NAME, session=_label(key)))
        parts = _parts(_blocks(message))
        said = _turn(value, message, parts)
        if uuid is not None:
            self._origins[uuid] = said.origin
        if value.get("type") == "assistant" and not self._merge(draft, key, said, parts, line, again=again):
            return
        for doubt in (*_doubts(message, parts, said), *parts.doubts):
            self._tell(line, doubt)
        for result in parts.results:
            draft.add(replace(result, at=said.at, at_text=said.at_text, origin=said.origin, parent=said.parent), line)
        if value.get("type") == "user" and (parts.speaks or not parts.results):
            draft.add(said, line)

    def _merge(self, draft: Draft, key: _Key, said: Turn, parts: _Message, line: int | None, *, again: bool) -> bool:
        """Add an assistant's blocks to the message they belong to, and return whether the record is a new one.

        A block that is there already is not repeated; one that grew takes the place of what it grew from.
        """
        index = self._places.get((key, said.origin)) if said.origin is not None else None
        if index is None:
            if again:
                return False
            index = draft.add(said, line)
            if said.origin is not None:
                self._places[key, said.origin] = index
                self._remember(key, index, parts)
            return True
        known = self._merged.get((key, index))
        there = _whole(draft.turns[index]) if known is None else known
        _grow(there.texts, parts.texts, again=again, joined=known is None)
        _grow(there.thinking, parts.thinking, again=again, joined=known is None)
        for made in parts.calls:
            _replace_call(there.calls, made)
        if not again:
            there.attachments.extend(parts.attachments)
        draft.turns[index] = replace(
            draft.turns[index],
            content="\n".join(there.texts),
            thinking="\n".join(there.thinking) or None,
            tool_calls=tuple(there.calls),
            attachments=tuple(there.attachments),
        )
        if known is not None:
            self._remember(key, index, known)
        return not again

    def _remember(self, key: _Key, index: int, parts: _Message) -> None:
        """Keep the blocks of a message while it may grow: those of all messages would be the whole session."""
        self._merged.pop((key, index), None)
        self._merged[key, index] = parts
        if len(self._merged) > _GROWING:
            del self._merged[next(iter(self._merged))]

    def _linked(self, _: int, turn: Turn) -> Turn:
        parent = self._origin(turn.parent)
        return turn if parent == turn.parent else replace(turn, parent=parent)

    def _origin(self, uuid: str | None) -> str | None:
        """Return the id of the message a record answers, past skipped records; outside the file it stays as it is."""
        passed: set[str] = set()
        while uuid is not None and uuid not in self._origins and uuid in self._links and uuid not in passed:
            passed.add(uuid)
            uuid = self._links[uuid]
        return None if uuid in passed else self._origins.get(uuid, uuid) if uuid is not None else None

    def _title(self, session: str | None) -> str | None:
        """Return the last title given to the session; a summary counts only for a message of it."""
        for wanted in _TITLES:
            for kind, whose, title in reversed(self._titles):
                if kind == wanted and whose is not None and (whose == session or (session, whose) in self._seen):
                    return title
        return None


def _session(value: Mapping[str, Json]) -> str | None:
    return first_text(value, "sessionId", "session_id")


def _label(key: _Key) -> str | None:
    session, agent = key
    return session if agent is None else agent if session is None else f"{session}/{agent}"


def _blocks(message: Mapping[str, Json]) -> Json:
    """Return the content of a message; where it fell apart into numbered keys, put together again."""
    content = message.get("content")
    numbered = sorted((key for key in message if key.isdecimal() and key.isascii()), key=lambda key: (len(key), key))
    if content != [] or not numbered:
        return content
    fallen = [message[key] for key in numbered]
    texts = [item for item in fallen if isinstance(item, str)]
    return "".join(texts) if len(texts) == len(fallen) else fallen


def _turn(value: Mapping[str, Json], message: Mapping[str, Json], parts: _Message) -> Turn:
    at, at_text = when(value)
    kind = value.get("type")
    role = Role.ASSISTANT if kind == "assistant" else Role.USER
    name = None
    if value.get("isApiErrorMessage") is True:
        name = "api-error"
    elif value.get("isCompactSummary") is True:
        name = "compact-summary"
    return Turn(
        role=role,
        content="\n".join(parts.texts),
        name=name,
        at=at,
        at_text=at_text,
        origin=(text_or_none(message.get("id")) if kind == "assistant" else None) or text_or_none(value.get("uuid")),
        parent=first_text(value, "logicalParentUuid", "parentUuid"),
        tool_calls=tuple(parts.calls),
        thinking="\n".join(parts.thinking) or None,
        attachments=tuple(parts.attachments),
    )


def _doubts(message: Mapping[str, Json], parts: _Message, said: Turn) -> Iterator[str]:
    if said.name == "api-error":
        yield "an API error that no model wrote; kept with the name api-error"
    if said.name == "compact-summary":
        yield "a summary of what came before; kept with the name compact-summary"
    if not parts.speaks and not parts.results and not isinstance(message.get("content"), str):
        yield "a message without content; kept empty"
    if parts.speaks and message.get("content") == []:
        yield "its content stood under numbers; put together again"
    role = message.get("role")
    if role is not None and (not isinstance(role, str) or ROLES.get(role) is not said.role):
        yield f"its message says the role {shown(role)}; kept as {said.role}"


def _parts(content: Json) -> _Message:
    parts = _Message()
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            parts.texts.append(block)
        elif isinstance(block, dict):
            _block(block, parts)
        else:
            parts.doubts.append(f"skipped what is no block: {shown(block)}")
    return parts


def _block(block: Mapping[str, Json], parts: _Message) -> None:
    kind = text_or_none(block.get("type")) or ""
    if kind == "text":
        parts.texts.append(_text(block.get("text")))
    elif kind == "thinking":
        parts.thinking.append(_text(block.get("thinking")))
    elif kind == "redacted_thinking":
        parts.attachments.append("thinking that was redacted")
    elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        parts.calls.append(call(block.get("id"), block.get("name"), block.get("input")))
    elif kind == "tool_result" or kind.endswith("_tool_result"):
        text, attachments = _result(block.get("content"))
        identity = text_or_none(block.get("tool_use_id"))
        parts.results.append(Turn(role=Role.TOOL, content=text, tool_call_id=identity, attachments=attachments))
    elif kind in _MEDIA:
        parts.attachments.append(_note(kind, block))
    else:
        parts.attachments.append(f"block of type {kind[:40]}")
        parts.doubts.append(f"a block of type {shown(kind)} is not known; noted, not read")


def _result(content: Json) -> tuple[str, tuple[str, ...]]:
    """Return a result's text and the notes of its images; what is neither stays as JSON text."""
    if not isinstance(content, list):
        return _text(content), ()
    texts: list[str] = []
    attachments: list[str] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(part, dict) and isinstance(kind, str) and kind in _MEDIA:
            attachments.append(_note(kind, part))
        elif isinstance(part, dict) and kind == "text":
            texts.append(_text(part.get("text")))
        else:
            texts.append(_text(part))
    return "\n".join(texts), tuple(attachments)


def _note(kind: str, block: Mapping[str, Json]) -> str:
    source = block.get("source")
    if not isinstance(source, dict):
        return kind
    return media(kind, first_text(source, "media_type", "url", "file_id"))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else compact(value)


def _whole(turn: Turn) -> _Message:
    """Return a message of which only the turn is left, each kind of its blocks as one."""
    return _Message(
        texts=[turn.content] if turn.content else [],
        thinking=[turn.thinking] if turn.thinking else [],
        calls=list(turn.tool_calls),
        attachments=list(turn.attachments),
    )


def _grow(there: list[str], texts: list[str], *, again: bool, joined: bool) -> None:
    """Add texts that are not there; one that goes on from what is there replaces it.

    Args:
        again: The record was written before, so what is blank in it is there already.
        joined: What is there is one text, made of all the blocks there were.
    """
    for text in texts:
        if not text.strip():
            there += [] if again or not text else [text]
        elif not any(text == known or (joined and f"\n{text}\n" in f"\n{known}\n") for known in there):
            begun = next((place for place, known in enumerate(there) if known.strip() and text.startswith(known)), None)
            if begun is None:
                there.append(text)
            else:
                there[begun] = text


def _replace_call(there: list[ToolCall], made: ToolCall) -> None:
    """Add a call; one that is there already takes the arguments it has now, unless it lost them."""
    place = next((place for place, known in enumerate(there) if made.id is not None and known.id == made.id), None)
    if place is None:
        there.append(made)
    elif len(made.arguments) > len(there[place].arguments):
        there[place] = made
