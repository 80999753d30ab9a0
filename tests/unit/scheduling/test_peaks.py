"""Jobs with `mem=auto`: alone while nobody knows what their kind needs, then beside others with what it needs."""

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Outcome, Place
from simple_gpu_scheduler.base.measurement import Figures, GpuUse, Measurement
from simple_gpu_scheduler.scheduling import NextAttempt, Rules
from simple_gpu_scheduler.scheduling.peaks import Peaks, peak_of, recorded_peak
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits, Room
from tests.support.starts import start_all

MIB, GIB = 2**20, 2**30
FAILURE = Outcome("failed", 1)


def job(number: int, command: str = "train", **options) -> Job:
    options = {"mem_auto": True} | options
    return Job(number, command.encode(), Place(number), **options)


def scheduler(gpus: str = "0", per_gpu: int = 4, total: float = 80 * GIB, policy: str = "fifo", **rules) -> Scheduler:
    return Scheduler(Limits(tuple(gpus), per_gpu, 1, (total,) * len(gpus)), POLICIES[policy](), Rules(**rules))


def added(subject: Scheduler, *jobs: Job) -> Scheduler:
    for each in jobs:
        subject.add(each, 0)
    return subject


def rooms(gpus: str = "0", free: float = 80 * GIB) -> dict[str, Room]:
    return {gpu: Room(free) for gpu in gpus}


def started(subject: Scheduler, now: float = 0, gpus: str = "0", free: float = 80 * GIB) -> list[Attempt]:
    return start_all(subject, now, rooms(gpus, free))


def numbers(attempts: list[Attempt]) -> list[int]:
    return [attempt.job.number for attempt in attempts]


def end(subject: Scheduler, number: int, outcome: Outcome = SUCCESS, peak: float | None = None, now: float = 1):
    attempt = next(each for each in subject.running if each.job.number == number)
    return subject.end(attempt, outcome, now, peak=peak)


def test_while_nothing_is_known_each_job_has_its_gpu_to_itself() -> None:
    subject = added(scheduler("01"), *[job(number) for number in range(1, 6)])
    first = started(subject, gpus="01")
    assert [(each.job.number, each.gpus, each.alone, each.job.mem) for each in first] == [
        (1, ("0",), True, None),
        (2, ("1",), True, None),
    ]


@pytest.mark.parametrize("options", [{"mem_auto": False}, {"mem_auto": False, "mem": 1}, {"command": "other"}])
def test_nothing_joins_a_scout_and_it_joins_nothing(options: dict[str, object]) -> None:
    subject = added(scheduler(), job(1), job(2, **options))
    assert numbers(started(subject)) == [1]
    end(subject, 1, FAILURE)
    assert numbers(started(subject)) == [2]
    added(subject, job(3), job(4, mem_auto=False))
    assert numbers(started(subject)) == [], "4 may not take the place that 3 waits for"


def test_the_first_success_tells_the_others_which_then_share() -> None:
    subject = added(scheduler(), *[job(number, f"train --lr 0.{number}") for number in range(1, 9)])
    assert numbers(started(subject)) == [1]
    end(subject, 1, peak=20 * GIB)
    shared = started(subject)
    assert [(each.job.number, each.job.mem, each.alone) for each in shared] == [
        (2, 24 * GIB, False),
        (3, 24 * GIB, False),
        (4, 24 * GIB, False),
    ]


def test_what_is_promised_follows_the_highest_peak_of_those_that_succeeded() -> None:
    subject = added(scheduler(per_gpu=1), *[job(number) for number in range(1, 6)])
    promised = []
    for peak in (10 * GIB, 20 * GIB, 15 * GIB, None, None):
        [attempt] = started(subject)
        promised.append(attempt.job.mem)
        end(subject, attempt.job.number, peak=peak)
    assert promised == [None, 12 * GIB, 24 * GIB, 24 * GIB, 24 * GIB]


