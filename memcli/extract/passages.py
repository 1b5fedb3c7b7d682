"""What a user says in a message, sentence by sentence, and where a clause or a name ends in it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from memcli.extract.words import FILLER, FIRST, LINKS, LOWER_ENDS, LOWER_NO_NAME, NEXT_CLAUSE, NO_NAME, THIRD

MAX_SENTENCE = 800  # a longer one is a paste, and reading it would cost its square
_WRAPPED = 60  # a line at least this long may have been broken by an editor
_HIDDEN = "\uf8ff"  # stands for each character inside quotes and inline code: text, but nobody's statement
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*$", re.MULTILINE)
_TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*)[^<>\n]{0,300}>")
_PASTED = re.compile(
    r"""^(?:[ ]{4}|\t)
    | ^\s*(?: [>|+#{}] | @@ | \$\s | Traceback\b | File\s" | at\s\S+\(
        | \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d | \[?\d\d:\d\d:\d\d
        | \[?(?:ERROR|WARN|WARNING|INFO|DEBUG|TRACE|FATAL)\b
        | (?i:user|assistant|human|ai|system|bot|agent|customer)\s*: )""",
    re.VERBOSE,
)
_QUOTED = re.compile(
    r"""`[^`\n]{1,500}` | (?<!\w)"[^"\n]{1,500}" | “[^”\n]{1,500}” | „[^“”\n]{1,500}[“”] | «[^»\n]{1,500}»
    | (?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){1,500}'(?!\w)""",
    re.VERBOSE,
)
_BOUNDARY = re.compile(r"""(?<![.!?…])[.!?…]++["')\]»”]*+(?=\s|$)|[\u3002\uff01\uff1f]+|\n+""")
_ABBREVIATED = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|St|Mt|Ft|Prof|vs|etc|approx|e\.g|i\.e|a\.m|p\.m)|\b[A-Z])\Z")
NOT_TYPED = (
    "# AGENTS.md",
    "This session is being continued from a previous conversation",
    "Caveat: The messages below",
)
"""How messages begin that a tool wrote in the user's place."""

_CLAUSE_END = re.compile(
    rf"""[;()\[\]] | :(?=\s|\Z) | \s[-–—]+\s | — | \s(?P<condition>if|unless|when|whenever|until)\b
    | (?P<comma>,(?=\s|\Z)) | \s(?:but|because|since|although|though|while|which|whereas)\b
    | \s(?:and|or|so)\s+(?={NEXT_CLAUSE})""",
    re.IGNORECASE | re.VERBOSE,
)
_COMMA_ENDS = re.compile(rf",\s*(?:\Z|{NEXT_CLAUSE})", re.IGNORECASE)
_LIST = re.compile(r"[^,]+(?:,\s*[^,\s]+(?:\s[^,\s]+){0,2}?)*,?\s+(?:and|or)\s+\S+(?:\s\S+){0,2}")
_WORD = re.compile(r"\s*(?P<word>(?:St|Mt|Ft|Dr|Mr|Mrs|Ms)\.|[^\W\d_](?:[\w'&.-]*\w)?)")
THE = re.compile(r"the\s+")
_JOINT = re.compile(r",\s+|\s+and\s+")
_NAME_ENDS = re.compile(r"\s*(?:[,.;!?)–—-]|\Z|(?:and|but|so)\b)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence as it stands, and `plain`: as long, with curly apostrophes straightened and quotes hidden."""

    text: str
    plain: str


def mask(content: str) -> str:
    """Return text of the same length in which what the user does not say himself is gone."""
    plain = content.replace("’", "'").replace("‘", "'").replace("\r", " ").replace("\u2028", "\n")
    plain = blank(plain, _tagged(plain))  # before code: a fence that a reminder opens must not hide its end
    plain = blank(plain, _fenced(plain))
    lines = ["\n" * len(line) if _PASTED.match(line) else line for line in plain.split("\n")]
    return _unwrap(_QUOTED.sub(lambda m: m[0][0] + _HIDDEN * (len(m[0]) - 2) + m[0][-1], "\n".join(lines)))


def blank(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with line ends in place of each span; spans may overlap and begin in ascending order."""
    parts = []
    at = 0
    for start, end in spans:
        if end > at:
            parts += [text[at:start], "\n" * (end - max(start, at))]
            at = end
    return "".join([*parts, text[at:]])


def _fenced(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    opened: tuple[int, str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = (fence.start(), fence[1])
        elif fence[1].startswith(opened[1]):
            spans.append((opened[0], fence.end()))
            opened = None
    return spans if opened is None else [*spans, (opened[0], len(text))]


def _tagged(text: str) -> list[tuple[int, int]]:
    """Return the tagged blocks in ascending order; a reminder that is never closed reaches to the end."""
    spans: list[tuple[int, int]] = []
    opened: dict[str, int] = {}
    for tag in _TAG.finditer(text):
        name = tag[2].casefold()
        if not tag[1]:
            opened.setdefault(name, tag.start())
        elif name in opened:
            spans.append((opened.pop(name), tag.end()))
    if "system-reminder" in opened:
        spans.append((opened["system-reminder"], len(text)))
    return sorted(spans)


def _unwrap(text: str) -> str:
    """Return the text with hard-wrapped lines joined: a long line that goes on in small letters is one sentence."""
    lines = text.split("\n")
    parts = lines[:1]
    for before, line in pairwise(lines):
        wrapped = len(before) >= _WRAPPED and line[:1].islower() and before[-1:].isalnum()
        parts.append((" " if wrapped else "\n") + line)
    return "".join(parts)


def sentences(text: str, plain: str) -> Iterator[tuple[int, Sentence]]:
    start = 0
    for boundary in _BOUNDARY.finditer(plain):
        if boundary[0] == "." and _ABBREVIATED.search(plain, max(0, boundary.start() - 8), boundary.start()):
            continue
        yield start, Sentence(text=text[start : boundary.end()], plain=plain[start : boundary.end()])
        start = boundary.end()
    yield start, Sentence(text=text[start:], plain=plain[start:])


def asked(plain: str) -> bool:
    return plain.rstrip().endswith(("?", "\uff1f"))


def said_end(plain: str) -> int:
    """Return where the words of a sentence end, before its closing punctuation."""
    return len(plain.rstrip(" \n\t.!?…\u3002\uff01\uff1f"))


def clause_end(plain: str, start: int, *, commas: Literal["end", "list", "keep"] = "end") -> int | None:
    """Return where the clause that starts there ends; None where a condition or a question hangs on it.

    Args:
        commas: A comma ends the clause, or is kept in a list with an "and" ("red, green and blue"), or is kept before
            anything but another clause ("12 Main St, Springfield").
    """
    end = said_end(plain)
    for stop in _CLAUSE_END.finditer(plain, start, end):
        if stop["condition"]:
            return None
        if not stop["comma"] or commas == "end" or _COMMA_ENDS.match(plain, stop.start()):
            end = stop.start()
            break
    else:
        if asked(plain):
            return None
    said = plain[start:end]
    if commas == "list" and "," in said and not _LIST.fullmatch(said.strip()):
        return start + said.index(",")
    return end


def tidy(text: str) -> str:
    """Return a value as a person would write it: one line, no quotes around it, no trailing filler."""
    flat = FILLER.sub("", " ".join(text.split()).rstrip(".,;:!…"))
    if len(flat) > 2 and flat[0] in "\"'“„«`‘" and flat[-1] in "\"'”“»`’":
        flat = flat[1:-1].strip()
    return flat.rstrip(".,;:!…")


def third_person(text: str) -> str:
    return FIRST.sub(lambda m: THIRD[m[0].casefold()], text.replace("’", "'"))


def name_end(plain: str, start: int, *, lower: bool, commas: bool = True) -> int | None:
    """Return where the proper name that starts there ends, or None.

    Args:
        lower: The writer uses no capitals at all, so up to three small words may be a name.
        commas: "Princeton, New Jersey" and "Bosnia and Herzegovina" are one name.
    """
    found = _capital_name(plain, start)
    if found is None:
        return _lower_name(plain, start) if lower else None
    while commas and (joint := _JOINT.match(plain, found)):
        more = _capital_name(plain, joint.end())
        # "Paris, Dana lives in Rome" goes on with a sentence; "Paris, France" is followed by an end.
        if more is None or not _NAME_ENDS.match(plain, more):
            break
        found = more
    return found


def _capital_name(plain: str, start: int) -> int | None:
    end: int | None = None
    at = start
    while word := _WORD.match(plain, at):
        text = word["word"]
        if text.casefold() in NO_NAME and not (end is None and text == "The"):
            break
        if not text[0].islower() or (end is not None and "-" in text):
            end = word.end()
        elif text not in LINKS:
            break
        at = word.end()
    return end


def _lower_name(plain: str, start: int) -> int | None:
    words: list[re.Match[str]] = []
    at = start
    while (word := _WORD.match(plain, at)) and word["word"] not in LOWER_ENDS:
        words.append(word)
        at = word.end()
    if not 1 <= len(words) <= 3 or any(w["word"] in LOWER_NO_NAME for w in words):
        return None
    return words[-1].end()
