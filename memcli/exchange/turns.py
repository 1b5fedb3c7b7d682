"""Turns of a conversation while it grows: in memory while there are few, in a file of our own beyond that.

One session of an agent can be a gigabyte; what is kept of it must not be in memory all at once.
"""

import dataclasses
import marshal
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from operator import attrgetter
from typing import IO, Any, overload

from memcli.facts import ToolCall, Turn
from memcli.terms import Role

HELD_CHARACTERS = 4 * 1024 * 1024
"""How much text of one conversation is held in memory before the rest of it goes into a file."""

_RECENT_CHARACTERS = 1024 * 1024
_RECENT_TURNS = 256
"""What of it stays in memory all the same, since the newest messages are those that still grow."""

_BESIDE_TEXT = 512
"""What a turn takes in memory whatever it says."""

_BUFFER_BYTES = 256 * 1024

_NAMES = tuple(item.name for item in dataclasses.fields(Turn))
_ROLE, _CALLS = _NAMES.index("role"), _NAMES.index("tool_calls")
_values = attrgetter(*_NAMES)
_ROLES = {str(role): role for role in Role}


def altered(turn: Turn, **changes: Any) -> Turn:
    """Return a turn with other values in some fields: `dataclasses.replace`, in half the time."""
    return Turn(**(dict(zip(_NAMES, _values(turn), strict=True)) | changes))


class _Shelf:
    """A file of our own with turns in it, each found again by its place."""

    def __init__(self) -> None:
        from tempfile import TemporaryFile  # few need it

        self._file: IO[bytes] = TemporaryFile(buffering=_BUFFER_BYTES, prefix="mem-")  # noqa: SIM115  # closed at the end
        self._end = 0
        self._writes = True

    def __del__(self) -> None:
        self._file.close()

    def write(self, turn: Turn) -> tuple[int, int]:
        """Keep a turn and return its place and its size."""
        values = list(_values(turn))
        values[_ROLE] = str(turn.role)
        values[_CALLS] = [(call.id, call.name, call.arguments) for call in turn.tool_calls]
        data = marshal.dumps(values)
        place = self._end
        if not self._writes:
            self._file.seek(place)
            self._writes = True
        self._file.write(data)
        self._end += len(data)
        return place, len(data)

    def read(self, place: int, size: int) -> Turn:
        """Return the turn at a place."""
        self._writes = False
        self._file.seek(place)
        # The file has no name, so that nobody else can have put anything into it.
        values = marshal.loads(self._file.read(size))  # noqa: S302
        values[_ROLE] = _ROLES[values[_ROLE]]
        values[_CALLS] = tuple([ToolCall(id=i, name=n, arguments=a) for i, n, a in values[_CALLS]])
        return Turn(**dict(zip(_NAMES, values, strict=True)))


