"""Where sentences end, without a dictionary."""

import re

_END = re.compile(r"[.!?][\"'\u201d\u2019)\]]{0,3}(?=\s+[^\s\W_a-z]|\s+[\"'\u201c(\[`])|[\u3002\uff01\uff1f]")
_SHORT = re.compile(
    r"(?:^|[\s(])(?:[a-z]|e\.g|i\.e|etc|vs|cf|approx|no|vol|dr|mr|mrs|ms|prof|st|jr|sr|u\.s)$", re.IGNORECASE
)
_LOOK_BACK = 12


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; an end behind an abbreviation or an initial is none."""
    found: list[str] = []
    start = 0
    for end in _END.finditer(text):
        before = text[max(start, end.start() - _LOOK_BACK) : end.start()]
        if end.group()[0] == "." and _SHORT.search(before):
            continue
        found.append(text[start : end.end()].strip())
        start = end.end()
    found.append(text[start:].strip())
    return [part for part in found if part]
