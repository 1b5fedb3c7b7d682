"""Trajectories of SWE-agent: one object, of which `history` holds the messages and `trajectory` repeats them.

- Only `history` is read; where it is not there, the steps of `trajectory` are all there is, and are read.
- `thought` and `action` stand in the message's text or its calls already. Observations of old files have the role
  `user`, as they had for the model; a demonstration that was shown to the model has the name `demonstration`.
- Agents that worked side by side had contexts of their own: each is a conversation.
- Demonstrations as YAML are refused: there is no reader of YAML here.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from memcli.exchange.loose import Prose, Record
from memcli.exchange.shapes import ROLES, SURE, Draft, Warn, call, compact, first_text, media, shown, text_or_none, when
from memcli.facts import Conversation, Json, ToolCall, Turn, Warned
from memcli.record import record
from memcli.terms import Role

_NAME = "swe-agent"
_YAML = re.compile(r"^history:[ \t]*\r?$(?=[\s\S]*?^[ \t]*(?:- +)?role: *\w)", re.MULTILINE)
_OWN = frozenset({"agent", "message_type", "thought", "action", "is_demo", "tool_call_ids", "thinking_blocks"})


@record
class _Parts:
    """What the content of one message comes to."""

    texts: list[str] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


@record
class SweAgent:
    """The reader of SWE-agent trajectories."""

    name: str = _NAME
    title: str = "a SWE-agent trajectory"

    def claims(self, value: Json | Prose) -> int:
        """Return `SURE` for a trajectory, also for one that is YAML, so that it is refused by name."""
        if isinstance(value, Prose):
            return SURE if _YAML.search(value.text) else 0
        if isinstance(value, list):
            return SURE if any(self.claims(item) for item in value if isinstance(item, dict)) else 0
        if not isinstance(value, dict):
            return 0
        history = _dicts(value.get("history"))
        spoken = [item for item in history if isinstance(item.get("role"), str) and "parts" not in item]
        if spoken and ("trajectory" in value or any(not _OWN.isdisjoint(item) for item in spoken)):
            return SURE
        steps = _dicts(value.get("trajectory"))
        return (
            SURE if not history and any({"action", "observation", "response"} <= step.keys() for step in steps) else 0
        )

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield a conversation for each agent of each trajectory, in the order of the file."""
        for found in records:
            for value in found.value if isinstance(found.value, list) else (found.value,):
                if isinstance(value, Prose):
                    yaml = "it is YAML, which is not read; convert it to JSON"
                    message = yaml if _YAML.search(value.text) else "it is text, not JSON"
                    warn(Warned(line=found.line, message=message))
                elif isinstance(value, dict):
                    yield from _conversations(value, found.line, warn)
                else:
                    warn(Warned(line=found.line, message=f"skipped what is no trajectory: {shown(value)}"))


SWE_AGENT = SweAgent()


def _conversations(value: Mapping[str, Json], line: int | None, warn: Warn) -> Iterator[Conversation]:
    history = value.get("history")
    session = first_text(value, "instance_id", "id")
    drafts: dict[str | None, Draft] = {}
    if not _dicts(history) and _dicts(value.get("trajectory")):
        warn(Warned(line=line, message="there is no history; read the steps of the trajectory instead"))
        drafts[None] = _steps(value["trajectory"], session, line, warn)
    for item in history if isinstance(history, list) else []:
        if not isinstance(item, dict):
            warn(Warned(line=line, message=f"skipped what is no message: {shown(item)}"))
            continue
        agent = text_or_none(item.get("agent"))
        label = f"{session}/{agent}" if session is not None and drafts and agent not in drafts else session
        _message(item, drafts.setdefault(agent, Draft(format=_NAME, session=label)), line, warn)
    for draft in drafts.values():
        if draft.turns:
            yield draft.finished(warn)


def _steps(steps: Json, session: str | None, line: int | None, warn: Warn) -> Draft:
    """Return the steps of a trajectory as messages: what the model answered, and what came of it."""
    draft = Draft(format=_NAME, session=session)
    for step in steps if isinstance(steps, list) else []:
        if not isinstance(step, dict):
            warn(Warned(line=line, message=f"skipped what is no step: {shown(step)}"))
            continue
        answer = step.get("response")
        _message({**step, "role": "assistant", "content": answer or step.get("thought")}, draft, line, warn)
        if step.get("observation") is not None:
            _message({"role": "user", "content": step["observation"]}, draft, line, warn)
    return draft


