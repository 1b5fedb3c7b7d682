"""LoCoMo and REALTALK: people who talk to each other over many sessions.

- Every `session_N` is a conversation. Those who speak are people, so all are users, told apart by their names; nobody
  is made the assistant. Dates have no zone and so stay text.
- A shared picture is noted; what a machine saw in it, and what it was searched by, travels with the message.
- Questions, observations, summaries and events are no part of what was said. A date without a session is nothing.
"""

import re
from collections.abc import Iterator, Mapping

from memcli.clock import lenient_instant
from memcli.exchange.loose import Prose, Record
from memcli.exchange.shapes import SURE, Draft, Warn, first_text, media, shown, text_or_none
from memcli.exchange.transcripts.exports import Item, items, listed
from memcli.exchange.transcripts.parts import Parts
from memcli.facts import Conversation, Json, Turn, Warned
from memcli.record import record
from memcli.terms import Role

_NAME = "locomo"
_SESSION = r"session_([0-9]{1,6})"
_BESIDE = ("blip_caption", "query", "search_query")


@record
class LoCoMo:
    """The reader of LoCoMo, of its older layout, and of REALTALK."""

    name: str = _NAME
    title: str = "LoCoMo conversations"

    def claims(self, value: Json | Prose) -> int:
        """Return `SURE` for a dictionary with sessions of people who talk, or a list with one in it."""
        return SURE if any(map(_is_talk, listed(value))) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield each session, in the order of their numbers."""
        for item in items(records, warn):
            talk = _talk(item.value)
            sessions = _sessions(talk)
            if not sessions:
                item.skip(warn, "a conversation without sessions")
            for key in sessions:
                yield from _session(talk, key, item, warn)


LOCOMO = LoCoMo()


def _is_talk(value: Json | Prose) -> bool:
    if not isinstance(value, dict):
        return False
    talk = _talk(value)
    if not any(key.startswith("session_") for key in talk):
        return False
    turns = (turn for key in _sessions(talk) for turn in _listing(talk, key))
    return any(isinstance(turn, dict) and "speaker" in turn for turn in turns)


def _talk(value: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return what holds the sessions: the dictionary itself, or its `conversation`."""
    inner = value.get("conversation")
    return inner if isinstance(inner, dict) else value


def _sessions(talk: Mapping[str, Json]) -> list[str]:
    named = [key for key in talk if key.startswith("session_")]
    numbers = {key: int(found.group(1)) for key in named if (found := re.fullmatch(_SESSION, key))}
    return sorted(numbers, key=numbers.__getitem__)


def _listing(talk: Mapping[str, Json], key: str) -> list[Json]:
    turns = talk.get(key)
    return turns if isinstance(turns, list) else []


def _session(talk: Mapping[str, Json], key: str, item: Item, warn: Warn) -> Iterator[Conversation]:
    sample = first_text(item.value, "sample_id", "id")
    draft = Draft(format=_NAME, session=key if sample is None else f"{sample}/{key}")
    told = item.told(warn)
    date = talk.get(f"{key}_date_time")
    for turn in _listing(talk, key):
        _take(turn, date, draft, item.line, told)
    if draft.turns:
        yield draft.finished(told)
    else:
        told(Warned(line=item.line, message=f"skipped {key} without messages"))


def _take(turn: Json, date: Json, draft: Draft, line: int | None, warn: Warn) -> None:
    if not isinstance(turn, dict):
        warn(Warned(line=line, message=f"{draft.session}: skipped what is no message: {shown(turn)}"))
        return
    parts = Parts()
    text = next((turn[key] for key in ("clean_text", "text", "raw_text") if turn.get(key) is not None), None)
    parts.text(text)
    for link in _links(turn):
        parts.attachments.append(media("image", text_or_none(link)))
    parts.extra.extend((key, words) for key in _BESIDE if (words := first_text(turn, key)) is not None)
    name = text_or_none(turn.get("speaker"))
    if name is None:
        parts.doubts.append("it does not say who speaks")
    if not isinstance(text, str) and not parts.attachments:
        parts.doubts.append("it has no text" if text is None else f"its text is none; kept as text: {shown(text)}")
    at, at_text = lenient_instant(turn.get("date_time") or date)
    origin = first_text(turn, "dia_id")
    parts.place(Turn(role=Role.USER, content="", name=name, at=at, at_text=at_text, origin=origin), draft, line, warn)


def _links(turn: Mapping[str, Json]) -> list[Json]:
    links = next((turn[key] for key in ("img_url", "img_file") if turn.get(key)), None)
    return links if isinstance(links, list) else [] if links is None else [links]
