"""Who wasted a GPU: what is not used while several are there is divided equally among them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.report.waste import Stay, shared_out
from tests.support.report import began, built, ended, measured, over, read, started, use_of_gpu

LENGTH = 30


def wasted(*jobs: dict[str, object]) -> list[float]:
    """Of jobs that were on GPU 0 for the same 100 seconds."""
    numbers = range(1, len(jobs) + 1)
    records = [
        began(),
        *map(read, numbers),
        *(started(0, job) for job in numbers),
        *(measured(100, job, use_of_gpu(**use)) for job, use in zip(numbers, jobs, strict=True)),
        *(ended(100, job, runtime=100) for job in numbers),
        over(100),
    ]
    return [job["measured"]["wasted"] for job in built(*records)["jobs"]]


def test_a_gpu_that_several_fill_is_not_wasted() -> None:
    assert wasted(*[{"mean": 25, "shared": 100}] * 4) == [0] * 4
    assert wasted(*[{"mean": 50, "shared": 100}] * 2) == [0] * 2
    assert wasted(*[{"mean": 100, "shared": 100, "of_gpu": ["utilization"]}] * 3) == [0] * 3


def test_what_several_leave_is_divided_equally_whoever_used_the_rest() -> None:
    assert wasted({"mean": 60, "shared": 100}, {"mean": 0, "shared": 100}) == [20, 20]
    assert wasted(*[{"mean": 40, "shared": 100, "of_gpu": ["utilization"]}] * 3) == [20] * 3
    assert wasted({"mean": 30}) == [70]


def test_only_while_they_are_there() -> None:
    alone_at_last = [Stay(0, 100, own=0.5), Stay(0, 50, own=0.5)]
    assert shared_out(alone_at_last) == [(0.75, 0.25), (0.5, 0)]


def test_one_that_was_not_measured_is_there_too() -> None:
    assert shared_out([Stay(0, 10, own=0.2), Stay(0, 10)])[0] == (0.5, pytest.approx(0.4))


def test_one_that_took_no_time_is_alone() -> None:
    assert shared_out([Stay(5, 5, own=0.25), Stay(0, 10, own=1)]) == [(1, 0.75), (1, 0)]


SHARE = st.integers(0, 100).map(lambda percent: percent / 100)
STAYS = st.lists(
    st.builds(
        lambda start, length, share, is_whole: Stay(
            start, start + length, None if is_whole else share, share if is_whole else None
        ),
        st.integers(0, LENGTH),
        st.integers(0, LENGTH),
        SHARE,
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


@given(STAYS)
def test_together_they_waste_what_the_gpu_did_not_do_while_it_was_held(stays: list[Stay]) -> None:
    unused = 0.0
    for second in range(2 * LENGTH):
        there = [stay for stay in stays if stay.start <= second < stay.end]
        whole = [stay.whole for stay in there if stay.whole is not None]
        used = sum(whole) / len(whole) if whole else min(1, sum(stay.own or 0 for stay in there))
        unused += (1 - used) if there else 0
    shares = shared_out(stays)
    lengths = [stay.end - stay.start for stay in stays]
    assert sum(share.unused * length for share, length in zip(shares, lengths, strict=True)) == pytest.approx(unused)
    assert all(0 <= share.unused <= share.charged <= 1 for share in shares)