@pytest.mark.parametrize(("peak", "mem"), [(1, MIB), (10 * MIB, 12 * MIB), (10 * MIB + 1, 13 * MIB), (5e6, 6 * MIB)])
def test_it_is_a_fifth_more_in_whole_mib(peak: float, mem: int) -> None:
    subject = added(scheduler(), job(1), job(2))
    started(subject)
    end(subject, 1, peak=peak)
    assert started(subject)[0].job.mem == mem


def test_a_scout_that_fails_or_tells_nothing_teaches_nothing() -> None:
    subject = added(scheduler(), *[job(number) for number in range(1, 4)])
    started(subject)
    end(subject, 1, FAILURE, peak=GIB)
    [second] = started(subject)
    assert (second.alone, second.job.mem) == (True, None)
    end(subject, 2)
    assert started(subject)[0].alone


def test_scouts_in_flight_stay_alone_when_the_peak_gets_known() -> None:
    subject = added(scheduler("01"), *[job(number) for number in range(1, 9)])
    assert numbers(started(subject, gpus="01")) == [1, 2]
    end(subject, 1, peak=10 * GIB)
    assert {each.gpus for each in started(subject, gpus="01")} == {("0",)}
    end(subject, 2)
    assert {each.gpus for each in started(subject, gpus="01")} == {("1",)}


def test_other_jobs_of_the_same_command_teach_as_well_but_only_once_somebody_asks() -> None:
    subject = added(scheduler(), job(1, mem_auto=False, mem=GIB))
    started(subject)
    end(subject, 1, peak=10 * GIB)
    assert not subject.asks_peaks
    added(subject, job(2))
    assert started(subject)[0].alone
    added(subject, job(3, mem_auto=False), job(4))
    end(subject, 2)
    assert numbers(started(subject)) == [3]
    end(subject, 3, peak=10 * GIB)
    assert [(each.job.number, each.job.mem) for each in started(subject)] == [(4, 12 * GIB)]


def test_earlier_runs_tell_too() -> None:
    subject = added(scheduler(), *[job(number, f"train {number}") for number in range(1, 4)])
    assert subject.asks_peaks
    subject.add_history({}, {"train …": [5 * GIB, 10 * GIB], "other": [GIB], "none": []})
    assert [each.job.mem for each in started(subject)] == [12 * GIB] * 3


def test_more_than_the_largest_gpu_has_is_all_of_it_and_then_nothing_else_is_there() -> None:
    """Not even if the driver keeps a little for itself: to wait for that would be in vain."""
    subject = Scheduler(Limits(("0", "1"), 4, 1, (40.0 * GIB, 80.0 * GIB)), POLICIES["fifo"]())
    added(subject, job(1), job(2), job(3, mem_auto=False))
    subject.add_history({}, {"train": [70 * GIB]})
    free = {"0": Room(39 * GIB), "1": Room(79 * GIB)}
    attempts = start_all(subject, 0, free)
    assert subject.wants == (1, 0), "nobody must look for so much free memory"
    assert [(each.job.number, each.gpus, each.job.mem, each.alone) for each in attempts] == [
        (1, ("1",), 80 * GIB, True),
        (3, ("0",), None, False),
    ]


def test_a_wide_job_is_promised_no_more_than_that_many_gpus_have() -> None:
    subject = Scheduler(Limits(("0", "1"), 1, 1, (40.0 * GIB, 80.0 * GIB)), POLICIES["fifo"]())
    added(subject, job(1, gpus=2))
    subject.add_history({}, {"train": [70 * GIB]})
    [attempt] = start_all(subject, 0, {"0": Room(39 * GIB), "1": Room(79 * GIB)})
    assert (attempt.gpus, attempt.job.mem) == (("0", "1"), 40 * GIB)


def test_when_the_largest_gpu_is_lost_it_is_all_of_the_next() -> None:
    subject = Scheduler(Limits(("0", "1"), 4, 1, (40.0 * GIB, 80.0 * GIB)), POLICIES["fifo"]())
    added(subject, job(1))
    subject.add_history({}, {"train": [50 * GIB]})
    subject.lose("1")
    assert subject.drop_unfit() == ()
    [attempt] = started(subject)
    assert (attempt.job.mem, attempt.alone) == (40 * GIB, True)


