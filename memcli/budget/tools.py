"""Tool calls and their results: which message answers which, and what a call says."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memcli.budget.messages import BudgetMessage, PartKind, laden
from memcli.record import record


@record
class Group:
    """A message with calls and the results that answer it; `call` is None where no message made the call."""

    call: int | None
    results: tuple[int, ...]


def groups_of(messages: Sequence[BudgetMessage]) -> tuple[Group, ...]:
    """Return every group with a result, in the order of its first message.

    A result belongs to the last message before it that made a call with its id; one that names no id belongs to the
    last message before it that made any.
    """
    made: dict[str, int] = {}
    latest: int | None = None
    results: dict[int, list[int]] = {}
    alone: list[int] = []
    roles = ("tool", "function")
    # A plain message makes no call, and only these roles answer one.
    for at in sorted({at for at, message in enumerate(messages) if message.role in roles}.union(laden(messages))):
        message = messages[at]
        ids = [call for call, _ in _calls(message)]
        if ids:
            latest = at
            made |= {name: at for name in ids if name is not None}
        if message.role not in roles:
            continue
        answered = message.kwargs.get("tool_call_id")
        call = made.get(answered) if isinstance(answered, str) else latest
        if call is None:
            alone.append(at)
        else:
            results.setdefault(call, []).append(at)
    grouped = [Group(call=call, results=tuple(answers)) for call, answers in results.items()]
    grouped += [Group(call=None, results=(at,)) for at in alone]
    return tuple(sorted(grouped, key=lambda group: group.results[0] if group.call is None else group.call))


def call_texts(message: BudgetMessage, *, free_only: bool = False) -> list[str]:
    """Return the ids, names and arguments of the calls of a message, each call once.

    Args:
        free_only: Leave out calls that also stand in the keywords, where LlamaIndex counts them.
    """
    beside = [text for _, text in _beside(message.kwargs)]
    if beside:
        return [] if free_only else [piece for text in beside for piece in text]
    return [piece for _, text in _parts(message) for piece in text]


def _calls(message: BudgetMessage) -> Iterator[tuple[str | None, list[str]]]:
    yield from _beside(message.kwargs)
    yield from _parts(message)


def _parts(message: BudgetMessage) -> Iterator[tuple[str | None, list[str]]]:
    for part in message.parts:
        if part.kind is PartKind.TOOL_CALL:
            yield part.call, [text for text in (part.call, part.name, part.text) if text]


def _beside(kwargs: Mapping[str, Any]) -> Iterator[tuple[str | None, list[str]]]:
    """Yield the id and texts of the calls in OpenAI's keywords, old and new; what is no call is passed over."""
    calls = kwargs.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            name = call.get("id")
            named = [name] if isinstance(name, str) else []
            yield (named[0] if named else None), named + _said(call.get("function"))
    if isinstance(kwargs.get("function_call"), dict):
        yield None, _said(kwargs["function_call"])


def _said(function: Any) -> list[str]:
    if not isinstance(function, dict):
        return []
    return [value for key in ("name", "arguments") if isinstance(value := function.get(key), str)]
