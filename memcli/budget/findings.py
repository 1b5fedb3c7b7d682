"""What a developer should know about a run: one finding for each thing that is wrong, with the place it was first seen.

A finding stands for all of its occurrences: its place is the first, its words say how often. Each code of `CODES` is
given at most once, in the order of that table.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final, TypeAlias

from memcli.budget.messages import FREE, ROLES, BudgetMessage, Count, Estimates, PartKind, flat, laden
from memcli.budget.outcome import BlockFate, BudgetFinding, Columns, Fate, Simulation
from memcli.budget.presence import all_gone, ends_of, turns_of, writes_of
from memcli.budget.settings import LARGEST_LIMIT
from memcli.budget.tools import Group, call_texts, groups_of
from memcli.errors import UsageError
from memcli.facts import Json, Micros
from memcli.record import record

ERROR: Final = "error"
WARNING: Final = "warning"
KEPT_ENOUGH: Final = 0.8
"""From this share of reused prompt on, nothing is said of a provider's cache."""

_TRIES: Final = 8
"""How many limits are tried for a remedy; each is a run of its own."""


@record
class Code:
    """How much a finding weighs, and what it means in one sentence."""

    severity: str
    text: str


CODES: Final[Mapping[str, Code]] = {
    "empty-transcript": Code(severity=WARNING, text="there is no message"),
    "system-evicted": Code(severity=ERROR, text="a system message left the window; the agent runs without it"),
    "over-limit": Code(severity=ERROR, text="the real prompt is larger than the limit, or none could be made"),
    "orphan-tool-result": Code(
        severity=ERROR, text="a prompt holds a tool result without its call; providers refuse it"
    ),
    "split-tool-group": Code(severity=ERROR, text="a tool call left the window before its results did"),
    "flush-emptied-window": Code(severity=ERROR, text="a flush took everything, the newest message too"),
    "flush-size-zero": Code(severity=ERROR, text="the flush size came to 0, so that turns never leave the window"),
    "flush-size-clamped": Code(
        severity=ERROR, text="the flush size was replaced, or is so large that one flush leaves a single turn"
    ),
    "ratio-out-of-range": Code(severity=ERROR, text="the share of the window is not above 0 and at most 1"),
    "priority-zero-overflow": Code(
        severity=ERROR, text="blocks of priority 0, which are never cut, push the prompt over the limit"
    ),
    "unsupported-content": Code(severity=ERROR, text="a message has a role that is refused, or nothing to send"),
    "single-turn-overflow": Code(severity=WARNING, text="one turn alone is larger than the window, and is kept whole"),
    "tool-call-uncounted": Code(severity=WARNING, text="tool calls are sent and not counted"),
    "uncounted-content": Code(severity=WARNING, text="thinking, sources or citations are sent and not counted"),
    "flat-estimate": Code(severity=WARNING, text="images, sounds or documents count the same whatever is in them"),
    "template-overhead": Code(
        severity=WARNING, text="what is not counted, such as tags, pushes the prompt over the limit"
    ),
    "never-flushed": Code(severity=WARNING, text="nothing ever left the window, so long-term memory stays empty"),
    "block-dropped-whole": Code(severity=WARNING, text="a block was left out whole because it did not fit"),
    "facts-over-max": Code(severity=WARNING, text="a block holds more facts than it was allowed"),
    "window-reordered": Code(
        severity=WARNING, text="messages are older than the one before, and would be sorted by time"
    ),
    "prefix-broken": Code(
        severity=WARNING, text="much of each prompt is no longer an unchanged prefix, so a provider's cache misses"
    ),
}
"""Every finding there is, errors first."""


def codes(text: str) -> frozenset[str]:
    """Return the codes of a list such as `over-limit,system-evicted`; `error` and `warning` stand for all of theirs.

    Raises:
        UsageError: There is no such code.
    """
    found: set[str] = set()
    for name in filter(None, (name.strip() for name in text.split(","))):
        named = {code for code, what in CODES.items() if name in (code, what.severity)}
        if not named:
            hint = f"take some of {ERROR}, {WARNING}, {', '.join(CODES)}"
            raise UsageError(f"there is no finding called {name[:40]}", hint=hint)
        found |= named
    return frozenset(found)


