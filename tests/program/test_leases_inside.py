"""A scheduler inside a job has the GPUs that the job has, and shares them with the others inside it only."""

import subprocess

import pytest

from tests.conftest import SCHEDULER, Program, until
from tests.support.sharing import ALONE, held, in_line, lonely, unmeasured, were_alone

SGS = " ".join(SCHEDULER)
INSIDE = f"timeout 20 {SGS} --quiet --gpus 0 --ignore-occupancy"


def run(program: Program, commands: str, *args: str) -> "subprocess.CompletedProcess[bytes]":
    return program.run(*(args or ALONE), stdin=commands, env=unmeasured())


def test_a_scheduler_does_not_wait_for_the_job_that_it_runs_in(program: Program) -> None:
    assert run(program, f"echo 'touch ran' | {INSIDE}\n").returncode == 0
    assert (program.directory / "ran").exists()


def test_nor_does_one_inside_that(program: Program) -> None:
    (program.directory / "third").write_text("touch ran\n")
    (program.directory / "second").write_text(f"{INSIDE} third\n")
    assert run(program, f"{INSIDE} second\n").returncode == 0
    assert (program.directory / "ran").exists()


def test_a_job_of_many_can_hold_a_scheduler_again_and_again(program: Program) -> None:
    """What the lease's file says of the job before must not be taken for what it says of this one."""
    assert run(program, f"echo 'echo x >> ran' | {INSIDE}\n" * 10).returncode == 0
    assert (program.directory / "ran").read_text() == "x\n" * 10


def test_two_schedulers_in_one_job_exclude_each_other(program: Program) -> None:
    (program.directory / "jobs").write_text(f"{lonely(program.directory)}\n" * 30)
    done = run(program, f"{INSIDE} jobs & {INSIDE} jobs & wait\n")
    assert done.returncode == 0, done.stderr
    assert were_alone(program.directory)
    assert len((program.directory / "done").read_text().split()) == 60


def test_a_scheduler_inside_a_job_waits_for_a_gpu_that_is_not_the_jobs(program: Program) -> None:
    with held("index-1"):
        process = program.start(*ALONE, env=unmeasured())
        program.feed(process, f"echo 'touch ran' | {SGS} --gpus 1 --ignore-occupancy\n")
        until(lambda: in_line("index-1") == 1)
        assert not (program.directory / "ran").exists()
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert (program.directory / "ran").exists()


def test_a_stranger_waits_for_the_job_and_what_is_inside_it(program: Program) -> None:
    process = program.start(*ALONE, env=unmeasured())
    inside = "touch inside; while [ ! -e go ]; do sleep 0.01; done"
    program.feed(process, f"echo '{inside}' | {INSIDE}\n")
    until((program.directory / "inside").exists)
    stranger = program.start(*ALONE, env=unmeasured())
    program.feed(stranger, "touch stranger\n")
    until(lambda: in_line() == 1)
    assert not (program.directory / "stranger").exists()
    (program.directory / "go").touch()
    for each in (process, stranger):
        each.communicate(timeout=120)
        assert each.returncode == 0


def test_a_variable_of_a_job_that_is_over_opens_no_lease(program: Program) -> None:
    """A process that has left a job, or has only copied its environment, waits like any other."""
    assert run(program, "echo $SGS_TREE > tree\n").returncode == 0
    tree = (program.directory / "tree").read_text().strip()
    with held():
        process = program.start(*ALONE, env=unmeasured() | {"SGS_TREE": f"{tree}0"})
        program.feed(process, "touch ran\n")
        until(lambda: in_line() == 1)
        assert not (program.directory / "ran").exists()
    process.communicate(timeout=120)


@pytest.mark.parametrize("attempt", range(3))
def test_each_of_the_jobs_that_share_a_gpu_can_hold_a_scheduler(program: Program, attempt: int) -> None:
    done = run(program, f"echo 'echo {attempt} >> ran' | {INSIDE}\n" * 6, *ALONE, "--jobs-per-gpu", "6")
    assert done.returncode == 0, done.stderr
    assert (program.directory / "ran").read_text() == f"{attempt}\n" * 6


def test_so_can_each_of_very_many(program: Program) -> None:
    """A lease's file has room for the marks of some twenty attempts."""
    jobs = 30
    arrive = f"touch here-$SGS_JOB; while [ ! -e here-{jobs} ]; do sleep 0.02; done"
    first = f"{arrive}; sleep 0.5; echo 'touch ran' | timeout 5 {SGS} --quiet {' '.join(ALONE)}\n"
    others = f"{arrive}; while [ ! -e ran ] && [ ! -e over ]; do sleep 0.05; done\n" * (jobs - 1)
    done = run(
        program, first.replace("\n", "; touch over; test -e ran\n") + others, *ALONE, "--jobs-per-gpu", str(jobs)
    )
    assert done.returncode == 0, done.stderr
