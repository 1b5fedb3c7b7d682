"""Sessions of the coding agent pi: JSON Lines, a head and then one entry for each message, change or compaction.

- Entries of newer versions form a tree; all of it was said, so the order is that of the file, with parents as links.
- An entry has an ISO time and its message one in milliseconds; the entry's is taken where both are there.
- A command that the user ran (`bashExecution`) is the user's message. What an extension wrote is named after it.
- A compaction changed what the model saw, not what was said: it is told, and so is the summary of a branch.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from memcli.exchange.loose import Prose, Record
from memcli.exchange.shapes import ROLES, Draft, Warn, call, compact, first_text, media, shown, text_or_none, when
from memcli.exchange.turns import changed
from memcli.facts import Conversation, Json, ToolCall, Turn, Warned
from memcli.record import record
from memcli.terms import Role

_NAME = "pi"
_ASIDE = frozenset({"model_change", "thinking_level_change", "label", "custom", "session_info", "session_state"})
_SUMMARIES = frozenset({"compaction", "branch_summary"})
_WRITTEN = frozenset({"custom", "hookMessage", "branchSummary", "compactionSummary"})


@record
class _Parts:
    """What the content of one message comes to."""

    texts: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


@record
class Pi:
    """The reader of pi sessions."""

    name: str = _NAME
    title: str = "a pi session"

    def claims(self, value: Json | Prose) -> int:
        """Return 3 for the head of a session or one of its messages, 1 for an entry beside them."""
        if isinstance(value, list):
            return sum([self.claims(item) for item in value if isinstance(item, dict)])
        if not isinstance(value, dict) or "uuid" in value or "sessionId" in value:
            return 0
        kind = value.get("type")
        message = value.get("message")
        if kind == "message":
            return 3 if isinstance(message, dict) and isinstance(message.get("role"), str) else 0
        if kind == "session":
            return 3 if "cwd" in value and "id" in value else 0
        beside = isinstance(kind, str) and kind in _ASIDE | _SUMMARIES | {"custom_message"}
        return 1 if beside and "timestamp" in value else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield a conversation for each head, in the order of the file."""
        session = _Session(warn)
        for found in records:
            for value in found.value if isinstance(found.value, list) else (found.value,):
                yield from session.take(value, found.line)
        yield from session.finished()


PI = Pi()


