"""Each interval between two readings of a GPU is charged to the attempts that were on it."""

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import Key
from simple_gpu_scheduler.base.measurement import GpuUse
from simple_gpu_scheduler.measurements import GpuSample, Meters
from simple_gpu_scheduler.measurements.accounts import GpuAccounts

ONE, OTHER = (1, 1), (2, 1)
GIB = 2**30


def reading(at: float, held: dict[Key, int] | None = None, **meters: object) -> GpuSample:
    return GpuSample(at, Meters(**meters), {} if held is None else held)  # type: ignore[arg-type]


def use_of(samples: Iterable[GpuSample], began: float = 0.0, ended: float = 1e9) -> GpuUse:
    accounts = GpuAccounts("0")
    accounts.begin(ONE, began)
    accounts.end(ONE, ended)
    for sample in samples:
        accounts.feed(sample)
    closed = accounts.close(ONE)
    assert closed
    return closed[0]


class TestStates:
    def test_the_utilisation_has_a_mean_a_maximum_and_a_percentile(self) -> None:
        use = use_of(reading(at, utilization=100 if at > 95 else 10) for at in range(101))
        assert use.utilization
        assert use.utilization.mean == pytest.approx(14.5)
        assert (use.utilization.max, use.utilization.p95, use.seconds) == (100, 10, 100)

    def test_time_at_zero_is_counted(self) -> None:
        assert use_of(reading(at, utilization=0 if at <= 7 else 50) for at in range(11)).idle == 7

    def test_what_a_gpu_does_not_tell_is_absent_and_not_zero(self) -> None:
        use = use_of(reading(at, power=100.0) for at in range(3))
        assert (use.utilization, use.idle, use.temperature, use.throttled, use.clock) == (None,) * 5
        assert (use.traffic, use.xids, use.memory_copy) == ({}, {}, None)

    def test_seconds_of_throttling_are_counted_by_reason(self) -> None:
        use = use_of(reading(at, throttled=("heat",) if at > 6 else ()) for at in range(11))
        assert use.throttled == {"heat": 4}
        assert use_of(reading(at, throttled=()) for at in range(3)).throttled == {}

    def test_a_gap_of_a_driver_that_hung_is_not_made_up(self) -> None:
        use = use_of([reading(0, utilization=0), reading(1, utilization=0), reading(61, utilization=0)])
        assert use.idle == use.seconds == 3.5

    def test_a_reading_that_is_mostly_of_the_attempt_before_says_nothing_of_this_one(self) -> None:
        use = use_of([reading(0, utilization=99), reading(1, utilization=99), reading(2, utilization=5)], began=0.9)
        assert use.utilization
        assert use.utilization.max == 5

    def test_the_xid_errors_are_counted(self) -> None:
        assert use_of([reading(0), reading(1, xids=(79, 31)), reading(2, xids=(31,))]).xids == {"79": 1, "31": 2}


class TestMemory:
    def test_it_is_that_of_the_own_processes(self) -> None:
        use = use_of(reading(at, {ONE: at * GIB}, used=9 * GIB, total=80 * GIB) for at in range(4))
        assert use.memory
        assert use.device_memory
        assert (use.memory.max, use.device_memory.max, use.total_memory) == (3 * GIB, 9 * GIB, 80 * GIB)
        assert use.of_gpu == ()

    def test_where_that_is_not_told_it_is_the_gpus_and_marked_so(self) -> None:
        use = use_of(GpuSample(float(at), Meters(used=9 * GIB)) for at in range(4))
        assert use.memory
        assert use.memory.max == 9 * GIB
        assert use.of_gpu == ("memory",)

    def test_a_process_that_just_ended_does_not_make_it_the_gpus(self) -> None:
        readings = [reading(float(at), {ONE: GIB}, used=9 * GIB) for at in range(4)]
        use = use_of([*readings, GpuSample(4.0, Meters(used=9 * GIB))])
        assert use.memory
        assert (use.memory.max, use.of_gpu) == (GIB, ())


