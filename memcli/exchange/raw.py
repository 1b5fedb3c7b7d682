"""The bytes of a file: opened without writing, unpacked, decoded to UTF-8 lines, and never without bounds."""

import codecs
import gzip
import hashlib
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from memcli.errors import Unreadable, UsageError
from memcli.record import record

if TYPE_CHECKING:
    from tempfile import SpooledTemporaryFile

RECORD_BYTES = 256 * 1024 * 1024
"""The longest line, and the longest file that must be read as one JSON document."""

RATIO = 200
"""How many times its packed size a file may come to, where that is more than `RECORD_BYTES`."""

_HELD_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_HEAD_BYTES = 64 * 1024
_GZIP = b"\x1f\x8b"
# UTF-32 first: its little-endian mark begins with the one of UTF-16.
_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)
_ENCODING_HINT = "name the encoding, such as `--encoding cp1252`"


@record
class Raw:
    """Seekable bytes of a file after unpacking; `digest` is SHA-256 of what was there before it.

    Args:
        packed: The bytes are not those at the path: they were unpacked, or came through standard input.
    """

    path: str
    handle: IO[bytes]
    digest: str
    packed: bool = False

    @property
    def size(self) -> int:
        """Return how many bytes there are after unpacking."""
        return self.handle.seek(0, io.SEEK_END)

    @property
    def head(self) -> bytes:
        """Return the first 64 kB, enough to say what a file looks like."""
        self.handle.seek(0)
        return self.handle.read(_HEAD_BYTES)


@record
class Line:
    """One line without its end: its 1-based number and its text."""

    number: int
    text: str


@contextmanager
def opened(path: str) -> Iterator[Raw]:
    """Yield the bytes at the path, `-` being standard input, unpacked where they are gzip.

    Raises:
        Unreadable: There is no such file, it is no plain file, it may not be read, its gzip is cut or swells
            beyond measure, or it changed while it was read.
    """
    try:
        with _source(path) as source:
            before = os.fstat(source.fileno()) if path != "-" else None
            digest = _digest(source)
            source.seek(0)
            packed = source.read(2) == _GZIP
            source.seek(0)
            with _unpacked(path, source) if packed else _held(source, before) as handle:
                yield Raw(path=path, handle=handle, digest=digest, packed=packed)
                # A small file is held in memory; only a large one can change between two passes.
                if handle is source and before is not None and _changed(before, os.fstat(source.fileno())):
                    raise Unreadable(path, "it changed while it was read", hint="try again when nothing writes to it")
    except OSError as error:
        raise Unreadable(path, _cause(error), hint="check the path and who may read it") from error


def lines(raw: Raw, encoding: str | None) -> Iterator[Line]:
    """Yield each line as text, split at line feeds only.

    Args:
        encoding: None means UTF-8, or what a byte order mark says.

    Raises:
        Unreadable: Bytes that are not text in that encoding, or a line beyond 256 MB.
        UsageError: There is no such encoding.
    """
    handle = _utf8(raw, encoding)
    handle.seek(0)
    offset = 0
    number = 0
    while chunk := handle.readline(RECORD_BYTES + 1):
        number += 1
        if len(chunk) > RECORD_BYTES:
            raise Unreadable(raw.path, "a line of more than 256 MB", line=number, hint="split the record")
        if number == 1 and chunk.startswith(b"\xef\xbb\xbf"):
            chunk, offset = chunk[3:], 3
        yield Line(number=number, text=_decoded(raw.path, chunk, offset).rstrip("\r\n"))
        offset += len(chunk)


def whole(raw: Raw, encoding: str | None) -> str:
    """Return the whole text.

    Raises:
        Unreadable: It is longer than 256 MB, or not text in that encoding.
        UsageError: There is no such encoding.
    """
    handle = _utf8(raw, encoding)
    handle.seek(0)
    data = handle.read(RECORD_BYTES + 1)
    if len(data) > RECORD_BYTES:
        raise Unreadable(
            raw.path, "one JSON document of more than 256 MB", hint="write it as JSON Lines, one record a line"
        )
    mark = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    return _decoded(raw.path, data[mark:], mark)


def spool() -> "SpooledTemporaryFile[bytes]":
    """Return a file of our own, in memory while it is small."""
    from tempfile import SpooledTemporaryFile  # few need it, and it takes random and all of its hashes with it

    return SpooledTemporaryFile(max_size=_HELD_BYTES)


