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

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import partial
from typing import TypeAlias

from memcli.exchange.loose import Prose, Record
from memcli.exchange.names import NONE, Names
from memcli.exchange.shapes import ROLES, Draft, Warn, call, compact, first_text, media, shown, text_or_none, when
from memcli.exchange.turns import altered, changed
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
_NOWHERE = -2
"""What a record was found to answer that answers nothing."""

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


class _Ids(Names):
    """What is known of every id of a file, by its number: a session may have a million records."""

    def __init__(self) -> None:
        super().__init__(columns=6)
        self.origins, self.links, self.sides, self._seen, self._places, self._place_keys = self.columns
        # What one column has no room for: one id in several sessions.
        self._seen_too: set[tuple[int, int]] = set()
        self._places_too: dict[tuple[int, int], int] = {}

    def of(self, text: str | None) -> int:
        """Return the number of an id, `NONE` of none."""
        return NONE if text is None else self.number(text)

    def see(self, session: int, uuid: int) -> None:
        """Remember that a session has a record."""
        if self._seen[uuid] == NONE:
            self._seen[uuid] = session
        elif self._seen[uuid] != session:
            self._seen_too.add((session, uuid))

    def is_seen(self, session: int, uuid: int) -> bool:
        """Return whether a session has a record."""
        return uuid != NONE and (self._seen[uuid] == session or (session, uuid) in self._seen_too)

    def put(self, key: int, origin: int, index: int) -> None:
        """Remember where a message stands in its conversation."""
        if self._place_keys[origin] in (NONE, key):
            self._place_keys[origin], self._places[origin] = key, index
        else:
            self._places_too[key, origin] = index

    def place(self, key: int, origin: int) -> int | None:
        """Return where a message stands in its conversation."""
        if origin == NONE:
            return None
        return self._places[origin] if self._place_keys[origin] == key else self._places_too.get((key, origin))

    def origin(self, uuid: int) -> int:
        """Return the message that a record answers, past skipped records; outside the file the id stays as it is."""
        passed: set[int] = set()
        while uuid >= 0 and self.origins[uuid] == NONE and self.links[uuid] != NONE and uuid not in passed:
            passed.add(uuid)
            uuid = self.links[uuid]
        if uuid < 0 or uuid in passed:
            return NONE
        found = self.origins[uuid]
        return uuid if found == NONE else found

    def settle(self) -> None:
        """Forget what only those ask who read on."""
        super().settle()
        for column in (self.sides, self._seen, self._places, self._place_keys):
            del column[:]
        self._seen_too.clear()
        self._places_too.clear()


class _Grown:
    """A conversation while it grows, with the record that each of its turns answers."""

    def __init__(self, key: _Key, number: int) -> None:
        self.number = number
        self.draft = Draft(format=_NAME, session=_label(key))
        self.parents = array("i")

    def add(self, turn: Turn, line: int | None, parent: int) -> int:
        """Add a turn and return its index."""
        self.parents.append(parent)
        return self.draft.add(turn, line)


