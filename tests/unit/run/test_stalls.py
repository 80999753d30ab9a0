"""Which attempts are warned of or ended because they do nothing, with the loop's clock and engine made by hand."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Outcome, Patience
from simple_gpu_scheduler.base.measurement import Stillness
from simple_gpu_scheduler.engines.protocol import Diagnosed, ForEngine
from simple_gpu_scheduler.events import JobEnded, Noticed, StallSeen
from simple_gpu_scheduler.keeper.survivors import Survivor
from simple_gpu_scheduler.resume.unfinished_jobs import Resumption
from simple_gpu_scheduler.run import loop
from simple_gpu_scheduler.system.signals import Signalled

from .test_loop import FakeEngine, World, job

CONSTANT = "no output and a constant utilisation of 100 % for 1 min"
IDLE = "its GPU was at 0 % for 1 min"
WARNS, ENDS = Patience(60), Patience(60, ends=True)


class Watching(World):
    """Its engine sees every attempt as this function of the time says, and takes a second to diagnose one."""

    def __init__(self, still: Callable[[float], Stillness | None], **rules: object) -> None:
        super().__init__("0", **rules)
        self.asked: list[float] = []
        self.diagnosed: list[tuple[float, int]] = []
        engine: FakeEngine = self.engine

        def stillness(_key: object) -> Stillness | None:
            self.asked.append(self.time)
            return still(self.time)

        def diagnose(attempt: Attempt) -> None:
            self.diagnosed.append((self.time, attempt.number))
            self.at(self.time + 1, ForEngine(Diagnosed(attempt, ["its stack"])))

        def received(message: object, now: float) -> object:
            return [message] if isinstance(message, Diagnosed) else FakeEngine.received(engine, message, now)  # type: ignore[arg-type]

        engine.stillness, engine.diagnose, engine.received = stillness, diagnose, received  # type: ignore[assignment,method-assign]

    def stalls(self) -> list[tuple[float, StallSeen]]:
        return [(time, event) for time, event in self.events if isinstance(event, StallSeen)]


def hanging(now: float) -> Stillness:
    """At 100 % from the first second on."""
    return Stillness(now, 1.0, None, (100.0,))


def idle(now: float) -> Stillness:
    return Stillness(now, 1.0, 1.0, (0.0,))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "0001.log"
    path.write_text("epoch 1\n")
    return path


def test_a_job_is_warned_of_once_when_it_has_been_silent_and_constant_for_so_long(log: Path) -> None:
    world = Watching(hanging, stall=WARNS, log_of=lambda _job: str(log)).jobs(job(1))
    world.engine.takes = {1: 500}
    assert world.run() == 0
    [(time, seen)] = world.stalls()
    assert 61 <= time <= 66
    assert (seen.reason, seen.ends, seen.log) == (CONSTANT, False, str(log))
    assert len(world.diagnosed) == 1
    written = log.read_text().splitlines()
    assert written[0] == "epoch 1"
    assert [line.removeprefix("[simple_gpu_scheduler] | ")[-len(CONSTANT) :] for line in written[1:2]] == [CONSTANT]
    assert [line.removeprefix("[simple_gpu_scheduler] | ") for line in written[2:]] == [
        "its stack",
        f"it continues after 1 min {round(time) - 60} s",
    ]
    assert seen.written == (8, log.stat().st_size)


def test_it_is_ended_if_that_was_asked_and_tried_again(log: Path) -> None:
    world = Watching(idle, retries=1, log_of=lambda _job: str(log)).jobs(job(1, idle=ENDS))
    world.engine.takes = {1: 500}
    assert world.run() == 1
    ends = world.of(JobEnded)
    assert [(end.outcome, end.is_final) for end in ends] == [
        (Outcome("stalled", 0, IDLE), False),
        (Outcome("stalled", 0, IDLE), True),
    ]
    assert [event.ends for _, event in world.stalls()] == [True, True]
    assert (world.summary().stalled, world.summary()[:4]) == (1, (0, 0, 0, 0))
    assert "it is ended after 1 min" in log.read_text()


def test_one_without_a_log_is_ended_at_once(log: Path) -> None:
    world = Watching(idle).jobs(job(1, idle=ENDS))
    world.engine.takes = {1: 500}
    world.run()
    [(_, seen)] = world.stalls()
    assert (seen.log, seen.written, world.diagnosed) == ("", None, [])
    assert log.read_text() == "epoch 1\n"


@pytest.mark.parametrize(
    "still",
    [
        lambda now: Stillness(now, now - 59, now - 59, (0.0,)),
        lambda _now: Stillness(60.9, 1.0, 1.0, (0.0,)),  # the driver hangs since
        lambda _now: None,
    ],
    ids=["it changes", "nobody saw it", "unknown"],
)
def test_what_was_not_seen_for_so_long_is_never_held_against_a_job(
    still: Callable[[float], Stillness | None], log: Path
) -> None:
    world = Watching(still, stall=ENDS, idle=ENDS, log_of=lambda _job: str(log)).jobs(job(1))
    world.engine.takes = {1: 500}
    assert world.run() == 0
    assert world.stalls() == []


def test_a_driver_that_does_not_tell_the_utilisation_is_told_of_once() -> None:
    world = Watching(lambda _now: None, idle=ENDS).jobs(job(1), job(2))
    world.engine.takes = {1: 500, 2: 500}
    assert world.run() == 0
    assert world.of(Noticed) == [
        Noticed(
            "job 1 (line 1): stall or idle has no effect, since the utilisation of its GPU is not known",
            is_warning=True,
        )
    ]


def test_a_job_that_prints_is_kept_until_it_has_been_silent_for_so_long(log: Path) -> None:
    def still(now: float) -> Stillness:
        if now < 200 and world.time > 5:
            log.write_text(f"epoch {now}\n")
        return hanging(now)

    world = Watching(still, stall=ENDS, log_of=lambda _job: str(log)).jobs(job(1))
    world.engine.takes = {1: 500}
    assert world.run() == 1
    [end] = world.of(JobEnded)
    assert end.outcome.kind == "stalled"
    assert 258 <= end.length <= 266


def test_what_we_write_to_its_log_is_no_output_of_the_job(log: Path) -> None:
    world = Watching(idle, idle=WARNS, stall=Patience(100, ends=True), log_of=lambda _job: str(log)).jobs(job(1))
    world.engine.takes = {1: 500}
    assert world.run() == 1
    assert [round(time, -1) for time, _ in world.stalls()] == [60, 100]


def test_an_option_of_the_line_counts_more_than_that_of_the_run() -> None:
    world = Watching(idle, idle=ENDS).jobs(job(1, idle=Patience(0)))
    world.engine.takes = {1: 500}
    assert world.run() == 0
    assert world.asked == []


def test_idle_is_nothing_for_a_job_without_gpus() -> None:
    world = Watching(idle, idle=ENDS).jobs(job(1, gpus=0))
    world.engine.takes = {1: 500}
    assert world.run() == 0
    assert world.asked == []


def test_a_job_without_gpus_stalls_when_it_prints_nothing_and_uses_no_cpu_time(log: Path) -> None:
    world = Watching(lambda now: Stillness(now, 1.0), stall=ENDS, log_of=lambda _job: str(log)).jobs(job(1, gpus=0))
    world.engine.takes = {1: 500}
    world.run()
    assert [event.reason for _, event in world.stalls()] == ["no output and no CPU time used for 1 min"]


def test_a_stall_that_cannot_be_seen_is_told_of_once() -> None:
    """As in a resumed run whose jobs ask for it."""
    world = Watching(idle).jobs(job(1, stall=ENDS), job(2, stall=ENDS))
    world.engine.takes = {1: 500, 2: 500}
    assert world.run() == 0
    assert [event.sentence for event in world.of(Noticed)] == [
        "job 1 (line 1): stall has no effect, since its output is not kept"
    ]


def test_one_that_succeeds_while_it_is_diagnosed_has_succeeded(log: Path) -> None:
    world = Watching(idle, idle=ENDS, log_of=lambda _job: str(log)).jobs(job(1))
    world.engine.takes = {1: 61.5}
    assert world.run() == 0
    assert [end.outcome for end in world.of(JobEnded)] == [SUCCESS]
    assert (len(world.diagnosed), world.stalls()) == (1, [])


def test_one_that_is_stopped_meanwhile_is_interrupted(log: Path) -> None:
    world = Watching(idle, idle=ENDS, grace=5, log_of=lambda _job: str(log)).jobs(job(1))
    world.engine.takes, world.engine.stubborn = {1: 500}, {1}
    world.at(61.5, Signalled(signal.SIGTERM))
    assert world.run() == 143
    [end] = world.of(JobEnded)
    assert (end.is_interrupted, len(world.diagnosed), world.stalls()) == (True, 1, [])


def test_a_survivor_is_watched_from_the_resumption_on(log: Path) -> None:
    def still(now: float) -> Stillness:
        return Stillness(now, 0.0, 0.0, (0.0,))

    world = Watching(still, idle=ENDS).jobs()
    survivor = Survivor(Attempt(Job(7, b"true", job(7).place), 1, ("0",), ()), 0, 1_000_000 - 3600, 0, None, str(log))
    loop.resume(world.state, Resumption(survivors=(survivor,)))
    world.run()
    [(time, seen)] = world.stalls()
    assert (round(time), seen.attempt.job.number, seen.log) == (61, 7, str(log))
    [end] = world.of(JobEnded)
    assert end.outcome == Outcome("stalled", 0, IDLE)


def test_nothing_is_asked_of_the_engine_unless_that_was_asked_of_us() -> None:
    world = Watching(idle).jobs(job(1))
    world.engine.takes = {1: 500}
    assert world.run() == 0
    assert (world.asked, world.state.watched, world.state.watch_at) == ([], {}, float("inf"))


def test_it_is_looked_at_no_more_often_than_every_few_seconds(log: Path) -> None:
    world = Watching(lambda now: Stillness(now, now), stall=ENDS, log_of=lambda _job: str(log)).jobs(job(1))
    world.engine.takes = {1: 5000}
    assert world.run() == 0
    assert len(world.asked) <= 5000 / 2


def test_two_reasons_that_are_found_at_once_are_written_once_and_both_told(log: Path) -> None:
    world = Watching(idle, stall=WARNS, idle=WARNS, log_of=lambda _job: str(log)).jobs(job(1))
    world.engine.takes = {1: 500}
    assert world.run() == 0
    told = [(seen.reason, seen.log, seen.written is not None) for _, seen in world.stalls()]
    assert told == [(CONSTANT.replace("100 %", "0 %"), str(log), True), (IDLE, str(log), False)]
    assert (len(world.diagnosed), log.read_text().count("its stack")) == (1, 1)
