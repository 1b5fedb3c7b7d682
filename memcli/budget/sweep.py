"""Many settings over one transcript, from one count of its messages.

For `llamaindex` a setting costs one walk over running sums, and settings that must flush alike share one. Every other
policy is asked through `others`, which is given what has been counted already.
"""

import csv
import io
import json
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from itertools import accumulate, pairwise
from statistics import median
from typing import Any, Final, TypeAlias

from memcli.budget.outcome import Columns, Simulation
from memcli.budget.settings import (
    DEFAULT_FLUSH_SIZE,
    DEFAULT_RATIO,
    DEFAULT_TOKEN_LIMIT,
    Constructor,
    settings_from,
    threshold_of,
)
from memcli.budget.spans import Depth
from memcli.budget.window import Flushes, Timeline
from memcli.errors import UsageError
from memcli.facts import Json, Micros
from memcli.record import record
from memcli.text import tabular

MOST_SETTINGS: Final = 200_000
SYSTEM_ROLES: Final = frozenset({"system", "developer"})


@record
class Setting:
    """One point of the grid. `flush_size` is as it was asked for; None leaves it to the policy."""

    policy: str
    token_limit: int
    ratio: float
    flush_size: int | None


Others: TypeAlias = Callable[[Setting], Simulation]


@record
class Grid:
    """What is combined with what."""

    token_limits: tuple[int, ...] = (DEFAULT_TOKEN_LIMIT,)
    ratios: tuple[Decimal, ...] = (Decimal(str(DEFAULT_RATIO)),)
    flush_sizes: tuple[int | None, ...] = (None,)
    policies: tuple[str, ...] = ("llamaindex",)

    def __len__(self) -> int:
        return len(self.token_limits) * len(self.ratios) * len(self.flush_sizes) * len(self.policies)

    def settings(self) -> Iterator[Setting]:
        """Yield every combination: policies outermost, then limits, ratios and flush sizes."""
        for policy in self.policies:
            for limit in self.token_limits:
                for ratio in self.ratios:
                    for size in self.flush_sizes:
                        yield Setting(policy=policy, token_limit=limit, ratio=float(ratio), flush_size=size)


@record
class Probe:
    """A question, and the places of the messages that answer it."""

    question: str
    evidence: tuple[int, ...]


@record
class Row:
    """What one setting comes to at the end of the transcript.

    Args:
        flush_size: As it was used, after every clamp; None where the policy has none.
        window_tokens: As the policy thinks.
        real_tokens: Window and fixed blocks as a provider would count them.
        over: How far that exceeds the limit.
        in_window: The share of evidence that is in the window, 0 to 1; None without probes.
        in_block: The share that is not there, but was given to a block.
        lost: The share that nobody has.
        reachable: How many questions have all of their evidence in the window or a block.
    """

    policy: str
    token_limit: int
    ratio: float
    flush_size: int | None
    is_default: bool
    flushes: int
    window_messages: int
    window_tokens: int
    real_tokens: int
    over: int
    system_evicted: bool
    never_flushed: bool
    in_window: float | None = None
    in_block: float | None = None
    lost: float | None = None
    reachable: int | None = None


@record
class DepthRow:
    """What a plain memory of some depth still shows of facts, each said in one or several messages.

    Args:
        visible: Facts of which at least one message is in the window at the end.
        first_loss: The first message after which a fact was out of sight, or None.
        half_life: After how many messages half of the facts had gone out of sight for the first time, or None.
    """

    depth: str
    facts: int
    visible: int
    first_loss: int | None
    half_life: float | None


@record
class Table:
    """The rows of a sweep in the order of the grid; `probes` is how many questions were asked."""

    rows: tuple[Row, ...]
    probes: int = 0


@record
class Counted:
    """A transcript of which every message has been counted once.

    Args:
        thought: What each message counts as to LlamaIndex.
        real: What each is to a provider.
        writes: How many messages had been written after each write, ascending; None means one at a time.
        takers: The blocks that keep what leaves the window.
        fixed_tokens: What the blocks whose content never changes add to every prompt.
    """

    roles: tuple[str, ...]
    thought: tuple[int, ...]
    real: tuple[int, ...]
    writes: tuple[int, ...] | None = None
    takers: tuple[str, ...] = ()
    fixed_tokens: int = 0


