"""Which job starts where, now; and what follows when one ends."""

from collections import Counter
from collections.abc import Callable, Collection
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Outcome, Place
from simple_gpu_scheduler.scheduling import Rules
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits, Room
from tests.conftest import work
from tests.support.starts import start_all

FAILURE = Outcome("failed", 1)


def job(number: int, **options) -> Job:
    return Job(number, b"true", Place(number), **options)


def scheduler(gpus: str = "01", policy: str = "fifo", jobs_per_gpu: int = 1, cpu_slots: int = 1, **rules) -> Scheduler:
    return Scheduler(Limits(tuple(gpus), jobs_per_gpu, cpu_slots), POLICIES[policy](), Rules(**rules))


def rooms(free: Collection[str]) -> dict[str, Room]:
    return {gpu: Room() for gpu in free}


def started(subject: Scheduler, now: float = 0, free: str = "0123456789") -> list[tuple[int, str]]:
    return [(attempt.job.number, "".join(attempt.gpus)) for attempt in start_all(subject, now, rooms(free))]


def running(subject: Scheduler, number: int) -> Attempt:
    return next(attempt for attempt in subject.running if attempt.job.number == number)


def end(subject: Scheduler, number: int, outcome: Outcome = SUCCESS, now: float = 0):
    return subject.end(running(subject, number), outcome, now)


def test_jobs_start_in_order_on_the_first_free_gpus() -> None:
    subject = scheduler("012")
    for number in range(1, 6):
        subject.add(job(number), 0)
    assert started(subject) == [(1, "0"), (2, "1"), (3, "2")]
    end(subject, 2)
    assert started(subject) == [(4, "1")]
    assert subject.waiting == 1


def test_a_gpu_that_others_use_is_left_alone() -> None:
    subject = scheduler("01")
    subject.add(job(1), 0)
    subject.add(job(2), 0)
    assert started(subject, free="1") == [(1, "1")]
    assert started(subject, free="") == []
    assert started(subject, free="01") == [(2, "0")]


def test_jobs_spread_over_the_emptiest_gpus_when_they_share() -> None:
    subject = scheduler("01", jobs_per_gpu=2)
    for number in range(1, 6):
        subject.add(job(number), 0)
    assert started(subject) == [(1, "0"), (2, "1"), (3, "0"), (4, "1")]


def test_cpu_jobs_take_no_gpu_and_run_beside_the_rest() -> None:
    subject = scheduler("0", cpu_slots=2)
    for number, gpus in enumerate((1, 0, 1, 0, 0), 1):
        subject.add(job(number, gpus=gpus), 0)
    assert started(subject) == [(1, "0"), (2, ""), (4, "")]


def test_slots_are_numbered_over_the_run() -> None:
    subject = scheduler("01", jobs_per_gpu=2, cpu_slots=1)
    for number, gpus in enumerate((2, 1, 0), 1):
        subject.add(job(number, gpus=gpus), 0)
    assert [attempt.slots for attempt in start_all(subject, 0, rooms("01"))] == [(0, 2), (1,), (4,)]


def test_a_wide_job_holds_its_place_until_enough_gpus_are_free() -> None:
    subject = scheduler("012")
    for number, gpus in enumerate((1, 1, 3, 1, 1), 1):
        subject.add(job(number, gpus=gpus), 0)
    assert started(subject) == [(1, "0"), (2, "1")]
    end(subject, 1)
    assert started(subject) == []
    end(subject, 2)
    assert started(subject) == [(3, "012")]
    end(subject, 3)
    assert started(subject) == [(4, "0"), (5, "1")]


def test_what_a_waiting_wide_job_does_not_need_is_used() -> None:
    subject = scheduler("01", jobs_per_gpu=2)
    for number, gpus in enumerate((1, 1, 1, 2, 1), 1):
        subject.add(job(number, gpus=gpus), 0)
    assert started(subject) == [(1, "0"), (2, "1"), (3, "0"), (4, "01")][:3]
    end(subject, 1)
    end(subject, 3)
    assert started(subject) == [(4, "01"), (5, "0")]