def test_a_retry_is_alone_on_a_gpu_that_is_large_enough() -> None:
    subject = added(scheduler(retries=1), job(1), job(2), job(3))
    subject.add_history({}, {"train": [10 * GIB]})
    assert numbers(started(subject)) == [1, 2, 3]
    assert end(subject, 1, FAILURE).retries
    end(subject, 2)
    assert started(subject, 2) == []
    end(subject, 3)
    [retry] = started(subject, 3)
    assert (retry.number, retry.alone, retry.job.mem) == (2, True, 12 * GIB)


@pytest.mark.parametrize(
    ("begin", "alone"), [((2, 1), False), ((2, 0), True), ((3, 2), False), ((3, 1), True), ((2, 1, True), True)]
)
def test_a_job_that_was_only_interrupted_is_not_alone(begin: tuple, *, alone: bool) -> None:
    subject = scheduler()
    subject.add(job(1), 0, NextAttempt(*begin))
    subject.add_history({}, {"train": [10 * GIB]})
    assert [each.alone for each in started(subject)] == [alone]


def test_cpu_jobs_and_gpus_of_one_job_need_no_scout() -> None:
    subject = added(scheduler(per_gpu=1), job(1), job(2, gpus=0))
    assert [(each.job.number, each.alone) for each in started(subject)] == [(1, False), (2, False)]


def test_a_scout_that_waits_holds_the_gpu_that_has_the_fewest_jobs_and_no_other() -> None:
    subject = added(scheduler("01", 3), *[job(number, mem_auto=False) for number in range(1, 4)])
    assert numbers(started(subject, gpus="01")) == [1, 2, 3]  # 1 and 3 on GPU 0
    added(subject, job(4), *[job(number, mem_auto=False) for number in range(5, 8)])
    assert [(each.job.number, each.gpus) for each in started(subject, gpus="01")] == [(5, ("0",))]
    end(subject, 2)
    assert [(each.job.number, each.gpus) for each in started(subject, gpus="01")] == [(4, ("1",))]


def test_a_shorter_job_may_use_the_gpu_that_a_scout_waits_for_if_it_ends_in_time() -> None:
    subject = added(scheduler("0", 3), job(1, mem_auto=False, time=100))
    assert numbers(started(subject)) == [1]
    added(subject, job(2), job(3, mem_auto=False, time=200), job(4, mem_auto=False, time=50))
    assert numbers(started(subject)) == [4]
    end(subject, 1)
    end(subject, 4)
    assert numbers(started(subject, 2)) == [2]


jobs_drawn = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.sampled_from(["auto", "none", "size"])),
    min_size=1,
    max_size=25,
)


def check(running: Mapping[str, list[Attempt]], new: Attempt, peaks: Mapping[str, list[float]]) -> None:
    if new.job.mem_auto and new.gpus:
        known = peaks.get(new.job.command.decode())
        if known:
            assert new.job.mem is not None
            assert new.job.mem >= 1.2 * max(known) or new.job.mem == 12 * MIB
        else:
            assert new.alone
            assert new.job.mem is None
    for there in running.values():
        assert len(there) == 1 or not any(each.alone for each in there)
        assert len(there) <= 3


