"""Which jobs may pass a wide job that waits: none that delay it.

What is known of the lengths is exact here, unless a test says otherwise.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from math import frexp
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Place
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits, Room
from simple_gpu_scheduler.simulation.simulate import Arrival, simulate
from tests.support.starts import start_all

TOTAL = 8.0  # memory on each GPU
NAMES = "0123"


def job(number: int, gpus: int = 1, time: float | None = None, mem: int | None = None) -> Job:
    return Job(number, b"train", Place(number), gpus, mem, time=time)


def fifo(gpus: int, per_gpu: int = 1) -> Scheduler:
    return Scheduler(Limits(tuple(NAMES[:gpus]), per_gpu, 1, (TOTAL,) * gpus), POLICIES["fifo"]())


@st.composite
def workloads(draw: st.DrawFn, gpus: int, *, with_mem: bool) -> list[Arrival]:
    size = draw(st.integers(2, 30))
    at = sorted(draw(st.lists(st.integers(0, 60), min_size=size, max_size=size)))
    widths = st.sampled_from([1, 1, 1, *range(1, gpus + 1)])
    memory = st.sampled_from([None, None, 2, 5]) if with_mem else st.none()
    times = st.sampled_from([1.0, 2.0, 3.0, 5.0, 7.5, 20.0, 40.0, 100.0])
    jobs = [job(number, draw(widths), draw(times), draw(memory)) for number in range(1, size + 1)]
    return [Arrival(float(when), each, each.time or 0) for when, each in zip(at, jobs, strict=True)]


class Running(NamedTuple):
    """What runs, and until when."""

    end: float
    number: int
    attempt: Attempt


class Moment(NamedTuple):
    """After one plan: what it started, what waits (in the order of the input), what ran before and what runs now."""

    now: float
    starts: list[Attempt]
    waiting: list[Job]
    before: list[Running]
    running: list[Running]


def moments(workload: list[Arrival], gpus: int, per_gpu: int) -> Iterator[Moment]:
    subject, rooms = fifo(gpus, per_gpu), dict.fromkeys(NAMES[:gpus], Room())
    coming, running = list(workload), list[Running]()
    waiting: dict[int, Job] = {}
    while coming or running:
        now = min([each.at for each in coming[:1]] + [each.end for each in running[:1]])
        while running and running[0].end <= now:
            subject.end(heappop(running).attempt, SUCCESS, now)
        while coming and coming[0].at <= now:
            waiting[coming[0].job.number] = coming[0].job
            subject.add(coming.pop(0).job, now)
        before, starts = list(running), start_all(subject, now, rooms)
        for each in starts:
            number = waiting.pop(each.job.number).number
            heappush(running, Running(now + workload[number - 1].length, number, each))
        yield Moment(now, starts, list(waiting.values()), before, list(running))
    assert not waiting


def earliest(wide: Job, running: list[Running], now: float, gpus: int, per_gpu: int) -> float:
    """When it would start if nothing else did, by a plain search."""
    for at in sorted({now, *(each.end for each in running if each.end > now)}):
        has_room = 0
        for gpu in NAMES[:gpus]:
            left = [each.attempt.job for each in running if each.end > at and gpu in each.attempt.gpus]
            has_room += len(left) < per_gpu and sum(each.mem or 0 for each in left) + (wide.mem or 0) <= TOTAL
        if has_room >= wide.gpus:
            return at
    raise AssertionError("it never fits")


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_the_first_that_waits_starts_when_it_would_with_no_job_behind_it(
    data: st.DataObject,
    gpus: int,
    per_gpu: int,
    with_mem: bool,
) -> None:
    workload = data.draw(workloads(gpus, with_mem=with_mem))
    promised: dict[int, float] = {}
    for now, starts, waiting, before, running in moments(workload, gpus, per_gpu):
        for each in starts:
            assert now <= promised.get(each.job.number, now) + 1e-9, "it was delayed"
        if waiting and waiting[0].number not in promised:
            first = waiting[0]
            ahead = [each for each in running if each.number < first.number]
            passed_earlier = [each for each in before if each.number > first.number]
            promised[first.number] = earliest(first, ahead + passed_earlier, now, gpus, per_gpu)


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(2, 4), st.integers(1, 3), st.booleans())
def test_those_behind_the_first_wide_job_do_not_delay_it_in_a_whole_run(
    data: st.DataObject,
    gpus: int,
    per_gpu: int,
    with_mem: bool,
) -> None:
    workload = data.draw(workloads(gpus, with_mem=with_mem))
    at = next((at for at, each in enumerate(workload) if each.job.gpus > 1 or each.job.mem), len(workload) - 1)
    alone = simulate(workload[: at + 1], fifo(gpus, per_gpu), NAMES[:gpus])
    assert simulate(workload, fifo(gpus, per_gpu), NAMES[:gpus])[at] <= alone[at] + 1e-9


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(2, 4), st.integers(1, 3))
def test_with_no_estimate_a_place_stays_free_on_each_gpu_for_the_wide_job(
    data: st.DataObject, gpus: int, per_gpu: int
) -> None:
    drawn = data.draw(workloads(gpus, with_mem=False))
    workload = [
        each._replace(job=each.job._replace(time=None, command=word(each.job.number).encode())) for each in drawn
    ]
    first = 0
    for _, starts, waiting, _, running in moments(workload, gpus, per_gpu):
        for each in starts:
            if first and each.job.number > first and first in {other.number for other in waiting}:
                on_each = [sum(gpu in other.attempt.gpus for other in running) for gpu in each.gpus]
                assert max(on_each) < per_gpu, "it took the last place"
        first = waiting[0].number if waiting else 0


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(2, 4), st.integers(1, 2))
def test_no_job_waits_that_could_start_and_delay_nothing(data: st.DataObject, gpus: int, per_gpu: int) -> None:
    workload = [Arrival(0, job(1, gpus, 1.0), 1.0)]  # so that times are asked from the first
    drawn = data.draw(workloads(gpus, with_mem=False))
    workload.extend(each._replace(job=each.job._replace(number=each.job.number + 1)) for each in drawn)
    for now, _, waiting, _, running in moments(workload, gpus, per_gpu):
        kinds = {(each.gpus, frexp(each.time or 0)[1]): each for each in reversed(waiting)}  # the first of each
        for each in kinds.values():
            places = [gpu for gpu in NAMES[:gpus] if sum(gpu in other.attempt.gpus for other in running) < per_gpu]
            if len(places) < each.gpus:
                continue
            start = earliest(waiting[0], running, now, gpus, per_gpu)
            assert now + (each.time or 0) > start, "it would have ended by then"
            if per_gpu == 1:
                beside = Running(1e9, each.number, Attempt(each, 1, tuple(places[: each.gpus]), ()))
                assert earliest(waiting[0], [*running, beside], now, gpus, 1) > start, "it needs other GPUs"


def test_what_runs_since_before_the_first_wide_job_came_has_a_known_end_too() -> None:
    workload = [Arrival(0, job(1, 1, 10), 10), Arrival(1, job(2, 2, 5), 5), Arrival(2, job(3, 1, 1), 1)]
    assert list(simulate(workload, fifo(2), NAMES[:2])) == [0, 10, 2]


def test_what_is_known_of_earlier_runs_tells_of_what_runs_when_it_comes_late() -> None:
    subject, rooms = fifo(2), dict.fromkeys("01", Room())
    slow, wide, quick = (Job(n, command, Place(n), gpus) for n, command, gpus in
                         ((1, b"slow", 1), (2, b"wide", 2), (3, b"quick", 1)))  # fmt: skip
    for each in (slow, wide, quick):
        subject.add(each, 0)
    assert [each.job.number for each in start_all(subject, 0, rooms)] == [1]
    assert subject.asks_lengths
    subject.add_history({"slow": [10.0], "wide": [5.0], "quick": [3.0]})
    assert [each.job.number for each in start_all(subject, 1, rooms)] == [3]
    assert start_all(subject, 2, rooms) == []


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"lpt"}))  # under which the long ones start first
def test_under_every_policy_a_short_one_behind_a_long_one_may_pass_a_wide_one(policy: str) -> None:
    works = [(1, 100.0, 100), (2, 10.0, 90), (1, 200.0, 80), (1, 50.0, 70)]  # priorities, so that it is the same order
    jobs = [job(n, gpus, time)._replace(priority=priority) for n, (gpus, time, priority) in enumerate(works, 1)]
    workload = [Arrival(0, each, each.time or 0) for each in jobs]
    starts = simulate(workload, Scheduler(Limits(tuple("01")), POLICIES[policy]()), "01")
    assert starts[3] < 100, "a GPU idles beside it"


def test_a_job_that_waits_for_memory_is_passed_by_jobs_known_to_end_by_then() -> None:
    workload = [Arrival(0, job(1, 1, 100, 5), 100), Arrival(1, job(2, 1, 50, 5), 50), Arrival(2, job(3, 1, 10, 1), 10)]
    assert list(simulate(workload, fifo(1, 2), NAMES[:1])) == [0, 100, 2]


def test_a_job_that_says_it_takes_no_time_does_not_pass_where_nothing_is_known() -> None:
    workload = [Arrival(0, job(1), 10), Arrival(1, job(2, 2), 5), Arrival(2, job(3, 1, 0.0), 100)]
    assert list(simulate(workload, fifo(2), NAMES[:2])) == [0, 10, 15]


def word(number: int) -> str:
    """A command that shares its template with no other."""
    return "run-" + "".join(chr(ord("a") + int(digit)) for digit in str(number))
