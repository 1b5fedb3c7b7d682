"""Letta agent files (`.af`): the messages of each agent, and the memory blocks as things remembered.

- Each agent is a conversation, in the order of the file. Messages that were no longer in its context are marked. A
  result stands both in the content and in `tool_returns`; it is taken once, one tool message for each call.
- A user's words lie in an envelope of JSON, which is opened; events such as heartbeats stay as they are, named.
- Each line of a block is one thing remembered, or each sentence of it, with the label in front. A line that ends in
  a colon, and a Markdown heading, go in front of the lines below. Placeholders of the template are told, not taken.
- The older layout with `core_memory` is read as well. Tools, files and variables are no memory and stay behind.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from memcli.exchange.loose import Prose, Record
from memcli.exchange.memories.fields import extras, moment, words
from memcli.exchange.memories.sentences import sentences
from memcli.exchange.shapes import SURE, Draft, Warn, call, first_text, shown, text_or_none, when
from memcli.exchange.transcripts.columns import document
from memcli.exchange.transcripts.parts import Parts
from memcli.facts import Found, Json, Remembered, Turn, Warned
from memcli.record import record
from memcli.terms import Role

_NAME = "letta"
_BLOCK = frozenset({"id", "label", "value", "created_at", "updated_at", "metadata", "metadata_", "is_template"})
_SAID = frozenset(
    {"type", "role", "content", "name", "id", "otid", "agent_id", "tool_calls", "tool_call_id", "tool_returns"}
    | {"created_at", "updated_at", "date", "model", "text"}
)
_ENVELOPE = frozenset({"type", "message", "time", "name", "location", "local_time"})
_EVENTS = frozenset({"heartbeat", "login", "system_alert", "bootup", "system_message", "summary"})
_LEFT = ("tools", "files", "sources", "groups", "mcp_servers", "skills")
_SECRETS = ("tool_exec_environment_variables", "secrets")

_NOTHING = re.compile(
    r"[\[(<{]{0,2}\s*(?:\?+|-+|_+|\.{2,}|…|n/?a|tbd|tba|todo|none|null|nil|empty|unknown|unspecified|"
    r"not (?:yet )?(?:known|specified|provided|available|set|given|sure)(?: yet)?|nothing(?: yet)?|no \w+ yet|"
    r"(?:to be|needs? to be|should be|please) (?:filled|fill|determined|decided|completed|updated|learned|added)[^.]*|"
    r"(?:fill|insert|enter|add|your|user'?s?) [^\])>}]{0,40}[\])>}]+|placeholder)\s*[\])>}]{0,2}[.!]?",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(
    r"\{\{[^{}]*\}\}|to be filled (?:out|in)|should expand this as i learn|starter persona|"
    r"^(?:this is )?(?:my|a) section of core memory devoted to",
    re.IGNORECASE,
)
_BULLET = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s+")
_MARKUP = re.compile(r"</?[\w:-]+\s*/?>|[-=*_#]{3,}|```\w*")
_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*")


@record
class Letta:
    """The reader of Letta agent files."""

    name: str = _NAME
    title: str = "a Letta agent file"

    def claims(self, value: Json | Prose) -> int:
        """Return certainty for an agent file of either layout."""
        if isinstance(value, list):
            return SURE if value and all(self.claims(item) for item in value) else 0
        if not isinstance(value, dict):
            return 0
        agents, blocks = value.get("agents"), value.get("blocks")
        if isinstance(agents, list) and isinstance(blocks, list):
            return SURE
        return SURE if _is_agent(value) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Found]:
        """Yield the conversation of each agent, then what each block remembers, in the order of the file."""
        for found in records:
            for value in found.value if isinstance(found.value, list) else [found.value]:
                if isinstance(value, dict):
                    yield from _File(value, found.line, warn).found()
                else:
                    what = "text" if isinstance(value, Prose) else shown(value)
                    warn(Warned(line=found.line, message=f"skipped what is no agent file: {what}"))


LETTA = Letta()


def _is_agent(value: Mapping[str, Json]) -> bool:
    """Return whether this is one agent: the older file, or the state that the server gives."""
    blocks = _own_blocks(value)
    labelled = any(isinstance(block, dict) and "label" in block and "value" in block for block in blocks)
    return labelled and ("messages" in value or "agent_type" in value or "llm_config" in value)


def _own_blocks(agent: Mapping[str, Json]) -> list[Json]:
    """Return the blocks that stand inside an agent."""
    memory = agent.get("memory")
    inside = memory.get("blocks", memory.get("memory")) if isinstance(memory, dict) else None
    found: list[Json] = []
    for blocks in (agent.get("core_memory"), agent.get("memory_blocks"), inside):
        if isinstance(blocks, dict):
            found += [{"label": label, **item} for label, item in blocks.items() if isinstance(item, dict)]
        elif isinstance(blocks, list):
            found += blocks
    return found


class _File:
    """One agent file while it is gone through."""

    def __init__(self, value: Mapping[str, Json], line: int | None, warn: Warn) -> None:
        self._value = value
        self._line = line
        self._warn = warn
        agents = value.get("agents")
        self._agents: list[Json] = agents if isinstance(agents, list) else [dict(value)]

    def found(self) -> Iterator[Found]:
        """Yield its conversations and what its blocks remember, and tell what stays behind."""
        owners: dict[str, list[str]] = {}
        inner: list[tuple[Json, str | None]] = []
        for number, agent in enumerate(self._agents, start=1):
            if not isinstance(agent, dict):
                self._tell(f"agent {number}: skipped what is no agent: {shown(agent)}")
                continue
            name = first_text(agent, "name", "id")
            yield from self._conversation(agent, name)
            ids = agent.get("block_ids")
            for identity in ids if isinstance(ids, list) else []:
                owners.setdefault(shown(identity), []).append(name or f"agent {number}")
            inner += [(block, name) for block in _own_blocks(agent)]
        blocks = self._value.get("blocks")
        for block in blocks if isinstance(blocks, list) else []:
            whose = owners.get(shown(block.get("id")), []) if isinstance(block, dict) else []
            inner.append((block, whose[0] if len(whose) == 1 else None))
        for block, owner in inner:
            yield from self._block(block, owner)
        self._left_behind()

    def _tell(self, message: str) -> None:
        self._warn(Warned(line=self._line, message=message))

    # ---------------------------------------------------------------- messages

    def _conversation(self, agent: Mapping[str, Json], name: str | None) -> Iterator[Found]:
        messages = agent.get("messages")
        if messages is not None and not isinstance(messages, list):
            self._tell(f"the messages of {shown(name)} are no list: {shown(messages)}")
        listed = messages if isinstance(messages, list) else []
        context = _context(agent, listed)
        draft = Draft(format=_NAME, session=text_or_none(agent.get("id")) or name, title=name)
        for number, message in enumerate(listed):
            if isinstance(message, dict):
                self._message(message, draft, context is None or number in context)
            else:
                self._tell(f"message {number + 1}: skipped what is no message: {shown(message)}")
        if not draft.turns:
            return
        archived = sum(1 for turn in draft.turns if ("status", "archived") in turn.extra)
        if archived:
            what = f"{archived} of {len(draft.turns)} messages of {shown(name)} are out of its context"
            self._tell(f"{what}; kept in their place with the status archived")
        yield draft.finished(self._warn)

    def _message(self, message: Mapping[str, Json], draft: Draft, in_context: bool) -> None:
        parts = Parts()
        returns: list[tuple[str | None, str]] = []
        _content(message, parts, returns)
        role, raw_role = _role(message, parts)
        at, at_text = when(message)
        name = text_or_none(message.get("name"))
        if role is Role.USER:
            name = _opened(parts) or name
        parts.besides(message, _SAID)
        if not in_context:
            parts.extra.append(("status", "archived"))
        turn = Turn(
            role=role,
            content="",
            name=name,
            at=at,
            at_text=at_text,
            origin=text_or_none(message.get("id")),
            tool_call_id=text_or_none(message.get("tool_call_id")),
            raw_role=raw_role,
        )
        if role is Role.TOOL:
            self._results(message, parts, returns, turn, draft)
        else:
            for _, text in returns:
                parts.text(text)
            parts.place(turn, draft, self._line, self._warn)

    def _results(
        self, message: Mapping[str, Json], parts: Parts, returns: list[tuple[str | None, str]], turn: Turn, draft: Draft
    ) -> None:
        """Add one tool message for each call that was answered, in the words of the content where they are there."""
        copies = message.get("tool_returns")
        answers = [item for item in copies if isinstance(item, dict)] if isinstance(copies, list) else []
        if not returns:
            texts = parts.texts if len(parts.texts) == len(answers) or len(answers) < 2 else []
            said = "\n".join(parts.texts)
            for place, item in enumerate(answers):
                response = words(item.get("func_response", item.get("tool_return", "")) or "")
                text = (said if len(answers) == 1 else texts[place] if texts else "") or response
                returns.append((text_or_none(item.get("tool_call_id")), text))
        if len(returns) < 2:
            identity = turn.tool_call_id or (returns[0][0] if returns else None)
            parts.texts[:] = [returns[0][1]] if returns else parts.texts
            self._answer(turn, identity, parts, answers, draft)
            return
        for identity, text in returns:
            one = Parts(texts=[text], attachments=parts.attachments, extra=parts.extra, doubts=parts.doubts)
            self._answer(turn, identity, one, answers, draft)

    def _answer(
        self, turn: Turn, identity: str | None, parts: Parts, answers: Sequence[Mapping[str, Json]], draft: Draft
    ) -> None:
        mine = [item for item in answers if len(answers) == 1 or text_or_none(item.get("tool_call_id")) == identity]
        for item in mine[:1]:
            if item.get("status") not in (None, "success"):
                parts.extra.append(("tool_status", words(item["status"])))
            parts.besides(item, frozenset({"tool_call_id", "status", "func_response", "tool_return", "type"}))
        placed = Turn(
            role=turn.role,
            content="",
            name=turn.name,
            at=turn.at,
            at_text=turn.at_text,
            origin=turn.origin,
            tool_call_id=identity,
            extra=turn.extra,
        )
        parts.place(placed, draft, self._line, self._warn)

    # ---------------------------------------------------------------- memory blocks

    def _block(self, block: Json, owner: str | None) -> Iterator[Remembered]:
        source = block if isinstance(block, dict) else {}
        label, value = text_or_none(source.get("label")), source.get("value")
        if not isinstance(value, str):
            self._tell(f"skipped a block without text: {shown(block)}")
            return
        lines = _Lines()
        lines.go(value)
        if not lines.taken and not lines.placeholders:
            self._tell(f"the block {shown(label)} is empty")
        for text in lines.placeholders:
            self._tell(f"the block {shown(label)}: not taken, since it only holds a place: {shown(text)}")
        if lines.alone:
            self._tell(
                f"the block {shown(label)}: not taken, since nothing stands under it: {shown('; '.join(lines.alone))}"
            )
        at, at_text = moment(source, "updated_at", "created_at")
        identity = text_or_none(source.get("id"))
        about = label if owner is None or len(self._agents) == 1 else f"{owner} {label or ''}".strip()
        extra = (*((("block", identity),) if identity is not None else ()), *extras(source, _BLOCK))
        for text in lines.taken:
            yield Remembered(
                format=_NAME,
                text=text if about is None else f"{about}: {text}",
                own=None if about is None else text,
                subject=label,
                owner=owner,
                at=at,
                at_text=at_text,
                extra=extra,
                line=self._line,
            )

    def _left_behind(self) -> None:
        """Tell what the file holds besides, in one sentence."""
        counts: dict[str, int] = {}
        for source in (self._value, *(item for item in self._agents if isinstance(item, dict))):
            for key in (*_LEFT, *_SECRETS):
                held = source.get(key)
                if isinstance(held, (list, dict)) and held:
                    name = "environment variables or secrets" if key in _SECRETS else key.replace("_", " ")
                    counts[name] = max(counts.get(name, 0), len(held))
        if counts:
            what = ", ".join(f"{count} {name}" for name, count in counts.items())
            self._tell(f"left behind, since it is no memory and no message: {what}")


def _context(agent: Mapping[str, Json], messages: Sequence[Json]) -> set[int] | None:
    """Return the places of the messages that are in the context; None where the file does not say."""
    ids, places = agent.get("in_context_message_ids"), agent.get("in_context_message_indices")
    if isinstance(ids, list):
        wanted = {shown(identity) for identity in ids}
        return {
            place for place, item in enumerate(messages) if isinstance(item, dict) and shown(item.get("id")) in wanted
        }
    if isinstance(places, list):
        return {place for place in places if isinstance(place, int)}
    return None


def _role(message: Mapping[str, Json], parts: Parts) -> tuple[Role, str | None]:
    spelling = message.get("role")
    if spelling == "approval":  # a call that waits for a person, or what the person said to it
        return (Role.ASSISTANT if parts.calls else Role.USER), "approval"
    return parts.role(spelling)


def _opened(parts: Parts) -> str | None:
    """Open the envelope around a user's words, and return the name of an event that no user said."""
    if len(parts.texts) != 1 or not parts.texts[0].lstrip().startswith("{"):
        return None
    envelope = document(parts.texts[0])
    kind = envelope.get("type") if isinstance(envelope, dict) else None
    if not isinstance(envelope, dict) or not isinstance(kind, str):
        return None
    said = envelope.get("message")
    if kind == "user_message" and isinstance(said, str) and _ENVELOPE.issuperset(envelope):
        parts.texts[:] = [said]
        parts.besides(envelope, frozenset({"type", "message", "name"}), "envelope.")
        return text_or_none(envelope.get("name"))
    return kind if kind in _EVENTS else None


