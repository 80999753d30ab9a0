"""Which GPUs a run may use now: leases, lines and looks, with those of others made by hand."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.gpu_waits import Wait, Waiting
from simple_gpu_scheduler.base.jobs import GpuCap
from simple_gpu_scheduler.gpus import USED_MEMORY, Answer, Gpu, Look, Neighbour, Reason
from simple_gpu_scheduler.gpus.leases import Holder, LeaseFileError
from simple_gpu_scheduler.gpus.pool import Demand, Pool

BUSY = Reason("alice python", "alice", by_occupancy=True)


class Lease:
    """A lease that another may have."""

    descriptor: int | None = None

    def sign(self, marks: Sequence[bytes], pid: int, job: int = 0, name: str = "") -> None:
        pass

    def __init__(self, world: "World") -> None:
        self.world = world
        self.owner = ""
        self.in_line = False
        self.is_closed = False
        self.problem = ""  # with its files
        self.signer = 0
        self.turn = 0  # how often it was ours

    def open(self) -> None:
        if self.problem:
            raise LeaseFileError(self.problem)

    def take(self, *, past_the_line: bool = False) -> bool:
        self.open()
        line_is_ours = past_the_line or not self.world.line_is_anothers
        if not self.owner and line_is_ours:
            self.owner = "us"
            self.turn += 1
        return self.owner == "us"

    def wait_in_line(self) -> None:
        assert not self.in_line
        self.in_line = True

    def is_wanted(self) -> bool:
        return self.world.line_is_anothers

    def release(self) -> None:
        if self.owner == "us":
            self.owner = ""

    def signed_by(self) -> int:
        return self.signer

    def holder(self) -> Holder | None:
        self.open()
        return Holder(f"leased by {self.owner}", self.owner) if self.owner not in ("", "us") else None

    def close(self) -> None:
        self.release()
        self.is_closed = True


class World:
    """GPUs with their leases, and a probe that says which processes are on them."""

    sees_others = True

    def __init__(self, gpus: str = "012", free_for: float = 0, cap: GpuCap | None = None) -> None:
        self.line_is_anothers = False
        self.leases = {gpu: Lease(self) for gpu in gpus}
        self.looks: dict[str, Look] = {}
        self.asked: list[str] = []
        self.slow = ""  # the GPUs about which the driver does not answer within a moment
        self.unanswered: set[str] = set()
        self.uuids: dict[str, str] = {}  # that were unknown at first
        self.opened: list[str] = []  # leases, by name
        self.bad: dict[str, str] = {}  # what is wrong with lease files, by UUID
        self.subject = Pool([Gpu(gpu) for gpu in gpus], self.open_lease, self, cap, free_for)

    def open_lease(self, gpu: Gpu) -> Lease:
        self.opened.append(gpu.lease_name)
        if gpu.uuid:
            self.leases[gpu.id] = Lease(self)
            self.leases[gpu.id].problem = self.bad.get(gpu.uuid, "")
        return self.leases[gpu.id]

    def look(self, gpu: Gpu, *, shared: bool) -> Answer | None:
        assert gpu.id not in self.unanswered, "one call that hangs is enough"
        self.asked.append(f"{gpu.id}{'+' if shared else ''}")
        if gpu.id in self.slow:
            self.unanswered.add(gpu.id)
            return None
        return self.answer(gpu.id)

    def answer(self, gpu: str) -> Answer:
        return Answer(Gpu(gpu, self.uuids.get(gpu, "")), self.looks.get(gpu, Look()))

    def answers(self, gpu: str, now: float) -> None:
        """The driver answers at last, and it wakes the loop."""
        self.unanswered.remove(gpu)
        self.subject.looked(gpu, self.answer(gpu), now)

    def remarks(self) -> list[str]:
        return []

    def close(self) -> None:
        pass

    def held(self) -> str:
        return "".join(gpu for gpu, lease in self.leases.items() if lease.owner == "us")

    def came(self, gpu: str, now: float) -> None:
        """Another gives it back, and it comes to us in line."""
        self.leases[gpu].owner = "us"
        self.leases[gpu].in_line = False
        self.subject.came(gpu, now)


def test_a_gpu_is_leased_first_and_then_looked_at() -> None:
    world = World()
    world.leases["0"].owner = "bob"
    assert world.subject.take(b"/r.1.1", ["0"], 0) is None
    assert world.asked == []
    assert world.leases["0"].in_line
    assert list(world.subject.rooms()) == ["1", "2"]
    assert world.subject.take(b"/r.1.1", ["1"], 0) is not None
    assert world.asked == ["1"]


def test_a_gpu_that_others_use_is_given_back() -> None:
    world = World()
    world.looks["0"] = Look(BUSY)
    assert world.subject.take(b"/r.1.1", ["0"], 0) is None
    world.subject.let_go(0, 1)
    assert world.held() == ""
    assert list(world.subject.rooms()) == ["1", "2"]
    assert world.subject.waits(Demand(1)) == [Wait("0", "alice python", "alice")]


def test_it_is_looked_at_again_in_ever_longer_pauses_and_only_while_a_job_waits() -> None:
    world = World("0")
    world.looks["0"] = Look(BUSY)
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.subject.let_go(0, 1)
    world.subject.rooms()
    assert world.subject.next_wake(0, Demand(0)) == float("inf")
    now, pauses = 0.0, []
    for _ in range(12):
        wake = world.subject.next_wake(now, Demand(1))
        pauses.append(round(wake - now, 6))
        now = wake
        assert world.subject.look_again(now, Demand(1))
        world.subject.rooms()
    assert pauses == sorted(pauses)
    assert pauses[0] <= 0.1
    assert pauses[-1] == 4
    del world.looks["0"]
    now = world.subject.next_wake(now, Demand(1))
    world.subject.look_again(now, Demand(1))
    assert list(world.subject.rooms()) == ["0"]
    assert world.subject.next_wake(now, Demand(1)) == float("inf")


def test_a_wide_job_has_all_of_its_gpus_or_none_for_long() -> None:
    world = World("01")
    world.leases["1"].owner = "bob"
    assert world.subject.take(b"/r.1.1", ["0", "1"], 0) is None
    world.subject.let_go(0, 2)
    assert world.held() == "0"  # for a moment, since the other may come
    wake = world.subject.next_wake(0, Demand(2))
    world.subject.look_again(2.0, Demand(1))
    assert wake <= 2.0
    world.subject.let_go(2.0, 2)
    assert world.held() == ""


def test_no_gpu_is_kept_while_an_earlier_one_is_still_to_come() -> None:
    """Else two that wait for each other's would wait for ever."""
    world = World("01")
    world.leases["0"].owner = "bob"
    assert world.subject.take(b"/r.1.1", ["1", "0"], 0) is None
    world.subject.let_go(0, 2)
    assert world.held() == ""
    world.came("0", 1)
    world.subject.let_go(1, 2)
    assert world.held() == "0"
    assert world.subject.take(b"/r.1.1", ["0", "1"], 1) is not None


