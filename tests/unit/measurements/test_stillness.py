"""Since when an attempt has been doing nothing new."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import Patience
from simple_gpu_scheduler.base.measurement import CpuUse, Stillness
from simple_gpu_scheduler.measurements import GpuSample, Meters
from simple_gpu_scheduler.measurements.accounts import GpuAccounts
from simple_gpu_scheduler.measurements.cpu import CpuAccount
from simple_gpu_scheduler.measurements.stillness import Due, Level, idles_at, stalls_at, together

KEY = (1, 1)


def after(values: Sequence[float | None]) -> Stillness | None:
    """After such readings, one each second: the first is of the second from 0 to 1."""
    level = Level()
    for second, value in enumerate(values, 1):
        level.feed(second, 1.0, value)
    return level.stillness


@pytest.mark.parametrize(
    ("values", "stillness"),
    [
        ([], None),
        ([7], Stillness(1, 0, None, (7,))),
        ([0, 0, 0], Stillness(3, 0, 0, (0,))),
        ([100, 99, 100, 99], Stillness(4, 0, None, (99,))),
        ([100, 99, 98, 98], Stillness(4, 3, None, (98,))),
        ([50, 0, 0], Stillness(3, 2, 2, (0,))),
        ([0, 1, 0], Stillness(3, 0, 3, (0,))),
        ([0, 0, 60], Stillness(3, 3, None, (60,))),
        ([0, None], None),
        ([0, None, 0], Stillness(3, 2, 2, (0,))),
    ],
)
def test_a_level_is_constant_within_one_per_cent_and_idle_at_0(
    values: list[float | None], stillness: Stillness | None
) -> None:
    assert after(values) == stillness


@given(st.lists(st.none() | st.integers(0, 4) | st.integers(0, 100), min_size=1))
def test_it_is_never_still_for_longer_than_its_readings_say(values: list[int | None]) -> None:
    found = after(values)
    assert (found is None) == (values[-1] is None)
    if found is None:
        return
    assert found.seen == len(values)
    since = [value for second, value in enumerate(values, 1) if second > found.constant] or [values[-1]]
    known = [value for value in since if value is not None]
    assert len(known) == len(since)
    assert max(known) - min(known) <= 1
    if found.idle is not None:
        assert {value for second, value in enumerate(values, 1) if second > found.idle or second == len(values)} == {0}
    assert (found.idle is not None) == (values[-1] == 0)


def test_what_was_before_a_long_gap_tells_nothing() -> None:
    level = Level()
    level.feed(1, 1.0, 0)
    level.feed(5, 2.5, 0)
    assert level.stillness == Stillness(5, 0, 0, (0,))
    level.feed(20, 2.5, 0)
    assert level.stillness == Stillness(20, 17.5, 17.5, (0,))


def test_several_gpus_are_as_still_as_the_liveliest() -> None:
    idle, busy = Stillness(10, 3, 3, (0,)), Stillness(9, 5, None, (100,))
    assert together([idle, busy]) == Stillness(9, 5, None, (0, 100))
    assert together([idle, idle._replace(constant=7, idle=7)]) == Stillness(10, 7, 7, (0, 0))
    assert together([idle, None]) is None, "unknown of one, it is unknown"
    assert together([]) is None


def test_an_attempt_is_watched_from_its_own_begin_and_by_its_own_share() -> None:
    accounts = GpuAccounts("0")
    accounts.begin(KEY, 0.0)
    assert accounts.stillness(KEY) is None
    for second in range(5):
        accounts.feed(GpuSample(second, Meters(utilization=0)))
    assert accounts.stillness(KEY) == Stillness(4, 0, 0, (0,))
    accounts.begin((2, 1), 4.0)
    for second in (5, 6):
        accounts.feed(GpuSample(second, Meters(utilization=100), shares={KEY: 100.0}))
    assert accounts.stillness(KEY) == Stillness(6, 5, None, (100,))
    assert accounts.stillness((2, 1)) == Stillness(6, 4, 4, (0,)), "the other one computes"
    assert accounts.stillness((3, 1)) is None


def test_without_gpus_it_is_cpu_time_that_counts() -> None:
    cpu = CpuAccount(0.0)
    assert cpu.stillness is None
    for at, seconds in ((10, 3.0), (20, 3.05), (30, 3.05)):
        cpu.feed(at, CpuUse(seconds))
    assert cpu.stillness == Stillness(30, 10)
    cpu.feed(40, CpuUse(3.2))
    assert cpu.stillness == Stillness(40, 40)


def test_an_attempt_stalls_when_it_has_been_silent_and_constant_for_so_long() -> None:
    patience = Patience(5)
    still = Stillness(10, 3, None, (100,))
    assert stalls_at(still, 4, patience) == Due("stall", 9, True, patience)
    assert stalls_at(still, 1, patience) == Due("stall", 8, True, patience)
    assert stalls_at(still, 6, patience) == Due("stall", 11, False, patience), "it was silent for 4 seconds"
    assert stalls_at(still._replace(seen=8.5), 4, patience) == Due("stall", 9, False, patience), "nobody saw it since"
    assert stalls_at(still, None, patience) is stalls_at(still, 4, None) is stalls_at(still, 4, Patience(0)) is None


def test_an_attempt_is_idle_when_its_gpus_have_been_at_0_for_so_long() -> None:
    patience = Patience(5, ends=True)
    assert idles_at(Stillness(10, 3, 4), patience) == Due("idle", 9, True, patience)
    assert idles_at(Stillness(8, 3, 4), patience) == Due("idle", 9, False, patience)
    assert idles_at(Stillness(10, 3, None, (1,)), patience) is idles_at(Stillness(9, 0, 0), Patience(0)) is None
