"""A queueing engine, made by hand: a cluster with a queue of its own, which chooses places and says when a job begins.

It needs nothing in the loop that this machine does not need.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from queue import Empty
from typing import Any

from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Outcome, Place
from simple_gpu_scheduler.engines.protocol import Began, Ended, ForEngine, Report, Tended, World
from simple_gpu_scheduler.events import Event, JobBegan, JobEnded, JobRequeued, JobStarted
from simple_gpu_scheduler.events.publisher import Publisher
from simple_gpu_scheduler.gpus.pool import Demand
from simple_gpu_scheduler.inputs.reader import Batch, EndOfInput
from simple_gpu_scheduler.keeper.survivors import Survivor
from simple_gpu_scheduler.remote.server import Asked
from simple_gpu_scheduler.resume.unfinished_jobs import Resumption
from simple_gpu_scheduler.run import loop
from simple_gpu_scheduler.run.options import FailureOptions
from simple_gpu_scheduler.run.state import RunRules, State
from simple_gpu_scheduler.scheduling import Rules
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits, Rooms


class Cluster:
    """`nodes` attempts run at a time, in the order in which they came; its clock moves only while the loop waits."""

    queues = True

    def __init__(self, nodes: int) -> None:
        self.free = nodes
        self.time = 0.0
        self.lengths: dict[int, float] = {}
        self.refuses: list[int] = []  # once each
        self.says_how = True  # how what it stopped has ended
        self.queue: list[Attempt] = []
        self.running: list[Attempt] = []
        self.messages: list[tuple[float, int, Any]] = []

    def rooms(self, _without: frozenset[str]) -> Rooms:
        return {}

    def waits(self, _demand: Demand) -> list[Wait]:
        return []

    def take(self, _attempt: Attempt, _now: float) -> bool:
        return True

    def release(self, attempt: Attempt) -> None:
        pass

    def start(self, attempt: Attempt) -> None:
        if attempt.job.number in self.refuses:
            self.refuses.remove(attempt.job.number)
            self.say(self.time, Ended(attempt, None, "the cluster refused it: too many jobs"))
        else:
            self.queue.append(attempt)
            self.serve()

    def serve(self) -> None:
        while self.free and self.queue:
            self.free -= 1
            attempt = self.queue.pop(0)
            self.running.append(attempt)
            self.say(self.time, Began(attempt, "node7"))
            self.say(self.time + self.lengths.get(attempt.job.number, 10), Ended(attempt, SUCCESS))

    def stop(self, attempts: Sequence[Attempt], *, force: bool) -> None:
        for attempt in attempts:
            self.end(attempt, Outcome("killed", 9 if force else 15) if self.says_how else None)

    def end(self, attempt: Attempt, outcome: Outcome | None, why: str = "") -> None:
        self.messages = [each for each in self.messages if getattr(each[2], "attempt", None) != attempt]
        self.queue = [each for each in self.queue if each != attempt]
        self.say(self.time, Ended(attempt, outcome, why))

    def received(self, message: Report, _now: float) -> list[Report]:
        if isinstance(message, Ended) and message.attempt in self.running:
            self.running.remove(message.attempt)
            self.free += 1
            self.serve()
        return [message]

    def tend(self, _demand: Demand, _now: float) -> Tended:
        return Tended()

    def close(self) -> None:
        pass

    # The inbox and the clock that go with it.
    def say(self, time: float, message: object) -> None:
        heappush(self.messages, (time, len(self.messages) + id(message), message))

    def get(self, *, timeout: float | None = None) -> Any:
        if timeout is not None and (not self.messages or self.messages[0][0] > self.time + timeout):
            self.time += timeout
            raise Empty
        assert self.messages, "the loop would sleep for ever"
        self.time, _, message = heappop(self.messages)
        if callable(message):
            message()
            raise Empty
        return ForEngine(message) if isinstance(message, Began | Ended) else message

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return 1_000_000 + self.time


class Run:
    """A run on such a cluster, whose scheduler hands it `most` jobs at a time."""

    def __init__(self, *jobs: Job, nodes: int = 1, most: int = 100, timeout: float | None = None, retries: int = 0):
        self.events: list[tuple[float, Event]] = []
        self.cluster = Cluster(nodes)
        self.cluster.messages = [(0.0, 0, Batch([*jobs])), (0.0, 1, EndOfInput())]
        limits = Limits((), cpu_slots=most, elsewhere=True)
        scheduler = Scheduler(limits, POLICIES["fifo"](), Rules(retries=retries))
        world = World(self.cluster, self.cluster, self.cluster, lambda: None)
        self.state = State(RunRules(FailureOptions(timeout=timeout, grace=0)), scheduler, world, Publisher([self]))

    def take(self, event: Event) -> None:
        self.events.append((self.cluster.time, event))

    def close(self) -> None:
        pass

    def run(self) -> int:
        loop.run(self.state)
        return loop.exit_code(self.state)

    def at(self, kind: type) -> list[tuple[float, int]]:
        return [(time, event.attempt.job.number) for time, event in self.events if isinstance(event, kind)]


def job(number: int, **options: Any) -> Job:
    return Job(number, b"true", Place(number), **options)


def test_the_cluster_chooses_when_a_job_begins_whatever_it_needs() -> None:
    run = Run(job(1, gpus=8), job(2, gpus=2, mem=10), job(3, gpus=0))
    assert run.run() == 0
    assert run.at(JobStarted) == [(0, 1), (0, 2), (0, 3)]
    assert run.at(JobBegan) == [(0, 1), (10, 2), (20, 3)]
    assert [event.where for _, event in run.events if isinstance(event, JobBegan)] == ["node7"] * 3


def test_no_more_than_so_many_are_handed_to_it() -> None:
    run = Run(*map(job, range(1, 5)), nodes=2, most=3)
    assert run.run() == 0
    assert run.at(JobStarted) == [(0, 1), (0, 2), (0, 3), (10, 4)]


def test_time_in_the_queue_counts_for_no_time_out_and_is_no_part_of_a_length() -> None:
    run = Run(*map(job, range(1, 4)), timeout=15)
    run.cluster.lengths = {3: 50}
    assert run.run() == 1
    ends = [event for _, event in run.events if isinstance(event, JobEnded)]
    assert [(event.outcome.kind, event.length) for event in ends] == [
        ("succeeded", 10), ("succeeded", 10), ("timed out", 15)
    ]  # fmt: skip
    assert run.cluster.time == 35
    assert [event.started_at - 1_000_000 for event in ends] == [0, 10, 20]


def test_estimates_learn_from_what_ran_and_not_from_what_waited() -> None:
    run = Run(*(Job(number, b"train --seed %d" % number, Place(number), mem=1) for number in range(1, 4)))
    learned: list[float] = []
    run.state.scheduler.add_history({})
    lineup = run.state.scheduler._lineup
    lineup.by_length = True
    learn = lineup._estimates.learn
    lineup._estimates.learn = lambda each, length: (learned.append(length), learn(each, length))[1]
    assert run.run() == 0
    assert learned == [10, 10, 10]


def test_a_preempted_job_runs_again_and_that_is_no_failure() -> None:
    run = Run(job(1), job(2), retries=0)
    run.cluster.say(4, lambda: run.cluster.end(run.cluster.running[0], None, "preempted"))
    assert run.run() == 0
    assert [event.why for _, event in run.events if isinstance(event, JobRequeued)] == ["preempted"]
    assert run.at(JobBegan) == [(0, 1), (4, 2), (14, 1)]
    assert [event.attempt.key for _, event in run.events if isinstance(event, JobEnded)] == [(2, 1), (1, 2)]


def test_a_cluster_may_say_no_after_a_start() -> None:
    run = Run(job(1), job(2))
    run.cluster.refuses = [1]
    assert run.run() == 0
    assert run.at(JobEnded) == [(10, 2), (20, 1)]


def test_a_job_can_be_cancelled_while_it_waits_there() -> None:
    run = Run(job(1), job(2))
    answers: list[dict[str, Any]] = []
    run.cluster.say(3, Asked({"do": "cancel", "jobs": [2]}, answers.append))
    assert run.run() == 1
    assert run.at(JobBegan) == [(0, 1)]
    assert (run.state.ledger.counts().succeeded, run.state.ledger.counts().cancelled) == (1, 1)
    assert answers[0]["jobs"][0].keys() == {"job", "done"}


def test_a_job_that_was_cancelled_does_not_run_again_though_the_cluster_does_not_say_how_it_ended() -> None:
    run = Run(job(1))
    run.cluster.says_how = False
    run.cluster.say(3, Asked({"do": "cancel", "jobs": [1]}, lambda _answer: None))
    assert run.run() == 1
    assert run.at(JobBegan) == [(0, 1)]
    assert run.state.ledger.counts().cancelled == 1


def test_attempts_of_an_earlier_scheduler_end_like_any_other() -> None:
    run = Run(job(2))
    attempt = Attempt(job(1), 3, (), ())
    loop.resume(run.state, Resumption(survivors=(Survivor(attempt, 0, 1_000_000 - 30, 0),)))
    run.cluster.say(5, Ended(attempt, SUCCESS))
    assert run.run() == 0
    [end] = [event for _, event in run.events if isinstance(event, JobEnded) and event.attempt == attempt]
    assert (end.length, end.started_at) == (35, 1_000_000 - 30)
