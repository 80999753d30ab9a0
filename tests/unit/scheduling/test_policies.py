"""Which job starts next, under each policy: against plain references, in random workloads."""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Outcome, Place
from simple_gpu_scheduler.scheduling.policies import POLICIES, Policy, WaitingJob, aged
from simple_gpu_scheduler.scheduling.policies.learned import Learned, Weights
from simple_gpu_scheduler.scheduling.policies.shared import Account
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits, Room
from simple_gpu_scheduler.simulation.simulate import Arrival
from tests.support.starts import start_all

DAY = 86_400.0


class Spec(NamedTuple):
    """A job that comes, as the tests write it."""

    at: float
    length: float
    estimate: float | None = None
    label: str = ""
    gpus: int = 1
    priority: int = 0
    name: str = "train"


def arrivals(specs: list[Spec]) -> list[Arrival]:
    return [
        Arrival(
            each.at,
            Job(
                number,
                each.name.encode(),
                Place(number),
                each.gpus,
                time=each.estimate,
                priority=each.priority,
                label=each.label,
            ),
            each.length,
        )
        for number, each in enumerate(sorted(specs, key=lambda each: each.at), 1)
    ]


def scheduler(policy: Policy, gpus: int) -> Scheduler:
    return Scheduler(Limits(tuple("01234567"[:gpus])), policy, label=lambda job: job.label)


class Decision(NamedTuple):
    """One start: when, which job, all that waited (it included), and what ran: label and start of each."""

    now: float
    chosen: Arrival
    waiting: list[Arrival]
    running: list[tuple[str, float]]
    over: list[tuple[str, float, float]]


def decisions(policy: Policy, specs: list[Spec], gpus: int) -> Iterator[Decision]:
    """Every start, one by one, with jobs that need one GPU each; and no GPU may idle while one waits."""
    coming = arrivals(specs)
    subject, rooms = scheduler(policy, gpus), dict.fromkeys("01234567"[:gpus], Room())
    waiting: dict[int, Arrival] = {}
    began: dict[int, float] = {}
    over: list[tuple[str, float, float]] = []
    ends: list[tuple[float, int, Attempt]] = []
    while coming or ends:
        now = min([each.at for each in coming[:1]] + [each[0] for each in ends[:1]])
        while ends and ends[0][0] <= now:
            _, number, attempt = heappop(ends)
            subject.end(attempt, SUCCESS, now)
            over.append((attempt.job.label, began.pop(number), now))
        while coming and coming[0].at <= now:
            waiting[coming[0].job.number] = coming[0]
            subject.add(coming.pop(0).job, now)
        for attempt in start_all(subject, now, rooms):
            number = attempt.job.number
            running = [(each.job.label, began[each.job.number]) for _, _, each in ends]
            yield Decision(now, waiting[number], list(waiting.values()), running, list(over))
            heappush(ends, (now + waiting.pop(number).length, number, attempt))
            began[number] = now
        assert len(ends) == gpus or not waiting, "a GPU idles"
    assert not waiting, "a job is lost"


def workloads(lengths: st.SearchStrategy[float], labels: str = "a") -> st.SearchStrategy[list[Spec]]:
    def spec(at: int, length: float, label: str, priority: int) -> Spec:
        return Spec(at, length, length, label, priority=priority)

    one = st.builds(spec, st.integers(0, 300), lengths, st.sampled_from(labels), st.integers(-2, 2))
    return st.lists(one, min_size=1, max_size=40)


ANY_LENGTH = st.one_of(st.integers(1, 200).map(float), st.floats(0.01, 5000))
ONE_OF_EACH_CLASS = st.sampled_from([1.5, 2.0, 5.0, 8.0, 31.0, 64.0, 1000.0])


def came(each: Arrival) -> tuple[float, int]:
    return each.at, each.job.number


REFERENCES: dict[str, Callable[[Arrival, float], float]] = {
    "fifo": lambda _each, _now: 0,
    "priority": lambda each, _now: -each.job.priority,
    "sjf": lambda each, _now: each.length,
    "lpt": lambda each, _now: each.at - each.length,
    "aged": lambda each, _now: each.at + each.length - 3600 * each.job.priority,
}


