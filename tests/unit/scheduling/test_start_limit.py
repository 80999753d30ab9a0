"""When to try again after the system refused to start a process."""

from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.scheduling.start_limit import StartLimit

FREE = StartLimit()


def test_before_the_first_refusal_everything_is_allowed() -> None:
    assert FREE.allows(1000, 0)
    assert FREE.started(1000, 0) == FREE
    assert FREE.next_try(1000, 0) == float("inf")


def test_no_more_start_than_ran_when_it_was_refused_until_the_next_try_whose_pause_grows() -> None:
    known, now = FREE.refused(2, 10.0), 10.0
    assert known.allows(1, now)  # one of ours has ended
    pauses = []
    for _ in range(10):
        assert not known.allows(2, now)
        pauses.append(known.next_try(2, now) - now)
        now = known.next_try(2, now)
        assert known.allows(2, now)
        known = known.started(2, now)
        assert not known.allows(3, now)  # one alone is tried
        known = known.refused(2, now)
    assert pauses[:3] == [0.25, 0.5, 1]
    assert max(pauses) == pauses[-1] == 30


def test_several_that_were_started_at_once_lengthen_the_pause_only_once() -> None:
    known = FREE
    for running in range(7, 1, -1):
        known = known.refused(running, 10.0)
    assert not known.allows(2, 10.2)
    assert known.allows(1, 10.2)
    assert known.allows(2, 10.25)


def test_two_tries_that_are_not_refused_end_the_matter() -> None:
    known = FREE.refused(2, 10.0)
    known = known.started(2, 10.25)
    assert not known.allows(3, 10.26)
    assert known.allows(2, 10.26)  # one of the three has ended
    assert known.allows(3, 10.5)
    known = known.started(3, 10.5)
    assert known.allows(1000, 10.5)


def test_while_something_of_ours_runs_there_is_hope_for_ever() -> None:
    known = FREE
    for hour in range(100):
        known = known.refused(1, hour * 3600.0)
        assert not known.is_hopeless(hour * 3600.0)


def test_alone_it_is_hopeless_after_a_minute_and_then_each_job_is_tried_once() -> None:
    known, now, tries = FREE.refused(0, 0.0), 0.0, 1
    while not known.is_hopeless(now):
        assert now < 120
        now = known.next_try(0, now)
        known, tries = known.started(0, now).refused(0, now), tries + 1
    assert now >= 60
    assert tries < 12
    assert known.allows(0, now)
    assert known.started(0, now).refused(0, now + 1).is_hopeless(now + 1)


def test_a_minute_is_sixty_seconds() -> None:
    known = FREE.refused(0, 10.0)
    assert not known.is_hopeless(69.9)
    assert known.is_hopeless(70.0)


def test_a_job_that_ran_meanwhile_gives_the_next_one_a_minute_of_its_own() -> None:
    known = FREE.refused(0, 0.0).started(0, 1.0).ran().refused(0, 7200.0)
    assert not known.is_hopeless(7200)


def test_it_is_said_once_and_again_only_after_a_long_time_without() -> None:
    assert FREE.is_news(0)
    known = FREE.refused(1, 5)
    assert not known.is_news(6)
    assert not known.started(1, 6).started(2, 7).is_news(8)
    assert known.is_news(5 + 600)


@given(st.lists(st.tuples(st.sampled_from(["refused", "started", "ran"]), st.integers(0, 5), st.floats(0, 40))))
def test_it_never_waits_for_ever_nor_wakes_for_nothing(happened: list[tuple[str, int, float]]) -> None:
    known, now = FREE, 0.0
    for what, running, later in happened:
        now += later
        known = known.ran() if what == "ran" else getattr(known, what)(running, now)
        for count in range(7):
            wake = known.next_try(count, now)
            assert known.allows(count, now) == (wake == float("inf"))
            assert wake == float("inf") or now < wake <= now + 30
            assert wake == float("inf") or known.allows(count, wake)