class TurnLog(MutableSequence[Turn]):
    """A list of turns that moves into a file of its own when it grows beyond `HELD_CHARACTERS`, all but its end."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self._shelf: _Shelf | None = None
        self._places = array("q")
        self._sizes = array("q")
        self._recent: deque[Turn] = deque()
        self._held = 0
        self.extend(turns)

    @property
    def spilled(self) -> bool:
        """Return whether turns are in a file."""
        return self._shelf is not None

    def __len__(self) -> int:
        return len(self._places) + len(self._recent)

    def __iter__(self) -> Iterator[Turn]:
        if self._shelf is None:
            yield from tuple(self._recent)
            return
        for index in range(len(self)):
            yield self._at(index)

    @overload
    def __getitem__(self, index: int) -> Turn: ...
    @overload
    def __getitem__(self, index: slice) -> "TurnLog": ...
    def __getitem__(self, index: int | slice) -> "Turn | TurnLog":
        if isinstance(index, slice):
            return TurnLog(self._at(number) for number in range(*index.indices(len(self))))
        return self._at(self._index(index))

    def _index(self, index: int) -> int:
        count = len(self)
        if not -count <= index < count:
            raise IndexError(index)
        return index % count

    def _at(self, index: int) -> Turn:
        shelved = len(self._places)
        if index >= shelved or self._shelf is None:
            return self._recent[index - shelved]
        return self._shelf.read(self._places[index], self._sizes[index])

    @overload
    def __setitem__(self, index: int, value: Turn) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[Turn]) -> None: ...
    def __setitem__(self, index: int | slice, value: Turn | Iterable[Turn]) -> None:
        if not isinstance(index, int) or not isinstance(value, Turn):
            raise TypeError("one turn at a time")
        place, shelved = self._index(index), len(self._places)
        if place >= shelved or self._shelf is None:
            self._held += _weight(value) - _weight(self._recent[place - shelved])
            self._recent[place - shelved] = value
            self._make_room()
        else:
            self._places[place], self._sizes[place] = self._shelf.write(value)

    def __delitem__(self, index: int | slice) -> None:
        if not isinstance(index, int):
            raise TypeError("one turn at a time")
        place, shelved = self._index(index), len(self._places)
        if place >= shelved:
            self._held -= _weight(self._recent[place - shelved])
            del self._recent[place - shelved]
        else:
            del self._places[place], self._sizes[place]

    def append(self, value: Turn) -> None:
        """Put a turn at the end."""
        self._recent.append(value)
        self._held += _weight(value)
        self._make_room()

    def insert(self, index: int, value: Turn) -> None:
        """Put a turn before the one at an index."""
        place = max(0, index + len(self)) if index < 0 else min(index, len(self))
        shelved = len(self._places)
        if place >= shelved or self._shelf is None:
            self._recent.insert(place - shelved, value)
            self._held += _weight(value)
            self._make_room()
            return
        at, size = self._shelf.write(value)
        self._places.insert(place, at)
        self._sizes.insert(place, size)

    def _make_room(self) -> None:
        """Move the oldest turns in memory into the file where too much is in memory."""
        if self._shelf is None:
            if self._held <= HELD_CHARACTERS:
                return
            self._shelf = _Shelf()
        kept = min(_RECENT_CHARACTERS, HELD_CHARACTERS)
        while self._recent and (self._held > kept or len(self._recent) > _RECENT_TURNS):
            turn = self._recent.popleft()
            self._held -= _weight(turn)
            place, size = self._shelf.write(turn)
            self._places.append(place)
            self._sizes.append(size)


def _weight(turn: Turn) -> int:
    said = len(turn.content) + _BESIDE_TEXT
    if turn.thinking is not None:
        said += len(turn.thinking)
    for call in turn.tool_calls:
        said += len(call.arguments)
    return said


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

    def __iter__(self) -> Iterator[Turn]:
        change = self._change
        for index, turn in enumerate(self._turns):
            yield change(index, turn)


class Overheard(Changed):
    """Turns of which each is told to somebody when it is read for the first time, in their order."""

    def __init__(self, turns: Sequence[Turn], tell: Callable[[Turn], None]) -> None:
        self._told = told = array("q", (0,))  # not this object, which would then hold itself and all its turns

        def hear(index: int, turn: Turn) -> Turn:
            if index == told[0]:
                told[0] += 1
                tell(turn)
            return turn

        super().__init__(turns, hear)

    def rest(self) -> None:
        """Tell of the turns that nobody has read."""
        for index in range(self._told[0], len(self._turns)):
            self._change(index, self._turns[index])


def changed(turns: Sequence[Turn], change: Callable[[int, Turn], Turn]) -> Sequence[Turn]:
    """Return the turns, each changed by its index: at once where they are in memory, as they are read elsewhere."""
    if isinstance(turns, Changed) or (isinstance(turns, TurnLog) and turns.spilled):
        return Changed(turns, change)
    return tuple([change(index, turn) for index, turn in enumerate(turns)])
