"""What a report tells of a run, made of its journal."""

import json
import statistics
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.journal.read import Record, read_records
from simple_gpu_scheduler.journal.run_state import RunState
from simple_gpu_scheduler.report import figure, numbers
from simple_gpu_scheduler.report.build import Basis, build
from simple_gpu_scheduler.report.text import show
from simple_gpu_scheduler.report.timeline import Span, Spans
from tests.conftest import ROOT
from tests.support.report import START, began, built, ended, over, read, started, waited

GOLDEN = ROOT / "tests" / "golden" / "journal-1.jsonl"


def exited(at: float, job: int, status: int = 0) -> Record:
    return {"event": "job exited", "at": START + at, "job": job, "attempt": 1, "status": status}


def alone(at: float, *running: tuple[int, int]) -> Record:
    return {"event": "keeper alone", "at": START + at, "running": [[*each, 1] for each in running]}


def attempts(report: dict[str, Any], job: int = 1) -> list[tuple[float, float | None, str | None]]:
    (found,) = [each for each in report["jobs"] if each["job"] == job]
    return [
        (each["started"] - START, each["ended"] and each["ended"] - START, each["outcome"])
        for each in found["attempts"]
    ]


class TestWhatRanWhen:
    def test_each_attempt_has_its_own_span(self) -> None:
        report = built(
            began(),
            read(1),
            started(1, 1),
            ended(3, 1, outcome="failed", code=1, final=False),
            started(5, 1, 2, ("1",)),
            ended(9, 1, 2),
            over(9),
        )
        assert attempts(report) == [(1, 3, "failed"), (5, 9, "succeeded")]
        assert report["jobs"][0]["gpus"] == ["1"]
        assert (report["jobs"][0]["started"], report["jobs"][0]["ended"]) == (START + 1, START + 9)

    def test_the_last_word_on_a_job_that_waited_for_its_next_attempt_makes_that_no_longer(self) -> None:
        failed = ended(3, 1, outcome="failed", code=1, final=False)
        report = built(began(), read(1), started(1, 1), failed, {**failed, "at": START + 50, "interrupted": True})
        assert attempts(report) == [(1, 3, "failed")]

    def test_what_a_stop_ended_was_interrupted_and_its_job_waits(self) -> None:
        report = built(
            began(), read(1), started(1, 1), ended(4, 1, outcome="killed", code=15, interrupted=True), over(4)
        )
        assert attempts(report) == [(1, 4, "interrupted")]
        assert report["outcomes"] == {"interrupted": 1}

    def test_a_survivor_ends_when_its_keeper_saw_it_and_not_when_that_was_read(self) -> None:
        report = built(
            began(),
            read(1),
            started(1, 1),
            alone(10, (1, 1)),
            exited(20, 1),
            began(100, is_resumed=True),
            ended(101, 1, runtime=100),
            over(102),
        )
        assert attempts(report) == [(1, 20, "succeeded")]
        assert report["run"]["sessions"] == [(START, START + 10), (START + 100, START + 102)]
        assert report["run"]["seconds"] == 12

    def test_what_died_with_its_scheduler_ends_when_that_was_last_heard_of(self) -> None:
        report = built(
            began(), read(1), read(2), started(1, 1), started(7, 2), began(100), started(101, 1, 2), ended(103, 1, 2)
        )
        assert attempts(report) == [(1, 7, "interrupted"), (101, 103, "succeeded")]
        assert attempts(report, 2) == [(7, 7, "interrupted")]
        assert report["jobs"][1]["state"] == "interrupted"

    def test_what_runs_has_no_end(self) -> None:
        records = began(), read(1), read(2), started(1, 1)
        report = built(*records, now=31, standing="running", is_alive=True, runs_jobs=True)
        assert attempts(report) == [(1, None, None)]
        assert report["outcomes"] == {"running": 1, "waiting": 1}
        assert report["run"]["ended"] is None
        assert report["run"]["seconds"] == 31
        assert report["gpus"] == [{"gpu": "0", "attempts": 1, "busy": 30, "share": round(30 / 31, 4), "measured": None}]

    def test_a_start_that_a_full_disk_has_swallowed_is_known_from_its_end(self) -> None:
        assert attempts(built(began(), read(1), ended(9, 1, runtime=4))) == [(5, 9, "succeeded")]

    def test_a_torn_record_is_passed_over(self) -> None:
        broken: Record = {"event": "job started", "at": START, "job": 1}
        report = built(began(), broken, {**started(1, 1), "gpus": "0"}, read(1), started(2, 1), ended(3, 1))
        assert attempts(report) == [(2, 3, "succeeded")]

    def test_a_wait_lasts_until_there_is_another_reason_or_a_job_starts_there(self) -> None:
        spans = Spans()
        spans.feed(
            [
                began(),
                waited(1, gpu0="bob", gpu1="eve"),
                waited(4, gpu0="bob", gpu1="ann"),
                started(9, 1, gpus=("0",)),
                over(12),
            ]
        )
        found = {(each.gpu, each.reason): (each.since - START, (each.until or 0) - START) for each in spans.waits}
        assert found == {("1", "eve"): (1, 4), ("0", "bob"): (1, 9), ("1", "ann"): (4, 12)}

    def test_a_survivor_ran_until_its_end_and_not_until_that_was_written_down(self) -> None:
        records = [began(), read(1), started(1, 1), alone(2, (1, 1)), exited(4, 1), began(100)]
        report = built(*records, ended(101, 1, runtime=100), over(102))
        assert report["jobs"][0]["runtime"] == 3
        assert report["templates"][0]["longest"] == 3