def test_what_comes_and_is_not_wanted_any_more_is_given_back_at_once() -> None:
    world = World("0")
    world.leases["0"].owner = "bob"
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.came("0", 1)
    world.subject.let_go(1, 0)
    assert world.held() == ""


def test_a_lease_that_came_and_was_lost_again_is_not_taken_for_ours() -> None:
    world = World("0")
    world.leases["0"].owner = "bob"
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.leases["0"].in_line = False
    world.subject.came("0", 1)
    world.subject.let_go(1, 1)
    assert world.subject.take(b"/r.1.1", ["0"], 1) is None
    assert world.leases["0"].in_line


def test_one_that_is_stopped_in_line_does_not_keep_a_free_gpu_from_us() -> None:
    world = World("0")
    world.line_is_anothers = True
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.subject.let_go(0, 1)
    now = 0.0
    while not world.subject.rooms():
        assert now < 10
        now = world.subject.next_wake(now, Demand(1))
        world.subject.look_again(now, Demand(1))
        assert world.held() in ("", "0")
    assert now > 1
    assert world.held() == "0"


def test_attempts_that_share_a_gpu_keep_it_until_the_last_of_them_ends() -> None:
    world = World("0")
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.subject.take(b"/r.2.1", ["0"], 0)
    assert world.asked == ["0", "0+"]
    world.subject.give_back(b"/r.1.1", ["0"])
    assert world.held() == "0"
    world.subject.give_back(b"/r.2.1", ["0"])
    world.subject.let_go(0, 1)
    assert world.held() == ""


def test_the_next_attempt_has_the_lease_of_the_last_one_unless_another_waits_for_it() -> None:
    world = World("0")
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.subject.give_back(b"/r.1.1", ["0"])
    assert (world.held(), world.subject.has_idle) == ("0", True)
    assert world.subject.take(b"/r.2.1", ["0"], 0)
    assert (world.held(), world.subject.has_idle) == ("0", False)
    world.line_is_anothers = True
    world.subject.give_back(b"/r.2.1", ["0"])
    assert (world.held(), world.subject.has_idle) == ("", False)


