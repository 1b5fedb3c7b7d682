"""Anthropic Messages: requests, answers, batches of both, and lists or lines of messages with Anthropic's blocks.

- `system` stands outside the list and becomes the first message. Each `tool_result` becomes a tool message of its own,
  named after its call; a user message that holds nothing else is no message besides. Thinking is kept apart, its
  signature dropped.
- Every request is a conversation, with its answer where that stands beside it. Messages that stand one a line are one
  conversation, or one for each session they name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeGuard

from memcli.exchange.loose import Prose, Record
from memcli.exchange.shapes import Draft, Warn, first_text, shown, when
from memcli.exchange.transcripts.blocks import FOREIGN, blocks, kind_of
from memcli.exchange.transcripts.exports import dictionary
from memcli.exchange.transcripts.parts import Parts
from memcli.facts import Conversation, Json, Turn, Warned
from memcli.record import record
from memcli.terms import Role

_NAME = "anthropic"
_SESSION = ("session_id", "sessionId", "conversation_id", "thread_id")
_OTHERS = frozenset({"projectHash", "blocks", "additional_kwargs", "parentUuid", "payload", "mapping"})
"""Keys of formats that only look alike."""

_AROUND = frozenset({"messages", "request", "params", "body", "result"})
"""Keys of which a conversation has one."""


@record
class _Frame:
    """One conversation as it stands: what is outside the list, the list, and the answer beside it."""

    system: Json
    messages: list[Json]
    answer: Json
    session: str | None


@record
class Anthropic:
    """The reader of Anthropic Messages."""

    name: str = _NAME
    title: str = "Anthropic messages"

    def claims(self, value: Json | Prose) -> int:
        """Return 3 for each request, answer, or list or line of messages with blocks that only Anthropic has."""
        if isinstance(value, list):
            if _holds_frames(value):
                return sum(self.claims(item) for item in value if isinstance(item, (dict, list)))
            return 3 if any(map(_is_message, value)) else 0
        if not isinstance(value, dict) or not _OTHERS.isdisjoint(value):
            return 0
        frame = _frame(value)
        return (3 if _is_message(value) else 0) if frame is None else _votes(value, frame)

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield each request as it comes, and what single messages come to at the end."""
        loose: dict[str | None, Draft] = {}
        for found in records:
            for value in found.value if _holds_frames(found.value) else (found.value,):
                frame = _frame(value)
                if frame is not None:
                    yield from _finished(_draft(frame, found.line, warn), warn)
                else:
                    _take(value, found.line, loose, warn)
        for draft in loose.values():
            yield from _finished(draft, warn)


ANTHROPIC = Anthropic()


def _is_message(value: Json) -> bool:
    """Return whether a message is an answer, or holds a block that only Anthropic has."""
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        return False
    content = value.get("content")
    if not isinstance(content, list):
        return False
    answers = value.get("type") == "message" and not {"stop_reason", "model"}.isdisjoint(value)
    return answers or any(kind_of(block) in FOREIGN for block in content)


def _votes(value: Mapping[str, Json], frame: _Frame) -> int:
    roles = {first_text(message, "role") for message in frame.messages if isinstance(message, dict)}
    if any(map(_is_message, [*frame.messages, frame.answer])):
        return 3
    if roles.isdisjoint({"user", "assistant"}):
        return 0
    model = first_text(dictionary(value.get("params", value.get("request"))), "model") or first_text(value, "model")
    if "claude" in (model or "").casefold():
        return 3
    return 0 if frame.system is None else 3 if roles.isdisjoint({"system", "tool", "developer"}) else 1


def _frame(value: Json | Prose) -> _Frame | None:
    """Return what a request, with its answer or without, a line of a batch, or a list of messages holds."""
    if isinstance(value, list):
        return _Frame(system=None, messages=value, answer=None, session=None)
    if not isinstance(value, dict) or _AROUND.isdisjoint(value):
        return None
    request = next(
        (item for key in ("request", "params", "body") if _listing(item := dictionary(value.get(key)))), value
    )
    result = dictionary(value.get("result"))
    answer = value.get("response", result.get("message"))
    messages = request.get("messages")
    if not isinstance(messages, list):
        if result.get("type") != "succeeded":
            return None
        messages = []
    session = first_text(value, *_SESSION, "custom_id") or first_text(request, *_SESSION)
    return _Frame(system=request.get("system"), messages=messages, answer=answer, session=session)


def _listing(request: Mapping[str, Json]) -> bool:
    return isinstance(request.get("messages"), list)


def _holds_frames(value: Json | Prose) -> TypeGuard[list[Json]]:
    """Return whether a list holds conversations and not messages."""
    return isinstance(value, list) and any(_frame(item) is not None for item in value)


def _take(value: Json | Prose, line: int | None, loose: dict[str | None, Draft], warn: Warn) -> None:
    """Add a message that stands alone to the conversation of its session."""
    if isinstance(value, dict) and ("role" in value or "content" in value):
        session = first_text(value, *_SESSION)
        _message(value, line, loose.setdefault(session, Draft(format=_NAME, session=session)), warn)
    else:
        what = "text" if isinstance(value, Prose) else shown(value)
        warn(Warned(line=line, message=f"skipped what is no message: {what}"))


def _draft(frame: _Frame, line: int | None, warn: Warn) -> Draft:
    draft = Draft(format=_NAME, session=frame.session)
    if frame.system not in (None, "", []):
        _message({"role": "system", "content": frame.system}, line, draft, warn)
    for message in frame.messages:
        _message(message, line, draft, warn)
    if isinstance(frame.answer, dict) and isinstance(frame.answer.get("content"), (str, list)):
        _message({"role": "assistant", **frame.answer}, line, draft, warn)
    return draft


def _finished(draft: Draft, warn: Warn) -> Iterator[Conversation]:
    if draft.turns:
        yield draft.finished(warn)
    else:
        warn(Warned(line=None, message=f"skipped a conversation without messages, id {shown(draft.session)}"))


def _message(message: Json, line: int | None, draft: Draft, warn: Warn) -> None:
    if not isinstance(message, dict):
        warn(Warned(line=line, message=f"skipped what is no message: {shown(message)}"))
        return
    found = blocks(message.get("content"))
    said = _turn(message, found.parts)
    if found.results and said.role is not Role.USER:
        # A server's tools answer within the assistant's own message, so the call comes first.
        found.parts.place(said, draft, line, warn)
    for result in found.results:
        draft.add(replace(result, at=said.at, at_text=said.at_text, origin=said.origin), line)
    if not found.results or (found.speaks and said.role is Role.USER):
        found.parts.place(said, draft, line, warn)


def _turn(message: Mapping[str, Json], parts: Parts) -> Turn:
    role, raw_role = parts.role(message.get("role"))
    at, at_text = when(message)
    return Turn(
        role=role,
        content="",
        at=at,
        at_text=at_text,
        origin=first_text(message, "id", "uuid"),
        raw_role=raw_role,
    )
