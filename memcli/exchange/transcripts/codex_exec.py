"""What `codex exec --json` writes: JSON Lines of events, of which only finished items count.

There is no user in it: the prompt was an argument. A command, a change of files and a call of a server each stand in
one item with what came of them, so each is one tool message, named after its kind or tool, and answers no call. An item
that only began, since the run was stopped, is told.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from memcli.exchange.loose import Prose, Record
from memcli.exchange.shapes import Draft, Warn, compact, first_text, media, shown, text_or_none, when
from memcli.exchange.turns import changed
from memcli.facts import Conversation, Json, Turn, Warned
from memcli.record import record
from memcli.terms import Role

_NAME = "codex-exec"
_EVENTS = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed"})
_PROGRESS = frozenset({"item.started", "item.updated", "item.completed"})


@record
class CodexExec:
    """The reader of the stream of `codex exec --json`."""

    name: str = _NAME
    title: str = "a stream of codex exec"

    def claims(self, value: Json | Prose) -> int:
        """Return 3 for an event of the stream."""
        if isinstance(value, list):
            return sum([self.claims(item) for item in value if isinstance(item, dict)])
        if not isinstance(value, dict):
            return 0
        kind = value.get("type")
        if not isinstance(kind, str):
            return 0
        return 3 if kind in _EVENTS or (kind in _PROGRESS and isinstance(value.get("item"), dict)) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield a conversation for each thread, in the order of the file."""
        stream = _Stream(warn)
        for found in records:
            for value in found.value if isinstance(found.value, list) else (found.value,):
                yield from stream.take(value, found.line)
        yield from stream.finished()


CODEX_EXEC = CodexExec()


class _Stream:
    """One thread that grows event by event."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._draft = Draft(format=_NAME)
        self._thoughts: list[str] = []
        self._open: dict[str | None, tuple[str, int | None]] = {}

    def take(self, value: Json | Prose, line: int | None) -> Iterator[Conversation]:
        """Add one event; yield the thread before it where it starts another."""
        if not isinstance(value, dict):
            what = "text" if isinstance(value, Prose) else shown(value)
            self._tell(line, f"skipped what is no event: {what}")
            return
        kind = text_or_none(value.get("type"))
        item = value.get("item")
        if kind == "thread.started":
            session = text_or_none(value.get("thread_id"))
            if self._draft.turns and session != self._draft.session:
                yield from self.finished()
            self._draft = replace(self._draft, session=self._draft.session or session)
        elif kind in _PROGRESS:
            if not isinstance(item, dict):
                self._tell(line, f"skipped an event whose item is {shown(item)}")
            else:
                self._item(kind, item, value, line)
        elif kind in ("error", "turn.failed"):
            self._tell(line, f"the run reports an error: {shown(_error(value))}")
        elif kind not in _EVENTS:
            self._tell(line, f"skipped an event of type {shown(kind)}, which is not known")

    def finished(self) -> Iterator[Conversation]:
        """Yield the thread, if anything was said in it."""
        for what, line in self._open.values():
            self._tell(line, f"a {what} began and did not end; skipped")
        self._open.clear()
        if self._thoughts:
            self._tell(None, "skipped what the model thought before it was interrupted")
        self._thoughts.clear()
        draft = self._draft
        if draft.turns:
            # Not `Draft.finished`: no tool message of a stream has a call, and none is missing.
            yield Conversation(format=_NAME, turns=changed(draft.turns, _as_it_is), session=draft.session)
        self._draft = Draft(format=_NAME)

    def _tell(self, line: int | None, message: str) -> None:
        self._warn(Warned(line=line, message=message))

    def _item(self, event: str | None, item: Mapping[str, Json], value: Mapping[str, Json], line: int | None) -> None:
        kind = first_text(item, "type", "item_type") or ""
        identity = text_or_none(item.get("id"))
        if event != "item.completed":
            # A list of things to do is written anew with every change, and ends with the turn.
            if kind != "todo_list":
                self._open.setdefault(identity, (kind[:40] or "thing", line))
            return
        self._open.pop(identity, None)
        if kind == "reasoning":
            self._thoughts.append(_text(item.get("text")))
            return
        if kind == "error":
            self._tell(line, f"the run reports an error: {shown(_error(item))}")
            return
        turn = _turn(kind, item)
        if turn is None:
            self._tell(line, f"skipped an item of type {shown(kind)}, which is not known")
            return
        at, at_text = when(value)
        thinking = None
        # What was thought before a command goes with what is said after it: a tool does not think.
        if self._thoughts and turn.role is Role.ASSISTANT:
            thinking = "\n".join(self._thoughts)
            self._thoughts.clear()
        self._draft.add(replace(turn, at=at, at_text=at_text, origin=identity, thinking=thinking), line)


def _turn(kind: str, item: Mapping[str, Json]) -> Turn | None:
    """Return the message of a finished item; None where its kind is not known."""
    if kind in ("agent_message", "assistant_message"):
        return Turn(role=Role.ASSISTANT, content=_text(item.get("text")))
    status = text_or_none(item.get("status"))
    code = text_or_none(item.get("exit_code"))
    beside = (("status", status if status != "completed" else None), ("exit_code", code))
    extra = tuple((name, word) for name, word in beside if word is not None)
    if kind == "command_execution":
        output = _text(item.get("aggregated_output"))
        return Turn(role=Role.TOOL, content=f"$ {_text(item.get('command'))}\n{output}", name=kind, extra=extra)
    if kind in ("mcp_tool_call", "collab_tool_call"):
        text, attachments = _result(item)
        arguments = item.get("arguments")
        given = (("arguments", _text(arguments)),) if arguments is not None else ()
        name = first_text(item, "tool", "name") or kind
        return Turn(role=Role.TOOL, content=text, name=name, attachments=attachments, extra=(*given, *extra))
    for sort, key in (("file_change", "changes"), ("web_search", "query"), ("todo_list", "items")):
        if kind == sort:
            return Turn(role=Role.TOOL, content=_text(item.get(key)), name=kind, extra=extra)
    return None


def _result(item: Mapping[str, Json]) -> tuple[str, tuple[str, ...]]:
    """Return what a server answered, with a note for what is no text; an error where it failed."""
    result = item.get("result")
    content = result.get("content") if isinstance(result, dict) else result
    if not isinstance(content, list):
        return _text(content) if content is not None else _text(_error(item)), ()
    texts: list[str] = []
    attachments: list[str] = []
    for part in content:
        kind = text_or_none(part.get("type")) if isinstance(part, dict) else None
        if isinstance(part, dict) and kind in ("image", "audio", "resource_link"):
            attachments.append(media(kind, first_text(part, "mimeType", "uri")))
        else:
            texts.append(_text(part.get("text", part) if isinstance(part, dict) else part))
    return "\n".join(texts), tuple(attachments)


def _as_it_is(_: int, turn: Turn) -> Turn:
    return turn


def _error(value: Mapping[str, Json]) -> Json:
    error = value.get("error")
    return error.get("message") if isinstance(error, dict) else error if error is not None else value.get("message")


def _text(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else compact(value)
