"""One run of any policy over one transcript, told in the one shape that all commands read."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from memcli.budget import options
from memcli.budget.course import Course, Job, fates, made_job, totals
from memcli.budget.honest import CountMany, Tally, all_real_tokens, overhead_of
from memcli.budget.messages import BudgetMessage, Count, Estimates
from memcli.budget.outcome import Simulation
from memcli.budget.policies import buffer, llamaindex_course, mem, sliding, token, unbounded
from memcli.budget.public import BlockSpec
from memcli.budget.settings import KNOWN
from memcli.errors import UsageError
from memcli.facts import Json, Micros

POLICIES: Final[Mapping[str, Callable[[Job], Course]]] = {
    "llamaindex": llamaindex_course.course,
    "mem": mem.course,
    "buffer": buffer.course,
    "sliding": sliding.course,
    "token": token.course,
    "unbounded": unbounded.course,
}
"""Every policy by name."""

SETTINGS: Final = frozenset(
    {*KNOWN, "constructor", "important", "depth", "days", "hours", "initial_token_count", "context_window"}
)
"""What some policy knows; a policy passes over what only others do."""

WRITES: Final = ("message", "turn")


def run(
    messages: Sequence[BudgetMessage],
    *,
    policy: str = "llamaindex",
    settings: Mapping[str, Json] | None = None,
    count: Count,
    count_many: CountMany | None = None,
    encoding: str,
    blocks: Sequence[BlockSpec] = (),
    ids: Sequence[str] | None = None,
    at: int | None = None,
    writes: str = "message",
    times: Sequence[Micros | None] | None = None,
) -> Simulation:
    """Return all that a policy does to a transcript; its findings are left to be found.

    Args:
        messages: Oldest first.
        settings: By the names of `SETTINGS`; what is not there is the policy's own default.
        count_many: Counts many texts at once; every message is counted once.
        encoding: What counts, which also says what is put around each message.
        blocks: Made anew for this run.
        ids: Of each message; None means its 0-based number.
        at: Looks at the prompt after so many messages; None means after all.
        writes: `message` writes each by itself, `turn` all of a user turn at once.
        times: When each was said; None means that nobody knows.

    Raises:
        UsageError: There is no such policy or setting, or a value is out of range.
        Raised: LlamaIndex refuses the settings.
        BlockFailed: The class of a block raised, under a policy that does not go on after it.
    """
    asked = dict(settings or {})
    _check(policy, asked, writes, at, len(messages))
    stop = len(messages) if at is None else at
    names = [str(number) for number in range(stop)] if ids is None else ids[:stop]
    estimates = _estimates(policy, asked, blocks)
    tally, overhead = Tally(count, count_many), overhead_of(encoding)
    chosen = messages[:stop]
    job = made_job(
        chosen,
        ids=names,
        by_turn=writes == "turn",
        real=all_real_tokens(chosen, estimates, overhead, tally),
        settings=asked,
        specs=blocks,
        tally=tally,
        overhead=overhead,
        estimates=estimates,
        times=([None] * len(messages) if times is None else times)[:stop],
        ends=stop == len(messages),
    )
    return _told(policy, encoding, job, POLICIES[policy](job))


def _check(policy: str, settings: Mapping[str, Json], writes: str, at: int | None, total: int) -> None:
    if policy not in POLICIES:
        raise UsageError(f"there is no policy called {policy}", hint=f"take one of {', '.join(POLICIES)}")
    unknown = sorted(settings.keys() - SETTINGS)
    if unknown:
        raise UsageError(f"there is no setting called {unknown[0]}", hint=f"take one of {', '.join(sorted(SETTINGS))}")
    if writes not in WRITES:
        raise UsageError(f"there are no writes by {writes}", hint=f"take {' or '.join(WRITES)}")
    if at is not None and not 0 <= at <= total:
        raise UsageError(f"there is no prompt after {at} messages", hint=f"give a number from 0 to {total}")


def _estimates(policy: str, settings: Mapping[str, Json], blocks: Sequence[BlockSpec]) -> Estimates:
    if policy == "llamaindex":
        return llamaindex_course.settings_of(settings, [spec.name for spec in blocks]).estimates
    return options.estimates(settings)


def _told(policy: str, encoding: str, job: Job, course: Course) -> Simulation:
    found = fates(job, course)
    return Simulation(
        policy=policy,
        encoding=encoding,
        settings=job.settings,
        effective=course.effective,
        clamps=course.clamps,
        fates=found,
        flushes=course.flushes,
        steps=course.steps,
        prompt=course.prompt,
        blocks=course.blocks,
        totals=totals(job, course, found),
        refused=course.refused,
    )
