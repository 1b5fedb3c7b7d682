r"""Markdown as in a `MEMORY.md`: a heading for each subject, one list item for each fact.

Memory is untrusted: every text stays on its one line, whatever it holds, and signs by which it could become a
heading, another item, a link, HTML or an instruction to the renderer have a backslash before them.
"""

import re
from collections.abc import Iterator, Sequence

from memcli.exchange.writers.outgoing import Outgoing
from memcli.text import visible

CARRIES = frozenset({"subject"})
TITLE = "# Memory"
_BLANKS = re.compile(r"[\s\x1c-\x1f]+")
# An underscore inside a word is no emphasis, and file names are full of them.
_INLINE = re.compile(r"[\\`*\[\]<>&|~$]|(?<!\w)_|_(?!\w)|!(?=\[)")
_BLOCK = re.compile(r"(\d{1,9})([.)])(?=\s|$)|([#+\-=:§])")


def write(facts: Sequence[Outgoing]) -> Iterator[str]:
    """Yield the lines: facts without a subject first, then those of each subject, in the order of the facts."""
    groups: dict[str | None, list[str]] = {None: []}
    for item in facts:
        groups.setdefault(item.fact.subject, []).append(item.fact.text)
    yield f"{TITLE}\n"
    for subject, texts in groups.items():
        if subject is not None:
            yield f"\n## {escaped(subject)}\n"
        if texts:
            yield "\n"
        for text in dict.fromkeys(texts):
            yield f"- {escaped(text)}\n"


def escaped(text: str) -> str:
    """Return a text on one line that Markdown shows as it stands; what is unseen is written out."""
    line = _INLINE.sub(r"\\\g<0>", visible(_BLANKS.sub(" ", text).strip()))
    begins = _BLOCK.match(line)
    if begins is None:
        return line
    number, sign, other = begins.groups()
    return f"{number}\\{sign}{line[begins.end() :]}" if number else f"\\{other}{line[1:]}"