@pytest.mark.parametrize("width", [0, 1, 2])
def test_no_lease_is_kept_after_an_attempt_for_a_wide_job(width: int) -> None:
    world = World("01")
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.subject.give_back(b"/r.1.1", ["0"])
    world.subject.let_go(0, width)
    assert world.held() == ""


def test_a_gpu_that_another_waits_for_gets_no_more_of_our_attempts_to_share_it() -> None:
    world = World("0")
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.line_is_anothers = True
    assert world.subject.take(b"/r.2.1", ["0"], 0) is None
    assert world.subject.rooms() == {}
    world.subject.give_back(b"/r.1.1", ["0"])
    assert world.held() == ""
    assert list(world.subject.rooms()) == ["0"]


def test_a_gpu_that_does_not_work_is_waited_for_and_used_again() -> None:
    world = World("01")
    world.looks["0"] = Look(Reason("fallen off the bus", "problem"))
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.subject.let_go(0, 1)
    assert list(world.subject.rooms()) == ["1"]
    assert world.subject.waits(Demand(1)) == [Wait("0", "fallen off the bus", "problem")]
    world.looks.clear()
    world.subject.look_again(world.subject.next_wake(0, Demand(1)), Demand(1))
    assert list(world.subject.rooms()) == ["0", "1"]
    assert world.subject.waits(Demand(1)) == []


def test_a_gpu_whose_uuid_was_unknown_is_leased_by_its_uuid_before_it_is_used() -> None:
    world = World("01")
    unknown = world.leases["0"]
    world.looks["0"] = Look(Reason("Unknown Error", "problem"))
    assert world.subject.take(b"/r.1.1", ["0"], 0) is None
    world.looks.clear()
    world.uuids["0"] = "GPU-a"
    assert world.subject.take(b"/r.1.1", ["0"], 1) is None, "it has the wrong lease"
    assert (world.held(), unknown.is_closed, world.opened) == ("", True, ["index-0", "index-1", "GPU-a"])
    world.leases["0"].owner = "bob"
    assert world.subject.take(b"/r.1.1", ["0"], 2) is None
    world.came("0", 3)
    assert world.subject.take(b"/r.1.1", ["0"], 3) is not None
    assert world.opened.count("GPU-a") == 1


def test_a_gpu_whose_new_lease_cannot_be_opened_waits_for_that() -> None:
    world = World("0")
    world.uuids["0"] = "GPU-a"
    world.bad["GPU-a"] = "it is a symlink"
    world.looks["0"] = ALICE
    assert world.subject.take(b"/r.1.1", ["0"], 0) is None
    assert world.held() == ""
    assert world.subject.waits(Demand(1)) == [Wait("0", "it is a symlink", "lease files")]


def test_a_gpu_whose_lease_files_are_bad_is_left_out_and_reported_once_until_they_are_repaired() -> None:
    world = World("01")
    world.leases["1"].problem = "it is a symlink"
    world.subject.open_leases()
    assert list(world.subject.rooms()) == ["0"]
    assert (world.subject.has_looked(), world.subject.remarks()) == (True, ["gpu 1 is left out: it is a symlink"])
    now = world.subject.next_wake(0, Demand(2))
    world.subject.look_again(now, Demand(1))
    assert (list(world.subject.rooms()), world.subject.remarks()) == (["0"], [])
    world.leases["1"].problem = ""
    world.subject.look_again(world.subject.next_wake(now, Demand(2)), Demand(1))
    assert (list(world.subject.rooms()), world.held()) == (["0", "1"], "")


def test_bad_lease_files_of_all_gpus_are_an_error() -> None:
    world = World("01")
    world.leases["0"].problem = world.leases["1"].problem = "it is a symlink"
    with pytest.raises(LeaseFileError, match="it is a symlink"):
        world.subject.open_leases()


def test_others_who_come_to_a_gpu_of_ours_are_reported_once_each_for_as_long_as_it_is_ours() -> None:
    world = World("01")
    world.subject.take(b"/r.1.1", ["0"], 0)
    assert world.subject.next_wake(0, Demand(0)) == 5
    world.subject.look_beside(5)
    assert world.subject.arrived() == []
    assert list(world.subject.rooms()) == ["0", "1"]
    eve = Neighbour(8, "eve", "another user (pid 8)")
    for others, who in [(ALICE.others, ["alice python"]), (ALICE.others, []), ([*ALICE.others, eve], [eve.who])]:
        world.looks["0"] = ALICE._replace(others=others)
        world.subject.look_beside(now := world.subject.next_wake(0, Demand(0)))
        assert world.subject.arrived() == [("0", each) for each in who]
    assert list(world.subject.rooms()) == ["1"], "nothing more of ours starts there"
    world.subject.give_back(b"/r.1.1", ["0"])
    world.looks.clear()
    world.subject.look_again(now + 1, Demand(1, memory=1))
    assert world.subject.take(b"/r.2.1", ["0"], now + 1) is not None
    world.looks["0"] = ALICE
    world.subject.look_beside(now + 6)
    assert world.subject.arrived() == [("0", "alice python")]


