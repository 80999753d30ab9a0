"""Schedulers of different users share the directory of leases, whichever of them made it, and exclude each other."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Program, has_text, until
from tests.support.sharing import ALONE, LEASE, UID, as_user, in_line, lonely, needs_users, start_as, were_alone

pytestmark = [pytest.mark.usefixtures("open_directory"), pytest.mark.unmeasured]  # others measure what it runs
OTHER = 4321
MASKS = [0o077, 0o022, 0o000]


@pytest.fixture
def open_directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory like /tmp: pytest's own are closed to others."""
    needs_users()
    with tempfile.TemporaryDirectory(prefix="sgs_users_") as name:
        directory = Path(name)
        directory.chmod(0o1777)
        for note in ("done", "collisions"):
            (directory / note).touch()
            (directory / note).chmod(0o666)
        monkeypatch.setenv("SGS_LEASE_DIR", f"{name}/leases")
        yield directory


@pytest.fixture
def program(open_directory: Path) -> Iterator[Program]:
    program = Program(open_directory)
    yield program
    program.close()


def finish(*processes: "subprocess.Popen[bytes]") -> None:
    for process in processes:
        err = process.communicate(timeout=120)[1]
        assert process.returncode == 0, err


@pytest.mark.parametrize("umask", MASKS)
@pytest.mark.parametrize(("first", "second"), [(UID, 0), (0, UID), (UID, OTHER)])
def test_two_users_exclude_each_other_in_either_order(program: Program, first: int, second: int, umask: int) -> None:
    processes = [start_as(program, uid, *ALONE, umask=umask) for uid in (first, second)]
    for process in processes:
        program.feed(process, f"{lonely(program.directory)}\n" * 2)
    finish(*processes)
    # Now the files are there, made by the faster one.
    again = [start_as(program, uid, *ALONE, umask=umask) for uid in (second, first)]
    for process in again:
        program.feed(process, f"{lonely(program.directory)}\n" * 15)
    finish(*again)
    assert were_alone(program.directory)
    assert len((program.directory / "done").read_text().split()) == 34


def test_the_directory_is_made_so_that_all_can_use_it_and_none_can_delete(program: Program) -> None:
    process = start_as(program, UID, *ALONE, umask=0o077)
    program.feed(process, "true\n")
    finish(process)
    directory = program.directory / "leases"
    assert (directory.stat().st_mode & 0o7777, directory.stat().st_uid) == (0o1777, UID)
    assert {path.stat().st_mode & 0o7777 for path in directory.iterdir()} == {0o666}
    delete = subprocess.run(
        [*as_user(OTHER), "rm", "-f", str(directory / LEASE)], capture_output=True, check=False, timeout=120
    )
    assert delete.returncode == 1
    assert (directory / LEASE).exists()


@pytest.mark.parametrize("umask", MASKS)
def test_users_who_come_at_the_same_moment_all_find_it_usable(program: Program, umask: int) -> None:
    """The directory is made by one of them, and is never seen half made by the others."""
    script = """
import os, sys, time
from simple_gpu_scheduler.gpus.leases.directory import LeaseFiles
umask, directory = int(sys.argv[1]), sys.argv[2]
for round in range(40):
    at = time.monotonic() + 0.004
    children = []
    for uid in (0, 1231, 1232, 1233):
        pid = os.fork()
        if not pid:
            os.umask(umask)
            if uid:
                os.setgid(uid)
                os.setuid(uid)
            while time.monotonic() < at:
                pass
            try:
                LeaseFiles(f"{directory}/{round}").open("file")
            except Exception as error:
                os.write(2, f"{error}\\n".encode())
                os._exit(1)
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(umask), str(program.directory)],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == b""


@pytest.mark.parametrize(("holder", "waiter"), [(UID, 0), (0, UID), (UID, OTHER)])
def test_a_wait_names_the_user_the_process_and_the_program(program: Program, holder: int, waiter: int) -> None:
    first = start_as(program, holder, *ALONE)
    program.feed(first, "echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done\n")
    until(has_text(program.directory / "pid"))
    pid = (program.directory / "pid").read_text().strip()
    second = start_as(program, waiter, *ALONE)
    program.feed(second, "touch second\n")
    assert second.stderr
    line = second.stderr.readline().decode()
    name = "root" if holder == 0 else rf"(user )?\w*{holder}|\w+"
    assert re.fullmatch(rf"waiting: gpu 0: leased by ({name}) \(pid {pid}, job 1 of run \w+\) for \S+ s\n", line)
    assert in_line() == 1
    (program.directory / "go").touch()
    finish(first, second)
    assert (program.directory / "second").exists()


def test_the_killed_scheduler_of_one_user_keeps_its_gpu_from_another_for_as_long_as_its_job_runs(
    program: Program,
) -> None:
    first = start_as(program, UID, *ALONE)
    program.feed(first, "echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done\n")
    until(has_text(program.directory / "pid"))
    first.kill()
    second = start_as(program, OTHER, *ALONE)
    program.feed(second, "touch second\n")
    until(lambda: in_line() == 1)
    assert not (program.directory / "second").exists()
    (program.directory / "go").touch()
    finish(second)
    assert (program.directory / "second").exists()