def _content(message: Mapping[str, Json], parts: Parts, returns: list[tuple[str | None, str]]) -> None:
    content = message.get("content", message.get("text"))
    calls = message.get("tool_calls")
    for item in calls if isinstance(calls, list) else []:
        if isinstance(item, dict):
            function = item.get("function")
            inner = function if isinstance(function, dict) else item
            parts.call(call(item.get("id"), inner.get("name"), inner.get("arguments", inner.get("input"))))
        else:
            parts.doubts.append(f"skipped what is no tool call: {shown(item)}")
    if calls is not None and not isinstance(calls, list):
        parts.doubts.append(f"its tool_calls are no list: {shown(calls)}")
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, dict):
            _part(part, parts, returns)
        else:
            parts.text(part)


def _part(part: Mapping[str, Json], parts: Parts, returns: list[tuple[str | None, str]]) -> None:
    kind = text_or_none(part.get("type")) or ""
    if kind in ("text", ""):
        parts.text(part.get("text", None if kind else dict(part)))
    elif kind in ("reasoning", "thinking", "summarized_reasoning"):
        parts.thought(next((part[key] for key in ("reasoning", "thinking", "summary") if key in part), None))
    elif kind in ("redacted_reasoning", "omitted_reasoning"):
        parts.attachments.append(f"thinking that was {kind.partition('_')[0]}")
    elif kind == "tool_call":
        parts.call(call(part.get("id"), part.get("name"), part.get("input")))
    elif kind == "tool_return":
        returns.append((text_or_none(part.get("tool_call_id")), words(part.get("content") or "")))
    elif kind in ("image", "file"):
        source = part.get("source")
        parts.note(kind, source if isinstance(source, dict) else part, "url", "media_type", "file_id", "type")
    else:
        parts.text(part.get("text"))
        parts.attachments.append(f"part of type {kind[:40]}")
        parts.doubts.append(f"a part of type {shown(kind)} is not known; noted, not read")


