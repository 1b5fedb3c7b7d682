"""Which reader a file is for: by what stands in all of it, never by its name, and saying what was looked for."""

from collections.abc import Callable, Iterator, Sequence

from memcli.errors import Unreadable, UsageError
from memcli.exchange.looks import described, foreign_bytes
from memcli.exchange.loose import Note, Prose, Record, parse, place, records, stream
from memcli.exchange.raw import RECORD_BYTES, Raw, lines, whole
from memcli.exchange.shapes import Reader
from memcli.exchange.transcripts.claude_code import CLAUDE_CODE
from memcli.exchange.transcripts.openai import OPENAI
from memcli.facts import Json
from memcli.record import record

READERS: tuple[Reader, ...] = (CLAUDE_CODE, OPENAI)
"""Every format that can be read; of two with equal votes the earlier one is taken."""

AUTO = "auto"
FORMATS: tuple[str, ...] = (AUTO, *(reader.name for reader in READERS))
"""What `--format` takes."""

_HINT = "name the format with `--format " + "|".join(FORMATS[1:]) + "` if it is one of these"


@record
class Found:
    """The reader of a file, and how to go over its values, as often as asked."""

    reader: Reader
    tried: tuple[str, ...]
    records: Callable[[], Iterator[Record | Note]]


@record
class _Survey:
    """What one pass over all values says: votes in the order of the readers, and how much could be taken.

    Args:
        alone: The one value of the file, where there is nothing else to tell of it.
    """

    votes: tuple[int, ...]
    values: int
    lost: int
    first: Json | Prose
    alone: Record | None = None

    @property
    def holds(self) -> bool:
        """Return whether this way of cutting the file into values fits: no more was lost than taken."""
        return self.values > 0 and self.values >= self.lost


def candidates(name: str) -> tuple[Reader, ...]:
    """Return the readers to try.

    Raises:
        UsageError: No reader has that name.
    """
    if name == AUTO:
        return READERS
    chosen = tuple(reader for reader in READERS if reader.name == name)
    if not chosen:
        raise UsageError(f"{name} is no format that can be read", hint=f"use one of {', '.join(FORMATS)}")
    return chosen


def find(raw: Raw, *, name: str, encoding: str | None) -> Found:
    """Return the reader with the most votes over all values of the file, or the one that is named.

    Raises:
        Unreadable: It is no text, no JSON, or no format that was looked for.
        UsageError: No reader has that name, or there is no such encoding.
    """
    readers = candidates(name)
    tried = tuple(reader.name for reader in readers)
    _refuse_foreign(raw, tried)
    survey, again = _cut(raw, encoding, readers)
    best = max(range(len(readers)), key=lambda index: survey.votes[index])
    if name == AUTO and survey.votes[best] <= 0:
        why = f"unrecognised format: it holds {described(survey.first)}; looked for {', '.join(tried)}"
        raise Unreadable(raw.path, why, tried=tried, hint=_HINT)
    return Found(reader=readers[best], tried=tried, records=again)


def _refuse_foreign(raw: Raw, tried: tuple[str, ...]) -> None:
    head = raw.head
    if not head:
        raise Unreadable(raw.path, "the file is empty", tried=tried, hint="export it again")
    if not head.strip(b"\0 \t\r\n") and raw.size == len(head):
        raise Unreadable(
            raw.path, "the file holds nothing but blanks or NUL bytes", tried=tried, hint="export it again"
        )
    what = foreign_bytes(head)
    if what is not None:
        why = f"unrecognised format: it is {what}; looked for {', '.join(tried)}"
        raise Unreadable(raw.path, why, tried=tried, hint=_HINT)


def _cut(
    raw: Raw, encoding: str | None, readers: Sequence[Reader]
) -> tuple[_Survey, Callable[[], Iterator[Record | Note]]]:
    """Return the survey of the file cut into values the way that loses least, and how to go over them again.

    Line by line comes first, since one document on one line is a line too, and it needs no memory.
    """

    def by_line() -> Iterator[Record | Note]:
        return records(lines(raw, encoding))

    quick = _survey(by_line(), readers, patient=False)
    if quick.holds:
        alone = quick.alone
        return quick, by_line if alone is None else lambda: iter((alone,))
    text = whole(raw, encoding) if raw.size <= RECORD_BYTES else None
    parsed = parse(text) if text is not None else None
    patient = _survey(by_line(), readers, patient=True) if parsed is None or parsed.problem else quick
    if text is not None and parsed is not None and len(parsed.values) > (patient.values if parsed.problem else 0):
        taken = tuple(stream(text, parsed))
        return _survey(iter(taken), readers, patient=True), lambda: iter(taken)
    if patient.holds:
        return patient, by_line
    if text is None or parsed is None:
        raise Unreadable(raw.path, "one JSON document of more than 256 MB", hint="write it as JSON Lines")
    if text.lstrip("\ufeff\0 \t\r\n").startswith(("{", "[", '"')):
        raise _broken(raw.path, text, parsed.problem or "", parsed.at, tuple(reader.name for reader in readers))
    if not text.strip("\ufeff\0 \t\r\n"):
        raise Unreadable(raw.path, "the file holds nothing but blanks or NUL bytes", hint="export it again")
    prose = (Record(line=None, value=Prose(text=text)),)
    return _survey(iter(prose), readers, patient=True), lambda: iter(prose)


def _survey(source: Iterator[Record | Note], readers: Sequence[Reader], *, patient: bool) -> _Survey:
    """Return the votes of all values; without patience, stop where the very first thing is no value."""
    votes = [0] * len(readers)
    values = lost = notes = 0
    alone: Record | None = None
    first: Json | Prose = None
    for item in source:
        if isinstance(item, Record):
            first = item.value if values == 0 else first
            alone = item if values == 0 else None
            values += 1
            votes = [vote + reader.claims(item.value) for vote, reader in zip(votes, readers, strict=True)]
            continue
        notes += 1
        if item.lost:
            lost += 1
            if not values and not patient:
                break
    return _Survey(votes=tuple(votes), values=values, lost=lost, first=first, alone=None if notes else alone)


def _broken(path: str, text: str, problem: str, at: int, tried: tuple[str, ...]) -> Unreadable:
    line, column = place(text, at)
    what = problem.partition(" at ")[0]
    quotes = "; it looks like a Python value, not JSON" if text.lstrip()[1:2] == "'" or "{'" in text[:200] else ""
    return Unreadable(
        path,
        f"it is not valid JSON: {what} at column {column}{quotes}",
        line=line,
        tried=tried,
        hint="mend it there, or export it again",
    )