def find(
    simulation: Simulation,
    *,
    messages: Sequence[BudgetMessage],
    count: Count,
    writes: Sequence[int] | None = None,
    times: Sequence[Micros | None] = (),
    estimates: Estimates | None = None,
    max_facts: Mapping[str, int] | None = None,
    facts: Mapping[str, int] | None = None,
    over_at: Callable[[int], int | None] | None = None,
) -> tuple[BudgetFinding, ...]:
    """Return the findings of a run, in the order of `CODES`.

    Args:
        messages: Those of the run, in order.
        count: Tokens in a text; asked only for what the policy did not count.
        writes: How many messages had been written after each write, ascending; None goes by the steps of the run.
        times: When each was said, where the transcript says so.
        max_facts: How many facts each fact block may hold.
        facts: How many each holds at the end; None goes by the prompt.
        over_at: Returns `most_over` of the same run under another limit. It is asked only where a prompt is too
            large, and without it no remedy names a limit that would hold that prompt.
    """
    run = _Run(
        simulation=simulation,
        messages=messages,
        count=count,
        times=times,
        estimates=estimates or Estimates(),
        ends=ends_of(simulation) if writes is None else writes,
        facts=_facts_shown(simulation) if facts is None else facts,
        max_facts=max_facts or {},
        over_at=over_at,
    )
    return tuple(_finding(code, seen) for code in CODES if (seen := _CHECKS[code](run)) is not None)


@record
class _Seen:
    """What a check found; the first place of all, and the words for them together."""

    turn: int | None = None
    message: int | None = None
    tokens: int | None = None
    text: str
    remedy: str


def _finding(code: str, seen: _Seen) -> BudgetFinding:
    return BudgetFinding(
        code=code,
        severity=CODES[code].severity,
        turn=seen.turn,
        message=seen.message,
        tokens=seen.tokens,
        text=seen.text,
        remedy=seen.remedy,
    )


class _Run:
    """A simulation beside its messages, with what several checks ask of it worked out once."""

    __slots__ = (
        "columns", "count", "estimates", "facts", "gone", "groups", "laden", "max_facts", "messages", "over_at",
        "simulation", "times", "turns", "uncounted", "written",
    )  # fmt: skip

    def __init__(
        self,
        *,
        simulation: Simulation,
        messages: Sequence[BudgetMessage],
        count: Count,
        times: Sequence[Micros | None],
        estimates: Estimates,
        ends: Sequence[int],
        facts: Mapping[str, int],
        max_facts: Mapping[str, int],
        over_at: Callable[[int], int | None] | None,
    ) -> None:
        self.simulation = simulation
        self.columns = Columns.of(simulation.fates)
        self.messages = messages
        self.count = count
        self.times = times
        self.estimates = estimates
        self.facts = facts
        self.max_facts = max_facts
        self.over_at = over_at
        self.turns = turns_of([message.role for message in messages])
        self.laden = [(at, messages[at]) for at in laden(messages)]
        self.written = writes_of(len(messages), ends)
        self.gone = all_gone(simulation, self.written)
        self.groups = groups_of(messages)
        self.uncounted = _uncounted(self)

    @property
    def policy(self) -> str:
        return self.simulation.policy

    @property
    def fates(self) -> Sequence[Fate]:
        return self.simulation.fates

    @property
    def limit(self) -> int | None:
        return self.simulation.totals.limit

    @property
    def ratio(self) -> float | None:
        return _number(self.simulation.effective.get("chat_history_token_ratio"))

    @property
    def threshold(self) -> float | None:
        """Return how many tokens the window may hold, or None where the policy has no such bound."""
        if self.limit is None:
            return None
        return self.limit if self.ratio is None else self.limit * self.ratio

    def turn(self, message: int | None) -> int | None:
        return None if message is None else self.turns[message]

    def turn_of_write(self, write: int) -> int | None:
        """Return the turn of the last message that a write brought."""
        last = bisect_right(self.written, write) - 1
        return self.turns[last] if last >= 0 else None

    def roomy(self) -> str:
        """Return the words for the limit at which nothing would leave, or nothing where there is no such limit."""
        total = sum(self.columns.thought)
        share = 1.0 if self.ratio is None else self.ratio
        if self.policy == "sliding":
            return f"; nothing would leave at --depth {len(self.fates)}"
        if self.policy != "llamaindex" or not 0 < share < math.inf or total / share > LARGEST_LIMIT:
            return ""
        return f"; nothing would leave at --token-limit {_holding(total, share)}"


