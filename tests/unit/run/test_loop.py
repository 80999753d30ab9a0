"""The loop, with a clock and an engine made by hand: no time passes and no process is started."""

import signal
from collections import Counter
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from queue import Empty

import pytest

from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Outcome, Place
from simple_gpu_scheduler.base.measurement import Curve, CurvePoint, GpuUse, Measured, Measurement
from simple_gpu_scheduler.engines.protocol import Began, Ended, Exited, ForEngine, Refused, Report, Tended, Unstoppable
from simple_gpu_scheduler.engines.protocol import World as EngineWorld
from simple_gpu_scheduler.events import (
    AttemptMeasured,
    CurvesDrawn,
    Event,
    GpuSetAside,
    JobBegan,
    JobDropped,
    JobEnded,
    JobsRead,
    JobStarted,
    LeftBehind,
    LineRefused,
    Noticed,
    RunEnded,
    StartRefused,
    StatusAsked,
    StopAsked,
    Waited,
    WaitsSeen,
)
from simple_gpu_scheduler.events.publisher import Publisher
from simple_gpu_scheduler.gpus import Answer, Gpu, Look, Reason
from simple_gpu_scheduler.gpus.leases import Holder, LeaseCame
from simple_gpu_scheduler.gpus.pool import Demand, Pool
from simple_gpu_scheduler.inputs.reader import READ_AHEAD, Batch, EndOfInput
from simple_gpu_scheduler.jobfile.parse import Refusal
from simple_gpu_scheduler.run import loop
from simple_gpu_scheduler.run.options import FailureOptions
from simple_gpu_scheduler.run.state import Message, RunRules, State
from simple_gpu_scheduler.scheduling import Rules
from simple_gpu_scheduler.scheduling.halt import parse_halt
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits, Rooms
from simple_gpu_scheduler.system.marks import mark
from simple_gpu_scheduler.system.signals import Signalled

KILLED = Outcome("killed", signal.SIGKILL)
TERMINATED = Outcome("killed", signal.SIGTERM)


class FakeLease:
    """A lease that another scheduler may have; that it comes, the test says."""

    descriptor: int | None = None

    def __init__(self) -> None:
        self.is_anothers = self.is_ours = self.is_waited_for = False

    def take(self, *, past_the_line: bool = False) -> bool:
        self.is_waited_for = self.is_waited_for and not past_the_line
        self.is_ours = not self.is_anothers
        return self.is_ours

    def wait_in_line(self) -> None:
        assert not self.is_waited_for, "it stands in line twice"
        self.is_waited_for = True

    def sign(self, marks: Sequence[bytes], pid: int, job: int = 0, name: str = "") -> None:
        pass

    def is_wanted(self) -> bool:
        return False

    def release(self) -> None:
        self.is_ours = False

    def signed_by(self) -> int:
        return 0

    def holder(self) -> Holder | None:
        return Holder("leased by bob (pid 7, train.py)", "bob") if self.is_anothers else None

    def close(self) -> None:
        pass


