"""Turns of a conversation while it grows: in memory while there are few, in a file of our own beyond that.

One session of an agent can be a gigabyte; what is kept of it must not be in memory all at once.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, MutableSequence, Sequence
from typing import IO, Any, overload

from memcli.facts import ToolCall, Turn
from memcli.terms import Role

HELD_CHARACTERS = 16 * 1024 * 1024
"""How much text of one conversation is held in memory before the rest of it goes into a file."""

_NAMES = tuple(item.name for item in dataclasses.fields(Turn))


class _Shelf:
    """A file of our own with turns in it, each found again by its place."""

    def __init__(self) -> None:
        from tempfile import TemporaryFile  # few need it

        self._file: IO[bytes] = TemporaryFile(prefix="mem-")  # noqa: SIM115  # closed when nobody needs it
        self._end = 0

    def __del__(self) -> None:
        self._file.close()

    def write(self, turn: Turn) -> int:
        """Keep a turn and return its place."""
        data = json.dumps([_plain(getattr(turn, name)) for name in _NAMES]).encode("ascii")
        place = self._end
        self._file.seek(place)
        self._file.write(len(data).to_bytes(8, "big") + data)
        self._end += 8 + len(data)
        return place

    def read(self, place: int) -> Turn:
        """Return the turn at a place."""
        self._file.seek(place)
        size = int.from_bytes(self._file.read(8), "big")
        fields: dict[str, Any] = dict(zip(_NAMES, json.loads(self._file.read(size)), strict=True))
        fields["role"] = Role(fields["role"])
        fields["tool_calls"] = tuple(ToolCall(id=i, name=n, arguments=a) for i, n, a in fields["tool_calls"])
        fields["attachments"] = tuple(fields["attachments"])
        fields["extra"] = tuple((name, words) for name, words in fields["extra"])
        return Turn(**fields)


class TurnLog(MutableSequence[Turn]):
    """A list of turns that moves into a file of its own when it grows beyond `HELD_CHARACTERS`."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self._turns: list[Turn] = []
        self._held = 0
        self._shelf: _Shelf | None = None
        self._places: list[int] = []
        self.extend(turns)

    @property
    def spilled(self) -> bool:
        """Return whether the turns are in a file."""
        return self._shelf is not None

    def __len__(self) -> int:
        return len(self._turns) if self._shelf is None else len(self._places)

    @overload
    def __getitem__(self, index: int) -> Turn: ...
    @overload
    def __getitem__(self, index: slice) -> "TurnLog": ...
    def __getitem__(self, index: int | slice) -> "Turn | TurnLog":
        if isinstance(index, slice):
            return TurnLog(self[number] for number in range(*index.indices(len(self))))
        return self._turns[index] if self._shelf is None else self._shelf.read(self._places[index])

    @overload
    def __setitem__(self, index: int, value: Turn) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[Turn]) -> None: ...
    def __setitem__(self, index: int | slice, value: Turn | Iterable[Turn]) -> None:
        if not isinstance(index, int) or not isinstance(value, Turn):
            raise TypeError("one turn at a time")
        if self._shelf is None:
            self._turns[index] = value
        else:
            self._places[index] = self._shelf.write(value)

    def __delitem__(self, index: int | slice) -> None:
        if self._shelf is None:
            del self._turns[index]
        else:
            del self._places[index]

    def insert(self, index: int, value: Turn) -> None:
        """Put a turn before the one at an index."""
        if self._shelf is not None:
            self._places.insert(index, self._shelf.write(value))
            return
        self._turns.insert(index, value)
        self._held += len(value.content) + len(value.thinking or "") + sum(len(c.arguments) for c in value.tool_calls)
        if self._held > HELD_CHARACTERS:
            self._shelf = _Shelf()
            self._places = [self._shelf.write(turn) for turn in self._turns]
            self._turns = []


class Changed(Sequence[Turn]):
    """The turns of a log, each changed as it is read."""

    def __init__(self, turns: Sequence[Turn], change: Callable[[int, Turn], Turn]) -> None:
        self._turns, self._change = turns, change

    def __len__(self) -> int:
        return len(self._turns)

    @overload
    def __getitem__(self, index: int) -> Turn: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Turn]: ...
    def __getitem__(self, index: int | slice) -> Turn | Sequence[Turn]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self._change(index % len(self), self._turns[index])


def changed(turns: Sequence[Turn], change: Callable[[int, Turn], Turn]) -> Sequence[Turn]:
    """Return the turns, each changed by its index: at once where they are in memory, as they are read elsewhere."""
    if isinstance(turns, Changed) or (isinstance(turns, TurnLog) and turns.spilled):
        return Changed(turns, change)
    return tuple(change(index, turn) for index, turn in enumerate(turns))


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [[v.id, v.name, v.arguments] if isinstance(v, ToolCall) else v for v in value]
    return value
