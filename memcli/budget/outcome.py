"""What every policy hands over: the fate of each message, each flush, the prompt at the end, and what is wrong with it.

One shape for all policies, so that findings, sweeps, differences, screens and JSON are written once. Message numbers
are 0-based and count from the first message of the transcript. Two counts stand side by side everywhere: `thought`,
what the policy believes it used, and `real`, what a provider would be sent. All of them are tokens.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import overload

from memcli.facts import Json
from memcli.record import record


@record
class Flushed:
    """One flush: which messages left the window at which write, and to which blocks they went.

    Args:
        write: The 0-based write after which it happened.
        turn: The 0-based user turn it happened in.
        before: Tokens in the window before it, as the policy thinks.
        after: And after it.
        first: The first message that left.
        stop: The message after the last that left.
        blocks: The blocks that took them.
    """

    write: int
    turn: int
    before: int
    after: int
    first: int
    stop: int
    blocks: tuple[str, ...]


@record
class Fate:
    """What became of one message.

    Args:
        ended: `window` (still there whole), `block` (given to blocks), or `dropped` (nobody has it).
        reason: Why it is not in the window; None where it is.
        flush: The number of the flush that took it, or None.
        last_seen: The last write after which it was in a prompt; None means it never was.
        reachable: Whether the prompt at the end still holds its words, in the window or in a block.
    """

    index: int
    id: str
    role: str
    thought: int
    real: int
    ended: str
    reason: str | None
    flush: int | None
    last_seen: int | None
    reachable: bool
    blocks: tuple[str, ...] = ()


@record
class Columns:
    """What most questions about fates are about, of all messages, in their order; each under its name in `Fate`."""

    role: Sequence[str]
    thought: Sequence[int]
    real: Sequence[int]
    ended: Sequence[str]
    flush: Sequence[int | None]

    @classmethod
    def of(cls, fates: Sequence[Fate]) -> "Columns":
        """Return the columns of these fates."""
        if isinstance(fates, Fates):
            return fates.columns
        return cls(
            role=[fate.role for fate in fates],
            thought=[fate.thought for fate in fates],
            real=[fate.real for fate in fates],
            ended=[fate.ended for fate in fates],
            flush=[fate.flush for fate in fates],
        )


class Fates(Sequence[Fate]):
    """What became of each message, put together when it is looked at: few of many are.

    Args:
        tell: Returns the fate of the message of that number.
    """

    __slots__ = ("_tell", "columns")

    def __init__(self, columns: Columns, tell: Callable[[int], Fate]) -> None:
        self.columns = columns
        self._tell = tell

    def __len__(self) -> int:
        return len(self.columns.ended)

    @overload
    def __getitem__(self, at: int) -> Fate: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Fate, ...]: ...
    def __getitem__(self, at: int | slice) -> Fate | tuple[Fate, ...]:
        if isinstance(at, slice):
            return tuple(map(self._tell, range(len(self))[at]))
        return self._tell(range(len(self))[at])

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Fates | tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))


@record
class Piece:
    """One part of the prompt at the end: `kind` is `system`, `block`, `message` or `template`."""

    kind: str
    name: str
    role: str
    index: int | None
    thought: int
    real: int
    text: str


@record
class BlockFate:
    """What a block wanted and got. `fate` is whole, shortened, dropped, empty or grown; `reason` is why not whole."""

    name: str
    kind: str
    priority: int | None
    weight: float | None
    wanted: int
    got: int
    fate: str
    reason: str | None


@record
class BudgetFinding:
    """One thing a developer should know: a stable code, its weight, the place, and the setting that avoids it.

    Args:
        severity: `error` or `warning`.
        turn: The 0-based user turn, or None for the whole run.
        message: The 0-based message, or None.
        tokens: How many it is about, or None.
    """

    code: str
    severity: str
    turn: int | None
    message: int | None
    tokens: int | None
    text: str
    remedy: str


@record
class Totals:
    """The sums of a run. `over` is how far the real prompt exceeds the limit, 0 where it fits."""

    messages: int
    turns: int
    tokens: int
    window_messages: int
    flushes: int
    flushed_messages: int
    thought: int
    real: int
    limit: int | None
    over: int
    uncounted: int
    template: int
    prefix_kept: float | None


class Steps(Sequence[Mapping[str, Json]]):
    """What is told of each write, worked out when it is looked at: there is a write for each message.

    Args:
        stops: How many messages had been written after each write.
        tell: Returns what is told of the write of that number.
    """

    __slots__ = ("_tell", "stops")

    def __init__(self, stops: Sequence[int], tell: Callable[[int], Mapping[str, Json]]) -> None:
        self.stops = stops
        self._tell = tell

    def __len__(self) -> int:
        return len(self.stops)

    @overload
    def __getitem__(self, at: int) -> Mapping[str, Json]: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Mapping[str, Json], ...]: ...
    def __getitem__(self, at: int | slice) -> Mapping[str, Json] | tuple[Mapping[str, Json], ...]:
        if isinstance(at, slice):
            return tuple(map(self._tell, range(len(self))[at]))
        return self._tell(range(len(self))[at])

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Steps | tuple) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it holds dictionaries


@record
class Simulation:
    """A whole run of one policy over one transcript.

    Args:
        policy: `llamaindex`, `mem`, `buffer`, `sliding`, `token` or `unbounded`.
        encoding: What counted.
        settings: As they were asked for.
        effective: As they were used.
        clamps: What was changed and why: `{"setting", "given", "used", "why"}` each.
        steps: One JSON object a write, as the policy has it.
        refused: Why the policy gave no prompt, with the exact shortfall; None where it did.
    """

    policy: str
    encoding: str
    settings: Mapping[str, Json]
    effective: Mapping[str, Json]
    clamps: tuple[Mapping[str, Json], ...]
    fates: Sequence[Fate]
    flushes: tuple[Flushed, ...]
    steps: Sequence[Mapping[str, Json]]
    prompt: tuple[Piece, ...]
    blocks: tuple[BlockFate, ...]
    totals: Totals
    findings: tuple[BudgetFinding, ...] = ()
    refused: str | None = None