def test_a_wide_job_that_others_keep_from_starting_holds_nothing() -> None:
    subject = scheduler("01")
    subject.add(job(1, gpus=2), 0)
    subject.add(job(2), 0)
    assert started(subject, free="0") == [(2, "0")]
    end(subject, 2)
    assert started(subject, free="01") == [(1, "01")]


def test_a_failed_job_is_tried_again_in_its_old_place() -> None:
    subject = scheduler("0", retries=1)
    subject.add(job(1), 0)
    subject.add(job(2), 0)
    started(subject)
    assert end(subject, 1, FAILURE).retries
    assert started(subject) == [(1, "0")]
    assert running(subject, 1).number == 2
    assert not end(subject, 1, FAILURE).retries
    assert started(subject) == [(2, "0")]


def test_a_retry_waits_for_its_delay_and_others_go_first() -> None:
    subject = scheduler("0", retries=1, retry_delay=10)
    subject.add(job(1), 0)
    subject.add(job(2), 0)
    started(subject)
    end(subject, 1, Outcome("timed out"), now=5)
    assert subject.next_wake(5) == 15
    assert started(subject, 5) == [(2, "0")]
    end(subject, 2, now=7)
    assert started(subject, 14.9) == []
    assert started(subject, 15) == [(1, "0")]


def test_a_line_may_say_how_often_it_is_tried_again() -> None:
    subject = scheduler("0", retries=5)
    subject.add(job(1, retries=0), 0)
    started(subject)
    assert not end(subject, 1, FAILURE).retries


def test_what_could_not_be_started_is_not_tried_again() -> None:
    subject = scheduler("0", retries=5)
    subject.add(job(1), 0)
    started(subject)
    assert not end(subject, 1, Outcome("not started")).retries


def test_starts_are_apart_by_the_delay() -> None:
    subject = scheduler("012", delay=2)
    for number in range(1, 4):
        subject.add(job(number), 0)
    assert started(subject, 0) == [(1, "0")]
    assert subject.next_wake(0) == 2
    assert started(subject, 1.9) == []
    assert started(subject, 2) == [(2, "1")]


def test_priority_goes_first_and_equals_in_order() -> None:
    subject = scheduler("0", policy="priority")
    for number, priority in enumerate((0, 5, -1, 5), 1):
        subject.add(job(number, priority=priority), 0)
    order = []
    for _ in range(4):
        [(number, _)] = started(subject)
        order.append(number)
        end(subject, number)
    assert order == [2, 4, 1, 3]


def test_a_job_waits_for_those_it_comes_after() -> None:
    subject = scheduler("012")
    subject.add(job(1, name="a"), 0)
    subject.add(job(2, name="b"), 0)
    subject.add(job(3, after=(1, 2)), 0)
    assert started(subject) == [(1, "0"), (2, "1")]
    end(subject, 1)
    assert started(subject) == []
    end(subject, 2)
    assert started(subject) == [(3, "0")]
    subject.add(job(4, after=(1,)), 0)
    assert started(subject) == [(4, "1")]


def test_a_job_after_a_failure_is_dropped_and_so_are_those_after_it() -> None:
    subject = scheduler("0")
    subject.add(job(1, name="a"), 0)
    subject.add(job(2, name="b", after=(1,)), 0)
    subject.add(job(3, name="c", after=(2, 1)), 0)
    started(subject)
    assert [dropped.job.number for dropped in end(subject, 1, FAILURE).dropped] == [2, 3]
    assert [dropped.job.number for dropped in subject.add(job(4, after=(3,)), 0)] == [4]
    assert subject.waiting == 0


