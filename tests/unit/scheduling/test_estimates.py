"""How long jobs are thought to take, and the line-up that is kept by it: nothing of it is lost, and it ends no job."""

from collections import Counter
from datetime import datetime, timezone
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import SUCCESS, Job, Outcome, Place
from simple_gpu_scheduler.scheduling import Dropped, Rules
from simple_gpu_scheduler.scheduling.estimates import MOST_SECONDS, UNKNOWN, Estimates
from simple_gpu_scheduler.scheduling.peaks import Peaks
from simple_gpu_scheduler.scheduling.policies import POLICIES, WaitingJob
from simple_gpu_scheduler.scheduling.queues import Lineup
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits, Room, Slots
from tests.conftest import work
from tests.support.starts import start_all

FAILURE = Outcome("failed", 1)


def job(number: int, command: str, length: float | None = None, timeout: float | None = None) -> Job:
    return Job(number, command.encode(), Place(number), time=length, timeout=timeout)


def shortest_first(*jobs: Job) -> Scheduler:
    subject = Scheduler(Limits(("0",)), POLICIES["sjf"]())
    for each in jobs:
        subject.add(each, 0)
    return subject


def run_next(subject: Scheduler, length: float = 1.0, outcome: Outcome = SUCCESS) -> int:
    now = subject._now
    [attempt] = start_all(subject, now, {"0": Room()})
    subject.end(attempt, outcome, now + length)
    return attempt.job.number


def order(subject: Scheduler) -> list[int]:
    return [run_next(subject) for _ in range(subject.waiting)]


def test_the_line_counts_most_then_the_last_twenty_runs_then_the_time_out() -> None:
    estimates = Estimates({"a …": [1000.0, *[float(n) for n in range(1, 21)]]})
    assert estimates.take_in(job(1, "a 5", 7.0, 9.0)) == (7.0, 7.0)
    assert estimates.take_in(job(2, "a 6", timeout=9.0)) == (10.5, 10.5)
    assert estimates.take_in(job(3, "b 6", timeout=9.0)) == (9.0, 9.0)
    assert estimates.take_in(job(4, "c 6")) == (0.0, UNKNOWN)
    assert list(estimates.learn(job(2, "a 6"), 41.0)) == []
    assert estimates.take_in(job(5, "a 7"))[1] == (sum(range(2, 21)) + 41) / 20


def test_one_of_each_unknown_template_goes_first_and_tells_of_the_others() -> None:
    subject = shortest_first(job(1, "long", 50.0), job(2, "a 1"), job(3, "a 2"), job(4, "b 1"), job(5, "mid", 10.0))
    assert [run_next(subject, 20.0), run_next(subject, 1.0)] == [2, 4]
    assert order(subject) == [5, 3, 1]


def test_a_scout_that_is_cancelled_hands_over_to_the_next_that_waits() -> None:
    subject = shortest_first(job(1, "b", 5.0), job(2, "a 1"), job(3, "a 2", timeout=90.0), job(4, "a 3"), job(5, "a 4"))
    assert subject.cancel(2)
    assert run_next(subject, 60.0) == 4
    assert order(subject) == [1, 3, 5]


def test_a_kind_whose_scout_fails_is_not_ahead_again_until_one_succeeds() -> None:
    bad = [job(number, f"bad --lr 0.{number}") for number in (1, 2, 3)]
    subject = shortest_first(*bad, job(4, "b", 5.0), job(5, "c", 60.0))
    assert run_next(subject, outcome=FAILURE) == 1
    assert [run_next(subject), run_next(subject)] == [4, 5]
    assert run_next(subject, outcome=FAILURE) == 2
    subject.add(job(6, "d", 10.0), subject._now)
    subject.add(job(7, "bad --lr 0.7"), subject._now)  # no new scout: it counts as the mean, 25 s
    assert [run_next(subject), run_next(subject, 2.0)] == [6, 7]
    subject.add(job(8, "d", 2.5), subject._now)
    assert order(subject) == [3, 8]  # now all of its kind are known to take 2 s


def test_a_scout_that_is_retried_is_no_longer_ahead() -> None:
    bad = [job(number, f"bad --lr 0.{number}")._replace(retries=1) for number in (1, 2)]
    subject = shortest_first(*bad, job(3, "b", 5.0), job(4, "c", 60.0))
    assert run_next(subject, outcome=FAILURE) == 1
    assert run_next(subject) == 3


def test_when_no_job_of_a_kind_waits_the_failure_of_its_scout_is_forgotten() -> None:
    estimates = Estimates()
    for number in range(1, 1001):
        each = job(number, "run-" + "".join(chr(ord("a") + int(digit)) for digit in str(number)))
        assert estimates.take_in(each) == (0.0, UNKNOWN)
        assert estimates.forget(each, lambda _number: False, has_failed=True) is None
    assert not estimates._scouts
    assert not estimates._unknown


def test_a_time_out_is_no_length_of_others() -> None:
    estimates = Estimates()
    for number in range(1, 11):
        estimates.take_in(job(number, "a", timeout=86_400.0))
    estimates.take_in(job(11, "b", 50.0))
    estimates.take_in(job(12, "c 1"))
    assert estimates.take_in(job(13, "c 2")) == (50.0, UNKNOWN)


