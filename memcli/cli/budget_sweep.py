"""What `mem budget sweep` does between its options and its screen."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memcli.budget import sweep
from memcli.budget.honest import all_real_tokens, overhead_of
from memcli.budget.messages import Estimates, all_tokens
from memcli.budget.outcome import Simulation
from memcli.budget.public import takes
from memcli.budget.run import run
from memcli.budget.settings import Constructor
from memcli.budget.spans import Depth
from memcli.budget_input import Transcript
from memcli.cli import budget_work as work
from memcli.cli.door import Answer
from memcli.errors import Unreadable
from memcli.facts import Json
from memcli.record import record
from memcli.text import tabular

if TYPE_CHECKING:
    from memcli.render.layout import Screen


@record
class Asked:
    """What a sweep is to find out.

    Args:
        depths: Sweeps plain memories of these depths in place of the grid.
        probes: A file of questions.
        best: The column to judge by; None takes what the probes answer, else how many messages are left.
    """

    grid: sweep.Grid
    depths: Sequence[Depth] | None
    probes: str | None
    best: str | None


@record
class Swept:
    """What one transcript comes to under every setting.

    Args:
        table: None where depths were swept.
        depths: None where a grid was.
    """

    transcript: Transcript
    table: sweep.Table | None
    depths: tuple[sweep.DepthRow, ...] | None
    column: str
    best: sweep.Row | None
    only_best: bool

    @property
    def rows(self) -> Sequence[sweep.Row] | Sequence[sweep.DepthRow]:
        """Return what other formats than the screen print: all rows, or the best where it was asked for."""
        if self.depths is not None:
            return self.depths
        if self.only_best:
            return () if self.best is None else (self.best,)
        return () if self.table is None else self.table.rows


def swept(transcript: Transcript, wanted: work.Wanted, asked: Asked) -> Swept:
    """Return what a transcript comes to.

    Raises:
        MemError: A setting, the probes or a block does not fit.
    """
    probes = () if asked.probes is None else sweep.probes_from(_text(asked.probes), transcript.ids)
    if asked.depths is not None:
        total = len(transcript.messages[: wanted.at])
        facts = [probe.evidence for probe in probes] if probes else [(at,) for at in range(total)]
        depths = sweep.depth_table(facts, asked.depths, total=total, times=transcript.times[:total])
        return Swept(transcript=transcript, table=None, depths=depths, column="", best=None, only_best=False)
    column = asked.best or ("reachable" if probes else "window_messages")
    grid, counting = asked.grid, work.Counting.of(wanted)
    table = sweep.sweep(
        _counted(transcript, wanted, counting),
        grid,
        constructor=Constructor(str(wanted.settings.get("constructor", Constructor.FROM_DEFAULTS.value))),
        probes=probes,
        others=_Others(transcript, wanted).run,
    )
    return Swept(
        transcript=transcript,
        table=table,
        depths=None,
        column=column,
        best=sweep.best(table, column),
        only_best=asked.best is not None,
    )


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) and problem.strerror else "it is no UTF-8 text"
        raise Unreadable(path, why.lower(), hint="give one JSON object a line, with question and evidence") from problem


def _counted(transcript: Transcript, wanted: work.Wanted, counting: work.Counting) -> sweep.Counted:
    """Return the transcript with every message counted, and what the blocks add to every prompt."""
    messages = transcript.messages[: wanted.at]
    overhead, estimates = overhead_of(wanted.encoding), Estimates()
    real = all_real_tokens(messages, estimates, overhead, counting.one)
    specs = work.specs_of(wanted)
    placed = [spec.placed(counting.one, []) for spec in specs]
    bare = run((), count=counting.one, encoding=wanted.encoding, blocks=specs)
    return sweep.Counted(
        roles=tuple(message.role for message in messages),
        thought=tuple(all_tokens(messages, estimates, counting.many)),
        real=real,
        writes=None if wanted.writes == "message" else work.ends(messages, wanted.writes),
        takers=tuple(block.name for block in placed if takes(block)),
        fixed_tokens=bare.totals.real,
    )


class _Others:
    """Simulates the policies that cannot be swept from counts; every text is counted once for all settings."""

    def __init__(self, transcript: Transcript, wanted: work.Wanted) -> None:
        self._transcript = transcript
        self._wanted = wanted
        self._counting: dict[bool, work.Counting] = {}

    def run(self, setting: sweep.Setting) -> Simulation:
        """Return the run under one setting."""
        given: dict[str, Json] = {"token_limit": setting.token_limit, "chat_history_token_ratio": setting.ratio}
        if setting.flush_size is not None:
            given["token_flush_size"] = setting.flush_size
        counting = self._counting.setdefault(
            setting.policy == "buffer", work.Counting.for_policy(self._wanted.encoding, setting.policy)
        )
        wanted = self._wanted
        return run(
            self._transcript.messages,
            policy=setting.policy,
            settings=given,
            count=counting.one,
            count_many=counting.many,
            encoding=wanted.encoding,
            blocks=work.specs_of(wanted),
            ids=self._transcript.ids,
            at=wanted.at,
            writes=wanted.writes,
            times=self._transcript.times,
        )


# --- the answer ---


def answer(all_swept: Sequence[Swept]) -> Answer:
    """Return the sweeps in every form; several transcripts are told apart by a key of their own."""

    def documents() -> Iterator[Json]:
        for one in all_swept:
            for row in one.rows:
                yield {"transcript": one.transcript.name, **sweep.as_json(row)}

    return Answer(
        document=lambda: list(documents()),
        lines=documents,
        screen=lambda width: _screen(all_swept, width),
        page=True,
    )


def _screen(all_swept: Sequence[Swept], width: int) -> "Screen":
    from memcli.render.layout import Screen

    screens = [_one_screen(one, width) for one in all_swept]
    lines = [line for number, screen in enumerate(screens) for line in (*([()] if number else []), *screen.lines)]
    return Screen(lines=tuple(lines))


def _one_screen(one: Swept, width: int) -> "Screen":
    from memcli.render.budget_compare import depth_screen, sweep_screen

    name, messages = one.transcript.name, len(one.transcript.messages)
    if one.table is None:
        return depth_screen(one.depths or (), name=name, messages=messages, width=width)
    return sweep_screen(one.table, name=name, messages=messages, shown=one.column, best=one.best, width=width)


def as_csv(all_swept: Sequence[Swept]) -> str:
    """Return all rows under one line of names, the transcript's first."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for number, one in enumerate(all_swept):
        lines = [*csv.reader(io.StringIO(sweep.as_csv(one.rows)))]
        name = tabular(one.transcript.name)
        writer.writerows([*([["transcript", *lines[0]]] if number == 0 and lines else [])])
        writer.writerows([[name, *line] for line in lines[1:]])
    return out.getvalue()
