"""Other programs as part of a command: JSON in, JSON out, a time limit, and nothing half-taken."""

import contextlib
import os
import shlex
import signal
import subprocess
import threading
import time
from typing import IO

from memcli import wire
from memcli.errors import Unreadable, UsageError
from memcli.facts import Json

MAX_OUTPUT_BYTES = 64 * 1024 * 1024
"""What an external command may print; more is refused."""

_CHUNK_BYTES = 64 * 1024
_COMPLAINT = 200  # characters of what the command complained of


def converse(command: str, request: Json, *, timeout_s: float) -> Json:
    """Return the JSON that a command prints when it is given the request as JSON and ends well.

    The command line is split like a shell does and run without one.

    Args:
        timeout_s: Seconds until the command and all it started are ended.

    Raises:
        UsageError: The command line is empty or has an open quote.
        Unreadable: It cannot be started, fails, takes too long, prints too much, or prints no JSON.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        raise UsageError("the command line has an open quote", hint="close the quote, or escape it") from None
    if not words:
        raise UsageError("the command line is empty", hint="name a program, such as ./check.py")
    try:
        # In a group of its own, so that what it starts can be ended with it.
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "the name holds a NUL"
        raise Unreadable(
            command, f"it cannot be started: {why.lower()}", hint="check the path, and that it may be run"
        ) from None
    return _decoded(command, _converse(command, process, wire.dumps(request).encode("ascii"), timeout_s))


def _decoded(command: str, output: bytes) -> Json:
    try:
        return wire.loads(output.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Unreadable(command, f"byte {error.start} of its output is no UTF-8", hint="let it print UTF-8") from None
    except UsageError as error:
        empty = not output.strip()
        why = "it printed nothing" if empty else f"its output cannot be read: {error.message}"
        raise Unreadable(command, why, hint="let it print one JSON document and nothing else") from None


def _converse(command: str, process: subprocess.Popen[bytes], request: bytes, timeout_s: float) -> bytes:
    output, complaint = bytearray(), bytearray()
    feeding = threading.Thread(target=_feed, args=(process.stdin, request), daemon=True)
    reading = threading.Thread(target=_drain, args=(process.stdout, output, MAX_OUTPUT_BYTES), daemon=True)
    hearing = threading.Thread(target=_drain, args=(process.stderr, complaint, None), daemon=True)
    deadline_s = time.monotonic() + timeout_s
    try:
        for thread in (feeding, reading, hearing):
            thread.start()
        reading.join(timeout_s)
        if len(output) > MAX_OUTPUT_BYTES:
            size = f"{MAX_OUTPUT_BYTES // 1024 // 1024} MB"
            raise Unreadable(
                command, f"it printed more than {size}", hint="let it print one JSON document and nothing else"
            )
        process.wait(max(0.0, deadline_s - time.monotonic()))
        hearing.join(max(0.0, deadline_s - time.monotonic()))
        if reading.is_alive() or hearing.is_alive():
            raise subprocess.TimeoutExpired(process.args, timeout_s)
    except subprocess.TimeoutExpired:
        _end(process)
        raise Unreadable(
            command, f"it took longer than {timeout_s:g} s and was ended", hint="give it less at a time, or more time"
        ) from None
    except BaseException:  # an interrupt too: the command has a group of its own and hears nothing of it
        _end(process)
        raise
    if process.returncode != 0:
        raise Unreadable(command, _failure(process.returncode, bytes(complaint)), hint="run it by hand to see why")
    return bytes(output)


def _feed(stream: IO[bytes], request: bytes) -> None:
    # A command that knows enough may stop reading; whether it did well is for its answer to say.
    with contextlib.suppress(OSError), stream:
        stream.write(request)


def _drain(stream: IO[bytes], sink: bytearray, limit: int | None) -> None:
    """Fill the sink; past a limit stop, without one keep the last words only."""
    with stream:
        while chunk := os.read(stream.fileno(), _CHUNK_BYTES):
            sink += chunk
            if limit is None:
                del sink[:-_CHUNK_BYTES]
            elif len(sink) > limit:
                return


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command and what it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _failure(code: int, complaint: bytes) -> str:
    lines = [" ".join(line.split()) for line in complaint.decode("utf-8", "replace").splitlines() if line.strip()]
    said = f": {lines[-1][:_COMPLAINT]}" if lines else ""
    return f"it was ended by signal {-code}{said}" if code < 0 else f"it ended with exit code {code}{said}"
