"""A command that is interrupted or told to end: a sentence, exit code 130, nothing half done, nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.cli.driver import Mem

MEM = (sys.executable, "-m", "memcli")
INTERRUPT, END, DISCONNECT = "\x03", "\x04", "disconnect"
PROMPTS = {
    "review": (("review",), "decide (1/2): "),
    "reason of a review": (("review",), "reason"),
    "reason": (("correct", "f1", "Tea is warm"), "reason: "),
    "confirm": (("erase", "f1", "--reason", "asked to"), "[y/N]: "),
    "tour": (("tour", "--pause"), "q ends --"),
}
KEYS = {"reason of a review": (("decide (1/2): ", "t"),)}
TIMEOUT_S = 60


@pytest.fixture
def asked(reviewed: Mem) -> Mem:
    """A file in which two facts wait, and a folder for temporary files."""
    reviewed("add", "Tea is HOT")
    reviewed("add", "Milk is cold")
    (reviewed.home / "temporary").mkdir()
    return reviewed


def environment(mem: Mem, **more: str) -> dict[str, str]:
    return {**mem.env, "TERM": "xterm", "NO_COLOR": "1", "TMPDIR": str(mem.home / "temporary"), **more}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def stopped(mem: Mem, prompt: str, how: str | int) -> tuple[int | None, str]:
    """Run a command to one of its questions, answer with a key or a signal, and return its end and last words."""
    words, question = PROMPTS[prompt]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking, on newer Pythons; the child execs at once
        child: Any = pexpect.spawn(
            MEM[0],
            [*MEM[1:], *mem.real(words)],
            cwd=str(mem.home),
            env=environment(mem),
            dimensions=(60, 100),
            timeout=TIMEOUT_S,
        )
    for before, key in KEYS.get(prompt, ()):
        child.expect_exact(before)
        child.send(key)
    child.expect_exact(question)
    if isinstance(how, int):
        os.kill(child.pid, how)
    else:
        child.send(how)
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus, child.before.decode()


@pytest.mark.parametrize("how", [INTERRUPT, signal.SIGTERM, signal.SIGHUP], ids=["key", "term", "hup"])
@pytest.mark.parametrize("prompt", PROMPTS)
def test_at_any_question_a_command_can_be_stopped(asked: Mem, prompt: str, how: str | int) -> None:
    before = asked.ok("log"), asked.ok("show", "--all-states")

    code, said = stopped(asked, prompt, how)

    assert code == 130
    assert "\nerror: stopped; what was " in said.replace("\r\n", "\n")
    assert "Traceback" not in said
    assert (asked.ok("log"), asked.ok("show", "--all-states")) == before
    assert names(asked.home) == ["memory.db", "temporary"]
    assert names(asked.home / "temporary") == []


@pytest.mark.parametrize("prompt", ["reason", "confirm", "tour"])
def test_the_end_of_input_at_a_question_stops_the_command(asked: Mem, prompt: str) -> None:
    before = asked.ok("log")

    code, said = stopped(asked, prompt, END)

    assert code == 130
    assert "\nerror: stopped; what was " in said.replace("\r\n", "\n")
    assert asked.ok("log") == before


def begun(mem: Mem, *words: str, around: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*around, *MEM, *words],
        cwd=mem.home,
        env=environment(mem),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def signalling(mem: Mem, number: int) -> str:
    """Return the command of an extractor that sends a signal to whoever started it, and then answers late."""
    script = mem.home / "extractor.py"
    script.write_text(
        f"import os, sys, time; os.kill(os.getppid(), {int(number)}); time.sleep(0.2); print('{{\"facts\": []}}')"
    )
    (mem.home / "chat.json").write_text(json.dumps([{"role": "user", "content": "Tea it is"}]))
    assert mem.run("import", "chat.json").code == 0
    return f"{sys.executable} {script}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=["int", "term", "hup"])
@pytest.mark.parametrize("flag", [(), ("--json",)], ids=["text", "json"])
def test_a_command_that_is_stopped_at_work_says_so(mem: Mem, number: int, flag: tuple[str, ...]) -> None:
    (mem.home / "temporary").mkdir()
    extractor = signalling(mem, number)
    before = mem.ok("log")

    with begun(mem, "extract", "--extractor", extractor, *flag) as child:
        out, err = child.communicate()

    assert (child.returncode, out) == (130, b"")
    if flag:
        assert json.loads(err)["error"] == "interrupted"
    else:
        assert err.decode().startswith("error: stopped; what was done before is kept\n")
    assert mem.ok("log") == before
    assert names(mem.home / "temporary") == []


def test_a_signal_that_was_to_be_ignored_is_ignored(mem: Mem) -> None:
    (mem.home / "temporary").mkdir()
    extractor = signalling(mem, signal.SIGHUP)

    with begun(mem, "extract", "--extractor", extractor, around=("bash", "-c", 'trap "" HUP; exec "$@"', "-")) as child:
        _, err = child.communicate()

    assert (child.returncode, err) == (0, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=["int", "term", "hup"])
def test_an_import_that_is_stopped_keeps_nothing_of_the_file_it_was_at(mem: Mem, number: int) -> None:
    (mem.home / "temporary").mkdir()
    (mem.home / "first.json").write_text(json.dumps([{"role": "user", "content": "Tea it is"}]))
    with begun(mem, "import", "first.json", "-") as child:
        assert child.stdin is not None
        deadline = time.monotonic() + TIMEOUT_S
        while mem.events() < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        child.stdin.write(b'{"role": "user", "content": "half a line')
        child.stdin.flush()
        child.send_signal(number)
        _, err = child.communicate()

    assert child.returncode == 130, err
    assert b"Traceback" not in err
    assert [source["path"] for source in mem.ok("import", "--list")] == ["first.json"]
    assert mem.ok("check") == []
    assert names(mem.home / "temporary") == []


_UNHEARD = """
import os, signal, threading, time
from memcli.cli.asking import interruptible

def stop(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGTERM, stop)
reader, _ = os.pipe()

def elsewhere():
    time.sleep(0.3)  # until the read has begun
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)  # which does not end a read of the main thread

threading.Thread(target=elsewhere, daemon=True).start()
try:
    with interruptible():
        os.read(reader, 1)
except KeyboardInterrupt:
    print("stopped", signal.set_wakeup_fd(-1))
"""


def test_a_signal_that_a_waiting_read_does_not_hear_still_ends_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _UNHEARD], capture_output=True, check=False, text=True, timeout=TIMEOUT_S
    )

    assert (ran.stdout, ran.stderr) == ("stopped -1\n", "")
