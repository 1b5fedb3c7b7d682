"""The `mem` program, and `python -m memcli`: the command line with a quick start and a quick end."""

import gc
import os
import signal
import sys

gc.disable()  # nothing that start-up makes is garbage, and looking for it takes a tenth of the start
_HEARD = signal.getsignal(signal.SIGINT)
if _HEARD is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until somebody is there to answer it, an interrupt just ends us

from memcli.cli import main  # noqa: E402  # after the lines above, which are there for this import

signal.signal(signal.SIGINT, _HEARD)


def run() -> None:
    """Run the command line and end the process with its exit code, without taking the interpreter apart first.

    Files are closed by then, so nothing can be lost; freeing a vocabulary alone would take 55 ms.
    """
    gc.freeze()
    gc.enable()
    _hear_the_end()
    try:
        code = main()
    except KeyboardInterrupt:  # a second one, while the first was being answered
        code = 130
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # closed, missing or full: `main` has said so where it could
            continue
    os._exit(code)


def _hear_the_end() -> None:
    """Let a process that is told to end do so like one that is interrupted: rolled back, tidied up and with a sentence.

    A signal that whoever started us wanted ignored, as `nohup` does, stays so.
    """
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)


def _stop(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    run()
