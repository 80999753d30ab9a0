"""Policies compared on the same workloads. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from simple_gpu_scheduler.base.values import NamedTuple
from simple_gpu_scheduler.scheduling.estimates import Estimates
from simple_gpu_scheduler.scheduling.policies.names import Chosen
from simple_gpu_scheduler.scheduling.queues import Label
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits

from .measures import Replay
from .simulate import Workload, simulate


class Site(NamedTuple):
    """Where workloads are simulated: the number of GPUs, the estimates, the label, and how many jobs share a GPU."""

    gpus: int
    estimates: Callable[[], Estimates] = Estimates
    label: Label = lambda job: job.label
    jobs_per_gpu: int = 1


class Result(NamedTuple):
    """The result of a policy on each workload."""

    policy: str
    simulated: Sequence[Replay]


def compare(workloads: Sequence[Workload], policies: Iterable[Chosen], site: Site) -> Iterator[Result]:
    """The results of the policies, computed lazily."""
    for policy in policies:
        yield Result(policy.name, [Replay(workload, replay(workload, policy, site)) for workload in workloads])


def replay(workload: Workload, policy: Chosen, site: Site) -> Sequence[float]:
    """When each job starts, with a new scheduler."""
    gpus = tuple(map(str, range(site.gpus)))
    scheduler = Scheduler(Limits(gpus, site.jobs_per_gpu), policy.make(), estimates=site.estimates(), label=site.label)
    return simulate(workload, scheduler, gpus)
