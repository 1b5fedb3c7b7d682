"""`llama_index.core.memory.Memory` of llama-index-core 0.14, to the token, its odd corners included.

Messages are written to a window. When it holds more than its threshold, its oldest messages leave in batches that
end before a user message, and every block is given each batch. What a prompt then holds is the window, whole, and
the content of the blocks; where that is more than the limit, blocks are shortened or left out, never messages.

Known to differ: addresses of unusual schemes in blocks, which LlamaIndex looks for on the disk.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from memcli.budget.blocks import PlacedBlock
from memcli.budget.messages import (
    BudgetMessage,
    Count,
    Part,
    content_tokens,
    message_tokens,
    parts_tokens,
    text_part,
)
from memcli.budget.prompt import place_for, rendered, with_memory
from memcli.budget.raised import Raised
from memcli.budget.settings import InsertMethod, Settings
from memcli.budget.window import Timeline
from memcli.record import record

_REMEMBERED = 1024
"""How many texts of blocks have their count kept; a static text is asked for at every prompt."""


@record
class Weighed:
    """A message and what it counts as."""

    message: BudgetMessage
    tokens: int


@record
class Batch:
    """Messages that left the window together, from `start` up to `stop`, and the blocks that were given them."""

    start: int
    stop: int
    tokens: int
    to_blocks: tuple[str, ...]


@record
class Outcome:
    """What one write did. `error` is the first block that failed; no further batch left after it."""

    batches: tuple[Batch, ...] = ()
    error: Raised | None = None


@record
class TruncateCall:
    """A block that was asked to drop tokens, and what it gave back: the name of a type, or `None`."""

    block: str
    priority: int
    asked: int
    before: int
    after: int
    returned: str


@record
class Prompt:
    """What a prompt holds and how it came to that.

    Args:
        block_tokens: Of each block with content, before anything was dropped.
        excess: How much more than the limit window and blocks came to.
        fate: Of every block: `whole`, `truncated`, `grown`, `dropped` or `no_content`.
        rendered_order: The blocks that are in the prompt.
        total_tokens: What the messages count as, the tags around the blocks included.
        counted_tokens: What the memory believes it is.
        contents: Of each block that is in the prompt, as it gave it.
    """

    gather_order: tuple[str, ...]
    history_tokens: int
    block_tokens: Mapping[str, int]
    blocks_tokens_total: int
    excess: int
    truncate_calls: tuple[TruncateCall, ...]
    block_tokens_after: Mapping[str, int]
    fate: Mapping[str, str]
    rendered_order: tuple[str, ...]
    messages: tuple[Weighed, ...]
    total_tokens: int
    counted_tokens: int
    over_limit_by: int
    contents: Mapping[str, Any] = field(default_factory=dict)


class LlamaIndexMemory:
    """One session: the messages that were written, the window over them, and the blocks.

    Args:
        blocks: In the order they were declared, each name once.
        count: Tokens in a text. Special tokens that stand in it count as one each, as LlamaIndex counts them.
    """

    __slots__ = ("_blocks", "_count", "_messages", "_settings", "_start", "_timeline")

    def __init__(self, settings: Settings, blocks: Sequence[PlacedBlock], count: Count) -> None:
        self._settings = settings
        self._blocks = tuple(blocks)
        self._count = lru_cache(_REMEMBERED)(count)
        self._messages: list[BudgetMessage] = []
        self._timeline = Timeline()
        self._start = 0

    @property
    def window(self) -> tuple[int, int]:
        """Return the first message of the window and the one after its last, counted from the first ever written."""
        return self._start, len(self._messages)

    @property
    def window_tokens(self) -> int:
        """Return what the window counts as."""
        return self._timeline.tokens(*self.window)

    @property
    def first_role(self) -> str | None:
        """Return the role of the oldest message in the window, or None where it is empty."""
        return self._messages[self._start].role if self._start < len(self._messages) else None

    def set(self, messages: Sequence[Weighed]) -> None:
        """Forget every message and keep these; the window may then be of any size, and no block is told."""
        self._messages = []
        self._timeline = Timeline()
        self._start = 0
        self._store(messages)

    def put(self, messages: Sequence[Weighed]) -> Outcome:
        """Write messages, one or several at once, and flush what is too much."""
        if not messages:
            said = "(sqlite3.IntegrityError) NOT NULL constraint failed: llama_index_memory.key"
            return Outcome(error=Raised("IntegrityError", said))
        self._store(messages)
        settings = self._settings
        return self._flushed(
            self._timeline.cuts(*self.window, threshold=settings.threshold, flush_size=settings.token_flush_size)
        )

    def put_all(
        self, messages: Sequence[BudgetMessage], counts: Sequence[int], writes: Sequence[int] | None
    ) -> Iterator[tuple[int, Outcome]]:
        """Write a whole transcript, and yield what each write did that flushed; the first that fails is the last.

        What `put` does, at the cost of the flushes and not of the writes. The memory must be new.

        Args:
            counts: What each message counts as.
            writes: How many messages had been written after each write, ascending; None means one at a time. It is
                also what stands before each outcome.
        """
        self._messages = list(messages)
        self._timeline = Timeline(counts, [message.role == "user" for message in messages])
        settings = self._settings
        found = self._timeline.flushes(
            threshold=settings.threshold, flush_size=settings.token_flush_size, writes=writes
        )
        for stop, cuts in groupby(found.flushes, key=itemgetter(0)):
            outcome = self._flushed(cut for _, _, cut in cuts)
            if outcome.error is not None:
                del self._messages[stop:]
            yield stop, outcome
            if outcome.error is not None:
                return

    def get(self, asked: object = None) -> Prompt:
        """Return what a prompt would hold now.

        Args:
            asked: What the user is about to say; seen by the blocks where it is a text, never counted.

        Raises:
            Raised: A block failed, or its content cannot be counted or sent.
        """
        seen = self._messages[self._start :]
        history = [
            Weighed(message=message, tokens=self._timeline.tokens(at, at + 1))
            for at, message in enumerate(seen, start=self._start)
        ]
        if isinstance(asked, str):
            seen.append(BudgetMessage(role="user", parts=(text_part(asked),)))
        contents = self._gathered(seen)
        before = {name: self._tokens(content) for name, content in contents.items()}
        counted = sum(before.values()) + self.window_tokens
        excess = max(0, counted - self._settings.token_limit)
        calls = tuple(self._truncate(contents, excess)) if excess else ()
        after = {name: self._tokens(content) for name, content in contents.items()}
        kept = tuple(placed.name for placed in self._blocks if contents.get(placed.name))
        messages = self._assembled(history, {name: contents[name] for name in kept})
        total = sum(weighed.tokens for weighed in messages)
        return Prompt(
            gather_order=tuple(placed.name for placed in self._by_priority(highest_first=True)),
            history_tokens=self.window_tokens,
            block_tokens=before,
            blocks_tokens_total=sum(before.values()),
            excess=excess,
            truncate_calls=calls,
            block_tokens_after={name: after[name] for name in before if name in after},
            fate={placed.name: _fate(placed.name, before, after, kept) for placed in self._blocks},
            rendered_order=kept,
            messages=messages,
            total_tokens=total,
            counted_tokens=self.window_tokens + sum(after[name] for name in kept),
            over_limit_by=max(0, total - self._settings.token_limit),
            contents={name: contents[name] for name in kept},
        )

    def _store(self, messages: Sequence[Weighed]) -> None:
        for weighed in messages:
            self._messages.append(weighed.message)
            self._timeline.append(weighed.tokens, is_user=weighed.message.role == "user")

    def _flushed(self, cuts: Iterable[int]) -> Outcome:
        """Flush at each cut, up to the first block that fails."""
        batches: list[Batch] = []
        for cut in cuts:
            batch, error = self._flush(cut)
            batches.append(batch)
            if error is not None:
                return Outcome(batches=tuple(batches), error=error)
        return Outcome(batches=tuple(batches))

    def _flush(self, cut: int) -> tuple[Batch, Raised | None]:
        """Take the messages before the cut out of the window, then give them to the blocks; return the first failure.

        They have left before any block sees them: a block that fails loses them, and the others have them still.
        """
        start, self._start = self._start, cut
        messages = self._messages[start:cut]
        accepting = [placed for placed in self._blocks if placed.accepts]
        error: Raised | None = None
        for placed in accepting:
            try:
                placed.block.put(messages)
            except Raised as problem:
                error = error or problem
        batch = Batch(
            start=start,
            stop=cut,
            tokens=self._timeline.tokens(start, cut),
            to_blocks=tuple(placed.name for placed in accepting),
        )
        return batch, error

    def _by_priority(self, *, highest_first: bool = False) -> list[PlacedBlock]:
        """Return the blocks by priority, those of one priority as they were declared."""
        return sorted(self._blocks, key=lambda placed: -placed.priority if highest_first else placed.priority)

    def _gathered(self, seen: Sequence[BudgetMessage]) -> dict[str, Any]:
        """Return the content of each block that has any.

        Raises:
            Raised: A block failed, or gave what is neither a text nor a list.
        """
        contents: dict[str, Any] = {}
        for placed in self._by_priority(highest_first=True):
            content = placed.block.get(seen)
            if not content:
                continue
            if not isinstance(content, (str, list)):
                said = f"Invalid content type received from memory block {placed.name}: {type(content)}"
                raise Raised("ValueError", said)
            contents[placed.name] = content
        return contents

    def _truncate(self, contents: dict[str, Any], left: int) -> Iterator[TruncateCall]:
        """Shorten the blocks in place until so many tokens are saved: ask each once, then leave them out.

        Lowest priority first, so that 1, which is documented as the highest, goes before 2. Blocks of priority 0
        stay. A block may give back more than it had, which is then to be saved elsewhere.

        Raises:
            Raised: What a block gave back cannot be counted.
        """
        droppable = [placed for placed in self._by_priority() if placed.priority != 0]
        for placed in droppable:
            if left <= 0:
                return
            content = contents.get(placed.name, [])
            returned = placed.block.truncate(content, left)
            before = self._tokens(content)
            after = 0 if returned is None else self._tokens(returned)
            yield TruncateCall(
                block=placed.name,
                priority=placed.priority,
                asked=left,
                before=before,
                after=after,
                returned="None" if returned is None else type(returned).__name__,
            )
            contents[placed.name] = [] if returned is None else returned
            left -= before - after
        for placed in droppable:
            if left <= 0:
                return
            left -= self._tokens(contents.pop(placed.name))

    def _tokens(self, content: object) -> int:
        return content_tokens(content, self._settings.estimates, self._count)

    def _assembled(self, history: Sequence[Weighed], contents: Mapping[str, Any]) -> tuple[Weighed, ...]:
        """Return the messages of the prompt: those that blocks gave, then the window, and the memory among them."""
        messages: list[Weighed] = []
        homes: list[tuple[list[BudgetMessage], int]] = []
        texts: dict[str, Sequence[Part]] = {}
        for name, content in contents.items():
            if isinstance(content, str):
                texts[name] = (text_part(content),)
            elif isinstance(content[0], BudgetMessage):
                homes += [(content, index) for index in range(len(content))]
                messages += [Weighed(message=message, tokens=self._weight(message)) for message in content]
            else:
                texts[name] = content
        messages += history
        if texts:
            self._insert(messages, homes, rendered(texts))
        return tuple(messages)

    def _weight(self, message: BudgetMessage) -> int:
        return message_tokens(message, self._settings.estimates, self._count)

    def _insert(
        self, messages: list[Weighed], homes: Sequence[tuple[list[BudgetMessage], int]], memory: Sequence[Part]
    ) -> None:
        """Put the memory before the parts of one message, or into a message of its own.

        LlamaIndex changes that message itself. Those of the window are copies; one that a block gave is the block's
        own, so a block that gives the same list again gives it with the memory in it.
        """
        method = self._settings.insert_method
        tokens = parts_tokens(memory, self._settings.estimates, self._count)
        place = place_for([weighed.message.role for weighed in messages], method)
        if place is None:
            made = Weighed(message=BudgetMessage(role=method.value, parts=tuple(memory)), tokens=tokens)
            messages.insert(0 if method is InsertMethod.SYSTEM else len(messages), made)
            return
        found = messages[place]
        changed = with_memory(found.message, memory)
        messages[place] = Weighed(message=changed, tokens=found.tokens + tokens)
        if place < len(homes):
            home, index = homes[place]
            home[index] = changed


def _fate(name: str, before: Mapping[str, int], after: Mapping[str, int], kept: Sequence[str]) -> str:
    if name not in before:
        return "no_content"
    if name not in kept:
        return "dropped"
    if after[name] == before[name]:
        return "whole"
    return "truncated" if after[name] < before[name] else "grown"
