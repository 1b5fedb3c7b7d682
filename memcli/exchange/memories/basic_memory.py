"""Notes of basic-memory: front matter, `- [category] text #tag (context)` and `- relation [[Target]]`.

Each observation is one thing remembered of the note, and each relation another; what else the note says is read as
Markdown. A target without a word before it is `relates to`, as basic-memory reads it.
"""

import re
from collections.abc import Iterator, Sequence

from memcli.exchange.loose import Prose, Record
from memcli.exchange.memories.blocks import ITEM
from memcli.exchange.memories.fields import Extra
from memcli.exchange.memories.front_matter import FrontMatter, front_matter
from memcli.exchange.memories.markdown import is_chat, lines_of, one
from memcli.exchange.memories.mcp import in_words
from memcli.exchange.memories.notes import Noted, statements
from memcli.exchange.shapes import SURE, Warn, shown
from memcli.facts import Json, Remembered, Warned
from memcli.record import record

_NAME = "basic-memory"
_PLAIN = 3
_OBSERVATION = re.compile(r"\[([^\]\[()|]{1,60})\]\s+(\S.*)$", re.DOTALL)
_RELATION = re.compile(r"([^\[\]]{0,80}?)\s*\[\[([^\[\]]{1,300})\]\]\s*(?:\(([^()]*)\))?\s*$")
_CONTEXT = re.compile(r"\s\(([^()]*)\)$")
_TAG = re.compile(r"(?:^|\s)#([^\s#]+)$")
_BULLET = re.compile(r"[ \t]*[-*+][ \t]+(.*)$")
_TASK = re.compile(r"\[[ xX/-]\]")
_DEFAULT = "relates_to"


@record
class BasicMemory:
    """The reader of basic-memory notes."""

    name: str = _NAME
    title: str = "a basic-memory note"

    def claims(self, value: Json | Prose) -> int:
        """Return certainty for a note with its front matter, and 3 for one that only has observations and relations."""
        if not isinstance(value, Prose):
            return 0
        lines = lines_of(value.text)
        items = [found.group(1) for line in lines if (found := _BULLET.match(line))]
        observations = sum(1 for item in items if _is_observation(item))
        relations = sum(1 for item in items if _RELATION.match(item))
        front = front_matter(lines)
        if not observations + relations or is_chat(lines):
            return 0
        if front.get("permalink") is not None or (front.get("title") is not None and observations):
            return SURE
        return _PLAIN if observations and relations else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Remembered]:
        """Yield each observation, relation and other statement, in the order of the note."""
        for found in records:
            if isinstance(found.value, Prose):
                yield from _note(lines_of(found.value.text), warn)
            else:
                warn(Warned(line=found.line, message=f"skipped what is no note: {shown(found.value)}"))


BASIC_MEMORY = BasicMemory()


def _note(lines: Sequence[str], warn: Warn) -> Iterator[Remembered]:
    front = front_matter(lines)
    headings = (line[2:].strip().rstrip("#").strip() for line in lines[front.body :] if line.startswith("# "))
    title = front.get("title") or next((said for said in headings if said), None) or front.get("permalink")

    def tell(line: int | None, message: str) -> None:
        warn(Warned(line=line, message=message))

    for noted in statements(lines, tell, start=front.body, root=title):
        item = noted.own if noted.kind == ITEM and noted.task is None else ""
        relation = _RELATION.match(item)
        if _is_observation(item):
            yield _observed(noted, title, front)
        elif relation is not None and title is not None:
            yield _related(noted, relation, title, front)
        else:
            yield one(noted, front, _NAME)


def _is_observation(item: str) -> bool:
    return bool(_OBSERVATION.match(item)) and not _TASK.match(item) and not item.startswith("[[")


def _observed(noted: Noted, title: str | None, front: FrontMatter) -> Remembered:
    found = _OBSERVATION.match(noted.own)
    category, text = (found.group(1), found.group(2).strip()) if found is not None else ("", noted.own)
    context = _CONTEXT.search(text)
    if context is not None:
        text = text[: context.start()].rstrip()
    tags: list[str] = []
    while (tag := _TAG.search(text)) is not None and tag.start() > 0:
        tags.insert(0, tag.group(1))
        text = text[: tag.start()].rstrip()
    extra = (
        ("category", category),
        *(("tag", name) for name in tags),
        *((("context", context.group(1)),) if context is not None and context.group(1) else ()),
    )
    return _carried(noted, text if title is None else f"{title}: {text}", title, extra, front, own=text)


def _related(noted: Noted, found: re.Match[str], title: str, front: FrontMatter) -> Remembered:
    said = found.group(1).strip().strip("\"'")
    target = found.group(2).partition("|")[0].strip()
    extra = (
        *((("relationType", said),) if said else ()),
        ("to", target),
        *((("context", found.group(3)),) if found.group(3) else ()),
    )
    return _carried(noted, f"{title} {in_words(said or _DEFAULT)} {target}", title, extra, front)


def _carried(
    noted: Noted, text: str, title: str | None, extra: Extra, front: FrontMatter, *, own: str | None = None
) -> Remembered:
    whole = one(noted, front, _NAME)
    return Remembered(
        format=_NAME,
        text=text,
        subject=title,
        at=whole.at,
        at_text=whole.at_text,
        ended=whole.ended,
        status=whole.status,
        extra=(*extra, *((key, words) for key, words in whole.extra if key != "heading")),
        line=noted.line,
        own=own,
    )
