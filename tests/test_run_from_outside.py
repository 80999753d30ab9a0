"""Looking at a run, and speaking to it, from another terminal: the real program on both sides."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from simple_gpu_scheduler.journal import files

from .conftest import Program, has_text, until

pytestmark = pytest.mark.usefixtures("idle_gpus")


class Run:
    """A run with a queue that stays open, and what is said to it."""

    def __init__(self, program: Program, *args: str) -> None:
        self.program = program
        self.process = program.start("--gpus", "0", "--grace", "1", *args)
        self.journals = program.directory / "state" / "simple_gpu_scheduler" / "runs"
        until(self.sockets, "the run listens")
        self.id = self.sockets()[0].stem

    def sockets(self) -> list[Path]:
        return list(self.journals.glob("*.sock"))

    def write(self, lines: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(lines.encode())
        self.process.stdin.flush()

    def call(self, *args: str) -> "subprocess.CompletedProcess[bytes]":
        return self.program.run(*args)

    def status(self) -> dict:
        [report, *_] = json.loads(self.call("status", "--json").stdout)
        return report

    def runs(self, *numbers: int) -> bool:
        return [job["job"] for job in self.status()["running"]] == list(numbers)

    def end(self) -> int:
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
            self.process.stdin = None
        return self.process.wait(timeout=30)


@pytest.fixture
def run(program: Program) -> Run:
    return Run(program)


def test_status_tells_what_runs_and_in_json_all_of_it(run: Run) -> None:
    run.write("sleep 100 #: name=big time=1h\ntrue\nfalse #: gpus=0\n")
    until(lambda: run.status()["counts"]["failed"] == 1)
    report = run.status()
    [job] = report["running"]
    assert (job["job"], job["name"], job["gpus"], job["command"], job["estimate"]) == (
        1,
        "big",
        ["0"],
        "sleep 100",
        3600,
    )
    assert (report["run"], report["standing"], report["alive"]) == (run.id, "running", True)
    assert report["eta_unknown"] == "the input is still open"
    lines = run.call("status").stdout.decode().splitlines()
    assert re.match(rf"run {run.id}: running in .* for \d", lines[0])
    assert re.match(r'  gpu 0, \d.* of about 1 h: job 1 "big": sleep 100$', lines[1])
    assert lines[2:] == [
        "  1 running, 1 waiting, 0 succeeded, 1 failed, 0 not started",
        "  no estimate: the input is still open",
    ]


def test_status_shows_no_control_characters(run: Run) -> None:
    run.write("sleep 100; echo '\x1b[2J\u202e'\n")
    until(lambda: run.runs(1))
    shown = run.call("status").stdout.decode()
    assert "\\x1b[2J\\u202e" in shown
    assert "\x1b" not in shown


def test_a_stop_lets_what_runs_end_and_the_rest_can_be_resumed(run: Run) -> None:
    run.write("until [ -e go ]; do sleep 0.05; done\ntouch second\n")
    until(lambda: run.runs(1))
    done = run.call("stop")
    assert done.stdout.decode() == f"run {run.id}: it starts nothing more, and waits for 1 running job\n"
    assert run.status()["standing"] == "stopping"
    (run.program.directory / "go").touch()
    assert run.process.wait(timeout=30) == 1
    assert not (run.program.directory / "second").exists()
    report = run.status()
    assert (report["alive"], report["standing"], report["code"]) == (False, "stopped", 1)
    assert (report["counts"]["succeeded"], report["counts"]["waiting"]) == (1, 1)
    assert run.sockets() == []


def test_a_stop_now_ends_what_runs(run: Run) -> None:
    run.write("sleep 100\n")
    until(lambda: run.runs(1))
    assert run.call("stop", "--now", run.id[:-2]).returncode == 0
    assert run.process.wait(timeout=30) == 1


def test_a_paused_run_starts_nothing_until_it_is_to_continue(run: Run) -> None:
    assert run.call("pause").returncode == 0
    run.write("touch first\n")
    until(lambda: run.status()["counts"]["waiting"] == 1)
    assert run.status()["standing"] == "paused"
    assert not (run.program.directory / "first").exists()
    assert run.call("continue").stdout.decode() == f"run {run.id}: it goes on\n"
    until((run.program.directory / "first").exists)
    assert run.end() == 0
    journal = next(run.journals.glob("*.jsonl")).read_text()
    assert journal.index('"event":"paused"') < journal.index('"event":"continued"') < journal.index("job started")


def test_jobs_are_cancelled_by_number_and_by_name(run: Run) -> None:
    run.write("sleep 100 #: name=big retries=3\ntouch two\ntouch three #: name=three\ntouch four\n")
    until(lambda: run.runs(1) and run.status()["counts"]["waiting"] == 3)
    done = run.call("cancel", "2", "three", "9")
    assert done.stdout.decode().splitlines() == ["job 2: it was cancelled", "job 3: it was cancelled"]
    assert done.stderr.decode() == "job 9: there is no such job\n"
    assert done.returncode == 1
    assert run.call("cancel", "no-such").returncode == 2
    assert run.call("cancel", "big", "--run", run.id).stdout == b"job 1: it is being ended\n"
    until((run.program.directory / "four").exists)
    assert run.end() == 1
    assert sorted(path.name for path in run.program.directory.iterdir() if path.name in ("two", "three")) == []
    counts = run.status()["counts"]
    assert (counts["cancelled"], counts["failed"], counts["succeeded"]) == (2, 1, 1)


def test_a_failed_job_is_retried_with_those_that_come_after_it(run: Run) -> None:
    run.write("test -e data #: name=prepare\ntouch trained #: after=prepare\n")
    until(lambda: run.status()["counts"]["not started"] == 1)
    (run.program.directory / "data").touch()
    done = run.call("retry", "prepare")
    assert done.stdout.decode().splitlines() == [
        "job 1: it waits again",
        "job 2: it waits again, since it comes after those",
    ]
    until((run.program.directory / "trained").exists)
    assert run.end() == 0
    assert run.status()["standing"] == "finished"


def test_wait_sleeps_until_the_run_is_over_and_exits_as_it_did(run: Run, program: Program) -> None:
    run.write("until [ -e go ]; do sleep 0.05; done\nexit 3\n")
    until(lambda: run.runs(1))
    waiting = program.start("wait")
    inode = (run.journals / f"{run.id}.jsonl").stat().st_ino
    until(lambda: _is_waited_for(inode), "it sleeps in the kernel")
    (run.program.directory / "go").touch()
    assert run.end() == 1
    assert waiting.wait(timeout=30) == 1
    assert run.call("wait", run.id).returncode == 1


def _is_waited_for(inode: int) -> bool:
    locks = Path("/proc/locks").read_text().splitlines()
    return any("->" in line and f":{inode} " in line for line in locks)


def test_a_run_that_was_killed_is_dead_and_not_running(run: Run, program: Program) -> None:
    run.write("echo $$ > pid; exec sleep 100\n")
    until(has_text(program.directory / "pid"))
    name = run.id
    waiting = program.start("wait", name)
    run.process.kill()
    run.process.wait()
    try:
        assert waiting.wait(timeout=30) == 1
        assert waiting.stderr
        assert (
            f"run {name} died; simple_gpu_scheduler --resume {name} goes on with it" in waiting.stderr.read().decode()
        )
        [dead] = json.loads(program.run("status", "--json").stdout)
        assert (dead["alive"], dead["standing"]) == (False, "died")
        assert [job["job"] for job in dead["running"]] == [1]
        shown = program.run("status").stdout.decode()
        assert f"simple_gpu_scheduler --resume {name} goes on with it" in shown
        assert "  gpu 0, when it died: job 1: echo $$ > pid; exec sleep 100" in shown
        for command in (["stop"], ["pause"], ["continue"], ["cancel", "1", "--run"], ["retry", "1", "--run"]):
            done = program.run(*command, name)
            assert done.returncode == 2
            assert f"run {name} has died; simple_gpu_scheduler --resume {name} goes on" in done.stderr.decode()
    finally:
        os.kill(int((program.directory / "pid").read_text()), signal.SIGKILL)


def test_of_several_runs_that_live_one_has_to_be_named(run: Run, program: Program) -> None:
    other = program.start("--gpus", "1")
    until(lambda: len(run.sockets()) == 2)
    done = program.run("stop")
    assert done.returncode == 2
    assert b"2 runs are running" in done.stderr
    assert len(json.loads(program.run("status", "--json").stdout)) == 2
    for path in run.sockets():
        assert program.run("stop", path.stem).returncode == 0
    assert other.wait(timeout=30) == 0
    assert run.process.wait(timeout=30) == 0


def test_status_watches_until_the_run_is_over(run: Run, program: Program) -> None:
    run.write("sleep 100\n")
    until(lambda: run.runs(1))
    watching = program.start("status", "--watch", "--json")
    assert watching.stdout
    assert json.loads(watching.stdout.readline())[0]["alive"]
    run.call("stop", "--now")
    assert watching.wait(timeout=30) == 0
    assert not json.loads(watching.stdout.read().splitlines()[-1])[0]["alive"]


def test_without_any_run_status_says_so(program: Program) -> None:
    assert program.run("status").stdout == b"there is no run yet\n"
    assert program.run("status", "--json").stdout == b"[]\n"
    assert program.run("stop").returncode == 2


# What jobs wrote.


class Written:
    """A run's journal, written and locked by the test, of a job with a log."""

    def __init__(self, directory: Path) -> None:
        self.log = directory / "1.log"
        self.run = "20260102-030405-abcdef"
        runs = directory / "state" / "simple_gpu_scheduler" / "runs"
        runs.mkdir(parents=True, mode=0o700)
        self.fd = files.create(str(runs / f"{self.run}.jsonl"))
        files.lock(self.fd, files.SCHEDULER)
        self.add(event="run began", run=self.run, version=1, host=os.uname().nodename)
        self.add(event="job read", job=1, line=1, command="train", name="big")

    def add(self, **record: object) -> None:
        os.write(self.fd, (json.dumps({"event": record.pop("event"), "at": 1.0, **record}) + "\n").encode())

    def start(self, attempt: int, log: str) -> None:
        self.add(event="job started", job=1, attempt=attempt, gpus=["0"], slots=[0], log=log)

    def end(self, attempt: int, *, final: bool) -> None:
        self.add(event="job ended", job=1, attempt=attempt, outcome="failed", code=1, started=1, runtime=1, final=final)


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    written = Written(tmp_path)
    yield written
    os.close(written.fd)


