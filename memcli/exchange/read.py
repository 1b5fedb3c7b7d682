"""One call from a path to conversations, with what was tried and what was left out."""

import json
from collections.abc import Iterator, Mapping

from memcli.errors import Unreadable
from memcli.exchange.detect import AUTO, Found, candidates, find
from memcli.exchange.loose import Record
from memcli.exchange.raw import Raw, opened
from memcli.exchange.shapes import Warn
from memcli.exchange.transcripts.openai import OpenAI, raw_messages
from memcli.facts import Conversation, Json, Warned
from memcli.record import record

_EMPTY_BYTES = 4096
"""A file that holds nothing but the frame of a transcript is no longer than this."""


@record
class Opened:
    """A transcript that was read.

    Args:
        path: As it was given; `-` for standard input.
        format: The name of the reader.
        tried: The readers that were asked, in order.
        digest: SHA-256 in hexadecimal of the bytes as they stood, before unpacking.
        conversations: In the order of the file, each with at least one turn.
        warnings: By line; what belongs to no line comes last.
        raw: The messages of each conversation as they stand, one for each turn; empty where the format is not
            OpenAI's, or nobody asked.
    """

    path: str
    format: str
    tried: tuple[str, ...]
    digest: str
    conversations: tuple[Conversation, ...]
    warnings: tuple[Warned, ...]
    raw: tuple[tuple[Mapping[str, Json], ...], ...] = ()


def open_file(
    path: str,
    *,
    format: str = AUTO,  # noqa: A002  # what the option and the JSON call it
    encoding: str | None = None,
    keep_raw: bool = False,
    may_be_empty: bool = False,
) -> Opened:
    """Return what stands in a transcript. The file is only looked at.

    Args:
        path: `-` is standard input.
        format: One of `FORMATS`; anything but `auto` is taken at its word.
        encoding: None means UTF-8, or what a byte order mark says.
        keep_raw: Return OpenAI's messages also as they stand.
        may_be_empty: Take a blank file, an empty list and an empty `messages` as a transcript without messages.

    Raises:
        Unreadable: The file cannot be read or recognised, or no message stands in it.
        UsageError: There is no such format or encoding.
    """
    candidates(format)
    with opened(path) as raw:
        if may_be_empty and _is_empty(raw):
            return Opened(path=path, format=format, tried=(), digest=raw.digest, conversations=(), warnings=())
        found = find(raw, name=format, encoding=encoding)
        warnings: list[Warned] = []
        values = _values(found, warnings.append)
        try:
            # A list only where it is gone over twice: a large import must not hold its file in memory.
            kept = list(values) if keep_raw and isinstance(found.reader, OpenAI) else []
            conversations = tuple(found.reader.read(iter(kept) if kept else values, warnings.append))
            messages = raw_messages(iter(kept))
        except RecursionError as error:
            raise Unreadable(path, "it is nested too deeply", tried=found.tried, hint="export it again") from error
    if not conversations:
        detail = f", and {warnings[0].message}" if warnings else ""
        why = f"no message stands in it; it was read as {found.reader.title}{detail}"
        raise Unreadable(path, why, tried=found.tried, hint="name another format with `--format`")
    return Opened(
        path=path,
        format=found.reader.name,
        tried=found.tried,
        digest=raw.digest,
        conversations=conversations,
        warnings=tuple(sorted(warnings, key=_by_line)),
        raw=messages,
    )


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


def _values(found: Found, warn: Warn) -> Iterator[Record]:
    for item in found.records():
        if isinstance(item, Record):
            yield item
        else:
            warn(Warned(line=item.line, message=item.message))
