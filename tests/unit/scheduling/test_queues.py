"""`next` chooses and changes nothing; only `start` commits, exactly what was chosen."""

from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Outcome, Place
from simple_gpu_scheduler.scheduling import Rules
from simple_gpu_scheduler.scheduling.backfill import Choice
from simple_gpu_scheduler.scheduling.policies import POLICIES, Policy
from simple_gpu_scheduler.scheduling.policies.learned import Learned, Weights
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits, Room, Rooms
from tests.support.starts import start_all

WEIGHTS = Weights((-1.0, 0.25, -0.5), (0.5, -0.125, 0.25), (0.25, 0.125, -0.5))
MAKERS: Mapping[str, Callable[[], Policy]] = {**POLICIES, "learned": lambda: Learned(WEIGHTS)}
NAMES = ("0", "1", "2", "3")
OUTCOMES = (SUCCESS, SUCCESS, Outcome("failed", 1), Outcome("timed out"))
MEMORY = 8.0


def job(number: int, gpus: int = 1, **options) -> Job:
    return Job(number, b"true", Place(number), gpus, **options)


def rooms(names: str = "0123", free: float = float("inf")) -> dict[str, Room]:
    return {name: Room(free) for name in names}


def scheduler(gpus: str = "01", policy: str = "fifo", per_gpu: int = 1, memory: float = MEMORY, **rules) -> Scheduler:
    limits = Limits(tuple(gpus), per_gpu, 1, (memory,) * len(gpus))
    return Scheduler(limits, MAKERS[policy](), Rules(**rules), label=lambda each: each.label)


def waiting(subject: Scheduler, *jobs: Job) -> Scheduler:
    for each in jobs:
        subject.add(each, 0)
    return subject


def numbers(attempts: list[Attempt]) -> list[int]:
    return [attempt.job.number for attempt in attempts]


# ---- Whatever happens


class Seen(NamedTuple):
    """All that a scheduler tells."""

    waiting: int
    running: list[Attempt]
    gpus: int
    memory: int
    asks_lengths: bool
    next_wake: float


def seen(subject: Scheduler, now: float) -> Seen:
    return Seen(
        subject.waiting,
        list(subject.running),
        subject.wants[0],
        subject.wants[1],
        subject.asks_lengths,
        subject.next_wake(now),
    )


def any_job(rng: Random, number: int) -> Job:
    return Job(
        number,
        rng.choice([b"a 1", b"a 2", b"b"]),
        Place(number),
        rng.choice([0, 1, 1, 1, 2, 3]),
        rng.choice([None, None, 1, 3, 8]),
        time=rng.choice([None, 1.0, 3.5, 30.0, 1e6]),
        retries=rng.choice([None, 0, 2]),
        priority=rng.randint(-1, 1),
        label=rng.choice("xyz"),
        after=(rng.randint(1, number - 1),) if number > 1 and rng.random() < 1 / 10 else (),
        name=f"n{number}",
    )