def test_a_chain_of_any_length_is_dropped() -> None:
    subject = scheduler("0")
    subject.add(job(1, name="x"), 0)
    for number in range(2, 5000):
        subject.add(job(number, name="x", after=(number - 1,)), 0)
    started(subject)
    assert len(end(subject, 1, FAILURE).dropped) == 4998


def test_a_retried_job_keeps_those_after_it_waiting() -> None:
    subject = scheduler("0", retries=1)
    subject.add(job(1, name="a"), 0)
    subject.add(job(2, after=(1,)), 0)
    started(subject)
    assert end(subject, 1, FAILURE).dropped == ()
    started(subject)
    end(subject, 1)
    assert started(subject) == [(2, "0")]


def test_what_may_not_be_retried_is_over_though_it_has_retries() -> None:
    subject = scheduler("0", retries=1)
    subject.add(job(1), 0)
    started(subject)
    [attempt] = subject.running
    assert not subject.end(attempt, FAILURE, 1, is_interrupted=True).retries
    assert subject.waiting == 0
    assert subject.next_wake(1) == float("inf")


OUTCOMES = (
    SUCCESS,
    SUCCESS,
    FAILURE,
    Outcome("timed out"),
    Outcome("stalled"),
    Outcome("killed", 9),
    Outcome("not started"),
)


def workload(rng: Random, gpus: int) -> list[Job]:
    return [
        job(
            number,
            gpus=rng.randint(0, gpus),
            priority=rng.randint(0, 2),
            retries=rng.choice([None, 0, 2]),
            name=f"n{number}",
            after=tuple({rng.randint(1, number - 1) for _ in range(rng.randint(0, 2))}) if number > 1 else (),
        )
        for number in range(1, rng.randint(1, 25) + 1)
    ]


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 3), st.integers(1, 2), st.sampled_from(sorted(POLICIES))
)
def test_no_job_is_lost_or_run_twice_and_no_gpu_holds_more_than_its_number(
    seed: int, gpus: int, per_gpu: int, cpu_slots: int, policy: str
) -> None:
    rng = Random(seed)
    names = "0123"[:gpus]
    subject = scheduler(names, policy, per_gpu, cpu_slots, retries=1, retry_delay=1)
    jobs = workload(rng, gpus)
    to_read = list(jobs)
    ended: Counter[int] = Counter()
    seen: set[tuple[int, int]] = set()
    now = 0.0
    while to_read or subject.waiting or subject.running:
        if to_read and rng.random() < 1 / 2:
            ended.update(dropped.job.number for dropped in subject.add(to_read.pop(0), 0))
        free = set(names) if rng.random() < 3 / 4 else set(rng.sample(names, rng.randint(0, gpus)))
        for attempt in start_all(subject, now, rooms(free)):
            assert attempt.key not in seen, "an attempt started twice"
            seen.add(attempt.key)
            assert set(attempt.gpus) <= free, "on a GPU that is another's"
            assert len(set(attempt.gpus)) == attempt.job.gpus
        attempts = list(subject.running)
        assert len({attempt.job.number for attempt in attempts}) == len(attempts), "a job runs beside itself"
        on_gpu = Counter(gpu for attempt in attempts for gpu in attempt.gpus)
        assert all(count <= per_gpu for count in on_gpu.values())
        assert sum(not attempt.gpus for attempt in attempts) <= cpu_slots
        slots = [slot for attempt in attempts for slot in attempt.slots]
        assert len(set(slots)) == len(slots), "a slot is taken twice"
        if attempts and rng.random() < 3 / 4:
            attempt = rng.choice(attempts)
            verdict = subject.end(attempt, rng.choice(OUTCOMES), now)
            ended.update(dropped.job.number for dropped in verdict.dropped)
            ended.update([] if verdict.retries else [attempt.job.number])
        now += 1
    assert ended == Counter(job.number for job in jobs)


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 4), st.integers(1, 3), st.lists(st.integers(1, 4), min_size=1, max_size=30), st.integers(0, 2**32)
)
def test_no_job_starves_under_fifo(gpus: int, per_gpu: int, widths: list[int], seed: int) -> None:
    """The first in the order starts at the latest when all that ran when it became the first have ended."""
    rng, names = Random(seed), "0123"[:gpus]
    subject = scheduler(names, "fifo", per_gpu)
    waiting = [job(number, gpus=min(width, gpus)) for number, width in enumerate(widths, 1)]
    for each in waiting:
        subject.add(each, 0)
    first, ran_before = 0, set()
    left = {each.number for each in waiting}
    while left or subject.running:
        left -= {attempt.job.number for attempt in start_all(subject, 0, rooms(names))}
        now_running = {attempt.job.number for attempt in subject.running}
        if left and min(left) != first:
            first, ran_before = min(left), now_running
        assert not left or now_running & ran_before, "the first waits though nothing it waited for is left"
        end(subject, rng.choice(sorted(now_running)))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 4), st.lists(st.integers(0, 1), min_size=1, max_size=30), st.integers(0, 2**32))
