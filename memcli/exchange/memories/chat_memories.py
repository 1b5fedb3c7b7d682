"""What ChatGPT and Claude.ai remember of a person.

ChatGPT's are short statements, one a record. Claude.ai keeps an account in paragraphs under bold titles, for all
conversations and for each project; it is cut into sentences. Lists that a model was asked to write of what it
remembers, `[2025-03-01] - Likes tea`, are read too; the day stays as it stands, since it is no instant.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from memcli.exchange.loose import Prose, Record
from memcli.exchange.memories.fields import Extra, extras, moment, speaking, statement, timed
from memcli.exchange.memories.markdown import is_chat, lines_of
from memcli.exchange.memories.notes import placeholder, statements
from memcli.exchange.shapes import SURE, Warn, shown, text_or_none
from memcli.facts import Json, Remembered, Warned
from memcli.record import record
from memcli.terms import State

_NAME = "chat-memories"
_ACCOUNT = ("conversations_memory", "conversation_memory", "project_memories", "projects_memory")
_LISTS = ("memories", "saved_memories", "savedMemories", "bio", "model_set_context")
_TEXT = ("content", "text", "memory", "value", "fact", "title")
_TIME = ("updated_at", "last_updated", "created_at", "created_timestamp", "create_time", "created", "timestamp", "date")
_KNOWN = frozenset(
    {
        *(*_TIME, "id", "uuid", "content", "text", "title", "conversation_id", "conversationId", "conversation_title"),
        *("status", "source", "type", "category", "labels", "tags", "user_id", "enabled", "deleted", "is_deleted"),
    }
)
_AROUND = frozenset({*_ACCOUNT, *_LISTS, "account_uuid", "uuid"})
_DATED = re.compile(
    r"(?:[-*+]|\d{1,4}[.)])?[ \t]*\[(\d{4}-\d{2}(?:-\d{2})?|unknown(?: date)?|no date|date unknown)\]"
    r"[.:]?[ \t]*[-\u2013\u2014:]*[ \t]*(\S.*)$",
    re.IGNORECASE,
)


@record
class ChatMemories:
    """The reader of ChatGPT's and Claude.ai's memories."""

    name: str = _NAME
    title: str = "memories of ChatGPT or Claude.ai"

    def claims(self, value: Json | Prose) -> int:
        """Return certainty for an account of Claude.ai or a list of ChatGPT, few votes for what only may be one."""
        if isinstance(value, Prose):
            return SURE if _is_dated(value.text) else 0
        if isinstance(value, list):
            accounts = sum(1 for item in value if _is_account(item))
            if accounts:
                return SURE if 2 * accounts >= len(value) else 0
            votes = [_vote(item) for item in value]
            return sum(votes) if votes and all(votes) else 0
        if not isinstance(value, dict):
            return 0
        if _is_account(value) or ("memory_max_tokens" in value and isinstance(value.get("memories"), list)):
            return SURE
        lists = [items for key in _LISTS if isinstance(items := value.get(key), list) and items]
        return 3 * sum(1 for items in lists for item in items if _vote(item) or statement(item))

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Remembered]:
        """Yield each statement, in the order of the file."""
        for found in records:
            yield from _values(found.value, found.line, warn)


CHAT_MEMORIES = ChatMemories()


def _is_account(value: Json) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(key), (str, dict, list)) for key in _ACCOUNT)


def _is_dated(text: str) -> bool:
    """Return whether most lines are statements with a day in brackets."""
    lines = [line for line in lines_of(text) if line.strip()]
    dated = sum(1 for line in lines if _DATED.match(line.strip()))
    return dated >= 2 and 2 * dated >= len(lines) and not is_chat(lines)


def _vote(value: Json) -> int:
    if not isinstance(value, dict) or not value.keys() <= _KNOWN or text_or_none(value.get("id")) is None:
        return 0
    return 1 if isinstance(value.get("content"), str) and timed(value, *_TIME) is not None else 0


def _values(value: Json | Prose, line: int | None, warn: Warn) -> Iterator[Remembered]:
    def tell(message: str) -> None:
        warn(Warned(line=line, message=message))

    if isinstance(value, Prose):
        yield from _dated(value.text, warn)
    elif isinstance(value, list):
        if not value:
            tell("an empty list; nothing is remembered")
        for item in value:
            yield from _one(item, line, tell)
    else:
        yield from _one(value, line, tell)


def _one(value: Json, line: int | None, tell: Callable[[str], None]) -> Iterator[Remembered]:
    bare = statement(value)
    if bare is not None:
        yield Remembered(format=_NAME, text=bare, line=line)
    elif not isinstance(value, dict):
        tell(f"skipped what is no memory: {shown(value)}")
    elif _is_account(value) or any(isinstance(value.get(name), list) for name in _LISTS):
        items = [item for name in _LISTS for item in _items(value.get(name))]
        if not items and not any(True for name in _ACCOUNT for _ in _texts(value.get(name), None, lambda _: None)):
            tell("nothing is remembered in it")
        yield from _account(value, line, tell)
        for item in items:
            yield from _one(item, line, tell)
    else:
        yield from _saved(value, line, tell)


def _items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _saved(value: Mapping[str, Json], line: int | None, tell: Callable[[str], None]) -> Iterator[Remembered]:
    """Yield one memory of ChatGPT."""
    key = speaking(value, *_TEXT)
    if key is None or "role" in value:
        tell(f"skipped what is no memory: {shown(dict(value))}")
        return
    at, at_text = moment(value, *_TIME)
    gone = any(value.get(name) is True for name in ("deleted", "is_deleted"))
    yield Remembered(
        format=_NAME,
        text=statement(value[key]) or "",
        origin=text_or_none(value.get("id")) or text_or_none(value.get("uuid")),
        owner=text_or_none(value.get("user_id")),
        at=at,
        at_text=at_text,
        ended=State.REVOKED if gone else None,
        status=text_or_none(value.get("status")),
        extra=extras(value, (key, timed(value, *_TIME), "id", "user_id", "status")),
        line=line,
    )


def _account(value: Mapping[str, Json], line: int | None, tell: Callable[[str], None]) -> Iterator[Remembered]:
    """Yield the sentences of what Claude.ai remembers, of all conversations and of each project."""
    owner = text_or_none(value.get("account_uuid"))
    for key in _ACCOUNT:
        for project, account in _texts(value.get(key), None, tell):
            extra: Extra = (("project", project),) if project is not None else ()
            for noted in statements(lines_of(account), lambda _, message: tell(message), whole_characters=0):
                headings = (("heading", " / ".join(noted.headings)),) if noted.headings else ()
                yield Remembered(format=_NAME, text=noted.text, owner=owner, extra=(*headings, *extra), line=line)
    for name, words in extras(
        value, [name for name in _AROUND if name not in _LISTS or isinstance(value.get(name), list)]
    ):
        tell(f"skipped {shown(name)}, which belongs to no memory: {shown(words)}")


def _texts(value: Json, project: str | None, tell: Callable[[str], None]) -> Iterator[tuple[str | None, str]]:
    """Yield each text of an account with the project it is about; a list may name the project in its items."""
    if isinstance(value, dict):
        key = speaking(value, "memory", "content", "text")
        named = text_or_none(value.get("project_uuid")) or text_or_none(value.get("project_name"))
        if key is not None and (named is not None or len(value) == 1):
            yield from _texts(value[key], named or project, tell)
            return
        for name, item in value.items():
            yield from _texts(item, name, tell)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, project, tell)
    elif (text := statement(value)) is not None:
        yield project, text
    elif value not in (None, ""):
        tell(f"skipped what is no text: {shown(value)}")


def _dated(text: str, warn: Warn) -> Iterator[Remembered]:
    for number, line in enumerate(lines_of(text), 1):
        found = _DATED.match(line.strip())
        if found is not None and not placeholder(found.group(2)):
            day = found.group(1) if found.group(1)[0].isdigit() else None
            yield Remembered(format=_NAME, text=found.group(2).strip(), at_text=day, line=number)
        elif line.strip():
            warn(Warned(line=number, message=f"skipped what is no memory with its day: {shown(line.strip())}"))
