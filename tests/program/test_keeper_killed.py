"""A keeper that is killed or suspended while much else happens: what it ran is neither lost nor left behind."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from tests.conftest import SCHEDULER, Program, has_text, is_alive, until
from tests.support.journal import records
from tests.support.processes import of_directory, states_of
from tests.support.sharing import ALONE, UID, as_user, is_leased, needs_users, unmeasured

pytestmark = pytest.mark.unmeasured  # what its programs run is measured elsewhere

Pids = Callable[[str], int]
Records = list[dict[str, Any]]


def start(program: Program, commands: str, *args: str) -> "subprocess.Popen[bytes]":
    """Start a scheduler that says what it says in a file, which it can never fill."""
    (program.directory / "jobs").write_text(commands)
    with (program.directory / "said").open("wb") as said:
        return program.start(*args, "jobs", stdin=subprocess.DEVNULL, stderr=said, env=unmeasured())


def journal_of(program: Program) -> Records:
    [journal] = (program.directory / "state").rglob("*.jsonl")
    return records(journal.read_bytes())


def check_nothing_is_left(program: Program, gpus: int) -> None:
    until(lambda: not of_directory(program.directory), "no process is left")
    assert not [gpu for gpu in range(gpus) if is_leased(f"index-{gpu}")]


# Many short jobs.


class ShortJobs:
    """A run of many, each of which notes its number and its parent; one third fails with 1, and one with 2."""

    def __init__(self, program: Program, count: int, gpus: int, seconds: float) -> None:
        self.program, self.gpus = program, gpus
        self.codes = {job: job % 3 for job in range(1, count + 1)}
        self.notes = program.directory / "notes"
        self.notes.touch()
        commands = [f"echo $SGS_JOB $PPID >> notes; sleep {seconds}; exit {code}\n" for code in self.codes.values()]
        where = ("--gpus", f"0-{gpus - 1}", "--ignore-occupancy", "--quarantine", "0")
        self.process = start(program, "".join(commands), *where)
        self.not_keepers = {self.process.pid}  # the parent of a job whose keeper was just killed is its scheduler

    def begun(self) -> list[tuple[int, int]]:
        """For each attempt in turn, its job and the parent that it had."""
        return [(int(job), int(parent)) for job, parent in map(str.split, self.notes.read_text().splitlines())]

    def kill_keeper(self, after: int) -> None:
        """Kill it once a new one runs jobs, and so many attempts have begun."""

        def keepers() -> set[int]:
            begun = self.begun()
            return {parent for _, parent in begun if len(begun) >= after} - self.not_keepers

        until(keepers, "it has a keeper that runs jobs")
        [keeper] = keepers()
        os.kill(keeper, signal.SIGKILL)
        self.not_keepers.add(keeper)

    def check(self, kills: int) -> None:
        """It ended as it should, though its keeper was killed so often: each job ran once, and has its own end."""
        code = self.process.wait(timeout=120)
        journal, said = journal_of(self.program), (self.program.directory / "said").read_text()
        assert Counter(job for job, _ in self.begun()) == dict.fromkeys(self.codes, 1)
        assert said.count("the keeper process was killed") == kills
        assert "Traceback" not in said
        for job in self.codes:
            self._check_job(job, [record for record in journal if record.get("job") == job])
        self._check_summary(code, journal[-1], said.splitlines()[-1])
        check_nothing_is_left(self.program, self.gpus)

    def _check_job(self, job: int, of_it: Records) -> None:
        """Its last attempt alone has a result. Those before it, if any, had not begun when their keeper was killed."""
        happened = [record["event"] for record in of_it]
        starts = happened.count("job started")
        assert happened == ["job read", *["job started", "job requeued"] * (starts - 1), "job started", "job ended"]
        assert {record["why"] for record in of_it if "why" in record} <= {"its exit code is unknown"}
        assert (of_it[-1]["code"], of_it[-1]["final"]) == (self.codes[job], True)

    def _check_summary(self, code: int, ended: dict[str, Any], summary: str) -> None:
        succeeded = sum(not code for code in self.codes.values())
        failed = len(self.codes) - succeeded
        assert ended["event"] == "run ended"
        assert (ended["succeeded"], ended["failed"], ended["timed_out"]) == (succeeded, failed, 0)
        assert (ended["not_started"], ended["left"], ended["all_read"]) == (0, 0, True)
        assert summary.startswith(f"{succeeded} succeeded, {failed} failed, 0 timed out, 0 not started")
        assert code == ended["code"] == 1


def test_every_job_ends_once_though_its_keeper_is_killed_again_and_again(program: Program) -> None:
    seed = random.randrange(1_000_000)
    print("seed", seed)
    chance, begun = random.Random(seed), 0
    run = ShortJobs(program, 300, gpus=4, seconds=0.02)
    for _ in range(5):
        begun += chance.randrange(5, 40)
        run.kill_keeper(begun)
        time.sleep(chance.uniform(0, 0.02))  # so that it is not always an attempt that has just begun
    run.check(kills=5)


def test_all_jobs_on_many_gpus_end_though_their_keeper_is_killed(program: Program) -> None:
    run = ShortJobs(program, 300, gpus=64, seconds=0.2)
    run.kill_keeper(150)
    run.check(kills=1)


# A keeper that is killed right after its first start, at some moment, and before it has noted the pid.

KILLED_AFTER_A_START = """
import os, signal
from simple_gpu_scheduler.system import processes

