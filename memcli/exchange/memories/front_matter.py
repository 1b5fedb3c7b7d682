"""The front matter of a note: the few lines of YAML between two rulers that memory files begin with.

Read are `key: value`, lists in both notations, one level of nested keys and folded text. Everything is kept as words;
what is written in more of YAML than that stays as it stands.
"""

import re
from collections.abc import Iterator, Sequence

from memcli.record import record

_KEY = re.compile(r"([A-Za-z_][\w .-]{0,60}?)[ \t]*:(?:[ \t]+(.*))?$")
_RULER = re.compile(r"---[ \t]*$")
_END = re.compile(r"(---|\.\.\.)[ \t]*$")
_LONGEST = 200


@record
class FrontMatter:
    """The fields of a note in order, and where its body begins: the 0-based index of the first line."""

    fields: tuple[tuple[str, str], ...] = ()
    body: int = 0

    def get(self, key: str) -> str | None:
        """Return what stands under a key, case-folded; None where nothing does."""
        return next((words for name, words in self.fields if name.casefold() == key and words), None)

    def others(self, *taken: str) -> tuple[tuple[str, str], ...]:
        """Return the fields that say something and are none of these."""
        return tuple((name, words) for name, words in self.fields if words and name.casefold() not in taken)


def front_matter(lines: Sequence[str]) -> FrontMatter:
    """Return the front matter of a note; an empty one where it has none."""
    start = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if start >= len(lines) or not _RULER.match(lines[start]):
        return FrontMatter()
    for end in range(start + 1, min(len(lines), start + _LONGEST)):
        if _END.match(lines[end]):
            inner = lines[start + 1 : end]
            if any(_KEY.match(line) for line in inner):
                return FrontMatter(fields=tuple(_fields(inner)), body=end + 1)
            break
    return FrontMatter()


def _fields(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    key: str | None = None
    parts: list[str] = []
    for line in lines:
        found = _KEY.match(line)
        if found is not None:
            yield from _field(key, parts)
            key, parts = found.group(1), [_plain(found.group(2) or "")]
        elif line.strip() and not line.lstrip().startswith("#"):
            parts.append(_plain(line.strip()))
    yield from _field(key, parts)


def _field(key: str | None, parts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield one field; of nested keys one each, named with their parent."""
    if key is None:
        return
    first, rest = parts[0], [part for part in parts[1:] if part]
    if first in ("|", ">", "|-", ">-"):
        first = ""
    nested = [_KEY.match(part) for part in rest]
    if not first and rest and all(nested):
        for found in nested:
            if found is not None:
                yield f"{key}.{found.group(1)}", _plain(found.group(2) or "")
        return
    items = [part.removeprefix("- ").strip() for part in rest]
    is_list = bool(rest) and all(part.startswith("- ") for part in rest)
    yield key, (", " if is_list else " ").join(_plain(part) for part in [first, *items] if part)


def _plain(value: str) -> str:
    """Return a value without its quotes; a list in brackets with commas between."""
    text = value.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.startswith("[") and text.endswith("]") and not text.startswith("[["):
        return ", ".join(part for item in text[1:-1].split(",") if (part := item.strip().strip("\"'")))
    return text