def test_those_who_come_are_seen_where_our_attempts_share_a_gpu_too() -> None:
    world = World("0")
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.looks["0"] = ALICE
    assert world.subject.take(b"/r.2.1", ["0"], 1) is None
    assert world.subject.arrived() == [("0", "alice python")]


@given(st.lists(st.floats(0, 4), max_size=60))
def test_it_never_looks_beside_at_more_than_one_gpu_at_a_time_or_at_one_twice_in_five_seconds(
    pauses: list[float],
) -> None:
    world = World("012")
    for gpu in "012":
        world.subject.take(b"/r.%s.1" % gpu.encode(), [gpu], 0)
    now, last = 0.0, dict.fromkeys("012", 0.0)
    for pause in pauses:
        now += pause
        world.asked.clear()
        world.subject.look_beside(now)
        assert len(world.asked) <= 1
        for gpu in (asked.rstrip("+") for asked in world.asked):
            assert now - last[gpu] >= 5
            last[gpu] = now


@pytest.mark.parametrize("blind", [False, True])
def test_nobody_looks_where_no_attempt_of_ours_is_left_or_where_nothing_can_be_seen(blind: bool) -> None:
    world = World("0")
    world.sees_others = not blind
    world.subject.take(b"/r.1.1", ["0"], 0)
    if not blind:
        world.subject.give_back(b"/r.1.1", ["0"])
        world.subject.let_go(0, 0)
    world.asked.clear()
    world.subject.look_beside(5)
    assert (world.asked, world.subject.next_wake(5, Demand(0))) == ([], float("inf"))


ALICE = Look(BUSY, others=[Neighbour(7, "alice", "alice python")])


def looks(world: World, now: float, until: float, demand: Demand = Demand(1)) -> list[float]:  # noqa: B008
    """When it looks, by itself, while a job waits and no GPU may be used."""
    found = []
    world.subject.rooms()
    while not world.subject.rooms() and (now := world.subject.next_wake(now, demand)) < until:
        world.subject.look_again(now, Demand(1))
        found.append(now)
    return found


def test_a_gpu_that_was_free_at_the_first_look_costs_no_wait() -> None:
    world = World("0", free_for=10)
    assert world.subject.take(b"/r.1.1", ["0"], 0) is not None


def test_a_gpu_that_others_have_left_is_used_once_they_have_left_it_alone_for_a_while() -> None:
    world = World("0", free_for=10)
    world.looks["0"] = ALICE
    assert world.subject.take(b"/r.1.1", ["0"], 0) is None
    world.subject.let_go(0, 1)
    looks(world, 0, 100)
    world.looks.clear()
    times = looks(world, 100, 1000)
    assert list(world.subject.rooms()) == ["0"]
    first, last = times[0], times[-1]
    assert last - first == pytest.approx(10)  # not a moment longer
    assert max(later - earlier for earlier, later in pairwise(times)) <= 1  # lest somebody come back unseen
    assert world.subject.take(b"/r.1.1", ["0"], last) is not None


def test_what_keeps_a_gpu_after_others_have_left_it_is_looked_at_in_ever_longer_pauses_too() -> None:
    world = World("0", free_for=10)
    world.looks["0"] = ALICE
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.subject.let_go(0, 1)
    looks(world, 0, 20)
    world.looks.clear()
    looks(world, 20, 25)
    world.looks["0"] = Look(Reason("fallen off the bus", "fallen off the bus"))
    times = looks(world, 25, 300)
    assert times[-1] - times[-2] == pytest.approx(4)


def test_a_gap_in_somebodys_loop_is_not_taken_and_the_wait_is_said() -> None:
    world = World("0", free_for=10)
    world.looks["0"] = ALICE
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.subject.let_go(0, 1)
    world.subject.rooms()
    for now in range(10, 1000, 90):
        world.looks.clear()
        world.subject.look_again(now, Demand(1))
        world.subject.look_again(now + 5, Demand(1))
        assert world.subject.rooms() == {}
        assert world.subject.waits(Demand(1)) == [Wait("0", "free for less than 10 s after alice python", "free for")]
        world.looks["0"] = ALICE
        world.subject.look_again(now + 8, Demand(1))


