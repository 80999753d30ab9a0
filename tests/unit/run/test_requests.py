"""What may be asked of a run, with the loop's clock and engine made by hand; and how long a run will take."""

import json

import pytest

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Outcome, Place
from simple_gpu_scheduler.engines.protocol import Ended, ForEngine
from simple_gpu_scheduler.events import (
    Event,
    GpuReturned,
    GpuSetAside,
    JobDropped,
    JobEnded,
    JobRequeued,
    JobStarted,
    Paused,
    RunEnded,
    StopAsked,
)
from simple_gpu_scheduler.events.eta import Eta, ExpectedLengths, Known, eta_of
from simple_gpu_scheduler.events.ledger import Counts
from simple_gpu_scheduler.gpus import Reason
from simple_gpu_scheduler.gpus.pool import Demand
from simple_gpu_scheduler.inputs.reader import Batch
from simple_gpu_scheduler.jobfile.parse import Refusal
from simple_gpu_scheduler.keeper.survivors import Survivor
from simple_gpu_scheduler.output.log_directory import LogDirectory
from simple_gpu_scheduler.remote.server import Asked
from simple_gpu_scheduler.resume.unfinished_jobs import Resumption
from simple_gpu_scheduler.run import loop, requests
from simple_gpu_scheduler.run.state import Message
from simple_gpu_scheduler.scheduling import NextAttempt
from simple_gpu_scheduler.scheduling.quarantine import Quarantine
from tests.unit.run.test_loop import TERMINATED, World, failing, job, jobs

FAILED = Outcome("failed", 1)
STOP = StopAsked("so", False, False, 0)


class Asking(World):
    """A world with requests at set times; the answers are kept."""

    def __init__(self, gpus: str = "0", **rules) -> None:
        super().__init__(gpus, **{"run_id": b"the-run", "log_of": LogDirectory("/logs").of, **rules})
        self.answers: list[dict] = []

    def ask(self, time: float, do: object, **values) -> "Asking":
        self.at(time, Asked({"do": do, **values}, lambda answer: self.answers.append(json.loads(json.dumps(answer)))))
        return self

    def jobs(self, *jobs, ends: bool = True) -> "Asking":
        super().jobs(*jobs, ends=ends)
        return self


def said(answer: dict) -> list[tuple[int, str]]:
    return [(each["job"], each.get("error") or each["done"]) for each in answer["jobs"]]


def test_the_status_tells_what_runs_where_and_what_is_to_come() -> None:
    world = Asking().jobs(job(1), Job(2, b"sl\xffeep", Place(2), name="n", time=60), job(3), job(4))
    world.engine.takes = {2: 10}
    world.ask(3, "status").run()
    [answer] = world.answers
    assert answer["running"] == [
        {
            "job": 2,
            "name": "n",
            "attempt": 1,
            "gpus": ["0"],
            "runtime": 2,
            "command": "sl\udcffeep",
            "log": "/logs/0002-n.log",
            "estimate": 60,
        }
    ]
    assert answer["counts"] == {
        "waiting": 2,
        "running": 1,
        "succeeded": 1,
        "failed": 0,
        "not started": 0,
        "cancelled": 0,
        "interrupted": 0,
    }
    assert (answer["run"], answer["paused"], answer["stopping"], answer["all_read"]) == ("the-run", False, False, True)
    assert (answer["waits"], answer["eta"], answer["eta_unknown"]) == ([], 60, "")


def test_the_status_tells_how_much_memory_jobs_are_promised() -> None:
    world = Asking("012").jobs(job(1, mem=8), job(2), job(3, mem_auto=True), job(4, mem=8, gpus=0))
    world.scheduler.add_history({}, {"true": [10]})
    world.engine.takes = dict.fromkeys((1, 2, 3, 4), 10)
    world.ask(9, "status").run()
    [answer] = world.answers
    told = {each["job"]: each.get("mem") for each in answer["running"]}
    assert told == {1: 8, 2: None, 3: 2**20, 4: None}
    assert not any("alone" in each for each in answer["running"])


