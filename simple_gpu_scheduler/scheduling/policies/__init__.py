"""Policies: in which order waiting jobs start.

A policy compares the first of each queue: jobs that need the same, take about as long and, where it asks for that, have
the same label stand in one queue, by their rank. So a decision costs the same with ten jobs waiting and with a million.
It knows nothing of GPUs, nor of where the length of a job is known from.
"""

from collections.abc import Callable, Mapping

from simple_gpu_scheduler.base.jobs import Job

from .base import Heads, Kind, Load, Policy, Ranked, WaitingJob

__all__ = ["MAY_STARVE", "POLICIES", "Heads", "Kind", "Load", "Policy", "WaitingJob", "aged"]

# One point of `priority=` under `aged` is worth so many seconds of waiting.
_POINT = 3600.0
# What counts for a job of which nobody knows how long it takes, where the longest are to be first, and at most.
_UNKNOWN_IS_LONG = 86_400.0
_LONGEST = 30 * 86_400.0


def aged(ageing: float = 1.0) -> Policy:
    """Who came first, but for so many times his own length, and with `priority=` an hour a point."""

    def rank(job: Job, since: float, length: float) -> float:
        return since + ageing * length - _POINT * job.priority

    return Ranked(rank, by_time=True)


def _fifo() -> Policy:
    return Ranked(lambda _job, _since, _length: 0.0, by_time=False)


def _priority() -> Policy:
    return Ranked(lambda job, _since, _length: -job.priority, by_time=False)


def _shortest() -> Policy:
    return Ranked(lambda _job, _since, length: length, by_time=True)


def _longest() -> Policy:
    # Not the length alone: in a stream the short ones would wait for ever. Of a batch all came at once.
    return Ranked(lambda _job, since, length: since - min(length or _UNKNOWN_IS_LONG, _LONGEST), by_time=True)


def _highest_ratio() -> Policy:
    from .scored import HighestRatio  # noqa: PLC0415 - most runs need neither this nor the next

    return HighestRatio()


def _fair() -> Policy:
    from .shared import Fair  # noqa: PLC0415 - as above

    return Fair()


def _round_robin() -> Policy:
    from .shared import RoundRobin  # noqa: PLC0415 - as above

    return RoundRobin()


POLICIES: Mapping[str, Callable[[], Policy]] = {
    "fifo": _fifo,
    "priority": _priority,
    "aged": aged,
    "sjf": _shortest,
    "hrrn": _highest_ratio,
    "fair": _fair,
    "lpt": _longest,
    "round-robin": _round_robin,
}
# Under these a job may wait for ever, while others that came later keep starting.
MAY_STARVE = ("priority", "sjf")