start = processes.Starter.start

def start_and_be_killed(*args):
    pid = start(*args)
    try:
        open("killed", "x").close()
    except FileExistsError:
        return pid
    {moment}
    os.kill(os.getpid(), signal.SIGKILL)

processes.Starter.start = start_and_be_killed
"""
ONCE_THE_JOB_HAS_ENDED = KILLED_AFTER_A_START.format(moment="processes.wait_for_end(pid)")
AT_ONCE_WITHOUT_TAGS = """
from simple_gpu_scheduler.keeper import survivors
from simple_gpu_scheduler.system import processes

processes.HAS_TAGS = survivors.HAS_TAGS = False
""" + KILLED_AFTER_A_START.format(moment="pass")
RUN = """
import sys
from simple_gpu_scheduler.cli.main import simple_gpu_scheduler

sys.argv[0] = "simple_gpu_scheduler"
simple_gpu_scheduler()
"""


def check_it_runs_once(program: Program, command: str, patch: str) -> None:
    """It fails with 3, which becomes known, and neither it nor the next job runs again."""
    (program.directory / "jobs").write_text(f"echo first >> begun; {command}\necho second >> begun\n")
    done = subprocess.run(
        [sys.executable, "-c", patch + RUN, *ALONE, "jobs"],
        cwd=program.directory,
        env=unmeasured(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert b"job 1 (line 1 of jobs) failed with exit code 3" in done.stderr
    assert b"the keeper process was killed" in done.stderr
    assert (program.directory / "begun").read_text() == "first\nsecond\n"
    check_nothing_is_left(program, 1)


@pytest.mark.parametrize("command", ["exit 3", "exec env -i sh -c 'exit 3'"])
def test_how_a_job_ended_is_known_though_its_keeper_is_killed_before_it_knows_of_the_start(
    program: Program, command: str
) -> None:
    check_it_runs_once(program, command, ONCE_THE_JOB_HAS_ENDED)


SAYS_LATE_THAT_IT_WORKS = """
import time
from simple_gpu_scheduler.keeper.messages import Ready
from simple_gpu_scheduler.keeper.process import Keeper

tell = Keeper._tell

def tell_late(keeper, message):
    if isinstance(message, Ready):
        time.sleep(0.5)
    return tell(keeper, message)