def test_the_status_says_why_it_waits_and_why_there_is_no_estimate() -> None:
    world = Asking().jobs(job(1))
    world.others = {"0": Reason("alice python 11.2 GiB", "alice")}
    world.ask(2, "status")
    get = world.get

    def get_until_alice_leaves(*, timeout: float | None = None) -> Message:
        if world.time >= 5:
            world.others.clear()
        return get(timeout=timeout)

    world.get = get_until_alice_leaves
    world.run()
    assert world.answers[0]["waits"] == ["gpu 0: alice python 11.2 GiB"]
    assert (world.answers[0]["eta"], world.answers[0]["eta_unknown"]) == (None, "no job is running")


def test_a_stop_lets_what_runs_end_and_starts_nothing_more() -> None:
    world = Asking().jobs(*jobs(3), ends=False)
    world.engine.takes = {1: 10}
    world.ask(2, "stop").ask(3, "stop").ask(4, "status").ask(5, "pause").ask(5, "retry", jobs=[1])
    assert world.run() == 1
    assert world.starts() == [(0, 1)]
    assert world.engine.stops == []
    assert world.of(StopAsked) == [StopAsked("simple_gpu_scheduler stop", False, False, 1)]
    assert world.answers[0] == {"done": "stopping; no new jobs, waiting for 1 running job", "running": 1}
    assert world.answers[2]["stopping"]
    assert [set(answer) for answer in world.answers[3:]] == [{"error"}, {"error"}]


def test_a_stop_now_ends_what_runs() -> None:
    world = Asking("01", grace=3).jobs(*jobs(3))
    world.engine.takes, world.engine.stubborn = {1: 100, 2: 100}, {2}
    world.ask(2, "stop", now=True).run()
    assert world.engine.stops == [(2, 1, False), (2, 2, False), (5, 2, True)]
    assert world.answers[0]["running"] == 2


def test_a_pause_starts_nothing_until_it_is_over() -> None:
    world = Asking().jobs(*jobs(2))
    world.ask(0.5, "pause").ask(0.6, "pause").ask(5, "status").ask(7, "continue").ask(7, "continue")
    assert world.run() == 0
    assert world.starts() == [(0, 1), (7, 2)]
    assert world.of(Paused) == [Paused(True), Paused(False)]
    assert world.answers[2]["paused"]
    done = [world.answers[at]["done"] for at in (0, 1, 3, 4)]
    assert done == [
        "paused; no new jobs until `continue`",
        "already paused",
        "continuing",
        "not paused",
    ]


def test_a_waiting_job_that_is_cancelled_never_starts_nor_do_its_dependents() -> None:
    world = Asking().jobs(job(1), job(2, name="a"), job(3, after=(2,)), job(4))
    world.ask(0.5, "cancel", jobs=[2]).ask(0.6, "status")
    assert world.run() == 1
    assert world.starts() == [(0, 1), (1, 4)]
    assert world.answers[0] == {"jobs": [{"job": 2, "done": "cancelled", "also": [3]}]}
    dropped = [(event.job.number, event.reason, event.is_cancelled) for event in world.of(JobDropped)]
    assert dropped == [(2, "it was cancelled", True), (3, 'job 2 "a" did not succeed', False)]
    counts = world.answers[1]["counts"]
    assert (counts["cancelled"], counts["not started"], counts["waiting"]) == (1, 1, 1)


def test_a_running_job_that_is_cancelled_is_ended_and_not_tried_again() -> None:
    world = Asking("01", retries=3, grace=5).jobs(job(1), job(2), job(3))
    world.engine.takes, world.engine.stubborn = {1: 100, 2: 20}, {1}
    world.ask(2, "cancel", jobs=[1]).ask(3, "cancel", jobs=[1])
    assert world.run() == 1
    assert world.engine.stops == [(2, 1, False), (7, 1, True)]
    assert [said(answer) for answer in world.answers] == [
        [(1, "cancelling")],
        [(1, "already ending")],
    ]
    [end] = [event for event in world.of(JobEnded) if event.attempt.job.number == 1]
    assert (end.outcome.kind, end.is_final, end.is_interrupted) == ("killed", True, False)
    assert world.starts() == [(0, 1), (0, 2), (7, 3)]


