"""Two schedulers never use one GPU at once, even if one is killed, suspended or inside another. With real processes."""

import ast
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from simple_gpu_scheduler.gpus.leases.directory import LeaseFiles
from simple_gpu_scheduler.gpus.leases.lease import FileLease
from tests.conftest import SCHEDULER, Program, has_text, is_alive, until
from tests.support.processes import states_of
from tests.support.sharing import (
    ALONE,
    LEASE,
    UID,
    held,
    in_line,
    is_leased,
    leases,
    lonely,
    needs_users,
    unmeasured,
    were_alone,
)

pytestmark = pytest.mark.unmeasured  # what its programs run is measured elsewhere

Pids = Callable[[str], int]


def finish(*processes: "subprocess.Popen[bytes]") -> str:
    """Wait for their end; all that they said."""
    return "".join(process.communicate(timeout=120)[1].decode() for process in processes)


def start(program: Program, commands: str, *args: str) -> "subprocess.Popen[bytes]":
    """Start a scheduler that may be killed."""
    process = program.start(*(args or ALONE), env=unmeasured())
    program.feed(process, commands)
    return process


def file_lease(name: str = LEASE) -> FileLease:
    return FileLease(LeaseFiles(str(leases())), "0", name, SimpleQueue().put)


def test_two_schedulers_never_run_jobs_on_one_gpu_at_the_same_time(program: Program) -> None:
    processes = [program.start(*ALONE) for _ in range(2)]
    for process in processes:
        program.feed(process, f"{lonely(program.directory)}\n" * 100)
    finish(*processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert were_alone(program.directory)


def test_a_run_that_was_stopped_takes_no_gpu_that_it_had_waited_for(program: Program) -> None:
    until_done = "until [ -e {} ]; do sleep 0.05; done".format
    first = start(program, f"touch runs; {until_done('first')}\n")
    until((program.directory / "runs").exists, "the first has it")
    second = start(program, "echo second\n", *ALONE, "--notify", f"touch notifies; {until_done('second')}")
    until(in_line, "the second waits for it")
    second.send_signal(signal.SIGTERM)
    until((program.directory / "notifies").exists, "it ends")
    (program.directory / "first").touch()
    assert first.wait(timeout=120) == 0
    third = start(program, "touch third\n")
    until((program.directory / "third").exists, "the third runs")
    assert second.poll() is None
    (program.directory / "second").touch()
    finish(first, second, third)


@pytest.mark.parametrize("seed", range(3))
def test_wide_and_narrow_jobs_of_three_schedulers_neither_meet_nor_block_each_other(
    program: Program, seed: int
) -> None:
    chance = random.Random(seed)
    orders = ["0,1,2,3", "3,2,1,0", "2,0,3,1"]
    processes = [program.start("--gpus", gpus, "--ignore-occupancy", "--quiet") for gpus in orders]
    for process in processes:
        widths = [chance.choice([1, 1, 2, 2, 3, 4]) for _ in range(30)]
        program.feed(process, "".join(f"{lonely(program.directory)} #: gpus={width}\n" for width in widths))
    finish(*processes)
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert were_alone(program.directory)
    assert len((program.directory / "done").read_text().split()) == 90


def test_two_schedulers_that_want_the_same_two_gpus_do_not_block_each_other(program: Program) -> None:
    processes = [program.start("--gpus", gpus, "--ignore-occupancy") for gpus in ("0 1", "1 0")]
    for process in processes:
        program.feed(process, f"{lonely(program.directory)} #: gpus=2\n" * 40)
    finish(*processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert were_alone(program.directory)


def test_schedulers_that_are_killed_leave_their_gpus_neither_too_early_nor_never(program: Program) -> None:
    """A killed one's job runs on, and so long the others wait; also where the killed one was first in line."""
    chance = random.Random(1)
    gpus = ("--gpus", "0 1", "--ignore-occupancy", "--quiet")
    stay = [program.start(*gpus) for _ in range(2)]
    for process in stay:
        program.feed(process, f"{lonely(program.directory, 0.02)}\n" * 60)
    for _ in range(8):
        doomed = start(program, f"{lonely(program.directory, 0.1)}\n" * 10, *gpus)
        time.sleep(chance.uniform(0.05, 0.4))
        doomed.kill()
        doomed.wait()
    finish(*stay)
    assert [process.returncode for process in stay] == [0, 0]
    assert were_alone(program.directory)


def test_while_the_job_of_a_killed_scheduler_runs_its_gpu_stays_leased(program: Program, pids: Pids) -> None:
    first = start(program, "echo $$ > pid; exec sleep 1000\n")
    job = pids("pid")
    first.kill()
    first.wait()
    second = start(program, "touch second\n")
    until(lambda: in_line() == 1)
    assert is_alive(job)
    assert not (program.directory / "second").exists()
    os.kill(job, signal.SIGKILL)
    finish(second)
    assert (program.directory / "second").exists()


def test_while_a_child_of_the_job_of_a_killed_scheduler_runs_its_gpu_stays_leased(program: Program, pids: Pids) -> None:
    first = start(
        program,
        "sh -c 'sh -c \"echo \\$\\$ > grandchild; exec sleep 1000\" &' & echo $$ > pid; wait; exec sleep 1000\n",
    )
    job, grandchild = pids("pid"), pids("grandchild")
    first.kill()
    first.wait()
    second = start(program, "touch second\n")
    until(lambda: in_line() == 1)
    assert not (program.directory / "second").exists()
    os.kill(job, signal.SIGKILL)
    until((program.directory / "second").exists)
    assert not is_alive(grandchild), "its keeper has ended it before"
    finish(second)


@pytest.mark.parametrize("width", [1, 8, 64])
def test_a_job_inherits_the_lease_of_each_of_its_gpus(program: Program, width: int) -> None:
    script = """
import os
fds = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd") if int(fd) > 9]
print([os.readlink(fd) for fd in fds])
"""
    (program.directory / "show.py").write_text(script)
    # The last of 64: the descriptors of their files are as high as those that a job inherits.
    done = program.run("--gpus", "0-63", "--ignore-occupancy", stdin=f"exec {sys.executable} show.py #: gpus={width}\n")
    assert done.returncode == 0
    inherited = {name for name in ast.literal_eval(done.stdout.decode()) if name.startswith(str(leases()))}
    assert len(inherited) == width


def test_a_lease_that_others_have_inherited_is_given_back_anyway() -> None:
    ours, theirs = file_lease(), file_lease()
    assert ours.take()
    daemon = subprocess.Popen(["sleep", "1000"], pass_fds=[ours.descriptor])
    try:
        assert not theirs.take()
        ours.release()
        assert theirs.take()
    finally:
        daemon.kill()
        daemon.wait()
    theirs.close()
    ours.close()


def test_what_a_job_has_left_and_this_user_may_not_end_does_not_keep_the_gpu(program: Program, pids: Pids) -> None:
    needs_users()
    # Root that may not signal others: what is beyond any other user is beyond it too.
    command = ["setpriv", "--bounding-set=-kill", "--inh-caps=-kill", *SCHEDULER, *ALONE, "--grace", "0.1"]
    first = subprocess.Popen(
        command, cwd=program.directory, env=unmeasured(), stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    program._started.append(first)
    leave = f"setsid setpriv --reuid={UID} --clear-groups sleep 1000 2>&- & echo $! > left"
    wait = f'while [ "$(stat -c %u /proc/$(cat left))" != {UID} ]; do sleep 0.01; done'
    assert first.stdin
    first.stdin.write(f"{leave}; {wait}\n".encode())
    first.stdin.flush()
    left = pids("left")
    second = start(program, "touch second\n")
    finish(second)
    assert (program.directory / "second").exists()
    assert is_alive(left)
    assert any(os.readlink(f"/proc/{left}/fd/{fd}") == str(leases() / LEASE) for fd in os.listdir(f"/proc/{left}/fd"))
    finish(first)


def test_a_holder_that_is_killed_with_nothing_running_loses_its_lease_at_once(program: Program) -> None:
    script = """
import time
from simple_gpu_scheduler import lease
with lease(gpus=[0], ignore_occupancy=True):
    print(flush=True)
    time.sleep(1000)
"""
    with subprocess.Popen([sys.executable, "-c", script], env=unmeasured(), stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout
            holder.stdout.readline()
            process = start(program, "touch done\n")
            until(lambda: in_line() == 1)
            assert not (program.directory / "done").exists()
        finally:
            holder.kill()
    process.wait(timeout=120)
    assert (program.directory / "done").exists()


def test_a_scheduler_killed_when_first_in_line_leaves_it(program: Program) -> None:
    with held():
        first = start(program, "touch first\n")
        until(lambda: in_line() == 1)
        second = start(program, "touch second\n")
        until(lambda: in_line() == 2)
        first.kill()
        first.wait()
    finish(second)
    assert (program.directory / "second").exists()
    assert not (program.directory / "first").exists()


def test_a_scheduler_suspended_when_first_in_line_is_passed_after_some_seconds(program: Program) -> None:
    with held():
        first = start(program, f"{lonely(program.directory, word='first')}\n")
        until(lambda: in_line() == 1)
        second = start(program, f"{lonely(program.directory, word='second')}\n")
        until(lambda: in_line() == 2)
        first.send_signal(signal.SIGSTOP)
        until(lambda: states_of(first.pid) == {"T"})  # all of it: a thread that was still awake could get the lease
    finish(second)
    assert second.returncode == 0
    first.send_signal(signal.SIGCONT)
    finish(first)
    assert first.returncode == 0
    assert (program.directory / "done").read_text().split() == ["second", "first"]
    assert were_alone(program.directory)


def test_a_scheduler_suspended_while_its_job_runs_keeps_the_gpu(program: Program, pids: Pids) -> None:
    first = start(program, "echo $$ > pid; exec sleep 1000\n")
    pids("pid")
    first.send_signal(signal.SIGSTOP)
    second = start(program, "touch second\n")
    assert second.stderr
    while b"waiting: gpu 0: leased by" not in second.stderr.readline():
        pass
    assert in_line() == 1
    assert not (program.directory / "second").exists()
    second.terminate()
    first.send_signal(signal.SIGCONT)
    first.terminate()
    finish(first, second)


def test_a_stopped_run_that_waits_in_line_leaves_it(program: Program) -> None:
    with held():
        first, second = start(program, "true\n"), start(program, "touch second\n")
        until(lambda: in_line() == 2)
        first.send_signal(signal.SIGINT)
        finish(first)
        assert first.returncode == 130
        until(lambda: in_line() == 1, "only the other is in line, at the turnstile or behind it")
    finish(second)
    assert (program.directory / "second").exists()


def test_nothing_is_leased_when_nothing_runs_or_waits(program: Program) -> None:
    process = program.start(*ALONE)
    assert process.stdin
    for number in range(20):
        process.stdin.write(b"echo\n")
        process.stdin.flush()
        assert process.stdout
        process.stdout.readline()
        until(lambda: not is_leased(), f"after job {number}")
    program.feed(process, "")
    finish(process)


def test_the_record_names_the_process_of_the_job_and_holds_nothing_that_was_typed_but_a_name(
    program: Program, pids: Pids
) -> None:
    process = start(program, "export SECRET=hunter2; echo $$ > pid; exec sleep 1000 #: name=precious\n")
    job = pids("pid")
    until(has_text(leases() / LEASE, str(job)))
    files = {path.name: path.read_bytes() for path in leases().iterdir()}
    assert set(files) == {LEASE, f"{LEASE}.next"}
    word, pid, mark, *named = files[LEASE].split()
    assert (word, int(pid)) == (b"sgs1", job)
    assert named == [b"job", b"1", b"of", b"%d" % job, b"precious"]  # what was typed as a name
    run, number, attempt = mark.rsplit(b".", 2)
    assert run[:1] == b"/"
    assert run[1:].replace(b"-", b"").isalnum()
    assert (number, attempt) == (b"1", b"1")
    for contents in files.values():
        assert len(contents) < 4096
        for typed in (b"SECRET", b"hunter2", b"sleep", b"gpus"):
            assert typed not in contents
    process.terminate()
    finish(process)
