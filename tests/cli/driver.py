"""Runs one command the way a script or a person does, and gives back what came out.

Three ways: inside this process (fast, a pipe), in a process of its own (what only the system can show), and at a
pseudo-terminal (what a person sees). Ids become `f1`, `f2`, … in the order the facts were made, times become `T` and
hashes `H`; `f1` may also be typed.
"""

import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pexpect  # type: ignore[import-untyped]  # says nothing of its types
import pyte
import time_machine

from memcli.cli import main
from tests import moved_clock

NOON = datetime(2026, 3, 12, 12, 0, tzinfo=UTC)
"""When every command runs; transaction times follow it in steps of a microsecond."""

_CHILD = f"""\
{moved_clock.IMPORT}
from datetime import datetime
from memcli.cli import main
with time_machine.travel(datetime.fromisoformat(sys.argv.pop(1)), tick=False):
    code = main()
sys.exit(code)
"""
_TIMEOUT_S = 60
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_HASH = re.compile(r"\b(?:blake2b:[0-9a-f]+|[0-9a-f]{64}\b)…?")
_ID = re.compile(r"(?<![\w#-])(?<!(?<!:):)([0-9a-f]{4,16})\b( *)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command printed and how it ended; `out` and `err` are what stood there, `text` is the snapshot."""

    out: str
    err: str
    code: int
    text: str

    @property
    def document(self) -> Any:
        """The one JSON document on standard output, with nothing else beside it."""
        assert self.out.endswith("\n")
        assert "\n" not in self.out[:-1]
        return json.loads(self.out)

    @property
    def complaint(self) -> Any:
        """The one JSON object on standard error."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        return json.loads(lines[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a person saw: the last screen, the bytes that made it, and how the command ended."""

    screen: str
    raw: bytes
    code: int


class Mem:
    """`mem` in a folder of its own, with a file in it, and nothing of the person who runs the tests around it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.now = NOON
        self.env = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(home),
            "USER": "anna",
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    @property
    def db(self) -> Path:
        """The file that is used where none is named."""
        return self.home / "memory.db"

    def __call__(self, *words: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """Run a command and return its snapshot."""
        return self.run(*words, stdin=stdin, env=env).text

    def run(self, *words: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Ran:
        """Run a command inside this process, with pipes."""
        with self._inside(env), _pipes(stdin) as (out, err), time_machine.travel(self.now, tick=False):
            code = main(self.real(words))
            sys.stdout.flush()
            sys.stderr.flush()
        return self._ran(out.getvalue(), err.getvalue(), code)

    def ok(self, *words: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Any:
        """Run a command with `--json` that must succeed, and return its document."""
        ran = self.run(*words, "--json", stdin=stdin, env=env)
        assert (ran.code, ran.err) == (0, ""), ran.text
        return ran.document

    def spawn(
        self,
        *words: str | bytes,
        stdin: bytes | None = b"",
        env: Mapping[str, str | None] | None = None,
        around: str | None = None,
    ) -> Ran:
        """Run a command in a process of its own.

        Args:
            stdin: None closes it.
            env: A variable that is None is taken away.
            around: A line for bash in which `"$@"` is the command, for redirections and pipes.
        """
        line = [sys.executable, "-c", _CHILD, self.now.isoformat(), *self.real(words)]
        if stdin is None:
            around = (around or '"$@"') + " <&-"
        if around is not None:
            line = ["bash", "-o", "pipefail", "-c", around, "bash", *line]
        done = subprocess.run(
            line,
            input=stdin,
            capture_output=True,
            cwd=self.home,
            env=self._environment(env),
            timeout=_TIMEOUT_S,
            check=False,
        )
        return self._ran(done.stdout, done.stderr, done.returncode)

    def term(
        self,
        *words: str,
        answers: Sequence[tuple[str, str]] = (),
        columns: int = 80,
        rows: int = 60,
        env: Mapping[str, str | None] | None = None,
        around: str | None = None,
    ) -> Seen:
        """Run a command at a terminal, type an answer to each question, and return what is on the screen at the end.

        Args:
            around: A line for bash in which `"$@"` is the command.
        """
        line = [sys.executable, "-c", _CHILD, self.now.isoformat(), *self.real(words)]
        if around is not None:
            line = ["bash", "-c", around, "bash", *line]
        told = {"TERM": "xterm-256color", "PAGER": "cat", **(env or {})}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking, on newer Pythons; the child execs at once
            child: Any = pexpect.spawn(
                line[0],
                line[1:],
                cwd=str(self.home),
                env=self._environment(told),
                dimensions=(rows, columns),
                timeout=_TIMEOUT_S,
            )
        raw = b""
        for question, answer in answers:
            child.expect_exact(question.encode())
            raw += child.before + child.after
            child.send(answer.encode())
        child.expect(pexpect.EOF)
        raw += child.before
        child.close()
        code = child.exitstatus if child.exitstatus is not None else -child.signalstatus
        return Seen(screen=self.steady(_screen(raw, columns, rows)), raw=raw, code=code)

    def person(self, *words: str, answers: Sequence[tuple[str, str]] = ()) -> str:
        """Run a command at a terminal and return its screen, and its exit code where it is not 0."""
        seen = self.term(*words, answers=answers)
        return seen.screen + (f"--- exit {seen.code}\n" if seen.code else "")

    def ids(self) -> list[str]:
        """Return the ids of the facts of the file in the order they were made."""
        try:
            with closing(sqlite3.connect(f"{self.db.as_uri()}?mode=rw", uri=True, timeout=0)) as conn:
                return [name for (name,) in conn.execute("select name from facts order by id")]
        except sqlite3.Error:
            return []

    def events(self) -> int:
        """Return how many events the log has."""
        with closing(sqlite3.connect(self.db)) as conn:
            return int(conn.execute("select count(*) from audit").fetchone()[0])

    def real(self, words: Sequence[Any]) -> list[Any]:
        """Return the words with each `f1` replaced by the id of the first fact."""
        ids = self.ids() if any(re.fullmatch(r"f\d+", word) for word in words if isinstance(word, str)) else []
        return [
            ids[int(word[1:]) - 1] if isinstance(word, str) and re.fullmatch(r"f\d+", word) else word for word in words
        ]

    def steady(self, text: str) -> str:
        """Return the text with ids, times, hashes and this folder replaced by what is the same in every run."""
        ids = self.ids()

        def named(found: re.Match[str]) -> str:
            token, space = found.groups()
            number = next((at for at, name in enumerate(ids, 1) if name.startswith(token)), None)
            if number is None:
                return found.group()
            room = len(token) - len(f"f{number}") if len(space) > 1 else 0
            return f"f{number}{' ' * room}{space}"

        text = _HASH.sub("H", _TIME.sub("T", text)).replace(str(self.home), "~")
        return _ID.sub(named, text)

    def _ran(self, out: bytes, err: bytes, code: int) -> Ran:
        said, complained = out.decode("utf-8", "backslashreplace"), err.decode("utf-8", "backslashreplace")
        assert "Traceback" not in complained, complained
        text = said + (f"--- stderr\n{complained}" if complained else "") + (f"--- exit {code}\n" if code else "")
        return Ran(out=said, err=complained, code=code, text=self.steady(text))

    def _environment(self, changes: Mapping[str, str | None] | None) -> dict[str, str]:
        both: dict[str, str | None] = {**self.env, **(changes or {})}
        return {name: value for name, value in both.items() if value is not None}

    @contextmanager
    def _inside(self, changes: Mapping[str, str] | None) -> Iterator[None]:
        before = Path.cwd()
        os.chdir(self.home)
        try:
            with patch.dict(os.environ, self._environment(changes), clear=True):
                yield
        finally:
            os.chdir(before)


@contextmanager
def _pipes(stdin: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    out, err = io.BytesIO(), io.BytesIO()
    streams = {
        "stdin": io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"),
        "stdout": io.TextIOWrapper(out, encoding="utf-8", newline="\n"),
        "stderr": io.TextIOWrapper(err, encoding="utf-8", newline="\n", errors="backslashreplace"),
    }
    with ExitStack() as stack:
        for name, stream in streams.items():
            stack.enter_context(patch.object(sys, name, stream))
        yield out, err
    for name in ("stdout", "stderr"):
        streams[name].detach()  # or its end would close what the caller reads


def _screen(raw: bytes, columns: int, rows: int) -> str:
    screen = pyte.Screen(columns, rows)
    pyte.ByteStream(screen).feed(raw)
    lines = [line.rstrip() for line in screen.display]
    return "\n".join(lines).rstrip("\n") + "\n" if any(lines) else ""