def sweep(
    counted: Counted,
    grid: Grid,
    *,
    constructor: Constructor = Constructor.FROM_DEFAULTS,
    probes: Sequence[Probe] = (),
    others: Others | None = None,
) -> Table:
    """Return one row for each setting of the grid.

    Args:
        others: What simulates a policy that is not `llamaindex`; it is to count nothing anew.

    Raises:
        Raised: LlamaIndex refuses a setting.
        UsageError: The grid is too large or holds a policy that nobody can simulate here, or a probe names a message
            that is not among those counted.
    """
    if len(grid) > MOST_SETTINGS:
        hint = "sweep coarser steps, or fewer settings at once"
        raise UsageError(f"{len(grid):,} settings are more than the {MOST_SETTINGS:,} that a sweep takes", hint=hint)
    _within((at for probe in probes for at in probe.evidence), len(counted.roles))
    asked = _Asked(counted, probes)
    return Table(rows=tuple(_rows(asked, grid, constructor, others)), probes=len(probes))


def _rows(asked: "_Asked", grid: Grid, constructor: Constructor, others: Others | None) -> Iterator[Row]:
    for setting in grid.settings():
        if setting.policy == "llamaindex":
            yield asked.row(setting, constructor)
        elif others is None:
            hint = "sweep llamaindex, or give what simulates the others"
            raise UsageError(f"the policy {setting.policy} cannot be swept from counts alone", hint=hint)
        else:
            yield asked.row_of(setting, others(setting))


class _Asked:
    """The transcript in running sums, and the probes in sorted places, so that a setting asks by bisection."""

    __slots__ = (
        "_counted", "_evidence", "_first_system", "_flushed", "_largest_turn", "_oldest", "_probes", "_real",
        "_timeline", "_used",
    )  # fmt: skip

    def __init__(self, counted: Counted, probes: Sequence[Probe]) -> None:
        self._counted = counted
        self._timeline = Timeline(counted.thought, [role == "user" for role in counted.roles])
        users = [at for at, role in enumerate(counted.roles) if role == "user"]
        turns = pairwise([0, *users, len(counted.roles)])
        sizes = [self._timeline.tokens(start, stop) for start, stop in turns]
        self._largest_turn = max(sizes, default=0) if min(counted.thought, default=0) >= 0 else math.inf
        self._flushed: dict[tuple[float, int], Flushes] = {}
        self._used: dict[tuple[int, int | None], int] = {}
        self._real = [0, *accumulate(counted.real)]
        self._first_system = next((at for at, role in enumerate(counted.roles) if role in SYSTEM_ROLES), None)
        self._probes = probes
        self._evidence = sorted(at for probe in probes for at in probe.evidence)
        self._oldest = sorted(min(probe.evidence, default=0) for probe in probes)

    def row(self, setting: Setting, constructor: Constructor) -> Row:
        """Return what LlamaIndex makes of a setting."""
        flush_size = self._flush_size(setting, constructor)
        left = self._flushes(threshold_of(setting.token_limit, setting.ratio), flush_size)
        start, stop = left.window
        real = self._real[stop] - self._real[start] + self._counted.fixed_tokens
        return Row(
            policy=setting.policy,
            token_limit=setting.token_limit,
            ratio=setting.ratio,
            flush_size=flush_size,
            is_default=_is_default(setting),
            flushes=len(left.flushes),
            window_messages=stop - start,
            window_tokens=self._timeline.tokens(start, stop),
            real_tokens=real,
            over=max(0, real - setting.token_limit),
            system_evicted=self._first_system is not None and self._first_system < start,
            never_flushed=not left.flushes,
            **self._reached(start),
        )

    def _flush_size(self, setting: Setting, constructor: Constructor) -> int:
        """Return the flush size as it is used, which the ratio has no part in.

        Raises:
            Raised: LlamaIndex refuses the settings.
        """
        asked = setting.token_limit, setting.flush_size
        used = self._used.get(asked)
        if used is None:
            given: dict[str, Any] = {"token_limit": setting.token_limit, "chat_history_token_ratio": setting.ratio}
            if setting.flush_size is not None:
                given["token_flush_size"] = setting.flush_size
            used = self._used[asked] = settings_from(given, constructor=constructor).token_flush_size
        return used

    def _flushes(self, threshold: float, flush_size: int) -> Flushes:
        """Return what a setting makes of the transcript; settings that must make the same are asked about once.

        Sums of tokens are whole numbers, so that thresholds with the same whole number below them are the same. And
        where no turn is larger than the window may be, and messages are written one at a time, a window never holds
        more than the threshold before its newest message: all flush sizes above it then take whatever they can.
        """
        writes = self._counted.writes
        most = math.floor(threshold) if math.isfinite(threshold) else threshold
        if writes is None and self._largest_turn <= most:
            flush_size = int(min(flush_size, most + 1))
        found = self._flushed.get((most, flush_size))
        if found is None:
            found = self._timeline.flushes(threshold=threshold, flush_size=flush_size, writes=writes)
            self._flushed[most, flush_size] = found
        return found

    def row_of(self, setting: Setting, run: Simulation) -> Row:
        """Return what another policy made of a setting."""
        size = run.effective.get("token_flush_size")
        columns = Columns.of(run.fates)
        inside = [at for at, ended in enumerate(columns.ended) if ended == "window"]
        out = [at for at, ended in enumerate(columns.ended) if ended != "window"]
        return Row(
            policy=setting.policy,
            token_limit=setting.token_limit,
            ratio=setting.ratio,
            flush_size=size if isinstance(size, int) else None,
            is_default=_is_default(setting),
            flushes=len(run.flushes),
            window_messages=run.totals.window_messages,
            window_tokens=sum(columns.thought[at] for at in inside),
            real_tokens=run.totals.real,
            over=run.totals.over,
            system_evicted=any(columns.role[at] in SYSTEM_ROLES for at in out),
            never_flushed=not run.flushes,
            **self._found(run),
        )

    def _reached(self, start: int) -> dict[str, Any]:
        """Return where the evidence is when the window is everything from a message on."""
        if not self._probes:
            return {}
        kept = bool(self._counted.takers)
        whole = len(self._evidence)
        out = bisect_left(self._evidence, start)
        asked = len(self._probes)
        return _shares(whole, whole - out, out if kept else 0) | {
            "reachable": asked if kept else asked - bisect_left(self._oldest, start)
        }

    def _found(self, run: Simulation) -> dict[str, Any]:
        """Return where the evidence is after a run."""
        if not self._probes:
            return {}
        ended = Columns.of(run.fates).ended
        seen = [ended[at] for at in self._evidence]
        there = sum(all(ended[at] != "dropped" for at in probe.evidence) for probe in self._probes)
        return _shares(len(seen), seen.count("window"), seen.count("block")) | {"reachable": there}