@pytest.mark.parametrize("timeout", [None, 90.0])
@pytest.mark.parametrize("is_late", [True, False])
def test_it_does_not_matter_whether_what_is_known_of_earlier_runs_comes_late(
    is_late: bool, timeout: float | None
) -> None:
    history = {"a …": [30.0], "b …": [3.0]}
    subject = shortest_first(job(1, "a 1", timeout=timeout), job(2, "a 2"), job(3, "c", 10.0), job(4, "b 1"))
    if not is_late:
        subject = shortest_first()
        subject.add_history(history)
        for each in (job(1, "a 1", timeout=timeout), job(2, "a 2"), job(3, "c", 10.0), job(4, "b 1")):
            subject.add(each, 0)
    subject.add_history(history)
    assert order(subject) == [4, 3, 1, 2]


def test_runs_that_take_no_time_are_known_to() -> None:
    estimates = Estimates({"a": [0.0]})
    assert estimates.take_in(job(1, "a")) == (0.0, 0.0)


@pytest.mark.parametrize("length", [0.0, 5.0])
@pytest.mark.unmeasured
def test_many_siblings_are_updated_at_once(length: float) -> None:
    subject = shortest_first(*(job(number, f"train {number}") for number in range(1, 10_001)))
    first = work(lambda: run_next(subject, length))
    assert work(lambda: [run_next(subject, length) for _ in range(100)]) < 2 * first


@pytest.mark.parametrize("is_cancelled", [True, False])
@pytest.mark.unmeasured
def test_siblings_that_fail_or_are_cancelled_one_by_one_take_no_square_of_time(is_cancelled: bool) -> None:
    def cost(siblings: int) -> float:
        subject = shortest_first(*(job(number, f"train {number}") for number in range(1, siblings + 1)))

        def end_all() -> None:
            for number in range(1, siblings + 1):
                assert subject.cancel(number) if is_cancelled else run_next(subject, outcome=FAILURE)

        return work(end_all) / siblings

    assert cost(4000) < 2 * cost(1000)


def test_an_estimate_ends_no_job() -> None:
    subject = shortest_first(job(1, "a 1", 1.0))
    [attempt] = start_all(subject, 0, {"0": Room()})
    assert attempt.job.timeout is None
    assert start_all(subject, 1e9, {"0": Room()}) == []
    assert subject.running == [attempt]
    assert subject.next_wake(1e9) == float("inf")


def check(lineup: Lineup, plain: dict[int, Job]) -> None:
    """Against a plain list of those that are here."""
    queues = lineup._queues
    inside = [each for queue in queues.values() for each in queue]
    here = [each for each in inside if lineup._is_here(each)]
    assert {each.number: each.job for each in here} == plain
    assert len(here) == len(plain) == len(lineup)
    assert lineup.cpu_jobs == sum(not each.gpus for each in plain.values())
    needs = {(each.gpus, (each.mem or 0) if each.gpus else 0) for each in plain.values()}
    assert lineup.needs() == needs
    assert lineup.most == (max([0, *(gpus for gpus, _ in needs)]), max([0, *(mem for _, mem in needs)]))
    for kind, queue in queues.items():
        assert queue[0] == min(each for each in queue if lineup._is_here(each))
        assert all(each.kind == kind for each in queue)
    heads = {kind: queue[0] for kind, queue in queues.items()}
    assert lineup._heads == heads
    assert {kind: each for of_width in lineup._by_gpus.values() for kind, each in of_width.items()} == heads


@pytest.mark.parametrize("policy", sorted(POLICIES))
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_the_books_of_the_line_up_are_right_after_each_step(policy: str, seed: int) -> None:
    rng, estimates = Random(seed), Estimates()
    slots = Slots(Limits(("0",)))
    peaks = Peaks(slots.largest, shares=False)
    lineup = Lineup(POLICIES[policy](), estimates, lambda each: each.label, slots.need, peaks)
    plain: dict[int, Job] = {}
    taken: list[WaitingJob] = []
    for number in range(1, 80):
        step = rng.randint(0, 6)
        if step <= 1 or not plain:
            plain[number] = any_job(rng, number)
            lineup.add(plain[number], 1, number)
        elif step == 2:
            removed = lineup.remove(rng.randint(1, number))
            assert removed is None or removed == plain.pop(removed.number)
        elif step == 3:
            first = rng.choice(list(lineup.in_order(number, (0.5, len(lineup)))))
            assert plain.pop(first.number) == first.job
            lineup.take(first, number, passes=rng.random() < 1 / 2)
            taken.append(first)
        elif step <= 5 and taken:
            lineup.gave_back(taken[0], number)
            lineup.learn(taken.pop(0), rng.choice([0.0, 3.0, 70.0]), succeeded=rng.random() < 1 / 2)
        elif rng.random() < 1 / 4:
            gone = lineup.pop_all(rng.choice(sorted(lineup.needs())))
            assert gone == [plain.pop(each.number) for each in gone]
        else:
            lineup.add_history({rng.choice(["a …", "b", "c"]): [4.0]})
        check(lineup, plain)


