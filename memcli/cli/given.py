"""What a command is given beside its words: the bytes of a file, or of standard input."""

import sys

from memcli.errors import Unreadable


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