@record
class _Lines:
    """The text of a block, line by line: what it says, what only holds a place, and headings with nothing below."""

    taken: list[str] = field(default_factory=list)
    placeholders: list[str] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)

    def go(self, value: str) -> None:
        """Go through all of it."""
        heading: str | None = None
        used = True
        for line in value.splitlines():
            text = _BULLET.sub("", line.strip(), count=1) if _BULLET.match(line.strip()) else line.strip()
            ends = not text or _MARKUP.fullmatch(text) is not None
            found = None if ends else _heading(text)
            if ends or found is not None:
                if heading is not None and not used and (found is not None or not text):
                    self.alone.append(heading)
                heading, used = found, False
            elif _is_placeholder(text):
                self.placeholders.append(text)
                used = True
            else:
                self.taken.extend(text if heading is None else f"{heading}: {text}" for text in _sentences(text))
                used = True
        if heading is not None and not used:
            self.alone.append(heading)


def _heading(text: str) -> str | None:
    """Return the words of a line that stands over others."""
    marked = _HEADING.fullmatch(text)
    if marked is not None:
        return marked.group(1).rstrip(": ")
    bare = text.strip("*_ ")
    return bare.rstrip(": ") if bare.endswith(":") and len(bare) > 1 else None


def _is_placeholder(text: str) -> bool:
    value = text.rpartition(": ")[2] if ": " in text else text
    return _NOTHING.fullmatch(value.strip()) is not None or _TEMPLATE.search(text) is not None


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a line; none ends inside a quotation."""
    held = ""
    for piece in sentences(text):
        held = f"{held} {piece}" if held else piece
        if held.count('"') % 2 == 0:
            yield held
            held = ""
    if held:
        yield held