def _holding(tokens: int, share: float) -> int:
    """Return the least limit whose share holds the tokens: by doubles, as the threshold is worked out."""
    limit = max(1, math.ceil(tokens / share) - 1)
    while limit * share < tokens:
        limit += 1
    return limit


_Check: TypeAlias = Callable[[_Run], _Seen | None]


# --- words ---


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _names(names: Iterable[str]) -> str:
    """Return up to three names and how many more there are."""
    all_names = list(names)
    more = len(all_names) - 3
    return ", ".join(all_names[:3]) + (f" and {more:,} more" if more > 0 else "")


def _number(value: Json) -> float | None:
    """Return the number of a setting; those that JSON lacks are spelled out."""
    try:
        return float(value) if isinstance(value, (int, float, str)) else None
    except ValueError:
        return None


# --- who is in the window ---


def _empty(run: _Run) -> _Seen | None:
    if run.messages:
        return None
    return _Seen(text="the transcript has no message", remedy="give a transcript that has been written to")


def _system(run: _Run) -> _Seen | None:
    asked = [at for at, role in enumerate(run.columns.role) if role in ("system", "developer")]
    left = [run.fates[at] for at in asked if run.columns.ended[at] != "window"]
    if not left:
        return None
    first = min(left, key=lambda fate: (run.gone[fate.index] or 0, fate.index))
    write = run.gone[first.index] or 0
    others = f" ({len(left):,} of them in all)" if len(left) > 1 else ""
    keep = "keep it outside of the memory, or take --policy mem, which pins it"
    return _Seen(
        turn=run.turn_of_write(write),
        message=first.index,
        tokens=sum(fate.real for fate in left),
        text=f"the {first.role} message left the window{others}; the agent runs without it",
        remedy=keep + run.roomy(),
    )


def _orphans(run: _Run) -> _Seen | None:
    found: list[tuple[int, int, bool]] = []
    for group in run.groups:
        call_gone = -1 if group.call is None else run.gone[group.call]
        for result in group.results:
            gone = run.gone[result]
            start = max(run.written[result], -1 if call_gone is None else call_gone)
            if call_gone is not None and (gone is None or gone > start):
                found.append((start, result, group.call is None))
    if not found:
        return None
    start, result, alone = min(found)
    why = "and its call is not in the transcript" if alone else "and its call is gone"
    often = f", the first of {len(found):,} such results" if len(found) > 1 else ""
    remedy = (
        "add the message with its call"
        if alone
        else "take --policy mem, which lets a call and its results leave together"
    )
    return _Seen(
        turn=run.turn_of_write(start),
        message=result,
        tokens=sum(run.fates[at].real for _, at, _ in found),
        text=f"message {result} is a tool result in a prompt {why}{often}; providers refuse that",
        remedy=remedy + ("" if alone else run.roomy()),
    )


def _splits(run: _Run) -> _Seen | None:
    found: list[tuple[int, Group]] = []
    for group in run.groups:
        members = group.results if group.call is None else (group.call, *group.results)
        cuts = sorted({gone for at in members if (gone := run.gone[at]) is not None})
        for cut in cuts:
            stayed = [at for at in members if run.written[at] <= cut and ((end := run.gone[at]) is None or end > cut)]
            if stayed:
                found.append((cut, group))
                break
    if not found:
        return None
    cut, group = min(found, key=lambda item: item[0])
    first = group.results[0] if group.call is None else group.call
    often = f", the first of {len(found):,} such groups" if len(found) > 1 else ""
    return _Seen(
        turn=run.turn_of_write(cut),
        message=first,
        tokens=sum(run.fates[at].real for _, split in found for at in split.results),
        text=f"message {first} left the window while results of its group stayed{often}",
        remedy="take --policy mem, which lets a call and its results leave together" + run.roomy(),
    )


def _emptied(run: _Run) -> _Seen | None:
    found = [
        flush
        for flush in run.simulation.flushes
        if flush.stop == bisect_right(run.written, flush.write) and flush.stop > flush.first and flush.after == 0
    ]
    if not found:
        return None
    first = found[0]
    often = f", the first of {len(found):,} such flushes" if len(found) > 1 else ""
    return _Seen(
        turn=first.turn,
        message=first.stop - 1,
        tokens=first.before,
        text=f"a flush took all {_many(first.stop - first.first, 'message')} of the window, the newest too{often}",
        remedy="begin the transcript with a user message: the window is only cut before one" + run.roomy(),
    )


