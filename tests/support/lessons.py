"""Queues of the published experiment, and how policies do on them."""

from random import Random

from simple_gpu_scheduler.scheduling.policies.names import Chosen
from simple_gpu_scheduler.simulation.compare import Site, replay
from simple_gpu_scheduler.simulation.learn.lessons import Lessons
from simple_gpu_scheduler.simulation.measures import Replay
from simple_gpu_scheduler.simulation.significance import standing
from tests.support.queues import arrival


def queue(rng, gap=25.0, widths=(1,), size=20):
    """One of the published experiment: exponential gaps, and the logarithm of the run time uniform from 1 to 3."""
    at, jobs = 0.0, []
    for number in range(1, size + 1):
        at += rng.expovariate(1 / gap)
        jobs.append(arrival(number, at, 10 ** rng.uniform(1, 3), rng.choice(widths)))
    return jobs


def queues(seed, count, **shape):
    rng = Random(seed)
    return [queue(rng, **shape) for _ in range(count)]


def lessons(seed, count, **shape):
    """A third of them to choose by."""
    some = queues(seed, count, **shape)
    return Lessons(some[count // 3 :], some[: count // 3])


def standings_of(workloads, policies, other, gpus):
    """How each policy does, against one of them, on the same workloads."""
    sizes = [len(workload) for workload in workloads]
    waits = {
        name: [sum(Replay(each, replay(each, Chosen(name, make), Site(gpus))).waits()) for each in workloads]
        for name, make in policies.items()
    }
    return {name: standing(mine, waits[other], sizes) for name, mine in waits.items()}
