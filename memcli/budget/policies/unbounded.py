"""Everything, always: what the others are compared with."""

from memcli.budget.course import Course, Job, windowed
from memcli.budget.options import whole


def course(job: Job) -> Course:
    """Return the course of a policy that keeps every message; a limit is compared with and never enforced.

    Raises:
        UsageError: The limit is no whole number above zero.
    """
    limit = whole(job.settings, "token_limit", 0, least=1) if "token_limit" in job.settings else None
    return windowed(
        job,
        [0] * len(job.writes),
        reason="nothing ever leaves",
        effective={"token_limit": limit},
        limit=limit,
        policy="unbounded",
    )