def _one_turn(run: _Run) -> _Seen | None:
    threshold = run.threshold
    if run.policy != "llamaindex" or threshold is None or not threshold > 0:
        return None
    # What comes before the first user message leaves by itself; it is a turn with nobody's word in it.
    users = [at for at, role in enumerate(run.columns.role) if role == "user"]
    sums = [0, *accumulate(run.columns.thought)]
    sizes = [sums[stop] - sums[start] for start, stop in pairwise([*users, len(run.fates)])]
    found = [turn for turn, size in enumerate(sizes) if size > threshold]
    if not found:
        return None
    worst = max(sizes)
    first = found[0]
    often = f", the first of {len(found):,} such turns" if len(found) > 1 else ""
    return _Seen(
        turn=first,
        message=users[first],
        tokens=math.ceil(worst - threshold),
        text=f"one turn is {sizes[first]:,} tokens where the window holds {math.floor(threshold):,}{often}",
        remedy=f"give --token-limit {_holding(worst, run.ratio or 1)}, or shorten tool results",
    )


# --- what it sends ---


def _over(run: _Run) -> _Seen | None:
    totals, limit = run.simulation.totals, run.limit
    if run.simulation.refused is not None:
        return _Seen(
            turn=run.turns[-1] if run.turns else None,
            tokens=_short(run.simulation, -1),
            text=f"no prompt could be made: {run.simulation.refused}",
            remedy="raise --token-limit, or shorten what is always in the prompt",
        )
    if (earlier := _refused_before(run)) is not None:
        return earlier
    if limit is None:
        return None
    windows = _window_sizes(run.columns.real, run.written, run.gone)
    worst = max([totals.over, *(size - limit for size in windows)], default=0)
    if worst <= 0:
        return None
    since = next((write for write, size in enumerate(windows) if size > limit), None)
    turn = (run.turns[-1] if run.turns else None) if since is None else run.turn_of_write(since)
    last = f"ends {totals.over:,} tokens over" if totals.over else "fits again at the end"
    return _Seen(
        turn=turn,
        message=None if since is None else bisect_right(run.written, since) - 1,
        tokens=worst,
        text=f"the real prompt is up to {worst:,} tokens over the limit of {limit:,} and {last}",
        remedy=_roomier(run, limit + worst) + "take --policy mem, which keeps to the limit",
    )


def _refused_before(run: _Run) -> _Seen | None:
    """Return the first write after which a policy made no prompt, where it could make one again at the end."""
    if run.policy != "mem":
        return None
    shorts = {write: short for write in range(len(run.simulation.steps)) if (short := _short(run.simulation, write))}
    if not shorts:
        return None
    refused, short = list(shorts), max(shorts.values())
    often = f" and after {_many(len(refused) - 1, 'other write')}" if len(refused) > 1 else ""
    why = run.simulation.steps[refused[0]]["refused"]
    return _Seen(
        turn=run.turn_of_write(refused[0]),
        message=bisect_right(run.written, refused[0]) - 1,
        tokens=short,
        text=f"no prompt could be made after write {refused[0]}{often}: {why}; at the end there is one again",
        remedy=f"raise --token-limit by {short}, or shorten what is that large",
    )


def most_over(simulation: Simulation) -> int | None:
    """Return by how much the largest prompt of a run exceeds its limit, 0 where none does; None without a prompt."""
    limit = simulation.totals.limit
    if simulation.refused is not None or limit is None:
        return None
    written = writes_of(len(simulation.fates), ends_of(simulation))
    sizes = _window_sizes(Columns.of(simulation.fates).real, written, all_gone(simulation, written))
    return max([simulation.totals.over, *(size - limit for size in sizes)])


def _roomier(run: _Run, least: int) -> str:
    """Return the words for a limit that holds every prompt, or nothing where trying finds none.

    A window grows with its limit, so that what holds the largest prompt of one run may be too small in the next.

    Args:
        least: What would hold the largest prompt of this run.
    """
    limit = least
    for _ in range(_TRIES if run.over_at is not None else 0):
        over = run.over_at(limit) if run.over_at is not None and limit <= LARGEST_LIMIT else None
        if over is None:
            return ""
        if over <= 0:
            return f"give --token-limit {limit}, or "
        limit += over
    return ""


