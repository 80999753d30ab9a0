"""Several schedulers that want the same GPU get it in turn, soon, and cost nothing while they wait."""

import os
import time
from itertools import accumulate, groupby, pairwise
from pathlib import Path

import pytest

from tests.conftest import Program, until
from tests.support.sharing import ALONE, LEASE, endless, held, in_line, leases, lonely, were_alone

pytestmark = pytest.mark.unmeasured  # what its programs run is measured elsewhere


def start_together(program: Program, inputs: dict[str, str]) -> None:
    """Run a scheduler for each, all of which want the GPU when the first one gets it."""
    with held():
        processes = [program.start(*ALONE, "--quiet") for _ in inputs]
        for process, commands in zip(processes, inputs.values(), strict=True):
            program.feed(process, commands)
        until(lambda: in_line() == len(inputs), "all are in line")
    for process in processes:
        process.communicate(timeout=120)
        assert process.returncode == 0


def done(program: Program) -> list[str]:
    path = program.directory / "done"
    return path.read_text().split() if path.exists() else []


def somebody_is_in_line() -> str:
    """A command that tells, for a job; from now on, the lease has its files."""
    files = [leases() / LEASE, leases() / f"{LEASE}.next"]
    with held():
        files[1].touch()
    inodes = "|".join(str(file.stat().st_ino) for file in files)
    return f"grep -qE -e '->.*:({inodes}) ' /proc/locks"


def while_all_had_jobs(words: list[str]) -> list[str]:
    """What was done until the first of them had done all."""
    last = {word: at for at, word in enumerate(words)}
    return words[: min(last.values()) + 1]


@pytest.mark.parametrize(
    ("names", "jobs", "few", "least", "most"), [("ab", 200, 20, 0.4, 0.6), ("abc", 80, 30, 0.23, 0.43)]
)
def test_each_has_its_share_of_a_gpu_at_any_time(
    program: Program, names: str, jobs: int, few: int, least: float, most: float
) -> None:
    start_together(program, {name: f"{lonely(program.directory, 0, name)}\n" * jobs for name in names})
    assert were_alone(program.directory)
    done = (program.directory / "done").read_text().split()
    assert sorted(done) == sorted(names * jobs)
    shared = while_all_had_jobs(done)
    assert len(shared) > 0.8 * len(done)
    for name in names:
        counts = accumulate(word == name for word in shared)
        shares = [count / number for number, count in enumerate(counts, 1)][few:]
        assert least <= min(shares) <= max(shares) <= most, name


def test_a_scheduler_that_gave_it_back_comes_last(program: Program) -> None:
    """Once the other one is in line, a scheduler never runs another job first, however busy the machine is."""
    script = program.directory / "turn.sh"
    script.write_text(f"echo $1 >> done; until [ -e over ] || {somebody_is_in_line()}; do sleep 0.01; done\n")
    start_together(program, {name: f"sh turn.sh {name}\n" * 39 + f"sh turn.sh {name}; touch over\n" for name in "ab"})
    shared = while_all_had_jobs(done(program))
    assert len(shared) >= 79
    assert [len(list(group)) for _, group in groupby(shared)] == [1] * len(shared)


def test_a_scheduler_that_comes_while_another_never_pauses_gets_its_turn_soon(program: Program) -> None:
    """The other one keeps its lease from one job to the next only while nobody is in line."""
    (program.directory / "job.sh").write_text(f"{somebody_is_in_line()} && echo late >> done || echo x >> done\n")
    with endless(program, "sh job.sh"):
        until(lambda: done(program).count("x") >= 20, "it keeps its lease")
        assert "late" not in done(program)
        came = program.start(*ALONE)
        program.feed(came, "echo came >> done\n")
        assert came.wait(timeout=120) == 0
    words = done(program)
    assert words[: words.index("came")].count("late") <= 3


def test_two_take_turns_through_a_whole_run(program: Program) -> None:
    job = "now=$(date +%s%N); echo {0} $now $(date +%s%N) >> times\n"
    start_together(program, {name: job.format(name) * 40 for name in "ab"})
    rows = sorted(line.split() for line in (program.directory / "times").read_text().splitlines())
    rows = sorted(((int(begin), int(end), name) for name, begin, end in rows))
    assert sum(before[2] != after[2] for before, after in pairwise(rows)) > 50


def test_a_waiting_scheduler_is_woken_by_the_kernel(program: Program) -> None:
    with held():
        process = program.start(*ALONE)
        program.feed(process, "date +%s%N > began\n")
        until(lambda: in_line() == 1, "a thread sleeps in the kernel until the GPU is free")
    assert process.wait(timeout=120) == 0
    assert (program.directory / "began").exists()


def test_a_waiting_scheduler_uses_no_processor(program: Program) -> None:
    def ticks(pid: int) -> int:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return int(fields[11]) + int(fields[12])

    with held():
        processes = [program.start(*ALONE) for _ in range(2)]
        for process in processes:
            program.feed(process, "true\n" * 100)
        until(lambda: in_line() == 2)
        before = [ticks(process.pid) for process in processes]
        time.sleep(2)
        used = [
            (ticks(process.pid) - was) / os.sysconf("SC_CLK_TCK")
            for process, was in zip(processes, before, strict=True)
        ]
        assert max(used) < 0.1
        assert in_line(LEASE) == 2
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