def test_logs_prints_what_a_job_wrote_byte_by_byte(program: Program, written: Written) -> None:
    written.log.write_bytes(b"\xff epoch 1\r\x1b[1mepoch 2")
    written.start(1, str(written.log))
    assert program.run("logs", "1").stdout == b"\xff epoch 1\r\x1b[1mepoch 2"
    assert program.run("logs", "big", "--run", "20260102").stdout == b"\xff epoch 1\r\x1b[1mepoch 2"


def test_logs_follows_a_job_through_its_attempts_to_its_end(program: Program, written: Written) -> None:
    following = program.start("logs", "big", "-f")
    out: IO[bytes] = following.stdout  # type: ignore[assignment]
    written.log.write_text("one\n")
    written.start(1, str(written.log))
    assert out.readline() == b"one\n"
    with written.log.open("a") as log:
        log.write("two\n")
    assert out.readline() == b"two\n"
    with written.log.open("a") as log:
        log.write("rest\n")
    written.end(1, final=False)
    second = written.log.with_name("2.log")
    written.start(2, str(second))
    second.write_text("three\n")
    assert out.readline() == b"rest\n"
    assert out.readline() == b"three\n"
    with second.open("a") as log:
        log.write("four")
    written.end(2, final=True)
    assert out.read() == b"four"
    assert following.wait(timeout=30) == 0


