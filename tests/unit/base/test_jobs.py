"""How a job ended."""

from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import SUCCESS, Outcome, outcome_of


@given(st.integers(0, 255))
def test_a_wait_status_is_an_exit_code_or_a_signal(number: int) -> None:
    assert outcome_of(number << 8) == (Outcome("failed", number) if number else SUCCESS)
    if 0 < number < 0x7F:
        assert outcome_of(number) == Outcome("killed", number)
        assert outcome_of(number | 0x80) == Outcome("killed", number)
