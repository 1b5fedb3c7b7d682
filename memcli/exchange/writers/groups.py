"""Texts under names, put aside in a temporary file, so that those of one name can be written together."""

from array import array
from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile
from types import TracebackType

from memcli.digest import blake2b

IN_MEMORY = 1 << 23
"""Bytes of text from which on they lie in a file."""


class Groups:
    """Names in the order in which they came up, each with its texts in theirs; close it, or use it with `with`."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._of = array("Q")
        self._ends = array("Q", [0])
        self._texts = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - it is closed with this

    def __enter__(self) -> "Groups":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._texts.close()

    def name(self, name: str) -> int:
        """Return the number of a name, which has a place from now on."""
        return self._numbers.setdefault(name, len(self._numbers))

    def put(self, name: str, text: str) -> None:
        """Put a text under a name."""
        self._of.append(self.name(name))
        data = text.encode("utf-8", "surrogatepass")
        self._texts.write(data)
        self._ends.append(self._ends[-1] + len(data))

    def __iter__(self) -> Iterator[tuple[str, Iterator[str]]]:
        """Yield each name with its texts, each text once; they are read as they are taken, before the next name."""
        order, ends = self._sorted()
        begin = 0
        for name, end in zip(self._numbers, ends, strict=True):
            yield name, once(map(self._text, order[begin:end]))
            begin = end

    def _sorted(self) -> tuple["array[int]", "array[int]"]:
        """Return the places of the texts, name by name, and where in these each name ends."""
        starts = array("Q", [0]) * len(self._numbers)
        for number in self._of:
            if number + 1 < len(starts):
                starts[number + 1] += 1
        for number in range(1, len(starts)):
            starts[number] += starts[number - 1]
        order = array("Q", [0]) * len(self._of)
        for place, number in enumerate(self._of):
            order[starts[number]] = place
            starts[number] += 1
        return order, starts

    def each(self) -> Iterator[str]:
        """Yield every text, whatever it stands under, in the order in which they came."""
        return map(self._text, range(len(self._of)))

    def _text(self, place: int) -> str:
        start, end = self._ends[place], self._ends[place + 1]
        self._texts.seek(start)
        return self._texts.read(end - start).decode("utf-8", "surrogatepass")


def once(texts: Iterable[str]) -> Iterator[str]:
    """Yield each text once, where it first stands; what is held of it is a digest."""
    seen: set[bytes] = set()
    for text in texts:
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if digest not in seen:
            seen.add(digest)
            yield text