def _short(simulation: Simulation, write: int) -> int | None:
    """Return how many tokens a prompt was short of, as a write tells it."""
    short = simulation.steps[write].get("short_by") if simulation.steps else None
    return short if isinstance(short, int) else None


def _window_sizes(real: Sequence[int], writes: Sequence[int], left: Sequence[int | None]) -> list[int]:
    """Return the real tokens of the window after each write.

    Args:
        real: Of each message.
        writes: The write that brought each message.
        left: The first write after which it was in no window, or None.
    """
    changes = [0] * (max(writes, default=-1) + 2)
    for tokens, written, gone in zip(real, writes, left, strict=False):
        if gone is None or gone > written:
            changes[written] += tokens
            if gone is not None and gone < len(changes):
                changes[gone] -= tokens
    return list(accumulate(changes))[:-1]


def _uncounted(run: _Run) -> list[tuple[int, int, int]]:
    """Return for each message with some: its place, and the tokens of calls and of thinking that were not counted."""
    found = []
    for at, message in run.laden:
        if at >= len(run.fates):
            break
        fate = run.fates[at]
        calls = sum(map(run.count, call_texts(message, free_only=run.policy == "llamaindex")))
        other = sum(
            run.count(part.text) for part in message.parts if part.kind in FREE and part.kind is not PartKind.TOOL_CALL
        )
        if run.policy not in ("llamaindex", "buffer"):
            # What these count is known from the two counts alone; a smaller gap is the wrapping of a message.
            gap = fate.real - fate.thought
            calls = calls if calls <= gap else 0
            other = other if other <= gap - calls else 0
        if calls or other:
            found.append((fate.index, calls, other))
    return found


def _calls(run: _Run) -> _Seen | None:
    found = [(at, tokens) for at, tokens, _ in run.uncounted if tokens]
    if not found:
        return None
    total = sum(tokens for _, tokens in found)
    return _Seen(
        turn=run.turn(found[0][0]),
        message=found[0][0],
        tokens=total,
        text=f"{_many(total, 'token')} of tool calls in {_many(len(found), 'message')} are sent, not counted",
        remedy="take --policy mem, which counts them, or keep them in additional_kwargs (--tool-calls kwargs)",
    )


def _thinking(run: _Run) -> _Seen | None:
    found = [(at, tokens) for at, _, tokens in run.uncounted if tokens]
    if not found:
        return None
    total = sum(tokens for _, tokens in found)
    return _Seen(
        turn=run.turn(found[0][0]),
        message=found[0][0],
        tokens=total,
        text=f"{_many(total, 'token')} of thinking or sources in {_many(len(found), 'message')} are sent, not counted",
        remedy="take --policy mem, which counts them, or drop thinking before it is stored",
    )


def _flat(run: _Run) -> _Seen | None:
    kinds = (PartKind.IMAGE, PartKind.AUDIO, PartKind.VIDEO, PartKind.DOCUMENT)
    found = [at for at, message in run.laden if any(part.kind in kinds for part in message.parts)]
    if not found:
        return None
    often = Counter(part.kind.value for at in found for part in run.messages[at].parts if part.kind in kinds)
    tokens = sum(flat(run.messages[at].parts, run.estimates) for at in found)
    what = _names(f"{number:,} {kind}{'s' * (number > 1)}" for kind, number in sorted(often.items()))
    return _Seen(
        turn=run.turn(found[0]),
        message=found[0],
        tokens=tokens,
        text=f"{what} count as {tokens:,} tokens, whatever is in them",
        remedy=f"set {min(often)}_token_size_estimate to what the provider charges",
    )


def _template(run: _Run) -> _Seen | None:
    totals = run.simulation.totals
    if run.limit is None or not totals.template or not totals.over or totals.thought > run.limit:
        return None
    return _Seen(
        turn=run.turns[-1] if run.turns else None,
        tokens=totals.template,
        text=f"the tags around blocks, {_many(totals.template, 'token')}, are not counted; it is {totals.over:,} over",
        remedy=_roomier(run, run.limit + totals.over) + "make the blocks smaller",
    )


