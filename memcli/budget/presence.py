"""When each message of a run came into the window, and when it went."""

from bisect import bisect_right
from collections.abc import Sequence

from memcli.budget.outcome import Columns, Fate, Simulation, Steps


def ends_of(simulation: Simulation) -> Sequence[int]:
    """Return how many messages had been written after each write."""
    steps = simulation.steps
    if isinstance(steps, Steps):
        stops = list(steps.stops)
    else:
        stops = [stop for step in steps if isinstance(stop := step.get("stop"), int)]
    # A run that ended early has fewer steps; what it never wrote counts as written by one more.
    return stops if stops and stops[-1] >= len(simulation.fates) else [*stops, len(simulation.fates)]


def turns_of(roles: Sequence[str]) -> list[int]:
    """Return the 0-based user turn of each message; what comes before the first is of turn 0."""
    users = [at for at, role in enumerate(roles) if role == "user"]
    turns: list[int] = []
    for turn, stop in enumerate([*users[1:], len(roles)]):
        turns += [turn] * (stop - len(turns))
    return turns


def writes_of(messages: int, ends: Sequence[int]) -> list[int]:
    """Return the write that brought each of so many messages."""
    written: list[int] = []
    for write, stop in enumerate(ends):
        written += [write] * (stop - len(written))
    return (written + [len(ends)] * (messages - len(written)))[:messages]


def write_of(message: int, ends: Sequence[int]) -> int:
    """Return the write that brought a message."""
    return bisect_right(ends, message)


def went(fate: Fate, simulation: Simulation, written: int) -> int | None:
    """Return the first write after which a message was in no window, or None where it is in the last one.

    Args:
        written: The write that brought it.
    """
    if fate.flush is not None:
        return simulation.flushes[fate.flush].write
    if fate.ended == "window":
        return None
    return written if fate.last_seen is None else fate.last_seen + 1


def all_gone(simulation: Simulation, written: Sequence[int]) -> list[int | None]:
    """Return `went` of each message.

    Args:
        written: The write that brought each.
    """
    fates, columns = simulation.fates, Columns.of(simulation.fates)
    flushed = [flush.write for flush in simulation.flushes]
    gone = [None if flush is None else flushed[flush] for flush in columns.flush[: len(written)]]
    for at in [at for at, left in enumerate(gone) if left is None and columns.ended[at] != "window"]:
        gone[at] = went(fates[at], simulation, written[at])
    return gone


def turn_after(stop: int, fates: Sequence[Fate]) -> int:
    """Return the 0-based user turn that so many messages end in."""
    return max(0, sum(fate.role == "user" for fate in fates[:stop]) - 1)
