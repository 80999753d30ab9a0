"""What jobs leave running, however well it hides."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import SCHEDULER, UNMEASURED, Program, is_alive, needs, until
from tests.support.processes import command_lines

pytestmark = pytest.mark.unmeasured  # what its programs run is measured elsewhere

COMMAND = " ".join(SCHEDULER)
Pids = Callable[[str], int]


# Jobs.


MULTIPROCESSING = """
import multiprocessing as m
if __name__ == "__main__":
    m.set_start_method("forkserver")
    m.Pool(1).map(abs, [1])
"""


def test_the_helpers_of_multiprocessing_end_by_themselves_and_nothing_is_said(program: Program) -> None:
    (program.directory / "train.py").write_text(MULTIPROCESSING)
    done = program.run("--gpus", "0", "-v", stdin=f"{sys.executable} train.py\n" * 3)
    assert b"left" not in done.stderr
    assert b"3 succeeded" in done.stderr


def test_a_terminal_server_is_called_by_its_name_and_ended(program: Program) -> None:
    needs("tmux")
    server = "tmux -f /dev/null -S socket new-session -d 'echo $$ > left; exec sleep 1000'"
    shutil.copy("/bin/sleep", program.directory / "screen")  # by its name one is told from others
    done = program.run(
        "--gpus", "0", stdin=f"unset TMUX; {server}; until test -s left; do sleep 0.01; done\n./screen 1000 &\n"
    )
    for number, name in ((1, "tmux"), (2, "screen")):
        said = (
            f"job {number} (line {number}) left a {name} server running; it was ended, with everything that ran in it"
        )
        assert f"{said}; to keep sessions, start {name} before the run, not in a job\n".encode() in done.stderr
    assert not is_alive(int((program.directory / "left").read_text()))


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
    process.communicate(timeout=120)
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
    process.communicate(timeout=120)
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
    process.communicate(timeout=120)
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
    for gpus, count in (("0", 20), ("0-7", 120)):  # each of them has half a second to end by itself
        process = program.start("--gpus", gpus, "-q")
        program.feed(process, "".join(f"./fork {number * 3000 // count} {seconds}\n" for number in range(count)))
        process.communicate(timeout=120)
        assert process.returncode == 0
        assert [line for line in command_lines().values() if seconds.encode() in line] == []