def test_a_gpu_that_another_scheduler_leased_after_somebody_is_waited_for_in_line_and_had_at_once() -> None:
    world = World("0", free_for=10)
    world.looks["0"] = ALICE
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.subject.let_go(0, 1)
    world.leases["0"].owner = "bob"  # his job is what is there now
    looks(world, 0, 5)
    assert world.leases["0"].in_line
    assert world.subject.waits(Demand(1)) == [Wait("0", "leased by bob", "leased by bob")]
    world.looks.clear()
    world.came("0", 50)
    assert world.subject.take(b"/r.1.1", ["0"], 50) is not None


def test_a_job_of_another_scheduler_is_nobody_who_might_come_back() -> None:
    world = World("0", free_for=10)
    world.leases["0"].owner, world.looks["0"] = "bob", ALICE
    world.subject.next_wake(0, Demand(1, memory=1))
    assert world.subject.look_again(1, Demand(1, memory=1))
    world.leases["0"].owner, world.looks = "", {}
    assert world.subject.look_again(2, Demand(1, memory=1))
    assert world.subject.take(b"/r.1.1", ["0"], 2)


def test_a_job_waits_for_no_memory_that_our_own_jobs_will_leave() -> None:
    world = World("0")
    world.looks["0"] = Look(free=5, held={(1, 1): 6})
    assert world.subject.take(b"/r.1.1", ["0"], 0)
    assert world.subject.waits(Demand(1, memory=11)) == []
    assert [wait.cause for wait in world.subject.waits(Demand(1, memory=12))] == ["memory"]


def test_a_process_that_is_ending_after_it_gave_back_the_lease_starts_no_wait() -> None:
    world = World("0", free_for=10)
    world.leases["0"].signer = 7
    world.looks["0"] = ALICE
    assert world.subject.take(b"/r.1.1", ["0"], 0) is None
    world.subject.let_go(0, 1)
    world.looks.clear()
    assert len(looks(world, 0, 100)) == 1


def test_the_memory_of_a_job_of_ours_that_has_just_ended_starts_no_wait() -> None:
    world = World("0", free_for=10)
    world.looks["0"] = Look(Reason("5 GiB used by others", USED_MEMORY, by_occupancy=True))
    assert world.subject.take(b"/r.1.1", ["0"], 0) is None
    world.subject.let_go(0, 1)
    looks(world, 0, 1)
    world.looks.clear()
    assert len(looks(world, 1, 100)) == 1


def test_what_is_set_aside_while_it_is_waited_for_is_given_back_when_it_comes() -> None:
    world = World("0")
    world.leases["0"].owner = "bob"
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.subject.leave_out({"0"})
    world.came("0", 1)
    assert world.held() == ""


def tend(world: World, now: float, demand: Demand) -> float:
    """As before each sleep of the loop; when it wakes."""
    world.subject.rooms()
    world.subject.look_again(now, demand)
    return world.subject.next_wake(now, demand)


def beside_one_of_ours(world: World) -> World:
    """An attempt of ours is on the first GPU, and a job that needs two waits."""
    assert world.subject.take(b"/r.1.1", ["0"], 0)
    world.asked.clear()
    return world


def test_the_neighbour_that_a_wide_job_waits_for_is_known_while_a_job_of_ours_has_the_other_gpu() -> None:
    world = beside_one_of_ours(World("01"))
    world.looks["1"] = Look(BUSY)
    assert tend(world, 0, Demand(2)) <= 0
    assert tend(world, 0, Demand(2)) <= 0.1
    assert world.asked == ["1"]
    assert world.subject.waits(Demand(2)) == [Wait("1", "alice python", "alice")]
    assert list(world.subject.rooms()) == ["0"], "what it cannot have is not reserved for it"
    assert world.leases["1"].owner == ""
    del world.looks["1"]
    tend(world, 4, Demand(2))
    assert world.subject.waits(Demand(2)) == []


def test_a_free_gpu_that_a_wide_job_waits_to_use_is_looked_at_every_five_seconds() -> None:
    world = beside_one_of_ours(World("01"))
    tend(world, 0, Demand(2))
    tend(world, 0, Demand(2))
    assert [tend(world, now, Demand(2)) for now in (0.1, 2, 4.9)] == [5, 5, 5]
    assert world.asked == ["1"]
    world.looks["1"] = Look(BUSY)
    tend(world, 5, Demand(2))
    assert [wait.gpu for wait in world.subject.waits(Demand(2))] == ["1"]


