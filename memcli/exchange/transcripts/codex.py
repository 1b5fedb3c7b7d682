"""Codex sessions ("rollouts"): JSON Lines of `{timestamp, type, payload}`, or bare items in the older layout.

- Only what went to and came from the model is read: `response_item`, and the bare items of old files. `event_msg`
  repeats it, and `turn_context` repeats the settings.
- Each call is an assistant message, each output a tool message. What the model thought goes with what it said next.
- Text that Codex put into the user's mouth (surroundings, instructions) is kept with the name `context`.
- A compaction changed what the model saw, not what was said: it is told, and its copy of the history is not read
  again. Where a file begins with one, that copy is all there is, and is read.
- `ordinal` is never looked at: it was left out and used twice. Order is the order of the file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from memcli.exchange.loose import Prose, Record, parse
from memcli.exchange.shapes import ROLES, SURE, Draft, Warn, call, compact, first_text, media, shown, text_or_none, when
from memcli.facts import Conversation, Json, ToolCall, Turn, Warned
from memcli.record import record
from memcli.terms import Role

_NAME = "codex"
_WRAPPED = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
_ASIDE = frozenset({"turn_context", "world_state", "session_state"})
_CALLS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "function_call": ("", ("arguments",)),
    "custom_tool_call": ("", ("input",)),
    "local_shell_call": ("local_shell", ("action", "command")),
    "web_search_call": ("web_search", ("action", "query")),
    "tool_search_call": ("tool_search", ("arguments", "query")),
    "image_generation_call": ("image_generation", ("revised_prompt",)),
}
"""Each kind of call: what to call it where it has no name, and the keys that may hold its arguments."""

_OUTPUTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output"}
)
_SILENT = frozenset({"ghost_snapshot", "compaction", "context_compaction", "compaction_summary", "other"})
_ITEMS = frozenset({"reasoning", *_CALLS, *_OUTPUTS, *_SILENT})
_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
_IMAGES = frozenset({"input_image", "output_image", "image", "image_url"})
_CONTEXT = (
    "<environment_context>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "# AGENTS.md",
    "<turn_aborted>",
    "<skill>",
    "<permissions instructions>",
    "<subagent_notification>",
)


@record
class _Said:
    """What the content of one item comes to."""

    texts: list[str] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


@record
class Codex:
    """The reader of Codex sessions."""

    name: str = _NAME
    title: str = "a Codex session"

    def claims(self, value: Json | Prose) -> int:
        """Return 3 for a record of a session in any of its layouts, `SURE` for one document that holds all of it."""
        if isinstance(value, list):
            return sum([self.claims(item) for item in value if isinstance(item, dict)])
        if not isinstance(value, dict):
            return 0
        if _is_document(value):
            return SURE
        kind = value.get("type")
        if isinstance(kind, str) and kind in _WRAPPED and isinstance(value.get("payload"), dict):
            return 3
        if value.get("record_type") == "state" or _is_header(value):
            return 3
        return 3 if _is_item(value) and "uuid" not in value else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield a conversation for each session, in the order of the file."""
        rollout = _Rollout(warn)
        for found in records:
            for value in found.value if isinstance(found.value, list) else (found.value,):
                yield from rollout.take(value, found.line)
        yield from rollout.finished()


CODEX = Codex()