def test_no_gpu_idles_while_a_job_that_fits_waits(gpus: int, widths: list[int], seed: int) -> None:
    rng, names = Random(seed), "0123"[:gpus]
    subject = scheduler(names, "fifo", 1, 2)
    narrow = sum(widths)
    for number, width in enumerate(widths, 1):
        subject.add(job(number, gpus=width), 0)
    while subject.waiting or subject.running:
        narrow -= sum(len(attempt.gpus) for attempt in start_all(subject, 0, rooms(names)))
        busy = sum(len(attempt.gpus) for attempt in subject.running)
        assert busy == gpus or narrow == 0
        end(subject, rng.choice(sorted(attempt.job.number for attempt in subject.running)))


def test_jobs_that_are_cancelled_are_passed_over_and_may_come_back_to_their_place() -> None:
    subject = scheduler("0", policy="priority")
    for number in range(1, 7):
        subject.add(job(number, priority=number % 2, gpus=number % 3), 0)
    assert [dropped.job.number for number in (5, 1, 3) for dropped in subject.cancel(number)] == [5, 1, 3]
    assert subject.cancel(5) == ()
    assert subject.waiting == 3
    assert subject.try_again([], [job(1, priority=1, gpus=1)]) == ()
    assert started(subject) == [(1, "0"), (6, "")]
    end(subject, 1)
    end(subject, 6)
    assert started(subject) == [(4, "0")]


def test_a_job_that_was_cancelled_and_comes_back_starts_once() -> None:
    subject = scheduler("0123456789")
    for number in range(1, 5):
        subject.add(job(number), 0)
    assert subject.cancel(3)
    subject.try_again([], [job(3)])
    assert subject.waiting == 4
    assert [number for number, _ in started(subject)] == [1, 2, 3, 4]
    assert subject.waiting == 0


def test_the_most_memory_that_one_waiting_job_needs_is_what_is_wanted() -> None:
    subject = scheduler("01")
    assert subject.wants == (0, 0)
    for number, mem in enumerate((None, 5, 2), 1):
        subject.add(job(number, mem=mem), 0)
    assert subject.wants == (1, 5)
    assert started(subject) == [(1, "0"), (2, "1")]
    assert subject.wants[1] == 2
    subject.cancel(3)
    assert subject.wants == (0, 0)


def test_a_job_that_says_no_priority_has_that_of_nought() -> None:
    subject = scheduler("0", policy="priority")
    for number, options in enumerate(({}, {"priority": 0}, {"priority": 1}, {}, {"priority": -1}), 1):
        subject.add(job(number, **options), 0)
    order = []
    for _ in range(5):
        order += [number for number, _ in started(subject)]
        end(subject, order[-1])
    assert order == [3, 1, 2, 4, 5]