def test_a_job_that_waits_for_its_next_attempt_can_be_cancelled() -> None:
    world = failing(Asking(retries=3, retry_delay=100).jobs(job(1)), 1)
    world.ask(5, "cancel", jobs=[1])
    assert world.run() == 1
    assert said(world.answers[0]) == [(1, "cancelled")]
    assert [event.is_final for event in world.of(JobEnded)] == [False, True]
    assert [event.is_cancelled for event in world.of(JobEnded)] == [False, True]
    assert world.summary() == RunEnded(0, 0, 0, 0, 5, all_read=True, code=1, cancelled=1)


def test_what_cannot_be_cancelled_is_reported_for_each_job() -> None:
    world = failing(Asking().jobs(job(1), job(2), Refusal(3, Place(3), "why", is_bad_option=True), job(4)), 1)
    world.engine.takes = {4: 10}
    world.ask(5, "cancel", jobs=[1, 2, 3, 4, 5, 0, -1, 2])
    world.run()
    assert said(world.answers[0]) == [
        (1, "it has ended: failed"),
        (2, "it has succeeded"),
        (3, "its line was refused"),
        (4, "cancelling"),
        (5, "there is no such job"),
        (0, "there is no such job"),
        (-1, "there is no such job"),
    ]


def test_a_job_that_failed_waits_again_when_it_is_to_be_retried() -> None:
    world = Asking().jobs(*jobs(2))
    world.engine.outcomes, world.engine.takes = {1: [FAILED, SUCCESS]}, {2: 10}
    world.ask(5, "retry", jobs=[1]).ask(6, "status")
    assert world.run() == 0
    assert world.starts() == [(0, 1), (1, 2), (11, 1)]
    assert [event.job.number for event in world.of(JobRequeued)] == [1]
    assert world.answers[0] == {"jobs": [{"job": 1, "done": "waiting again"}], "also": []}
    assert (world.answers[1]["counts"]["failed"], world.answers[1]["counts"]["waiting"]) == (0, 1)
    assert world.summary()[:4] == (2, 0, 0, 0)


def test_a_retry_includes_jobs_not_started_because_of_it_but_not_cancelled_ones() -> None:
    world = Asking().jobs(
        job(1, name="a"), job(2, after=(1,), name="b"), job(3, after=(2,)), job(4, after=(1,)), job(5), job(6)
    )
    world.engine.outcomes, world.engine.takes = {1: [FAILED, SUCCESS]}, {1: 2, 6: 10}
    world.ask(1, "cancel", jobs=[4]).ask(6, "retry", jobs=[1])
    assert world.run() == 1
    assert world.answers[1] == {"jobs": [{"job": 1, "done": "waiting again"}], "also": [2, 3]}
    assert [number for _, number in world.starts()] == [1, 5, 6, 1, 2, 3]
    assert (world.summary()[:4], world.summary().cancelled) == ((5, 0, 0, 0), 1)


def test_what_cannot_be_retried_is_reported_for_each_job() -> None:
    world = failing(Asking().jobs(job(1, name="a"), job(2, after=(1,)), job(3), job(4), job(5)), 1)
    world.engine.takes = {4: 10}
    world.ask(5, "retry", jobs=[2, 3, 4, 5, 6])
    world.run()
    assert said(world.answers[0]) == [
        (2, "it depends on job 1, which did not succeed; retry that one too"),
        (3, "it has succeeded"),
        (4, "it is running"),
        (5, "it is waiting"),
        (6, "there is no such job"),
    ]
    assert world.of(JobRequeued) == []


def test_a_cancelled_job_can_be_retried_and_then_runs() -> None:
    world = Asking().jobs(*jobs(3))
    world.engine.takes = {1: 10}
    world.ask(1, "cancel", jobs=[2]).ask(2, "retry", jobs=[2]).ask(3, "status")
    assert world.run() == 0
    assert world.answers[2]["counts"]["cancelled"] == 0
    assert sorted(number for _, number in world.starts()) == [1, 2, 3]


