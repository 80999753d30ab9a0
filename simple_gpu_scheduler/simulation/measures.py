"""What a simulated workload comes to for those who wait: how long, how unevenly, and how well the GPUs are used. Pure.

A wait is from a job's arrival to its start, a response from its arrival to its end. The slowdown is the response as a
multiple of the length, taken to be at least ten seconds, since for a moment's job any wait is a large multiple.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple

from .simulate import Arrival

_SHORT = 10.0


class Spread(NamedTuple):
    """The mean, and what so many of a hundred do not exceed."""

    mean: float
    p50: float
    p90: float
    p99: float
    max: float


class Measures(NamedTuple):
    """Of one policy on one workload. `fairness` is Jain's index of the users' mean slowdowns: 1 is all alike."""

    jobs: int
    wait: Spread
    response: Spread
    slowdown: Spread
    makespan: float
    utilisation: float
    fairness: float


class Replay(NamedTuple):
    """A workload and when each of its jobs has started."""

    workload: Sequence[Arrival]
    starts: Sequence[float]

    def waits(self) -> list[float]:
        """Of each job, in the order of the workload."""
        return [start - each.at for each, start in zip(self.workload, self.starts, strict=True)]


def measure(simulated: Sequence[Replay], gpus: int) -> Measures:
    """Of several workloads all jobs together, and the mean of what can be told of each alone."""
    waits = [wait for each in simulated for wait in each.waits()]
    jobs = [job for each in simulated for job in each.workload]
    responses = [wait + job.duration for job, wait in zip(jobs, waits, strict=True)]
    slowdowns = [max(1.0, response / max(job.duration, _SHORT)) for job, response in zip(jobs, responses, strict=True)]
    return Measures(
        len(jobs),
        spread(waits),
        spread(responses),
        spread(slowdowns),
        _mean([_makespan(each) for each in simulated]),
        _mean([_utilisation(each, gpus) for each in simulated]),
        _fairness(zip((job.job.label for job in jobs), slowdowns, strict=True)),
    )


def spread(values: Sequence[float]) -> Spread:
    """Of no values, nothing."""
    if not values:
        return Spread(0.0, 0.0, 0.0, 0.0, 0.0)
    ordered = sorted(values)
    p50, p90, p99 = (ordered[ceil(len(ordered) * percent / 100) - 1] for percent in (50, 90, 99))
    return Spread(_mean(ordered), p50, p90, p99, ordered[-1])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _makespan(simulated: Replay) -> float:
    """From the first arrival to the last end."""
    jobs, starts = simulated
    if not jobs:
        return 0.0
    return max(start + job.duration for job, start in zip(jobs, starts, strict=True)) - jobs[0].at


def _utilisation(simulated: Replay, gpus: int) -> float:
    """The share of all that the GPUs could have done meanwhile."""
    work = sum(job.duration * job.job.gpus for job in simulated.workload)
    makespan = _makespan(simulated)
    return work / (gpus * makespan) if makespan else 0.0


def _fairness(slowdowns: Iterable[tuple[str, float]]) -> float:
    by_user: defaultdict[str, list[float]] = defaultdict(list)
    for user, slowdown in slowdowns:
        by_user[user].append(slowdown)
    means = [_mean(each) for each in by_user.values()]
    return sum(means) ** 2 / (len(means) * sum(mean * mean for mean in means)) if means else 1.0
