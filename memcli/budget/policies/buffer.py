"""`ChatMemoryBuffer` of llama-index-core 0.14, deprecated and still everywhere, to the token.

It flushes nothing. Each prompt is cut anew out of all messages: the oldest leave until the rest fits, and then as
many more as it takes for the first one to be neither an assistant's nor a tool's. What is counted is the texts of the
messages joined with single spaces, and nothing else: no tool calls, no images; a message without a text part counts
as the word `None`. The last message is always sent, however large.

The joined text of every possible prompt would have to be counted by itself, which grows with the square of the
messages. Here it is a sum: no vocabulary of a chat model makes one token of the space between two messages and of
what stands before it, unless there is white space on both sides, so the text may be counted apart everywhere else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final

from memcli.budget.course import Course, Job, windowed
from memcli.budget.fields import Fields
from memcli.budget.honest import Tally
from memcli.budget.messages import BudgetMessage, PartKind
from memcli.budget.outcome import Piece
from memcli.budget.raised import Raised
from memcli.facts import Json
from memcli.record import record

DEFAULT_LIMIT: Final = 3_000
LIMIT_RATIO: Final = 0.75
FOLLOWERS: Final = frozenset({"tool", "assistant"})
"""Roles that may not begin a prompt."""


SPECIAL: Final = "<|"
"""What special tokens begin with; at one, white space before it ends as at the end of a text."""


@record
class BufferSettings:
    """What a buffer works with. `initial_token_count` is what the caller says is in the prompt already."""

    token_limit: int
    initial_token_count: int = 0


def settings_from(given: Mapping[str, Any]) -> BufferSettings:
    """Return the settings that `from_defaults` makes of a limit and of the context window of a model.

    Raises:
        Raised: LlamaIndex refuses them.
    """
    limit = given.get("token_limit")
    try:
        if "context_window" in given:
            limit = limit or int(given["context_window"] * LIMIT_RATIO)
        elif limit is None:
            limit = DEFAULT_LIMIT
        if limit < 1:
            raise Raised("ValidationError", "Value error, Token limit must be set and greater than 0.")
    except (TypeError, OverflowError, ValueError) as problem:
        raise Raised(type(problem).__name__, str(problem)) from problem
    fields = Fields()
    limit = fields.whole("token_limit", limit)
    initial = fields.whole("initial_token_count", given.get("initial_token_count", 0))
    fields.check()
    return BufferSettings(token_limit=limit, initial_token_count=initial)


def said(message: BudgetMessage) -> str:
    """Return what LlamaIndex takes for the content of a message, as the text it counts."""
    texts = [part.text for part in message.parts if part.kind is PartKind.TEXT]
    joined = "\n".join(texts)
    return joined if joined or len(texts) == 1 else "None"


def _is_blank(edge: str) -> bool:
    return not edge or edge.isspace()


class Joined:
    """The tokens of messages joined with spaces, for any stretch of them.

    Args:
        tally: Tokens in a text. Special tokens that stand in it count as one each, as LlamaIndex counts them.
    """

    __slots__ = ("_piece", "_sums", "_tally", "_texts", "marginal")

    def __init__(self, messages: Sequence[BudgetMessage], tally: Tally) -> None:
        self._texts = [said(message) for message in messages]
        self._tally = tally
        # Of each message the first of its piece: the stretch from one clean beginning to the next.
        self._piece: list[int] = []
        for at, text in enumerate(self._texts):
            before = self._texts[at - 1][-1:] if at else "."
            blank = _is_blank(before) and (_is_blank(text[:1]) or text.startswith(SPECIAL))
            self._piece.append(self._piece[-1] if blank else at)
        self._load()
        so_far = [self._so_far(at) for at in range(len(self._texts))]
        self.marginal = [tokens - (0 if self._piece[at] == at else so_far[at - 1]) for at, tokens in enumerate(so_far)]
        """What each message adds to those before it."""
        self._sums = [0, *accumulate(self.marginal)]

    def tokens(self, start: int, stop: int) -> int:
        """Return the tokens of the messages from `start` up to `stop`."""
        if start >= stop:
            return 0
        cut = self._next_piece(start, stop)
        rest = self._sums[stop] - self._sums[cut]
        if cut == start + 1:
            return self._tally(self._texts[start]) + rest
        return self._tally.count(" ".join(self._texts[start:cut])) + rest

    def _load(self) -> None:
        self._tally.load(self._texts)
        self._tally.load([self._opening(at) for at in range(len(self._texts)) if self._piece[at] == at])

    def _opening(self, at: int) -> str:
        return self._texts[at] if at == 0 else " " + self._texts[at]

    def _so_far(self, at: int) -> int:
        """Return the tokens of a piece up to and with a message, the space before it included."""
        first = self._piece[at]
        if first == at:
            return self._tally(self._opening(at))
        return self._tally.count(" ".join([self._opening(first), *self._texts[first + 1 : at + 1]]))

    def _next_piece(self, start: int, stop: int) -> int:
        cut = start + 1
        while cut < stop and self._piece[cut] != cut:
            cut += 1
        return cut


def window_start(joined: Joined, roles: Sequence[str], stop: int, settings: BufferSettings, *, skip: int = 0) -> int:
    """Return the first message of the prompt after so many messages.

    Args:
        skip: Messages before which no prompt begins, since none did with fewer messages.
    """
    room = settings.token_limit - settings.initial_token_count
    last = stop - 1
    for start in range(skip, last):
        if (start == 0 or roles[start] not in FOLLOWERS) and joined.tokens(start, stop) <= room:
            return start
    return max(0, last)


def course(job: Job) -> Course:
    """Return the course of the buffer; it refuses to give a prompt where the initial tokens are more than the limit.

    Raises:
        Raised: LlamaIndex refuses the settings.
    """
    settings = settings_from(job.settings)
    joined = Joined(job.messages, job.tally)
    starts = _starts(job, joined, settings)
    effective: dict[str, Json] = {
        "token_limit": settings.token_limit,
        "initial_token_count": settings.initial_token_count,
    }
    course = windowed(
        job,
        starts,
        reason=f"the newest messages that fit in {settings.token_limit} tokens begin after it",
        effective=effective,
        limit=settings.token_limit,
        policy="buffer",
        thought=_thought(joined, starts[-1] if starts else 0),
        extra=_initial(settings),
    )
    over = settings.initial_token_count - settings.token_limit
    if over <= 0:
        return course
    refused = f"ValueError: Initial token count exceeds token limit (by {over})"
    steps = tuple([{**step, "refused": refused, "short_by": over} for step in course.steps])
    return replace(course, steps=steps, prompt=(), refused=refused)


def _starts(job: Job, joined: Joined, settings: BufferSettings) -> list[int]:
    """Return the first message of the prompt after each write; where none is given, nothing has left."""
    if settings.initial_token_count > settings.token_limit:
        return [0] * len(job.writes)
    roles = [message.role for message in job.messages]
    starts: list[int] = []
    for stop in job.writes:
        starts.append(window_start(joined, roles, stop, settings, skip=starts[-1] if starts else 0))
    if starts:
        # What is asked for is exact; on the way there, that what was too much stays so is taken for granted.
        starts[-1] = window_start(joined, roles, len(roles), settings)
    return starts


def _thought(joined: Joined, start: int) -> list[int]:
    """Return what each message adds to the text of the prompt; that of the first depends on there being none before."""
    thought = list(joined.marginal)
    if start < len(thought):
        thought[start] += joined.tokens(start, len(thought)) - sum(thought[start:])
    return thought


def _initial(settings: BufferSettings) -> list[Piece]:
    tokens = settings.initial_token_count
    if not tokens:
        return []
    name = "initial tokens"
    return [Piece(kind="system", name=name, role="system", index=None, thought=tokens, real=tokens, text="")]
