"""ZIP archives, as exports come in: each file is read like one on disk, within bounds, and nothing is unpacked."""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO

from memcli.errors import Unreadable
from memcli.exchange.raw import RATIO, RECORD_BYTES, Raw, spool

_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_FILES = 10_000
_CHUNK_BYTES = 1024 * 1024
_TOTAL_BYTES = 4 * 1024 * 1024 * 1024


def is_archive(head: bytes) -> bool:
    """Return whether the first bytes are those of a ZIP archive."""
    return head.startswith(_MAGIC)


def members(raw: Raw) -> Iterator[Raw]:
    """Yield each file of an archive, unpacked to where nobody sees it; its path is the archive's, `!`, and its name.

    Raises:
        Unreadable: The archive is damaged, encrypted, holds too much, or names a file outside of itself.
    """
    try:
        with zipfile.ZipFile(raw.handle) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            _check(raw, infos)
            left = _TOTAL_BYTES
            for info in infos:
                label = f"{raw.path}!{info.filename}"
                if _is_litter(info.filename):
                    continue
                with archive.open(info) as packed:
                    handle = _unpacked(raw, packed, max(RECORD_BYTES, info.compress_size * RATIO), left)
                left -= handle.tell()
                handle.seek(0)
                yield Raw(path=label, handle=handle, digest=raw.digest, packed=True)
    except NotImplementedError as problem:  # what zipfile says of a compression it does not know
        why = "it is a ZIP archive that is packed in a way that is not read"
        raise Unreadable(raw.path, why, hint="unpack it yourself and import the folder") from problem
    except RuntimeError as problem:  # what zipfile says of a password
        raise Unreadable(raw.path, "it is an encrypted ZIP archive", hint="unpack it yourself") from problem
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as problem:
        why = "it is a ZIP archive that is cut or damaged"
        raise Unreadable(raw.path, why, hint="fetch or pack it again") from problem


def _check(raw: Raw, infos: list[zipfile.ZipInfo]) -> None:
    if len(infos) > _FILES:
        raise Unreadable(raw.path, f"it holds more than {_FILES:,} files", hint="unpack it and import the folder")
    for info in infos:
        path = PurePosixPath(info.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or path.parts[0].endswith(":"):
            why = f"it names a file outside of itself: {info.filename!r}"
            raise Unreadable(raw.path, why, hint="do not trust it; ask for the file itself")


def _is_litter(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return any(part.startswith(".") or part == "__MACOSX" for part in parts)


def _unpacked(raw: Raw, packed: IO[bytes], allowed: int, left: int) -> IO[bytes]:
    # What the archive says of a file's size is a claim; only what comes out of it counts.
    handle = spool()
    try:
        while chunk := packed.read(_CHUNK_BYTES):
            handle.write(chunk)
            if handle.tell() > min(allowed, left):
                why = f"it is a ZIP archive that swells to more than {RATIO} times its size"
                raise Unreadable(raw.path, why, hint="unpack it yourself if you trust it")
    except BaseException:
        handle.close()
        raise
    return handle
