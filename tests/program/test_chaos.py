"""The short forms of the faults that a run must survive; `bin/chaos` runs the long ones."""

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, UNMEASURED, until

sys.path.append(str(ROOT / "benchmarks"))
import chaos
from faults import disks, flapping, journals
from faults.ground import Counts

Survive = Callable[[str], Counts]


@pytest.fixture
def survive(tmp_path: Path) -> Survive:
    """Brings a fault about, with the same random moments each time."""

    def bring_about(name: str) -> Counts:
        try:
            return chaos.QUICK[name](tmp_path / "ground", random.Random(name))
        except (disks.NoDiskError, journals.NoCompilerError, flapping.NoStandInError) as error:
            pytest.skip(f"it cannot be tried here: {error}")

    return bring_about


def test_a_run_whose_scheduler_is_killed_again_and_again_runs_every_job_once(survive):
    counts = survive("kills")

    assert counts["kills"] == 12
    assert not counts["started again"]


def test_what_was_written_to_a_pipe_is_run_once_however_often_its_reader_is_killed(survive):
    counts = survive("pipe-kills")

    assert counts["kills"] == 12
    assert counts["accepted"]


def test_each_line_of_a_followed_file_runs_once_whatever_is_done_to_the_file_and_its_follower(survive):
    counts = survive("follower-kills")

    assert counts["kills"] == 8
    assert counts["jobs"]


# Kills a scheduler when it has opened the pipe and its keeper has not got it yet, just behind a writer.
_KILLED_EARLY = """
import os, signal
from simple_gpu_scheduler.inputs import gather as inputs; from simple_gpu_scheduler.cli.main import simple_gpu_scheduler

def write_and_kill(*_args, **_settings):
    try:
        fd = os.open("queue.fifo", os.O_WRONLY | os.O_NONBLOCK)
        os.write(fd, b"echo ran >> out #: gpus=0\\n")
        open("accepted", "w").close()
    except OSError:
        pass
    os.kill(os.getpid(), signal.SIGKILL)

inputs.spooled = write_and_kill
simple_gpu_scheduler()
"""


def test_what_was_written_while_a_run_resumes_is_not_lost(program, tmp_path):
    scheduler = program.start("--gpus", "0", "--follow", "queue.fifo")
    until(lambda: list(tmp_path.glob("state/*/runs/*.sock")), "it reads")
    scheduler.kill()
    scheduler.wait()
    early = [sys.executable, "-c", _KILLED_EARLY, "--resume"]
    subprocess.run(early, cwd=tmp_path, env=UNMEASURED, stdin=subprocess.DEVNULL, check=False, timeout=120)
    done = program.run("--resume", "--no-follow")

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").exists() == (tmp_path / "accepted").exists()


def test_a_suspended_scheduler_and_keeper_continue(survive):
    counts = survive("stops")

    assert counts["stops of the scheduler"]
    assert counts["stops of the keeper"]


def test_a_run_continues_without_its_keeper_and_knows_every_exit_code(survive):
    assert survive("keeper-kills")["kills"] == 3


def test_no_job_runs_beside_itself_when_scheduler_and_keeper_are_killed_at_once(survive):
    assert survive("both-killed")["kills"] == 6


def test_a_full_disk_stops_no_job_and_is_reported(survive):
    counts = survive("full-disk")

    assert counts.pop("jobs, leases full") == 0  # nothing is started without a lease
    assert set(counts.values()) == {40}


def test_a_journal_that_is_cut_anywhere_can_be_resumed(survive):
    counts = survive("cut-journal")

    assert counts["cuts, looked at"] > 100
    assert counts["cuts, resumed"] == 4


def test_a_clock_that_is_set_back_changes_nothing(survive):
    assert survive("clock")["jobs"] == 60


def test_very_many_waiting_jobs_are_resumed(survive):
    assert survive("many-waiting")["jobs waiting"] == 20_000


def test_of_very_many_writers_at_once_each_is_heard(survive):
    assert survive("many-writers")["jobs"] == 200


def test_a_run_continues_when_its_terminal_is_gone(survive):
    assert survive("no-terminal")["jobs"] == 40


def test_every_job_succeeds_once_on_gpus_that_fail_and_work_again(survive):
    counts = survive("flapping")

    assert counts["jobs"] == 60
    assert counts["changes of the GPUs"]
