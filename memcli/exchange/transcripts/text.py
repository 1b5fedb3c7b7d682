"""Plain text in which every message begins with who speaks: `user: …`, `**Assistant:** …`, `## Human`, `You said:`.

- One way of writing it is taken for the whole file, that of its first message, so a quoted chat is not cut up. Lines
  between fences are never speakers.
- A time beside the speaker is kept; one without a zone stays text. There are no ids, so calls and results are not
  paired. The words stay as they stand: `None` is what some tools write for a message that was only a call.
- Text that some data sets keep in a JSON string, such as `messages_display`, is read likewise.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from memcli.clock import lenient_instant
from memcli.exchange.loose import Prose, Record
from memcli.exchange.shapes import Warn, first_text, shown
from memcli.exchange.transcripts.exports import items
from memcli.facts import Conversation, Json, Turn, Warned
from memcli.record import record
from memcli.terms import Role

_NAME = "text"
_KEYS = ("messages_display", "transcript", "conversation", "dialogue", "dialog", "chat_history", "chat")
_LABELS: Mapping[str, Role] = {
    **dict.fromkeys(("user", "human", "you"), Role.USER),
    **dict.fromkeys(("assistant", "ai", "ai assistant", "bot", "chatbot", "chatgpt", "gpt", "gpt-4"), Role.ASSISTANT),
    **dict.fromkeys(("claude", "gemini", "copilot", "bard"), Role.ASSISTANT),
    **dict.fromkeys(("system", "developer"), Role.SYSTEM),
    **dict.fromkeys(("tool", "function", "observation", "tool result", "tool output"), Role.TOOL),
}
_GENERIC = frozenset({"user", "human", "you", "assistant", "ai", "ai assistant", "system", "developer", "tool"})
"""Labels that say no more than the role does; any other one is also a name."""

_WHO = "(?P<who>" + "|".join(sorted(map(re.escape, _LABELS), key=len, reverse=True)) + ")"
_SIGN = "(?:[\u2190-\U0001faff\ufe0f\u200d]{1,6}\\s*)?"
_BEFORE = r"(?:\[(?P<before>[^\]\n]{1,60})\]\s*)?"
_BESIDE = r"(?:\s*[(\[](?P<beside>[^)\]\n]{1,60})[)\]])?"
_MARK = r"(?:\*\*|__)"
_SAID = r"(?:\s+said)?\s?"
_PLAIN, _BOLD, _HEADING = "plain", "bold", "heading"
_STYLES: Mapping[str, str] = {
    _PLAIN: rf"{_SIGN}{_BEFORE}{_SIGN}{_WHO}{_BESIDE}{_SAID}[:\uff1a](?!//)\s?(?P<rest>.*)",
    _BOLD: rf"(?:[-*]\s+)?{_SIGN}{_MARK}{_SIGN}{_WHO}{_SAID}"
    rf"(?::?{_MARK}{_BESIDE}\s?:|:{_MARK}|{_MARK}\s*$)\s?(?P<rest>.*)",
    _HEADING: rf"#{{1,6}}\s+{_SIGN}(?:\*\*)?{_SIGN}{_WHO}{_BESIDE}{_SAID}:?(?:\*\*)?:?\s*#*(?P<rest>)$",
}
_FENCE = r"\s{0,3}(```+|~~~+)(.*)"
_RULE = r"\s*(?:[-*_=]\s*){3,}"
_TITLE = r"#{1,6}\s+(\S.*)"
_FIELD = r"[\w][\w /.-]{0,30}:(?: .*)?"
_PREAMBLE_LINES = 12


@record
class _Speaker:
    """A line with which a message begins: its 0-based line, who speaks, what stands beside, and what follows."""

    at: int
    role: Role
    name: str | None
    beside: str | None
    rest: str


@record
class _Chat:
    """A text cut into lines, with those that begin a message."""

    lines: Sequence[str]
    speakers: Sequence[_Speaker]
    style: str

    @property
    def preamble(self) -> list[str]:
        """Return the lines before the first message that say anything."""
        return [line for line in self.lines[: self.speakers[0].at] if line.strip() and not re.fullmatch(_RULE, line)]


@record
class Text:
    """The reader of plain text and Markdown transcripts."""

    name: str = _NAME
    title: str = "a text transcript"

    def claims(self, value: Json | Prose) -> int:
        """Return 3 for a text that begins with somebody speaking and in which a person and a program speak."""
        if isinstance(value, Prose):
            return 3 if _is_chat(value.text) else 0
        if isinstance(value, list):
            return 3 if any(self.claims(item) for item in value if isinstance(item, dict)) else 0
        text = _text_of(value) if isinstance(value, dict) else None
        return 3 if text is not None and _is_chat(text) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield the conversation of the text, or of each text that a record holds."""
        for found in records:
            if isinstance(found.value, Prose):
                yield from _conversation(found.value.text, None, 1, warn)
                continue
            for item in items(iter((found,)), warn):
                text = _text_of(item.value)
                if text is None:
                    item.skip(warn, "what holds no text of a conversation")
                    continue
                session = first_text(item.value, "id", "session_id", "conversation_id", "task_id")
                yield from _conversation(text, session, None, item.placed(warn))


