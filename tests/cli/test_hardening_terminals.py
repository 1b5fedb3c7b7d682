"""Terminals of any width and kind, locales and environments of any shape: a screen that fits, and never a failure."""

import io
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, chdir
from unittest.mock import patch

import pytest
import time_machine

from memcli.cli import GROUPS, main
from memcli.render.layout import NARROWEST
from memcli.text import cells
from tests.cli.driver import Mem
from tests.files import memory
from tests.tx_files import fill

WHY = ("--reason", "tidying up")
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
LOOKS: tuple[tuple[str, ...], ...] = (
    ("show",),
    ("show", "f1"),
    ("show", "--all-states"),
    ("why", "f1"),
    ("recall", "lisbon"),
    ("recall", "lisbon", "--explain"),
    ("context", "lisbon"),
    ("log",),
    ("log", "verify"),
    ("stats",),
    ("check",),
    ("check", "--residue", "Lisbon"),
    ("scope", "list"),
    ("policy", "show"),
    ("import", "--list"),
    ("review", "list"),
    ("tx", "show"),
    ("tx", "show", "tx1"),
    ("act", "list"),
    ("effects",),
    ("diff", "memory.db", "memory.db"),
    ("tombstone", "f1", "--dry-run", *WHY),
    ("erase", "f1", "--dry-run", *WHY),
    ("condense", "--dry-run"),
    ("budget", "simulate", "chat.json"),
    ("budget", "sweep", "chat.json", "--token-limit", "500,1000"),
    ("budget", "diff", "a.toml", "b.toml", "chat.json"),
    ("budget", "explain", "chat.json", "--message", "1"),
    ("glossary",),
    ("help",),
    ("help", "exit-codes"),
    ("help", "environment"),
    ("help", "json"),
)
WIDE_ENOUGH: Mapping[Sequence[str], int] = {("help",): 40, ("help", "environment"): 23}
"""What is wider than the narrowest screen and never broken, and how wide."""

ANY_WIDTH = frozenset({"context"})
"""What prints a text for a prompt, which is never broken."""