class FakeEngine:
    """Obeys or does not, over a real pool of GPUs. Attempts without slots are survivors of an earlier scheduler."""

    queues = False

    def __init__(self, world: "World", pool: Pool) -> None:
        self.world = world
        self.pool = pool
        self.stops: list[tuple[float, int, bool]] = []
        self.survivor_stops: list[tuple[float, tuple[int, int], bool]] = []
        self.takes: dict[int, float] = {}
        self.outcomes: dict[int, list[Outcome]] = {}
        self.stubborn: set[int] = set()
        self.leaves_something: set[int] = set()
        self.anothers: set[int] = set()
        self.has_ended_in_time: set[int] = set()
        self.leaves: dict[str, object] = {}
        self.unused: set[tuple[int, int]] = set()
        self.released: list[tuple[int, str]] = []
        self.kills_survived = 0
        self.most: Callable[[float], float] = lambda _now: float("inf")  # beyond it, the system refuses processes

    def rooms(self, without: frozenset[str]) -> Rooms:
        self.pool.leave_out(without)
        return self.pool.rooms()

    def waits(self, demand: Demand) -> list[Wait]:
        return self.pool.waits(demand)

    def take(self, attempt: Attempt, now: float) -> bool:
        taken = self.pool.take(mark(attempt, b"run"), attempt.gpus, now) is not None
        self.unused |= {attempt.key} if taken else set()
        return taken

    def measured(self, _key: object) -> None:
        return None

    def release(self, attempt: Attempt) -> None:
        self.released.append((attempt.job.number, "".join(attempt.gpus)))
        if attempt.slots:
            self.pool.give_back(mark(attempt, b"run"), attempt.gpus, unused=attempt.key in self.unused)

    def start(self, attempt: Attempt) -> None:
        self.unused.discard(attempt.key)
        if len(self.world.state.attempts) > self.most(self.world.time):
            self.world.at(self.world.time, ForEngine(Refused(attempt, "no process")))
            return
        outcomes = self.outcomes.get(attempt.job.number, [SUCCESS])
        outcome = outcomes[min(attempt.number, len(outcomes)) - 1]
        in_time = attempt.job.number in self.has_ended_in_time
        ended = Ended(attempt, outcome, by_itself=in_time, **self.leaves)
        self.world.at(self.world.time + self.takes.get(attempt.job.number, 1), ForEngine(ended))

    def stop(self, attempts: Sequence[Attempt], *, force: bool) -> None:
        for attempt in attempts:
            self.stop_one(attempt, force=force)

    def stop_one(self, attempt: Attempt, *, force: bool) -> None:
        world, number = self.world, attempt.job.number
        if number in self.has_ended_in_time:
            return
        if attempt.slots:
            self.stops.append((world.time, number, force))
        else:
            self.survivor_stops.append((world.time, attempt.key, force))
        if number in self.anothers:
            world.at(world.time, ForEngine(Unstoppable(attempt)))
        elif force and self.kills_survived:
            self.kills_survived -= 1
        elif force or number not in self.stubborn:
            world.forget(attempt)
            world.at(world.time, ForEngine(Ended(attempt, KILLED if force else TERMINATED)))

    def received(self, message: LeaseCame | Ended | Refused, now: float) -> list[Report]:
        if isinstance(message, LeaseCame):
            self.pool.came(message.gpu, now)
            return []
        if message.attempt.job.number in self.leaves_something:
            self.leaves_something.discard(message.attempt.job.number)
            self.world.at(now + 5, ForEngine(message))
            return [Exited(message.attempt)]
        return [message]

    def tend(self, demand: Demand, now: float) -> Tended:
        self.pool.leave_out(demand.without)
        self.pool.let_go(now, demand.gpus)
        has_looked = self.pool.look_again(now, demand)
        return Tended(self.pool.next_wake(now, demand), has_looked)

    def close(self) -> None:
        pass


class World:
    """A clock that moves only when the loop waits, messages at set times, a probe, a sink, and an engine."""

    def __init__(self, gpus: str = "01", **rules) -> None:
        halt = parse_halt(rules.pop("halt", "never"))
        names = ("timeout", "stall", "idle", "grace", "reads_all", "quarantine", "run_id", "log_of")
        run_rules = {name: rules.pop(name) for name in names if name in rules}
        self.time = 0.0
        self.queue: list[tuple[float, int, Message]] = []
        self.events: list[tuple[float, Event]] = []
        self.others: dict[str, Reason] = {}
        self.tells_time = False  # whether a reason says for how long
        self.free: dict[str, float] = {}
        self.reads = 0
        self.leases = {gpu: FakeLease() for gpu in gpus}
        self.engine = FakeEngine(self, Pool([Gpu(name) for name in gpus], lambda gpu: self.leases[gpu.id], self))
        limits = Limits(tuple(gpus), rules.pop("jobs_per_gpu", 1))
        self.scheduler = Scheduler(limits, POLICIES["fifo"](), Rules(**rules))
        self.publisher = Publisher([self])
        engine_world = EngineWorld(self.engine, self, self, self.read_more)
        failures = {name: run_rules.pop(name) for name in FailureOptions._fields if name in run_rules}
        rules = RunRules(FailureOptions(halt=halt, **failures), **run_rules)
        self.state = State(rules, self.scheduler, engine_world, self.publisher)

    def at(self, time: float, message: Message) -> None:
        heappush(self.queue, (time, len(self.queue) + len(self.events) * 1000, message))

    def jobs(self, *jobs: Job | Refusal, ends: bool = True) -> "World":
        self.at(0, Batch(list(jobs)))
        if ends:
            self.at(0, EndOfInput())
        return self

    def read_more(self) -> None:
        self.reads += 1

    # The clock.
    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return 1_000_000 + self.time

    # The inbox.
    def get(self, *, timeout: float | None = None) -> Message:
        if timeout is not None and (not self.queue or self.queue[0][0] > self.time + timeout):
            self.time += timeout
            raise Empty
        assert self.queue, "the loop would sleep for ever"
        self.time = max(self.time, self.queue[0][0])
        return heappop(self.queue)[2]

    def forget(self, attempt: Attempt) -> None:
        """Its end does not come any more."""
        self.queue = [
            entry for entry in self.queue if getattr(getattr(entry[2], "message", None), "attempt", None) != attempt
        ]

    # The probe.
    sees_others = False

    def look(self, gpu: Gpu, *, shared: bool) -> Answer:  # noqa: ARG002 - the protocol's name
        reason = self.others.get(gpu.id)
        if reason and self.tells_time:
            reason = reason._replace(sentence=f"{reason.sentence} for {self.time:.1f} s")
        return Answer(gpu, Look(reason, self.free.get(gpu.id, float("inf"))))

    def remarks(self) -> list[str]:
        return []

    # The sink.
    def take(self, event: Event) -> None:
        self.events.append((self.time, event))

    def close(self) -> None:
        pass

    def run(self) -> int:
        loop.run(self.state)
        ledger = self.publisher.ledger
        assert (ledger.running, self.summary().left) == ({}, len(ledger.waiting))
        # The scheduler keeps no job whose attempt was ended because the run was stopped.
        assert self.scheduler.waiting <= len(ledger.waiting) <= self.scheduler.waiting + len(ledger.interrupted)
        self.publisher.close()
        return loop.exit_code(self.state)

    def of(self, kind: type) -> list:
        return [event for _, event in self.events if isinstance(event, kind)]

    def starts(self) -> list[tuple[float, int]]:
        return [(time, event.attempt.job.number) for time, event in self.events if isinstance(event, JobStarted)]

    def summary(self) -> RunEnded:
        [summary] = self.of(RunEnded)
        return summary


