"""OpenHands: an array or lines of events, and results with one `history` of events a line.

- `message`, `finish` and `reject` are text. Other actions are calls, and observations their results; a result belongs
  to the action that its `cause` or its call names, or to the one before it in old files that have neither.
- `tool_call_metadata.model_response` repeats the text; only a call's own arguments are taken from it. `message` at
  the top of an event is the program's wording, and read only where a `finish` has no other.
- What the program did for itself is skipped: states, recalled context, empty actions. A condensation is told.
- Old events have no id, no source and no time, and none is made up: a message without a source has no known role.
- Events of the newer SDK, which have a `kind`, are read by `openhands_sdk`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from memcli.exchange.loose import Prose, Record
from memcli.exchange.shapes import SURE, Draft, Warn, call, compact, first_text, media, shown, text_or_none, when
from memcli.exchange.transcripts.openhands_sdk import is_sdk_event, sdk_turn
from memcli.facts import Conversation, Json, ToolCall, Turn, Warned
from memcli.record import record
from memcli.terms import Role

_NAME = "openhands"
_ROLES: Mapping[str, Role] = {"user": Role.USER, "agent": Role.ASSISTANT, "environment": Role.SYSTEM}
_TEXTS = frozenset({"message", "finish", "reject"})
_SILENT = frozenset(
    {
        "change_agent_state",
        "agent_state_changed",
        "recall",
        "null",
        "start",
        "initialize",
        "condensation_request",
        "loop_recovery",
    }
)
_LISTS = ("history", "trajectory", "events")
_ACTIONS = frozenset(
    {
        "run",
        "run_ipython",
        "read",
        "write",
        "edit",
        "browse",
        "browse_interactive",
        "delegate",
        "think",
        "call_tool_mcp",
        "task_tracking",
        "system",
        "condensation",
        *_TEXTS,
        *_SILENT,
    }
)
_BESIDE = frozenset({"thought", "image_urls", "wait_for_response", "translated_ipython_code", "impl_source"})


@record
class OpenHands:
    """The reader of OpenHands events and results."""

    name: str = _NAME
    title: str = "OpenHands events"

    def claims(self, value: Json | Prose) -> int:
        """Return 3 for an event, and as many for each of a list or a result that holds some."""
        if isinstance(value, list):
            found = [self.claims(item) for item in value if isinstance(item, (dict, list))]
            return sum(found) if 2 * sum(bool(votes) for votes in found) >= len(value) else 0
        if not isinstance(value, dict):
            return 0
        if _is_event(value):
            return 3
        events = _events(value)
        held = bool(events) and all(_is_event(event) for event in _flat(events[:4]) if isinstance(event, dict))
        return SURE if held and any(isinstance(event, dict) for event in _flat(events[:4])) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield a conversation for each list of events, in the order of the file."""
        loose = _Events(warn, session=None, title=None)
        for found in records:
            value = found.value
            if isinstance(value, list) and any(map(_holds_events, value)):
                for item in value:
                    yield from _whole(item, found.line, warn)
            elif isinstance(value, dict) and _is_event(value):
                loose.take(value, found.line)
            else:
                yield from _whole(value, found.line, warn)
        yield from loose.finished()


OPENHANDS = OpenHands()


def _whole(value: Json | Prose, line: int | None, warn: Warn) -> Iterator[Conversation]:
    """Yield the conversation of one list of events, or of an object around one."""
    source = value if isinstance(value, dict) else {}
    issue = source.get("issue")
    head = issue if isinstance(issue, dict) else {}
    session = first_text(source, "instance_id", "conversation_id", "id") or first_text(head, "id", "number")
    events = _Events(warn, session=session or text_or_none(issue), title=first_text(head, "title"))
    listed = value if isinstance(value, list) else _events(source)
    if not isinstance(value, (dict, list)) or (isinstance(value, dict) and not listed):
        what = "text" if isinstance(value, Prose) else shown(value)
        warn(Warned(line=line, message=f"skipped what holds no events: {what}"))
        return
    for event in _flat(listed):
        events.take(event, line)
    yield from events.finished()


