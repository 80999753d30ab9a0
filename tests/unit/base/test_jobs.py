"""How a job ended."""

from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base import errors
from simple_gpu_scheduler.base.jobs import SUCCESS, Outcome, outcome_of


@given(st.integers(0, 255))
def test_a_wait_status_is_an_exit_code_or_a_signal(number: int) -> None:
    assert outcome_of(number << 8) == (Outcome("failed", number) if number else SUCCESS)
    if 0 < number < 0x7F:
        assert outcome_of(number) == Outcome("killed", number)
        assert outcome_of(number | 0x80) == Outcome("killed", number)


def test_an_outcome_without_a_code_has_none() -> None:
    assert SUCCESS == ("succeeded", 0, "")
    assert Outcome("timed out") == ("timed out", 0, "")


def test_exit_codes_are_those_of_the_documentation() -> None:
    codes = (errors.SUCCEEDED, errors.SOME_DID_NOT_SUCCEED, errors.BAD_INPUT, errors.BUG, errors.BY_SIGNAL)
    assert codes == (0, 1, 2, 3, 128)
    assert errors.UserError("x").code == 2