class TestNumbers:
    def test_a_gpu_is_busy_once_however_many_share_it(self) -> None:
        def span(start: float, end: float, *gpus: str) -> Span:
            made = Span(1, gpus, start)
            made.end(end, "succeeded", 0)
            return made

        used = [span(0, 10, "2"), span(5, 15, "2", "10"), span(40, 50, "2"), span(41, 42, "2"), span(0, 1)]
        found = {each.gpu: (each.attempts, each.busy, each.share) for each in numbers.by_gpu(used, [(0, 100)], 100)}
        assert found == {"2": (4, 25, 0.25), "10": (1, 10, 0.1), "cpu": (1, 1, 0.01)}
        assert list(found) == ["2", "10", "cpu"]

    def test_templates_are_listed_with_the_most_time_first(self) -> None:
        records = [began(), read(1, "short 1"), read(2, "long 1"), read(3, "long 2"), read(4, "never 1")]
        records += [started(0, 1), ended(1, 1), started(0, 2), ended(10, 2, runtime=10)]
        records += [started(0, 3), ended(30, 3, outcome="failed", code=1, runtime=30)]
        short, long, never = ("short …", 1), ("long …", 2), ("never …", 1)
        found = built(*records)["templates"]
        assert [(each["template"], each["jobs"]) for each in found] == [long, short, never]
        assert found[0] | {"template": ""} == {
            "template": "", "jobs": 2, "succeeded": 1, "failed": 1, "mean": 20, "longest": 30, "total": 40
        }  # fmt: skip
        assert (found[2]["mean"], found[2]["longest"], found[2]["total"]) == (None, None, 0)

    def test_everything_in_a_complete_journal_is_shown(self) -> None:
        state, records = RunState(), read_records(GOLDEN.read_bytes()).records
        state.feed(records)
        report = build(Basis(state, records, "stopped", False, False, START, "1.0"))
        assert report["outcomes"] == {
            "succeeded": 4, "failed": 2, "timed out": 1, "stalled": 1, "killed": 2, "not started": 4, "cancelled": 2,
            "interrupted": 1, "waiting": 3,
        }  # fmt: skip
        assert sum(report["outcomes"].values()) == len(report["jobs"]) == 20
        assert report["failures"] == [3, 7, 9, 10, 15, 20]
        by_number = {job["job"]: job for job in report["jobs"]}
        refused = by_number[8]
        assert (refused["command"], refused["template"], refused["state"]) == ("", None, "not started")
        assert "did you mean gpus?" in refused["reason"]
        assert by_number[9]["command"].endswith("\\xff\u2028")
        assert (by_number[7]["state"], by_number[7]["code"]) == ("killed", 15)
        assert by_number[13]["reason"] == "Argument list too long"
        assert report["templates"][by_number[2]["template"]]["template"] == "python train.py --seed …"
        assert report["parameters"] == ["seed"]
        assert by_number[15]["parameters"] == {"seed": "10"}
        assert json.loads(json.dumps(report, allow_nan=False))["version"] == 1


GPUS = ("0", "1", "2")
ENDS = ("succeeded", "failed", "timed out", "stalled", "killed")


