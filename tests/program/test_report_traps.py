"""What a report must survive: odd journals, logs, files and commands; and its numbers, computed in another way."""

import json
import signal
import statistics
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.journal.read import Record
from simple_gpu_scheduler.report import figure, log_tails
from simple_gpu_scheduler.report.parameters import find_parameters
from simple_gpu_scheduler.report.text import show
from tests.conftest import SCHEDULER, UNMEASURED, Program, until
from tests.program.test_report import (
    REPORT,
    START,
    alone,
    as_json,
    ask,
    began,
    built,
    ended,
    exited,
    over,
    read,
    started,
    told,
)

GPUS = ("0", "1", "2")
ENDS = ("succeeded", "failed", "timed out", "killed")


class Story:
    """A run that is made up: its journal, and beside it what is true of it, kept in the plainest way."""

    def __init__(self) -> None:
        self.now = 0
        self.lives = True
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
        if what == "resume" and not self.lives:
            self.lives = True
            self.sessions.append([self.now, self.now])
            self.records.append(began(self.now, is_resumed=True))
        elif what == "exit":
            self.exit(one, other)
        elif self.lives:
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
        self.lives = False
        for job in self.jobs.values():
            if job["state"] == "running":
                job["state"] = "lost"
                job["attempts"][-1] |= {"ended": self.sessions[-1][1], "outcome": "interrupted"}

    def exit(self, one: int, other: int) -> None:
        """What outlived its scheduler ends, and the keeper writes that down."""
        number = self.some(one, "lost")
        if number is not None and not self.lives and len(self.jobs[number]["attempts"]) == 1:
            job = self.jobs[number]
            outcome = ENDS[other % 2]
            job["attempts"][-1] |= {"ended": self.now, "outcome": outcome}
            job |= {"state": outcome, "runtime": self.now - job["attempts"][-1]["started"]}
            self.write(exited(self.now, number, 256 * (other % 2)))

    def close(self) -> dict[str, Any]:
        if self.lives:
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
    @settings(max_examples=300, deadline=None)
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
    def test_what_outlived_its_scheduler_is_no_part_of_how_busy_the_run_was(self) -> None:
        records = [began(), read(1), started(5, 1), alone(10, (1, 1)), exited(60, 1), began(100), over(110)]
        (gpu,) = built(*records)["gpus"]
        assert (gpu["busy"], gpu["share"]) == (55, 0.25)  # 5 of 20 seconds

    def test_where_the_clock_was_set_back_nothing_takes_less_than_no_time(self) -> None:
        records = [began(1000), read(1, at=1000), started(1001, 1)]
        report = built(*records, now=400, standing="running", is_alive=True, goes_on=True)
        assert (report["gpus"][0]["busy"], report["templates"][0]["total"]) == (0, 0)
        assert figure.draw(report).startswith(b"\x89PNG")

    def test_a_picture_begins_with_what_seems_to_have_run_before_the_run(self) -> None:
        report = built(began(1000), read(1), started(400, 1), ended(500, 1), over(1100))
        lanes = figure._lanes(report["jobs"], report["run"]["heard"])
        assert figure._whole(report["run"], lanes) == (START + 400, START + 1100)

    def test_what_was_lost_with_the_first_of_three_schedulers_ended_with_that_one(self) -> None:
        report = built(began(), read(1), started(1, 1), began(50), read(2, at=60), began(90), over(95))
        (attempt,) = report["jobs"][0]["attempts"]
        assert (attempt["ended"], attempt["outcome"]) == (START + 1, "interrupted")

    def test_of_a_run_on_another_host_no_more_is_told_than_was_last_heard(self) -> None:
        records = [began(), read(1), started(5, 1), read(2, at=20)]
        report = built(*records, now=1e6, standing="died, or is running on x", goes_on=True, is_unseen=True)
        assert report["outcomes"] == {"running": 1, "waiting": 1}
        assert (report["gpus"][0]["busy"], report["gpus"][0]["share"]) == (15, 0.75)
        assert (report["jobs"][0]["runtime"], report["templates"][0]["total"]) == (15, 15)
        lanes = figure._lanes(report["jobs"], report["run"]["heard"])
        assert figure._whole(report["run"], lanes)[1] == START + 20

    def test_a_gpu_or_a_log_may_be_called_anything(self) -> None:
        log = {**started(1, 1, 1, ("\udcff\x1b", "a\0b")), "log": "a\0b"}
        report = built(began(), read(1), log, ended(2, 1), over(3))
        text = "\n".join(show(report, None))
        assert "\\xff\\x1b" in text
        assert text.encode()
        assert json.dumps(report).isascii()


