"""LongMemEval: questions, each with the sessions of a haystack in which the answer is to be found.

Every session of a haystack is a conversation, with its id, and with its date at each message; a date has no zone and
so stays text. Questions, answers and marks of where the answer stands are no part of what was said.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from memcli.clock import lenient_instant
from memcli.exchange.loose import Prose, Record
from memcli.exchange.shapes import SURE, Draft, Warn, shown, text_or_none
from memcli.exchange.transcripts.exports import Item, items, listed
from memcli.exchange.transcripts.openai import add_message
from memcli.facts import Conversation, Json, Warned
from memcli.record import record

_NAME = "longmemeval"


@record
class LongMemEval:
    """The reader of the LongMemEval data set."""

    name: str = _NAME
    title: str = "LongMemEval questions"

    def claims(self, value: Json | Prose) -> int:
        """Return `SURE` for a question with its haystack, or a list with one in it."""
        found = (item for item in listed(value) if isinstance(item, dict))
        return SURE if any(isinstance(item.get("haystack_sessions"), list) for item in found) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield each session of each haystack."""
        for item in items(records, warn):
            sessions = item.value.get("haystack_sessions")
            if not isinstance(sessions, list) or not sessions:
                item.skip(warn, "a question without sessions")
                continue
            for place, session in enumerate(sessions):
                yield from _session(session, place, item, warn)


LONGMEMEVAL = LongMemEval()


def _session(session: Json, place: int, item: Item, warn: Warn) -> Iterator[Conversation]:
    identity = text_or_none(_beside(item.value, "haystack_session_ids", place))
    told = item.told(warn)
    if not isinstance(session, list) or not session:
        told(Warned(line=item.line, message=f"skipped session {place + 1} without messages, id {shown(identity)}"))
        return
    draft = Draft(format=_NAME, session=identity)
    for message in session:
        add_message(message, item.line, draft, told)
    at, at_text = lenient_instant(_beside(item.value, "haystack_dates", place))
    for index, turn in enumerate(draft.turns):
        if turn.at is None and turn.at_text is None:
            draft.turns[index] = replace(turn, at=at, at_text=at_text)
    if draft.turns:
        yield draft.finished(told)


def _beside(value: Mapping[str, Json], key: str, place: int) -> Json:
    listing = value.get(key)
    return listing[place] if isinstance(listing, list) and place < len(listing) else None
