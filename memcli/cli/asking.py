"""Waiting for a person, so that a signal ends the wait whenever it comes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_AGAIN_S = 0.05
"""How long a signal may take to be answered before it is sent once more, in seconds."""

_MOST = 3
"""How often a signal is sent again."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let a signal that comes in the moment before a read begins end that read.

    Python answers a signal between two of its own steps. One that comes when the last step before a read is over, and
    the read has not begun, would wait for the very answer that nobody gives any more. So somebody else hears of each
    signal too, and sends it again while the read goes on.
    """
    import signal  # few commands ask anything
    import threading

    reader = threading.get_ident()
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_kill"):
        yield
        return
    over = threading.Event()
    heard, told = os.pipe()
    os.set_blocking(told, False)

    def send_again() -> None:
        # What is sent again is heard again, and whoever answers it must not be stopped in that without end.
        for _ in range(_MOST):
            number = os.read(heard, 1)
            if not number or over.wait(_AGAIN_S):
                break
            signal.pthread_kill(reader, number[0])
        while os.read(heard, 1):
            pass  # until nobody writes any more
        os.close(heard)

    listener = threading.Thread(target=send_again, daemon=True)
    listener.start()
    before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        os.close(told)
