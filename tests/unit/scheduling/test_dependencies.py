"""Which jobs wait for which: what the end of one releases, and what it takes with it."""

from simple_gpu_scheduler.base.jobs import Job, Place
from simple_gpu_scheduler.scheduling.dependencies import Dependencies


def job(number: int, *after: int, name: str = "n") -> Job:
    return Job(number, b"true", Place(number), name=name, after=after)


def numbers(jobs) -> list[int]:
    return [each.number for each in jobs]


def test_a_job_is_released_by_the_last_of_those_that_it_waits_for() -> None:
    subject = Dependencies()
    assert subject.block(job(3, 1, 2))
    assert len(subject) == 1
    assert numbers(subject.release(1)) == []
    assert numbers(subject.release(1)) == [], "once is enough"
    assert numbers(subject.release(2)) == [3]
    assert len(subject) == 0


def test_a_job_does_not_wait_for_what_has_succeeded() -> None:
    subject = Dependencies()
    subject.remember(job(1), succeeded=True)
    assert not subject.block(job(2, 1))
    assert not subject.have_failed(job(2, 1))
    assert subject.block(job(4, 1, 3))
    assert numbers(subject.release(3)) == [4]


def test_a_job_after_one_that_failed_is_known_to_be_lost_until_that_is_forgotten() -> None:
    subject = Dependencies()
    subject.remember(job(1), succeeded=True)
    subject.remember(job(2), succeeded=False)
    assert subject.have_failed(job(3, 1, 2))
    subject.forget(2)
    assert not subject.have_failed(job(3, 1, 2))
    assert subject.block(job(3, 1, 2))


def test_a_job_without_a_name_is_not_remembered() -> None:
    subject = Dependencies()
    subject.remember(job(1, name=""), succeeded=False)
    assert not subject.have_failed(job(2, 1))


def test_a_failure_takes_all_that_wait_with_it_each_once() -> None:
    subject = Dependencies()
    for each in (job(2, 1), job(3, 1), job(4, 2, 3), job(5, 9)):
        subject.block(each)
    assert numbers(subject.fail(job(1))) == [1, 2, 3, 4]
    assert len(subject) == 1
    assert subject.have_failed(job(6, 4))
    assert numbers(subject.release(9)) == [5]


def test_a_job_that_was_taken_out_is_neither_released_nor_lost() -> None:
    subject = Dependencies()
    for each in (job(2, 1), job(3, 1)):
        subject.block(each)
    taken = subject.take(2)
    assert taken
    assert taken.number == 2
    assert subject.take(2) is None
    assert numbers(subject.release(1)) == [3]
    assert subject.take(3) is None
