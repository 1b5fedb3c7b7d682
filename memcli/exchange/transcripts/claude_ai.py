"""Claude.ai's data export: `conversations.json`, or a single conversation of it.

- `content` is read, never `text`, which glues thinking and answer together; only where there is no content it is all
  there is. Each entry of `chat_messages` is one message, and each tool result in it one more, behind it.
- Order is the order of the file. Where messages answer the same one, that is told: nothing says which is current.
- The words of a pasted document travel with its message and are not part of it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from memcli.exchange.loose import Prose, Record
from memcli.exchange.shapes import SURE, Draft, Warn, first_text, media, shown, text_or_none, when
from memcli.exchange.transcripts.blocks import blocks
from memcli.exchange.transcripts.exports import Item, items, listed
from memcli.exchange.transcripts.parts import Parts
from memcli.facts import Conversation, Json, Turn, Warned
from memcli.record import record

_NAME = "claude-ai"
_AROUND = ("conversations",)
_ROOT = "00000000-0000-4000-8000-000000000000"
"""The parent of every first message."""


@record
class ClaudeAI:
    """The reader of Claude.ai exports."""

    name: str = _NAME
    title: str = "a Claude.ai export"

    def claims(self, value: Json | Prose) -> int:
        """Return `SURE` for a conversation with `chat_messages`, or a list with one in it."""
        found = (item for item in listed(value, _AROUND) if isinstance(item, dict))
        return SURE if any(isinstance(item.get("chat_messages"), list) for item in found) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield each conversation in which something was said."""
        for item in items(records, warn, around=_AROUND):
            messages = item.value.get("chat_messages")
            if not isinstance(messages, list) or not messages:
                item.skip(warn, "a conversation without messages")
                continue
            draft = Draft(
                format=_NAME,
                session=first_text(item.value, "uuid", "id"),
                title=first_text(item.value, "name", "title"),
            )
            told = item.told(warn)
            for message in messages:
                _take(message, item, draft, told)
            _tell_branches(messages, item, told)
            if draft.turns:
                yield draft.finished(told)
            else:
                item.skip(warn, "a conversation without messages")


CLAUDE_AI = ClaudeAI()


def _take(message: Json, item: Item, draft: Draft, warn: Warn) -> None:
    if not isinstance(message, dict):
        warn(Warned(line=item.line, message=f"skipped what is no message: {shown(message)}"))
        return
    content = message.get("content")
    found = blocks(content if content not in (None, []) else _only_text(message))
    parts = found.parts
    role, raw_role = parts.role(message.get("sender", message.get("role")))
    at, at_text = when(message)
    notes = _documents(message, parts)
    parent = _parent(message)
    said = Turn(
        role=role,
        content="",
        at=at,
        at_text=at_text,
        origin=first_text(message, "uuid", "id"),
        parent=None if parent == _ROOT else parent,
        raw_role=raw_role,
    )
    if found.speaks or notes or not found.results:
        parts.place(said, draft, item.line, warn)
    for result in found.results:
        draft.add(replace(result, at=at, at_text=at_text, origin=said.origin, parent=said.parent), item.line)


def _only_text(message: Mapping[str, Json]) -> Json:
    """Return the text of a message without content; it is no defect that a file was sent without a word."""
    return message.get("text") or ("" if message.get("files") or message.get("attachments") else None)


def _documents(message: Mapping[str, Json], parts: Parts) -> bool:
    """Add a note of each file that came with a message, and the words of those that were text."""
    notes: list[str] = []
    for key in ("attachments", "files"):
        listing = message.get(key)
        for entry in listing if isinstance(listing, list) else []:
            source = entry if isinstance(entry, dict) else {"file_name": text_or_none(entry)}
            name = first_text(source, "file_name", "name", "file_uuid", "id")
            notes.append(media("file", name))
            inside = source.get("extracted_content")
            if isinstance(inside, str) and inside:
                parts.extra.append((f"text of {name or 'a file'}", inside))
    parts.attachments.extend(dict.fromkeys(notes))
    return bool(notes)


def _tell_branches(messages: list[Json], item: Item, warn: Warn) -> None:
    parents = Counter(
        parent for message in messages if isinstance(message, dict) and (parent := _parent(message)) is not None
    )
    others = sum(count - 1 for count in parents.values())
    if others:
        many = "1 message answers" if others == 1 else f"{others:,} messages answer"
        warn(Warned(line=item.line, message=f"{many} what another one answers too; all are kept, in the file's order"))


def _parent(message: Mapping[str, Json]) -> str | None:
    return first_text(message, "parent_message_uuid")
