"""Which job starts where, and when: the scheduler, its queues and policies, places, estimates, quarantine. Pure.

This file has the values that the scheduler takes and returns.
"""

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.values import NamedTuple


class Rules(NamedTuple):
    """The defaults for jobs without options of their own."""

    retries: int = 0
    retry_delay: float = 0
    delay: float = 0


class Dropped(NamedTuple):
    """A job that will never start, and why."""

    job: Job
    reason: str


class Verdict(NamedTuple):
    """What follows from the end of an attempt: a retry, or the end of the job and of jobs that depend on it."""

    retries: bool
    dropped: tuple[Dropped, ...] = ()


class NextAttempt(NamedTuple):
    """Where a job resumes that was tried before: its next attempt, and how many earlier ones do not count.

    `has_failed`: even if that does not count, since it is tried afresh.
    """

    attempt: int = 1
    excused: int = 0
    has_failed: bool = False


AT_FIRST = NextAttempt()
