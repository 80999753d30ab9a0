"""What earlier runs tell is asked for once it matters, and what this run measures is learned."""

import pytest

from simple_gpu_scheduler.base.jobs import Attempt, Job, Outcome, Place
from simple_gpu_scheduler.base.measurement import Figures, GpuUse, Measured, Measurement
from simple_gpu_scheduler.events import JobStarted, Noticed
from simple_gpu_scheduler.inputs.reader import Batch
from simple_gpu_scheduler.run.state import EarlierRuns
from simple_gpu_scheduler.scheduling.estimates import PastLengths
from tests.unit.run.test_loop import World

GIB = 2**30
SCOUTS = "jobs with mem=auto run alone on their GPUs until one of their kind has succeeded and its memory is known"


def job(number: int, **options) -> Job:
    options = {"mem_auto": True} | options
    return Job(number, b"true", Place(number), **options)


def measured(memory: float) -> Measured:
    return Measured(0, Measurement((GpuUse("0", 5.0, memory=Figures(memory, memory)),)))


class Telling:
    """A world in which earlier runs tell something after a while."""

    def __init__(self, *jobs: Job, per_gpu: int = 3, after: float = 0.3, unmeasured: str = "", **told) -> None:
        self.asked: list[tuple[float, bool]] = []
        self.after = after
        self.told = PastLengths({}, {"true": [10.0 * GIB]})._replace(**told)
        self.world = World("0", jobs_per_gpu=per_gpu).jobs(*jobs)
        self.world.state.history = EarlierRuns(self.load, False, unmeasured)
        self.world.state.asked_lengths = False

    def load(self, with_peaks: bool) -> None:
        self.asked.append((self.world.time, with_peaks))
        told = self.told if with_peaks else self.told._replace(peaks=None)
        if self.after < float("inf"):
            self.world.at(self.world.time + self.after, told)

    def run(self) -> list[tuple[float, Attempt]]:
        assert self.world.run() == 0
        return [(time, event.attempt) for time, event in self.world.events if isinstance(event, JobStarted)]


def said(world: World) -> list[str]:
    return [notice.sentence for notice in world.of(Noticed)]


def test_jobs_start_once_the_peaks_of_earlier_runs_are_known() -> None:
    subject = Telling(job(1), job(2))
    assert [(time, each.job.mem, each.alone) for time, each in subject.run()] == [(0.3, 12 * GIB, False)] * 2
    assert subject.asked == [(0, True)]


def test_they_are_waited_for_only_so_long() -> None:
    subject = Telling(job(1), job(2), after=float("inf"))
    assert [(time, each.alone) for time, each in subject.run()] == [(5, True), (6, True)]
    late = Telling(job(1), job(2), job(3), after=5.5)
    assert [(time, each.alone) for time, each in late.run()] == [(5, True), (6, False), (6, False)]


@pytest.mark.parametrize(
    ("options", "asked"),
    [({"mem_auto": False}, []), ({"gpus": 0}, []), ({"mem_auto": False, "mem": 5}, [(0, False)])],
)
def test_nobody_asks_for_peaks_that_do_not_matter(options: dict, asked: list) -> None:
    subject = Telling(job(1, **options), job(2, **options))
    assert subject.run()[0][0] == 0
    assert subject.asked == asked


def test_lengths_that_were_asked_for_before_do_not_keep_peaks_from_being_asked_for() -> None:
    subject = Telling(job(1, mem_auto=False, mem=5))
    subject.world.engine.takes = {1: 10}
    subject.world.at(3, Batch([job(2)]))
    assert [(time, each.job.mem) for time, each in subject.run()] == [(0, 5), (3.3, 12 * GIB)]
    assert subject.asked == [(0, False), (3, True)]


def test_what_a_success_measured_is_promised_to_the_next() -> None:
    subject = Telling(job(1), job(2), job(3), peaks={})
    subject.world.engine.leaves = {"measured": measured(20 * GIB)}
    starts = [(time, each.job.number, each.job.mem, each.alone) for time, each in subject.run()]
    assert starts == [(0.3, 1, None, True), (1.3, 2, 24 * GIB, False), (1.3, 3, 24 * GIB, False)]
    assert said(subject.world) == [
        SCOUTS,
        'mem=auto: jobs like "true" are given 24.0 GiB (20.0 GiB measured, and a fifth)',
    ]


def test_what_earlier_runs_measured_is_told_too_and_of_a_few_kinds_only() -> None:
    kinds = [f"python {'very_' * 20}long_{kind}.py" for kind in "abcdefg"]
    jobs = [Job(at, kind.encode(), Place(at), mem_auto=True) for at, kind in enumerate(kinds * 2, 1)]
    subject = Telling(*jobs, per_gpu=2, peaks={kind: [GIB] for kind in kinds})
    subject.run()
    told = said(subject.world)
    shown = f"python {'very_' * 20}"[:60]
    assert told == [f'mem=auto: jobs like "{shown}…" are given 1.2 GiB (1.0 GiB measured, and a fifth)'] * 5


def test_nothing_waits_for_a_scout_that_has_the_last_job() -> None:
    subject = Telling(job(1), peaks={})
    subject.world.engine.leaves = {"measured": measured(20 * GIB)}
    subject.run()
    assert said(subject.world) == []


def test_what_a_failure_measured_is_not() -> None:
    subject = Telling(job(1), job(2), job(3), peaks={})
    subject.world.engine.leaves = {"measured": measured(20 * GIB)}
    subject.world.engine.outcomes[1] = [Outcome("failed", 1)]
    assert subject.world.run() == 1
    started = [event.attempt for event in subject.world.of(JobStarted)]
    assert [(each.job.mem, each.alone) for each in started] == [(None, True), (None, True), (24 * GIB, False)]
    assert said(subject.world)[0] == SCOUTS
    assert len(said(subject.world)) == len({SCOUTS, "what they need"})


@pytest.mark.parametrize("leaves", [{}, {"measured": measured(0)}])
def test_scouts_that_tell_nothing_are_named_once(leaves: dict) -> None:
    subject = Telling(job(1), job(2), job(3), peaks={})
    subject.world.engine.leaves = leaves
    assert [each.alone for _, each in subject.run()] == [True] * 3
    [waiting, sentence] = said(subject.world)
    assert waiting == SCOUTS
    assert sentence.startswith("job 1 (line 1): how much memory it used on its GPU is unknown")


def test_that_nothing_is_measured_is_said_when_it_matters_and_instead() -> None:
    subject = Telling(job(1), job(2), peaks={}, unmeasured="no NVML")
    subject.run()
    assert said(subject.world) == [
        "no NVML, so jobs with mem=auto run alone on their GPUs, unless earlier runs show what they need"
    ]
    other = Telling(job(1, mem_auto=False), unmeasured="no NVML")
    other.run()
    assert said(other.world) == []