TEXT = Text()


def _text_of(value: Mapping[str, Json]) -> str | None:
    return next((text for key in _KEYS if isinstance(text := value.get(key), str)), None)


def _cut(text: str) -> _Chat | None:
    """Return the text cut at its speakers, or None where nobody speaks in it."""
    lines = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for line in lines:
        style = next((name for name, pattern in _STYLES.items() if re.fullmatch(pattern, line, re.IGNORECASE)), None)
        if style is not None:
            return _Chat(lines=lines, speakers=_speakers(lines, style), style=style)
    return None


def _speakers(lines: Sequence[str], style: str) -> list[_Speaker]:
    """Return the lines that begin a message; a fence that is never closed hides none."""
    found: list[_Speaker] = []
    fence, opened, before = "", 0, 0
    at = 0
    while at < len(lines) or fence:
        if at == len(lines):
            del found[before:]
            return found + [one for at in range(opened, len(lines)) if (one := _speaker(lines[at], at, style))]
        speaker = None if fence else _speaker(lines[at], at, style)
        if speaker is not None:
            found.append(speaker)
        mark = re.fullmatch(_FENCE, lines[at] if speaker is None else speaker.rest)
        if mark and not fence:
            fence, opened, before = mark.group(1), at + 1, len(found)
        elif mark and mark.group(1).startswith(fence) and not mark.group(2).strip():
            fence = ""
        at += 1
    return found


def _speaker(line: str, at: int, style: str) -> _Speaker | None:
    found = re.fullmatch(_STYLES[style], line, re.IGNORECASE)
    if found is None:
        return None
    groups = found.groupdict()
    who = groups["who"]
    return _Speaker(
        at=at,
        role=_LABELS[who.casefold()],
        name=None if who.casefold() in _GENERIC else who,
        beside=groups.get("before") or groups.get("beside"),
        rest=groups["rest"],
    )


def _is_chat(text: str) -> bool:
    """Return whether a text is a chat and not one that only has a line like one in it."""
    chat = _cut(text)
    roles = {speaker.role for speaker in chat.speakers} if chat is not None else set()
    if chat is None or Role.USER not in roles or roles.isdisjoint({Role.ASSISTANT, Role.TOOL}):
        return False
    before = [line for line in chat.preamble if not re.fullmatch(_TITLE, line)]
    if chat.style == _PLAIN:
        return not before and not _is_listing(chat)
    # A handbook may have a chapter on users and one on assistants; a chat comes back to the first.
    return len(before) <= _PREAMBLE_LINES and len(chat.speakers) >= (3 if chat.preamble else 2)


def _is_listing(chat: _Chat) -> bool:
    """Return whether nearly every line is `word: …`, as in settings or a glossary, and few of them are speakers."""
    said = [line for line in chat.lines if line.strip()]
    fields = sum(re.fullmatch(_FIELD, line) is not None for line in said)
    return fields == len(said) and fields > 2 * len(chat.speakers)


def _conversation(text: str, session: str | None, first: int | None, warn: Warn) -> Iterator[Conversation]:
    """Yield the conversation of a text, if there is one.

    Args:
        first: The number of its first line in the file; None where it stands in a string.
    """
    chat = _cut(text)
    if chat is None or not chat.speakers:
        warn(Warned(line=first, message=f"skipped a text in which nobody speaks: {shown(text.strip())}"))
        return
    titles = [found.group(1) for line in chat.preamble if (found := re.fullmatch(_TITLE, line))]
    lost = len(chat.preamble) - len(titles[:1])
    if lost:
        many = "1 line" if lost == 1 else f"{lost:,} lines"
        warn(Warned(line=first, message=f"skipped {many} before the first message"))
    ends = [*(speaker.at for speaker in chat.speakers[1:]), len(chat.lines)]
    yield Conversation(
        format=_NAME,
        turns=tuple(_turn(chat, speaker, end) for speaker, end in zip(chat.speakers, ends, strict=True)),
        session=session,
        title=titles[0].strip() if titles else None,
    )


def _turn(chat: _Chat, speaker: _Speaker, end: int) -> Turn:
    lines = [speaker.rest, *chat.lines[speaker.at + 1 : end]]
    while len(lines) > 1 and (not lines[-1].strip() or (chat.style != _PLAIN and re.fullmatch(_RULE, lines[-1]))):
        lines.pop()
    while len(lines) > 1 and not lines[0].strip():
        lines.pop(0)
    dated = speaker.beside is not None and any(letter.isdigit() for letter in speaker.beside)
    at, at_text = lenient_instant(speaker.beside) if dated else (None, None)
    return Turn(
        role=speaker.role,
        content="\n".join(lines),
        name=speaker.name if dated or speaker.beside is None else speaker.beside,
        at=at,
        at_text=at_text,
    )
