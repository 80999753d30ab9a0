"""Policies that share among labels: whose turn it is, and which labels they remember."""

import pytest

from simple_gpu_scheduler.base.jobs import Job, Place
from simple_gpu_scheduler.scheduling.policies import POLICIES, Policy, WaitingJob
from simple_gpu_scheduler.scheduling.policies.shared import Fair, RoundRobin

DAY = 86_400.0
LATE = 1e9  # by a clock that may have begun long ago
UNKNOWN = float("inf")


def waiting(number: int, label: str, since: float = LATE, gpus: int = 1) -> WaitingJob:
    job = Job(number, b"true", Place(number), gpus, label=label)
    return WaitingJob(0.0, number, 1, job, since, 0.0, UNKNOWN, (gpus, 0, 0, label, False))


def order(policy: Policy, *heads: WaitingJob, now: float = LATE) -> list[int]:
    found = [each.number for each in policy.ordered(heads, now, (0.0, len(heads)))]
    assert policy.first(heads, now, (0.0, len(heads))).number == found[0]
    return found


def ran(policy: Policy, number: int, label: str, begin: float, end: float, gpus: int = 1) -> None:
    each = waiting(number, label, begin, gpus)
    policy.started(each, begin)
    policy.ended(each, end)


def test_fair_counts_the_gpus_that_a_job_needs() -> None:
    policy = Fair()
    ran(policy, 1, "two", LATE, LATE + 10, gpus=2)
    ran(policy, 2, "one", LATE, LATE + 15)
    assert order(policy, waiting(3, "two"), waiting(4, "one"), now=LATE + 15) == [4, 3]


def test_fair_counts_a_cpu_slot_as_one_and_apart_from_gpus() -> None:
    policy = Fair()
    ran(policy, 1, "a", LATE, LATE + 10, gpus=0)
    assert order(policy, waiting(3, "a", gpus=0), waiting(4, "b", gpus=0), now=LATE + 10) == [4, 3]
    assert order(policy, waiting(3, "a"), waiting(4, "b"), now=LATE + 10) == [3, 4]


def test_under_fair_labels_that_waited_a_day_with_nothing_started_go_first_the_longest_first_of_all() -> None:
    policy = Fair()
    ran(policy, 1, "served", LATE, LATE + 10 * DAY)
    now = LATE + 12 * DAY
    old = [waiting(2, "served", now - 2 * DAY), waiting(3, "old", now - 1.5 * DAY), waiting(4, "new", now - DAY)]
    assert order(policy, *old, now=now) == [2, 3, 4]
    policy.started(waiting(9, "served"), now - DAY)
    assert order(policy, *old, now=now) == [3, 4, 2], "it has had its turn"


def test_fair_forgets_labels_that_tell_nothing_when_there_are_twice_as_many_and_a_thousand() -> None:
    policy = Fair()
    for number in range(1001):
        assert len(policy._accounts) == number
        ran(policy, number, f"of late {number}", LATE, LATE)
    assert len(policy._accounts) == 1001, "each of them was started within a day"
    much_later = LATE + 30 * DAY
    for number in range(1001, 3002):
        ran(policy, number, f"new {number}", much_later, much_later)
    assert len(policy._accounts) == 3002
    ran(policy, 3002, "the last", much_later, much_later)
    assert len(policy._accounts) == 2002


def test_fair_remembers_what_runs_and_what_has_used_more_than_a_second() -> None:
    policy = Fair()
    policy.started(waiting(1, "runs"), LATE)
    ran(policy, 2, "much", LATE, LATE + 10)
    ran(policy, 3, "little", LATE, LATE + 1)
    later = LATE + 2 * DAY
    for number in range(1000):
        ran(policy, 10 + number, f"new {number}", later, later)
    assert {("runs", False), ("much", False)} <= policy._accounts.keys()
    assert ("little", False) not in policy._accounts


def test_round_robin_orders_by_turns_also_those_of_one_moment() -> None:
    policy = RoundRobin()
    policy.started(waiting(1, "b"), LATE)
    policy.started(waiting(2, "a"), LATE)
    assert order(policy, waiting(3, "a"), waiting(4, "b")) == [4, 3]
    assert order(policy, waiting(3, "a"), waiting(4, "b"), waiting(5, "c", LATE - 1)) == [5, 4, 3]


def test_round_robin_has_turns_of_cpu_slots_apart() -> None:
    policy = RoundRobin()
    policy.started(waiting(1, "a", gpus=0), LATE)
    assert order(policy, waiting(2, "a"), waiting(3, "b")) == [2, 3]
    assert order(policy, waiting(2, "a", gpus=0), waiting(3, "b", gpus=0)) == [3, 2]


def test_round_robin_forgets_the_older_half_of_the_idle_labels_when_there_are_a_thousand_more() -> None:
    policy = RoundRobin()
    policy.started(waiting(0, "runs"), LATE)
    for number in range(1, 1001):
        assert len(policy._turns) == number
        ran(policy, number, f"idle {number}", LATE + number, LATE + number)
    assert len(policy._turns) == 501
    assert ("runs", False) in policy._turns
    assert ("idle 500", False) not in policy._turns
    assert ("idle 501", False) in policy._turns
    for number in range(2000, 3000):
        ran(policy, number, f"idle {number}", LATE + number, LATE + number)
    assert len(policy._turns) == 1501
    ran(policy, 3000, "the last", LATE + 3000, LATE + 3000)
    assert len(policy._turns) == 752


@pytest.mark.parametrize(("length", "rank"), [(3.0, -3.0), (0.0, -DAY), (30 * DAY, -30 * DAY), (40 * DAY, -30 * DAY)])
def test_under_lpt_no_job_counts_as_longer_than_a_month_and_one_of_unknown_length_as_a_day(length, rank) -> None:
    assert POLICIES["lpt"]().rank(Job(1, b"true", Place(1)), 0.0, length) == rank
