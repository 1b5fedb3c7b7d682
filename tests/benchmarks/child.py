"""Run one command and write what it cost as JSON: `python child.py pipe|terminal INPUT OUTPUT COMMAND…`.

A process of its own, and a small one: the greatest memory of a child begins with that of whoever started it.
"""

import json
import os
import resource
import subprocess
import sys
import termios
import threading
import time

ROWS, COLUMNS = 60, 100
"""High enough for a page, so that no pager is started."""


def drained(number: int) -> None:
    """Read a terminal until nobody writes to it any more."""
    while True:
        try:
            if not os.read(number, 65_536):
                return
        except OSError:  # how a terminal ends whose last writer has gone
            return


def on_terminal(command: list[str]) -> int:
    """Return the exit code of a command that has a terminal for its input and output."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (ROWS, COLUMNS))
    reader = threading.Thread(target=drained, args=(ours,))
    reader.start()
    environment = os.environ | {"TERM": "xterm-256color"}
    code = subprocess.call(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True)
    os.close(theirs)
    reader.join()
    return code


def through_pipes(command: list[str], given: str, output: str) -> int:
    """Return the exit code of a command that has files for its input and output; what it complains of is passed on."""
    with open(given, "rb") as stdin, open(output, "wb") as stdout:  # noqa: PTH123 - this is to be small
        return subprocess.call(command, stdin=stdin, stdout=stdout)


def main() -> None:
    """Run the command, and say what it cost."""
    how, given, output, *command = sys.argv[1:]
    begun = time.perf_counter()
    code = on_terminal(command) if how == "terminal" else through_pipes(command, given, output)
    wall_s = time.perf_counter() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cost = {
        "code": code,
        "cpu_s": used.ru_utime + used.ru_stime,
        "wall_s": wall_s,
        "peak_bytes": used.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    }
    sys.stdout.write(json.dumps(cost))


if __name__ == "__main__":
    main()