@pytest.mark.parametrize("policy", sorted(REFERENCES))
@settings(max_examples=60, deadline=None)
@given(workloads(ANY_LENGTH), st.integers(1, 3))
def test_each_start_is_the_one_that_a_plain_search_finds(policy: str, specs: list[Spec], gpus: int) -> None:
    key = REFERENCES[policy]
    for now, chosen, waiting, *_ in decisions(POLICIES[policy](), specs, gpus):
        assert chosen == min(waiting, key=lambda each: (key(each, now), each.job.number))


@settings(max_examples=100, deadline=None)
@given(workloads(ONE_OF_EACH_CLASS), st.integers(1, 3))
def test_hrrn_starts_the_largest_ratio_of_all_that_wait(specs: list[Spec], gpus: int) -> None:
    for now, chosen, waiting, *_ in decisions(POLICIES["hrrn"](), specs, gpus):
        limit = min(each.at + 100 * each.length for each in waiting)
        allowed = [each for each in waiting if each.at <= limit]
        assert chosen == min(allowed, key=lambda each: (-(now - each.at) / each.length, each.length, *came(each)))


@settings(max_examples=100, deadline=None)
@given(workloads(ANY_LENGTH), st.integers(1, 3), st.floats(0, 50))
def test_under_aged_only_jobs_that_come_soon_enough_after_a_job_overtake_it(
    specs: list[Spec], gpus: int, ageing: float
) -> None:
    for _, chosen, waiting, *_ in decisions(aged(ageing), specs, gpus):
        for passed in waiting:
            worth = 3600 * (chosen.job.priority - passed.job.priority)
            lead = ageing * (passed.length - chosen.length) + worth
            assert chosen.at - passed.at <= lead + 1e-6 or came(chosen) <= came(passed)


@settings(max_examples=60, deadline=None)
@given(workloads(st.sampled_from([1.0, 50.0, DAY / 2, 3 * DAY]), "abc"), st.integers(1, 3))
def test_fair_starts_the_label_that_has_used_least_of_late(specs: list[Spec], gpus: int) -> None:
    for now, chosen, waiting, running, over in decisions(POLICIES["fair"](), specs, gpus):
        if any(now - each.at > DAY / 2 for each in waiting):  # a job that has waited for very long may go first
            return
        use = dict.fromkeys("abc", 0.0)
        for label, began, end in over:
            use[label] += (end - began) * 2 ** ((end - now) / DAY)
        for label, began in running:
            use[label] += now - began + 1
        assert use[chosen.job.label] <= min(use[each.job.label] for each in waiting) + 1e-6
        assert chosen.job.number == min(each.job.number for each in waiting if each.job.label == chosen.job.label)


@settings(max_examples=100, deadline=None)
@given(workloads(ANY_LENGTH, "abcd"), st.integers(1, 3))
def test_round_robin_gives_no_label_two_turns_while_another_waits(specs: list[Spec], gpus: int) -> None:
    had_a_turn: dict[str, set[str]] = {}  # since each label that waits began to wait, or had its own
    for _, chosen, waiting, *_ in decisions(POLICIES["round-robin"](), specs, gpus):
        others = {each.job.label for each in waiting} - {chosen.job.label}
        had_a_turn = {label: had_a_turn.get(label, set()) for label in others}
        for label, had in had_a_turn.items():
            assert chosen.job.label not in had, f"{label} was passed twice"
            had.add(chosen.job.label)
        assert chosen.job.number == min(each.job.number for each in waiting if each.job.label == chosen.job.label)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.floats(0, 3 * DAY), st.floats(0, DAY)), max_size=20))
def test_what_was_used_is_forgotten_by_half_in_a_day(runs: list[tuple[int, float, float]]) -> None:
    account, now, expected = Account(), 1e9, 0.0
    for width, pause, length in runs:
        expected *= 2 ** (-pause / DAY)
        now += pause
        assert account.use(now) == pytest.approx(expected, abs=1e-3)
        account.add(width, now)
        assert account.use(now) == pytest.approx(expected + width, abs=1e-3), (
            "a job that has started counts for a second"
        )
        account.end(width, now, now + length)
        now += length
        expected = expected * 2 ** (-length / DAY) + width * length