class Story:
    """A run that is made up: its journal, and beside it what is true of it, kept in the plainest way."""

    def __init__(self) -> None:
        self.now = 0
        self.is_alive = True
        self.records: list[Record] = [began()]
        self.sessions = [[0, 0]]
        self.jobs: dict[int, dict[str, Any]] = {}
        self.refused = 0

    def write(self, record: Record) -> None:
        self.records.append(record)
        if record["event"] != "job exited":
            self.sessions[-1][1] = self.now

    def step(self, what: str, seconds: int, one: int, other: int) -> None:
        self.now += seconds
        if what == "resume" and not self.is_alive:
            self.is_alive = True
            self.sessions.append([self.now, self.now])
            self.records.append(began(self.now, is_resumed=True))
        elif what == "exit":
            self.exit(one, other)
        elif self.is_alive:
            getattr(self, what, lambda *_: None)(one, other)

    def read(self, one: int, _other: int) -> None:
        number = len(self.jobs) + self.refused + 1
        self.jobs[number] = {"read": self.now, "state": "waiting", "attempts": [], "kind": one % 3}
        self.write(read(number, f"kind{'abc'[one % 3]} --seed {number}", self.now))

    def refuse(self, _one: int, _other: int) -> None:
        self.refused += 1
        number = len(self.jobs) + self.refused
        values = {"job": number, "line": number, "source": "", "problem": "no"}
        self.write({"event": "line refused", "at": START + self.now, **values})

    def some(self, one: int, *states: str) -> int | None:
        found = [number for number, job in self.jobs.items() if job["state"] in states]
        return found[one % len(found)] if found else None

    def start(self, one: int, other: int) -> None:
        # After a resume those that ran before are started again.
        number = self.some(one, "waiting", "lost")
        if number is None:
            return
        job = self.jobs[number]
        gpus = [gpu for place, gpu in enumerate(GPUS) if other >> place & 1]
        job["attempts"].append({"gpus": gpus, "started": self.now, "ended": None, "outcome": None})
        job["state"] = "running"
        self.write(started(self.now, number, len(job["attempts"]), tuple(gpus)))

    def end(self, one: int, other: int) -> None:
        number = self.some(one, "running")
        if number is None:
            return
        job, outcome, final = self.jobs[number], ENDS[other % 4], other % 3 > 0 or other % 4 == 0
        attempt = job["attempts"][-1]
        attempt |= {"ended": self.now, "outcome": outcome}
        job["state"] = outcome if final else "waiting"
        runtime = self.now - attempt["started"]
        job["runtime"] = runtime
        self.write(ended(self.now, number, len(job["attempts"]), outcome, runtime, final=final))

    def drop(self, one: int, other: int) -> None:
        number = self.some(one, "waiting")
        if number is not None:
            self.jobs[number]["state"] = "cancelled" if other % 2 else "not started"
            values = {"job": number, "reason": "so", "cancelled": bool(other % 2)}
            self.write({"event": "job dropped", "at": START + self.now, **values})

    def retry(self, one: int, _other: int) -> None:
        number = self.some(one, *ENDS, "cancelled", "not started")
        if number is not None:
            self.jobs[number]["state"] = "waiting"
            self.write({"event": "job requeued", "at": START + self.now, "job": number, "why": "retry"})

    def die(self, _one: int, _other: int) -> None:
        self.is_alive = False
        for job in self.jobs.values():
            if job["state"] == "running":
                job["state"] = "lost"
                job["attempts"][-1] |= {"ended": self.sessions[-1][1], "outcome": "interrupted"}

    def exit(self, one: int, other: int) -> None:
        """An attempt whose scheduler died ends, and the keeper records it."""
        number = self.some(one, "lost")
        if number is not None and not self.is_alive and len(self.jobs[number]["attempts"]) == 1:
            job = self.jobs[number]
            outcome = ENDS[other % 2]
            job["attempts"][-1] |= {"ended": self.now, "outcome": outcome}
            job |= {"state": outcome, "runtime": self.now - job["attempts"][-1]["started"]}
            self.write(exited(self.now, number, 256 * (other % 2)))

    def close(self) -> dict[str, Any]:
        if self.is_alive:
            self.die(0, 0)
        return built(*self.records, now=self.now + 1000, standing="died")


def covered(spans: list[tuple[float, float]], within: list[list[int]] | None = None) -> float:
    """The time in any of the spans, and in any of the others: by looking at each moment between two edges."""
    edges = sorted({edge for span in [*spans, *(within or [])] for edge in span})
    total = 0.0
    for left, right in pairwise(edges):
        is_in = any(a <= left and right <= b for a, b in spans)
        if is_in and (within is None or any(a <= left and right <= b for a, b in within)):
            total += right - left
    return total


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["read", "read", "start", "start", "start", "end", "end", "drop", "retry", "refuse", "die"])
        | st.sampled_from(["resume", "exit"]),
        st.integers(0, 20),
        st.integers(0, 50),
        st.integers(0, 50),
    ),
    max_size=40,
)