def _unsupported(run: _Run) -> _Seen | None:
    refused = [at for at, message in enumerate(run.messages) if message.role not in ROLES]
    refused = refused if run.policy in ("llamaindex", "buffer") else []
    empty = [at for at, message in run.laden if not message.parts and not message.kwargs]
    found = sorted({*refused, *empty})
    if not found:
        return None
    first = found[0]
    role = run.messages[first].role[:40]
    why = f"has the role {role}, which LlamaIndex refuses" if first in refused else "has nothing in it that is sent"
    often = f", the first of {len(found):,} such messages" if len(found) > 1 else ""
    return _Seen(
        turn=run.turn(first),
        message=first,
        tokens=None,
        text=f"message {first} {why}{often}",
        remedy=f"use one of the roles {', '.join(ROLES[:6])}" if first in refused else "write its content as text",
    )


def _reordered(run: _Run) -> _Seen | None:
    found = []
    newest: Micros | None = None
    for at, time in enumerate(run.times):
        if time is not None and newest is not None and time < newest:
            found.append(at)
        elif time is not None:
            newest = time
    if not found:
        return None
    often = f", the first of {len(found):,} such messages" if len(found) > 1 else ""
    return _Seen(
        turn=run.turn(found[0]),
        message=found[0],
        text=f"message {found[0]} is older than one before it{often}; a store that sorts by time would move it",
        remedy="write the transcript in the order of its times",
    )


def _prefix(run: _Run) -> _Seen | None:
    share = run.simulation.totals.prefix_kept
    if share is None or share >= KEPT_ENOUGH:
        return None
    prompt = run.simulation.totals.real
    return _Seen(
        tokens=round(prompt * (1 - share)),
        text=f"on average {round(100 * (1 - share))} % of a turn's prompt is no unchanged prefix of the next one",
        remedy=_steadier(run),
    )


def _steadier(run: _Run) -> str:
    if run.simulation.effective.get("insert_method") == "user":
        return "take --insert-method system, where blocks rarely change"
    if run.policy == "llamaindex":
        return "flush more at once and so more rarely: give a larger --flush-size or --token-limit"
    return "take --policy llamaindex, which drops many messages at once and so more rarely"


# --- settings ---


def _zero(run: _Run) -> _Seen | None:
    size = _number(run.simulation.effective.get("token_flush_size"))
    if size is None or size > 0:
        return None
    return _Seen(
        tokens=0,
        text="the flush size is 0: a window that begins with a user message never flushes",
        remedy="give --token-limit 10 or more, or a --flush-size from 1 to the limit",
    )


def _clamped(run: _Run) -> _Seen | None:
    size = _number(run.simulation.effective.get("token_flush_size"))
    if size is None or size <= 0:
        return None
    threshold = run.threshold
    clamps = [clamp for clamp in run.simulation.clamps if clamp.get("setting") == "token_flush_size"]
    given = [clamp for clamp in clamps if clamp.get("given") is not None]
    takes_all = threshold is not None and 1 <= threshold < math.inf and size >= math.floor(threshold)
    if not given and not takes_all:
        return None
    why = f" ({clamps[-1].get('why')})" if clamps else ""
    used = f"the flush size is {size:,.0f}{why}"
    most = math.floor(threshold) if threshold is not None and math.isfinite(threshold) else 0
    rest = f" and the window holds {most:,}: the first flush leaves a single turn" if takes_all else ""
    return _Seen(tokens=int(size), text=used + rest, remedy=f"give --flush-size {max(1, most // 7)}")


def _ratio(run: _Run) -> _Seen | None:
    ratio = run.ratio
    if ratio is None or 0 < ratio <= 1:
        return None
    if math.isnan(ratio) or ratio > 1:
        what = "nothing leaves before the limit is passed"
    else:
        what = "every write leaves only the last turn"
    return _Seen(text=f"the ratio of {ratio:g} is not above 0 and at most 1: {what}", remedy="give --ratio 0.7")


# --- blocks ---


_LEARNING: Final = frozenset({"fact", "vector", "retrieved", "class"})
"""Kinds of blocks that hold nothing but what they are given."""