Keeper._tell = tell_late
"""


def test_a_job_does_not_run_again_though_it_kills_its_keeper_before_that_says_that_it_works(program: Program) -> None:
    """From a keeper that never worked, a scheduler takes back what it gave it."""
    check_it_runs_once(program, "kill -9 $PPID; exit 3", SAYS_LATE_THAT_IT_WORKS)


@pytest.mark.open_to_others
def test_a_job_that_became_another_user_is_recognised_too(program: Program) -> None:
    """As with `sudo`: only root may read the environment of a process of root, where the mark is."""
    needs_users()
    program.directory.chmod(0o777)
    shutil.copy("/bin/cat", program.directory / "as-root")
    (program.directory / "as-root").chmod(0o4755)
    os.mkfifo(program.directory / "go")
    (program.directory / "go").chmod(0o666)
    for name in ("leases", "state"):
        (program.directory / name).mkdir()
        (program.directory / name).chmod(0o1777)
    environment = {
        "SGS_LEASE_DIR": str(program.directory / "leases"),
        "XDG_STATE_HOME": str(program.directory / "state"),
    }
    is_root = '[ "$(stat -c %u /proc/$(cat begun))" = 0 ]'
    (program.directory / "jobs").write_text(
        "echo $$ >> begun; exec ./as-root go  #: gpus=0\n"
        f"until [ -s begun ] && {is_root}; do sleep 0.01; done; kill -9 $PPID; sleep 1; echo > go  #: gpus=0\n"
    )
    done = subprocess.run(
        [*as_user(UID), *SCHEDULER, *ALONE, "--cpu-slots", "2", "jobs"],
        cwd=program.directory,
        env=unmeasured() | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert b"\n2 succeeded, 0 failed" in done.stderr
    assert len((program.directory / "begun").read_text().splitlines()) == 1


def test_where_there_are_no_tags_a_job_whose_keeper_is_killed_is_found_while_it_runs(program: Program) -> None:
    check_it_runs_once(program, "sleep 5; exit 3", AT_ONCE_WITHOUT_TAGS)


# Survivors that are to end.


def test_how_a_job_ended_is_known_though_its_keeper_is_killed_while_it_ends_what_that_left(
    program: Program, pids: Pids
) -> None:
    """What is left may look like the job: it leads a session too, and has the same mark and tag."""
    daemon = "trap '' TERM; echo $$ > daemon; while :; do sleep 0.05; done"
    (program.directory / "daemon.sh").write_text(daemon)
    job = "echo $PPID > keeper; echo $$ > job; setsid sh daemon.sh & until [ -s daemon ]; do sleep 0.01; done; exit 7"
    run = start(program, f"{job}\necho x > next\n", *ALONE, "--grace", "1")
    keeper, main, left = pids("keeper"), pids("job"), pids("daemon")
    until(lambda: not is_alive(main))
    os.kill(keeper, signal.SIGKILL)
    assert run.wait(timeout=120) == 1
    assert not is_alive(left)
    said = (program.directory / "said").read_text()
    assert "job 1 (line 1 of jobs) failed with exit code 7" in said
    assert said.splitlines()[-1].startswith("1 succeeded, 1 failed, 0 timed out")
    assert said.count("Processing command") == 2
    check_nothing_is_left(program, 1)


@pytest.mark.parametrize("ignored", ["", "TERM"])
@pytest.mark.parametrize(("of_the_run", "of_the_job"), [(("--timeout", "3"), ""), ((), "#: timeout=3")])
def test_a_job_whose_keeper_was_killed_is_ended_at_its_timeout_and_its_gpu_serves_the_next(
    program: Program, pids: Pids, ignored: str, of_the_run: tuple[str, ...], of_the_job: str
) -> None:
    """One that ignores TERM is killed; the others have time to clean up."""
    trap = "trap '' TERM" if ignored else "trap 'touch cleaned-up; exit 1' TERM"
    job = f"{trap}; echo $PPID > keeper; echo $$ > job; while :; do sleep 0.05; done {of_the_job}\n"
    run = start(program, f"{job}echo $CUDA_VISIBLE_DEVICES > next\n", *ALONE, "--grace", "1", *of_the_run)
    os.kill(pids("keeper"), signal.SIGKILL)
    pids("job")  # so that it is killed if this fails
    assert run.wait(timeout=120) == 1
    said = (program.directory / "said").read_text()
    assert "the keeper process was killed" in said
    assert "job 1 (line 1 of jobs) timed out" in said
    assert said.splitlines()[-1].startswith("1 succeeded, 0 failed, 1 timed out")
    assert (program.directory / "cleaned-up").exists() != bool(ignored)
    assert (program.directory / "next").read_text() == "0\n"
    check_nothing_is_left(program, 1)


def test_a_job_is_asked_once_to_end_also_if_its_keeper_is_killed_then(program: Program, pids: Pids) -> None:
    """A second TERM would tell it that there is no time left."""
    job = "trap 'echo x >> terms' TERM; echo $PPID > keeper; echo $$ > job; until [ -e go ]; do sleep 0.05; done"
    run = start(program, f"{job}\n", *ALONE, "--grace", "1000")
    keeper = pids("keeper")
    assert program.run("cancel", "1").returncode == 0
    until(has_text(program.directory / "terms"))
    until(lambda: states_of(keeper) == {"S"}, "it has nothing more to say")
    os.kill(keeper, signal.SIGKILL)
    until(has_text(program.directory / "said", "the keeper process was killed"))
    assert program.run("status").returncode == 0  # which is answered after what follows from that
    (program.directory / "go").touch()
    assert run.wait(timeout=120) == 1
    assert (program.directory / "terms").read_text() == "x\n"


# A keeper that is suspended.

HOLD = "echo $PPID > keeper; echo $$ > job; while :; do sleep 0.05; done"
SLEEPER = "echo $PPID > keeper; echo $$ > job; exec sleep 1000\n"


@contextmanager
def suspended(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    until(lambda: states_of(pid) == {"T"}, "it is suspended")
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # it was killed
            os.kill(pid, signal.SIGCONT)


def test_a_job_that_is_cancelled_while_its_keeper_is_suspended_ends_once_that_continues(
    program: Program, pids: Pids
) -> None:
    run = start(program, SLEEPER, *ALONE, "--grace", "1000")
    keeper, job = pids("keeper"), pids("job")
    with suspended(keeper):
        cancelled = program.run("cancel", "1")
        assert (cancelled.returncode, cancelled.stdout) == (0, b"job 1: cancelling\n"), cancelled.stderr
        assert is_alive(job)
    assert run.wait(timeout=120) == 1
    assert "job 1 (line 1 of jobs) was cancelled" in (program.directory / "said").read_text()
    check_nothing_is_left(program, 1)


def test_ctrl_c_twice_while_the_keeper_is_suspended_ends_the_run_once_that_continues(
    program: Program, pids: Pids
) -> None:
    run = start(program, SLEEPER, *ALONE, "--grace", "1000")
    keeper, job = pids("keeper"), pids("job")
    with suspended(keeper):
        for says in ("waiting for 1 running job", "ending 1 running job"):
            run.send_signal(signal.SIGINT)
            until(has_text(program.directory / "said", says), "it has understood")
        assert program.run("stop").returncode == 0  # it answers
        assert is_alive(job)
    assert run.wait(timeout=120) == 130
    assert (
        "0 succeeded, 0 failed, 0 timed out, 0 not started, 1 interrupted" in (program.directory / "said").read_text()
    )
    check_nothing_is_left(program, 1)


def test_a_job_that_is_cancelled_while_its_keeper_is_suspended_is_asked_to_end_though_that_is_killed(
    program: Program, pids: Pids
) -> None:
    run = start(program, f"trap 'touch cleaned-up; exit 3' TERM; {HOLD}\n", *ALONE, "--grace", "1000")
    keeper = pids("keeper")
    with suspended(keeper):
        assert program.run("cancel", "1").returncode == 0
        os.kill(keeper, signal.SIGKILL)
    assert run.wait(timeout=120) == 1
    assert (program.directory / "cleaned-up").exists()
    assert "job 1 (line 1 of jobs) was cancelled" in (program.directory / "said").read_text()
    check_nothing_is_left(program, 1)