def test_when_the_delay_between_starts_is_over_there_is_nothing_to_wake_up_for() -> None:
    subject = scheduler("0", delay=5)
    for number in (1, 2):
        subject.add(job(number), 0)
    assert subject.next_wake(0) == float("inf"), "nothing has been started yet"
    assert started(subject) == [(1, "0")]
    assert [subject.next_wake(now) for now in (0, 4, 5, 6)] == [5, 5, float("inf"), float("inf")]
    end(subject, 1, now=4)
    assert started(subject, 4) == []
    assert started(subject, 5) == [(2, "0")]
    assert subject.next_wake(5) == float("inf"), "nothing waits"


def test_an_attempt_that_tells_nothing_is_made_again_and_does_not_count() -> None:
    subject = scheduler("0", retries=1)
    subject.add(job(1), 0)
    for number, outcome in enumerate((None, FAILURE, None, FAILURE), 1):
        assert started(subject) == [(1, "0")]
        attempt = running(subject, 1)
        assert attempt.number == number
        if outcome is None:
            subject.interrupt(attempt, 0)
        else:
            assert subject.end(attempt, outcome, 0).retries is (number == 2)
    assert subject.waiting == 0


@pytest.mark.unmeasured
def test_to_find_nothing_while_all_is_taken_costs_the_same_however_many_kinds_of_jobs_wait() -> None:
    def cost(kinds: int) -> int:
        subject = scheduler("0123", policy="sjf")
        subject.add(job(1, gpus=4), 0)
        for number in range(2, kinds + 2):
            subject.add(job(number, mem=number), 0)
        assert started(subject) == [(1, "0123")]
        free = rooms("0123")
        return work(lambda: subject.next(0, free))

    assert cost(1000) == cost(10)