def _within(places: Iterable[int], total: int) -> None:
    beyond = next((at for at in places if not 0 <= at < total), None)
    if beyond is not None:
        hint = "look after more messages, or leave out what asks for later ones"
        raise UsageError(f"message {beyond} is asked for, and only {total:,} messages are looked at", hint=hint)


def _shares(whole: int, window: int, block: int) -> dict[str, Any]:
    if not whole:
        return {"in_window": None, "in_block": None, "lost": None}
    return {"in_window": window / whole, "in_block": block / whole, "lost": (whole - window - block) / whole}


def _is_default(setting: Setting) -> bool:
    return (
        setting.policy == "llamaindex"
        and setting.ratio == DEFAULT_RATIO
        and setting.flush_size in (None, DEFAULT_FLUSH_SIZE)
    )


# --- probes ---


def probes_from(text: str, ids: Sequence[str]) -> tuple[Probe, ...]:
    """Return the questions of a JSON Lines text: `{"question": …, "evidence": [id, …]}` each.

    Args:
        ids: Of the messages, in order; an id that none has is taken for a 0-based number.

    Raises:
        UsageError: A line is not such an object, or names a message that is not there.
    """
    places = {name: at for at, name in reversed(list(enumerate(ids)))}
    return tuple(
        _probe(line, number, places, len(ids)) for number, line in enumerate(text.splitlines(), 1) if line.strip()
    )


def _probe(line: str, number: int, places: Mapping[str, int], total: int) -> Probe:
    hint = 'write one object a line, such as {"question": "where does she live?", "evidence": ["12", "40"]}'
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise UsageError(f"line {number} of the probes is no JSON", hint=hint) from problem
    question = given.get("question") if isinstance(given, dict) else None
    evidence = given.get("evidence") if isinstance(given, dict) else None
    if not isinstance(question, str) or not isinstance(evidence, list) or not evidence:
        raise UsageError(f"line {number} of the probes has no question, or no list of evidence", hint=hint)
    found = [_place(name, places, total) for name in evidence]
    if None in found:
        missing = evidence[found.index(None)]
        hint = "give ids of the transcript, or numbers that count its messages from 0"
        raise UsageError(f"line {number} of the probes names message {missing}, which is not there", hint=hint)
    return Probe(question=question, evidence=tuple(sorted({at for at in found if at is not None})))


