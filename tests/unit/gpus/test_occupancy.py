"""When a GPU counts as free by what NVML tells of it, and what is said when it does not."""

import pytest

from simple_gpu_scheduler.gpus import Look, Reason, Tolerance
from simple_gpu_scheduler.gpus.nvml import Reading
from simple_gpu_scheduler.gpus.occupancy import User, judge

MIB = 2**20
IDLE = Reading(total=1000 * MIB, used=0, free=1000 * MIB, utilization=0)


def user(pid: int, whose: str = "others", memory: int | None = 512 * MIB, name: str = "bob", **more) -> User:
    return User(pid, memory, whose, name=name, program="python", age=120, **more)


def look(reading: Reading = IDLE, *users: User, shared: bool = False, **tolerated: int | None) -> Look:
    return judge(reading, users, Tolerance(**({"max_used_memory": 100 * MIB} | tolerated)), shared=shared)


def used(memory: int) -> Reading:
    return IDLE._replace(used=memory, free=1000 * MIB - memory)


def test_an_unused_gpu_is_free() -> None:
    assert look() == Look(None, 1000 * MIB, {})


def test_a_problem_is_the_reason_and_no_memory_is_given() -> None:
    broken = Reading(problem="fallen off the bus")
    assert look(broken, user(1)) == Look(Reason("fallen off the bus", "fallen off the bus"))


def test_any_process_of_another_user_is_a_reason() -> None:
    found = look(IDLE, user(1, memory=None), user(2, "tolerated"), user(3, "ours"))
    assert found.reason == Reason("bob python for 2 min", "used by ['bob']", by_occupancy=True)


def test_two_processes_are_named_and_the_others_counted() -> None:
    two = [user(1), user(2, name="alice")]
    both = "bob python 512 MiB for 2 min, alice python 512 MiB for 2 min"
    assert look(IDLE, *two).reason == Reason(both, "used by ['alice', 'bob']", by_occupancy=True)
    for more in (1, 2):
        found = look(IDLE, *two, *[user(3 + at) for at in range(more)]).reason
        assert found == Reason(f"{both}, {more} more", "used by ['alice', 'bob']", by_occupancy=True)


def test_memory_of_processes_that_are_not_seen_is_a_reason_above_the_limit() -> None:
    assert look(used(100 * MIB)).reason is None
    assert look(used(101 * MIB)).reason == Reason("101 MiB used by others", "used memory", by_occupancy=True)
    unseen = "101 MiB used by processes that are not visible from here"
    assert look(used(101 * MIB), user(1, "unseen")).reason == Reason(unseen, "used memory", by_occupancy=True)


@pytest.mark.parametrize("whose", ["ours", "tolerated"])
def test_memory_that_is_ours_or_tolerated_does_not_count(whose: str) -> None:
    assert look(used(612 * MIB), user(1, whose), shared=True).reason is None
    assert look(used(613 * MIB), user(1, whose), shared=True).reason is not None


def test_while_jobs_of_ours_run_memory_that_may_be_theirs_does_not_count() -> None:
    much = used(900 * MIB)
    assert look(much).reason
    assert look(much, user(1, "ours", None)).reason
    assert look(much, shared=True).reason
    assert look(much, user(1, "ours", None), shared=True).reason is None
    assert look(much, user(1, "unseen"), shared=True).reason is None
    assert look(much._replace(processes=None), shared=True).reason is None


def test_less_memory_than_was_asked_for_is_a_reason() -> None:
    assert look(used(50 * MIB), free_memory=950 * MIB).reason is None
    few = look(used(51 * MIB), free_memory=950 * MIB).reason
    assert few == Reason("949 MiB free, less than the required 950 MiB", "free memory", by_occupancy=True)


@pytest.mark.parametrize(
    ("busy", "most", "shared"), [(31, None, False), (None, 30, False), (30, 30, False), (31, 30, True)]
)
def test_utilisation_is_no_reason_without_a_limit_or_up_to_it_or_while_jobs_of_ours_run(busy, most, shared) -> None:
    assert look(IDLE._replace(utilization=busy), shared=shared, max_utilization=most).reason is None


def test_utilisation_above_its_limit_is_a_reason() -> None:
    busy = look(IDLE._replace(utilization=31), max_utilization=30).reason
    assert busy == Reason("31 % busy, more than the 30 % allowed", "utilisation", by_occupancy=True)


def test_what_each_attempt_holds_is_the_memory_of_all_its_processes() -> None:
    first, second = (1, 1), (2, 1)
    ours = [user(1, "ours", attempt=first), user(2, "ours", attempt=first), user(3, "ours", None, attempt=second)]
    assert look(used(1000 * MIB), *ours, user(4, "tolerated"), shared=True).held == {first: 1024 * MIB, second: 0}


def test_a_process_of_which_little_is_known_is_shown_anyway() -> None:
    assert str(User(1, None, "others", name="bob", program="python")) == "bob python for 0.0 s"
