"""Traps in showing and keeping what jobs print: odd log files, full disks, deleted logs, kills, a driver that hangs."""

import functools
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simple_gpu_scheduler.base.jobs import Attempt, Job, Place
from simple_gpu_scheduler.display.live.frame import Picture, frame
from simple_gpu_scheduler.events import JobRequeued, TakenOver
from simple_gpu_scheduler.events.eta import Eta
from simple_gpu_scheduler.events.ledger import Counts, Ledger
from simple_gpu_scheduler.output import place
from simple_gpu_scheduler.run.setup.display import Showing
from tests.conftest import UNMEASURED, Program, has_text, until
from tests.support.nvml import StandIn, a_gpu
from tests.support.terminal import Terminal

MARK = b"[simple_gpu_scheduler]"
WAIT = "until test -e go; do sleep 0.02; done"
BOTH = pytest.mark.parametrize("output", ["group", "tag"])


@pytest.fixture
def terminal(tmp_path: Path, nvml: StandIn) -> Iterator[Terminal]:
    variables = UNMEASURED | dict(nvml.environment)
    variables.pop("CI", None)  # where there would be no view
    opened = Terminal(tmp_path, {**variables, "PYTHONPATH": os.getcwd()})
    yield opened
    opened.close()


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_tags_never_stand_before_the_footer_of_a_log(program: Program) -> None:
    done = program.run("--gpus", "0,1,2,3", "-q", "--output", "tag", stdin="".join(f"echo {n}\n" for n in range(1000)))
    assert MARK not in done.stdout
    assert done.stdout.count(b"\n") == 1000


@pytest.mark.parametrize("output", ["group", "tag", "files"])
def test_a_log_that_is_a_named_pipe_stops_nothing(program: Program, output: str) -> None:
    (program.directory / "logs").mkdir()
    os.mkfifo(program.directory / "logs" / "0001.log")
    process = program.start("--gpus", "0", "--output", output, "--logs", "logs", env=UNMEASURED)
    try:
        out, err = process.communicate(b"echo one\necho two\n", timeout=6)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail("it waits for somebody to read the pipe")
    assert process.returncode == 1
    assert b"one\n" in out
    assert b"job 1 prints here, since its log" in err


@BOTH
def test_a_job_that_opens_dev_stderr_loses_no_output_behind_that(program: Program, output: str) -> None:
    jobs = "echo lost >/dev/stderr\necho one; echo two >/dev/stderr; echo three; echo four\n"
    done = program.run("--gpus", "0", "--output", output, stdin=jobs)
    assert [line.rpartition(b" ")[2] for line in done.stdout.splitlines()[-3:]] == [b"two", b"three", b"four"]
    assert b"lost\n" in done.stdout


@BOTH
def test_what_fitted_on_a_full_disk_is_shown(program: Program, output: str) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    job = "trap '' XFSZ; echo first; head -c 100000 /dev/zero 2>&1 | tr '\\0' x\n"
    done = program.run("--gpus", "0", "--output", output, "--no-journal", "--logs", "logs", stdin=job, preexec_fn=limit)
    assert b": File too large" in done.stderr
    assert b"first\n" in done.stdout
    assert b"xxx" in done.stdout


def test_logs_that_are_deleted_leave_no_descriptors_open(program: Program) -> None:
    jobs = "".join(f"echo {n}; sleep 0.02; rm logs/{n:04}.log\n" for n in range(1, 61))
    process = program.start("--gpus", "0,1", "-q", "--output", "tag", "--logs", "logs", env=UNMEASURED)
    program.feed(process, f"{jobs}touch last; {WAIT}\n")
    until((program.directory / "last").exists)
    try:
        until(lambda: descriptors(process.pid) < 40, f"{descriptors(process.pid)} are open", seconds=2)
    finally:
        (program.directory / "go").touch()
        process.wait(timeout=20)


