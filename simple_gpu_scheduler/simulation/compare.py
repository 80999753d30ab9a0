"""Policies side by side on the same workloads: what each comes to. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from simple_gpu_scheduler.scheduling.estimates import Estimates
from simple_gpu_scheduler.scheduling.policies.names import Chosen
from simple_gpu_scheduler.scheduling.queues import Label
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits

from .measures import Replay
from .simulate import Arrival, simulate


class Site(NamedTuple):
    """Where it is simulated: on so many GPUs, by which estimates, and with whose label."""

    gpus: int
    estimates: Callable[[], Estimates] = Estimates
    label: Label = lambda job: job.label


class Result(NamedTuple):
    """What a policy made of each workload."""

    policy: str
    simulated: Sequence[Replay]


def compare(workloads: Sequence[Sequence[Arrival]], policies: Iterable[Chosen], site: Site) -> Iterator[Result]:
    """One after the other, as they are asked for."""
    for policy in policies:
        yield Result(policy.name, [Replay(workload, replay(workload, policy, site)) for workload in workloads])


def replay(workload: Sequence[Arrival], policy: Chosen, site: Site) -> Sequence[float]:
    """When each job starts, with a scheduler that begins anew."""
    gpus = tuple(map(str, range(site.gpus)))
    scheduler = Scheduler(Limits(gpus), policy.make(), estimates=site.estimates(), label=site.label)
    return simulate(workload, scheduler, gpus)