class _Sessions:
    """Conversations that grow record by record."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._talks: dict[_Key, _Grown] = {}
        self._sessions: dict[str | None, int] = {}
        self._ids = _Ids()
        self._merged: dict[tuple[int, int], _Message] = {}
        self._titles: list[tuple[str, str | None, str]] = []
        self._unknown: dict[str, tuple[int | None, int]] = {}

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
            first, count = self._unknown.get(shown(kind), (line, 0))
            self._unknown[shown(kind)] = first, count + 1
        else:
            self._hear(value, kind, line)

    def finished(self) -> Iterator[Conversation]:
        """Yield the conversations, with parents and titles that only the whole file tells."""
        for kind, (line, count) in self._unknown.items():
            self._tell(line, f"skipped {count} records of type {kind}, which is not known")
        titles = [self._title(session) for session, _ in self._talks]
        self._merged.clear()
        self._ids.settle()
        for talk, title in zip(self._talks.values(), titles, strict=True):
            if talk.draft.turns:
                found = replace(talk.draft, title=title).finished(self._warn)
                yield replace(found, turns=changed(found.turns, partial(self._linked, talk.parents)))

    def _tell(self, line: int | None, message: str) -> None:
        self._warn(Warned(line=line, message=message))

    def _number(self, session: str | None) -> int:
        return self._sessions.setdefault(session, len(self._sessions))

    def _hear(self, value: Mapping[str, Json], kind: str, line: int | None) -> None:
        """Add a record of something said."""
        uuid = self._ids.of(text_or_none(value.get("uuid")))
        # A record that was glued to another one is often written a second time further on.
        again = self._ids.is_seen(self._number(_session(value)), uuid)
        if again and kind == "user":
            return
        message = value.get("message")
        if isinstance(message, dict) and isinstance(message.get("content"), (str, list)):
            self._add(value, message, line, uuid, again=again)
        else:
            self._tell(line, f"skipped a record of type {kind} whose message has no content")

    def _pass_over(self, value: Mapping[str, Json]) -> None:
        """Remember where a skipped record stands in the chain, and the title it may give."""
        kind = value.get("type")
        uuid = self._ids.of(text_or_none(value.get("uuid")))
        if uuid != NONE and self._ids.links[uuid] == NONE:
            parent = self._ids.of(first_text(value, "logicalParentUuid", "parentUuid"))
            self._ids.links[uuid] = _NOWHERE if parent == NONE else parent
        title = first_text(value, "customTitle", "aiTitle", "title", "summary")
        if isinstance(kind, str) and kind in _TITLES and title is not None:
            self._titles.append((kind, first_text(value, "sessionId", "leafUuid"), title))

    def _descend(self, value: Mapping[str, Json]) -> None:
        """Remember the first record of the sub-agent that a record belongs to, where it has no id of its own."""
        uuid = self._ids.of(text_or_none(value.get("uuid")))
        if uuid != NONE and "parentUuid" in value and self._ids.sides[uuid] == NONE:
            parent = self._ids.of(text_or_none(value.get("parentUuid")))
            above = NONE if parent == NONE else self._ids.sides[parent]
            self._ids.sides[uuid] = uuid if above == NONE else above

    def _key(self, value: Mapping[str, Json], session: str | None, uuid: int) -> _Key:
        if value.get("isSidechain") is not True:
            return session, None
        agent = text_or_none(value.get("agentId"))
        if agent is not None:
            return session, f"agent-{agent}"
        side = NONE if uuid == NONE else self._ids.sides[uuid]
        return session, "sidechain" if side == NONE else f"sidechain-{self._ids[side]}"

    def _add(
        self, value: Mapping[str, Json], message: Mapping[str, Json], line: int | None, uuid: int, *, again: bool
    ) -> None:
        session = _session(value)
        key = self._key(value, session, uuid)
        talk = self._talks.get(key)
        if talk is None:
            talk = self._talks[key] = _Grown(key, len(self._talks))
        parts = _parts(_blocks(message))
        said = _turn(value, message, parts)
        origin, parent = self._ids.of(said.origin), self._ids.of(said.parent)
        if uuid != NONE:
            self._ids.see(self._number(session), uuid)
            self._ids.origins[uuid] = origin
        if value.get("type") == "assistant" and not self._merge(talk, (said, origin, parent), parts, line, again=again):
            return
        for doubt in (*_doubts(message, parts, said), *parts.doubts):
            self._tell(line, doubt)
        for result in parts.results:
            answer = altered(result, at=said.at, at_text=said.at_text, origin=said.origin, parent=said.parent)
            talk.add(answer, line, parent)
        if value.get("type") == "user" and (parts.speaks or not parts.results):
            talk.add(said, line, parent)

    def _merge(
        self, talk: _Grown, found: tuple[Turn, int, int], parts: _Message, line: int | None, *, again: bool
    ) -> bool:
        """Add an assistant's blocks to the message they belong to, and return whether the record is a new one.

        A block that is there already is not repeated; one that grew takes the place of what it grew from.

        Args:
            found: The record's own turn, and the numbers of its message and of the record it answers.
        """
        said, origin, parent = found
        index = self._ids.place(talk.number, origin)
        if index is None:
            if again:
                return False
            index = talk.add(said, line, parent)
            if origin != NONE:
                self._ids.put(talk.number, origin, index)
                self._remember(talk.number, index, parts)
            return True
        turns = talk.draft.turns
        known = self._merged.get((talk.number, index))
        there = _whole(turns[index]) if known is None else known
        _grow(there.texts, parts.texts, again=again, joined=known is None)
        _grow(there.thinking, parts.thinking, again=again, joined=known is None)
        for made in parts.calls:
            _replace_call(there.calls, made)
        if not again:
            there.attachments.extend(parts.attachments)
        turns[index] = altered(
            turns[index],
            content="\n".join(there.texts),
            thinking="\n".join(there.thinking) or None,
            tool_calls=tuple(there.calls),
            attachments=tuple(there.attachments),
        )
        if known is not None:
            self._remember(talk.number, index, known)
        return not again

    def _remember(self, talk: int, index: int, parts: _Message) -> None:
        """Keep the blocks of a message while it may grow: those of all messages would be the whole session."""
        self._merged.pop((talk, index), None)
        self._merged[talk, index] = parts
        if len(self._merged) > _GROWING:
            del self._merged[next(iter(self._merged))]

    def _linked(self, parents: "array[int]", index: int, turn: Turn) -> Turn:
        parent = parents[index]
        origin = self._ids.origin(parent)
        if origin == parent:
            return turn
        return altered(turn, parent=None if origin == NONE else self._ids[origin])

    def _title(self, session: str | None) -> str | None:
        """Return the last title given to the session; a summary counts only for a message of it."""
        for wanted in _TITLES:
            for kind, whose, title in reversed(self._titles):
                if kind == wanted and whose is not None and self._is_of(session, whose):
                    return title
        return None

    def _is_of(self, session: str | None, whose: str) -> bool:
        return whose == session or self._ids.is_seen(self._number(session), self._ids.find(whose))


def _session(value: Mapping[str, Json]) -> str | None:
    return first_text(value, "sessionId", "session_id")


def _label(key: _Key) -> str | None:
    session, agent = key
    return session if agent is None else agent if session is None else f"{session}/{agent}"


def _blocks(message: Mapping[str, Json]) -> Json:
    """Return the content of a message; where it fell apart into numbered keys, put together again."""
    content = message.get("content")
    if content != []:
        return content
    numbered = sorted((key for key in message if key.isdecimal() and key.isascii()), key=lambda key: (len(key), key))
    if not numbered:
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
