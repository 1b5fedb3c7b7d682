"""What a command is given beside its words: the bytes of a file, or of standard input; and where its own go."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from memcli.errors import Unreadable, UsageError

_DATABASE = b"SQLite format 3\x00"


def read_bytes(path: str, *, hint: str) -> bytes:
    """Return what a file holds; `-` stands for standard input.

    Raises:
        Unreadable: It cannot be read, or there is no standard input.
    """
    try:
        if path == "-":
            if sys.stdin is None:
                raise Unreadable("standard input", "there is none", hint="name a file")
            return sys.stdin.buffer.read()
        with open(path, "rb") as stream:  # noqa: PTH123  # as it was named
            return stream.read()
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or str(problem)
        raise Unreadable(path, why.lower(), hint=hint) from problem


def read_text(path: str, *, hint: str) -> str:
    """Return what a file of UTF-8 says; `-` stands for standard input.

    Raises:
        Unreadable: It cannot be read or is no UTF-8.
    """
    raw = read_bytes(path, hint=hint)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise Unreadable(path, f"byte {problem.start + 1} is no UTF-8", line=line, hint="save it as UTF-8") from None


def takes_bytes(place: Path) -> bool:
    """Return whether a device or a pipe lies there: it is written to, and never replaced by a file."""
    try:
        return place.exists() and not place.is_file() and not place.is_dir()
    except (OSError, ValueError):  # no path that the system takes
        return False


def replaced(place: Path) -> Path:
    """Return the file that a new one takes the place of: links are followed, so that they stay links.

    Raises:
        UsageError: A database lies there, such as a memory file, and no report is worth that.
    """
    real = Path(os.path.realpath(place))
    head = b""
    with suppress(OSError):
        if real.is_file():  # a pipe would wait for somebody who writes
            with real.open("rb") as stream:
                head = stream.read(len(_DATABASE))
    if head == _DATABASE:
        raise UsageError(
            f"{place} is the memory file or another database; nothing was written", hint="name another file"
        )
    return real