def _never(run: _Run) -> _Seen | None:
    takers = [block.name for block in run.simulation.blocks if block.kind in _LEARNING]
    if run.policy not in ("llamaindex", "mem") or not takers or not run.fates or run.simulation.flushes:
        return None
    if any(fate.blocks for fate in run.fates):
        return None
    tokens = sum(run.columns.thought)
    threshold = run.threshold
    small = threshold is not None and tokens <= threshold
    most = threshold if small and threshold is not None and threshold < math.inf else None
    held = "" if most is None else f" of the {math.floor(most):,} it may hold"
    # One turn is never cut, so that no limit makes it leave.
    lower = most is not None and tokens > 1 and run.simulation.totals.turns > 1
    smaller = f"give --token-limit {max(1, _holding(tokens, run.ratio or 1) - 1)} or less, or " if lower else ""
    return _Seen(
        turn=run.turns[-1],
        tokens=tokens,
        text=f"nothing left the window ({tokens:,} tokens{held}), so {_names(takers)} got nothing",
        remedy=smaller + "take --policy mem, which captures the end",
    )


def _dropped(run: _Run) -> _Seen | None:
    found = [block for block in run.simulation.blocks if block.fate == "dropped" and block.wanted]
    if not found:
        return None
    excess = _excess(run, run.simulation.blocks) if run.policy == "llamaindex" else 0
    over = f" for {_many(excess, 'token')} too many" if excess > 0 else f": {found[0].reason}"
    what = _names(f"{block.name} ({block.wanted:,} tokens)" for block in found)
    return _Seen(
        turn=run.turns[-1] if run.turns else None,
        tokens=sum(block.wanted for block in found),
        text=f"{what} left out whole{over}",
        remedy=f"raise --token-limit by {excess:,}, or take --policy mem, which shortens blocks"
        if excess > 0
        else "raise --token-limit, or the weight of the block",
    )


def _excess(run: _Run, blocks: Iterable[BlockFate]) -> int:
    """Return how much more than the limit the window and these blocks came to before anything was dropped."""
    columns = zip(run.columns.thought, run.columns.ended, strict=True)
    window = sum(thought for thought, ended in columns if ended == "window")
    return window + sum(block.wanted for block in blocks) - (run.limit or 0)


def _priority(run: _Run) -> _Seen | None:
    fixed = [block for block in run.simulation.blocks if block.priority == 0 and block.got]
    if run.policy != "llamaindex" or run.limit is None or not fixed:
        return None
    excess = _excess(run, fixed)
    if excess <= 0:
        return None
    return _Seen(
        turn=run.turns[-1] if run.turns else None,
        tokens=excess,
        text=f"{_names(block.name for block in fixed)}: priority 0 is never cut, which is {excess:,} too many",
        remedy="give them a priority of 1 or more; the lowest is dropped first",
    )


def _facts_shown(simulation: Simulation) -> dict[str, int]:
    """Return how many facts of each block stand in the prompt, where they are told apart by tags."""
    return {piece.name: piece.text.count("<fact>") for piece in simulation.prompt if piece.kind == "block"}


def _facts(run: _Run) -> _Seen | None:
    found = {name: (run.facts.get(name, 0), most) for name, most in run.max_facts.items()}
    found = {name: (held, most) for name, (held, most) in found.items() if held > most}
    if not found:
        return None
    what = _names(f"{name} holds {held:,} facts where max_facts is {most:,}" for name, (held, most) in found.items())
    wanted = max(held for held, _ in found.values())
    return _Seen(
        turn=run.turns[-1] if run.turns else None,
        text=f"{what}; condensing is asked for again at every flush",
        remedy=f"set max_facts to {wanted} or more, or take a block of type facts, which keeps to it",
    )


_CHECKS: Final[Mapping[str, _Check]] = {
    "empty-transcript": _empty,
    "system-evicted": _system,
    "over-limit": _over,
    "orphan-tool-result": _orphans,
    "split-tool-group": _splits,
    "flush-emptied-window": _emptied,
    "flush-size-zero": _zero,
    "flush-size-clamped": _clamped,
    "ratio-out-of-range": _ratio,
    "priority-zero-overflow": _priority,
    "unsupported-content": _unsupported,
    "single-turn-overflow": _one_turn,
    "tool-call-uncounted": _calls,
    "uncounted-content": _thinking,
    "flat-estimate": _flat,
    "template-overhead": _template,
    "never-flushed": _never,
    "block-dropped-whole": _dropped,
    "facts-over-max": _facts,
    "window-reordered": _reordered,
    "prefix-broken": _prefix,
}
