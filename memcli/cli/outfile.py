"""Files that commands write: each appears whole or not at all, and takes the place of nothing that is worth more."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from memcli.cli.door import printing
from memcli.errors import NoSpace, UsageError

_DATABASE = b"SQLite format 3\x00"
_BESIDE = ("", "-wal", "-shm", "-journal")
"""What SQLite keeps of a database, by the ends of the names."""


class OutFile:
    """A file that a command was asked to write at its end. A device or a pipe is written to and never replaced.

    Args:
        path: As it was typed.
        force: Write over a file that is there already.
        option: The option that names it, for the sentences.
        private: Only its owner may read it, as the memory that it was made from.

    Raises:
        UsageError: It is there already and may not be overwritten, it is a folder or a database, or it is no path.
    """

    def __init__(self, path: str, *, force: bool, option: str, private: bool = False) -> None:
        self._path, self._force, self._option, self._private = path, force, option, private
        self._place = Path(path)
        if not path or path == "-" or "\0" in path:
            raise UsageError(f"{option} needs a path", hint=f"name a file, such as {option} FILE")
        self._check()

    def spare(self, memory: Path) -> None:
        """Refuse to write over a memory file, or over what SQLite keeps beside it.

        Raises:
            UsageError: It would.
        """
        own = [memory.with_name(f"{memory.name}{end}") for end in _BESIDE]
        with suppress(OSError):
            same = self._place.resolve() in [path.resolve() for path in own]
            if same or (self._place.exists() and any(self._place.samefile(path) for path in own if path.exists())):
                self._refuse(f"{self._path} is the memory file itself or a part of it; nothing was written")

    def write_text(self, text: str) -> None:
        """Write a text as UTF-8, what cannot be written as such escaped.

        Raises:
            UsageError: Something is there now.
            NoSpace: It cannot be written.
        """
        self.write((text.encode("utf-8", "backslashreplace"),))

    def write(self, chunks: Iterable[bytes]) -> None:
        """Write what comes, bit by bit.

        Raises:
            UsageError: Something is there now.
            NoSpace: It cannot be written.
        """
        if _takes_bytes(self._place):
            with printing(), self._place.open("wb") as stream:
                stream.writelines(chunks)
            return
        real = self._check()
        # In the same folder, so that the last step is one rename.
        draft = real.with_name(f".{real.name}.{os.getpid()}.part")
        try:
            mode = 0o600 if self._private else 0o666
            with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as stream:
                stream.writelines(chunks)
                stream.flush()
                os.fsync(stream.fileno())
            self._publish(draft, real)
        except OSError as problem:
            why = (problem.strerror or str(problem)).lower()
            raise NoSpace(f"{self._path} cannot be written: {why}", hint="name another place") from problem
        finally:
            with suppress(OSError):  # where it never was, there is nothing to clear away
                draft.unlink()

    def _publish(self, draft: Path, real: Path) -> None:
        """Give a finished file its name, unless something else took it meanwhile."""
        if self._force:
            draft.replace(real)
            return
        try:
            os.link(draft, real)
        except FileExistsError:
            self._there()
        except OSError:
            # No hard links on this file system: a rename is the next best thing.
            if os.path.lexists(real):
                self._there()
            draft.rename(real)

    def _check(self) -> Path:
        """Return the file that is written: links are followed, so that they stay links."""
        if _takes_bytes(self._place):
            return self._place
        if self._place.is_dir():
            self._refuse(f"{self._path} is a folder", hint=f"name a file in it with {self._option}")
        real = Path(os.path.realpath(self._place))
        head = b""
        with suppress(OSError), real.open("rb") as stream:
            head = stream.read(len(_DATABASE))
        if head == _DATABASE:
            self._refuse(f"{self._path} is the memory file or another database; nothing was written")
        if os.path.lexists(real) and not self._force:
            self._there()
        return real

    def _there(self) -> None:
        self._refuse(f"{self._path} exists already; nothing was written", hint="name another file, or give --force")

    def _refuse(self, message: str, *, hint: str | None = None) -> None:
        raise UsageError(message, hint=hint or f"name another file with {self._option}")


def _takes_bytes(place: Path) -> bool:
    """Return whether a device or a pipe lies there."""
    try:
        return place.exists() and not place.is_file() and not place.is_dir()
    except (OSError, ValueError):  # no path that the system takes
        return False
