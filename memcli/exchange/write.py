"""Out again: what a memory file holds, in mem's own format or in that of another tool, and what does not go along."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from memcli.errors import UsageError
from memcli.exchange.secrets import Secrets
from memcli.exchange.writers import llamaindex, markdown, mcp, mem, mem0
from memcli.exchange.writers.outgoing import Lacking, Outgoing
from memcli.record import record
from memcli.terms import READABLE, State
from memcli.text import unpack

if TYPE_CHECKING:
    from memcli.store.copy import Copy

Row: TypeAlias = tuple[Any, ...]


@record
class Writer:
    """A format of another tool: how it is written, and which parts of a fact it has a place for."""

    write: Callable[[Iterable[Outgoing]], Iterator[str]]
    carries: frozenset[str]


FOREIGN: Mapping[str, Writer] = {
    "mcp": Writer(write=mcp.write, carries=mcp.CARRIES),
    "mem0": Writer(write=mem0.write, carries=mem0.CARRIES),
    "llamaindex": Writer(write=llamaindex.write, carries=llamaindex.CARRIES),
    "markdown": Writer(write=markdown.write, carries=markdown.CARRIES),
}
OUT: tuple[str, ...] = ("mem", *FOREIGN)
"""What `mem export --format` takes."""


class Export:
    """One way out of a memory file.

    Args:
        copy: The file, inside its `snapshot`.
        name: One of `OUT`.
        states: Only facts in these, for another tool; None means every readable one.
        secrets: Looks for passwords and keys in what goes by.

    Attributes, known once all chunks were taken:
        facts: How many went out.
        withheld: How many facts did not, by why.
        left: How much else did not, by its noun in both numbers.
        lacking: How many facts lost a part for which the format has no place, by the part.

    Raises:
        UsageError: There is no such format, or a state that does not leave the file in it.
    """

    def __init__(self, copy: "Copy", name: str, *, states: frozenset[State] | None, secrets: Secrets) -> None:
        if name not in OUT:
            raise UsageError(f"{name} is no format that can be written", hint=f"use one of {', '.join(OUT)}")
        if states is not None and name == "mem":
            raise UsageError("mem's own format is complete", hint="leave --state out, or choose another --format")
        if states is not None and not states <= READABLE:
            held = ", ".join(sorted(states - READABLE))
            raise UsageError(
                f"what is {held} does not go to other tools, which would believe it", hint="leave that --state out"
            )
        self._copy = copy
        self._name = name
        self._states = states or READABLE
        self._secrets = secrets
        self.facts = 0
        self.withheld: dict[str, int] = {}
        self.left: dict[tuple[str, str], int] = {}
        self.lacking: dict[str, int] = {}

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes of the export; what was counted is known at the end."""
        self.facts = 0
        return self._whole() if self._name == "mem" else self._foreign(FOREIGN[self._name])

    # ---------------------------------------------------------------- mem's own

    def _whole(self) -> Iterator[bytes]:
        copy = self._copy
        looks = self._secrets.looks
        yield from mem.sealed(
            mem.records(
                scope=None if copy.all_scopes else copy.store.scope,
                keys=copy.keys(),
                tombstones=copy.tombstones(),
                sources=self._seen_sources(copy.sources()) if looks else copy.sources(),
                facts=self._counted(self._seen_facts(copy.facts()) if looks else copy.facts()),
            )
        )
        self.left = copy.staying()

    def _counted(self, facts: Iterable[Row]) -> Iterator[Any]:
        for item in facts:
            self.facts += 1
            yield item

    def _seen_sources(self, sources: Iterable[tuple[Row, Iterator[Row]]]) -> Iterator[tuple[Row, Iterator[Row]]]:
        for source, messages in sources:
            # What a statement says, its fact says too.
            yield source, messages if source[3] == "statement" else self._seen_messages(messages)

    def _seen_messages(self, messages: Iterable[Row]) -> Iterator[Row]:
        for message in messages:
            self._secrets.look(f"s{message[0]}#{message[1]}", None if message[3] is None else unpack(message[3]))
            yield message

    def _seen_facts(self, facts: Iterable[Any]) -> Iterator[Any]:
        for item in facts:
            for version in item[1]:
                self._secrets.look(item[0][0], None if version[4] is None else unpack(version[4]))
            yield item

    # ---------------------------------------------------------------- other tools'

    def _foreign(self, writer: Writer) -> Iterator[bytes]:
        copy = self._copy
        seen: Counter[State] = Counter()
        lacking = Lacking(writer.carries)
        yield from (text.encode("utf-8", "surrogatepass") for text in writer.write(self._outgoing(seen, lacking)))
        self.facts = seen.total()
        gone = Counter(copy.states())
        gone.subtract(seen)
        self.withheld = {_left(state): number for state, number in sorted(gone.items()) if number}
        self.left = copy.counts()
        self.lacking = lacking.counted()

    def _outgoing(self, seen: "Counter[State]", lacking: Lacking) -> Iterator[Outgoing]:
        """Yield the facts that go out, oldest first, and count them and what they lose."""
        for fact, began, extra in self._copy.readable(self._states):
            self._secrets.look(fact.id, fact.text)
            seen[fact.state] += 1
            lacking.count(fact)
            yield Outgoing(fact=fact, began=began, extra=extra)


def _left(state: State) -> str:
    """Return why a fact was left out: its state, or that it is readable and not true now."""
    return f"{state} and not asked for, or not valid now" if state in READABLE else str(state)