@settings(max_examples=200, deadline=None)
@given(drawn=jobs_drawn, policy=st.sampled_from(sorted(POLICIES)), seed=st.integers(0, 10**6))
def test_an_unknown_job_never_shares_a_known_one_is_promised_a_fifth_more_and_all_run(
    drawn: list[tuple[int, str, str]], policy: str, seed: int
) -> None:
    random, gpus, peaks = Random(seed), "01", dict[str, list[float]]()
    subject = Scheduler(Limits(tuple(gpus), 3, 1, (12 * MIB,) * 2), POLICIES[policy](), Rules(retries=1))
    for number, (width, command, mem) in enumerate(drawn, 1):
        size = random.randint(1, 12) * MIB if mem == "size" else None
        subject.add(job(number, command, gpus=width, mem=size, mem_auto=mem == "auto"), 0)
    for now in range(1000):
        there = {gpu: [each for each in subject.running if gpu in each.gpus] for gpu in gpus}
        while choice := subject.next(now, rooms(gpus, 12 * MIB)):
            subject.start(choice, now)
            there = {gpu: [each for each in subject.running if gpu in each.gpus] for gpu in gpus}
            check(there, choice.attempt, peaks)
            assert all(sum(each.job.mem or 0 for each in those) <= 12 * MIB for those in there.values())
        if not subject.running:
            break
        attempt = random.choice(list(subject.running))
        peak = random.choice([None, random.randint(1, 12) * MIB / 2])
        if random.random() < 0.3:
            subject.end(attempt, FAILURE, now, peak=peak)
            continue
        subject.end(attempt, SUCCESS, now, peak=peak)
        if peak and subject.asks_peaks and attempt.gpus:
            peaks.setdefault(attempt.job.command.decode(), []).append(peak)
    assert not subject.waiting, "some never ran"


def test_who_started_or_was_cancelled_is_not_placed_again() -> None:
    peaks = Peaks(lambda _gpus: float("inf"), shares=True)
    for number in (1, 2, 3):
        peaks.join(job(number, f"train {number}"))
    peaks.leave(job(2, "train 2"))
    assert sorted(peaks.waiting()) == sorted(peaks.learn(job(7, "train 7"), GIB)) == [1, 3]
    assert peaks.learn(job(7, "train 7"), GIB) == ()
    peaks.leave(job(1, "train 1"))
    peaks.leave(job(3, "train 3"))
    assert list(peaks.waiting()) == []


# ---- What was measured


def use(gpu: str = "0", memory: float | None = 5.0, **more) -> GpuUse:
    return GpuUse(gpu, 10.0, memory=None if memory is None else Figures(1.0, memory), **more)


@pytest.mark.parametrize(
    ("uses", "gpus", "peak"),
    [
        ([use()], 1, 5),
        ([use(), use("1", 7.5)], 2, 8),
        ([use()], 2, None),
        ([], 1, None),
        ([], 0, None),
        ([use(memory=None)], 1, None),
        ([use(), use("1", None)], 2, None),
        ([use(memory=0)], 1, None),
        ([use(shared=3.0)], 1, 5),
        ([use(shared=3.0, of_gpu=("energy",))], 1, 5),
        ([use(shared=3.0, of_gpu=("energy", "memory"))], 1, None),
        ([use(of_gpu=("memory",))], 1, 5),
        ([use(), use("1", 7.0, shared=0.1, of_gpu=("memory",))], 2, None),
    ],
)
def test_a_peak_is_known_if_it_is_the_attempts_own_on_each_of_its_gpus(
    uses: list[GpuUse], gpus: int, peak: int | None
) -> None:
    assert peak_of(Measurement(tuple(uses)), gpus) == peak
    recorded = [
        {"gpu": each.gpu, "shared": each.shared, "of_gpu": list(each.of_gpu)}
        | ({"memory": {"max": each.memory.max}} if each.memory else {})
        for each in uses
    ]
    assert recorded_peak(recorded, gpus) == peak


@pytest.mark.parametrize("gpus", [None, 7, {}, [7], [{}], [{"memory": 7}], [{"memory": {"max": "x"}}],
    [{"memory": {"max": float("nan")}}], [{"memory": {"max": 10**40}}], [{"memory": {"max": True}}],
    [{"memory": {"max": 7}, "of_gpu": 3}], [{"memory": {"max": 7}, "of_gpu": None}]])  # fmt: skip
def test_anything_else_in_a_journal_is_no_peak(gpus: object) -> None:
    assert recorded_peak(gpus, 1) is None
