"""Blocks that make themselves smaller, piece by piece.

Facts go the least important first, retrieved passages the least like the question first.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from memcli.budget.messages import BudgetMessage, Count, Part, PartKind, text_part
from memcli.record import record

DEFAULT_MAX_FACTS: Final = 50
DEFAULT_TOP_K: Final = 5
DEFAULT_CONTEXT: Final = 5
MILLION: Final = 1_000_000

LEARNT: Final = "FACT:"
"""What a line begins with that a learning block takes for a fact."""


@record
class GivenFact:
    """A fact for a prompt; `importance` None counts as the least."""

    text: str
    importance: float | None = None


class Listed:
    """Several texts, the most wanted first, so that the last is the first to go."""

    __slots__ = ("_count",)

    def __init__(self, count: Count) -> None:
        self._count = count

    def truncate(self, content: Any, tokens_to_drop: int) -> list[Part] | None:
        """Return the texts without as many at the end as hold the tokens, or None where nothing would be left."""
        kept = list(content)
        dropped = 0
        while kept and dropped < tokens_to_drop:
            part = kept.pop()
            dropped += self._count(part.text) if part.kind is PartKind.TEXT else 0
        return kept or None


class FactsBlock(Listed):
    """Facts, the most important first; of equals the one that came first.

    Args:
        max_facts: The others are left out, whatever room there is.
        learns: Lines that begin with `FACT:` in what leaves the window become facts that come last.
    """

    __slots__ = ("_facts", "_learns", "_max_facts")

    def __init__(
        self, facts: Sequence[GivenFact], count: Count, *, max_facts: int = DEFAULT_MAX_FACTS, learns: bool = False
    ) -> None:
        super().__init__(count)
        ordered = sorted(facts, key=lambda fact: -(fact.importance or 0.0))
        self._facts = dict.fromkeys([fact.text for fact in ordered])
        self._max_facts = max_facts
        self._learns = learns

    @property
    def takes(self) -> bool:
        """Return whether what leaves the window is kept."""
        return self._learns

    def hidden(self) -> list[str]:
        """Return the facts that are more than may be shown."""
        return list(self._facts)[self._max_facts :]

    def get(self, messages: Sequence[BudgetMessage]) -> list[Part]:  # noqa: ARG002  # the same for every prompt
        """Return the facts, one part each."""
        return [text_part(fact) for fact in list(self._facts)[: self._max_facts]]

    def put(self, messages: Sequence[BudgetMessage]) -> None:
        """Learn the facts of a batch, where the block learns."""
        if self._learns:
            self._facts |= dict.fromkeys([fact for message in messages for fact in stated(message)])


def stated(message: BudgetMessage) -> list[str]:
    """Return what the lines of a message that begin with `FACT:` say."""
    lines = [line for line in message.lines.splitlines() if line.startswith(LEARNT)]
    return [fact for line in lines if (fact := line.removeprefix(LEARNT).strip())]


_WORD = re.compile(r"\w+")


@record
class Passage:
    """A message that a block keeps: its number among all it was given, and its words."""

    number: int
    message: BudgetMessage
    text: str


class RetrievedBlock(Listed):
    """Messages that left the window, those first that share the rarest words with the end of the conversation.

    The score of a passage is the sum, over the different words it shares with the last messages, of a million
    divided by the number of passages that hold the word, rounded down. A word is a run of letters, digits and `_`,
    whatever its case. Of equals the newer comes first; what scores nothing does not come at all, nor does what the
    window still holds.

    Args:
        top_k: How many passages come back at most.
        context: How many of the last messages are the question.
    """

    __slots__ = ("_context", "_holders", "_passages", "_top_k")

    takes = True

    def __init__(self, count: Count, *, top_k: int = DEFAULT_TOP_K, context: int = DEFAULT_CONTEXT) -> None:
        super().__init__(count)
        self._top_k = top_k
        self._context = context
        self._passages: list[Passage] = []
        self._holders: dict[str, list[int]] = {}

    def get(self, messages: Sequence[BudgetMessage]) -> list[Part]:
        """Return the passages that are most like the last messages, best first."""
        question = " ".join([message.words for message in messages[-self._context :]])
        scores: dict[int, int] = {}
        for word in sorted(words_of(question)):
            holders = self._holders.get(word, ())
            for number in holders:
                scores[number] = scores.get(number, 0) + MILLION // len(holders)
        shown = {id(message) for message in messages}
        ranked = sorted(scores, key=lambda number: (-scores[number], -number))
        found = [self._passages[number] for number in ranked if id(self._passages[number].message) not in shown]
        return [text_part(passage.text) for passage in found[: self._top_k]]

    def put(self, messages: Sequence[BudgetMessage]) -> None:
        """Keep each message that has words."""
        for message in messages:
            if not message.words.strip():
                continue
            number = len(self._passages)
            text = f"{message.role}: {message.words.strip()}"
            self._passages.append(Passage(number=number, message=message, text=text))
            for word in words_of(message.words):
                self._holders.setdefault(word, []).append(number)


def words_of(text: str) -> frozenset[str]:
    """Return the different words of a text, lower-cased."""
    return frozenset(_WORD.findall(text.lower()))
