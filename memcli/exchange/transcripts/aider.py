"""Aider's chat history: Markdown in which each line says by its beginning who wrote it.

- `# aider chat started at …` begins a session, which is a conversation of its own: Aider begins each with an empty
  context. What stands before the first such line is the end of a session whose beginning is not there.
- Lines that begin with `#### ` are the user's, those with `> ` what the program or a command printed. All others are
  the assistant's, so `>>>>>>> REPLACE` is too. Two prompts with a blank line between them are two.
- Aider ends lines with two spaces, to keep Markdown from joining them; they are no part of what was said.
- The one time a session has is local and without a zone. It stays text, and stands at the session's first message.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from memcli.exchange.loose import Prose, Record
from memcli.exchange.shapes import SURE, Draft, Warn, shown
from memcli.facts import Conversation, Json, Turn, Warned
from memcli.record import record
from memcli.terms import Role

_NAME = "aider"
_HEADER = re.compile(r"^# (aider chat started at[ \t]*(.*?))[ \t\r]*$", re.MULTILINE)
_PROMPT = re.compile(r"^####(?: |$)")
_MARKED = re.compile(r"^####.*  \r?$", re.MULTILINE)


@record
class Aider:
    """The reader of Aider's chat history."""

    name: str = _NAME
    title: str = "an Aider chat history"

    def claims(self, value: Json | Prose) -> int:
        """Return `SURE` for text in which a session of Aider begins."""
        return SURE if isinstance(value, Prose) and _HEADER.search(value.text) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Conversation]:
        """Yield a conversation for each session in which anything was said, in the order of the file."""
        for found in records:
            if not isinstance(found.value, Prose):
                warn(Warned(line=found.line, message=f"skipped what is no text: {shown(found.value)}"))
                continue
            text = found.value.text
            marked = _MARKED.search(text) is not None
            headers = list(_HEADER.finditer(text))
            starts = [(0, None), *((header.end(), header) for header in headers)]
            ends = [*(header.start() for header in headers), len(text)]
            number = 1
            before = 0
            for (start, header), end in zip(starts, ends, strict=True):
                number += text.count("\n", before, start)
                before = start
                yield from _session(text[start:end], header, number, marked=marked, warn=warn)


AIDER = Aider()


def _session(
    text: str, header: re.Match[str] | None, first: int, *, marked: bool, warn: Warn
) -> Iterator[Conversation]:
    draft = Draft(format=_NAME, title=header[1] if header is not None else None)
    started = header[2] if header is not None else None
    for role, lines, number in _blocks(text, marked=marked):
        content = "\n".join(lines).strip("\n")
        if not content.strip() and role is not Role.USER:
            continue
        draft.add(Turn(role=role, content=content, at_text=None if draft.turns else started or None), first + number)
    if not draft.turns:
        return
    if header is None:
        warn(Warned(line=first, message="the file begins within a session; its beginning is not there"))
    # Not `Draft.finished`: what a program printed answers no call, and none is missing.
    yield Conversation(format=_NAME, turns=tuple(draft.turns), title=draft.title)


def _blocks(text: str, *, marked: bool) -> Iterator[tuple[Role, list[str], int]]:
    """Yield each run of lines that one role wrote, with its lines and the number of the first, from 0.

    Args:
        marked: Prompts in this file end with two spaces, so that a heading of the assistant is told from them.
    """
    role: Role | None = None
    held: list[str] = []
    begun = 0
    lines = ["", *(line.removesuffix("\r") for line in text.split("\n"))]
    for number, (previous, line) in enumerate(pairwise(lines)):
        if not line.strip() and role is not Role.ASSISTANT:
            continue
        speaker = _speaker(line, previous, role, marked=marked)
        if speaker is not role or (role is Role.USER and not previous.strip()):
            if role is not None:
                yield role, held, begun
            role, held, begun = speaker, [], number
        held.append(_said(line, speaker))
    if role is not None:
        yield role, held, begun


def _speaker(line: str, previous: str, role: Role | None, *, marked: bool) -> Role:
    if _PROMPT.match(line) and (role is Role.USER or not previous.strip()) and (line.endswith("  ") or not marked):
        return Role.USER
    return Role.TOOL if line.startswith("> ") or line.rstrip() == ">" else Role.ASSISTANT


def _said(line: str, role: Role) -> str:
    if role is Role.ASSISTANT:
        return line
    mark = "####" if role is Role.USER else ">"
    return line.removeprefix(mark).removeprefix(" ").removesuffix("  ")