def test_a_job_that_was_retried_by_hand_is_not_tried_once_more_when_its_gpu_is_set_aside() -> None:
    world = Asking("01").jobs(*jobs(3))
    world.state.quarantine = Quarantine(2)
    world.engine.outcomes, world.engine.takes = {1: [FAILED, SUCCESS], 3: [FAILED, SUCCESS]}, {2: 5}
    world.ask(3, "retry", jobs=[1])
    assert world.run() == 0
    assert [event.gpu for event in world.of(GpuSetAside)] == ["0"]
    assert [event.job.number for event in world.of(JobRequeued)] == [1, 3]
    assert world.summary()[:4] == (3, 0, 0, 0)


def test_a_gpu_is_used_again_with_a_message_when_what_failed_there_fails_elsewhere_too() -> None:
    world = failing(Asking("01").jobs(*jobs(3)), 1, 3)
    world.state.quarantine = Quarantine(2)
    world.engine.takes = {2: 5}
    world.jobs(job(4), ends=False)
    assert world.run() == 1
    told = [event for _, event in world.events if isinstance(event, GpuSetAside | GpuReturned)]
    assert [(type(event), event.gpu) for event in told] == [(GpuSetAside, "0"), (GpuReturned, "0")]
    assert world.state.quarantine.aside == frozenset()


def test_a_gpu_that_is_cleared_while_it_does_not_work_is_not_used_until_it_works() -> None:
    """It is lost after it was set aside; nobody looks at it until what failed there has failed elsewhere too."""
    world = failing(Asking("01").jobs(*jobs(3)), 1, 3)
    world.state.quarantine = Quarantine(2)
    world.engine.takes = {2: 5, 4: 20, 5: 1}
    world.at(5.5, Batch([job(4), job(5)]))
    world.others = {}
    take = world.take

    def lose(event: Event) -> None:
        if isinstance(event, GpuSetAside):
            world.others["0"] = Reason("fallen off the bus", "fallen off the bus")
        take(event)

    world.take = lose
    world.ask(12, "status")
    world.at(20, Asked({"do": "status"}, lambda _answer: world.others.clear()))
    assert world.run() == 1
    told = [event for _, event in world.events if isinstance(event, GpuSetAside | GpuReturned)]
    assert [(type(event), event.gpu) for event in told] == [(GpuSetAside, "0"), (GpuReturned, "0")]
    assert world.answers[0]["waits"] == ["gpu 0: fallen off the bus"]
    assert [number for _, number in world.starts()][-1] == 5
    assert world.starts()[-1][0] >= 20


def test_what_still_runs_on_a_gpu_when_it_is_set_aside_is_tried_elsewhere_if_it_fails() -> None:
    world = Asking("01", jobs_per_gpu=2).jobs(*jobs(6))
    world.state.quarantine = Quarantine(2)
    world.engine.outcomes = {1: [FAILED, SUCCESS], 3: [FAILED, SUCCESS], 5: [FAILED, SUCCESS]}
    world.engine.takes = {1: 1, 2: 3, 3: 2, 4: 4, 5: 5}
    assert world.run() == 0
    assert [([job.number for job in each.again], each.reason) for each in world.of(GpuSetAside)] == [
        ([1, 3], "2 jobs in a row failed there within seconds while others succeed elsewhere"),
        ([5], "what was still running there failed too"),
    ]
    assert world.summary()[:4] == (6, 0, 0, 0)


def test_a_job_that_is_cancelled_does_not_speak_against_its_gpu() -> None:
    world = Asking("01").jobs(*jobs(3))
    world.state.quarantine = Quarantine(2)
    world.engine.takes = dict.fromkeys((1, 2, 3), 20)
    world.ask(1, "cancel", jobs=[1]).ask(2, "cancel", jobs=[3]).run()
    assert world.of(GpuSetAside) == []


def test_what_needs_a_faulty_gpu_is_dropped_once_its_jobs_succeed_elsewhere() -> None:
    world = Asking("01").jobs(*jobs(3), job(4, gpus=2))
    world.state.quarantine = Quarantine(2)
    world.engine.outcomes, world.engine.takes = {1: [FAILED, SUCCESS], 3: [FAILED, SUCCESS]}, {2: 5}
    assert world.run() == 1
    assert [event.gpu for event in world.of(GpuSetAside)] == ["0"]
    assert [event.job.number for event in world.of(JobDropped)] == [4]


