"""tau-bench results: a list of `{task_id, reward, info, traj, trial}`, of which `traj` is a list of OpenAI's messages.

Each record is a conversation of its own, named after its task and trial. What the task was, and what it was worth, is
not part of what was said.
"""

from collections.abc import Iterator, Mapping

from memcli.exchange.loose import Prose, Record
from memcli.exchange.shapes import SURE, Draft, Warn, text_or_none
from memcli.exchange.transcripts.exports import Item, items, listed
from memcli.exchange.transcripts.openai import add_message
from memcli.facts import Conversation, Json
from memcli.record import record

_NAME = "tau-bench"
_BESIDE = frozenset({"task_id", "reward", "trial", "info"})


@record
class TauBench:
    """The reader of tau-bench results."""

    name: str = _NAME
    title: str = "tau-bench results"

    def claims(self, value: Json | Prose) -> int:
        """Return `SURE` for a list with a result in it, and 3 for a result that stands alone."""
        if not any(map(_is_result, listed(value))):
            return 0
        return SURE if isinstance(value, list) else 3

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield the conversation of each result."""
        for item in items(records, warn):
            draft = Draft(format=_NAME, session=_session(item.value))
            told = item.told(warn)
            for message in _messages(item, warn):
                add_message(message, item.line, draft, told)
            if draft.turns:
                yield draft.finished(told)


TAU_BENCH = TauBench()


def _is_result(value: Json | Prose) -> bool:
    return isinstance(value, dict) and isinstance(value.get("traj"), list) and not _BESIDE.isdisjoint(value)


def _messages(item: Item, warn: Warn) -> list[Json]:
    messages = item.value.get("traj")
    if isinstance(messages, list) and messages:
        return messages
    item.skip(warn, "a result without messages")
    return []


def _session(value: Mapping[str, Json]) -> str | None:
    task, trial = text_or_none(value.get("task_id")), text_or_none(value.get("trial"))
    return task if task is None or trial is None else f"{task}/{trial}"