def test_no_gpu_is_looked_at_that_no_waiting_job_could_use() -> None:
    for demand, cap in ((Demand(0), 2), (Demand(1), 2), (Demand(3), 2), (Demand(2), 1)):
        world = beside_one_of_ours(World("01", cap=GpuCap(cap, "the file")))
        assert tend(world, 0, demand) == 5, "for those who come to ours"
        assert world.asked == []
    world = beside_one_of_ours(World("012"))
    world.subject.leave_out(["1"])
    tend(world, 0, Demand(2))
    tend(world, 1, Demand(2))
    assert world.asked == ["2"]


def test_who_leases_a_gpu_that_a_wide_job_will_need_is_known_without_a_place_in_line() -> None:
    world = beside_one_of_ours(World("01"))
    world.leases["1"].owner = "bob"
    tend(world, 0, Demand(2))
    assert 0 < tend(world, 0, Demand(2)) <= 0.1
    assert [wait.sentence for wait in world.subject.waits(Demand(2))] == ["leased by bob"]
    assert not world.leases["1"].in_line, "or it would be idle when bob returns it, until job 1 ends"
    assert list(world.subject.rooms()) == ["0", "1"]
    world.leases["1"].owner = ""
    tend(world, 4, Demand(2))
    assert world.subject.waits(Demand(2)) == []
    assert world.asked == ["1"]
    world.leases["1"].owner = "bob"
    tend(world, 9, Demand(2))
    world.subject.give_back(b"/r.1.1", ["0"])
    assert world.subject.take(b"/r.2.1", ["0", "1"], 9) is None
    assert world.leases["1"].in_line


def test_a_bad_lease_file_of_a_gpu_that_a_wide_job_will_need_is_reported() -> None:
    world = beside_one_of_ours(World("01"))
    world.leases["1"].problem = "it is a symbolic link"
    tend(world, 0, Demand(2))
    tend(world, 0, Demand(2))
    assert world.subject.remarks() == ["gpu 1 is left out: it is a symbolic link"]
    assert list(world.subject.rooms()) == ["0"]


# ---- A driver that does not answer


def slow(gpus: str, slow: str) -> World:
    """About some GPUs, the driver does not answer within a moment."""
    world = World(gpus)
    world.slow = slow
    return world


def turn(world: World, now: float, demand: Demand) -> float:
    """What the loop does before each sleep; when it wakes."""
    world.subject.rooms()
    world.subject.let_go(now, demand.gpus)
    world.subject.look_again(now, demand)
    return world.subject.next_wake(now, demand)


def said(world: World) -> list[str]:
    return [f"{each.gpu}: {each.sentence}" for each in world.subject.waits(Demand(1))]


def test_a_gpu_about_which_there_is_no_answer_is_not_used_and_others_are() -> None:
    world = slow("01", "0")
    assert world.subject.take(b"/r.1.1", ["0"], 0) is None
    assert list(world.subject.rooms()) == ["1"]
    assert world.subject.take(b"/r.1.1", ["1"], 0) is not None


def test_a_late_answer_is_the_look_before_the_start() -> None:
    world = slow("0", "0")
    assert world.subject.take(b"/r.1.1", ["0"], 0) is None
    turn(world, 0, Demand(1))
    assert world.held() == "0", "or the answer could not be used"
    world.answers("0", 3)
    assert list(world.subject.rooms()) == ["0"]
    assert world.subject.take(b"/r.1.1", ["0"], 3) is not None
    assert world.asked == ["0"]
    world.slow = ""
    assert world.subject.take(b"/r.2.1", ["0"], 3) is not None
    assert world.asked == ["0", "0+"], "it is one look, and the next start needs another"


def test_a_late_answer_that_somebody_is_there_is_believed_too() -> None:
    world = slow("0", "0")
    world.looks["0"] = ALICE
    assert world.subject.take(b"/r.1.1", ["0"], 0) is None
    world.answers("0", 1)
    assert world.subject.rooms() == {}
    turn(world, 1, Demand(1))
    assert (said(world), world.held()) == (["0: alice python"], "")


