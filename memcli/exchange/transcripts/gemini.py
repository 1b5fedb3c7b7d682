"""Gemini CLI sessions: one object with all messages, or JSON Lines in which a message is written anew as it grows.

- A message of type `gemini` is the assistant's. Each of its `toolCalls` is a call, and what stands under `result`
  a tool message; `resultDisplay` and `displayContent` are copies and not read. Thoughts are kept apart.
- `info`, `warning` and `error` are what the program told its user: nobody said them to anybody, so they are told.
- In JSON Lines a message keeps the place where it stood first and takes the content it had last. `$rewindTo` takes
  back what was said; it was said, so it is kept and told. `$set.messages` replaces what the model sees: what is new
  in it is taken, except for the summary of a compression.
- A message object alone, or a list of them, is read too.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from memcli.exchange.loose import Prose, Record
from memcli.exchange.shapes import SURE, Draft, Warn, call, compact, first_text, media, shown, text_or_none, when
from memcli.facts import Conversation, Json, ToolCall, Turn, Warned
from memcli.record import record
from memcli.terms import Role

_NAME = "gemini"
_ROLES: Mapping[str, Role] = {
    "user": Role.USER,
    "gemini": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "function": Role.TOOL,
}
_NOTICES = frozenset({"info", "warning", "error", "about", "help", "quit", "compression"})
_CONTEXT = ("<session_context>", "<hook_context>", "This is the Gemini CLI. We are setting up the context")
_SUMMARY = "<state_snapshot>"
_CONTENTS = ("history", "contents")
_PARTS = frozenset({"text", "functionCall", "functionResponse", "inlineData", "fileData"})
_HELD = ("id", "timestamp", "type", "content", "parts", "thoughts", "toolCalls")


@record
class _Held:
    """A message of a session as it stood last, without its copies, and the line where it stood first."""

    value: dict[str, Json]
    line: int | None


@record
class _Parts:
    """What the content of one message comes to; results by the id of their call."""

    texts: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[Turn] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


@record
class Gemini:
    """The reader of Gemini CLI sessions."""

    name: str = _NAME
    title: str = "a Gemini CLI session"

    def claims(self, value: Json | Prose) -> int:
        """Return `SURE` for a whole session or an assistant's message, 3 and 1 for the records of a line format."""
        if isinstance(value, list):
            return _listed([self.claims(item) for item in value if isinstance(item, dict)])
        if not isinstance(value, dict):
            return 0
        messages = value.get("messages")
        if isinstance(messages, list):
            return SURE if "projectHash" in value or any(map(_is_gemini, messages)) else 0
        if _holds_contents(value):
            return SURE
        return _votes(value)

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield a conversation for each session, in the order of the file."""
        session = _Session(warn)
        for found in records:
            for value in found.value if isinstance(found.value, list) else (found.value,):
                yield from session.take(value, found.line)
        yield from session.finished()


GEMINI = Gemini()


class _Session:
    """One session that grows record by record."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._head: dict[str, Json] = {}
        self._messages: dict[str | int, _Held] = {}

    def take(self, value: Json | Prose, line: int | None) -> Iterator[Conversation]:
        """Add one record; yield the session before it where it begins another."""
        if not isinstance(value, dict):
            what = "text" if isinstance(value, Prose) else shown(value)
            self._tell(line, f"skipped what is no record: {what}")
            return
        patch = value.get("$set")
        messages = next((held for key in ("messages", *_CONTENTS) if isinstance(held := value.get(key), list)), None)
        if isinstance(patch, dict):
            self._patch(patch, line)
        elif "$rewindTo" in value:
            self._rewind(value["$rewindTo"], line)
        elif messages is not None or ("sessionId" in value and "type" not in value):
            if not self._continues(value, messages):
                yield from self.finished()
            self._head |= {key: item for key, item in value.items() if item is not messages}
            for message in messages or []:
                self._message(message, line)
        else:
            self._message(value, line)

    def _continues(self, head: Mapping[str, Json], messages: list[Json] | None) -> bool:
        """Return whether a head goes on with the session; a document without an id is one of its own."""
        session = text_or_none(head.get("sessionId"))
        if not self._messages or (session is None and messages is None):
            return True
        return session is not None and session == text_or_none(self._head.get("sessionId"))

    def finished(self) -> Iterator[Conversation]:
        """Yield the session, if anything was said in it."""
        draft = Draft(
            format=_NAME,
            session=first_text(self._head, "sessionId"),
            title=first_text(self._head, "title", "summary"),
        )
        answered = {text_or_none(item.get("id")) for held in self._messages.values() for item in _answered(held.value)}
        for held in self._messages.values():
            self._turns(held, draft, answered)
        if draft.turns:
            yield draft.finished(self._warn)
        self._head = {}
        self._messages = {}

    def _tell(self, line: int | None, message: str) -> None:
        self._warn(Warned(line=line, message=message))

    def _message(self, message: Json, line: int | None) -> None:
        """Hold a message, or what is new of one that was written before."""
        if not isinstance(message, dict):
            self._tell(line, f"skipped what is no message: {shown(message)}")
            return
        identity = text_or_none(message.get("id"))
        key = len(self._messages) if identity is None else identity
        there = self._messages.get(key)
        value = {name: message[name] for name in _HELD if name in message}
        if "type" not in value and "role" in message:
            value["type"] = message["role"]
        if there is None:
            self._messages[key] = _Held(value=value, line=line)
        else:
            self._messages[key] = replace(there, value=there.value | value)

    def _patch(self, patch: Mapping[str, Json], line: int | None) -> None:
        self._head |= {key: item for key, item in patch.items() if key != "messages"}
        messages = patch.get("messages")
        if not isinstance(messages, list):
            return
        dicts = [message for message in messages if isinstance(message, dict)]
        compressed = any(_SUMMARY in text for message in dicts for text in _parts(message).texts)
        # After a compression the same messages stand there with other ids: each is looked for by what it says.
        copies = Counter(_saying(held.value) for held in self._messages.values())
        copies.subtract(_saying(message) for message in dicts if text_or_none(message.get("id")) in self._messages)
        skipped = 0
        for message in messages:
            known = isinstance(message, dict) and text_or_none(message.get("id")) in self._messages
            if isinstance(message, dict) and not known and copies[_saying(message)] > 0:
                copies[_saying(message)] -= 1
            elif known or not compressed:
                self._message(message, line)
            else:
                skipped += 1
        if compressed:
            self._tell(
                line, f"the model's context was compressed here; {skipped} messages written for that are skipped"
            )

    def _rewind(self, target: Json, line: int | None) -> None:
        ids = list(self._messages)
        identity = text_or_none(target)
        gone = len(ids) - ids.index(identity) if identity in self._messages else 0
        where = f"{gone} messages were" if gone else f"what followed {shown(target)}, which is not in the file, was"
        self._tell(line, f"{where} taken back here; kept, since it was said")

    def _turns(self, held: _Held, draft: Draft, answered: set[str | None]) -> None:
        value, line = held.value, held.line
        kind = text_or_none(value.get("type"))
        if kind in _NOTICES:
            text = " ".join(_parts(value).texts)
            self._tell(line, f"skipped a record of type {kind}, which nobody said: {shown(text)}")
            return
        role = _ROLES.get(kind or "")
        parts = _parts(value)
        if role is None:
            parts.doubts.append(f"the type {shown(kind)} is not known; kept as unknown")
        at, at_text = when(value)
        content = "\n".join(parts.texts)
        results = [item for item in parts.results if kind in ("gemini", "model") or item.tool_call_id not in answered]
        copied = len(results) < len(parts.results)
        if content or parts.attachments or parts.calls or parts.thinking or not (results or copied):
            turn = Turn(
                role=role or Role.UNKNOWN,
                content=content,
                name="context" if role is Role.USER and content.lstrip().startswith(_CONTEXT) else None,
                at=at,
                at_text=at_text,
                origin=text_or_none(value.get("id")),
                tool_calls=tuple(parts.calls),
                thinking="\n".join(parts.thinking) or None,
                attachments=tuple(parts.attachments),
                raw_role=kind if role is None else None,
            )
            if not (content or turn.attachments or turn.tool_calls or turn.thinking):
                parts.doubts.append("a message without content; kept empty")
            draft.add(turn, line)
        for result in results:
            moment = (at, at_text) if (result.at, result.at_text) == (None, None) else (result.at, result.at_text)
            draft.add(replace(result, at=moment[0], at_text=moment[1], parent=text_or_none(value.get("id"))), line)
        for doubt in parts.doubts:
            self._tell(line, doubt)


