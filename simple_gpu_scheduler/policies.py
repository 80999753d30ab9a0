"""Policies: functions that rank waiting jobs. The smallest rank starts first; equal ranks in the order of the input.

A policy sees one job and nothing else, so that its rank never changes while the job waits.
"""

from collections.abc import Callable, Mapping

from .jobs import Job

Rank = Callable[[Job], float]


def fifo(_job: Job) -> float:
    """The order of the input."""
    return 0


def priority(job: Job) -> float:
    """The largest `priority=` first."""
    return -job.priority


POLICIES: Mapping[str, Rank] = {"fifo": fifo, "priority": priority}
