"""Policies: the order in which waiting jobs start.

A policy compares the first job of each queue: jobs with the same needs, about the same length and, if the policy asks
for it, the same label share a queue, ordered by rank. So a decision costs the same with ten waiting jobs and a million.
It knows nothing of GPUs, nor how the length of a job is known.
"""

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.values import Callable, Mapping

from .base import Heads, Kind, Load, Policy, Ranked, WaitingJob

__all__ = ["MAY_STARVE", "POLICIES", "Heads", "Kind", "Load", "Policy", "WaitingJob", "aged"]

# Under `aged`, one point of `priority=` is worth this many seconds of waiting.
_POINT = 3600.0
# The length assumed for jobs of unknown length, where the longest start first; also the largest that counts.
_UNKNOWN_IS_LONG = 86_400.0
_LONGEST = 30 * 86_400.0


def aged(ageing: float = 1.0) -> Policy:
    """By arrival plus `ageing` times the length, smallest first; each point of `priority=` counts as an hour."""

    def rank(job: Job, since: float, length: float) -> float:
        return since + ageing * length - _POINT * job.priority

    return Ranked(rank, by_length=True)


def _fifo() -> Policy:
    return Ranked(lambda _job, _since, _length: 0.0, by_length=False)


def _priority() -> Policy:
    return Ranked(lambda job, _since, _length: -job.priority, by_length=False)


def _shortest() -> Policy:
    return Ranked(lambda _job, _since, length: length, by_length=True)


def _longest() -> Policy:
    # Not the length alone: in a stream the short ones would wait forever. A batch arrives all at once.
    return Ranked(lambda _job, since, length: since - min(length or _UNKNOWN_IS_LONG, _LONGEST), by_length=True)


# Most runs need none of these, and loading them takes a millisecond of each start.


def _highest_ratio() -> Policy:
    from .scored import HighestRatio  # noqa: PLC0415 - see above

    return HighestRatio()


def _fair() -> Policy:
    from .shared import Fair  # noqa: PLC0415 - see above

    return Fair()


def _round_robin() -> Policy:
    from .shared import RoundRobin  # noqa: PLC0415 - see above

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
# Under these a job may wait forever while later ones keep starting.
MAY_STARVE = ("priority", "sjf")
