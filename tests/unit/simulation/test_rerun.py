"""A past run, simulated with more jobs on each GPU."""

import pytest

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Place
from simple_gpu_scheduler.events import JobEnded, JobsRead, JobStarted
from simple_gpu_scheduler.journal.run_state import RunState, read_state
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.policies.names import Chosen
from simple_gpu_scheduler.simulation.rerun import rerun
from tests.support.runs import FIRST, began, journal_of

LENGTH = 600.0


def run_of(jobs: int, gpus: int) -> RunState:
    happened: list[object] = [began(FIRST)]
    for number in range(1, jobs + 1):
        job = Job(number, b"train", Place(number))
        attempt = Attempt(job, 1, (str(number % gpus),), (number % gpus,))
        happened += [JobsRead([job]), JobStarted(attempt), JobEnded(attempt, SUCCESS, 1000.0, LENGTH, True)]
    return read_state(journal_of(*happened))  # type: ignore[arg-type]


@pytest.mark.parametrize(("jobs_per_gpu", "rounds"), [(1, 6), (2, 3), (3, 2), (9, 1)])
def test_more_jobs_on_a_gpu_end_a_queue_earlier(jobs_per_gpu: int, rounds: int) -> None:
    fifo = Chosen("fifo", POLICIES["fifo"])
    assert rerun(run_of(12, 2), fifo, jobs_per_gpu) == pytest.approx(rounds * LENGTH, abs=60)
