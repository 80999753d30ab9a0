"""The measures of a simulated workload, against examples that were reckoned by hand."""

import pytest

from simple_gpu_scheduler.base.jobs import Job, Place
from simple_gpu_scheduler.simulation.measures import Replay, measure, spread
from simple_gpu_scheduler.simulation.simulate import Arrival


def arrival(number: int, at: float, length: float, gpus: int = 1, label: str = "") -> Arrival:
    return Arrival(at, Job(number, b"x", Place(number), gpus=gpus, label=label), length)


class TestTheMeasures:
    """Against examples that were reckoned by hand."""

    def test_of_a_small_workload(self) -> None:
        workload = [arrival(1, 10, 20, label="ann"), arrival(2, 10, 40, 2, "bob"), arrival(3, 20, 5, label="bob")]
        found = measure([Replay(workload, [10, 30, 70])], 2)
        assert found.jobs == 3
        assert found.wait == (pytest.approx(70 / 3), 20, 50, 50, 50)  # 0, 20, 50
        assert found.response == (pytest.approx(135 / 3), 55, 60, 60, 60)  # 20, 60, 55
        assert found.slowdown == (pytest.approx((1 + 1.5 + 5.5) / 3), 1.5, 5.5, 5.5, 5.5)
        assert found.makespan == 75 - 10
        assert found.utilisation == (20 + 80 + 5) / (2 * 65)
        ann, bob = 1, (1.5 + 5.5) / 2
        assert found.fairness == pytest.approx((ann + bob) ** 2 / (2 * (ann**2 + bob**2)))

    def test_the_slowdown_of_a_moments_job_is_bounded(self) -> None:
        assert measure([Replay([arrival(1, 0, 0.001)], [0])], 1).slowdown.max == 1
        assert measure([Replay([arrival(1, 0, 1)], [99])], 1).slowdown.max == 10
        assert measure([Replay([arrival(1, 0, 0)], [0])], 1).utilisation == 0

    def test_of_several_workloads_jobs_are_one_heap_and_makespans_a_mean(self) -> None:
        one = Replay([arrival(1, 0, 10), arrival(2, 0, 10)], [0, 10])
        other = Replay([arrival(1, 0, 100)], [50])
        found = measure([one, other], 1)
        assert found.wait.mean == 20
        assert found.makespan == (20 + 150) / 2
        assert found.utilisation == pytest.approx((1 + 100 / 150) / 2)

    def test_a_percentile_is_what_so_many_do_not_exceed(self) -> None:
        assert spread([*range(100, 0, -1)]) == (50.5, 50, 90, 99, 100)
        assert spread([*range(1, 201)])[1:4] == (100, 180, 198)
        assert spread([7.0]) == (7, 7, 7, 7, 7)
        assert spread([]) == (0, 0, 0, 0, 0)