class _Rollout:
    """One session that grows record by record."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._draft = Draft(format=_NAME)
        self._thoughts: list[tuple[str, int | None]] = []
        self._unknown: dict[str, list[int | None]] = {}

    def take(self, value: Json | Prose, line: int | None) -> Iterator[Conversation]:
        """Add one record; yield the session before it where it begins another."""
        if not isinstance(value, dict):
            what = "text" if isinstance(value, Prose) else shown(value)
            self._tell(line, f"skipped what is no record: {what}")
            return
        payload = value.get("payload")
        if _is_document(value):
            yield from self._begin(value.get("session"))
            for item in _list(value.get("items")):
                self._item(item, value, line)
        elif isinstance(payload, dict) and value.get("type") == "session_meta":
            yield from self._begin(payload)
        elif _is_header(value):
            yield from self._begin(value)
        elif "payload" in value:
            self._wrapped(value, payload, line)
        elif value.get("record_type") is None:
            self._item(value, value, line)

    def finished(self) -> Iterator[Conversation]:
        """Yield the session, if anything was said in it."""
        self._answer_thoughts()
        for kind, lines in self._unknown.items():
            self._tell(lines[0], f"skipped {len(lines)} records of type {kind}, which is not known")
        self._unknown.clear()
        if self._draft.turns:
            yield self._draft.finished(self._warn)
        self._draft = Draft(format=_NAME)

    def _tell(self, line: int | None, message: str) -> None:
        self._warn(Warned(line=line, message=message))

    def _begin(self, meta: Json) -> Iterator[Conversation]:
        session = first_text(meta, "id", "session_id") if isinstance(meta, dict) else None
        # A session that was forked off repeats the heads of those before it: they begin nothing.
        if self._draft.turns and session != self._draft.session:
            yield from self.finished()
        if self._draft.session is None:
            self._draft = replace(self._draft, session=session)

    def _wrapped(self, value: Mapping[str, Json], payload: Json, line: int | None) -> None:
        kind = text_or_none(value.get("type"))
        if not isinstance(payload, dict):
            self._tell(line, f"skipped a record whose payload is {shown(payload)}")
        elif kind == "response_item":
            self._item(payload, value, line)
        elif kind == "compacted":
            self._compacted(payload, value, line)
        elif kind == "event_msg":
            self._event(payload, line)
        elif kind not in _ASIDE and kind != "session_meta":
            self._unknown.setdefault(shown(kind), []).append(line)

    def _event(self, payload: Mapping[str, Json], line: int | None) -> None:
        """Take from an event what no item says: the title, and that turns were taken back."""
        kind = payload.get("type")
        title = first_text(payload, "thread_name", "name") if kind == "thread_name_updated" else None
        if title is not None:
            self._draft = replace(self._draft, title=title)
        elif kind == "thread_rolled_back":
            turns = shown(payload.get("num_turns"))
            self._tell(line, f"the last turns ({turns}) were taken back here; they were said, and are kept")

    def _compacted(self, payload: Mapping[str, Json], value: Mapping[str, Json], line: int | None) -> None:
        history = _list(payload.get("replacement_history"))
        if not self._draft.turns and history:
            for item in history:
                self._item(item, value, line)
            self._tell(line, f"the file begins with a compaction; read the {len(history)} items it kept")
            return
        summary = text_or_none(payload.get("message"))
        rest = f", with the summary {shown(summary)}" if summary else ""
        self._tell(line, f"the model's context was compacted to {len(history)} items here{rest}; what was said is kept")

    def _item(self, item: Json, source: Mapping[str, Json], line: int | None) -> None:
        if not isinstance(item, dict):
            self._tell(line, f"skipped what is no item: {shown(item)}")
            return
        kind = text_or_none(item.get("type")) or ("message" if "role" in item else None)
        if kind == "message":
            self._message(item, source, line)
        elif kind == "reasoning":
            said = _said([*_list(item.get("summary")), *_list(item.get("content"))])
            self._thoughts += [(text, line) for text in said.texts]
        elif kind is not None and kind in _CALLS:
            attachments = ("image",) if kind == "image_generation_call" else ()
            self._add(Turn(role=Role.ASSISTANT, content="", tool_calls=(_call(kind, item),)), attachments, source, line)
        elif kind in _OUTPUTS:
            self._output(item, source, line)
        elif kind not in _SILENT:
            self._unknown.setdefault(shown(kind), []).append(line)

    def _message(self, item: Mapping[str, Json], source: Mapping[str, Json], line: int | None) -> None:
        said = _said(item.get("content"))
        raw = item.get("role")
        role = ROLES.get(raw.strip().casefold()) if isinstance(raw, str) else None
        if role is None:
            said.doubts.append(f"the role {shown(raw)} is not known; kept as unknown")
        content = "\n".join(said.texts)
        phase = text_or_none(item.get("phase"))
        turn = Turn(
            role=role or Role.UNKNOWN,
            content=content,
            name="context" if role is Role.USER and content.lstrip().startswith(_CONTEXT) else None,
            origin=text_or_none(item.get("id")),
            raw_role=raw if role is None and isinstance(raw, str) and raw else None,
            extra=(("phase", phase),) if phase else (),
        )
        if not said.texts and not said.attachments:
            said.doubts.append("a message without content; kept empty")
        self._add(turn, tuple(said.attachments), source, line)
        for doubt in said.doubts:
            self._tell(line, doubt)

    def _output(self, item: Mapping[str, Json], source: Mapping[str, Json], line: int | None) -> None:
        output, extra = _output(next((item[key] for key in ("output", "tools", "content") if key in item), None))
        turn = Turn(
            role=Role.TOOL,
            content="\n".join(output.texts),
            tool_call_id=first_text(item, "call_id", "id"),
            extra=extra,
        )
        self._add(turn, tuple(output.attachments), source, line)

    def _add(self, turn: Turn, attachments: tuple[str, ...], source: Mapping[str, Json], line: int | None) -> None:
        at, at_text = when(source)
        thinking = None
        if turn.role is Role.ASSISTANT and self._thoughts:
            thinking = "\n".join(text for text, _ in self._thoughts)
            self._thoughts.clear()
        elif turn.role is Role.USER:
            self._answer_thoughts()
        self._draft.add(replace(turn, at=at, at_text=at_text, thinking=thinking, attachments=attachments), line)

    def _answer_thoughts(self) -> None:
        """Tell of thinking that nothing followed: an interrupted answer."""
        if self._thoughts:
            self._tell(self._thoughts[0][1], "skipped what the model thought before it was interrupted")
        self._thoughts.clear()


def _is_document(value: Mapping[str, Json]) -> bool:
    """Return whether this is the oldest layout: one object with the session and all its items."""
    return isinstance(value.get("session"), dict) and isinstance(value.get("items"), list)


def _is_header(value: Mapping[str, Json]) -> bool:
    return "type" not in value and "id" in value and "timestamp" in value and "instructions" in value


def _is_item(value: Mapping[str, Json]) -> bool:
    kind = value.get("type")
    if kind == "message" and isinstance(value.get("role"), str):
        return any(isinstance(part, dict) and _is_part(part) for part in _list(value.get("content")))
    if not isinstance(kind, str) or kind not in _ITEMS:
        return False
    return "call_id" in value or isinstance(value.get("summary"), list) or "action" in value


def _is_part(part: Mapping[str, Json]) -> bool:
    kind = part.get("type")
    return isinstance(kind, str) and kind in ("input_text", "output_text", "input_image")


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _call(kind: str, item: Mapping[str, Json]) -> ToolCall:
    default, keys = _CALLS[kind]
    arguments = next((item[key] for key in keys if item.get(key) is not None), None)
    return call(first_text(item, "call_id", "id"), text_or_none(item.get("name")) or default, arguments)


def _said(content: Json) -> _Said:
    said = _Said()
    if isinstance(content, str):
        said.texts.append(content)
    elif isinstance(content, list):
        for part in content:
            _part(part, said)
    elif content is not None:
        said.texts.append(compact(content))
        said.doubts.append("its content is neither text nor a list; kept as text")
    return said


def _part(part: Json, said: _Said) -> None:
    if not isinstance(part, dict):
        said.texts.append(part if isinstance(part, str) else compact(part))
        return
    kind = text_or_none(part.get("type")) or ""
    text = part.get("text")
    if kind in _IMAGES:
        address = part.get("image_url")
        said.attachments.append(media("image", address.get("url") if isinstance(address, dict) else address))
    elif kind in _TEXTS or (not kind and isinstance(text, str)):
        said.texts.append(text if isinstance(text, str) else "" if text is None else compact(text))
    elif kind in ("input_file", "file"):
        said.attachments.append(media("file", first_text(part, "filename", "file_id", "file_url")))
    elif kind == "encrypted_content":
        said.attachments.append("text that is encrypted")
    else:
        said.attachments.append(f"part of type {kind[:40]}")
        said.doubts.append(f"a part of type {shown(kind)} is not known; noted, not read")


def _output(output: Json) -> tuple[_Said, tuple[tuple[str, str], ...]]:
    """Return the text of an output, and its exit code where it stands beside the text.

    It was written as text, as a list of parts, as an object around either, and as JSON text of such an object.
    """
    inner = output
    if isinstance(output, str) and output.lstrip().startswith("{"):
        parsed = parse(output)
        if len(parsed.values) == 1 and parsed.problem is None:
            inner = parsed.values[0]
    if isinstance(inner, dict) and inner.keys() <= {"output", "metadata"} and isinstance(inner.get("output"), str):
        metadata = inner.get("metadata")
        code = text_or_none(metadata.get("exit_code")) if isinstance(metadata, dict) else None
        return _said(inner["output"]), (("exit_code", code),) if code is not None else ()
    if isinstance(output, dict) and "content" in output:
        return _said(output["content"]), ()
    return _said(output), ()
