"""How sure it is that a policy is better."""

import pytest

from simple_gpu_scheduler.base.jobs import Job, Place
from simple_gpu_scheduler.scheduling.policies.names import parse_policy
from simple_gpu_scheduler.simulation.compare import Site, compare
from simple_gpu_scheduler.simulation.measures import Replay, measure
from simple_gpu_scheduler.simulation.significance import standing
from simple_gpu_scheduler.simulation.simulate import Arrival
from simple_gpu_scheduler.simulation.tune import in_parts, settings, tune


class TestHowSure:
    def test_is_not_claimed_for_few_parts_in_json_either(self) -> None:
        """Two equal halves: no difference between them, and yet they are only two."""
        half = [(job(number, 10 - 0.4 * number), 10 - 0.4 * number) for number in range(1, 21)]
        halves = [
            Arrival(1000.0 * at, each._replace(number=20 * at + each.number), length)
            for at in (0, 1)
            for each, length in half
        ]
        tuned = tuned_of([halves], 1)
        assert tuned.parts == 2
        assert tuned.best.standing.is_surely_less
        assert not tuned.is_sure

    def test_an_error_is_that_of_the_mean_of_the_differences(self) -> None:
        found = standing([90, 80, 70], [100, 100, 100], [10, 10, 10])
        assert (found.wait, found.difference) == (8, -2)
        assert found.error == pytest.approx((2 / 6) ** 0.5)  # of 1, 2 and 3 seconds less
        assert found.is_surely_less
        assert not standing([90], [100], [10]).is_surely_less  # one part tells nothing of chance

    def test_parts_are_ten_or_as_many_as_have_twenty_jobs(self) -> None:
        def parts(jobs: int) -> list[int]:
            workload = [Arrival(n, job(n, 1), 1) for n in range(1, jobs + 1)]
            return [*in_parts([Replay(workload, [each.at for each in workload])]).sizes]

        assert parts(1) == [1]
        assert parts(59) == [29, 30]
        assert parts(1000) == [100] * 10

    def test_labels_and_priorities_are_tried_only_where_there_are_any(self) -> None:
        plain = [Arrival(0, job(1, 1), 1), Arrival(0, job(2, 1), 1)]
        assert not {"fair", "round-robin", "priority"} & {*settings([plain], label)}
        others = [plain[0], Arrival(0, job(2, 1)._replace(label="x", priority=2), 1)]
        assert {"fair", "round-robin", "priority"} <= {*settings([others], label)}
        by_number = settings([plain], lambda each: str(each.number))  # by whatever GPUs are shared
        assert {"fair", "round-robin"} <= {*by_number}


def job(number: int, estimate: float) -> Job:
    return Job(number, b"x", Place(number), time=estimate)


def label(each: Job) -> str:
    return each.label


def tuned_of(workloads: list[list[Arrival]], gpus: int):
    policies = [parse_policy(name, str) for name in settings(workloads, label)]
    results = compare(workloads, policies, Site(gpus))
    return tune([(each.policy, measure(each.simulated, gpus), each.simulated) for each in results])
