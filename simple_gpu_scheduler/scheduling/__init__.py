"""Which job starts where, and when: the scheduler, its queues and policies, places, estimates, quarantine. Pure.

Here are the values that it is told and that it answers with.
"""

from typing import NamedTuple

from simple_gpu_scheduler.base.jobs import Job


class Rules(NamedTuple):
    """What holds for every job that does not say otherwise."""

    retries: int = 0
    retry_delay: float = 0
    delay: float = 0


class Dropped(NamedTuple):
    """A job that will never start, and why."""

    job: Job
    reason: str


class Verdict(NamedTuple):
    """What the end of an attempt leads to: another attempt, or the job's end and that of jobs that waited for it."""

    retries: bool
    dropped: tuple[Dropped, ...] = ()


class Begin(NamedTuple):
    """Where a job goes on that was tried before: its next attempt, and how many of the earlier ones do not count."""

    attempt: int = 1
    excused: int = 0


AT_FIRST = Begin()