class TestEnergy:
    def test_it_is_what_the_counter_says(self) -> None:
        use = use_of(reading(at, energy=5000 + 250.0 * at, power=1.0) for at in range(11))
        assert (use.energy, use.by_power) == (2500, False)

    def test_without_a_counter_it_is_power_over_time(self) -> None:
        use = use_of(reading(at, power=100.0 + 10 * at) for at in range(11))
        assert (use.energy, use.by_power) == (pytest.approx(1500), True)

    def test_a_counter_that_begins_anew_costs_nothing_and_adds_nothing(self) -> None:
        counts = [5000, 5100, 100, 200]
        use = use_of(reading(at, energy=count, power=100.0) for at, count in enumerate(counts))
        assert (use.energy, use.by_power) == (300, False)

    def test_the_last_part_is_charged_up_to_the_end(self) -> None:
        use = use_of([reading(0, energy=0.0), reading(1, energy=100.0), reading(2, energy=200.0)], ended=1.5)
        assert use.energy == 150

    @given(
        st.lists(st.floats(0.01, 30), min_size=2, max_size=60),
        st.lists(st.floats(0, 500), min_size=60, max_size=60),
        st.lists(st.floats(0.001, 0.999), min_size=1, max_size=8, unique=True),
    )
    def test_attempts_that_follow_each_other_share_all_of_it(
        self, pauses: list[float], watts: list[float], cuts: list[float]
    ) -> None:
        times, joules = [0.0], [1000.0]
        for pause, power in zip(pauses, watts, strict=False):
            times.append(times[-1] + pause)
            joules.append(joules[-1] + pause * power)
        edges = [0.0, *sorted(cut * times[-1] for cut in cuts), times[-1]]
        accounts, charged = GpuAccounts("0"), 0.0
        for number, (since, until) in enumerate(pairwise(edges)):
            accounts.begin((number, 1), since)
            accounts.end((number, 1), until)
        for at, energy in zip(times, joules, strict=True):
            accounts.feed(reading(at, energy=energy))
        for number in range(len(edges) - 1):
            charged += accounts._accounts[number, 1].energy
        assert charged == pytest.approx(joules[-1] - joules[0])

    def test_an_attempt_that_ended_before_the_second_reading_has_its_energy_and_no_state(self) -> None:
        use = use_of([reading(0.0, energy=0.0, utilization=5), reading(1.2, energy=120.0, utilization=5)], ended=1.1)
        assert (use.energy, use.seconds, use.utilization, use.idle) == (pytest.approx(110), 0, None, None)


class TestSharing:
    def two(self, shares: dict[Key, float] | None) -> tuple[GpuUse, GpuUse]:
        accounts = GpuAccounts("0")
        accounts.begin(ONE, 0.0)
        accounts.begin(OTHER, 5.0)
        for at in range(11):
            held = {ONE: 2 * GIB, OTHER: GIB}
            accounts.feed(GpuSample(float(at), Meters(utilization=90, used=4 * GIB, power=300.0), held, shares))
        one, other = accounts.close(ONE), accounts.close(OTHER)
        assert one
        assert other
        return one[0], other[0]

    def test_shares_and_memory_are_split_by_process(self) -> None:
        one, other = self.two({ONE: 60.0, OTHER: 30.0})
        assert one.utilization
        assert other.utilization
        assert (one.utilization.mean, other.utilization.mean) == (pytest.approx(75.0), 30.0)
        assert other.memory
        assert other.memory.max == GIB
        assert (one.shared, other.shared) == (5, 5)

    def test_what_cannot_be_split_is_marked_as_the_gpus(self) -> None:
        _, other = self.two({ONE: 60.0, OTHER: 30.0})
        assert other.of_gpu == ("device_memory", "energy", "power")
        assert self.two(None)[1].of_gpu == ("device_memory", "energy", "power", "utilization")


class TestPieces:
    def test_a_long_attempt_gives_each_piece_of_its_curve_once(self) -> None:
        accounts, found = GpuAccounts("0"), []
        accounts.begin(ONE, 0.0)
        for at in range(40_000):
            accounts.feed(reading(float(at), utilization=at % 100))
            if at % 60 == 0:
                found += accounts.pieces(float(at))
        assert {key for key, _ in found} == {ONE}
        pieces = [curve.points for _, curve in found]
        assert all(len(points) <= 30 for points in pieces)
        assert sum(map(len, pieces)) < 1500
        ends = [points[-1].at + points[-1].seconds for points in pieces]
        assert [points[0].at for points in pieces] == pytest.approx([0.0, *ends[:-1]])

    def test_a_short_one_gives_none(self) -> None:
        accounts = GpuAccounts("0")
        accounts.begin(ONE, 0.0)
        accounts.feed(reading(0.0))
        accounts.feed(reading(1.0))
        assert accounts.pieces(299.0) == []


def test_an_attempt_without_a_reading_has_no_figures() -> None:
    accounts = GpuAccounts("0")
    accounts.begin(ONE, 0.0)
    accounts.feed(reading(0.0, utilization=5))
    assert accounts.use(ONE) is None
    assert accounts.close(ONE) is None


def test_what_it_does_now_is_the_last_reading() -> None:
    accounts = GpuAccounts("0")
    accounts.begin(ONE, 0.0)
    accounts.feed(reading(0.0, utilization=5))
    accounts.feed(reading(1.0, utilization=7, power=100.0))
    use = accounts.use(ONE)
    assert use
    assert use.now == {"utilization": 7, "memory": 0, "power": 100.0}