class _Events:
    """One conversation that grows event by event."""

    def __init__(self, warn: Warn, *, session: str | None, title: str | None) -> None:
        self._warn = warn
        self._draft = Draft(format=_NAME, session=session, title=title)
        self._calls: dict[str, str | None] = {}
        self._unknown: dict[str, list[int | None]] = {}

    def take(self, event: Json, line: int | None) -> None:
        """Add one event."""
        if not isinstance(event, dict):
            self._tell(line, f"skipped what is no event: {shown(event)}")
            return
        if is_sdk_event(event):
            self._sdk(event, line)
        elif isinstance(event.get("action"), str):
            self._action(str(event["action"]), event, line)
        elif isinstance(event.get("observation"), str):
            self._observation(str(event["observation"]), event, line)
        else:
            self._unknown.setdefault("null", []).append(line)

    def finished(self) -> Iterator[Conversation]:
        """Yield the conversation, if anything was said in it."""
        for kind, lines in self._unknown.items():
            self._tell(lines[0], f"skipped {len(lines)} events of kind {kind}, which is not known")
        if self._draft.turns:
            yield self._draft.finished(self._warn)

    def _tell(self, line: int | None, message: str) -> None:
        self._warn(Warned(line=line, message=message))

    def _sdk(self, event: Mapping[str, Json], line: int | None) -> None:
        turn, doubt = sdk_turn(event)
        if turn is not None:
            self._add(turn, event, line)
        if doubt is not None:
            self._tell(line, doubt)

    def _action(self, kind: str, event: Mapping[str, Json], line: int | None) -> None:
        held = event.get("args")
        args = held if isinstance(held, dict) else {}
        if kind == "condensation":
            self._tell(line, f"the model's context was condensed here to {shown(args.get('summary'))}; all is kept")
            return
        if kind in _SILENT:
            return
        if held is not None and not isinstance(held, dict):
            self._tell(line, f"an action whose args are {shown(held)}; kept without them")
        if kind == "system":
            self._add(Turn(role=Role.SYSTEM, content=_text(args.get("content"))), event, line)
        elif kind in _TEXTS:
            self._said(kind, args, event, line)
        else:
            made = _call(kind, args, event)
            identity = text_or_none(event.get("id"))
            if identity is not None:
                self._calls[identity] = made.id
            content = "" if kind == "think" else _text(args.get("thought"))
            role = _role(event) or Role.ASSISTANT
            self._add(Turn(role=role, content=content, tool_calls=(made,)), event, line)

    def _said(self, kind: str, args: Mapping[str, Json], event: Mapping[str, Json], line: int | None) -> None:
        content = _text(args.get("content")) if kind == "message" else _closing(args, event)
        source = text_or_none(event.get("source"))
        role = _role(event) or (Role.UNKNOWN if kind == "message" else Role.ASSISTANT)
        unknown = role is Role.UNKNOWN
        turn = Turn(role=role, content=content, attachments=_images(args), raw_role=source if unknown else None)
        self._add(turn, event, line)
        if unknown:
            self._tell(line, f"a message of the source {shown(source)}; its role is kept as unknown")

    def _observation(self, kind: str, event: Mapping[str, Json], line: int | None) -> None:
        if kind in _SILENT:
            return
        extras = event.get("extras")
        beside = extras if isinstance(extras, dict) else {}
        cause = text_or_none(event.get("cause"))
        if kind == "agent_condensation":
            self._tell(line, "the model's context was condensed here; what was said is kept")
            return
        metadata = event.get("tool_call_metadata")
        identity = text_or_none(metadata.get("tool_call_id")) if isinstance(metadata, dict) else None
        content = event.get("content")
        code = _exit_code(beside)
        turn = Turn(
            role=Role.TOOL,
            content=_text(content if content not in (None, "") else beside.get("outputs")),
            parent=cause,
            tool_call_id=identity or (self._calls.get(cause, cause) if cause is not None else None),
            attachments=_images(beside),
            extra=(("exit_code", code),) if code is not None else (),
        )
        self._add(turn, event, line)

    def _add(self, turn: Turn, event: Mapping[str, Json], line: int | None) -> None:
        at, at_text = when(event)
        self._draft.add(replace(turn, at=at, at_text=at_text, origin=text_or_none(event.get("id"))), line)


