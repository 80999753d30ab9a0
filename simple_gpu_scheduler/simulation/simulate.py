"""Runs a workload under a virtual clock, with the same scheduler that runs real jobs: when does each job start?

It does not know where workloads come from or what the result is for. Pure.
"""

from array import array
from collections.abc import Sequence
from heapq import heappop, heappush

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Place
from simple_gpu_scheduler.base.values import NamedTuple
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Room

_NEVER = float("inf")
_NO_ATTEMPT = Attempt(Job(0, b"", Place(0)), 0, (), ())


class Arrival(NamedTuple):
    """A job, its arrival, and its true length, which the scheduler does not get."""

    at: float
    job: Job
    length: float


Workload = Sequence[Arrival]


def simulate(workload: Workload, scheduler: Scheduler, gpus: Sequence[str]) -> "array[float]":
    """When each job starts. The jobs of the workload must be numbered from 1 and sorted by arrival.

    Nothing else uses the GPUs, and all jobs succeed. Every job must fit.
    """
    rooms = dict.fromkeys(gpus, Room())
    starts = array("d", [_NEVER]) * len(workload)
    ends: list[tuple[float, int, Attempt]] = [
        (_NEVER, 0, _NO_ATTEMPT)
    ]  # so that there is a next end, and it is the last
    add, end, choose, start = scheduler.add, scheduler.end, scheduler.next, scheduler.start
    coming = iter([*workload, Arrival(_NEVER, _NO_ATTEMPT.job, 0)])
    next_one = next(coming)
    while (now := min(next_one.at, ends[0][0])) < _NEVER:
        while ends[0][0] <= now:
            end(heappop(ends)[2], SUCCESS, now)
        while next_one.at <= now:
            add(next_one.job, now)
            next_one = next(coming)
        while choice := choose(now, rooms):
            start(choice, now)
            number = choice.waiting.number
            starts[number - 1] = now
            heappush(ends, (now + workload[number - 1].length, number, choice.attempt))
    return starts
