"""How long a past run would have taken with more jobs on each of its GPUs.

It assumes that jobs take as long together as they did alone; whoever asks knows whether that is likely.
"""

from simple_gpu_scheduler.journal.run_state import RunState
from simple_gpu_scheduler.scheduling.policies.names import Chosen

from .compare import Site, replay
from .measures import Replay, measure
from .scenario import jobs_of
from .workloads.jobs import arrivals


def rerun(state: RunState, policy: Chosen, jobs_per_gpu: int) -> float:
    """The seconds from the first job's arrival to the last end, with so many jobs on a GPU."""
    gpus = len({gpu for each in state.jobs.values() for gpu in each.gpus})
    workload, _ = arrivals(jobs_of(state), gpus, "past")
    starts = replay(workload, policy, Site(gpus, jobs_per_gpu=jobs_per_gpu))
    return measure([Replay(workload, starts)], gpus).makespan