class TestNumbersOfAnyRun:
    @settings(max_examples=100, deadline=None)
    @given(STEPS)
    def test_they_are_what_another_computation_says(self, steps: list[tuple[str, int, int, int]]) -> None:
        story = Story()
        for step in steps:
            story.step(*step)
        report = story.close()
        jobs = {job["job"]: job for job in report["jobs"] if job["command"]}
        assert {number: job["state"] for number, job in jobs.items()} == {
            number: {"lost": "interrupted"}.get(job["state"], job["state"]) for number, job in story.jobs.items()
        }
        assert sum(report["outcomes"].values()) == len(story.jobs) + story.refused == len(report["jobs"])
        for number, job in story.jobs.items():
            attempts = job["attempts"]
            assert [
                (each["gpus"], each["started"] - START, each["ended"] - START, each["outcome"])
                for each in jobs[number]["attempts"]
            ] == [(each["gpus"], each["started"], each["ended"], each["outcome"]) for each in attempts]
            assert jobs[number]["wait"] == (attempts[0]["started"] - job["read"] if attempts else None)
        self.check_sums(story, report)

    def check_sums(self, story: Story, report: dict[str, Any]) -> None:
        seconds = sum(end - begin for begin, end in story.sessions)
        assert report["run"]["seconds"] == seconds
        assert report["run"]["sessions"] == [(START + begin, START + end) for begin, end in story.sessions]
        spans: dict[str, list[tuple[float, float]]] = {}
        for job in story.jobs.values():
            for each in job["attempts"]:
                for gpu in each["gpus"] or ["cpu"]:
                    spans.setdefault(gpu, []).append((each["started"], each["ended"]))
        assert [each["gpu"] for each in report["gpus"]] == sorted(spans)
        for each in report["gpus"]:
            mine = spans[each["gpu"]]
            assert (each["attempts"], each["busy"]) == (len(mine), covered(mine))
            assert each["share"] == pytest.approx(covered(mine, story.sessions) / seconds if seconds else 0, abs=1e-4)
            assert 0 <= each["share"] <= 1
        for each in report["templates"]:
            mine = [job for job in story.jobs.values() if each["template"] == f"kind{'abc'[job['kind']]} --seed …"]
            runtimes = [job["runtime"] for job in mine if job["state"] in ENDS]
            assert each["jobs"] == len(mine)
            assert each["failed"] == sum(job["state"] in ENDS[1:] for job in mine)
            assert each["mean"] == (round(statistics.fmean(runtimes), 3) if runtimes else None)
            assert each["longest"] == (max(runtimes) if runtimes else None)
            assert each["total"] == sum(one["ended"] - one["started"] for job in mine for one in job["attempts"])
        assert report["failures"] == [number for number, job in story.jobs.items() if job["state"] in ENDS[1:]]


class TestOddJournals:
    def test_a_survivor_does_not_count_as_use_of_the_run(self) -> None:
        records = [began(), read(1), started(5, 1), alone(10, (1, 1)), exited(60, 1), began(100), over(110)]
        (gpu,) = built(*records)["gpus"]
        assert (gpu["busy"], gpu["share"]) == (55, 0.25)  # 5 of 20 seconds

    def test_where_the_clock_was_set_back_nothing_takes_less_than_no_time(self) -> None:
        records = [began(1000), read(1, at=1000), started(1001, 1)]
        report = built(*records, now=400, standing="running", is_alive=True, runs_jobs=True)
        assert (report["gpus"][0]["busy"], report["templates"][0]["total"]) == (0, 0)
        assert figure.draw(report).startswith(b"\x89PNG")

    def test_a_picture_begins_with_what_seems_to_have_run_before_the_run(self) -> None:
        report = built(began(1000), read(1), started(400, 1), ended(500, 1), over(1100))
        lanes = figure._lanes(report["jobs"], report["run"]["heard"], [])
        assert figure._whole(report["run"], lanes) == (START + 400, START + 1100)

    def test_what_was_lost_with_the_first_of_three_schedulers_ended_with_that_one(self) -> None:
        report = built(began(), read(1), started(1, 1), began(50), read(2, at=60), began(90), over(95))
        (attempt,) = report["jobs"][0]["attempts"]
        assert (attempt["ended"], attempt["outcome"]) == (START + 1, "interrupted")

    def test_of_a_run_on_another_host_only_what_was_last_heard_is_shown(self) -> None:
        records = [began(), read(1), started(5, 1), read(2, at=20)]
        report = built(*records, now=1e6, standing="died, or is running on x", runs_jobs=True, is_unseen=True)
        assert report["outcomes"] == {"running": 1, "waiting": 1}
        assert (report["gpus"][0]["busy"], report["gpus"][0]["share"]) == (15, 0.75)
        assert (report["jobs"][0]["runtime"], report["templates"][0]["total"]) == (15, 15)
        lanes = figure._lanes(report["jobs"], report["run"]["heard"], [])
        assert figure._whole(report["run"], lanes)[1] == START + 20

    def test_a_gpu_or_a_log_may_be_called_anything(self) -> None:
        log = {**started(1, 1, 1, ("\udcff\x1b", "a\0b")), "log": "a\0b"}
        report = built(began(), read(1), log, ended(2, 1), over(3))
        text = "\n".join(show(report, None))
        assert "\\xff\\x1b" in text
        assert text.encode()
        assert json.dumps(report).isascii()
