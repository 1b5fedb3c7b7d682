"""Events of the OpenHands SDK, which have a `kind`: one event, one message."""

from collections.abc import Iterator, Mapping

from memcli.exchange.shapes import ROLES, call, compact, first_text, media, shown, text_or_none
from memcli.facts import Json, ToolCall, Turn
from memcli.terms import Role

_SOURCES: Mapping[str, Role] = {"user": Role.USER, "agent": Role.ASSISTANT}
_SPOKEN = frozenset({"SystemPromptEvent", "MessageEvent", "ActionEvent"})
_RESULTS = frozenset({"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"})
_COMPACTED = frozenset({"Condensation", "CondensationSummaryEvent"})


def is_sdk_event(value: Mapping[str, Json]) -> bool:
    """Return whether this is an event of the SDK."""
    kind = value.get("kind")
    ours = isinstance(kind, str) and (kind.endswith("Event") or kind in _SPOKEN | _RESULTS | _COMPACTED)
    return ours and "source" in value and "timestamp" in value


def sdk_turn(event: Mapping[str, Json]) -> tuple[Turn | None, str | None]:
    """Return the message of an event, None where it is none; and what to tell of it, None where there is nothing."""
    kind = text_or_none(event.get("kind")) or ""
    if kind in _COMPACTED:
        return None, f"the model's context was condensed here to {shown(event.get('summary'))}; what was said is kept"
    if kind in _RESULTS:
        return _result(event), None
    if kind == "ActionEvent":
        return _action(event), None
    if kind == "SystemPromptEvent":
        texts, attachments = _texts(event.get("system_prompt"))
        return Turn(role=Role.SYSTEM, content=texts, attachments=attachments), None
    if kind == "MessageEvent":
        return _message(event)
    return None, None


def _message(event: Mapping[str, Json]) -> tuple[Turn, str | None]:
    held = event.get("llm_message")
    message = held if isinstance(held, dict) else {}
    raw = text_or_none(message.get("role"))
    role = ROLES.get((raw or "").casefold()) or _SOURCES.get(text_or_none(event.get("source")) or "")
    content, attachments = _texts(message.get("content"))
    turn = Turn(
        role=role or Role.UNKNOWN,
        content=content,
        attachments=attachments,
        thinking=text_or_none(message.get("reasoning_content")),
        raw_role=raw if role is None else None,
    )
    doubt = f"the role {shown(raw)} is not known; kept as unknown" if role is None else None
    return turn, doubt if held is message else "a message event without its message; kept empty"


def _action(event: Mapping[str, Json]) -> Turn:
    content, attachments = _texts(event.get("thought"))
    return Turn(
        role=Role.ASSISTANT,
        content=content,
        tool_calls=(_call(event),),
        thinking=text_or_none(event.get("reasoning_content")),
        attachments=attachments,
    )


def _call(event: Mapping[str, Json]) -> ToolCall:
    held, action = event.get("tool_call"), event.get("action")
    made = held if isinstance(held, dict) else {}
    function = made.get("function")
    inner = function if isinstance(function, dict) else made
    ran: Json = {key: item for key, item in action.items() if key != "kind"} if isinstance(action, dict) else action
    identity = first_text(event, "tool_call_id") or first_text(made, "id") or first_text(event, "id")
    name = first_text(event, "tool_name") or first_text(inner, "name")
    return call(identity, name, inner.get("arguments", ran))


def _result(event: Mapping[str, Json]) -> Turn:
    held = event.get("observation")
    observation = held if isinstance(held, dict) else {}
    content, attachments = _texts(
        observation.get("content", observation.get("output"))
        if observation
        else next((event[key] for key in ("error", "rejection_reason", "observation") if key in event), None)
    )
    if not content and observation and "content" not in observation:
        content = compact({key: item for key, item in observation.items() if key != "kind"})
    code = first_text(observation, "exit_code")
    return Turn(
        role=Role.TOOL,
        content=content,
        name=text_or_none(event.get("tool_name")),
        parent=text_or_none(event.get("action_id")),
        tool_call_id=first_text(event, "tool_call_id", "action_id"),
        attachments=attachments,
        extra=(("exit_code", code),) if code is not None else (),
    )


def _texts(content: Json) -> tuple[str, tuple[str, ...]]:
    """Return the text of a content, and a note for each image in it."""
    texts: list[str] = []
    notes: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, dict) and part.get("type") == "image":
            notes += _addresses(part)
        elif isinstance(part, dict):
            text = part.get("text", part)
            texts.append(text if isinstance(text, str) else compact(text))
        elif part is not None:
            texts.append(part if isinstance(part, str) else compact(part))
    return "\n".join(texts), tuple(notes)


def _addresses(part: Mapping[str, Json]) -> Iterator[str]:
    urls = part.get("image_urls")
    for url in urls if isinstance(urls, list) else [part.get("url")]:
        yield media("image", url)
