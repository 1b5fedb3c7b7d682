"""The memory that policy `mem` puts into a prompt: what the blocks have, made to fit in what is left for them.

Each block stands between its own tags, as a text of its own, so that what it costs does not depend on the others. All
go into the first system message, after its own words, which therefore stay where a provider's cache knows them; or
before the words of the last user message. Where there is no such message they make one.
"""

from collections.abc import Sequence
from typing import Any, Final

from memcli.budget.blocks import PlacedBlock
from memcli.budget.course import Job, message_piece
from memcli.budget.messages import BudgetMessage, Part, PartKind, flat, parts_tokens, text_part
from memcli.budget.outcome import BlockFate, Piece
from memcli.budget.share import Wish, fit
from memcli.budget.shrinking import FactsBlock
from memcli.record import record

ASKED_AT_MOST: Final = 16
"""How often a block is asked for more when it gives back too little, as long as each answer is smaller."""


@record
class Content:
    """What a block would put into the prompt.

    Args:
        own: As the block gave it.
        bare: Its tokens.
        tokens: Its tokens with the tags around it; zero where there is nothing.
    """

    own: Any
    text: str
    bare: int
    tokens: int


class Memory:
    """The blocks of one run.

    Args:
        insert: `system` or `user`, the role of the message they go into.
    """

    __slots__ = ("_insert", "_job", "_placed")

    def __init__(self, job: Job, placed: Sequence[PlacedBlock], insert: str) -> None:
        self._job = job
        self._placed = placed
        self._insert = insert

    def tokens(self) -> int:
        """Return what all blocks cost as they are now, in a message of their own."""
        found = sum(self._content(placed, placed.block.get([])).tokens for placed in self._placed)
        return found + self._carrier() if found else 0

    def unsent(self, entries: Sequence[int]) -> tuple[BlockFate, ...]:
        """Return the fate of the blocks where there is no prompt."""
        contents = self._contents(entries)
        return tuple(
            self._fate(at, content, None, "there is no prompt" if content.tokens else None)
            for at, content in enumerate(contents)
        )

    def assembled(self, entries: Sequence[int], capacity: int) -> tuple[list[Piece], tuple[BlockFate, ...]]:
        """Return the parts of the prompt in order, and what became of each block.

        Args:
            entries: The messages of the prompt.
            capacity: What the memory may cost in all.

        Raises:
            BlockFailed: The class of a block raised.
        """
        contents = self._contents(entries)
        wanted = [at for at, content in enumerate(contents) if content.tokens]
        host = self._host(entries)
        carrier = self._carrier() if wanted and host is None else 0
        wishes = [
            Wish(content=contents[at], tokens=contents[at].tokens, weight=self._job.specs[at].weight) for at in wanted
        ]
        kept, out = fit(
            capacity - carrier, wishes, lambda at, room: self._shrunk(wanted[at], contents[wanted[at]], room)
        )
        placed = {wanted[at]: content for at, (content, _) in kept.items()}
        rooms = {wanted[at]: room for at, room in out.items()}
        blocks = tuple(
            self._fate(at, content, placed.get(at), self._why(content, placed.get(at), rooms.get(at, 0)))
            for at, content in enumerate(contents)
        )
        return self._pieces(entries, host, placed, carrier), blocks

    def _host(self, entries: Sequence[int]) -> int | None:
        """Return the message that takes the memory in, or None where it needs its own."""
        order = entries if self._insert == "system" else reversed(entries)
        return next((at for at in order if self._job.messages[at].role == self._insert), None)

    def _carrier(self) -> int:
        """Return what a message costs that has nothing but the memory in it."""
        overhead = self._job.overhead
        return overhead.message + (self._job.tally(self._insert) if overhead.roles else 0)

    def _contents(self, entries: Sequence[int]) -> list[Content]:
        window = [self._job.messages[at] for at in entries]
        return [self._content(placed, placed.block.get(window)) for placed in self._placed]

    def _content(self, placed: PlacedBlock, own: Any) -> Content:
        parts = _parts(own)
        if not parts:
            return Content(own=own, text="", bare=0, tokens=0)
        text = "\n".join([part.text for part in parts if part.kind is PartKind.TEXT])
        count, beside = self._job.tally.count, flat(parts, self._job.estimates)
        tagged = f"<{placed.name}>\n{text}\n</{placed.name}>"
        return Content(own=own, text=text, bare=count(text) + beside, tokens=count(tagged) + beside)

    def _shrunk(self, at: int, content: Content, room: int) -> tuple[Content, int] | None:
        """Return what a block makes of its content so that it costs no more than the room, or None."""
        placed = self._placed[at]
        for _ in range(ASKED_AT_MOST if room > 0 else 0):
            returned = placed.block.truncate(content.own, content.tokens - room)
            smaller = self._content(placed, returned) if returned else None
            if smaller is None or not 0 < smaller.tokens < content.tokens:
                return None
            if smaller.tokens <= room:
                return smaller, smaller.tokens
            content = smaller
        return None

    # --- what is told ---

    def _pieces(
        self, entries: Sequence[int], host: int | None, placed: dict[int, Content], carrier: int
    ) -> list[Piece]:
        pieces = [message_piece(self._job, at, self._job.real[at]) for at in entries]
        if not placed:
            return pieces
        memory = [
            Piece(
                kind="block",
                name=self._placed[at].name,
                role=self._insert,
                index=None,
                thought=content.bare,
                real=content.bare,
                text=content.text,
            )
            for at, content in sorted(placed.items())
        ]
        tags = carrier + sum(content.tokens - content.bare for content in placed.values())
        memory.append(
            Piece(kind="template", name="memory", role=self._insert, index=None, thought=tags, real=tags, text="")
        )
        system = self._insert == "system"
        at = len(pieces) if host is None else entries.index(host) + (1 if system else 0)
        at = 0 if host is None and system else at
        return [*pieces[:at], *memory, *pieces[at:]]

    def _why(self, content: Content, kept: Content | None, room: int) -> str | None:
        if not content.tokens and _parts_of_messages(content.own):
            return "it gives messages, and this policy places texts"
        if not content.tokens or (kept is not None and kept.tokens == content.tokens):
            return None
        if kept is None:
            return f"it needs {content.tokens} tokens with its tags, could have {room}, and cannot be made that small"
        return f"it wanted {content.tokens} tokens with its tags, and {kept.tokens} fit"

    def _fate(self, at: int, content: Content, kept: Content | None, reason: str | None) -> BlockFate:
        spec, block = self._job.specs[at], self._placed[at].block
        hidden = block.hidden() if isinstance(block, FactsBlock) else []
        wanted = content.bare + parts_tokens(map(text_part, hidden), self._job.estimates, self._job.tally)
        more = [f"{len(hidden)} more facts than max_facts allows"] if hidden else []
        reason = "; ".join([*([reason] if reason else []), *more]) or None
        whole, less = ("empty", "dropped") if kept is None else ("whole", "shortened")
        return BlockFate(
            name=spec.name,
            kind=spec.kind,
            priority=None,
            weight=spec.weight,
            wanted=wanted,
            got=0 if kept is None else kept.bare,
            fate=less if reason else whole,
            reason=reason,
        )


def _parts(own: Any) -> list[Part]:
    """Return the parts of a content that has any words or pictures; messages are no parts."""
    if isinstance(own, str):
        return [text_part(own)] if own else []
    return [item for item in own or () if isinstance(item, Part)]


def _parts_of_messages(own: Any) -> bool:
    return isinstance(own, list) and any(isinstance(item, BudgetMessage) for item in own)
