"""The newest messages that fit, counted honestly; what is before them is gone."""

from memcli.budget.course import Course, Job, windowed
from memcli.budget.options import whole
from memcli.budget.settings import DEFAULT_TOKEN_LIMIT


def course(job: Job) -> Course:
    """Return the course of a policy that keeps as many of the newest messages as the limit holds, each whole.

    A message that is larger than the limit leaves nothing in the window, itself included.

    Raises:
        UsageError: The limit is no whole number above zero.
    """
    limit = whole(job.settings, "token_limit", DEFAULT_TOKEN_LIMIT, least=1)
    room = limit - job.overhead.reply
    starts = []
    start = done = held = 0
    for stop in job.writes:
        held += sum(job.real[done:stop])
        while start < stop and held > room:
            held -= job.real[start]
            start += 1
        starts.append(start)
        done = stop
    return windowed(
        job,
        starts,
        reason=f"the newest messages that fit in {limit} tokens begin after it",
        effective={"token_limit": limit},
        limit=limit,
        policy="token",
    )
