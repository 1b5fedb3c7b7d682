"""Readers: whatever gives claims for messages, under a name by which the log remembers what it has read.

A run of `mem extract` leaves one event of op `extract` for each source and stretch of messages that was read. Its
target is the source, and its reason says who read and from which to which index, such as `rules-1 0-57`. Nothing else
holds how far a reader came: the log is sealed, and an erased reason only means that those messages are read again.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise

from memcli.errors import Unreadable
from memcli.extract.command import run_extractor
from memcli.extract.rules import RULES_VERSION, extract
from memcli.facts import Claim, Fact, Message
from memcli.record import record

_STRETCH = re.compile(r"(\S+) (\d{1,9})-(\d{1,9})")


@record
class Reader:
    """Something that reads claims in messages.

    Args:
        name: Without blanks; another name begins every source from its first message.
        read: Returns the claims in messages, given the facts that are known.
        whole: Wants all new messages in one call, unless a size is given for each.
        told: Wants to be given the facts that are known; else it is given none, and they are not looked up.
    """

    name: str
    read: Callable[[Sequence[Message], Sequence[Fact]], list[Claim]]
    whole: bool = True
    told: bool = True


RULES_READER = Reader(
    name=f"rules-{RULES_VERSION}", read=lambda messages, _: list(extract(messages)), whole=False, told=False
)
"""The built-in rules."""


def command_reader(command: str, *, timeout_s: float) -> Reader:
    """Return a reader that runs an external command; the log knows it by a digest, since a command may hold a key."""
    digest = blake2b(command.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return Reader(
        name=f"command-{digest}",
        read=lambda messages, known: run_extractor(command, messages, known, timeout_s=timeout_s),
    )


def persistent(reader: Reader, *, retries: int) -> Reader:
    """Return the reader, asked again where it gave no answer; a call that failed has written nothing."""

    def read(messages: Sequence[Message], known: Sequence[Fact]) -> list[Claim]:
        for _ in range(retries):
            try:
                return reader.read(messages, known)
            except Unreadable:
                continue
        return reader.read(messages, known)

    return Reader(name=reader.name, read=read, whole=reader.whole, told=reader.told)


def stretches(messages: Iterable[Message]) -> Iterator[tuple[int, int]]:
    """Yield the first and last index of each run of messages of one source without a gap."""
    found = sorted(message.index for message in messages)
    starts = [at for at, (one, other) in enumerate(pairwise(found), 1) if other != one + 1]
    for first, after in pairwise([0, *starts, len(found)]):
        if first < after:
            yield found[first], found[after - 1]


def said_read(reader: str, first: int, last: int) -> str:
    """Return the words by which the log remembers that messages were read, ends included."""
    return f"{reader} {first}-{last}"


def was_read(reader: str, reasons: Iterable[str | None]) -> Callable[[int], bool]:
    """Return a test of whether a reader has read the message of an index, by the words in the log."""
    ends = [
        (int(found[2]), int(found[3]))
        for words in reasons
        if (found := _STRETCH.fullmatch(words or "")) is not None and found[1] == reader
    ]
    return lambda index: any(first <= index <= last for first, last in ends)