@contextmanager
def _source(path: str) -> Iterator[IO[bytes]]:
    if path == "-":
        with spool() as unpacked:
            if sys.stdin is None:
                raise Unreadable(path, "there is no standard input", hint="name a file")
            while chunk := sys.stdin.buffer.read(_CHUNK_BYTES):
                unpacked.write(chunk)
            yield unpacked
        return
    try:
        # Without O_NONBLOCK, opening a pipe nobody writes to would wait for ever.
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except ValueError as error:
        raise Unreadable(path, "no path can hold a NUL", hint="check the path") from error
    try:
        _must_be_plain(path, os.fstat(number).st_mode)
    except Unreadable:
        os.close(number)
        raise
    with os.fdopen(number, "rb") as source:
        yield source


def _must_be_plain(path: str, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise Unreadable(path, "it is a folder", hint="name the files in it")
    what = "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"
    raise Unreadable(path, f"it is {what}, not a file", hint="send it through standard input and name the file `-`")


def _cause(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, IsADirectoryError):
        return "it is a folder"
    if isinstance(error, PermissionError):
        return "it may not be read"
    return (error.strerror or "it could not be read").lower()


def _digest(source: IO[bytes]) -> str:
    digest = hashlib.sha256()
    source.seek(0)
    while chunk := source.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


def _changed(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns)


@contextmanager
def _held(source: IO[bytes], status: os.stat_result | None) -> Iterator[IO[bytes]]:
    if status is None or status.st_size > _HELD_BYTES:
        yield source
        return
    # One byte more than it had tells a file that has grown; asking for all that may be held would reserve it.
    yield io.BytesIO(source.read(status.st_size + 1))


@contextmanager
def _unpacked(path: str, source: IO[bytes]) -> Iterator[IO[bytes]]:
    size = source.seek(0, io.SEEK_END)
    source.seek(0)
    allowed = max(RECORD_BYTES, size * RATIO)
    with spool() as unpacked:
        try:
            with gzip.GzipFile(fileobj=source) as packed:
                while chunk := packed.read(_CHUNK_BYTES):
                    unpacked.write(chunk)
                    if unpacked.tell() > allowed:
                        raise Unreadable(
                            path,
                            f"it is gzip that swells to more than {RATIO} times its size",
                            hint="unpack it yourself if you trust it",
                        )
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise Unreadable(path, "it is gzip that is cut or damaged", hint="fetch or pack it again") from error
        yield unpacked


def _utf8(raw: Raw, encoding: str | None) -> IO[bytes]:
    """Return the bytes as UTF-8: as they are, or rewritten in memory where another encoding is named or marked."""
    head = raw.head
    name = encoding or next((name for mark, name in _MARKS if head.startswith(mark)), None) or _unmarked(head)
    if name is None or name.casefold() in ("utf-8", "utf8", "utf-8-sig"):
        return raw.handle
    raw.handle.seek(0)
    data = raw.handle.read(RECORD_BYTES + 1)
    if len(data) > RECORD_BYTES:
        raise Unreadable(raw.path, f"more than 256 MB of {name}", hint="convert it to UTF-8 first")
    try:
        codecs.lookup(name)
        return io.BytesIO(data.decode(name).encode("utf-8", "surrogatepass"))
    except LookupError as error:
        raise UsageError(f"{name} is no encoding of text", hint="try utf-8, utf-16 or cp1252") from error
    except UnicodeDecodeError as error:
        raise Unreadable(raw.path, f"byte {error.start} is not {name}", hint=_ENCODING_HINT) from error
    except ValueError as error:
        raise Unreadable(raw.path, f"it is not {name}", hint=_ENCODING_HINT) from error


def _unmarked(head: bytes) -> str | None:
    """Return UTF-16 in its byte order where every second byte is zero, as text without a mark has it."""
    even, odd = head[0:4096:2], head[1:4096:2]
    if len(odd) < 2:
        return None
    if odd.count(0) > 0.9 * len(odd) and even.count(0) < 0.1 * len(even):
        return "utf-16-le"
    if even.count(0) > 0.9 * len(even) and odd.count(0) < 0.1 * len(odd):
        return "utf-16-be"
    return None


def _decoded(path: str, data: bytes, offset: int) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        # A writer that was killed in the middle of a character leaves a cut record, not another encoding.
        if error.reason == "unexpected end of data" and error.end == len(data):
            return data[: error.start].decode("utf-8", "surrogatepass")
        raise Unreadable(path, f"byte {offset + error.start} is not UTF-8", hint=_ENCODING_HINT) from error
