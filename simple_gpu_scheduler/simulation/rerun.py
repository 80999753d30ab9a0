"""How long a past run would have taken with more jobs on each of its GPUs.

It assumes that jobs take as long together as they did alone; whoever asks knows whether that is likely.
"""

from collections.abc import Callable

from simple_gpu_scheduler.journal.run_state import RunState
from simple_gpu_scheduler.scheduling.policies.names import Chosen

from .compare import Site, replay
from .measures import Replay, measure
from .scenario import jobs_of
from .workloads.jobs import arrivals


def rerun(state: RunState, policy: Chosen) -> Callable[[int], float]:
    """A function from the number of jobs on a GPU to the seconds from the first job's arrival to the last end."""
    gpus = len({gpu for each in state.jobs.values() for gpu in each.gpus})
    workload, _ = arrivals(jobs_of(state), gpus, "past")

    def seconds(jobs_per_gpu: int) -> float:
        site = Site(gpus, jobs_per_gpu=jobs_per_gpu)
        return measure([Replay(workload, replay(workload, policy, site))], gpus).makespan

    return seconds
