"""Which places on which GPUs are free, taken or kept, and what memory is left of them."""

import pytest

from simple_gpu_scheduler.base.jobs import Attempt, Job, Place
from simple_gpu_scheduler.scheduling.slots import NOTHING, Kept, Limits, Room, Slots

NEVER = float("inf")


def job(number: int, gpus: int = 1, mem: int | None = None) -> Job:
    return Job(number, b"true", Place(number), gpus, mem)


def slots(gpus: str = "012", per_gpu: int = 1, cpu_slots: int = 2, total: float = 10.0) -> Slots:
    return Slots(Limits(tuple(gpus), per_gpu, cpu_slots, (total,) * len(gpus)))


def rooms(names: str = "012", free: float = 10.0) -> dict[str, Room]:
    return {name: Room(free) for name in names}


def took(subject: Slots, number: int, *at: int, until: float = NEVER, mem: int | None = None) -> Attempt:
    attempt = subject.attempt(job(number, len(at), mem), 1, at)
    subject.take(attempt, until)
    return attempt


def test_an_attempt_names_the_first_free_slots_and_takes_none() -> None:
    subject = slots(per_gpu=2)
    for _ in range(3):
        assert subject.attempt(job(1, 2), 1, [0, 2])[2:4] == (("0", "2"), (0, 4))
        assert subject.attempt(job(1, 0), 1, ())[2:4] == ((), (6,))
    assert subject.open == [0, 1, 2]
    assert subject.load == 0


def test_an_attempt_takes_exactly_the_slots_that_it_names_also_later_ones() -> None:
    subject = slots(per_gpu=2)
    first, second = took(subject, 1, 0), subject.attempt(job(2), 1, [0])
    assert (first.slots, second.slots) == ((0,), (1,))
    subject.give_back(first)
    subject.take(second)
    assert subject.attempt(job(3), 1, [0]).slots == (0,)


def test_a_slot_is_not_taken_twice() -> None:
    subject = slots()
    attempt = took(subject, 1, 1)
    with pytest.raises(ValueError, match="not in list"):
        subject.take(attempt._replace(number=2))


def test_slots_that_come_back_are_given_again_the_lowest_first() -> None:
    subject = slots(per_gpu=3, cpu_slots=3)
    attempts = [took(subject, number, 0) for number in (1, 2, 3)]
    cpu = [took(subject, number) for number in (4, 5, 6)]
    assert [each.slots for each in (*attempts, *cpu)] == [(0,), (1,), (2,), (9,), (10,), (11,)]
    assert subject.open == [1, 2]
    assert not subject.has_cpu()
    for each in (attempts[2], attempts[0], cpu[1], cpu[0]):
        subject.give_back(each)
    assert subject.open == [0, 1, 2]
    assert subject.has_cpu()
    assert subject.attempt(job(7), 1, [0]).slots == (0,)
    assert subject.attempt(job(7, 0), 1, ()).slots == (9,)


def test_the_load_is_the_share_of_gpus_without_a_place() -> None:
    subject = slots("0123")
    took(subject, 1, 0)
    assert subject.load == 0.25
    assert slots("").load == 0


def test_jobs_go_to_the_emptiest_gpus_and_in_the_order_of_these() -> None:
    subject = slots(per_gpu=3)
    took(subject, 1, 0)
    took(subject, 2, 0)
    took(subject, 3, 1)
    assert subject.attempt(job(4), 1, [0, 1, 2]).gpus == ("2",)
    assert subject.attempt(job(4, 2), 1, [0, 1, 2]).gpus == ("1", "2")


@pytest.mark.parametrize(("free", "mem", "found"), [(5, 5, [1, 2]), (5, 6, []), (4, 5, []), (5, 0, [1, 2])])
def test_a_gpu_with_just_the_memory_will_do(free: float, mem: int, found: list[int]) -> None:
    assert slots().with_places(rooms("12", free), mem) == found


def test_no_more_is_free_than_there_is() -> None:
    assert slots(total=3).with_places(rooms(free=NEVER), 4) == []
    assert slots(total=4).with_places(rooms(free=NEVER), 4) == [0, 1, 2]


def test_the_memory_an_attempt_declared_counts_until_it_has_it() -> None:
    subject = slots("0", per_gpu=3)
    key = took(subject, 1, 0, mem=6).key
    assert subject.with_places({"0": Room(10)}, 4) == [0]
    assert subject.with_places({"0": Room(10)}, 5) == []
    assert subject.with_places({"0": Room(5, {key: 5})}, 4) == [0]
    assert subject.with_places({"0": Room(5, {key: 5})}, 5) == []
    assert subject.with_places({"0": Room(2, {key: 8})}, 2) == [0]
    subject.give_back(took(subject, 2, 0, mem=4))
    assert subject.with_places({"0": Room(10)}, 4) == [0]


