"""The last messages, by number or by time, whatever they cost and whatever they belong to."""

from collections.abc import Iterator

from memcli.budget.course import Course, Job, windowed
from memcli.budget.options import number, whole
from memcli.errors import UsageError
from memcli.facts import Json

DEFAULT_DEPTH = 20
SECONDS = {"days": 86_400, "hours": 3_600}
MICROS = 1_000_000


def course(job: Job) -> Course:
    """Return the course of a policy that keeps the last `depth` messages, or those of the last `days` or `hours`.

    A limit is compared with and never enforced.

    Raises:
        UsageError: More than one of the three is given, a value is out of range, or no message has a time.
    """
    given = [name for name in ("depth", *SECONDS) if name in job.settings]
    if len(given) > 1:
        raise UsageError(f"a window has either {given[0]} or {given[1]}", hint="give one of depth, days and hours")
    limit = whole(job.settings, "token_limit", 0, least=1) if "token_limit" in job.settings else None
    unit = given[0] if given else "depth"
    value: Json
    if unit == "depth":
        value = depth = whole(job.settings, "depth", DEFAULT_DEPTH)
        starts = [max(0, stop - depth) for stop in job.writes]
        words = f"the last {depth} messages"
    else:
        value = span = number(job.settings, unit, 0.0)
        starts = list(_recent(job, round(span * SECONDS[unit] * MICROS)))
        words = f"the last {span:g} {unit}"
    return windowed(
        job,
        starts,
        reason=f"older than {words}",
        effective={unit: value, "token_limit": limit},
        limit=limit,
        policy="sliding",
    )


def _recent(job: Job, span: int) -> Iterator[int]:
    """Yield after each write the first message that is less than the span older than the newest.

    A message without a time, or with an earlier one than those before it, was said when the newest before it was;
    what stands before the first that has a time was said with that one.

    Raises:
        UsageError: No message has a time.
    """
    known = [time for time in job.times if time is not None]
    if job.messages and not known:
        raise UsageError("no message of the transcript has a time", hint="give depth, a number of messages, instead")
    times = []
    newest = known[0] if known else 0
    for time in job.times:
        newest = newest if time is None else max(newest, time)
        times.append(newest)
    start = 0
    for stop in job.writes:
        while start < stop and times[stop - 1] - times[start] >= span:
            start += 1
        yield start
