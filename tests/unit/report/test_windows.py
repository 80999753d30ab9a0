"""How often and how long a Prometheus is asked."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.report.numbers import Times
from simple_gpu_scheduler.report.prometheus.windows import MOST_POINTS, step_of, windows_of

START = 1_700_000_000.25
DAY = 86400.0
ATTEMPTS = st.lists(
    st.tuples(st.floats(0, 60 * DAY), st.floats(0.1, 5 * DAY)).map(lambda each: (START + each[0], START + sum(each))),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize(("hours", "step"), [(0.01, 1), (2.9, 1), (12, 4), (24, 8), (45, 15), (1000, 15)])
def test_a_longer_run_has_longer_steps(hours: float, step: int) -> None:
    assert step_of([(START, START + hours * 3600)]) == step


def test_a_night_is_asked_for_at_once_and_a_month_in_pieces() -> None:
    night, month = (START, START + DAY), (START, START + 30 * DAY)
    assert len(windows_of([night], step_of([night]))) == 1
    assert len(windows_of([month], step_of([month]))) == -int(-30 * DAY // (15 * MOST_POINTS))


def test_a_month_without_jobs_is_left_out() -> None:
    attempts = [(START, START + 60), (START + 30 * DAY, START + 30 * DAY + 60)]
    assert len(windows_of(attempts, step_of(attempts))) == 2


@given(ATTEMPTS)
def test_each_attempt_is_covered_and_no_answer_is_too_long(attempts: list[Times]) -> None:
    step = step_of(attempts)
    windows = windows_of(attempts, step)
    grid = {at for start, end in windows for at in range(start, end + 1, step)}
    assert len(grid) == sum((end - start) // step + 1 for start, end in windows)  # no point twice
    for start, end in windows:
        assert start % step == end % step == 0
        assert (end - start) // step < MOST_POINTS
    for start, end in attempts:
        first, last = int((start - 60) // step) * step, int((end + 60) // step + 1) * step
        assert set(range(first, last + 1, step)) <= grid
    assert all(before[1] < after[0] for before, after in pairwise(windows))
