"""ShareGPT: lists or lines of `{"conversations": [{"from", "value"}]}`, as chat data sets are passed around.

- `system` of a record is its first message. A `function_call` is an assistant's message with the call in it, the next
  `observation` its result; neither has an id.
- Of a pair of answers the chosen one ends the conversation. The rejected one was never said, and is only told of.
- Some data sets keep OpenAI's `role` and `content` under `conversations`; those are read as what they are.
"""

from collections.abc import Iterator, Mapping

from memcli.exchange.loose import Prose, Record, parse
from memcli.exchange.shapes import ROLES, SURE, Draft, Warn, call, first_text, shown, when
from memcli.exchange.transcripts.exports import Item, items
from memcli.exchange.transcripts.openai import add_message
from memcli.exchange.transcripts.parts import Parts
from memcli.facts import Conversation, Json, Turn, Warned
from memcli.record import record
from memcli.terms import Role

_NAME = "sharegpt"
_LISTS = ("conversations", "conversation", "items")
_CALLS = frozenset({"function_call", "function-call", "tool_call", "tool-call"})
_SPEAKERS: Mapping[str, Role] = {
    **ROLES,
    **dict.fromkeys(("chatgpt", "bing", "bard", "claude", "gpt4", "gpt-4", "llm"), Role.ASSISTANT),
    **dict.fromkeys(("function_response", "function-response", "tool_response", "tool-response"), Role.TOOL),
}


@record
class ShareGPT:
    """The reader of ShareGPT data sets."""

    name: str = _NAME
    title: str = "ShareGPT conversations"

    def claims(self, value: Json | Prose) -> int:
        """Return `SURE` for a list with a conversation of `from` and `value` in it, and 3 for one that stands alone."""
        if isinstance(value, list):
            votes = max((self.claims(item) for item in value if isinstance(item, dict)), default=0)
            return SURE if votes == 3 else votes
        if not isinstance(value, dict):
            return 0
        turns = [turn for turn in _turns(value) if isinstance(turn, dict)]
        if any("from" in turn and "value" in turn for turn in turns):
            return 3
        return 1 if any("content" in turn and isinstance(turn.get("role"), str) for turn in turns) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield each conversation, and tell at the end how many rejected answers there were."""
        rejected: list[int | None] = []
        for item in items(records, warn):
            told = item.told(warn)
            draft = Draft(format=_NAME, session=first_text(item.value, "id", "uuid", "conversation_id"))
            for turn in _said(item):
                _take(turn, item.line, draft, told)
            if item.value.get("rejected") is not None:
                rejected.append(item.line)
            if draft.turns:
                yield draft.finished(told)
            else:
                item.skip(warn, "a conversation without messages")
        if rejected:
            many = "1 rejected answer was" if len(rejected) == 1 else f"{len(rejected):,} rejected answers were"
            warn(Warned(line=rejected[0], message=f"{many} not taken: nobody said them"))


SHAREGPT = ShareGPT()


def _turns(value: Mapping[str, Json]) -> list[Json]:
    return next((found for key in _LISTS if isinstance(found := value.get(key), list)), [])


def _said(item: Item) -> Iterator[Json]:
    """Yield what was said in one record: the system's words, the turns, and the answer that was chosen."""
    system = item.value.get("system")
    if system not in (None, ""):
        yield {"from": "system", "value": system}
    turns = _turns(item.value)
    yield from turns
    chosen = item.value.get("chosen")
    answers = chosen if isinstance(chosen, list) else [chosen]
    # Some data sets repeat the whole conversation before the answer.
    for answer in answers[len(turns) :] if answers[: len(turns)] == turns else answers:
        if answer is not None:
            yield answer if isinstance(answer, dict) else {"from": "gpt", "value": answer}


def _take(turn: Json, line: int | None, draft: Draft, warn: Warn) -> None:
    if not isinstance(turn, dict) or not ("from" in turn or "value" in turn):
        add_message(turn, line, draft, warn)
        return
    parts = Parts()
    spelling = turn.get("from")
    speaker = spelling.strip().casefold() if isinstance(spelling, str) else ""
    raw_role: str | None = None
    if speaker in _CALLS:
        role = Role.ASSISTANT
        _calls(turn.get("value"), parts)
    elif speaker in _SPEAKERS:
        role = _SPEAKERS[speaker]
        _value(turn.get("value"), parts)
    else:
        role, raw_role = parts.role(spelling)
        _value(turn.get("value"), parts)
    at, at_text = when(turn)
    said = Turn(
        role=role,
        content="",
        name=first_text(turn, "name"),
        at=at,
        at_text=at_text,
        origin=first_text(turn, "id"),
        raw_role=raw_role,
    )
    parts.place(said, draft, line, warn)


def _value(value: Json, parts: Parts) -> None:
    if value is None:
        parts.doubts.append("it has no value; kept empty")
        return
    parts.text(value)
    if not isinstance(value, str):
        parts.doubts.append(f"its value is no text; kept as text: {shown(value)}")


def _calls(value: Json, parts: Parts) -> None:
    """Add the call, or the list of calls, that a value holds as JSON text; what is none stays as text."""
    inner = value
    if isinstance(value, str):
        parsed = parse(value)
        inner = parsed.values[0] if len(parsed.values) == 1 and parsed.problem is None else None
    for made in inner if isinstance(inner, list) else [inner]:
        if isinstance(made, dict) and "name" in made:
            arguments = next((made[key] for key in ("arguments", "parameters", "args") if key in made), None)
            parts.call(call(made.get("id"), made["name"], arguments))
    if not parts.calls:
        _value(value, parts)
        parts.doubts.append(f"its value is no call; kept as text: {shown(value)}")
