"""Readings of a GPU become curves and figures of attempts."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.measurement import CurvePoint, Figures, GpuUse
from simple_gpu_scheduler.report.numbers import Times
from simple_gpu_scheduler.report.prometheus import readings
from simple_gpu_scheduler.report.prometheus.readings import ReadGpu, crowded_times, cut, gpu_of, interval_of, joules

GIB = 2.0**30


def read(*busy: float, every: float = 10, start: float = 0, **more: dict[float, float]) -> ReadGpu:
    """The first reading is at `start`."""
    return gpu_of({"utilization": {start + at * every: value for at, value in enumerate(busy)}, **more}, {})


def use(gpu: ReadGpu, start: float, end: float, crowded: tuple[Times, ...] = ()) -> GpuUse:
    return readings.use_of("0", gpu, cut(gpu, start, end), (start, end), crowded)


class TestCurve:
    def test_a_reading_is_about_the_time_before_it(self) -> None:
        points = cut(read(10, 20, 30, 40), 5, 25)
        assert [(each.at, each.seconds, each.means[0]) for each in points] == [(5, 5, 20), (10, 10, 30)]

    def test_of_a_long_gap_only_some_is_known(self) -> None:
        gpu = gpu_of({"utilization": dict.fromkeys((0.0, 10.0, 20.0, 500.0, 510.0), 50.0)}, {})
        assert [(each.at, each.seconds) for each in cut(gpu, 15, 505)] == [(15, 5), (475, 25)]

    def test_a_reading_after_its_end_is_not_the_attempts(self) -> None:
        assert cut(read(0, 100), 1, 9.9) == cut(read(0, 100), 10, 20) == []
        assert [each.means[0] for each in cut(read(0, 100), 1, 10)] == [100]

    def test_quantities_that_a_gpu_does_not_tell_are_unknown(self) -> None:
        gpu = gpu_of({"power": {0.0: 100.0, 10.0: 200.0}}, {})
        assert cut(gpu, 0, 10) == [CurvePoint(0, 10, (None, None, None, None, 200), (None, None, None, None, 200))]

    def test_the_maximum_may_be_higher_than_the_mean(self) -> None:
        gpu = gpu_of({"utilization": {0.0: 5.0, 10.0: 20.0}}, {"utilization": {10.0: 90.0}})
        assert [(each.means[0], each.maxima[0]) for each in gpu.points] == [(5, 5), (20, 90)]

    @pytest.mark.parametrize(
        ("times", "interval"), [([], 15), ([7], 15), ([0, 30], 30), ([0, 12, 28, 44, 900], 16), ([0, 9000], 300)]
    )
    def test_the_interval_is_the_usual_one(self, times: list[float], interval: float) -> None:
        assert interval_of(times) == interval

    @given(st.sets(st.integers(0, 1000)), st.lists(st.integers(0, 1000), min_size=2, max_size=8, unique=True))
    def test_attempts_that_follow_each_other_never_have_the_same_moment(self, at: set[int], cuts: list[int]) -> None:
        gpu = gpu_of({"utilization": {float(each): 1.0 for each in at}}, {})
        cuts.sort()
        pieces = [point for start, end in pairwise(cuts) for point in cut(gpu, start, end)]
        assert all(each.seconds > 0 for each in pieces)
        assert all(one.at + one.seconds <= other.at for one, other in pairwise(pieces))
        assert all(cuts[0] <= each.at and each.at + each.seconds <= cuts[-1] for each in pieces)


class TestFigures:
    def test_they_are_those_of_the_curve(self) -> None:
        found = use(read(0, *[0] * 2, *[80] * 7, 100), 0, 100)
        assert found.seconds == 100
        assert found.utilization == Figures(66, 100, 100)
        assert found.idle == 20
        assert use(read(0, *[10] * 96, *[90] * 4), 0, 1000).utilization == Figures(pytest.approx(13.2), 90, 10)

    @pytest.mark.parametrize(("low", "p95"), [(95, 10), (94, 90)])
    def test_of_the_time_a_twentieth_may_be_above_the_95th_percentile(self, low: int, p95: float) -> None:
        found = use(read(0, *[10] * low, *[90] * (100 - low), every=1), 0, 100).utilization
        assert found is not None
        assert found.p95 == p95

    def test_the_mean_is_over_time(self) -> None:
        gpu = gpu_of({"utilization": {0.0: 9.0, 10.0: 100.0, 30.0: 25.0}}, {})
        assert use(gpu, 0, 30).utilization == Figures(50, 100, 100)

    def test_memory_is_that_of_the_gpu(self) -> None:
        times = (0.0, 10.0, 20.0)
        used, free = dict.fromkeys(times, 10 * GIB), dict.fromkeys(times, 70 * GIB)
        found = use(read(1, 1, 1, memory=used, free=free), 0, 20)
        assert found.memory == found.device_memory == Figures(10 * GIB, 10 * GIB)
        assert (found.total_memory, found.of_gpu) == (80 * GIB, ["memory"])
        assert use(read(1, 1, 1, memory=used, total={0.0: 81 * GIB}), 0, 20).total_memory == 81 * GIB
        assert use(read(1, 1, 1, memory=used), 0, 20).total_memory is None
        assert use(read(1, 1, 1), 0, 20).of_gpu == []

    def test_while_others_were_there_all_is_the_gpus(self) -> None:
        power = dict.fromkeys((0.0, 10.0, 20.0), 100.0)
        found = use(read(1, 1, 1, power=power), 0, 20, ((-100, -50), (5, 12), (14, 15), (19, 30), (40, 50)))
        assert found.shared == 7 + 1 + 1
        assert found.of_gpu == ["energy", "power", "utilization"]
        assert use(read(1, 1, 1, power=power), 0, 20, ((-100, 0), (20, 50))).shared == 0
        assert use(read(1, 1, 1, power=power), 0, 20, ((4, 6), (8, 9))).shared == 3

    def test_without_utilisation_nothing_is_idle(self) -> None:
        found = use(gpu_of({"temperature": {0.0: 50.0, 10.0: 60.0}}, {}), 0, 10)
        assert (found.utilization, found.idle, found.energy, found.temperature) == (None, None, None, Figures(60, 60))


class TestEnergy:
    def test_it_is_the_difference_of_the_counter(self) -> None:
        gpu = read(1, 1, 1, energy={0.0: 1000.0, 10.0: 2000.0, 20.0: 4000.0}, power={10.0: 7.0})
        assert joules(gpu, 0, 20) == 3000
        assert joules(gpu, 5, 15) == 500 + 1000
        assert joules(gpu, -50, 50) == 3000
        assert joules(gpu, 20, 50) is joules(gpu, -50, 0) is None
        found = use(gpu, 0, 20)
        assert (found.energy, found.by_power) == (3000, False)

    def test_a_counter_that_began_anew_goes_on_from_zero(self) -> None:
        gpu = read(energy={0.0: 9000.0, 10.0: 9500.0, 20.0: 300.0, 30.0: 800.0})
        assert joules(gpu, 0, 30) == 500 + 300 + 500

    def test_two_exporters_that_read_at_different_times_count_nothing_twice(self) -> None:
        gpu = read(energy={0.0: 1000.0, 10.0: 1100.0, 11.0: 1080.0, 20.0: 1200.0, 21.0: 1180.0, 30.0: 1300.0})
        assert joules(gpu, 0, 30) == 300

    def test_a_gap_is_the_attempts_only_if_it_is_all_in_it(self) -> None:
        column = {0.0: 0.0, 10.0: 10.0, 20.0: 20.0, 1000.0: 5000.0, 1010.0: 5010.0}
        gpu = read(1, 1, 1, energy=column)
        assert joules(gpu, 0, 1010) == 5010
        assert joules(gpu, 0, 500) == 20

    def test_without_a_counter_it_is_power_over_time(self) -> None:
        found = use(read(1, 1, 1, power={10.0: 100.0, 20.0: 300.0}), 0, 20)
        assert (found.energy, found.by_power) == (4000, True)

    @given(st.lists(st.floats(0, 1e6), min_size=2, max_size=30), st.lists(st.integers(0, 300), min_size=1))
    def test_of_attempts_that_follow_each_other_nothing_is_lost(self, steps: list[float], cuts: list[int]) -> None:
        column, total = {}, 0.0
        for at, each in enumerate(steps):
            total += each
            column[10.0 * at] = total
        end = 10.0 * (len(steps) - 1)
        gpu = read(*steps, energy=column)
        edges = [0.0, *sorted(min(end, each) for each in cuts), end]
        parts = [joules(gpu, start, until) or 0.0 for start, until in pairwise(edges)]
        assert sum(parts) == pytest.approx(joules(gpu, 0, end), abs=0.01)


@pytest.mark.parametrize(
    ("attempts", "crowded"),
    [
        ([], []),
        ([(0, 10), (10, 20)], []),
        ([(5, 15), (0, 10)], [(5, 10)]),
        ([(0, 10), (2, 4), (3, 12), (11, 20)], [(2, 10), (11, 12)]),
    ],
)
def test_a_gpu_is_crowded_while_two_attempts_are_on_it(attempts: list[Times], crowded: list[Times]) -> None:
    assert crowded_times(attempts) == crowded


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=8))
def test_crowded_times_are_those_of_a_plain_count(attempts: list[tuple[int, int]]) -> None:
    times = [(float(start), float(start + length)) for start, length in attempts]
    found = crowded_times(times)
    for at in range(45):
        count = sum(start <= at < end for start, end in times)
        assert any(start <= at < end for start, end in found) == (count > 1)
