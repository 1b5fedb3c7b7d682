"""Ids by the hundred thousand: each known by a number, in a fifth of the memory of a dictionary of texts."""

import re
from array import array

NONE = -1
"""The number of no id, and what a column holds of an id where nothing was set."""

_FEWEST_SLOTS = 64
_EMPTY = 0
_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_UUID_CHARACTERS = 36
_PACKED = b"\xff"
"""Begins a UUID in 16 bytes; no text has this byte in UTF-8."""


class Names:
    """Texts that are told apart exactly, each with a number from 0 on and with columns of numbers beside it.

    The texts stand one behind the other; a table of numbers, open to all sides, leads to them.

    Args:
        columns: How many numbers are kept beside each text.
    """

    def __init__(self, columns: int = 0) -> None:
        self._texts = bytearray()
        self._ends = array("q", (0,))
        self._slots = array("I", bytes(4 * _FEWEST_SLOTS))
        self._mask = _FEWEST_SLOTS - 1
        self.columns = tuple(array("i") for _ in range(columns))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, number: int) -> str:
        data = self._texts[self._ends[number] : self._ends[number + 1]]
        if not data.startswith(_PACKED):
            return data.decode("utf-8", "surrogatepass")
        digits = data[1:].hex()
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def number(self, text: str) -> int:
        """Return the number of a text, which is a new one where it was not there."""
        data = _bytes(text)
        slot = self._slot(text, data)
        found = self._slots[slot]
        if found != _EMPTY:
            return found - 1
        number = len(self)
        self._texts += data
        self._ends.append(len(self._texts))
        for column in self.columns:
            column.append(NONE)
        self._slots[slot] = number + 1
        if 2 * number > self._mask:
            self._widen()
        return number

    def find(self, text: str) -> int:
        """Return the number of a text, `NONE` where it is not there."""
        return self._slots[self._slot(text, _bytes(text))] - 1

    def _slot(self, text: str, data: bytes) -> int:
        """Return the place in the table where a text is, or where it would be."""
        slots, mask, ends, texts = self._slots, self._mask, self._ends, self._texts
        slot = hash(text) & mask
        while (found := slots[slot]) != _EMPTY:
            start, end = ends[found - 1], ends[found]
            if end - start == len(data) and texts.startswith(data, start, end):
                break
            slot = (slot + 1) & mask
        return slot

    def _widen(self) -> None:
        """Make the table twice as wide, so that looking into it stays short."""
        self._mask = 2 * self._mask + 1
        self._slots = array("I", bytes(4 * (self._mask + 1)))
        slots, mask = self._slots, self._mask
        for number in range(len(self)):
            slot = hash(self[number]) & mask
            while slots[slot] != _EMPTY:
                slot = (slot + 1) & mask
            slots[slot] = number + 1

    def settle(self) -> None:
        """Give back what only new texts need: from now on each is only asked for by its number."""
        self._slots = array("I", bytes(4))
        self._mask = 0


def _bytes(text: str) -> bytes:
    """Return what a text is held as: a UUID, as most ids are, in less than half of its length."""
    if len(text) == _UUID_CHARACTERS and _UUID.fullmatch(text):
        return _PACKED + bytes.fromhex(text.replace("-", ""))
    return text.encode("utf-8", "surrogatepass")