def test_a_run_whose_gpus_are_all_set_aside_stops_and_its_jobs_are_left() -> None:
    """What still ran on the first of them succeeds, and convicts the other."""
    world = Asking("01").jobs(*jobs(3))
    world.engine.takes = {1: 5, 2: 5}
    world.ask(1, "status")
    world.at(2, Asked({"do": "status"}, lambda _: setattr(world.state.quarantine, "aside", frozenset("01"))))
    assert world.run() == 1
    assert world.of(StopAsked) == [StopAsked("every GPU is set aside", False, False, 0)]
    assert (world.summary().succeeded, world.summary().left) == (2, 1)


def test_a_run_whose_gpus_are_all_set_aside_still_runs_what_needs_none() -> None:
    world = Asking("01").jobs(*jobs(3), *(job(number, gpus=0, retries=1) for number in (4, 5)))
    world.engine.takes = {1: 5, 2: 5, 4: 10}
    world.engine.outcomes = {5: [FAILED, SUCCESS]}
    world.at(2, Asked({"do": "status"}, lambda _: setattr(world.state.quarantine, "aside", frozenset("01"))))
    assert world.run() == 1
    assert (world.summary().succeeded, world.summary().left) == (4, 1)


def test_a_gpu_is_used_again_when_what_failed_there_is_cancelled_before_it_fails_elsewhere() -> None:
    world = failing(Asking("01").jobs(*jobs(3), job(4, gpus=2)), 1, 3)
    world.state.quarantine = Quarantine(2)
    world.engine.takes = {2: 5}
    world.ask(5.5, "cancel", jobs=[1, 3])
    assert world.run() == 1
    assert [event.gpu for event in world.of(GpuReturned)] == ["0"]
    assert 4 in [number for _, number in world.starts()]


def survivor(number: int, attempt: int = 1, **options) -> Survivor:
    return Survivor(Attempt(job(number, **options), attempt, (), ()), 1, 1_000_000 - 30, 0)


def test_a_survivor_runs_and_can_be_cancelled() -> None:
    world = Asking(halt="now,fail=1", retries=3).jobs(*jobs(2))
    loop.resume(world.state, Resumption(survivors=(survivor(7, 2),)))
    world.engine.takes = {1: 10, 2: 10}
    world.ask(1, "status").ask(2, "cancel", jobs=[7]).ask(2, "cancel", jobs=[7])
    assert world.run() == 1
    [running, _] = world.answers[0]["running"]
    assert (running["job"], running["attempt"], running["runtime"]) == (7, 2, 31)
    assert [said(answer) for answer in world.answers[1:]] == [
        [(7, "cancelling")],
        [(7, "already ending")],
    ]
    assert world.engine.survivor_stops == [(2, (7, 2), False)]
    [end] = [event for event in world.of(JobEnded) if event.attempt.job.number == 7]
    assert (end.outcome, end.is_final, end.is_interrupted) == (TERMINATED, True, False)
    assert (world.summary()[:4], world.summary().cancelled) == ((2, 0, 0, 0), 1)


@pytest.mark.parametrize("request_", ["cancel", "stop"])
def test_a_survivor_is_killed_when_term_does_not_end_it(request_: str) -> None:
    world = Asking(grace=5).jobs(job(1))
    loop.resume(world.state, Resumption(survivors=(survivor(7), survivor(8))))
    world.engine.stubborn, world.engine.takes = {7}, {1: 20}
    world.ask(2, request_, **({"jobs": [7, 8]} if request_ == "cancel" else {"now": True})).run()
    assert world.engine.survivor_stops == [(2, (7, 1), False), (2, (8, 1), False), (7, (7, 1), True)]


