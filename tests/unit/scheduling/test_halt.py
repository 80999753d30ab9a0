"""When a run gives up."""

import pytest

from simple_gpu_scheduler.scheduling.halt import Halt, parse_halt


def test_halting_rules_are_read() -> None:
    assert parse_halt("never") is None
    assert parse_halt("soon,fail=3") == Halt(now=False, failures=3)
    assert parse_halt("now,fail=10%") == Halt(now=True, failures=10, percent=True)
    assert parse_halt("soon,fail=100%") == Halt(now=False, failures=100, percent=True)
    assert parse_halt("soon,fail=101") == Halt(now=False, failures=101)
    for wrong in ("", "soon", "now,fail=0", "later,fail=1", "soon,fail=101%", "soon,success=1", "now,fail=1 "):
        with pytest.raises(ValueError, match="is not a halt condition; write never, soon,fail=3 or now,fail=10%"):
            parse_halt(wrong)


def test_a_number_of_failures_halts_at_that_number() -> None:
    assert not Halt(now=False, failures=3).is_reached(2, 100, all_read=False)
    assert Halt(now=False, failures=3).is_reached(3, 100, all_read=False)


def test_a_share_of_failures_is_of_all_jobs_and_of_three_at_least_while_more_may_come() -> None:
    tenth = Halt(now=True, failures=10, percent=True)
    assert not tenth.is_reached(1, 20, all_read=True)
    assert tenth.is_reached(2, 20, all_read=True)
    assert tenth.is_reached(1, 3, all_read=True)
    assert not tenth.is_reached(2, 5, all_read=False)
    assert tenth.is_reached(3, 5, all_read=False)
    assert not tenth.is_reached(0, 0, all_read=True)
