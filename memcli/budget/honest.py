"""What a message really costs at the provider, whatever a policy believes: everything that is sent is counted.

Sent are the texts of a message, its thinking, what it cites, the name, id and arguments of each tool call, the id of
the call it answers, and every other keyword that travels beside it. Images, sounds and documents have flat estimates.

A chat is wrapped, and for the encodings of OpenAI's chat models the wrapping is known: `CHAT`. `words` and `chars`
are for figures that are checked by hand and have none; nor has an encoding that no chat model uses.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

from memcli.budget.messages import BudgetMessage, Count, Estimates, PartKind, flat, laden
from memcli.facts import Json
from memcli.record import record

CountMany: TypeAlias = Callable[[Sequence[str]], Sequence[int]]


@record
class Overhead:
    """Tokens that nobody wrote.

    Args:
        message: Around every message.
        name: Beside a name.
        reply: At the end, where the answer begins.
        roles: Whether the role is a text that is sent.
    """

    message: int = 0
    name: int = 0
    reply: int = 0
    roles: bool = False

    def as_json(self) -> dict[str, Json]:
        """Return the constants by name."""
        return {"message": self.message, "name": self.name, "reply": self.reply, "roles": self.roles}


NOTHING: Final = Overhead()

CHAT: Final = Overhead(message=3, name=1, reply=3, roles=True)
"""The figures that OpenAI publishes for its chat models: 3 tokens a message and its role, 1 beside a name, 3 for the
reply."""

OVERHEADS: Final[Mapping[str, Overhead]] = {"cl100k_base": CHAT, "o200k_base": CHAT, "o200k_harmony": CHAT}
"""The wrapping by encoding; any other has none."""

_SAID: Final = frozenset({PartKind.TEXT, PartKind.THINKING, PartKind.CITABLE, PartKind.CITATION})


def overhead_of(encoding: str) -> Overhead:
    """Return what is put around messages that are counted in that encoding."""
    return OVERHEADS.get(encoding, NOTHING)


class Tally:
    """Counts each text once and remembers it. Call it with a text for its tokens.

    Args:
        count_many: Counts many texts at once, in less time; None means one by one.
    """

    __slots__ = ("_count_many", "_known", "count")

    def __init__(self, count: Count, count_many: CountMany | None = None) -> None:
        self.count = count
        """Counts without remembering, for texts that are put together."""
        self._count_many = count_many
        self._known: dict[str, int] = {}

    def load(self, texts: Iterable[str]) -> None:
        """Count those that are not known yet, all in one call."""
        known = self._known
        new = [text for text in dict.fromkeys(texts) if text not in known]
        counts = map(self.count, new) if self._count_many is None else self._count_many(new)
        known.update(zip(new, counts, strict=True))

    def all(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each text; those that are not known yet are counted in one call."""
        self.load(texts)
        known = self._known
        return [known[text] for text in texts]

    def sums(self, groups: Sequence[Sequence[str]]) -> list[int]:
        """Return the tokens of each group of texts; those that are not known yet are counted in one call."""
        self.load(chain.from_iterable(groups))
        known = self._known
        return [sum([known[text] for text in group]) for group in groups]

    def __call__(self, text: str) -> int:
        """Return the tokens of the text."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self.count(text)
        return known


def sent(message: BudgetMessage, overhead: Overhead) -> list[str]:
    """Return the texts of a message that reach the provider."""
    if message.is_plain:
        said = [message.parts[0].text] if message.parts[0].text else []
        return [*said, message.role] if overhead.roles else said
    texts = [part.text for part in message.parts if part.kind in _SAID and part.text]
    if overhead.roles:
        texts.append(message.role)
    if "tool_calls" not in message.kwargs:
        calls = [part for part in message.parts if part.kind is PartKind.TOOL_CALL]
        texts += [text for part in calls for text in (part.call, part.name, part.text) if text]
    for key, value in message.kwargs.items():
        texts += _called(value) if key == "tool_calls" else _texts(value)
    return texts


def _called(calls: Json) -> list[str]:
    """Return id, name and arguments of each call; one of another shape is sent as it is."""
    texts: list[str] = []
    for call in calls if isinstance(calls, list) else [calls]:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(function, dict):
            texts += _texts(call)
            continue
        for value in (call.get("id"), function.get("name"), function.get("arguments")):
            texts += _texts(value)
    return texts


def _texts(value: Json) -> list[str]:
    if value is None or value == "":
        return []
    return [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)]


def real_tokens(message: BudgetMessage, estimates: Estimates, overhead: Overhead, count: Count) -> int:
    """Return what a message costs at the provider."""
    return sum(map(count, sent(message, overhead))) + _beside(message, estimates, overhead)


def all_real_tokens(
    messages: Sequence[BudgetMessage], estimates: Estimates, overhead: Overhead, tally: Tally
) -> tuple[int, ...]:
    """Return what each message costs at the provider, with all texts counted in one call."""
    around = overhead.message
    if overhead.roles and not laden(messages):
        said = tally.all([message.parts[0].text for message in messages])
        roles = tally.all([message.role for message in messages])
        return tuple([text + role + around for text, role in zip(said, roles, strict=True)])
    said = tally.sums([sent(message, overhead) for message in messages])
    return tuple(
        [
            tokens + (around if message.is_plain else _beside(message, estimates, overhead))
            for tokens, message in zip(said, messages, strict=True)
        ]
    )


def _beside(message: BudgetMessage, estimates: Estimates, overhead: Overhead) -> int:
    """Return the tokens of a message that are in none of its texts."""
    named = overhead.name if message.kwargs.get("name") else 0
    return overhead.message + named + flat(message.parts, estimates)
