"""`mem` as these tests meet it: words in, an exit code and two streams out, and nothing of the machine around it.

A call runs the command line inside this process where a new one adds nothing. `process=True` starts the program anew,
a clock that is ahead and a terminal always do.
"""

import io
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pexpect

import memcli
from memcli.cli import main
from tests import moved_clock

PROGRAM = [sys.executable, "-m", "memcli"]
WIDE = (60, 400)
"""Rows and columns of the terminal: wide enough that no line of an answer is cut."""

# There is no option for the clock on purpose, so the child moves it before mem reads it.
_AHEAD = f"""
{moved_clock.IMPORT}
from datetime import UTC, datetime, timedelta
from memcli.cli import main
years = int(sys.argv.pop(1))
with time_machine.travel(datetime.now(UTC) + timedelta(days=366 * years), tick=True):
    sys.exit(main())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a command said. At a terminal both streams are one, in `out`."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Return the one document on standard output."""
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """Return the kebab-case code of the error that was said with `--json`."""
        return str(json.loads(self.err.splitlines()[-1])["error"])


class Memory(Protocol):
    """What a store must offer to go through these tests: a command line, and the files it keeps."""

    @property
    def folder(self) -> Path:
        """Return a folder for the files of a test."""

    @property
    def files(self) -> Sequence[Path]:
        """Return every file in which the memory keeps something."""

    def beside(self, name: str) -> "Memory":
        """Return another memory of the same kind in the same folder, made where there is none yet."""

    def run(self, *words: str, scope: str | None = None) -> Result:
        """Run one command and return what it said."""


class Mem:
    """One memory file and the command line over it.

    Args:
        env: Variables beside those that every call gets; `MEM_SCOPE` binds all calls.
    """

    def __init__(
        self, folder: Path, name: str = "memory.db", *, admission: str = "direct", env: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.path = folder / name
        self.env = {
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "LOGNAME": "ann",
            "MEM_DB": str(self.path),
            "PATH": os.environ.get("PATH", ""),
            "PYTHONPATH": str(Path(memcli.__file__).parents[1]),
            "TERM": "xterm",
            **(env or {}),
        }
        if not self.path.exists():
            self.ok("init", "--admission", admission)

    @property
    def files(self) -> Sequence[Path]:
        """Return the memory file first, and what SQLite keeps beside it."""
        return sorted(path for path in self.folder.iterdir() if path.name.startswith(self.path.name))

    def beside(self, name: str) -> "Mem":
        """Return another memory file in the same folder, made where there is none yet."""
        return Mem(self.folder, f"{name}.db")

    def bound(self, scope: str) -> "Mem":
        """Return the same file for a process that is bound to one scope."""
        return Mem(self.folder, self.path.name, env={"MEM_SCOPE": scope})

    def run(
        self,
        *words: str,
        input: str | None = None,  # noqa: A002  # as subprocess.run calls it
        scope: str | None = None,
        at_terminal: bool = False,
        clock_years_ahead: int = 0,
        process: bool = False,
        replies: Sequence[tuple[str, str]] = (),
    ) -> Result:
        """Run one command and return what it said.

        Args:
            replies: At a terminal, what to type once a pattern is on the screen, in this order.
        """
        said = [*words, *([] if scope is None else ["--scope", scope])]
        if at_terminal:
            return self._at_terminal(said, replies)
        if clock_years_ahead:
            return self._process([sys.executable, "-c", _AHEAD, str(clock_years_ahead), *said], input)
        return self._process([*PROGRAM, *said], input) if process else self._here(said, input)

    def ok(self, *words: str, **how: Any) -> Result:
        """Run a command that must succeed."""
        result = self.run(*words, **how)
        assert result.code == 0, f"mem {' '.join(words)} ended with {result.code}: {result.out}{result.err}"
        return result

    def _process(self, command: Sequence[str], text: str | None) -> Result:
        done = subprocess.run(
            command,
            input=(text or "").encode(),
            capture_output=True,
            cwd=self.folder,
            env=self.env,
            timeout=60,
            check=False,
        )
        return Result(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())

    def _here(self, words: Sequence[str], text: str | None) -> Result:
        streams = [io.TextIOWrapper(io.BytesIO(given), "utf-8") for given in ((text or "").encode(), b"", b"")]
        with chdir(self.folder), _environment(self.env), _standard(streams):
            code = main(words)
        out, err = (_written(stream) for stream in streams[1:])
        return Result(code=code, out=out, err=err)

    def _at_terminal(self, words: Sequence[str], replies: Sequence[tuple[str, str]]) -> Result:
        with warnings.catch_warnings():
            # A process with threads, such as a test worker, is warned of fork; the child becomes mem at once.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = pexpect.spawn(
                PROGRAM[0],
                [*PROGRAM[1:], *words],
                cwd=str(self.folder),
                env=self.env,
                encoding="utf-8",
                dimensions=WIDE,
                timeout=30,
                echo=False,
            )
        said = ""
        for question, keys in replies:
            child.expect(question)
            said += f"{child.before}{child.after}"
            child.send(keys)
        child.expect(pexpect.EOF)
        said = f"{said}{child.before}".replace("\r\n", "\n")
        child.close()
        return Result(code=-1 if child.exitstatus is None else child.exitstatus, out=said, err="")


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _standard(streams: Sequence[io.TextIOWrapper]) -> Iterator[None]:
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode()  # type: ignore[attr-defined,no-any-return]