def _place(name: object, places: Mapping[str, int], total: int) -> int | None:
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        return None
    text = str(name)
    if text in places:
        return places[text]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 and int(text) < total else None


# --- depths ---


def depth_table(
    facts: Sequence[Sequence[int]], depths: Iterable[Depth], *, total: int, times: Sequence[Micros | None] = ()
) -> tuple[DepthRow, ...]:
    """Return what memories of these depths show of the facts.

    Args:
        facts: The places of the messages that say each; it is in sight while one of them is in the window.
        total: How many messages there are.
        times: When each was said, for depths in time.

    Raises:
        UsageError: A depth is a time, and no message has one; or a fact names a message that is not there.
    """
    _within((at for fact in facts for at in fact), total)
    return tuple(_depth_row(facts, depth, total, times) for depth in depths)


def _depth_row(facts: Sequence[Sequence[int]], depth: Depth, total: int, times: Sequence[Micros | None]) -> DepthRow:
    stays = _stays(depth, total, times)
    # From which message on each is out of sight; a fact goes when its messages so far have gone and no other came.
    lost = [_first_loss(sorted(fact), stays) for fact in facts]
    lives = [(gone - min(fact)) if gone < total else total + 1 for fact, gone in zip(facts, lost, strict=True) if fact]
    half = median(lives) if lives else None
    return DepthRow(
        depth=depth.text,
        facts=len(facts),
        visible=sum(any(stays[at] >= total for at in fact) for fact in facts),
        first_loss=min((gone for gone in lost if gone < total), default=None),
        half_life=None if half is None or half > total else half,
    )


def _stays(depth: Depth, total: int, times: Sequence[Micros | None]) -> list[int]:
    """Return for each message the first one at whose arrival it is no longer in the window, or the total."""
    if depth.messages is not None:
        return [min(at + depth.messages, total) for at in range(total)]
    known = [time for time in times if time is not None]
    if total and not known:
        raise UsageError(f"a depth of {depth.text} needs messages with times", hint="give a number of messages")
    # As the policy has it: what has no time was said when the newest before it was.
    said = []
    newest = known[0] if known else 0
    for time in times:
        newest = newest if time is None else max(newest, time)
        said.append(newest)
    return [bisect_left(said, said[at] + (depth.micros or 0), at) for at in range(total)]


def _first_loss(fact: Sequence[int], stays: Sequence[int]) -> int:
    """Return the first message at whose arrival nothing of the fact is in sight, or the number of messages."""
    end = 0
    for at in fact:
        if end and end < at:
            return end
        end = max(end, stays[at])
    return end


# --- what is best ---

_LESS: Final = frozenset({"flushes", "real_tokens", "over", "lost", "token_limit", "system_evicted", "never_flushed"})
_MORE: Final = frozenset({"window_messages", "window_tokens", "in_window", "in_block", "reachable"})


def best(table: Table, column: str) -> Row | None:
    """Return the row with the best value of a column: the most, or the least where less is better; None without rows.

    Of equals the one that sends fewer tokens, then the one with the lower limit, then the first.

    Raises:
        UsageError: No row can be better than another by that column, or there were no probes to fill it.
    """
    known = sorted(_LESS | _MORE)
    if column not in known:
        raise UsageError(f"no setting is better than another by {column}", hint=f"take one of {', '.join(known)}")
    if any(getattr(row, column) is None for row in table.rows):
        raise UsageError(f"the column {column} is filled by probes, and there were none", hint="give --probes a file")
    sign = 1 if column in _LESS else -1
    return min(
        table.rows, key=lambda row: (sign * getattr(row, column), row.real_tokens, row.token_limit), default=None
    )


# --- as text ---


def as_csv(rows: Sequence[Row] | Sequence[DepthRow]) -> str:
    """Return the rows as CSV with a line of names; texts that a spreadsheet would take for a formula are quoted."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if rows:
        writer.writerow(_names(rows[0]))
    for row in rows:
        writer.writerow([_cell(getattr(row, name)) for name in _names(row)])
    return out.getvalue()


def as_json(row: Row | DepthRow) -> dict[str, Json]:
    """Return the row as JSON values."""
    return {name: getattr(row, name) for name in _names(row)}


def _names(row: Row | DepthRow) -> list[str]:
    return [item.name for item in fields(row)]


def _cell(value: object) -> object:
    """Return what is written for a value: numbers as they are, true and false as words, nothing for None."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return tabular(value) if isinstance(value, str) else value