@pytest.mark.unmeasured
def test_to_cancel_many_jobs_costs_as_much_each_as_to_cancel_few() -> None:
    def cost(count: int) -> float:
        subject = scheduler()
        for number in range(1, count + 1):
            subject.add(job(number), 0)
        done = work(lambda: [subject.cancel(number) for number in range(count // 4, count * 3 // 4)])
        assert subject.waiting == count // 2
        return done / count

    assert cost(8000) < 2 * cost(1000)


needs = st.lists(st.tuples(st.integers(1, 2), st.integers(0, 12)), min_size=1, max_size=25)


@settings(max_examples=150, deadline=None)
@given(per_gpu=st.integers(1, 4), needs=needs, policy=st.sampled_from(sorted(POLICIES)), seed=st.integers(0, 10**6))
def test_what_runs_never_declared_more_than_there_is_room_and_the_first_is_not_passed_for_ever(
    per_gpu: int, needs: list[tuple[int, int]], policy: str, seed: int
) -> None:
    """Jobs come to hold what they declared bit by bit, or more, and others use some of it."""
    random, total, gpus = Random(seed), 12, ("0", "1")
    subject = Scheduler(Limits(gpus, per_gpu, 1, (total, total)), POLICIES[policy](), Rules())
    for number, (width, mem) in enumerate(needs, 1):
        subject.add(Job(number, b"true", Place(number), gpus=width, mem=mem), 0)
    for now in range(1000):
        others = {gpu: random.choice([0, 0, 3]) for gpu in gpus} if now < 50 else dict.fromkeys(gpus, 0)
        held = {
            gpu: {it.key: random.randint(0, it.job.mem or 0) for it in subject.running if gpu in it.gpus}
            for gpu in gpus
        }
        rooms = {gpu: Room(max(0, total - others[gpu] - sum(held[gpu].values())), held[gpu]) for gpu in gpus}
        for start in start_all(subject, now, rooms):
            for gpu in start.gpus:
                declared = [it.job.mem or 0 for it in subject.running if gpu in it.gpus]
                assert not start.job.mem or sum(declared) <= total - others[gpu]
                assert len(declared) <= per_gpu
        if subject.running:
            subject.end(random.choice(list(subject.running)), SUCCESS, now)
        elif not subject.waiting:
            return
    pytest.fail("some never ran")


@settings(max_examples=200)
@given(st.integers(1, 5), st.integers(1, 2), st.integers(0, 2**32))
def test_never_more_gpus_are_held_at_once_than_the_cap_allows_and_all_jobs_run(
    cap: int, jobs_per_gpu: int, seed: int
) -> None:
    chance = Random(seed)  # hypothesis' own draws each number by itself, which takes ten times as long
    limits = Limits(tuple("01234"), jobs_per_gpu, at_once=cap)
    subject = Scheduler(limits, POLICIES["fifo"](), Rules())
    for number in range(1, 30):
        subject.add(job(number, gpus=chance.randint(1, cap)), 0)
    ended = 0
    while ended < 29:
        free = [gpu for gpu in "01234" if chance.random() < 0.7] if subject.running else list("01234")
        start_all(subject, 0, rooms(free))
        held = {gpu for attempt in subject.running for gpu in attempt.gpus}
        assert 1 <= len(held) <= cap
        end(subject, chance.choice([each.job.number for each in subject.running]))
        ended += 1


def test_gpus_of_attempts_that_outlived_their_scheduler_count_for_the_cap() -> None:
    subject = Scheduler(Limits(tuple("0123"), at_once=2), POLICIES["fifo"](), Rules())
    outlived = Attempt(job(1), 1, ("3",), ())
    subject.resume(outlived, 0, 0)
    for number in (2, 3):
        subject.add(job(number), 0)
    assert started(subject, free="012") == [(2, "0")]
    subject.end(outlived, SUCCESS, 0)
    assert started(subject) == [(3, "1")]


def test_jobs_may_share_the_gpus_that_are_held_however_few_may_be_held_at_once() -> None:
    subject = Scheduler(Limits(tuple("01"), 2, at_once=1), POLICIES["fifo"](), Rules())
    for number in (1, 2, 3):
        subject.add(job(number), 0)
    assert started(subject) == [(1, "0"), (2, "0")]


def test_a_gpu_that_others_use_does_not_count_for_the_cap() -> None:
    subject = Scheduler(Limits(tuple("01"), at_once=1), POLICIES["fifo"](), Rules())
    subject.add(job(1), 0)
    assert started(subject, free="1") == [(1, "1")]


@pytest.mark.parametrize(("at_once", "is_unfit"), [(None, False), (2, False), (1, True)])
def test_a_job_that_needs_more_gpus_than_may_be_held_at_once_is_unfit(at_once: int | None, is_unfit: bool) -> None:
    subject = Scheduler(Limits(tuple("01"), at_once=at_once), POLICIES["fifo"](), Rules())
    subject.add(job(1, gpus=2), 0)
    assert subject.has_unfit == is_unfit


@pytest.mark.parametrize("again", [Scheduler.postpone, Scheduler.interrupt])
def test_a_job_whose_attempt_does_not_count_waits_again_in_its_old_place(again: Callable) -> None:
    subject = scheduler("0", policy="aged")
    subject.add(job(1, time=60.0), 0)
    subject.add(job(2, time=60.0), 5)
    assert started(subject, 10) == [(1, "0")]
    again(subject, running(subject, 1), 11)
    assert started(subject, 11) == [(1, "0")]


@pytest.mark.parametrize("again", [Scheduler.postpone, Scheduler.interrupt])
def test_an_attempt_that_does_not_count_uses_nothing_of_its_labels_share_once_it_is_over(again: Callable) -> None:
    subject = Scheduler(Limits(("0",)), POLICIES["fair"](), Rules(), label=lambda each: each.label)
    for number, label in enumerate("aabb", 1):
        subject.add(job(number, label=label), 0)
    assert started(subject, 0) == [(1, "0")]
    again(subject, running(subject, 1), 1)
    assert started(subject, 1) == [(3, "0")]
    end(subject, 3, now=100)
    assert started(subject, 100) == [(1, "0")]