class Twins:
    """Two schedulers to which the same happens; the second is asked more often, and with copies of the rooms."""

    def __init__(self, rng: Random, policy: str, per_gpu: int) -> None:
        self.rng = rng
        self.policy = policy
        self.per_gpu = per_gpu
        rules = {"retries": 1, "retry_delay": 2.0, "delay": rng.choice([0, 0, 3])}
        self.first, self.second = (scheduler("0123", policy, per_gpu, **rules) for _ in range(2))
        self.rooms: Rooms = rooms()
        self.now = 0.0
        self.number = 0

    def both(self, act: Callable[[Scheduler], object]) -> None:
        assert act(self.first) == act(self.second)

    def happen(self) -> None:
        rng = self.rng
        step = rng.randint(0, 9)
        running = list(self.first.running)
        if step <= 3 and self.number < 40:
            self.number += 1
            added = any_job(rng, self.number)
            self.both(lambda subject: subject.add(added, self.now))
        elif step <= 6 and running:
            attempt, outcome = rng.choice(running), rng.choice(OUTCOMES)
            self.both(lambda subject: subject.end(attempt, outcome, self.now))
        elif step == 7 and self.number:
            number = rng.randint(1, self.number)
            self.both(lambda subject: subject.cancel(number))
        elif step == 8:
            history = {rng.choice(["a …", "b"]): [rng.choice([0.0, 2.0, 50.0])]}
            self.both(lambda subject: subject.add_history(history))
        elif rng.random() < 1 / 2:
            free = rng.sample(NAMES, rng.randint(1, 4))
            self.rooms = {name: Room(rng.choice([2.0, MEMORY])) for name in free}
        self.both(lambda subject: subject.drop_unfit())

    def start_all(self) -> None:
        # Other rooms for the second, so that it does not remember whom it passed before. But `learned` counts the load
        # too, which starts have changed.
        copy = self.rooms if self.policy == "learned" else dict(self.rooms)
        while choice := self.next(copy):
            gpus = choice.attempt.gpus
            if gpus and self.rng.random() < 1 / 6:  # another scheduler was first
                self.rooms = {name: room for name, room in self.rooms.items() if name != gpus[0]}
                copy = self.rooms
                continue
            self.both(lambda subject, choice=choice: subject.start(choice, self.now))
            self.check()

    def next(self, copy: Rooms) -> Choice | None:
        first, second, now = self.first, self.second, self.now
        choice = first.next(now, self.rooms)
        before = seen(first, now)
        assert first.next(now, self.rooms) == choice, "it was asked again and says something else"
        for _ in range(self.rng.randint(0, 2)):
            second.next(now, rooms("012"[self.rng.randint(0, 2) :]))
        assert second.next(now, copy) == choice, "what happened before, or the asking, has left a trace"
        assert seen(first, now) == seen(second, now) == before
        return choice

    def check(self) -> None:
        running = list(self.first.running)
        slots = [slot for attempt in running for slot in attempt.slots]
        assert len(set(slots)) == len(slots), "a slot is taken twice"
        for attempt in running:
            of_gpus = [NAMES[slot // self.per_gpu] for slot in attempt.slots if slot < self.per_gpu * len(NAMES)]
            assert of_gpus == list(attempt.gpus), "a slot of another GPU"


@pytest.mark.parametrize("policy", sorted(MAKERS))
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_asking_changes_nothing_whatever_happens_before_and_after(policy: str, seed: int, per_gpu: int) -> None:
    rng = Random(seed)
    twins = Twins(rng, policy, per_gpu)
    for _ in range(100):
        twins.happen()
        twins.start_all()
        twins.now += rng.choice([0.0, 0.0, 1.0, 5.0])


@pytest.mark.parametrize("policy", sorted(MAKERS))
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_a_choice_that_could_not_start_comes_again_while_the_rooms_are_the_same(
    policy: str, seed: int, per_gpu: int
) -> None:
    rng = Random(seed)
    subject = scheduler("0123", policy, per_gpu)
    waiting(subject, *(any_job(rng, number) for number in range(1, 30)))
    free = rooms()
    for now in range(40):
        while choice := subject.next(now, free):
            for _ in range(3):
                assert subject.next(now, free) == choice
            subject.start(choice, now)
        for attempt in list(subject.running)[:2]:
            subject.end(attempt, SUCCESS, now)


# ---- One thing at a time


def test_nothing_runs_before_it_is_started() -> None:
    subject = waiting(scheduler(), job(1), job(2))
    choice = subject.next(0, rooms())
    assert choice
    assert (choice.attempt.gpus, choice.attempt.slots) == (("0",), (0,))
    assert (subject.waiting, subject.running) == (2, [])
    subject.start(choice, 0)
    assert (subject.waiting, subject.running) == (1, [choice.attempt])


def test_when_another_was_first_the_next_choice_is_elsewhere_and_keeps_the_turn() -> None:
    subject = waiting(scheduler(), job(1), job(2))
    refused = subject.next(0, rooms("01"))
    again = subject.next(0, rooms("1"))
    assert refused
    assert again
    assert (refused.attempt.gpus, again.attempt.gpus) == (("0",), ("1",))
    assert numbers([refused.attempt, again.attempt]) == [1, 1]


def test_a_choice_that_could_not_start_does_not_make_the_next_one_wait_for_the_delay() -> None:
    subject = waiting(scheduler(delay=10), job(1), job(2))
    assert subject.next(0, rooms())
    assert subject.next_wake(0) == float("inf")
    assert numbers(start_all(subject, 1, rooms())) == [1]
    assert subject.next_wake(1) == 11
    assert start_all(subject, 10.5, rooms()) == []
    assert numbers(start_all(subject, 11, rooms())) == [2]


def test_what_was_chosen_before_another_start_took_its_slot_is_refused() -> None:
    subject = waiting(scheduler("0"), job(1), job(2))
    stale = subject.next(0, rooms())
    start_all(subject, 0, rooms())
    assert stale
    with pytest.raises(ValueError, match="not in list"):
        subject.start(stale, 0)
    assert (subject.waiting, numbers(list(subject.running))) == (1, [1])


# ---- Memory


@pytest.mark.parametrize(("mem", "starts"), [(7, True), (8, True), (9, False)])
def test_memory_that_just_fits_is_enough(mem: int, starts: bool) -> None:
    subject = waiting(scheduler(memory=100.0), job(1, mem=mem))
    assert bool(subject.next(0, rooms(free=8))) == starts
    assert not subject.next(0, rooms(free=mem - 1))


@pytest.mark.parametrize(("mem", "starts"), [(5, True), (6, False)])
def test_memory_that_a_running_job_has_yet_to_use_is_not_free(mem: int, starts: bool) -> None:
    subject = waiting(scheduler("0", per_gpu=2), job(1, mem=3), job(2, mem=mem))
    assert numbers(start_all(subject, 0, rooms(free=MEMORY))) == [1, 2] if starts else [1]
    used = waiting(scheduler("0", per_gpu=2), job(1, mem=3), job(2, mem=mem))
    [first] = start_all(used, 0, {"0": Room(3)})
    assert bool(used.next(0, {"0": Room(5, {first.key: 3})})) == starts, "it uses all that it said"
    assert bool(used.next(0, {"0": Room(7, {first.key: 1})})) == starts, "it uses some of it"
    assert bool(used.next(0, {"0": Room(5, {first.key: 9})})) == starts, "it uses more than it said"


@pytest.mark.parametrize(("mem", "fits"), [(7, True), (8, False)])
def test_after_a_closer_look_the_memory_must_still_be_there(mem: int, fits: bool) -> None:
    subject = waiting(scheduler("01", per_gpu=2), job(1, 2, mem=mem), job(2, 2, mem=1))
    choice = subject.next(0, rooms("01"))
    assert choice
    assert subject.fits(choice.attempt, {"0": Room(8), "1": Room(7)}) == fits
    assert not subject.fits(choice.attempt, {"0": Room(8)}), "it has no room on the other"
    subject.start(choice, 0)
    if fits:
        beside = subject.next(0, rooms("01"))
        assert beside
        assert subject.fits(beside.attempt, {"0": Room(8), "1": Room(8)})
        assert not subject.fits(beside.attempt, {"0": Room(8), "1": Room(7)}), "the first has yet to use it"


def test_memory_that_no_job_or_only_a_cpu_job_asks_for_is_never_missing() -> None:
    subject = waiting(scheduler("0"), job(1), job(2, 0, mem=100))
    attempts = start_all(subject, 0, {"0": Room(0)})
    assert numbers(attempts) == [1, 2]
    assert all(subject.fits(attempt, {}) for attempt in attempts)
    assert subject.wants[1] == 0


@pytest.mark.parametrize(("width", "mem", "is_dropped"), [(2, 8, False), (2, 9, True), (3, None, True), (1, 8, False)])
def test_a_job_that_fits_on_no_gpus_that_are_left_is_dropped(width: int, mem: int | None, is_dropped: bool) -> None:
    subject = waiting(scheduler("012"), job(1, width, mem=mem))
    assert subject.drop_unfit() == (), "no GPU is lost"
    subject.lose("1")
    assert [dropped.job.number for dropped in subject.drop_unfit()] == [1] * is_dropped
    assert subject.waiting == 1 - is_dropped


# ---- Wide jobs


def test_a_wide_job_that_only_just_has_enough_gpus_within_reach_keeps_its_place() -> None:
    subject = waiting(scheduler("012"), job(1), job(2, 2), job(3))
    [first] = start_all(subject, 0, rooms("0"))
    assert start_all(subject, 0, rooms("01")) == [], "gpu 1 is kept for job 2"
    assert start_all(subject, 0, rooms("1")) == [], "gpu 0 will be there when job 1 has ended"
    subject.end(first, SUCCESS, 1)
    assert numbers(start_all(subject, 1, rooms("1"))) == [3], "job 2 could not start, so it keeps nothing"


@pytest.mark.parametrize(("estimate", "passes"), [(10.0, True), (10.5, False)])
def test_a_job_that_ends_just_in_time_passes_a_wide_one(estimate: float, passes: bool) -> None:
    subject = waiting(scheduler(), job(1, 1, time=10.0), job(2, 2, time=1.0), job(3, 1, time=estimate))
    assert numbers(start_all(subject, 0, rooms())) == [1, 3] if passes else [1]


@pytest.mark.parametrize(("estimate", "passes"), [(10.0, True), (20.0, False)])
def test_what_passes_a_wide_job_leaves_it_the_gpus_that_it_waits_for(estimate: float, passes: bool) -> None:
    jobs = job(1, 1, time=10.0), job(2, 1, time=estimate), job(3, 2, time=1.0), job(4, 1, time=99.0)
    starts = start_all(waiting(scheduler("012"), *jobs), 0, rooms("012"))
    assert numbers(starts) == [1, 2, 4] if passes else [1, 2], "gpu 2 is kept unless two others come at the same time"


def test_when_something_happens_at_the_same_moment_the_wide_job_may_start() -> None:
    free = rooms("01")
    subject = waiting(scheduler("01"), job(1, 1, time=10.0), job(2, 2, time=1.0), job(3, 1, time=5.0))
    assert numbers(start_all(subject, 0, free)) == [1, 3]
    for attempt in list(subject.running):
        subject.end(attempt, SUCCESS, 0)
    assert numbers(start_all(subject, 0, free)) == [2]
