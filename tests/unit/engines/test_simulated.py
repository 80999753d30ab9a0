"""The simulated engine starts each job when the simulator does."""

import signal
from queue import SimpleQueue
from random import Random
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.jobs import Attempt, Job, Place
from simple_gpu_scheduler.engines.protocol import Ended, Setting, World
from simple_gpu_scheduler.engines.simulated import Simulated
from simple_gpu_scheduler.events import Event, JobStarted
from simple_gpu_scheduler.events.publisher import Publisher
from simple_gpu_scheduler.gpus import Gpu
from simple_gpu_scheduler.gpus.discover import Machine, Wants
from simple_gpu_scheduler.inputs.reader import Batch, EndOfInput
from simple_gpu_scheduler.run.loop import run
from simple_gpu_scheduler.run.state import RunRules, State
from simple_gpu_scheduler.scheduling.estimates import PastLengths
from simple_gpu_scheduler.scheduling.policies import POLICIES
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits
from simple_gpu_scheduler.simulation.simulate import Arrival, simulate
from simple_gpu_scheduler.system.signals import Signalled


def setting(queue: SimpleQueue, gpus: tuple[str, ...] = ("0",), *, input_ends: bool = True) -> Setting:
    return Setting("run", Machine(tuple(map(Gpu, gpus))), Wants(), queue, input_ends=input_ends)


class Loop:
    """A whole runner in this process: its inbox is given everything before it begins."""

    def __init__(self, gpus: int, policy: str, *messages: object) -> None:
        self.queue: SimpleQueue = SimpleQueue()
        for message in messages:
            self.queue.put(message)
        self.starts: dict[int, float] = {}
        names = tuple(map(str, range(gpus)))
        self.simulated = Simulated(setting(self.queue, names), 0.0)
        self.scheduler = Scheduler(Limits(names), POLICIES[policy](), label=lambda job: job.label)
        world = World(self.simulated, self.simulated, self.simulated, self.simulated.read_more)
        self.state = State(RunRules(reads_all=True), self.scheduler, world, Publisher([self]))

    def run(self) -> None:
        run(self.state)

    def take(self, event: Event) -> None:
        if isinstance(event, JobStarted):
            self.starts[event.attempt.job.number] = self.simulated.now()

    def close(self) -> None:
        pass


def job(number: int, seconds: float, **options) -> Job:
    return Job(number, f"sleep {seconds:.6f}".encode(), Place(number), **options)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**9), count=st.integers(1, 40), gpus=st.integers(1, 5), policy=st.sampled_from([*POLICIES]),
    says=st.booleans(),
)  # fmt: skip
def test_the_loop_starts_each_job_when_the_simulator_does(
    seed: int, count: int, gpus: int, policy: str, *, says: bool
) -> None:
    draw = Random(seed)
    lengths = [round(draw.uniform(1, 10) ** 3, 6) for _ in range(count)]
    jobs = [
        job(
            number, length, gpus=draw.randint(1, gpus), label=draw.choice("abc"), priority=draw.randint(0, 2),
            time=length if says else None,
        )
        for number, length in enumerate(lengths, 1)
    ]  # fmt: skip
    loop = Loop(gpus, policy, Batch([*jobs]), EndOfInput())
    loop.run()
    workload = [Arrival(0.0, each, length) for each, length in zip(jobs, lengths, strict=True)]
    names = tuple(map(str, range(gpus)))
    expected = simulate(workload, Scheduler(Limits(names), POLICIES[policy](), label=lambda each: each.label), names)
    assert [loop.starts[each.number] for each in jobs] == pytest.approx([*expected])


@pytest.mark.parametrize("message", [PastLengths({}), Signalled(signal.SIGUSR1)])
def test_what_comes_when_all_is_read_does_not_stop_time(message: object) -> None:
    loop = Loop(1, "fifo", Batch([job(1, 5), job(2, 5)]), EndOfInput(), message)
    thread = Thread(target=loop.run, daemon=True)
    thread.start()
    thread.join(120)
    assert not thread.is_alive(), "it waits for what never comes"
    assert loop.starts == {1: 0, 2: 5}


def test_an_attempt_that_is_stopped_ends_once_and_at_once() -> None:
    engine = Simulated(setting(SimpleQueue(), input_ends=False), 0.0)
    attempt = Attempt(job(1, 50), 1, ("0",), (0,))
    engine.start(attempt)
    engine.stop([attempt], force=True)
    ended = engine.get().message
    assert isinstance(ended, Ended)
    assert (ended.outcome.kind, ended.outcome.code) == ("killed", signal.SIGKILL)
    assert engine.now() == 0