OUTCOMES = (SUCCESS, SUCCESS, Outcome("failed", 1), Outcome("timed out"), Outcome("not started"))


def any_job(rng: Random, number: int) -> Job:
    return Job(
        number,
        rng.choice([b"a 1", b"a 2", b"b", b"c"]),
        Place(number),
        rng.randint(0, 3),
        rng.choice([None, None, 1, 3]),
        time=rng.choice([None, None, 0.0, 1.0, 3.5, 1e6]),
        timeout=rng.choice([None, None, 0.0, 7.0]),
        retries=rng.choice([None, 0, 2]),
        priority=rng.randint(-1, 1),
        label=rng.choice("xyz"),
        after=tuple({rng.randint(1, number - 1) for _ in range(rng.randint(0, 1))}) if number > 1 else (),
    )


class Course:
    """A run in which everything happens that may, by chance; and what has become of each job."""

    def __init__(self, rng: Random, policy: str, per_gpu: int) -> None:
        limits = Limits(tuple("0123"), per_gpu, 2, (8.0, 8.0, 2.0, 8.0))
        self.rng = rng
        self.subject = Scheduler(limits, POLICIES[policy](), Rules(1, 2.0), label=lambda each: each.label)
        self.ended: Counter[int] = Counter()
        self.began: set[tuple[int, int]] = set()
        self.names = "0123"
        self.again = 2

    def drop(self, dropped: tuple[Dropped, ...]) -> None:
        self.ended.update(each.job.number for each in dropped)

    def start(self, now: float) -> None:
        free = self.names if self.rng.random() < 3 / 4 else self.names[1:]
        rooms = dict.fromkeys(free, Room())
        while choice := self.subject.next(now, rooms):
            gpus = choice.attempt.gpus
            if gpus and self.rng.random() < 1 / 10:  # another scheduler was first
                rooms = {gpu: room for gpu, room in rooms.items() if gpu != gpus[0]}
                continue
            self.subject.start(choice, now)
            assert choice.attempt.key not in self.began, "an attempt started twice"
            self.began.add(choice.attempt.key)

    def meddle(self) -> None:
        if self.rng.random() < 1 / 10:
            self.drop(self.subject.cancel(self.rng.randint(1, 30)))
        if self.rng.random() < 1 / 20:
            self.subject.add_history({self.rng.choice(["a …", "b"]): [self.rng.choice([0.0, 2.0, 50.0])]})
        if self.rng.random() < 1 / 50 and len(self.names) > 3:
            self.subject.lose(self.names[-1])
            self.names = self.names[:-1]
        self.drop(self.subject.drop_unfit())

    def end(self, now: float) -> None:
        attempt = self.rng.choice(list(self.subject.running))
        verdict = self.subject.end(attempt, self.rng.choice(OUTCOMES), now)
        if verdict.dropped and self.again:
            self.again -= 1
            self.drop(self.subject.try_again([attempt], [each.job for each in verdict.dropped]))
        elif not verdict.retries:
            self.drop(verdict.dropped)
            self.ended[attempt.job.number] += 1


@pytest.mark.parametrize("policy", sorted(POLICIES))
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_no_job_is_lost_or_run_twice_whatever_happens(policy: str, seed: int, per_gpu: int) -> None:
    rng = Random(seed)
    course, to_come, now = Course(rng, policy, per_gpu), [any_job(rng, number) for number in range(1, 31)], 0.0
    while to_come or course.subject.waiting or course.subject.running:
        if to_come and rng.random() < 1 / 2:
            course.drop(course.subject.add(to_come.pop(0), now))
        course.start(now)
        course.meddle()
        if course.subject.running and rng.random() < 3 / 4:
            course.end(now)
        now += rng.choice([0.0, 0.5, 5.0])
    assert course.ended == Counter(range(1, 31))


@pytest.mark.unmeasured
def test_of_templates_without_end_the_oldest_are_forgotten() -> None:
    estimates = Estimates()
    names = ["".join(chr(97 + number // 26**place % 26) for place in range(4)) for number in range(100_100)]
    for number, name in enumerate(names):
        each = job(number, f"train --name {name}", timeout=9.0 if number % 2 else None)
        estimates.take_in(each)
        if number % 3:
            estimates.learn(each, 1.0)
        else:
            estimates.forget(each, lambda _number: False, has_failed=number % 2 == 0)
    kept = (estimates._runs, estimates._unknown, estimates._limited, estimates._scouts)
    assert [len(each) for each in kept[1:]] == [0, 0, 0]
    assert len(estimates._runs) == len(names) * 2 // 3
    for number in range(50_000):
        estimates.learn(job(number, f"test --name {names[number]}"), 1.0)
    assert len(estimates._runs) == 100_000


def test_a_time_by_the_clock_on_the_wall_is_no_length() -> None:
    assert datetime.fromtimestamp(MOST_SECONDS, timezone.utc).year == 4147
