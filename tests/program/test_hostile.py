"""What broke it once: hostile input, jobs and surroundings."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import SCHEDULER, UNMEASURED, Program, has_text, is_alive, until

COMMAND = " ".join(SCHEDULER)
Pids = Callable[[str], int]


def sh(program: Program, script: str, shell: str = "sh", **settings) -> "subprocess.CompletedProcess[str]":
    settings = {"capture_output": True, "text": True, "timeout": 60, "cwd": program.directory} | settings
    return subprocess.run([shell, "-c", script], check=False, **settings)


# Input.


def test_the_tail_of_a_line_that_is_too_long_is_no_job(program: Program) -> None:
    done = program.run("--gpus", "0", stdin="true " + "x" * 200_000 + " \\\ntouch tail\n" + "echo next\n")
    assert done.stdout == b"next\n"
    assert not (program.directory / "tail").exists()
    done = program.run("--gpus", "0", stdin="true \\\n" * 50_000 + "touch tail\necho next\n")
    assert done.stdout == b"next\n"
    assert done.returncode == 2
    assert not (program.directory / "tail").exists()


def test_blanks_hide_neither_a_job_nor_an_option(program: Program) -> None:
    blanks = " " * 200_000
    done = program.run("--gpus", "0", stdin=f"{blanks}touch ran\ntrue #: gpus=1{blanks}bogus=1\n")
    assert done.returncode == 2
    assert done.stderr.count(b"no command with its options is that long") == 2


def test_an_option_without_end_is_refused_and_the_run_goes_on(program: Program) -> None:
    done = program.run("--gpus", "0", stdin=f"echo a\necho x #: mem={'9' * 400}\necho b\n")
    assert (done.returncode, done.stdout) == (2, b"a\nb\n")


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


def test_standard_input_that_cannot_be_read_is_said(program: Program) -> None:
    done = sh(program, f"{COMMAND} --gpus 0 0>written")
    assert done.returncode == 1
    assert "reading stdin failed: Bad file descriptor" in done.stderr


def test_a_mistake_is_told_by_the_exit_code_where_nobody_reads(program: Program) -> None:
    assert sh(program, f"{COMMAND} --gpus 0 /nonexistent 2>/dev/full").returncode == 2
    assert sh(program, f"{COMMAND} --gpus x 2>/dev/full").returncode == 2
    assert sh(program, f"(sleep 0.3; {COMMAND} --gpus x 2>&1; echo $? > code) | true; cat code").stdout == "2\n"
    done = sh(program, f"{COMMAND} --help > /dev/full")
    assert (done.returncode, done.stderr) == (
        1,
        "simple_gpu_scheduler: cannot write the output: No space left on device\n",
    )


def test_a_job_log_that_is_a_pipe_or_the_input_is_refused(program: Program) -> None:
    os.mkfifo(program.directory / "pipe")
    assert (
        "it is not a regular file"
        in sh(program, f"(sleep 2 < pipe &) ; {COMMAND} --gpus 0 --joblog pipe </dev/null").stderr
    )
    (program.directory / "jobs").write_text("echo x\n")
    for source in ("jobs", "< jobs"):
        done = sh(program, f"{COMMAND} --gpus 0 --joblog jobs {source}")
        assert (done.returncode, done.stdout) == (2, "")
        assert "that is the file that the commands are read from" in done.stderr
    assert (program.directory / "jobs").read_text() == "echo x\n"
    assert sh(program, f"{COMMAND} --gpus 0 --joblog /dev/null < jobs").returncode == 0


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
    (program.directory / "jobs").write_text("false\n" * 20_000)
    process = program.start("--gpus", "0-3", "--dry-run", "jobs", stdout=writing)
    os.close(writing)
    got = b""
    while chunk := os.read(reading, 4096):
        got += chunk
    assert len(got.splitlines()) == 20_000
    assert process.wait(timeout=60) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_full_stderr_at_the_end_can_be_left(program: Program, number: int) -> None:
    process = program.start("--gpus", "0-3", "--joblog", "log")
    program.feed(process, "false\n" * 1500 + ": last\n")
    until(has_text(program.directory / "log", ": last"))
    until(lambda: process.poll() is not None or process.send_signal(number))


UNCHECKED = (
    b"NVML was not found (libnvidia-ml.so.1, part of the NVIDIA driver): whether others use the GPUs is not checked\n"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_start_up_ends_it_without_a_word(program: Program, number: int) -> None:
    """Whenever it comes; while Python itself starts and loads our first file, it may say what it says of Ctrl-C."""
    for milliseconds in range(4, 84, 3):
        process = program.start("--gpus", "0", env=UNMEASURED)
        time.sleep(milliseconds / 1000)  # the moment is what is tested; whatever it is, it must go well
        process.send_signal(number)
        program.feed(process, "")
        err = process.communicate(timeout=60)[1]
        assert process.returncode in (-number, 128 + number, 0) or b"KeyboardInterrupt" in err, (milliseconds, err)
        assert (
            b"KeyboardInterrupt" in err
            or err in (b"", UNCHECKED, UNCHECKED + b"no commands were read\n")
            or b"stopping; no new jobs" in err
        )
        assert b"_code_of" not in err, milliseconds


def test_a_named_pipe_that_is_not_held_open_waits_for_its_first_writer(program: Program) -> None:
    fifo = program.directory / "fifo"
    os.mkfifo(fifo)
    process = program.start("--gpus", "0", "--no-follow", "fifo")
    fifo.write_text("echo x\n")
    assert process.communicate(timeout=60)[0] == b"x\n"
    assert process.returncode == 0


def test_a_shell_by_a_relative_path_is_found_from_another_directory(program: Program) -> None:
    done = sh(program, f"cd /; echo pwd | {COMMAND} --gpus 0 --shell bin/sh --chdir {program.directory}")
    assert (done.returncode, done.stdout) == (0, f"{program.directory}\n")


# Jobs.


def test_a_job_that_ignores_term_does_not_survive_a_grace_period_of_nothing(program: Program) -> None:
    jobs = "trap '' TERM; while :; do sleep 0.05; done\n" * 40
    done = program.run("--gpus", "0-7", "--timeout", "0.002", "--grace", "0", stdin=jobs)
    assert b"0 succeeded, 0 failed, 40 timed out" in done.stderr


def test_the_third_ctrl_c_hurries_the_end_of_leftovers(program: Program, pids: Pids) -> None:
    process = program.start("--gpus", "0", "--grace", "1000")
    daemon = "setsid sh -c 'trap \"\" TERM; echo $$ > left; while :; do sleep 0.05; done' &"
    program.feed(process, f"{daemon} while [ ! -s left ]; do sleep 0.01; done\n")
    left = pids("left")
    until(lambda: process.poll() is not None or process.send_signal(signal.SIGINT))
    assert not is_alive(left)


def test_a_nested_scheduler_that_is_killed_leaves_nothing(program: Program, pids: Pids) -> None:
    inner = f"echo 'echo $$ > inner; exec sleep 1000' | {COMMAND} --gpus 5 & while [ ! -s inner ]; do sleep 0.01; done"
    check = "kill -0 $(cat inner) 2>/dev/null && touch still_there; touch go"
    process = program.start("--gpus", "0 1", "--grace", "0.5", env=UNMEASURED)
    program.feed(process, f"while [ ! -e go ]; do sleep 0.01; done\n{inner}; kill -9 $!\n{check}\n")
    left = pids("inner")
    process.communicate(timeout=60)
    assert not (program.directory / "still_there").exists()
    assert not is_alive(left)


def test_a_daemon_without_environment_and_session_is_gone_while_an_older_job_runs(program: Program, pids: Pids) -> None:
    leave = (
        "sleep 0.1; env -i setsid sh -c 'echo $$ > left; exec sleep 1000' & while [ ! -s left ]; do sleep 0.01; done"
    )
    check = "kill -0 $(cat left) 2>/dev/null && touch still_there; touch go"
    process = program.start("--gpus", "0 1", "--grace", "0.5")
    program.feed(process, f"while [ ! -e go ]; do sleep 0.01; done\n{leave}\n{check}\n")
    left = pids("left")
    process.communicate(timeout=60)
    assert not (program.directory / "still_there").exists()
    assert not is_alive(left)


THREAD_LIVES_ON = """
import ctypes, os, threading, time
os.setsid()
open("left", "w").write(str(os.getpid()) + "\\n")
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_daemon_whose_main_thread_has_gone_is_ended(program: Program) -> None:
    (program.directory / "daemon.py").write_text(THREAD_LIVES_ON)
    wait = "while [ ! -s left ] || ! grep -q ') Z' /proc/$(cat left)/stat; do sleep 0.01; done"
    process = program.start("--gpus", "0", "--grace", "0.5")
    program.feed(process, f"{sys.executable} daemon.py & {wait}\n")
    process.communicate(timeout=60)
    assert not Path(f"/proc/{(program.directory / 'left').read_text().strip()}").exists()


DOUBLE_FORK = """
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int pause = atoi(argv[1]);
    if (fork()) return 0;
    setsid();
    usleep(pause);
    if (fork()) return 0;
    usleep(pause / 2);
    if (fork()) return 0;
    execlp("sleep", "sleep", argv[2], NULL);
}
"""


def test_no_daemon_slips_through_while_it_forks(program: Program) -> None:
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("this needs a C compiler: a shell forks too slowly to slip through")
    source = program.directory / "fork.c"
    source.write_text(DOUBLE_FORK)
    subprocess.run([compiler, "-o", program.directory / "fork", source], check=True)
    seconds = f"{1000 + os.getpid()}.25"  # so that they are found again
    jobs = "".join(f"./fork {number * 20} {seconds}\n" for number in range(150))
    for gpus in ("0", "0-3"):
        process = program.start("--gpus", gpus, "-q")
        program.feed(process, jobs)
        process.communicate(timeout=60)
        assert process.returncode == 0
        found = [path for path in Path("/proc").glob("[0-9]*/cmdline") if seconds.encode() in path.read_bytes()]
        assert found == []
