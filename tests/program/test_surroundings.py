"""What a run inherits: signals, children, streams, a directory."""

import os
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from tests.conftest import SCHEDULER, UNMEASURED, Program, has_text, is_alive, until

pytestmark = pytest.mark.unmeasured  # what its programs run is measured elsewhere

COMMAND = " ".join(SCHEDULER)
Pids = Callable[[str], int]


def sh(program: Program, script: str, shell: str = "sh", **settings) -> "subprocess.CompletedProcess[str]":
    settings = {"capture_output": True, "text": True, "timeout": 60, "cwd": program.directory} | settings
    return subprocess.run([shell, "-c", script], check=False, **settings)


# Surroundings.


def test_an_ignored_sigchld_that_was_inherited_changes_nothing(program: Program) -> None:
    done = sh(program, f"trap '' CHLD; printf 'echo hi\\nexit 3\\n' | exec {COMMAND} --gpus 0", "bash")
    assert (done.returncode, done.stdout) == (1, "hi\n")


def test_children_from_before_are_left_alone(program: Program, pids: Pids) -> None:
    script = (
        f"setsid sh -c 'echo $$ > before; exec sleep 1000' & while [ ! -s before ]; do :; done; exec {COMMAND} --gpus 0"
    )
    done = sh(
        program, f"printf 'sleep 1000 & true\\n' | ({script})", "bash", stdout=None, stderr=None, capture_output=False
    )
    assert done.returncode == 0
    assert is_alive(pids("before"))


def test_a_mistake_shows_in_the_exit_code_where_no_message_is_read(program: Program) -> None:
    assert sh(program, f"{COMMAND} --gpus 0 /nonexistent 2>/dev/full").returncode == 2
    assert sh(program, f"{COMMAND} --gpus x 2>/dev/full").returncode == 2
    assert sh(program, f"(sleep 0.3; {COMMAND} --gpus x 2>&1; echo $? > code) | true; cat code").stdout == "2\n"
    done = sh(program, f"{COMMAND} --help > /dev/full")
    assert (done.returncode, done.stderr) == (
        1,
        "simple_gpu_scheduler: cannot write the output: No space left on device\n",
    )


@pytest.mark.parametrize("command", ["--gpus 0 ../jobs", "--gpus 0 --dry-run ../jobs", "report", "logs 1", "--resume"])
def test_a_deleted_directory_is_reported_and_leaves_no_run(program: Program, command: str) -> None:
    assert sh(program, f"echo true > jobs; {COMMAND} --gpus 0 -q jobs").returncode == 0
    absolute = command.replace("..", str(program.directory))
    done = sh(program, f"mkdir gone; cd gone; rmdir ../gone; exec {COMMAND} {absolute}")
    assert done.returncode == 2
    assert done.stderr == "simple_gpu_scheduler: the current directory was deleted; change to another one\n"
    assert len(list(program.directory.glob("state/simple_gpu_scheduler/runs/*.jsonl"))) == 1


def test_a_non_blocking_stderr_or_stdout_loses_nothing(program: Program) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    process = program.start("--gpus", "0-3", stderr=writing)
    os.close(writing)
    program.feed(process, "false\n" * 1500)
    got = b""
    while chunk := os.read(reading, 4096):
        got += chunk
    assert got.count(b"failed with exit code 1") == 1500
    assert b"0 succeeded, 1500 failed" in got
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    (program.directory / "jobs").write_text("false\n" * 5_000)
    process = program.start("--gpus", "0-3", "--dry-run", "jobs", stdout=writing)
    os.close(writing)
    got = b""
    while chunk := os.read(reading, 4096):
        got += chunk
    assert len(got.splitlines()) == 5_000
    assert process.wait(timeout=120) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_full_stderr_at_the_end_can_be_left(program: Program, number: int) -> None:
    process = program.start("--gpus", "0-3", "--joblog", "log")
    program.feed(process, "false\n" * 1500 + ": last\n")
    until(has_text(program.directory / "log", ": last"))
    until(lambda: process.poll() is not None or process.send_signal(number))


UNCHECKED = (
    b"NVML was not found (libnvidia-ml.so.1, part of the NVIDIA driver); use of the GPUs by others is not checked\n"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_start_up_ends_it_without_a_word(program: Program, number: int) -> None:
    """Whenever it comes; while Python itself starts and loads our first file, it may say what it says of Ctrl-C."""
    for milliseconds in range(4, 84, 3):
        process = program.start("--gpus", "0", env=UNMEASURED)
        time.sleep(milliseconds / 1000)  # the moment is what is tested; whatever it is, it must go well
        process.send_signal(number)
        program.feed(process, "")
        err = process.communicate(timeout=120)[1]
        says_python = b"KeyboardInterrupt" in err or err.startswith(b"Fatal Python error: init_")
        assert process.returncode in (-number, 128 + number, 0) or says_python, (milliseconds, err)
        assert (
            says_python
            or err in (b"", UNCHECKED, UNCHECKED + b"no commands were read\n")
            or b"stopping; no new jobs" in err
        )
        assert b"_code_of" not in err, milliseconds


def test_a_shell_by_a_relative_path_is_found_from_another_directory(program: Program) -> None:
    done = sh(program, f"cd /; echo pwd | {COMMAND} --gpus 0 --shell bin/sh --chdir {program.directory}")
    assert (done.returncode, done.stdout) == (0, f"{program.directory}\n")


@pytest.mark.parametrize("limit", [6, 8, 11, 14, 16, 20, 64])
def test_too_low_a_limit_on_open_files_is_reported_in_a_sentence(program: Program, limit: int) -> None:
    done = sh(program, f"ulimit -n {limit}; printf 'true\\n%.0s' 1 2 3 4 5 | {COMMAND} --gpus 0-3 --quiet", "bash")
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 2), done.stderr
    assert done.returncode or limit > 15
    if done.returncode:
        said = done.stderr.splitlines()[-1]
        assert said.startswith("simple_gpu_scheduler: ")
        assert said.endswith("ulimit -n 1024")