class _Tty(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def at_terminal(mem: Mem, *words: str, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Run a command in this process as if a person sat at both ends; return its exit code and both streams."""
    out, err = io.BytesIO(), io.BytesIO()
    with ExitStack() as stack:
        stack.enter_context(patch.object(sys, "stdin", _Tty(io.BytesIO(b""), encoding="utf-8")))
        for name, taken in (("stdout", out), ("stderr", err)):
            stream = _Tty(taken, encoding="utf-8", write_through=True)
            stack.enter_context(patch.object(sys, name, stream))
        stack.enter_context(patch.dict("os.environ", {**mem.env, **(env or {})}, clear=True))
        stack.enter_context(chdir(mem.home))
        stack.enter_context(time_machine.travel(mem.now, tick=False))
        return main(mem.real(words)), out.getvalue().decode(), err.getvalue().decode()


@pytest.fixture
def full(reviewed: Mem) -> Mem:
    """A file with something of everything, long and wide."""
    with memory(reviewed.db) as store:
        fill(store)
    for text in (
        "Anna lives in Lisbon, a city by the sea with a very long description " * 4,
        "東京 Lisbon " * 20,
        "👩‍👩‍👧 Lisbon " * 10,
        "x" * 400,
    ):
        slot = ("--subject", "anna" * 20, "--attribute", "home city" * 9, "--value", f"Lisbon {text}")
        assert at_terminal(reviewed, "add", text, *slot)[0] in {0, 6}
    reviewed("add", "Lisbon is big")
    talk = [{"role": "user" if n % 2 else "assistant", "content": f"word {n} " * 60} for n in range(30)]
    (reviewed.home / "chat.json").write_text(json.dumps(talk))
    reviewed("import", "chat.json")
    for name, limit in (("a", 500), ("b", 900)):
        (reviewed.home / f"{name}.toml").write_text(f"token_limit = {limit}\n")
    return reviewed


@pytest.mark.parametrize("columns", [300, 40, 20, 1])
def test_every_screen_fits_the_terminal(full: Mem, columns: int) -> None:
    told = {"COLUMNS": str(columns), "LINES": "24", "TERM": "xterm", "PAGER": ""}
    for words in LOOKS:
        code, out, err = at_terminal(full, *words, env=told)

        lines = [ESCAPES.sub("", line) for line in out.splitlines()]
        assert code in {0, 1}, (words, err)
        assert not err or words[0] in ANY_WIDTH, (words, err)
        assert any(lines), words
        assert "\x1b" not in "".join(lines), words
        widest = max(cells(line) for line in lines)
        assert widest <= max(columns, WIDE_ENOUGH.get(words, NARROWEST)) or words[0] in ANY_WIDTH, (words, columns)


@pytest.mark.parametrize(
    "told",
    [{"TERM": "dumb"}, {"NO_COLOR": "1"}, {"TERM": "dumb", "NO_COLOR": ""}],
    ids=["dumb", "no colour", "dumb and an empty NO_COLOR"],
)
def test_where_no_colour_is_wanted_no_screen_has_an_escape(full: Mem, told: Mapping[str, str]) -> None:
    coloured = 0
    for words in LOOKS:
        plain = at_terminal(full, *words, env={"PAGER": "", **told})[1]
        coloured += "\x1b[" in at_terminal(full, *words, env={"PAGER": "", "TERM": "xterm"})[1]

        assert "\x1b" not in plain, words
        assert plain.strip()
    assert coloured > len(LOOKS) // 2


@pytest.mark.parametrize(
    "told",
    [
        {"COLUMNS": "wide", "LINES": "-3"},
        {"COLUMNS": "", "LINES": ""},
        {"COLUMNS": "1e9", "LINES": "0"},
        {"COLUMNS": "9" * 30},
        {"PAGER": "no such program"},
        {"PAGER": 'cat "'},
        {"TERM": ""},
        {"TERM": "no-such-terminal"},
        {"TERM": "x" * 5000},
    ],
    ids=str,
)
def test_an_environment_of_garbage_is_survived_at_a_terminal(full: Mem, told: Mapping[str, str]) -> None:
    for words in (("show",), ("log",), ("why", "f1"), ("stats",), ("review", "list"), ("help", "json")):
        code, out, err = at_terminal(full, *words, env={"TERM": "xterm", "PAGER": "", **told})

        assert (code, err) == (0, "")
        assert out.strip()


GONE: dict[str, str | None] = dict.fromkeys(("HOME", "USER", "LOGNAME", "USERNAME", "LANG", "PATH", "TERM", "TMPDIR"))


@pytest.mark.parametrize(
    "told",
    [
        GONE,
        {"LANG": "C", "LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "pt_PT.ISO-8859-1", "PYTHONUTF8": "0"},
        {"LC_ALL": "no_SUCH.locale"},
        {"PYTHONIOENCODING": "ascii:strict"},
        {"PYTHONIOENCODING": "utf-16"},
        {"PYTHONIOENCODING": "cp037"},
        {"HOME": "/no/such/folder"},
        {"HOME": ""},
        {"TZ": "Pacific/Kiritimati"},
        {"TZ": "no such zone"},
        {"PYTHONWARNINGS": "error"},
        {"PYTHONOPTIMIZE": "2"},
    ],
    ids=lambda told: " ".join(f"{name}={value}" for name, value in told.items())[:60],
)
def test_a_process_of_any_locale_says_the_same_in_json(full: Mem, told: Mapping[str, str | None]) -> None:
    honest = full.ok("show", "--all-states")

    shown, listed, wrong = (
        full.spawn(*words, env=told) for words in (("show", "--all-states", "--json"), ("show",), ("show", "東京"))
    )

    assert [shown.code, listed.code, wrong.code] == [0, 0, 4]
    if told.get("PYTHONIOENCODING") in {None, "ascii:strict"}:
        assert shown.document == honest
        assert wrong.err.count("\n") == 2


def test_what_the_environment_holds_in_confidence_is_never_printed(mem: Mem) -> None:
    secrets = {
        "OPENAI_API_KEY": "sk-proj-swordfish",
        "AWS_SECRET_ACCESS_KEY": "tunafish",
        "DATABASE_URL": "postgres://u:codfish@h",
        "MEM_ACTOR": "catfish",
        "MEM_TIMEOUT": "7.125",
    }
    pages: list[Sequence[str]] = [("--help",), *((name, "--help") for group in GROUPS.values() for name in group)]
    wrong = [("show", "abcd"), ("nonsense",), ("show", "--db", "none.db"), ("import", "none.json"), ("add",)]
    for words in (*pages, *wrong):
        ran = mem.run(*words, env={**secrets, "MEM_DEBUG": "1"})

        assert ran.text
        assert not [secret for secret in ("fish", "7.125") if secret in ran.text], words
    assert "MEM_ACTOR" in mem.run("add", "--help").out


BROKEN = """\
import os, sys
from memcli.__main__ import run
import memcli.store
def broken(*_, **__):
    secret = os.environ["SECRET"]
    raise ZeroDivisionError("a \\x1b[31mred\\u202e text")
memcli.store.open_store = broken
sys.argv[1:] = ["show", *sys.argv[1:]]
run()
"""


@pytest.mark.parametrize("words", [(), ("--json",)], ids=["text", "json"])
def test_a_bug_is_a_sentence_and_its_traceback_shows_no_secret_and_moves_no_cursor(
    mem: Mem, words: tuple[str, ...]
) -> None:
    plain, debugged = (
        subprocess.run(
            [sys.executable, "-c", BROKEN, *words],
            cwd=mem.home,
            env={**mem.env, "SECRET": "swordfish", **debug},
            capture_output=True,
            check=False,
        )
        for debug in ({}, {"MEM_DEBUG": "1"})
    )

    assert (plain.returncode, plain.stdout, debugged.returncode, debugged.stdout) == (70, b"", 70, b"")
    assert plain.stderr.count(b"\n") == (1 if words else 2)
    assert b"ZeroDivisionError" in plain.stderr
    assert debugged.stderr.startswith(b"Traceback")
    assert debugged.stderr.endswith(plain.stderr)
    for said in (plain.stderr, debugged.stderr):
        assert b"\x1b" not in said
        assert "\u202e".encode() not in said
        assert b"swordfish" not in said