@pytest.mark.parametrize("policy", ["fair", "round-robin"])
def test_a_label_whose_job_was_chosen_and_could_not_start_has_had_no_turn(policy: str) -> None:
    subject, rooms = scheduler(POLICIES[policy](), 3), dict.fromkeys("012", Room())
    for number, label in enumerate("aaab", 1):
        subject.add(Job(number, b"true", Place(number), label=label), 0)
    chosen = [subject.next(now, rooms) for now in range(3)]
    assert [choice.attempt.job.number for choice in chosen if choice] == [1, 1, 1]
    assert [each.job.number for each in start_all(subject, 10, rooms)] == [1, 4, 2]


def test_what_is_tried_again_later_has_its_old_place() -> None:
    """By `retry` or by the quarantine, with what it took with it."""
    line, rooms = scheduler(aged(), 1), {"0": Room()}
    failing = Job(1, b"x", Place(1), time=10.0, name="first")
    line.add(failing, 0)
    line.add(Job(2, b"y", Place(2), time=10.0, after=(1,)), 1)
    [attempt] = start_all(line, 0, rooms)
    [dropped] = line.end(attempt, Outcome("failed", 1), 100).dropped
    line.add(Job(3, b"z", Place(3), time=10.0), 1000)
    assert line.try_again([attempt], [dropped.job]) == ()
    order = []
    for now in (5000, 5010, 5020):
        [attempt] = start_all(line, now, rooms)
        line.end(attempt, SUCCESS, now + 10)
        order.append(attempt.job.number)
    assert order == [1, 2, 3]


def test_a_scout_is_early_among_others_of_whom_nothing_is_known() -> None:
    line = scheduler(POLICIES["hrrn"](), 1)
    commands = [b"a 1", b"a 2", b"b 1", b"b 2"]
    for number, command in enumerate(commands, 1):
        line.add(Job(number, command, Place(number)), number)
    [attempt] = start_all(line, 100, {"0": Room()})
    assert attempt.job.number == 1
    line.end(attempt, Outcome("failed", 1), 110)
    [attempt] = start_all(line, 110, {"0": Room()})
    assert attempt.job.number == 3


@pytest.mark.parametrize("policy", ["fair", "round-robin"])
def test_labels_that_have_gone_are_forgotten(policy: str) -> None:
    subject, shared = POLICIES[policy](), {"0": Room()}
    line = scheduler(subject, 1)
    for number in range(1, 10_001):
        now = number * 600.0
        line.add(Job(number, b"true", Place(number), label=f"l{number}"), now)
        [attempt] = start_all(line, now, shared)
        line.end(attempt, SUCCESS, now + 1)
    assert len(subject._accounts if policy == "fair" else subject._turns) < 2500


class TestPatience:
    """Of equals, one that came later by more than so many times the length of a first one does not pass it."""

    @pytest.mark.parametrize(("since", "first"), [(1000.0, 2), (1000.5, 1)])
    def test_of_hrrn_is_a_hundred_times_the_length(self, since: float, first: int) -> None:
        heads = [self.waiting(1, 0.0, 10.0), self.waiting(2, since, 1.0)]
        policy = POLICIES["hrrn"]()
        assert policy.first(heads, 1e6, (1.0, 2)).number == first
        assert [each.number for each in policy.ordered(heads, 1e6, (1.0, 2))] == [first, 3 - first]

    @pytest.mark.parametrize(("since", "first"), [(10_000.0, 2), (10_000.5, 1)])
    def test_of_what_was_learned_is_a_thousand_times_the_length(self, since: float, first: int) -> None:
        heads = [self.waiting(1, 0.0, 10.0), self.waiting(2, since, 1.0)]
        policy = Learned(Weights())
        assert policy.first(heads, 1e6, (1.0, 2)).number == first
        assert [each.number for each in policy.ordered(heads, 1e6, (1.0, 2))] == [first, 3 - first]
        job = Job(1, b"true", Place(1))
        assert [policy.rank(job, 5.0, length) for length in (2.0, 0.0)] == [2005.0, 1005.0]

    @staticmethod
    def waiting(number: int, since: float, length: float) -> WaitingJob:
        return WaitingJob(
            since, number, 1, Job(number, b"true", Place(number)), since, length, length, (1, 0, number, "", False)
        )