@pytest.mark.parametrize(("kept", "mem", "found"), [
    (Kept(5, {1}, 0), 0, [0, 2]),
    (Kept(5, {1}, 0), 3, [0, 2]),
    (Kept(5, {0, 1}, 4), 6, [2]),
    (NOTHING, 6, [0, 1, 2]),
])  # fmt: skip
def test_the_last_place_on_a_gpu_that_is_kept_is_not_given_away(kept: Kept, mem: int, found: list[int]) -> None:
    assert slots().with_places(rooms(), mem, kept) == found
    assert slots().beyond(kept) == 3 - len(set(kept.gpus))


@pytest.mark.parametrize(("mem", "found"), [(6, [0, 1, 2]), (7, [0, 2])])
def test_beside_what_is_kept_there_may_be_another_place_and_memory(mem: int, found: list[int]) -> None:
    kept = Kept(5, {1}, 4)
    assert slots(per_gpu=2).with_places(rooms(), mem, kept) == found
    assert slots(per_gpu=2).beyond(kept) == 3


def test_kept_are_of_those_that_are_free_in_time_the_last_to_come() -> None:
    subject = slots("0123")
    for at, until in enumerate((40.0, 10.0, 20.0)):
        took(subject, at + 1, at, until=until)
    everywhere = rooms("0123")
    assert subject.keep(everywhere, 2, 0, 0) == (10, {1, 3}, 0, False)
    assert subject.keep(everywhere, 3, 0, 0) == (20, {1, 2, 3}, 0, False)
    assert subject.keep(everywhere, 4, 0, 0) == (40, {0, 1, 2, 3}, 0, False)


def test_kept_are_those_that_come_together_and_not_those_that_are_free_already() -> None:
    subject = slots()
    took(subject, 1, 0, until=10)
    took(subject, 2, 1, until=10)
    assert subject.keep(rooms(), 2, 0, 0) == (10, {0, 1}, 0, False)


@pytest.mark.parametrize("until", [NEVER, 10.0, 9.0])
def test_where_the_end_is_unknown_or_overdue_something_is_kept_everywhere(until: float) -> None:
    subject = slots()
    took(subject, 1, 0, until=until)
    kept = subject.keep(rooms(), 3, 0, 10)
    assert not kept.is_known
    assert list(kept.gpus) == [0, 1, 2]
    assert Kept(10, {0}, 0).is_known


def test_what_is_known_better_now_changes_when_a_place_comes() -> None:
    subject = slots(per_gpu=2, gpus="0")
    first, second = (took(subject, number, 0, until=50.0) for number in (1, 2))
    assert subject.keep(rooms("0"), 1, 0, 0).start == 50
    subject.expect(second, 30)
    assert subject.keep(rooms("0"), 1, 0, 0).start == 30
    subject.expect(second, 70)
    assert subject.keep(rooms("0"), 1, 0, 0).start == 50
    subject.give_back(first)
    assert subject.with_places(rooms("0")) == [0]


def test_memory_becomes_free_as_jobs_end_that_use_or_declared_it() -> None:
    subject = slots("0", per_gpu=4)
    first = took(subject, 1, 0, until=10, mem=4)
    took(subject, 2, 0, until=20, mem=4)
    took(subject, 3, 0, until=30)
    free = {"0": Room(6, {first.key: 4})}
    assert [subject.keep(free, 1, mem, 0).start for mem in (2, 3, 6, 7, 10)] == [NEVER, 10, 10, 20, 20]
    assert subject.keep(free, 1, 11, 0).start == NEVER


def test_a_gpu_that_others_came_to_is_free_when_the_last_of_ours_has_ended() -> None:
    subject = slots("01", per_gpu=2)
    took(subject, 1, 0, until=10)
    took(subject, 2, 0, until=20)
    assert subject.keep(rooms("1"), 2, 0, 0).start == 20
    assert subject.keep(rooms("0"), 2, 0, 0).start == NEVER, "it is unknown when gpu 1 is free"


def test_within_reach_is_what_others_leave_were_all_of_ours_to_end() -> None:
    subject = slots()
    key = took(subject, 1, 0).key
    assert subject.within_reach(rooms(), 0) == 3
    assert subject.within_reach(rooms("12"), 0) == 3
    assert subject.within_reach(rooms("01"), 0) == 2
    assert subject.within_reach(rooms("0"), 0) == 1
    assert subject.within_reach({"0": Room(3, {key: 4}), "1": Room(7)}, 7) == 2
    assert subject.within_reach({"0": Room(3, {key: 4}), "1": Room(7)}, 8) == 0


def test_only_gpus_that_are_not_lost_and_large_enough_could_ever_do() -> None:
    subject = slots(total=10)
    subject.lose("1")
    assert subject.could_ever_fit(2, 10)
    assert not subject.could_ever_fit(3, 0)
    assert not subject.could_ever_fit(1, 11)