def test_a_header_that_cannot_be_written_leaves_no_descriptor_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_fd: int, _data: bytes) -> int:
        raise OSError(28, "No space left on device")

    said: list[object] = []
    open_streams = place.stream_opener(str(tmp_path), "a-run", Showing("plain", "files", (1, 2)), said.append)
    before = descriptors(os.getpid())
    monkeypatch.setattr(os, "write", full)
    assert open_streams(Attempt(Job(1, b"true", Place(1)), 1, (), ())) == ()
    monkeypatch.undo()
    assert said
    assert descriptors(os.getpid()) == before


@BOTH
def test_logs_are_kept_when_what_stands_in_them_could_not_be_shown(program: Program, output: str) -> None:
    with open("/dev/full", "wb") as full:
        args = ("--gpus", "0", "-q", "--output", output, "--logs", "logs", "--logs-failed-only")
        done = program.run(*args, stdin="echo x\n", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert b"it is kept in their logs" in done.stderr
    assert list((program.directory / "logs").iterdir())


def test_two_runs_in_one_directory_do_not_mix_what_their_jobs_print(program: Program) -> None:
    job = f"echo from-$SGS_RUN_ID; touch begun-$1; {WAIT}; echo from-$SGS_RUN_ID\n"
    runs = []
    for gpu in "01":
        args = ("--gpus", gpu, "-q", "--output", "tag", "--logs", "logs")
        runs.append(program.start(*args, env=UNMEASURED))
        program.feed(runs[-1], job.replace("$SGS_RUN_ID", f"run{gpu}").replace("$1", gpu))
    until(lambda: all((program.directory / f"begun-{gpu}").exists() or runs[int(gpu)].poll() for gpu in "01"))
    (program.directory / "go").touch()
    for gpu, run in zip("01", runs, strict=True):
        out, err = run.communicate(timeout=20)
        assert b"from-run" + (b"1" if gpu == "0" else b"0") not in out
        assert run.returncode == 0 or b"--logs" in err  # a second run there may be refused


def test_an_attempt_that_nobody_saw_the_end_of_does_not_hide_the_next_header(program: Program) -> None:
    process = program.start("--gpus", "0", "--output", "files", "--logs", "logs", env=UNMEASURED)
    program.feed(process, f"printf begin; echo $PPID > keeper; {WAIT}\n")
    until(has_text(program.directory / "keeper"))
    os.kill(int((program.directory / "keeper").read_text()), 9)
    process.kill()
    process.wait()
    (program.directory / "go").touch()
    assert program.run("--resume").returncode == 0
    text = (program.directory / "logs" / "0001.log").read_text()
    assert re.findall(r"^\[simple_gpu_scheduler\] job 1 .*attempt (\d)", text, re.MULTILINE) == ["1", "2"]


def test_a_run_that_goes_on_with_another_directory_for_logs_finishes_the_old_ones(program: Program) -> None:
    process = program.start("--gpus", "0", "--output", "group", "--logs", "old", env=UNMEASURED)
    program.feed(process, f"echo shown; touch begun; {WAIT}\n")
    until((program.directory / "begun").exists)
    process.kill()
    process.wait()
    (program.directory / "go").touch()
    done = program.run("--resume", "--logs", "new")
    assert done.stdout == b"shown\n"
    assert "succeeded with exit code 0" in (program.directory / "old" / "0001.log").read_text()


def test_a_job_that_was_not_started_before_a_resume_is_not_counted_as_failed_when_it_is_tried_again() -> None:
    failed, dropped = (Job(number, b"true", Place(number)) for number in (2, 3))
    ledger = Ledger()
    ledger.take(TakenOver([(failed, "failed"), (dropped, "not started")], [1]))
    ledger.take(JobRequeued(dropped, "retry"))
    assert ledger.counts() == Counts(waiting=1, failed=1, not_started=1)


def test_no_picture_is_higher_than_the_terminal() -> None:
    picture = Picture([], [], Counts(waiting=3), True, Eta(None))
    assert [len(frame(picture, 80, height)) <= height for height in range(4)] == [True] * 4


def test_gpus_that_do_not_exist_are_told_in_a_sentence_under_the_live_view(terminal: Terminal) -> None:
    (terminal.directory / "jobs").write_text("true\n")
    terminal.type("simple_gpu_scheduler --gpus 9 --progress live jobs; echo code $?")
    terminal.shows("code 2")
    assert "there is no GPU 9" in terminal.screen()
    assert "Traceback" not in terminal.screen(history=True)


def test_a_driver_that_hangs_holds_back_no_message(terminal: Terminal, nvml: StandIn) -> None:
    (terminal.directory / "jobs").write_text(f"until test -e fail; do sleep 0.02; done; false\n{WAIT}\n")
    terminal.type("simple_gpu_scheduler --gpus 0-1 --progress live jobs; echo code $?")
    terminal.shows("2 running")
    terminal.shows("30 °C")
    nvml.show([a_gpu(index) for index in range(4)], delays={"nvmlDeviceGetTemperature": 3_000_000})
    until(functools.partial(_is_slow, nvml, nvml.calls("nvmlDeviceGetTemperature")), seconds=5)
    (terminal.directory / "fail").touch()
    until(lambda: "failed with exit code 1" in terminal.screen(), "the failure is told", seconds=2)
    (terminal.directory / "go").touch()
    terminal.shows("code 1")


def _is_slow(nvml: StandIn, calls: int) -> bool:
    return nvml.calls("nvmlDeviceGetTemperature") > calls


def test_the_last_failures_show_what_the_failed_attempt_printed(terminal: Terminal) -> None:
    job = f"test $SGS_ATTEMPT = 1 && {{ echo went wrong; exit 1; }}; echo all is well; {WAIT}\n"
    (terminal.directory / "jobs").write_text(job)
    terminal.type("simple_gpu_scheduler --gpus 0 --progress live --retries 1 --retry-delay 0.8 jobs")
    terminal.shows("\n    went wrong\n")
    terminal.shows("  all is well\n")
    until(lambda: "\n    went wrong\n" in terminal.screen(), terminal.screen(), seconds=2)
    assert "\n    all is well\n" not in terminal.screen()
    (terminal.directory / "go").touch()
    terminal.shows("1 succeeded")


def test_a_message_from_the_background_wipes_nothing_out(terminal: Terminal) -> None:
    (terminal.directory / "jobs").write_text(f"{WAIT}; false\nuntil test -e end; do sleep 0.02; done\n")
    terminal.type("simple_gpu_scheduler --gpus 0 --progress live jobs")
    terminal.shows("1 running, 1 waiting")
    terminal.press("C-z")
    terminal.shows("Stopped")
    terminal.type(r"bg; clear; seq 101 120; printf '\033[3H'")  # as an editor has text below the cursor
    terminal.shows("120")
    (terminal.directory / "go").touch()
    terminal.shows("failed with exit code 1")
    assert "120" in terminal.screen()
    (terminal.directory / "end").touch()


def test_after_ctrl_s_the_newest_messages_and_the_summary_are_there(terminal: Terminal) -> None:
    script = """
import os, time
from simple_gpu_scheduler.events import Noticed, RunEnded
from simple_gpu_scheduler.display.live.view import Live
from simple_gpu_scheduler.display.lines import Words
live = Live(Words(), list)
open("begun", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
for number in range(6000):
    live.take(Noticed(f"message {number} " + "x" * 1000))
live.take(RunEnded(0, 6000, 0, 0, 1.0, all_read=True, code=1))
open("told", "w").close()
live.close()
"""
    (terminal.directory / "view.py").write_text(script)
    terminal.type(f"{sys.executable} view.py; echo code $?")
    until((terminal.directory / "begun").exists)
    terminal.press("C-s")
    (terminal.directory / "go").touch()
    until((terminal.directory / "told").exists)
    terminal.press("C-q")
    terminal.shows("code 0")
    assert "6000 failed" in terminal.screen()
    assert "message 5999" in terminal.screen(history=True)