def job(number: int, **options) -> Job:
    return Job(number, b"true", Place(number), **options)


def jobs(count: int) -> list[Job]:
    return [job(number) for number in range(1, count + 1)]


def failing(world: World, *numbers: int) -> World:
    for number in numbers:
        world.engine.outcomes[number] = [Outcome("failed", 1)]
    return world


def test_a_gpu_is_given_to_the_next_job_as_soon_as_one_ends() -> None:
    world = World().jobs(*jobs(4))
    world.engine.takes = {1: 3, 2: 1}
    assert world.run() == 0
    assert world.starts() == [(0, 1), (0, 2), (1, 3), (2, 4)]
    assert world.summary() == RunEnded(4, 0, 0, 0, 3, all_read=True)


def test_why_a_wide_job_waits_is_said_while_other_jobs_run_and_these_do_not_wait_for_it() -> None:
    world = World("012").jobs(job(1), job(2, gpus=3), job(3), job(4))
    world.others["1"] = Reason("alice python", "alice", by_occupancy=True)
    world.engine.takes = {1: 60, 3: 60}
    world.at(30, Signalled(signal.SIGUSR1))
    world.at(90, Signalled(signal.SIGINT))
    world.run()
    assert world.of(Waited) == [Waited([Wait("1", "alice python", "alice")])] * 2, "once, and once when it was asked"
    assert world.starts() == [(0, 1), (pytest.approx(0, abs=0.2), 3), (60, 4)]


def test_the_time_in_a_reason_that_was_said_stays_true_while_a_job_waits() -> None:
    world = World("0").jobs(job(1))
    world.others["0"] = Reason("alice python", "alice", by_occupancy=True)
    world.tells_time = True
    world.at(60, Signalled(signal.SIGINT))
    world.run()
    [said] = world.of(Waited)
    assert said.waits[0].sentence.startswith("alice python for 1.")
    *shown, (_, at_last) = [(time, event.waits) for time, event in world.events if isinstance(event, WaitsSeen)]
    assert (shown[0][0] > 1, at_last) == (True, ()), "nothing waits once the run is stopped"
    assert all(wait.sentence == f"alice python for {time:.1f} s" for time, [wait] in shown)
    assert 50 < shown[-1][0] < 60


def test_a_reason_is_not_shown_for_ever_when_no_job_waits_any_more() -> None:
    world = World("01").jobs(job(1), job(2, gpus=0), job(3))
    world.others["1"] = Reason("alice python", "alice", by_occupancy=True)
    world.engine.takes = {1: 10, 3: 60}
    world.run()
    assert world.of(Waited) == [Waited([Wait("1", "alice python", "alice")])], "its end is not known"
    assert [time for time, event in world.events if isinstance(event, WaitsSeen) and not event.waits] == [10]


def gpus_of_starts(world: World) -> list[tuple[float, int, str]]:
    return [
        (time, event.attempt.job.number, "".join(event.attempt.gpus))
        for time, event in world.events
        if isinstance(event, JobStarted)
    ]