def _is_event(value: Mapping[str, Json]) -> bool:
    if is_sdk_event(value):
        return True
    action = value.get("action")
    if isinstance(action, str):
        ours = action in _ACTIONS or _role(value) is not None
        return ours and isinstance(value.get("args"), dict) and "response" not in value
    return isinstance(value.get("observation"), str) and ("extras" in value or "cause" in value) and "content" in value


def _role(event: Mapping[str, Json]) -> Role | None:
    source = event.get("source")
    return _ROLES.get(source) if isinstance(source, str) else None


def _holds_events(value: Json) -> bool:
    return isinstance(value, dict) and not _is_event(value) and bool(_events(value))


def _events(value: Mapping[str, Json]) -> list[Json]:
    """Return the events that an object holds: a result, or a conversation as the server gives it."""
    for key in _LISTS:
        held = value.get(key)
        if isinstance(held, list) and any(isinstance(event, dict) and _is_event(event) for event in _flat(held[:4])):
            return held
    return []


def _flat(events: list[Json]) -> Iterator[Json]:
    """Yield each event, also those that stand as pairs of an action and what came of it."""
    for event in events:
        if isinstance(event, list):
            yield from event
        else:
            yield event


def _call(kind: str, args: Mapping[str, Json], event: Mapping[str, Json]) -> ToolCall:
    """Return the call of an action: as the model made it, where that is told, or else as the program ran it."""
    metadata = event.get("tool_call_metadata")
    made = metadata if isinstance(metadata, dict) else {}
    identity = text_or_none(made.get("tool_call_id"))
    asked = _asked(made.get("model_response"), identity)
    thought = kind == "think"
    ran: dict[str, Json] = {
        key: item for key, item in args.items() if (key not in _BESIDE or (thought and key == "thought")) and item != ""
    }
    return call(
        identity or event.get("id"),
        text_or_none(made.get("function_name")) or kind,
        asked if asked is not None else ran,
    )


def _asked(response: Json, identity: str | None) -> str | None:
    """Return the arguments that the model gave to one call of its answer."""
    choices = response.get("choices") if isinstance(response, dict) else None
    for choice in choices if isinstance(choices, list) else []:
        message = choice.get("message") if isinstance(choice, dict) else None
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        listed = calls if isinstance(calls, list) else []
        for item in [item for item in listed if isinstance(item, dict)]:
            function = item.get("function")
            if isinstance(function, dict) and identity is not None and text_or_none(item.get("id")) == identity:
                arguments = function.get("arguments")
                return arguments if isinstance(arguments, str) else None
    return None


def _closing(args: Mapping[str, Json], event: Mapping[str, Json]) -> str:
    """Return an agent's last words; the program's wording of them only where it said none."""
    outputs = args.get("outputs")
    said = [args.get("final_thought"), args.get("thought")]
    said.append(outputs.get("content") if isinstance(outputs, dict) else None)
    said.append(event.get("message"))
    return next((text for item in said if (text := _text(item)).strip()), "")


def _images(source: Mapping[str, Json]) -> tuple[str, ...]:
    urls = source.get("image_urls")
    listed = [*(urls if isinstance(urls, list) else []), source.get("screenshot")]
    return tuple(media("image", url) for url in listed if isinstance(url, str) and url)


def _exit_code(extras: Mapping[str, Json]) -> str | None:
    metadata = extras.get("metadata")
    inner = metadata if isinstance(metadata, dict) else {}
    return first_text(extras, "exit_code") or first_text(inner, "exit_code")


def _text(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else compact(value)
