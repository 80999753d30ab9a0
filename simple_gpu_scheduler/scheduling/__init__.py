"""Values: how jobs are tried, and what follows from the end of an attempt."""

from typing import NamedTuple

from simple_gpu_scheduler.base.jobs import Job


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


class Begin(NamedTuple):
    """Where a job resumes that was tried before: its next attempt, and how many earlier ones do not count."""

    attempt: int = 1
    excused: int = 0


AT_FIRST = Begin()