@pytest.mark.parametrize("delay", [0, 5])
def test_a_job_whose_gpu_is_anothers_starts_on_the_next_one_and_in_its_turn(delay: float) -> None:
    world = World("012", delay=delay).jobs(*jobs(3))
    world.leases["0"].is_anothers = True
    world.engine.takes = {1: 2, 2: 3, 3: 1}
    assert world.run() == 0
    at_once = [(0, 1, "1"), (0, 2, "2"), (2, 3, "1")]
    assert gpus_of_starts(world) == ([(0, 1, "1"), (5, 2, "1"), (10, 3, "1")] if delay else at_once)


def test_a_job_for_which_a_closer_look_finds_too_little_memory_goes_elsewhere() -> None:
    world = World("01").jobs(job(1, mem=8), job(2, mem=8))
    world.free = {"0": 7.0}
    world.engine.takes = {1: 2, 2: 1}
    assert world.run() == 0
    assert gpus_of_starts(world) == [(0, 1, "1"), (2, 2, "1")]
    assert world.engine.released.count((1, "0")) == 1


def test_memory_that_a_cpu_job_asks_for_is_ignored() -> None:
    assert World().jobs(job(1, gpus=0, mem=1000)).run() == 0


def test_an_empty_input_is_a_success() -> None:
    assert World().jobs().run() == 0


def test_each_end_is_published_with_its_times() -> None:
    world = World().jobs(job(1))
    world.engine.takes = {1: 2.5}
    world.run()
    [end] = world.of(JobEnded)
    assert (end.outcome, end.started_at, end.length, end.is_final) == (SUCCESS, 1_000_000, 2.5, True)


def test_a_failure_makes_the_exit_code_one() -> None:
    world = failing(World().jobs(*jobs(3)), 2)
    assert world.run() == 1
    assert world.summary()[:4] == (2, 1, 0, 0)


def test_a_refused_line_makes_the_exit_code_two_and_the_others_run() -> None:
    world = failing(World().jobs(job(1), Refusal(2, Place(2), "why", is_bad_option=True), job(3)), 1)
    assert world.run() == 2
    assert world.of(LineRefused) == [LineRefused(Place(2), "why", 2)]
    assert world.summary()[:4] == (1, 1, 0, 1)


def test_a_job_is_ended_at_its_time_out_and_killed_after_the_grace_period() -> None:
    world = World(timeout=10, grace=3).jobs(job(1), job(2, timeout=4), job(3))
    world.engine.takes = {1: 100, 2: 100, 3: 1}
    world.engine.stubborn = {1}
    assert world.run() == 1
    assert world.engine.stops == [(4, 2, False), (10, 1, False), (13, 1, True)]
    assert [end.outcome.kind for end in world.of(JobEnded)] == ["timed out", "succeeded", "timed out"]
    assert world.summary()[:4] == (1, 0, 2, 0)


def test_without_a_grace_period_a_job_is_killed_at_once() -> None:
    world = World(timeout=10, grace=0).jobs(job(1))
    world.engine.takes = {1: 100}
    world.run()
    assert world.engine.stops == [(10, 1, True)]


def test_a_timed_out_job_is_tried_again() -> None:
    world = World(timeout=10, retries=1).jobs(job(1))
    world.engine.takes = {1: 100}
    assert world.run() == 1
    assert [end.is_final for end in world.of(JobEnded)] == [False, True]
    assert world.summary()[:4] == (0, 0, 1, 0)


def test_a_job_that_succeeds_at_the_second_attempt_has_succeeded() -> None:
    world = World(retries=2, retry_delay=7).jobs(job(1))
    world.engine.outcomes = {1: [Outcome("failed", 1), SUCCESS]}
    assert world.run() == 0
    assert world.starts() == [(0, 1), (8, 1)]


def test_what_an_attempt_leaves_behind_is_gone_before_its_gpu_is_given_away() -> None:
    world = World("0").jobs(*jobs(2))
    world.engine.leaves_something = {1}
    assert world.run() == 0
    assert world.starts() == [(0, 1), (6, 2)]
    assert world.of(JobEnded)[0].length == 1


def test_a_job_that_ended_in_time_has_not_timed_out_because_the_loop_was_late() -> None:
    world = World("0", timeout=3).jobs(job(1))
    world.engine.takes, world.engine.has_ended_in_time = {1: 5}, {1}
    assert world.run() == 0
    assert world.engine.stops == []


def test_time_outs_do_not_strike_while_the_leftovers_are_ended() -> None:
    world = World("0", timeout=3).jobs(job(1))
    world.engine.leaves_something = {1}
    assert world.run() == 0
    assert world.engine.stops == []