def _votes(value: Mapping[str, Json]) -> int:
    """Return the votes of one record of a line format, or of one message."""
    if "projectHash" in value and "sessionId" in value:
        return 3
    if "$rewindTo" in value or isinstance(value.get("$set"), dict) or _is_gemini(value):
        return 3
    if _is_content(value):
        return 1
    kind = value.get("type")
    known = isinstance(kind, str) and (kind == "user" or kind in _NOTICES)
    return 1 if known and {"id", "timestamp", "content"} <= value.keys() and "uuid" not in value else 0


def _listed(votes: list[int]) -> int:
    """Return the votes of a list: of messages they add up, of whole sessions one is enough."""
    return SURE if SURE in votes else sum(votes)


def _is_gemini(value: object) -> bool:
    if not isinstance(value, dict) or value.get("type") != "gemini":
        return False
    return not value.keys().isdisjoint(("content", "toolCalls", "thoughts", "tokens"))


def _is_content(value: object) -> bool:
    """Return whether this is a message as it went to the model: what `/chat save` keeps."""
    if not isinstance(value, dict) or value.get("role") not in ("user", "model", "function"):
        return False
    parts = value.get("parts")
    return isinstance(parts, list) and any(
        isinstance(part, dict) and not _PARTS.isdisjoint(part) and "kind" not in part for part in parts
    )