def test_the_timeout_of_a_survivor_counts_from_its_start() -> None:
    world = Asking(grace=5, timeout=1000).jobs(job(1))
    loop.resume(world.state, Resumption(survivors=(survivor(7, timeout=40), survivor(8, timeout=0))))
    world.at(50, ForEngine(Ended(Attempt(job(8), 1, (), ()), SUCCESS)))
    assert world.run() == 1
    assert world.engine.survivor_stops == [(10, (7, 1), False)]
    assert world.summary()[:4] == (2, 0, 1, 0)


def test_what_has_ended_since_is_not_too_late_however_late_the_run_is_resumed() -> None:
    world = Asking(timeout=10).jobs(job(1))
    exited = survivor(7)._replace(status=0, ended_at=1_000_000 - 26)
    loop.resume(world.state, Resumption(survivors=(exited,)))
    world.at(0.5, ForEngine(Ended(Attempt(job(7), 1, (), ()), SUCCESS)))
    assert world.run() == 0
    assert world.engine.survivor_stops == []
    [end] = [event for event in world.of(JobEnded) if event.attempt.job.number == 7]
    assert end.length == 4, "the time in which no scheduler ran is no part of it"


def test_a_job_that_is_cancelled_does_not_count_for_halt() -> None:
    world = failing(Asking("01", halt="now,fail=2").jobs(*jobs(6)), 3, 5)
    world.engine.takes = {1: 100, 2: 100}
    world.ask(1, "cancel", jobs=[1]).ask(2, "cancel", jobs=[2]).run()
    assert world.of(StopAsked) == [StopAsked("--halt: 2 jobs did not succeed", True, False, 1)]
    summary = world.summary()
    assert (summary[:4], summary.cancelled, summary.interrupted) == ((1, 2, 0, 0), 2, 1)


def test_a_cancelled_job_that_fails_when_it_is_retried_counts_for_halt() -> None:
    world = failing(Asking("01", halt="soon,fail=1").jobs(*jobs(2)), 1)
    world.engine.takes = {1: 5, 2: 100}
    world.ask(1, "cancel", jobs=[1]).ask(3, "retry", jobs=[1]).run()
    assert [said.why for said in world.of(StopAsked)] == ["--halt: 1 job did not succeed"]


def test_what_failed_before_this_scheduler_began_does_not_count_for_halt() -> None:
    world = failing(Asking(halt="soon,fail=1").jobs(job(4), job(5), job(6)), 5)
    loop.resume(world.state, Resumption(ended=((job(1, name="first"), "failed", NextAttempt(2, 1)),)))
    assert world.run() == 1
    assert [number for _, number in world.starts()] == [4, 5]


def test_a_retry_continues_the_numbers_of_earlier_attempts() -> None:
    world = failing(Asking(retries=1).jobs(job(4)), 1)
    loop.resume(
        world.state,
        Resumption(
            ended=(
                (job(1), "failed", NextAttempt(3, 2)),
                (job(2), "not started", NextAttempt(2, 1)),
                (job(3), "succeeded", NextAttempt()),
            )
        ),
    )
    world.ask(0.5, "retry", jobs=[1, 2, 3]).run()
    starts = [event.attempt.key for event in world.of(JobStarted)]
    assert starts == [(4, 1), (1, 3), (1, 4), (2, 2)]


def test_a_job_that_is_dropped_as_soon_as_the_run_resumes_is_counted_once() -> None:
    world = Asking()
    waiting = ((job(2, after=(1,)), NextAttempt()), (job(3), NextAttempt()))
    loop.resume(world.state, Resumption(waiting=waiting, ended=((job(1, name="first"), "failed", NextAttempt(2, 1)),)))
    assert world.publisher.ledger.counts() == Counts(waiting=1, failed=1, not_started=1)


def test_a_job_that_waits_again_and_is_cancelled_keeps_its_number_of_attempts() -> None:
    world = Asking(retries=1).jobs(*jobs(2))
    world.engine.outcomes, world.engine.takes = {1: [FAILED, FAILED, FAILED, SUCCESS]}, {2: 50}
    world.ask(10, "retry", jobs=[1]).ask(11, "cancel", jobs=[1]).ask(12, "retry", jobs=[1]).run()
    assert [event.attempt.key for event in world.of(JobStarted)] == [(1, 1), (1, 2), (2, 1), (1, 3)]


