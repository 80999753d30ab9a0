"""The counts of a run, and what they come to."""

import pytest

from simple_gpu_scheduler.base.jobs import Kind
from simple_gpu_scheduler.events.ledger import Tally

FAILED: tuple[Kind, ...] = ("failed", "timed out", "killed")


def told(*kinds: Kind) -> Tally:
    subject = Tally()
    for kind in kinds:
        subject.count(kind)
    return subject


def test_each_kind_of_end_is_counted_as_what_it_is() -> None:
    kinds: list[Kind] = [
        *["succeeded"] * 1,
        *["failed"] * 2,
        *["killed"] * 4,
        *["timed out"] * 8,
        *["not started"] * 16,
    ]
    summary = told(*kinds).summary(2.5, all_read=True)
    assert (summary.succeeded, summary.failed, summary.timed_out, summary.not_started) == (1, 6, 8, 16)
    assert (summary.elapsed, summary.all_read) == (2.5, True)


@pytest.mark.parametrize("kind", FAILED)
def test_what_ran_and_did_not_succeed_has_failed(kind: Kind) -> None:
    assert told("succeeded", kind, kind).failed == 2
    assert told("succeeded", "not started").failed == 0


@pytest.mark.parametrize("kind", FAILED)
def test_a_failure_that_is_excused_does_not_count_until_it_happens_again(kind: Kind) -> None:
    subject = told(kind, kind)
    subject.excuse(1, kind)
    assert subject.failed == 1
    subject.take_back(1, kind)
    assert subject.failed == 1
    subject.count(kind)
    assert subject.failed == 2
    subject.excuse(2, "not started")
    assert subject.failed == 2


@pytest.mark.parametrize("kind", [*FAILED, "not started"])
def test_the_exit_code_tells_whether_all_jobs_succeeded(kind: Kind) -> None:
    assert told("succeeded").exit_code(0) == 0
    subject = told("succeeded", kind)
    assert subject.exit_code(0) == 1
    subject.take_back(1, kind)
    assert subject.exit_code(0) == 0


def test_bad_input_and_signals_have_codes_of_their_own() -> None:
    subject = told("succeeded")
    subject.fail()
    assert subject.exit_code(0) == 1
    subject.refuse()
    assert subject.exit_code(0) == 2
    assert subject.exit_code(15) == 143
    assert subject.summary(0, all_read=False).not_started == 1
