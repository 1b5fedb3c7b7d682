r"""Markdown as in a `MEMORY.md`: a heading for each subject, one list item for each fact.

Memory is untrusted: every text stays on its one line, whatever it holds, and signs by which it could become a
heading, another item, a link, HTML or an instruction to the renderer have a backslash before them.
"""

import re
from collections.abc import Iterable, Iterator

from memcli.exchange.writers.groups import Groups
from memcli.exchange.writers.outgoing import Outgoing
from memcli.text import visible

CARRIES = frozenset({"subject"})
TITLE = "# Memory"
_NOBODY, _SOMEBODY = "", "#"
"""What stands for no subject, and before one, which may be empty."""
_BLANKS = re.compile(r"[\s\x1c-\x1f]+")
# An underscore inside a word is no emphasis, and file names are full of them.
_INLINE = re.compile(r"[\\`*\[\]<>&|~$]|(?<!\w)_|_(?!\w)|!(?=\[)")
_BLOCK = re.compile(r"(\d{1,9})([.)])(?=\s|$)|([#+\-=:§])")


def write(facts: Iterable[Outgoing]) -> Iterator[str]:
    """Yield the lines: facts without a subject first, then those of each subject, in the order of the facts."""
    with Groups() as groups:
        groups.name(_NOBODY)
        for item in facts:
            subject = item.fact.subject
            groups.put(_NOBODY if subject is None else f"{_SOMEBODY}{subject}", item.fact.text)
        yield f"{TITLE}\n"
        for name, texts in groups:
            if name != _NOBODY:
                yield f"\n## {escaped(name[len(_SOMEBODY) :])}\n"
            for number, text in enumerate(texts):
                yield ("" if number else "\n") + f"- {escaped(text)}\n"


def escaped(text: str) -> str:
    """Return a text on one line that Markdown shows as it stands; what is unseen is written out."""
    line = _INLINE.sub(r"\\\g<0>", visible(_BLANKS.sub(" ", text).strip()))
    begins = _BLOCK.match(line)
    if begins is None:
        return line
    number, sign, other = begins.groups()
    return f"{number}\\{sign}{line[begins.end() :]}" if number else f"\\{other}{line[1:]}"