def test_a_job_that_failed_tells_nothing_of_how_long_others_take() -> None:
    world = failing(Asking("01", retries=3, retry_delay=100).jobs(*jobs(3)), 1)
    world.engine.takes = {1: 4, 2: 10, 3: 100}
    world.ask(5, "cancel", jobs=[1]).ask(10.5, "status").run()
    assert world.answers[1]["eta"] == 3.5  # the 10 of job 2, less the 6.5 that job 3 has run


def test_what_was_before_this_scheduler_is_known() -> None:
    world = Asking()
    loop.resume(
        world.state,
        Resumption(
            ((job(4), NextAttempt(2)),),
            (),
            ((job(1), "succeeded", NextAttempt()), (job(3), "failed", NextAttempt(2, 1))),
            (2,),
        ),
    )
    answer = requests.answer(world.state, {"do": "retry", "jobs": [1, 2, 4, 5]})
    assert said(answer) == [
        (1, "it has succeeded"),
        (2, "its line was refused"),
        (4, "it is waiting"),
        (5, "there is no such job"),
    ]


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"do": "dance"},
        {"do": ["stop"]},
        {"do": "cancel"},
        {"do": "cancel", "jobs": []},
        {"do": "cancel", "jobs": "1"},
        {"do": "retry", "jobs": [True]},
        {"do": "retry", "jobs": ["1"]},
        {"do": "stop", "now": 1},
    ],
)
def test_a_bad_request_is_answered_with_a_sentence(request_: dict) -> None:
    answer = requests.answer(Asking().state, request_)
    assert list(answer) == ["error"]


# How long it will take.


def eta(known: Known, *, starts: bool = True, all_read: bool = True) -> Eta:
    return eta_of(known, starts=starts, all_read=all_read)


def test_the_estimate_shares_the_work_among_as_many_as_run() -> None:
    assert eta(Known(10, [(None, 4), (None, 8)], 0)) == Eta(6)
    assert eta(Known(10, [(None, 4), (None, 8)], 6)) == Eta((6 + 2 + 60) / 2)
    assert eta(Known(None, [(30, 4)], 2, ExpectedLengths(2, 11, 6))) == Eta(26 + 11)
    assert eta(Known(10, [(None, 4), (None, 4)], 2, ExpectedLengths(1, 500, 500))) == Eta(500)
    assert eta(Known(10, [(None, 4)], 3), starts=False, all_read=False) == Eta(6)
    assert eta(Known(None, [], 0)) == Eta(0)


@pytest.mark.parametrize(
    ("known", "settings", "why"),
    [
        (Known(10, [(None, 4)], 3), {"all_read": False}, "still reading the input"),
        (Known(None, [(None, 4)], 0), {}, "no job has succeeded yet"),
        (Known(None, [(9, 4)], 2, ExpectedLengths(1, 9, 9)), {}, "no job has succeeded yet"),
        (Known(10, [], 3), {}, "no job is running"),
        (Known(10, [(None, 40)], 0), {}, "running jobs have exceeded their estimates"),
    ],
)
def test_what_cannot_be_estimated_is_reported(known: Known, settings: dict, why: str) -> None:
    assert eta(known, **settings) == Eta(None, why)


@pytest.mark.parametrize(("event", "starts"), [(Paused(True), False), (STOP, False), (Paused(False), True)])
def test_a_run_that_is_paused_or_stopping_wants_no_gpus(event: Event, *, starts: bool) -> None:
    state = Asking().state
    state.scheduler.add(job(1, gpus=1, mem=3), 0)
    state.publish(event)
    assert state.demand == (Demand(1, 3) if starts else Demand())


def test_a_paused_run_starts_retries_when_it_continues() -> None:
    world = Asking(retries=1, delay=0).jobs(job(1))
    world.engine.outcomes, world.engine.takes = {1: [FAILED, SUCCESS]}, {1: 5}
    world.ask(1, "pause").ask(50, "continue")
    assert world.run() == 0
    assert world.starts() == [(0, 1), (50, 1)]