def test_a_late_answer_starts_nothing_if_the_lease_was_given_back_meanwhile() -> None:
    world = slow("0", "0")
    assert world.subject.take(b"/r.1.1", ["0"], 0) is None
    turn(world, 0, Demand(0))  # the job was cancelled
    assert world.held() == ""
    world.answers("0", 1)
    assert world.subject.take(b"/r.2.1", ["0"], 1) is None, "it is looked at once more under its lease"
    world.answers("0", 2)
    assert world.subject.take(b"/r.2.1", ["0"], 2) is not None
    assert world.asked == ["0", "0"]


def test_a_late_answer_starts_nothing_if_the_lease_is_given_back_after_it() -> None:
    world = slow("0", "0")
    assert world.subject.take(b"/r.1.1", ["0"], 0) is None
    world.answers("0", 1)
    turn(world, 1, Demand(0))
    assert world.subject.take(b"/r.2.1", ["0"], 1) is None
    assert world.asked == ["0", "0"]


def test_a_late_answer_starts_nothing_if_the_lease_is_another_one_by_then() -> None:
    world = slow("0", "0")
    assert world.subject.take(b"/r.1.1", ["0"], 0) is None
    turn(world, 0, Demand(0))
    world.came("0", 1)
    world.answers("0", 1)
    assert world.subject.take(b"/r.2.1", ["0"], 1) is None
    assert world.asked == ["0", "0"]


def test_a_wide_job_starts_although_each_answer_takes_seconds() -> None:
    world = slow("01", "01")
    assert world.subject.take(b"/r.1.1", ["0", "1"], 0) is None
    turn(world, 0, Demand(2))
    world.answers("0", 4)
    turn(world, 4, Demand(2))
    world.answers("1", 4.5)
    assert world.subject.take(b"/r.1.1", ["0", "1"], 4.5) is not None


def test_a_late_answer_starts_nothing_once_it_is_old() -> None:
    world = slow("01", "01")
    assert world.subject.take(b"/r.1.1", ["0", "1"], 0) is None
    world.answers("0", 1)
    turn(world, 1, Demand(2))
    assert world.held() == "01"
    world.answers("1", 4)
    assert world.subject.take(b"/r.1.1", ["0", "1"], 4) is None
    assert world.asked == ["0", "1", "0"]
    world.answers("0", 5)
    assert world.subject.take(b"/r.1.1", ["0", "1"], 5) is not None


def test_after_five_seconds_it_says_that_the_driver_does_not_answer_and_asks_no_more() -> None:
    world = slow("0", "0")
    world.subject.take(b"/r.1.1", ["0"], 0)
    now, last, began = 0.0, 0.0, 0.0
    while now < 100:
        last, now = now, turn(world, now, Demand(1))
        assert (world.held(), bool(said(world))) == (("0", False) if last < 5 else ("", True))
        began = began or (last if said(world) else 0)
    assert began == 5
    assert said(world) == [f"0: the NVIDIA driver has not answered for 1 min {round(last - 60)} s"]
    assert world.asked == ["0"]
    world.answers("0", now)
    assert said(world) == []
    world.slow = ""
    assert world.subject.take(b"/r.1.1", ["0"], now) is not None


def test_a_silent_driver_costs_no_more_than_a_look_every_four_seconds() -> None:
    world = slow("01", "01")
    world.subject.take(b"/r.1.1", ["0", "1"], 0)
    now, turns = 0.0, 0
    while now < 1000:
        now, turns = turn(world, now, Demand(2)), turns + 1
    assert turns < 280


def test_no_lease_is_kept_for_an_answer_while_an_earlier_gpu_of_a_wide_job_is_missing() -> None:
    world = slow("01", "1")
    world.leases["0"].owner = "bob"
    assert world.subject.take(b"/r.1.1", ["0", "1"], 0) is None
    turn(world, 0, Demand(2))
    assert world.held() == ""


def test_a_look_beside_a_job_that_is_not_answered_keeps_others_of_ours_away() -> None:
    world = World("0")
    assert world.subject.take(b"/r.1.1", ["0"], 0) is not None
    world.slow = "0"
    for now in (5, 10, 15, 20):
        world.subject.look_beside(now)
        assert world.subject.next_wake(now, Demand(0)) == now + 5
        assert world.subject.rooms() == {}
    assert world.asked == ["0", "0+"]
    world.looks["0"] = ALICE
    world.answers("0", 21)
    assert world.subject.arrived() == [("0", "alice python")]


def test_an_answer_about_a_job_that_has_ended_meanwhile_counts_for_nothing() -> None:
    world = World("0")
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.slow = "0"
    world.subject.look_beside(5)
    world.subject.give_back(b"/r.1.1", ["0"])
    world.looks["0"] = ALICE
    world.answers("0", 6)
    assert list(world.subject.rooms()) == ["0"]
    world.slow, world.looks = "", {}
    assert world.subject.take(b"/r.2.1", ["0"], 6) is not None
    assert world.asked == ["0", "0+", "0"]