def test_logs_follows_no_longer_than_the_run_lives(program: Program, written: Written) -> None:
    written.log.write_text("one\n")
    written.start(1, str(written.log))
    following = program.start("logs", "1", "-f")
    assert following.stdout
    assert following.stderr
    assert following.stdout.readline() == b"one\n"
    os.close(written.fd)
    assert following.wait(timeout=30) == 0
    assert b"job 1 has not ended: run 20260102-030405-abcdef died" in following.stderr.read()
    written.fd = os.open(os.devnull, os.O_RDONLY)


def test_a_job_without_a_log_says_why_there_is_none(program: Program, written: Written) -> None:
    done = program.run("logs", "1")
    assert done.returncode == 2
    assert b"job 1 of run 20260102-030405-abcdef has not been started" in done.stderr
    written.add(event="job started", job=1, attempt=1, gpus=["0"], slots=[0])
    for args in (["logs", "1"], ["logs", "1", "-f"]):
        done = program.run(*args)
        assert done.returncode == 2
        assert b"was started without --logs DIR, and so its output went where the run's own did" in done.stderr
    assert program.run("logs", "no-such").returncode == 2


def test_a_run_with_logs_shows_the_last_line_of_each_job(program: Program) -> None:
    run = Run(program, "--logs", "logs")
    run.write("printf 'start\\n\\033[1m10%%\\r20%%\\r'; sleep 100\n")
    until(lambda: run.runs(1) and run.status()["running"][0].get("last_line") == "20%")
    assert program.run("logs", "1").stdout == b"start\n\033[1m10%\r20%\r"
    assert "      20%\n" in program.run("status").stdout.decode()
    run.call("stop", "--now")
    run.process.wait(timeout=30)
