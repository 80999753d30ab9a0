"""Measures of a simulated workload: waits, their fairness, and how well the GPUs are used. Pure.

The wait is from a job's arrival to its start, the response from its arrival to its end. The slowdown is the response as
a multiple of the length, taken as at least ten seconds, since for a very short job any wait is a large multiple.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import ceil

from simple_gpu_scheduler.base.values import NamedTuple

from .simulate import Workload

_SHORT = 10.0


class Spread(NamedTuple):
    """The mean and percentiles."""

    mean: float
    p50: float
    p90: float
    p99: float
    max: float


class Measures(NamedTuple):
    """Measures of one policy. `fairness` is Jain's index of the users' mean slowdowns: 1 if all are equal."""

    jobs: int
    wait: Spread
    response: Spread
    slowdown: Spread
    makespan: float
    utilisation: float
    fairness: float


class Replay(NamedTuple):
    """A workload and the start of each job."""

    workload: Workload
    starts: Sequence[float]

    def waits(self) -> list[float]:
        """The wait of each job, in the order of the workload."""
        return [start - each.at for each, start in zip(self.workload, self.starts, strict=True)]


def measure(simulated: Sequence[Replay], gpus: int) -> Measures:
    """Over the jobs of all workloads; measures of whole workloads are averaged."""
    waits = [wait for each in simulated for wait in each.waits()]
    jobs = [job for each in simulated for job in each.workload]
    responses = [wait + job.length for job, wait in zip(jobs, waits, strict=True)]
    slowdowns = [max(1.0, response / max(job.length, _SHORT)) for job, response in zip(jobs, responses, strict=True)]
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
    """The spread of the values; zeros if there are none."""
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
    return max(start + job.length for job, start in zip(jobs, starts, strict=True)) - jobs[0].at


def _utilisation(simulated: Replay, gpus: int) -> float:
    """The share of the available GPU time that was used."""
    work = sum(job.length * job.job.gpus for job in simulated.workload)
    makespan = _makespan(simulated)
    return work / (gpus * makespan) if makespan else 0.0


def _fairness(slowdowns: Iterable[tuple[str, float]]) -> float:
    by_user: defaultdict[str, list[float]] = defaultdict(list)
    for user, slowdown in slowdowns:
        by_user[user].append(slowdown)
    means = [_mean(each) for each in by_user.values()]
    return sum(means) ** 2 / (len(means) * sum(mean * mean for mean in means)) if means else 1.0