def test_a_uuid_that_becomes_known_late_is_leased_before_the_gpu_is_used() -> None:
    world = slow("0", "0")
    world.uuids["0"] = "GPU-a"
    assert world.subject.take(b"/r.1.1", ["0"], 0) is None
    world.answers("0", 1)
    assert world.opened == ["index-0", "GPU-a"]
    world.slow = ""
    assert world.subject.take(b"/r.1.1", ["0"], 1) is not None
    assert world.asked == ["0", "0"]


def test_an_answer_that_comes_after_the_end_is_ignored() -> None:
    world = slow("0", "0")
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.subject.keep_only_used()
    world.answers("0", 1)
    world.subject.close()


class Careful(World):
    """A world that knows under which lease the last answer said that a GPU is free; 0 if it did not."""

    def __init__(self) -> None:
        self.asked_under = dict.fromkeys("012", 0)
        self.was_free_under = dict.fromkeys("012", 0)
        super().__init__()

    def look(self, gpu: Gpu, *, shared: bool) -> Answer | None:
        lease = self.leases[gpu.id]
        self.asked_under[gpu.id] = lease.turn if lease.owner == "us" else 0
        return super().look(gpu, shared=shared)

    def answer(self, gpu: str) -> Answer:
        answer = super().answer(gpu)
        self.was_free_under[gpu] = 0 if answer.look.reason else self.asked_under[gpu]
        return answer


STEPS = st.sampled_from(["slow", "answers", "comes", "takes", "takes two", "ends", "turn", "bob"])


@given(st.lists(st.tuples(STEPS, st.sampled_from("012"), st.floats(0, 3)), max_size=60))
def test_nothing_starts_unless_the_last_answer_to_a_look_under_the_lease_says_that_the_gpu_is_free(
    steps: list[tuple[str, str, float]],
) -> None:
    world, now, running = Careful(), 0.0, dict[bytes, list[str]]()
    for number, (step, gpu, pause) in enumerate(steps):
        now += pause
        if step == "slow":
            world.slow = world.slow.replace(gpu, "") if gpu in world.slow else world.slow + gpu
        elif step == "answers" and gpu in world.unanswered:
            world.answers(gpu, now)
        elif step == "comes":
            world.looks[gpu] = Look() if world.looks.get(gpu, Look()).reason else Look(BUSY)
        elif step.startswith("takes"):
            mark = b"/r.%d.1" % number
            gpus = [each for each in world.subject.rooms() if not any(each in taken for taken in running.values())]
            gpus = gpus[: 2 if "two" in step else 1]
            if gpus and world.subject.take(mark, gpus, now):
                running[mark] = gpus
                assert all(world.was_free_under[each] == world.leases[each].turn for each in gpus)
        elif step == "ends" and running:
            world.subject.give_back(*running.popitem())
        elif step == "turn":
            turn(world, now, Demand(number % 3))
            world.subject.look_beside(now)
        elif step == "bob" and world.leases[gpu].owner != "us":
            world.leases[gpu].owner = "" if world.leases[gpu].owner else "bob"


def test_closing_gives_everything_back() -> None:
    world = World("01")
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.subject.close()
    assert world.held() == ""
    assert all(lease.is_closed for lease in world.leases.values())


def wait(cause: str) -> Wait:
    return Wait("0", f"{cause} for a while", cause)


def test_a_reason_to_wait_is_reported_once_and_only_when_it_lasts() -> None:
    subject = Waiting(patience=1)
    assert subject.say([wait("a")], 0) is None
    assert subject.say([wait("a")], 0.9) is None
    assert subject.say([wait("a")], 1) == [wait("a")]
    assert subject.say([wait("a")], 5) is None
    assert subject.say([wait("b")], 6) is None
    assert subject.say([wait("a")], 6.5) is None
    assert subject.say([wait("b")], 7) is None
    assert subject.say([wait("b")], 8) == [wait("b")]


def test_a_reason_that_comes_back_is_reported_again_and_so_is_its_end() -> None:
    subject = Waiting(patience=1)
    a = [wait("a")]
    assert [subject.say(a, now) for now in (0, 1, 2)] == [None, a, None]
    assert [subject.say([], now) for now in (3, 5, 7)] == [None, [], None]
    assert [subject.say(a, now) for now in (8, 9, 10)] == [None, a, None]