def _holds_contents(value: Mapping[str, Json]) -> bool:
    return any(any(map(_is_content, _list(value.get(key)))) for key in _CONTENTS)


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _saying(message: Mapping[str, Json]) -> tuple[object, ...]:
    """Return what a message says, whatever its id and time."""
    parts = _parts(message)
    kind = text_or_none(message.get("type"))
    calls = tuple((item.name, item.arguments) for item in parts.calls)
    results = tuple(item.content for item in parts.results) if kind == "user" else ()
    return kind, tuple(parts.texts), calls, results


def _answered(message: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """Yield the calls of an assistant's message that carry their result."""
    if message.get("type") in ("gemini", "model"):
        for item in _list(message.get("toolCalls")):
            if isinstance(item, dict) and _result_of(item) is not None:
                yield item


def _parts(message: Mapping[str, Json]) -> _Parts:
    parts = _Parts()
    content = message.get("content", message.get("parts"))
    for part in content if isinstance(content, list) else [content]:
        _part(part, parts)
    for thought in _list(message.get("thoughts")):
        _thought(thought, parts)
    known = {item.id for item in parts.calls}
    for item in _list(message.get("toolCalls")):
        if isinstance(item, dict):
            _tool(item, parts, known)
        else:
            parts.doubts.append(f"skipped what is no tool call: {shown(item)}")
    return parts


def _part(part: Json, parts: _Parts) -> None:
    """Add one part of a content: text, a thought, a call, a result, or a note of what is no text."""
    if isinstance(part, str):
        parts.texts.append(part)
    elif isinstance(part, dict):
        text = part.get("text")
        asked, answer = part.get("functionCall"), part.get("functionResponse")
        if isinstance(asked, dict):
            parts.calls.append(call(asked.get("id"), asked.get("name"), asked.get("args")))
        elif isinstance(answer, dict):
            parts.results.append(_answer(answer))
        elif isinstance(text, str):
            (parts.thinking if part.get("thought") is True else parts.texts).append(text)
        else:
            _other(part, parts)
    elif part is not None:
        parts.texts.append(compact(part))
        parts.doubts.append("its content is neither text nor a list; kept as text")


def _other(part: Mapping[str, Json], parts: _Parts) -> None:
    note = _note(part)
    code = part.get("executableCode", part.get("codeExecutionResult"))
    if note is not None:
        parts.attachments.append(note)
    elif isinstance(code, dict):
        parts.texts.append(_text(code.get("code", code.get("output"))))
    elif part.keys() - {"thought", "thoughtSignature"}:
        kind = next(iter(part))
        parts.attachments.append(f"part of type {kind[:40]}")
        parts.doubts.append(f"a part of type {shown(kind)} is not known; noted, not read")


def _note(part: Mapping[str, Json]) -> str | None:
    """Return the note for an image or file that stands in the part or is named by it."""
    inline, named = part.get("inlineData"), part.get("fileData")
    if isinstance(inline, dict):
        mime = text_or_none(inline.get("mimeType")) or ""
        return media("image" if mime.startswith("image/") else "file", mime)
    if isinstance(named, dict):
        return media("file", first_text(named, "fileUri", "mimeType"))
    return None


def _thought(thought: Json, parts: _Parts) -> None:
    if not isinstance(thought, dict):
        parts.thinking.append(_text(thought))
        return
    lines = (text_or_none(thought.get("subject")), text_or_none(thought.get("description")))
    parts.thinking.append("\n".join(line for line in lines if line))


def _tool(item: Mapping[str, Json], parts: _Parts, known: set[str | None]) -> None:
    identity = text_or_none(item.get("id"))
    if identity is None or identity not in known:
        parts.calls.append(call(item.get("id"), item.get("name"), item.get("args")))
    result = _result_of(item)
    if result is None:
        return
    inner = _Parts()
    for part in result if isinstance(result, list) else [result]:
        _part(part, inner)
    # The text of a result is in its answer; other parts beside it are what the tool showed, such as an image.
    answers = inner.results
    status = text_or_none(item.get("status"))
    at, at_text = when(item)
    parts.results.append(
        Turn(
            role=Role.TOOL,
            content="\n".join([*(answer.content for answer in answers), *inner.texts]),
            tool_call_id=identity,
            at=at,
            at_text=at_text,
            attachments=(*(note for answer in answers for note in answer.attachments), *inner.attachments),
            extra=(("status", status),) if status is not None and status != "success" else (),
        )
    )


def _result_of(item: Mapping[str, Json]) -> Json:
    """Return what a call came to; what was shown of it counts only where nothing else is left."""
    result = item.get("result")
    if result not in (None, []):
        return result
    display = item.get("resultDisplay")
    return display if isinstance(display, str) and display else None


def _answer(answer: Mapping[str, Json]) -> Turn:
    response = answer.get("response")
    content = _text(response)
    if isinstance(response, dict):
        texts = [_text(response[key]) for key in ("output", "error", "content") if response.get(key) not in (None, "")]
        content = "\n".join(texts) if texts or response.keys() <= {"output", "error", "content"} else content
    notes = [note for part in _list(answer.get("parts")) if isinstance(part, dict) and (note := _note(part))]
    return Turn(role=Role.TOOL, content=content, tool_call_id=text_or_none(answer.get("id")), attachments=tuple(notes))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else compact(value)
