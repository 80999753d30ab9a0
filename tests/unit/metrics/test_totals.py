"""What journals tell of jobs, as totals."""

from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler import events
from simple_gpu_scheduler.base.jobs import Attempt, Job, Outcome, Place
from simple_gpu_scheduler.base.measurement import GpuUse, Measurement
from simple_gpu_scheduler.journal.read import read_records
from simple_gpu_scheduler.journal.records import encode
from simple_gpu_scheduler.metrics.totals import Buckets, JobTotals, RunFold
from tests.support.runs import began

RUN = "20261118-180219-2b4a4e"
FAILED = Outcome("failed", 3)


def job(number: int, **options) -> Job:
    return Job(number, b"true", Place(number), **options)


def read(*jobs: Job) -> events.JobsRead:
    return events.JobsRead(jobs)


def started(of: Job, number: int = 1, gpus: tuple[str, ...] = ("0",)) -> events.JobStarted:
    return events.JobStarted(Attempt(of, number, gpus, (0,)))


def ended(of: Job, outcome: Outcome, number: int = 1, *, final: bool = True, **more) -> events.JobEnded:
    return events.JobEnded(Attempt(of, number, ("0",), (0,)), outcome, 1000.0, 40.0, final, **more)


def fold(*happened: events.Event | tuple[float, events.Event | str]) -> tuple[JobTotals, RunFold]:
    totals = JobTotals()
    run = RunFold(totals)
    for each in (began(RUN), *happened):
        at, event = each if isinstance(each, tuple) and not hasattr(each, "_fields") else (1000.0, each)
        line = event if isinstance(event, str) else encode(event, at)
        run.feed(read_records(line.encode()).records)
    return totals, run


def counted(totals: JobTotals) -> dict[str, int]:
    return {outcome: count for outcome, count in totals.outcomes.items() if count}


def count_and_sum(buckets: Buckets) -> tuple[float, float]:
    *_, total, count = buckets.samples()
    return count.value, total.value


def test_jobs_are_counted_by_how_they_ended() -> None:
    jobs = [job(number) for number in range(1, 8)]
    happened = [read(*jobs), *map(started, [*jobs[:5], jobs[6]])]
    for each, outcome in zip(
        jobs, (Outcome("succeeded"), FAILED, Outcome("timed out"), Outcome("killed", 9)), strict=False
    ):
        happened.append(ended(each, outcome))
    happened.append(ended(jobs[4], Outcome("killed", 15), is_cancelled=True))
    happened.append(ended(jobs[6], Outcome("stalled", 0, "its GPU was at 0 % for 15 min")))
    happened.append(events.JobDropped(jobs[5], "job 2 did not succeed"))
    happened.append(events.LineRefused(Place(8), "what is this?", 8))
    totals, run = fold(*happened)
    assert totals.outcomes == {
        "succeeded": 1, "failed": 1, "timed_out": 1, "stalled": 1, "killed": 1, "cancelled": 1, "not_started": 2,
    }  # fmt: skip
    assert run.running == {}
    assert count_and_sum(totals.runtimes) == (6, 240.0)
    assert totals.gpu_seconds == 240.0


def test_a_retried_job_is_one_job_and_two_attempts_and_waited_once() -> None:
    one = job(1)
    totals, _ = fold(
        (1000.0, read(one)),
        (1007.0, started(one)),
        (1047.0, ended(one, FAILED, final=False)),
        (1100.0, started(one, 2)),
        (1140.0, ended(one, Outcome("succeeded"), 2)),
    )
    assert counted(totals) == {"succeeded": 1}
    assert count_and_sum(totals.waits) == (1, 7.0)
    assert count_and_sum(totals.runtimes) == (2, 80.0)


def test_an_interrupted_attempt_has_no_outcome_until_it_runs_again() -> None:
    one = job(1)
    first = (read(one), started(one), ended(one, Outcome("killed", 15), is_interrupted=True))
    totals, _ = fold(*first)
    assert counted(totals) == {}
    totals, _ = fold(*first, began(RUN), started(one, 2), ended(one, Outcome("succeeded"), 2))
    assert counted(totals) == {"succeeded": 1}


def test_an_end_that_only_the_keeper_saw_is_counted_once() -> None:
    one = job(1)
    exited = '{"event":"job exited","at":1030.000,"job":1,"attempt":1,"status":0}\n'
    totals, run = fold(read(one), started(one), exited)
    assert (counted(totals), count_and_sum(totals.runtimes), run.running) == ({"succeeded": 1}, (1, 30.0), {})
    totals, _ = fold(read(one), started(one), exited, began(RUN), ended(one, Outcome("succeeded")))
    assert (counted(totals), count_and_sum(totals.runtimes)) == ({"succeeded": 1}, (1, 30.0))


def test_running_jobs_have_their_texts_and_gpus_set_aside_are_known() -> None:
    one, two = job(1, name="big", label="vision"), job(2)
    began_two = (read(one, two), started(one, gpus=("0", "1")), started(two))
    aside = (events.GpuSetAside("3", "jobs failed"), events.GpuSetAside("2", "jobs failed"), events.GpuReturned("3"))
    totals, run = fold(*began_two, *aside, ended(two, Outcome("succeeded")))
    assert (run.run, run.aside, [*run.running]) == (RUN, {"2"}, [1])
    assert (run.running[1].gpus, run.texts(1), run.texts(2)) == (("0", "1"), ("big", "vision"), ("", ""))
    assert counted(totals) == {"succeeded": 1}


def test_what_attempts_used_is_added_up() -> None:
    attempt = Attempt(job(1), 1, ("0",), (0,))
    use = GpuUse("0", 10.0, idle=4.0, energy=1500.0)
    totals, _ = fold(events.AttemptMeasured(attempt, Measurement((use, use._replace(gpu="1", energy=None)))))
    assert (totals.energy, totals.idle) == (1500.0, 8.0)


def test_a_record_that_is_not_as_it_should_be_is_skipped() -> None:
    bad = ['{"event":"job ended","at":1.0,"job":"x"}', '{"event":"job started"}', '{"event":"job exited","at":1.0}']
    totals, _ = fold(*((1000.0, f"{line}\n") for line in bad))
    assert counted(totals) == {}


@given(st.lists(st.floats(-10, 1e9)))
def test_a_histogram_never_loses_or_invents_a_value(values: list[float]) -> None:
    buckets = Buckets()
    for value in values:
        buckets.add(value)
    *bounds, total, count = buckets.samples()
    heights = [each.value for each in bounds]
    assert heights == sorted(heights)
    assert (heights[-1], count.value) == (len(values), len(values))
    for each in bounds[:-1]:
        assert each.value == sum(max(0.0, value) <= float(each.labels["le"]) for value in values)
    assert total.value >= 0