def test_processes_that_cannot_be_ended_are_reported_and_make_the_run_a_failure() -> None:
    world = World("0")
    world.engine.leaves = {"beyond_us": "42"}
    assert world.jobs(job(1)).run() == 1
    assert [(event.attempt.job.number, event.beyond_us) for event in world.of(LeftBehind)] == [(1, "42")]


def test_the_first_ctrl_c_starts_nothing_more_and_waits() -> None:
    world = World("0").jobs(*jobs(3), ends=False)
    world.engine.takes = {1: 10}
    world.at(5, Signalled(signal.SIGINT))
    assert world.run() == 130
    assert world.engine.stops == []
    assert world.of(StopAsked) == [StopAsked("Ctrl-C", False, False, 1)]
    assert world.summary() == RunEnded(1, 0, 0, 2, 10, all_read=False, code=130, left=2)


def test_the_second_ends_what_runs_and_the_third_kills_it() -> None:
    world = World("0", grace=60).jobs(job(1))
    world.engine.takes, world.engine.stubborn = {1: 1000}, {1}
    for time in (5, 6, 7):
        world.at(time, Signalled(signal.SIGINT))
    assert world.run() == 130
    assert world.engine.stops == [(6, 1, False), (7, 1, True)]
    assert world.summary() == RunEnded(0, 0, 0, 0, 7, all_read=True, code=130, left=1, interrupted=1)


def test_term_ends_what_runs_at_once_and_kills_it_after_the_grace_period() -> None:
    world = World("0", grace=3).jobs(*jobs(2))
    world.engine.takes, world.engine.stubborn = {1: 1000}, {1}
    world.at(5, Signalled(signal.SIGTERM))
    assert world.run() == 143
    assert world.engine.stops == [(5, 1, False), (8, 1, True)]


def test_what_survives_a_kill_is_killed_again_each_second() -> None:
    world = World("0", grace=3).jobs(job(1))
    world.engine.takes, world.engine.stubborn, world.engine.kills_survived = {1: 1000}, {1}, 2
    world.at(5, Signalled(signal.SIGTERM))
    assert world.run() == 143
    assert world.engine.stops == [(5, 1, False), (8, 1, True), (9, 1, True), (10, 1, True)]


@pytest.mark.parametrize(
    ("number", "later", "killed"),
    [
        (signal.SIGTERM, 0.4, 65),
        (signal.SIGTERM, 0.6, 5.6),
        (signal.SIGINT, 0.1, 5.1),
        (signal.SIGQUIT, 0.1, 5.1),
    ],
)
def test_only_a_second_term_at_once_is_the_same_one(number: int, later: float, killed: float) -> None:
    world = World("0", grace=60).jobs(job(1))
    world.engine.takes, world.engine.stubborn = {1: 1000}, {1}
    world.at(5, Signalled(signal.SIGTERM))
    world.at(5 + later, Signalled(number))
    world.run()
    assert world.engine.stops == [(5, 1, False), (killed, 1, True)]


def test_a_stop_does_not_call_a_timed_out_job_by_another_name() -> None:
    world = World("0", timeout=5, grace=10).jobs(job(1))
    world.engine.takes, world.engine.stubborn = {1: 1000}, {1}
    world.at(7, Signalled(signal.SIGTERM))
    assert world.run() == 143
    assert world.engine.stops == [(5, 1, False), (15, 1, True)]
    assert world.summary()[:4] == (0, 0, 1, 0)


def test_the_third_ctrl_c_kills_what_times_out_and_hurries_what_ends_leftovers() -> None:
    world = World("01", timeout=2, grace=60).jobs(job(1), job(2))
    world.engine.takes, world.engine.stubborn, world.engine.leaves_something = {1: 1000, 2: 1}, {1}, {2}
    for time in (3, 4, 5):
        world.at(time, Signalled(signal.SIGINT))
    assert world.run() == 130
    assert world.engine.stops == [(2, 1, False), (5, 1, True), (5, 2, True)]


def test_a_job_that_became_another_users_is_waited_for_and_reported() -> None:
    world = World("0", timeout=2, grace=3).jobs(job(1), job(2))
    world.engine.takes, world.engine.anothers = {1: 10}, {1}
    assert world.run() == 1
    assert world.starts() == [(0, 1), (10, 2)]
    assert [notice.sentence for notice in world.of(Noticed)] == [
        "job 1 runs as another user and cannot be stopped; waiting for it to end"
    ]