class TestOddLogs:
    @pytest.mark.parametrize("size", [100_000, 1 << 30])
    def test_a_log_without_a_line_in_it_takes_no_time(self, tmp_path: Path, size: int) -> None:
        with (tmp_path / "log").open("wb") as file:
            file.truncate(size)
        begin = time.monotonic()
        assert log_tails.read_result(str(tmp_path / "log"), "loss") is None
        assert time.monotonic() - begin < 2

    def test_a_name_need_not_be_utf8(self, tmp_path: Path) -> None:
        (tmp_path / "log").write_bytes(b"loss\xff: 0.5\nloss: 1\n")
        assert log_tails.read_result(str(tmp_path / "log"), "loss\udcff") == 0.5

    def test_colours_percent_signs_and_json_within_json_do_no_harm(self, tmp_path: Path) -> None:
        for line, number in (
            (b"\x1b[31mloss\x1b[0m: \x1b[1m-1.5e-3\x1b[0m%\n", -0.0015),
            (b'{"epoch": 2, "m": {"loss": -3, "train_loss": 4}}\n', -3),
            (b"\rloss=0.9,\rloss=0.5,", 0.5),
            (b"loss 7\0\xff\n", 7),
        ):
            (tmp_path / "log").write_bytes(line)
            assert log_tails.read_result(str(tmp_path / "log"), "loss") == number


def test_what_a_shell_takes_for_a_quote_is_a_quote_in_a_value() -> None:
    found = find_parameters([r'run --cfg "{\"lr\": 1, \"t\": \"\t\"}"', "run --cfg 'a\\\"b'"])
    assert [values["cfg"] for values in found.values] == [r'{"lr": 1, "t": "\t"}', 'a\\"b']


class TestOddFiles:
    @pytest.fixture
    def directory(self, program: Program) -> Path:
        program.run("--gpus", "0", "--ignore-occupancy", stdin="true\n")
        return program.directory

    def test_a_pipe_is_no_file(self, directory: Path) -> None:
        done = ask("--html", "/dev/stdout", cwd=directory)
        assert (done.returncode, done.stderr.count("it is not a regular file")) == (2, 1)

    def test_a_name_may_be_as_long_as_names_may_be(self, directory: Path) -> None:
        name = "é" * 125 + ".html"
        assert ask("--html", name, cwd=directory).returncode == 0
        assert (directory / name).exists()

    def test_who_reads_the_first_line_only_is_no_error(self, directory: Path) -> None:
        for option in ("--json", "--csv"):
            with subprocess.Popen([*REPORT, option], cwd=directory, stdout=subprocess.PIPE, stderr=-1) as process:
                assert process.stdout
                process.stdout.close()
                assert process.stderr
                assert process.stderr.read() == b""


def test_why_jobs_were_not_started_is_said_once_for_all(program: Program) -> None:
    lines = ["false #: name=first", "true #: after=first", "true #: after=first", "true #: bogus=1"]
    program.run("--gpus", "0", "--ignore-occupancy", "-q", stdin="\n".join(lines) + "\n")
    text = told(cwd=program.directory)
    assert "          2  job 1 did not succeed\n          1  unknown option 'bogus'" in text


def test_a_run_that_was_killed_and_resumed_is_told_as_history_tells_it(program: Program) -> None:
    lines = (
        "sleep 1; echo loss: 3",
        "false",
        "kill -9 $$",
        "true #: gpus=0",
        "sleep 9 #: timeout=0.2 retries=1",
        "true",
    )
    (program.directory / "jobs").write_text("".join(f"{line}\n" for line in lines))
    process = program.start("--gpus", "0", "1", "--ignore-occupancy", "--output", "files", "jobs", env=UNMEASURED)
    until(lambda: '"failed": 1' in ask("--json", cwd=program.directory).stdout, "the second job has failed")
    process.send_signal(signal.SIGKILL)
    process.wait()
    report = as_json(cwd=program.directory)
    assert report["run"]["state"] == "died"
    assert report["outcomes"].get("running", 0) <= 2
    program.run("--resume")
    report = as_json("--metric", "loss", cwd=program.directory)
    call = [*SCHEDULER, "history", report["run"]["id"], "--json"]
    rows = json.loads(subprocess.run(call, check=True, capture_output=True, cwd=program.directory).stdout)
    rows = rows["jobs"] if isinstance(rows, dict) else rows
    groups = {"timed out": "failed", "killed": "failed"}
    states = {row["job"]: {"refused": "not started"}.get(row["state"], row["state"]) for row in rows}
    assert {job["job"]: groups.get(job["state"], job["state"]) for job in report["jobs"]} == states
    assert {job["job"]: job["result"] for job in report["jobs"] if job["result"]} == {1: 3}
    assert len(report["run"]["sessions"]) == 2
    assert all(0 <= each["share"] <= 1 for each in report["gpus"])
