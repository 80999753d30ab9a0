"""Which GPUs a run may use now: leases, lines and looks, with those of others made by hand."""

from collections.abc import Sequence

from simple_gpu_scheduler.base.gpu_waits import Wait, Waiting
from simple_gpu_scheduler.gpus import Gpu, Look, Reason
from simple_gpu_scheduler.gpus.leases import Holder
from simple_gpu_scheduler.gpus.pool import Demand, Pool

BUSY = Reason("alice python", "alice", by_occupancy=True)


class Lease:
    """A lease that another may have."""

    descriptor: int | None = None

    def sign(self, marks: Sequence[bytes], pid: int) -> None:
        pass

    def __init__(self, world: "World") -> None:
        self.world = world
        self.owner = ""
        self.in_line = False
        self.is_closed = False

    def take(self, *, past_the_line: bool = False) -> bool:
        line_is_ours = past_the_line or not self.world.line_is_anothers
        if not self.owner and line_is_ours:
            self.owner = "us"
        return self.owner == "us"

    def wait_in_line(self) -> None:
        assert not self.in_line
        self.in_line = True

    def is_wanted(self) -> bool:
        return self.world.line_is_anothers

    def release(self) -> None:
        if self.owner == "us":
            self.owner = ""

    def holder(self) -> Holder | None:
        return Holder(f"leased by {self.owner}", self.owner) if self.owner not in ("", "us") else None

    def close(self) -> None:
        self.release()
        self.is_closed = True


class World:
    """GPUs with their leases, and a probe that says which processes are on them."""

    def __init__(self, gpus: str = "012") -> None:
        self.line_is_anothers = False
        self.leases = {gpu: Lease(self) for gpu in gpus}
        self.looks: dict[str, Look] = {}
        self.asked: list[str] = []
        self.subject = Pool([Gpu(gpu) for gpu in gpus], self.leases, self)

    def look(self, gpu: Gpu, *, shared: bool) -> Look:
        self.asked.append(f"{gpu.id}{'+' if shared else ''}")
        return self.looks.get(gpu.id, Look())

    def remarks(self) -> list[str]:
        return []

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
    assert world.subject.waits(Demand(1)) == [Wait("0", "alice python", "alice", by_occupancy=True)]


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
        assert world.subject.look_again(now, at_all=False)
        world.subject.rooms()
    assert pauses == sorted(pauses)
    assert pauses[0] <= 0.1
    assert pauses[-1] == 4
    del world.looks["0"]
    now = world.subject.next_wake(now, Demand(1))
    world.subject.look_again(now, at_all=False)
    assert list(world.subject.rooms()) == ["0"]
    assert world.subject.next_wake(now, Demand(1)) == float("inf")


def test_a_wide_job_has_all_of_its_gpus_or_none_for_long() -> None:
    world = World("01")
    world.leases["1"].owner = "bob"
    assert world.subject.take(b"/r.1.1", ["0", "1"], 0) is None
    world.subject.let_go(0, 2)
    assert world.held() == "0"  # for a moment, since the other may come
    wake = world.subject.next_wake(0, Demand(2))
    world.subject.look_again(2.0, at_all=False)
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
        world.subject.look_again(now, at_all=False)
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


def test_a_lost_gpu_is_reported_once_and_never_used_again_unless_it_is_found() -> None:
    world = World("01")
    world.looks["0"] = Look(Reason("it has fallen off the bus", "problem"), is_lost=True)
    world.subject.take(b"/r.1.1", ["0"], 0)
    assert world.subject.lost() == [("0", "it has fallen off the bus")]
    assert world.subject.lost() == []
    assert world.subject.in_use == 1
    world.looks.clear()
    world.subject.look_again(100, at_all=True)
    assert list(world.subject.rooms()) == ["1"]
    assert world.subject.waits(Demand(1)) == []


def test_what_is_set_aside_while_it_is_waited_for_is_given_back_when_it_comes() -> None:
    world = World("0")
    world.leases["0"].owner = "bob"
    world.subject.take(b"/r.1.1", ["0"], 0)
    world.subject.leave_out({"0"})
    world.came("0", 1)
    assert world.held() == ""


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