def test_a_bug_in_a_thread_is_raised_by_the_loop() -> None:
    world = World("0").jobs(job(1))
    world.at(0.5, Broken(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        world.run()


def test_quit_is_as_term() -> None:
    world = World("0").jobs(job(1))
    world.engine.takes = {1: 100}
    world.at(1, Signalled(signal.SIGQUIT))
    assert world.run() == 131
    assert world.engine.stops == [(1, 1, False)]


def test_ctrl_c_after_a_halt_ends_what_runs() -> None:
    world = failing(World("01", halt="soon,fail=1").jobs(*jobs(3)), 1)
    world.engine.takes = {2: 100}
    world.at(5, Signalled(signal.SIGINT))
    assert world.run() == 130
    assert world.engine.stops == [(5, 2, False)]


def test_a_job_that_was_to_be_tried_again_is_interrupted_when_the_run_is_stopped() -> None:
    world = failing(World("0", retries=5, retry_delay=100).jobs(*jobs(1)), 1)
    world.at(5, Signalled(signal.SIGTERM))
    assert world.run() == 143
    assert [(end.is_final, end.is_interrupted) for end in world.of(JobEnded)] == [(False, False), (True, True)]
    assert world.summary() == RunEnded(0, 0, 0, 0, 5, all_read=True, code=143, left=1, interrupted=1)


def test_a_job_that_fails_after_a_stop_keeps_its_retries_for_the_resumed_run() -> None:
    world = failing(World("0", retries=1).jobs(job(1), job(2, after=(1,))), 1)
    world.at(0.5, Signalled(signal.SIGINT))
    assert world.run() == 130
    assert [(end.is_final, end.is_interrupted) for end in world.of(JobEnded)] == [(False, False), (True, True)]
    assert world.of(JobDropped) == []
    assert world.summary() == RunEnded(0, 0, 0, 1, 1, all_read=True, code=130, left=2, interrupted=1)


def test_what_a_job_left_running_is_reported_unless_it_was_ended_itself() -> None:
    world = World("0")
    world.engine.leaves = {"swept": 2}
    assert world.jobs(job(1)).run() == 0
    assert [event.swept for event in world.of(LeftBehind)] == [2]
    world = World("0", timeout=1)
    world.engine.takes, world.engine.leaves_something = {1: 5}, {1}
    world.jobs(job(1)).run()
    assert world.of(LeftBehind) == []


def refusing(most: Callable[[float], float], count: int) -> World:
    world = World("0123").jobs(*jobs(count))
    world.engine.most = most
    return world


def test_jobs_beyond_the_limit_on_processes_wait_for_the_others_and_count_no_attempt() -> None:
    world = refusing(lambda _now: 2, 200)
    assert world.run() == 0
    assert world.summary().succeeded == 200
    assert {event.attempt.number for event in world.of(JobEnded)} == {1}
    assert 100 <= world.time <= 101
    assert len(world.of(StartRefused)) < 20
    assert world.of(Noticed) == [Noticed("waiting: no process; jobs start as soon as it does", is_warning=True)]


def test_a_limit_that_is_reached_by_others_is_waited_out_and_then_all_gpus_are_used() -> None:
    world = refusing(lambda now: 4 if now > 20 else 0, 40)
    world.engine.takes = dict.fromkeys(range(1, 41), 10)
    assert world.run() == 0
    starts = Counter(event.attempt.job.number for event in world.of(JobStarted))
    assert sum(starts.values()) - 40 == len(world.of(StartRefused)) < 14
    assert world.time < 20 + 16 + 100 + 40
    assert world.state.start_limit.allows(3, world.time)


def test_gpus_are_others_while_the_system_refuses_processes() -> None:
    world = refusing(lambda now: 0 if now < 5 else 4, 1)
    world.run()
    refused = [at for at, event in world.events if isinstance(event, StartRefused)]
    assert world.engine.released[: len(refused)] == [(1, "0")] * len(refused)


def test_without_anything_of_ours_that_runs_it_is_given_up_after_a_minute() -> None:
    world = refusing(lambda _now: 0, 200)
    assert world.run() == 1
    assert world.summary().not_started == 200
    assert 60 <= world.time < 95
    assert {event.outcome for event in world.of(JobEnded)} == {Outcome("not started", reason="no process")}


def test_ctrl_c_ends_the_wait_for_a_process_and_leaves_the_jobs() -> None:
    world = refusing(lambda _now: 0, 3)
    world.at(2, Signalled(signal.SIGINT))
    assert world.run() == 130
    assert world.time == 2
    assert world.summary().left == 3


def test_hangup_changes_nothing() -> None:
    world = World("0").jobs(*jobs(2))
    world.at(0.5, Signalled(signal.SIGHUP))
    assert world.run() == 0
    assert world.of(Noticed)[0].sentence == "SIGHUP: the terminal is gone, the run continues"


def test_usr1_tells_what_runs_and_what_waits() -> None:
    world = World("0").jobs(*jobs(3))
    world.at(0.5, Signalled(signal.SIGUSR1))
    assert world.run() == 0
    [status] = world.of(StatusAsked)
    assert [(attempt.job.number, time) for attempt, time in status.running] == [(1, 0.5)]
    assert status.waiting == 2


def test_nothing_more_is_read_after_a_stop() -> None:
    world = World("0").jobs(*jobs(1), ends=False)
    world.engine.takes = {1: 10}
    world.at(5, Signalled(signal.SIGINT))
    world.at(6, Batch([job(2)]))
    world.run()
    assert world.reads == 1
    assert world.summary().not_started == 1


def test_halt_soon_starts_nothing_more() -> None:
    world = failing(World("0", halt="soon,fail=2").jobs(*jobs(5)), 1, 2, 3)
    assert world.run() == 1
    assert world.starts() == [(0, 1), (1, 2)]
    assert world.of(StopAsked) == [StopAsked("--halt: 2 jobs did not succeed", False, False, 0)]
    assert world.summary()[:4] == (0, 2, 0, 3)


def test_halt_now_ends_what_runs() -> None:
    world = failing(World("01", halt="now,fail=1").jobs(*jobs(5)), 1)
    world.engine.takes = {2: 100}
    assert world.run() == 1
    assert world.engine.stops == [(1, 2, False)]


def test_halt_by_a_share_waits_for_the_whole_input() -> None:
    world = failing(World("0", halt="soon,fail=50%").jobs(*jobs(4), ends=False), 1, 2)
    world.at(100, EndOfInput())
    assert world.run() == 1
    assert world.of(StopAsked) == []
    world = failing(World("0", halt="soon,fail=50%").jobs(*jobs(4)), 1, 2)
    world.run()
    assert world.starts() == [(0, 1), (1, 2)]


def test_jobs_after_a_failure_are_not_started_and_reported() -> None:
    world = failing(World("0").jobs(job(1, name="a"), job(2, after=(1,)), job(3)), 1)
    assert world.run() == 1
    assert [event.job.number for event in world.of(JobDropped)] == [2]
    assert world.summary()[:4] == (1, 1, 0, 1)


def test_an_input_that_fails_is_reported_and_makes_the_run_a_failure() -> None:
    world = World("0")
    world.at(0, EndOfInput("reading stdin failed"))
    assert world.run() == 1
    assert world.of(Noticed) == [Noticed("reading stdin failed", is_failure=True)]


def test_a_file_that_changed_makes_the_exit_code_two_after_the_jobs_read_before_have_run() -> None:
    world = World("0").jobs(job(1))
    world.at(0, EndOfInput(changed="jobs.txt changed"))
    assert world.run() == 2
    assert world.of(Noticed) == [Noticed("jobs.txt changed", is_failure=True, is_bad_input=True)]
    assert world.summary().succeeded == 1
    assert not world.summary().all_read


def test_reading_ahead_has_a_bound() -> None:
    world = World("0").jobs(*jobs(READ_AHEAD + 2))
    world.engine.takes = dict.fromkeys(range(1, READ_AHEAD + 3), 1)
    reads_at_start: list[int] = []
    world.at(0.5, Signalled(signal.SIGUSR1))
    take = world.take
    world.take = lambda event: (
        reads_at_start.append(world.reads) if isinstance(event, StatusAsked) else None,
        take(event),
    )
    world.run()
    assert reads_at_start == [0]
    assert world.reads == 1


def test_a_policy_that_ranks_reads_all() -> None:
    world = World("0", reads_all=True).jobs(*jobs(READ_AHEAD + 2), ends=False)
    world.at(0.5, Signalled(signal.SIGINT))
    world.run()
    assert world.reads == 1


def test_a_sink_that_fails_stops_no_job_and_is_reported() -> None:
    class Broken:
        def take(self, _event: Event) -> None:
            raise OSError(28, "No space left on device")

        def close(self) -> None:
            pass

    world = World("0")
    world.publisher._sinks.insert(0, Broken())
    assert world.jobs(*jobs(2)).run() == 1
    assert world.summary()[:4] == (2, 0, 0, 0)
    [notice] = world.of(Noticed)
    assert notice.sentence == "Broken failed: No space left on device; jobs continue, and it is tried again"


def test_a_sink_that_cannot_close_is_reported() -> None:
    class Broken:
        def take(self, _event: Event) -> None:
            pass

        def close(self) -> None:
            raise OSError(5, "Input/output error")

    world = World("0")
    world.publisher._sinks.append(Broken())
    assert world.jobs(*jobs(1)).run() == 1
    assert len(world.of(Noticed)) == 1


def test_a_wait_for_longer_than_the_system_can_is_cut() -> None:
    world = World("0", timeout=1e300).jobs(job(1))
    waits: list[float | None] = []
    get: Callable[..., Message] = world.get

    def recording(*, timeout: float | None = None) -> Message:
        waits.append(timeout)
        return get(timeout=timeout)

    world.get = recording
    assert world.run() == 0
    assert max(wait for wait in waits if wait) <= 86_400


def test_an_end_is_recorded_before_its_gpu_is_free_and_a_job_before_it_starts() -> None:
    world = World("0").jobs(job(1))
    told: list[tuple[str, bool]] = []
    lease = world.leases["0"]
    release, start = lease.release, world.engine.start

    def kinds() -> set[type]:
        return {type(event) for _, event in world.events}

    def released() -> None:
        told.append(("end", JobEnded in kinds()))
        release()

    def started(attempt: Attempt) -> None:
        told.append(("start", {JobsRead, JobStarted} <= kinds()))
        start(attempt)

    lease.release = released
    world.engine.start = started
    world.run()
    assert ("start", True) in told
    assert ("end", True) in told
    assert ("start", False) not in told
    assert ("end", False) not in told


def queued(timeout: float, takes: float) -> World:
    """A job that is in a cluster's queue until 10, and takes so long from its start."""
    world = World("0", timeout=timeout, grace=3).jobs(job(1))
    world.engine.queues, world.engine.takes, world.engine.stubborn = True, {1: takes}, {1}
    world.at(10, ForEngine(Began(Attempt(job(1), 1, ("0",), (0,)), "node7")))
    return world


def test_an_attempt_in_a_clusters_queue_has_neither_a_runtime_nor_a_time_out() -> None:
    world = queued(timeout=5, takes=12)
    world.at(9, Signalled(signal.SIGUSR1))
    world.at(11, Signalled(signal.SIGUSR1))
    assert world.run() == 0
    assert [(time, event.where) for time, event in world.events if isinstance(event, JobBegan)] == [(10, "node7")]
    assert [[runtime for _, runtime in event.running] for event in world.of(StatusAsked)] == [[0], [1]]
    [ended] = world.of(JobEnded)
    assert (ended.length, ended.started_at, world.engine.stops) == (2, 1_000_010, [])


def test_the_time_out_of_an_attempt_counts_from_when_it_runs() -> None:
    world = queued(timeout=5, takes=100)
    assert world.run() == 1
    assert world.engine.stops == [(15, 1, False), (18, 1, True)]
    [ended] = world.of(JobEnded)
    assert (ended.outcome.kind, ended.length) == ("timed out", 8)


def test_no_gpu_is_set_aside_unless_that_was_asked_for() -> None:
    world = failing(World("01").jobs(*jobs(8)), 1, 3, 5)
    world.engine.takes = {2: 20}
    world.run()
    assert world.of(GpuSetAside) == []


def test_a_command_that_chooses_its_gpus_is_told_of_once() -> None:
    chooser = b"CUDA_VISIBLE_DEVICES=0 python train.py"
    jobs = [job(1), job(2)._replace(command=chooser, gpus=0), job(3)._replace(command=chooser)]
    world = World().jobs(*jobs, job(4)._replace(command=chooser), ends=False)
    world.jobs(job(5)._replace(command=chooser))
    assert world.run() == 0
    assert world.of(Noticed) == [
        Noticed(
            "job 3 (line 3) sets CUDA_VISIBLE_DEVICES itself, so it may use a GPU that is not its own; "
            "remove that from the command"
        )
    ]


def test_curves_begin_when_their_attempt_did_although_the_clock_was_set_back_meanwhile() -> None:
    world = World()
    curve = Curve("0", [CurvePoint(0.0, 1.0, (50,) * 5, (50,) * 5)])
    use = Measurement((GpuUse("0", 1.0),))
    world.engine.leaves = {"measured": Measured(0.0, use, [curve])}
    world.wall = lambda: 1_000_000.0 if world.time < 1 else 500.0  # type: ignore[method-assign]
    world.jobs(job(1)).run()
    happened = [event for _, event in world.events if isinstance(event, AttemptMeasured | CurvesDrawn | JobEnded)]
    assert [type(event) for event in happened] == [AttemptMeasured, CurvesDrawn, JobEnded]
    assert isinstance(happened[1], CurvesDrawn)
    assert happened[1].began_at == 1_000_000
