"""One call from a path to what stands in it, with what was tried and what was left out."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from memcli.errors import Unreadable
from memcli.exchange import archives, databases
from memcli.exchange.detect import AUTO, candidates, find, is_store
from memcli.exchange.loose import Note, Record
from memcli.exchange.raw import Raw, opened
from memcli.exchange.shapes import Warn
from memcli.exchange.transcripts.openai import OPENAI, raw_messages
from memcli.facts import Conversation, Found, Json, Remembered, Stop, Warned
from memcli.record import record

_EMPTY_BYTES = 4096
"""A file that holds nothing but the frame of a transcript is no longer than this."""


@record
class Reading:
    """A file while it is gone over, one thing at a time.

    Args:
        path: As it was given; `-` for standard input.
        format: The name of the reader; of an archive, the readers of its files.
        tried: The readers that were asked, in order.
        digest: SHA-256 in hexadecimal of the bytes as they stood, before unpacking.
        found: What stands in it, in the order of the file. It raises `Unreadable` where nothing does.
        warnings: What was not taken, or taken with a doubt; it grows while `found` is gone over.
    """

    path: str
    format: str
    tried: tuple[str, ...]
    digest: str
    found: Iterator[Found]
    warnings: list[Warned]


@record
class Opened:
    """A file that was read whole.

    Args:
        path: As it was given; `-` for standard input.
        format: The name of the reader.
        tried: The readers that were asked, in order.
        digest: SHA-256 in hexadecimal of the bytes as they stood, before unpacking.
        conversations: In the order of the file, each with at least one turn.
        warnings: By line; what belongs to no line comes last.
        raw: The messages of each conversation as they stand, one for each turn; empty where the format is not
            OpenAI's, or nobody asked.
        remembered: What a memory store holds, in the order of the file.
        stops: The tombstones that it carries.
    """

    path: str
    format: str
    tried: tuple[str, ...]
    digest: str
    conversations: tuple[Conversation, ...]
    warnings: tuple[Warned, ...]
    raw: tuple[tuple[Mapping[str, Json], ...], ...] = ()
    remembered: tuple[Remembered, ...] = ()
    stops: tuple[Stop, ...] = ()


@contextmanager
def reading(path: str, *, format: str = AUTO, encoding: str | None = None) -> Iterator[Reading]:  # noqa: A002
    """Yield a file, to be gone over once, without holding more of it than the reader must. It is only looked at.

    Args:
        path: `-` is standard input.
        format: One of `FORMATS`; anything but `auto` is taken at its word.
        encoding: None means UTF-8, or what a byte order mark says.

    Raises:
        Unreadable: The file cannot be read or recognised, or nothing stands in it.
        UsageError: There is no such format or encoding.
    """
    candidates(format)
    with opened(path) as raw, ExitStack() as stack:
        yield _of(raw, format, encoding, stack)


def _of(raw: Raw, name: str, encoding: str | None, stack: ExitStack) -> Reading:
    """Return the reading of a file; what it must hold open meanwhile is closed by the stack."""
    if archives.is_archive(raw.head):
        return _of_archive(raw, name, encoding, stack)
    if databases.is_database(raw.head):
        warnings: list[Warned] = []
        database = databases.find(raw, name=name)
        found = database.read(warnings.append)
        whole = _held(raw.path, found, database.title, database.tried, warnings, may_be_empty=name != AUTO)
        return Reading(
            path=raw.path, format=database.name, tried=database.tried, digest=raw.digest, found=whole, warnings=warnings
        )
    return _of_text(raw, name, encoding)


def _of_text(raw: Raw, name: str, encoding: str | None) -> Reading:
    place = find(raw, name=name, encoding=encoding)
    warnings: list[Warned] = []
    reader = place.reader
    found = reader.read(_values(place.records(), warnings.append), warnings.append)
    empty = name != AUTO and is_store(reader.name)
    whole = _held(raw.path, found, reader.title, place.tried, warnings, may_be_empty=empty)
    return Reading(
        path=raw.path, format=reader.name, tried=place.tried, digest=raw.digest, found=whole, warnings=warnings
    )


def _of_archive(raw: Raw, name: str, encoding: str | None, stack: ExitStack) -> Reading:
    """Return what stands in the files of an archive, one after the other; those that hold nothing are told."""
    readings: list[Reading] = []
    warnings: list[Warned] = []
    refused: list[Unreadable] = []
    for member in archives.members(raw):
        stack.callback(member.handle.close)
        try:
            readings.append(_of(member, name, encoding, stack))
        except Unreadable as problem:
            refused.append(problem)
            warnings.append(Warned(line=None, message=_named(problem)))
    if not readings:
        first = refused[0] if refused else None
        why = "it is a ZIP archive without files" if first is None else f"no file in it could be read: {_named(first)}"
        raise Unreadable(raw.path, why, tried=() if first is None else first.tried, hint="unpack it and name a file")
    return Reading(
        path=raw.path,
        format=", ".join(dict.fromkeys(item.format for item in readings)),
        tried=readings[0].tried,
        digest=raw.digest,
        found=_chained(readings, warnings),
        warnings=warnings,
    )


def _chained(readings: list[Reading], warnings: list[Warned]) -> Iterator[Found]:
    """Yield what stands in all of them; a file of an archive in which nothing stands is told and stops nothing."""
    empty: list[Unreadable] = []
    for item in readings:
        label = item.path.partition("!")[2]
        try:
            yield from item.found
        except Unreadable as problem:
            empty.append(problem)
            warnings.append(Warned(line=None, message=_named(problem)))
        warnings += [Warned(line=None, message=f"{label}: {_placed(warned)}") for warned in item.warnings]
    if len(empty) == len(readings):
        raise empty[0]


def _named(problem: Unreadable) -> str:
    return f"{problem.path.partition('!')[2]}: {problem.why}"


def _placed(warned: Warned) -> str:
    return warned.message if warned.line is None else f"line {warned.line}: {warned.message}"


def _held(
    path: str,
    found: Iterator[Found],
    title: str,
    tried: tuple[str, ...],
    warnings: list[Warned],
    *,
    may_be_empty: bool,
) -> Iterator[Found]:
    """Yield what is found, and say so where that is nothing."""
    some = may_be_empty
    try:
        for item in found:
            some = True
            yield item
    except RecursionError as error:
        raise Unreadable(path, "it is nested too deeply", tried=tried, hint="export it again") from error
    if not some:
        detail = f", and {warnings[0].message}" if warnings else ""
        why = f"no message stands in it; it was read as {title}{detail}"
        raise Unreadable(path, why, tried=tried, hint="name another format with `--format`")


def open_file(
    path: str,
    *,
    format: str = AUTO,  # noqa: A002  # what the option and the JSON call it
    encoding: str | None = None,
    keep_raw: bool = False,
    may_be_empty: bool = False,
) -> Opened:
    """Return what stands in a file, all of it. The file is only looked at.

    Args:
        path: `-` is standard input.
        format: One of `FORMATS`; anything but `auto` is taken at its word.
        encoding: None means UTF-8, or what a byte order mark says.
        keep_raw: Return OpenAI's messages also as they stand.
        may_be_empty: Take a blank file, an empty list and an empty `messages` as a transcript without messages.

    Raises:
        Unreadable: The file cannot be read or recognised, or nothing stands in it.
        UsageError: There is no such format or encoding.
    """
    candidates(format)
    with opened(path) as raw, ExitStack() as stack:
        if may_be_empty and _is_empty(raw):
            return Opened(path=path, format=format, tried=(), digest=raw.digest, conversations=(), warnings=())
        place = _of(raw, format, encoding, stack)
        found = list(place.found)
        messages = _as_they_stand(raw, encoding) if keep_raw and place.format == OPENAI.name else ()
    return Opened(
        path=path,
        format=place.format,
        tried=place.tried,
        digest=place.digest,
        conversations=tuple(item for item in found if isinstance(item, Conversation)),
        warnings=tuple(sorted(place.warnings, key=_by_line)),
        raw=messages,
        remembered=tuple(item for item in found if isinstance(item, Remembered)),
        stops=tuple(item for item in found if isinstance(item, Stop)),
    )


def _as_they_stand(raw: Raw, encoding: str | None) -> tuple[tuple[Mapping[str, Json], ...], ...]:
    # The file is known to be OpenAI's by now; the other readers need not be asked of each value again.
    return raw_messages(_values(find(raw, name=OPENAI.name, encoding=encoding).records(), lambda _: None))


def _by_line(warned: Warned) -> tuple[bool, int]:
    return warned.line is None, warned.line or 0


def _is_empty(raw: Raw) -> bool:
    """Return whether the file is blank, or holds a list of messages with none in it."""
    if raw.size > _EMPTY_BYTES:
        return False
    text = raw.head.removeprefix(b"\xef\xbb\xbf").strip()
    try:
        value = json.loads(text) if text else []
    except ValueError:
        return False
    return value == [] or (isinstance(value, dict) and value.get("messages") == [])


def _values(records: Iterator[Record | Note], warn: Warn) -> Iterator[Record]:
    for item in records:
        if isinstance(item, Record):
            yield item
        else:
            warn(Warned(line=item.line, message=item.message))