def _message(item: Mapping[str, Json], draft: Draft, line: int | None, warn: Warn) -> None:
    parts = _content(item.get("content"))
    raw = item.get("role")
    role = ROLES.get(raw.strip().casefold()) if isinstance(raw, str) else None
    if role is None:
        parts.doubts.append(f"the role {shown(raw)} is not known; kept as unknown")
    content = "\n".join(parts.texts)
    calls = _calls(item.get("tool_calls"), parts)
    ids = _answers(item)
    if len(ids) > 1:
        parts.doubts.append(f"one result for {len(ids)} calls; kept as that of the first")
    at, at_text = when(item)
    thinking = _thinking(item, content)
    if not (content or calls or parts.attachments or thinking or ids):
        parts.doubts.append("a message without content; kept empty")
    kind = text_or_none(item.get("message_type"))
    demonstration = item.get("is_demo") is True or kind == "demonstration"
    turn = Turn(
        role=role or Role.UNKNOWN,
        content=content,
        name="demonstration" if demonstration else text_or_none(item.get("name")),
        at=at,
        at_text=at_text,
        origin=text_or_none(item.get("id")),
        tool_calls=calls,
        tool_call_id=ids[0] if ids and role is Role.TOOL else None,
        thinking=thinking,
        attachments=tuple(parts.attachments),
        raw_role=raw if role is None and isinstance(raw, str) and raw else None,
        extra=(("message_type", kind),) if kind is not None and role is Role.USER else (),
    )
    index = draft.add(turn, line)
    for doubt in parts.doubts:
        warn(Warned(line=line, message=f"message {index + 1}: {doubt}"))


def _content(content: Json) -> _Parts:
    parts = _Parts()
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            parts.texts.append(part)
        elif isinstance(part, dict):
            _part(part, parts)
        elif part is not None:
            parts.texts.append(compact(part))
            parts.doubts.append("its content is neither text nor a list; kept as text")
    return parts


def _part(part: Mapping[str, Json], parts: _Parts) -> None:
    kind = text_or_none(part.get("type")) or ""
    text = part.get("text")
    if kind in ("", "text") and text is not None:
        parts.texts.append(text if isinstance(text, str) else compact(text))
    elif kind in ("image_url", "image"):
        address = part.get("image_url", part.get("source"))
        where = first_text(address, "url", "media_type") if isinstance(address, dict) else text_or_none(address)
        parts.attachments.append(media("image", where))
    else:
        parts.attachments.append(f"part of type {kind[:40]}")
        parts.doubts.append(f"a part of type {shown(kind)} is not known; noted, not read")


def _calls(calls: Json, parts: _Parts) -> tuple[ToolCall, ...]:
    found = []
    for item in calls if isinstance(calls, list) else []:
        if not isinstance(item, dict):
            parts.doubts.append(f"skipped what is no tool call: {shown(item)}")
            continue
        function = item.get("function")
        inner = function if isinstance(function, dict) else item
        found.append(call(item.get("id"), inner.get("name"), inner.get("arguments")))
    if calls is not None and not isinstance(calls, list):
        parts.doubts.append("its tool_calls are no list; skipped")
    return tuple(found)


def _answers(item: Mapping[str, Json]) -> list[str]:
    """Return the ids of the calls that a message answers."""
    ids = item.get("tool_call_ids")
    listed = ids if isinstance(ids, list) else [ids if ids is not None else item.get("tool_call_id")]
    return [identity for one in listed if (identity := text_or_none(one)) is not None]


def _thinking(item: Mapping[str, Json], content: str) -> str | None:
    """Return what the model thought, where that is not its text already."""
    blocks = [text for block in _dicts(item.get("thinking_blocks")) if (text := text_or_none(block.get("thinking")))]
    thought = text_or_none(item.get("thought"))
    if not blocks and thought is not None and thought.strip() not in content:
        blocks.append(thought)
    return "\n".join(blocks) or None


def _dicts(value: Json) -> list[Mapping[str, Json]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