class _Session:
    """One session that grows entry by entry."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._draft = Draft(format=_NAME)
        self._links: dict[str, str | None] = {}
        self._unknown: dict[str, list[int | None]] = {}

    def take(self, value: Json | Prose, line: int | None) -> Iterator[Conversation]:
        """Add one entry; yield the session before it where it begins another."""
        if not isinstance(value, dict):
            what = "text" if isinstance(value, Prose) else shown(value)
            self._tell(line, f"skipped what is no entry: {what}")
            return
        kind = text_or_none(value.get("type"))
        message = value.get("message")
        if kind == "session":
            yield from self._begin(value)
        elif kind == "message" and isinstance(message, dict):
            self._message(message, value, line)
        elif kind == "custom_message":
            self._message({"role": "custom", **value}, value, line)
        elif kind == "message":
            self._tell(line, f"skipped an entry whose message is {shown(message)}")
        else:
            self._pass_over(kind, value, line)

    def finished(self) -> Iterator[Conversation]:
        """Yield the session, if anything was said in it."""
        for kind, lines in self._unknown.items():
            self._tell(lines[0], f"skipped {len(lines)} entries of type {kind}, which is not known")
        if self._draft.turns:
            links = self._links
            found = self._draft.finished(self._warn)
            yield replace(found, turns=changed(found.turns, lambda _, turn: _linked(turn, links)))
        self._draft = Draft(format=_NAME)
        self._links = {}
        self._unknown.clear()

    def _tell(self, line: int | None, message: str) -> None:
        self._warn(Warned(line=line, message=message))

    def _begin(self, head: Mapping[str, Json]) -> Iterator[Conversation]:
        session = text_or_none(head.get("id"))
        if self._draft.turns and session != self._draft.session:
            yield from self.finished()
        self._draft = replace(self._draft, session=session)

    def _pass_over(self, kind: str | None, value: Mapping[str, Json], line: int | None) -> None:
        """Remember where an entry that is no message stands in the tree, and tell what it changed."""
        identity = text_or_none(value.get("id"))
        if identity is not None:
            self._links[identity] = text_or_none(value.get("parentId"))
        name = text_or_none(value.get("name")) if kind == "session_info" else None
        if name is not None:
            self._draft = replace(self._draft, title=name)
        if kind == "compaction":
            tokens = shown(value.get("tokensBefore"))
            summary = shown(value.get("summary"))
            self._tell(line, f"the context of {tokens} tokens was compacted here to {summary}; what was said is kept")
        elif kind == "branch_summary":
            summary = shown(value.get("summary"))
            self._tell(line, f"another branch was left here, with the summary {summary}; what was said is kept")
        elif kind not in _ASIDE:
            self._unknown.setdefault(shown(kind), []).append(line)

    def _message(self, message: Mapping[str, Json], value: Mapping[str, Json], line: int | None) -> None:
        raw = message.get("role")
        kind = raw if isinstance(raw, str) else ""
        if kind == "bashExecution":
            parts = _Parts(texts=[f"$ {_text(message.get('command'))}\n{_text(message.get('output'))}"])
        else:
            parts = _parts(message.get("content", message.get("summary")))
        role = _role(kind)
        if role is None:
            parts.doubts.append(f"the role {shown(raw)} is not known; kept as unknown")
        at, at_text = when(value)
        if at is None and at_text is None:
            at, at_text = when(message)
        turn = Turn(
            role=role or Role.UNKNOWN,
            content="\n".join(parts.texts),
            name=_name(kind, message),
            at=at,
            at_text=at_text,
            origin=text_or_none(value.get("id")),
            parent=text_or_none(value.get("parentId")),
            tool_calls=tuple(parts.calls),
            tool_call_id=text_or_none(message.get("toolCallId")) if role is Role.TOOL else None,
            thinking="\n".join(parts.thinking) or None,
            attachments=tuple(parts.attachments),
            raw_role=kind if role is None and kind else None,
            extra=_extra(message),
        )
        said = parts.texts or parts.calls or parts.thinking or parts.attachments
        if not said and role is not Role.TOOL:
            stop = text_or_none(message.get("stopReason"))
            parts.doubts.append(f"a message without content{f', {stop}' if stop else ''}; kept empty")
        self._draft.add(turn, line)
        for doubt in parts.doubts:
            self._tell(line, doubt)


def _linked(turn: Turn, links: Mapping[str, str | None]) -> Turn:
    """Return the message with the one that it follows, past entries that are none."""
    identity = turn.parent
    passed: set[str] = set()
    while identity is not None and identity in links and identity not in passed:
        passed.add(identity)
        identity = links[identity]
    return turn if identity == turn.parent else replace(turn, parent=None if identity in passed else identity)


def _role(kind: str) -> Role | None:
    # What pi itself hands to the model as the user's: a command that was run, and what extensions wrote.
    if kind == "bashExecution" or kind in _WRITTEN:
        return Role.USER
    return ROLES.get(kind.strip().casefold())


def _name(kind: str, message: Mapping[str, Json]) -> str | None:
    """Return the tool a result is of, or what wrote a message that its role did not."""
    if kind in _WRITTEN:
        return first_text(message, "customType") or kind
    return kind if kind == "bashExecution" else text_or_none(message.get("toolName"))


def _extra(message: Mapping[str, Json]) -> tuple[tuple[str, str], ...]:
    found = []
    if message.get("stopReason") in ("aborted", "error", "length"):
        found.append(("stop_reason", text_or_none(message.get("stopReason"))))
        found.append(("error", text_or_none(message.get("errorMessage"))))
    found.append(("exit_code", text_or_none(message.get("exitCode"))))
    found += [(key, "true") for key in ("cancelled", "truncated", "isError") if message.get(key) is True]
    if message.get("excludeFromContext") is True:
        found.append(("exclude_from_context", "true"))
    return tuple((name, word) for name, word in found if word is not None)


def _parts(content: Json) -> _Parts:
    parts = _Parts()
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            parts.texts.append(block)
        elif isinstance(block, dict):
            _block(block, parts)
        elif block is not None:
            parts.doubts.append(f"skipped what is no block: {shown(block)}")
    return parts


def _block(block: Mapping[str, Json], parts: _Parts) -> None:
    kind = text_or_none(block.get("type")) or ""
    if kind == "text":
        parts.texts.append(_text(block.get("text")))
    elif kind == "thinking":
        if block.get("redacted") is True:
            parts.attachments.append("thinking that was redacted")
        else:
            parts.thinking.append(_text(block.get("thinking")))
    elif kind == "toolCall":
        parts.calls.append(call(block.get("id"), block.get("name"), block.get("arguments")))
    elif kind == "image":
        parts.attachments.append(media(kind, first_text(block, "mimeType", "url")))
    else:
        parts.attachments.append(f"block of type {kind[:40]}")
        parts.doubts.append(f"a block of type {shown(kind)} is not known; noted, not read")


def _text(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else compact(value)