def test_a_run_has_one_place_on_each_gpu_and_one_for_cpu_jobs_unless_it_says_otherwise() -> None:
    subject = Slots(Limits(("0",)))
    took(subject, 1, 0)
    took(subject, 2)
    assert subject.open == []
    assert not subject.has_cpu()
    assert subject.could_ever_fit(1, 10**12), "its memory is unknown"


def test_a_cpu_job_needs_no_memory_and_where_a_cluster_chooses_no_job_needs_gpus() -> None:
    jobs = [job(1, 0, 5), job(2, 2, 5), job(3, 2), job(4, 0)]
    assert [slots().need(each) for each in jobs] == [(0, 0), (2, 5), (2, 0), (0, 0)]
    cluster = Slots(Limits((), cpu_slots=2, elsewhere=True))
    assert [cluster.need(each) for each in jobs] == [(0, 0)] * 4


# ---- Attempts that are alone on their GPUs


def alone(subject: Slots, number: int, *at: int, mem: int | None = None, until: float = NEVER) -> Attempt:
    attempt = subject.attempt(job(number, len(at), mem), 1, at, alone=True)
    subject.take(attempt, until)
    return attempt


def test_a_gpu_of_an_attempt_that_is_alone_has_no_place_until_it_ends() -> None:
    subject = slots(per_gpu=3)
    scout = alone(subject, 1, 1, until=7)
    assert (scout.alone, subject.open, subject.with_places(rooms(), 1)) == (True, [0, 2], [0, 2])
    assert subject.keep(rooms(), 3, 0, 0) == (7, {0, 1, 2}, 0, False)
    subject.expect(scout, 9)
    assert subject.keep(rooms(), 3, 0, 0).start == 9
    subject.give_back(scout)
    assert (subject.open, subject.with_places(rooms(), 1)) == ([0, 1, 2], [0, 1, 2])


def test_alone_means_a_gpu_without_other_attempts_that_is_large_enough_and_not_kept() -> None:
    subject = Slots(Limits(tuple("0123"), 3, 1, (10.0, 10.0, 10.0, 5.0)))
    took(subject, 1, 0)
    everywhere = rooms("0123", free=1)
    assert subject.with_places(everywhere, alone=True) == [1, 2, 3]
    assert subject.with_places(everywhere, 10, alone=True) == [1, 2]
    assert subject.with_places(rooms("013"), alone=True) == [1, 3]
    assert subject.with_places(everywhere, 0, Kept(5, {1}, 0), alone=True) == [2, 3]


def test_where_an_attempt_will_be_alone_nothing_else_gets_a_place() -> None:
    subject, kept = slots(per_gpu=2), Kept(5, {1}, 0, alone=True)
    assert subject.with_places(rooms(), 0, kept) == [0, 2]
    assert subject.beyond(kept) == 2
    assert subject.beyond(kept._replace(alone=False)) == 3


def test_whatever_others_use_an_attempt_that_is_alone_fits() -> None:
    subject = slots("0")
    attempt = subject.attempt(job(1, mem=10), 1, [0], alone=True)
    assert subject.fits(attempt, {"0": Room(9)})
    assert not subject.fits(attempt._replace(alone=False), {"0": Room(9)})


def test_an_attempt_can_be_alone_on_gpus_that_others_leave_us_and_are_large_enough() -> None:
    subject = Slots(Limits(tuple("0123"), 3, 1, (10.0, 10.0, 10.0, 5.0)))
    took(subject, 1, 0)
    assert subject.within_reach(rooms("23"), 0, alone=True) == 3
    assert subject.within_reach(rooms("23"), 10, alone=True) == 2
    assert subject.within_reach(rooms("0123"), 10, alone=True) == 3


def test_what_is_kept_for_it_is_empty_first_or_has_the_fewest_attempts_where_no_end_is_known() -> None:
    subject = slots(per_gpu=3)
    for number, at in enumerate((0, 0, 1, 1, 2, 2, 2)):
        took(subject, number, at, until=NEVER if number else 5)
    assert subject.keep(rooms(), 1, 0, 0, alone=True) == (NEVER, [0], 0, True)
    assert subject.keep(rooms(), 2, 0, 0, alone=True) == (NEVER, [0, 1], 0, True)
    other = slots(per_gpu=3)
    took(other, 1, 0, until=5)
    took(other, 2, 0, until=8)
    took(other, 3, 1, until=20)
    took(other, 4, 2, until=NEVER)
    assert other.keep(rooms(), 1, 0, 0, alone=True) == (8, {0}, 0, True)
    assert other.keep(rooms("12"), 2, 0, 0, alone=True) == (20, {0, 1}, 0, True)
