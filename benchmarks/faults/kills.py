"""Processes that are killed or stopped: the scheduler, its keeper, both."""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from .ground import NOTHING_THERE, ON_CPU, ON_GPU, Counts, Ground, Popen, keeper_of, signal_to, until

_CODES = (0, 0, 1, 0, 3)


def scheduler_killed(directory: Path, chance: random.Random, jobs: int = 500, kills: int = 200) -> Counts:
    """SIGKILL of the scheduler at random moments, also while it starts or resumes, until the run has ended."""
    counts: Counts = Counter()
    while counts["kills"] < kills:
        ground = Ground(directory / f"run-{counts['runs']}", chance)
        try:
            counts += _run_killed(ground, jobs, kills - counts["kills"], fails=bool(counts["runs"] % 2))
        finally:
            ground.close()
        counts["runs"] += 1
    return counts


def _run_killed(ground: Ground, jobs: int, kills: int, *, fails: bool) -> Counts:
    """One run until its end. When some jobs fail, each exit code must be known at the end."""
    codes = {number: _CODES[number % 5] if fails else 0 for number in range(1, jobs + 1)}
    where = ground.chance.choice((ON_CPU, ON_GPU))
    options = "gpus=0" if where == ON_CPU else ""
    commands = {number: ground.command(number, code, options=options) for number, code in codes.items()}
    given = ground.write("jobs", "".join(commands.values()))
    counts: Counts = Counter()
    is_begun = False
    while True:
        process = ground.start("--resume") if is_begun else ground.start(*where, stdin=given)
        code = kill_at_random(process, ground.chance, jobs) if counts["kills"] < kills else process.wait(timeout=120)
        if code == -signal.SIGKILL:
            counts["kills"] += 1
            is_begun = True
        elif code == 2 and is_begun and NOTHING_THERE in ground.said.splitlines()[-1]:
            counts["killed before there was a journal"] += 1
            is_begun = False
        else:
            break
    assert code == int(fails), f"exit code {code}: {ground.said[-2000:]}"
    counts += ground.check(codes)
    found = ground.history()
    for number, command in commands.items():
        told = found[command.partition(" #:")[0].strip()]
        assert told["code"] == codes[number], f"job {number} ended with {codes[number]}, and it says {told}"
    return counts


def kill_at_random(process: Popen, chance: random.Random, jobs: int) -> int:
    """Between its start and its expected end; a third each while it starts, soon after, and at any time."""
    moment = chance.uniform(0, chance.choice((0.15, 0.4, jobs * 0.004)))
    with suppress(subprocess.TimeoutExpired):
        return process.wait(timeout=moment)
    process.kill()
    return process.wait()


def stopped_and_continued(directory: Path, chance: random.Random, jobs: int = 500, stops: int = 60) -> Counts:
    """SIGSTOP and SIGCONT of the scheduler and of its keeper: all run once, and the exit code is 0."""
    ground = Ground(directory, chance)
    counts: Counts = Counter()
    given = ground.write("jobs", "".join(ground.command(each, options="gpus=0") for each in range(1, jobs + 1)))
    try:
        process = ground.start(*ON_CPU, stdin=given)
        until(lambda: keeper_of(process.pid), "there is a keeper")
        both = {"the scheduler": process.pid, "the keeper": keeper_of(process.pid)}
        while process.poll() is None and counts["stops"] < stops:
            name = chance.choice(list(both))
            signal_to(both[name], signal.SIGSTOP)
            time.sleep(chance.uniform(0, 0.03))
            signal_to(both[name], signal.SIGCONT)
            counts["stops"] += 1
            counts[f"stops of {name}"] += 1
            time.sleep(chance.uniform(0, 0.03))
        ground.finish(process)
        counts += ground.check(range(1, jobs + 1))
        assert not counts["started again"], counts
    finally:
        ground.close()
    return counts


def keeper_killed(directory: Path, chance: random.Random, jobs: int = 100, kills: int = 20) -> Counts:
    """SIGKILL of the keeper: the run continues, no job runs again, every exit code is right, and it is reported."""
    counts: Counts = Counter()
    for at in range(kills):
        ground = Ground(directory / f"run-{at}", chance)
        try:
            counts += _run_without_keeper(ground, jobs)
        finally:
            ground.close()
        counts["kills"] += 1
    return counts


def _run_without_keeper(ground: Ground, jobs: int) -> Counts:
    codes = {number: _CODES[number % 5] for number in range(1, jobs + 1)}
    commands = {number: ground.command(number, code, 0.05, "gpus=0") for number, code in codes.items()}
    process = ground.start(*ON_CPU, stdin=ground.write("jobs", "".join(commands.values())))
    moment = ground.chance.uniform(0, jobs * 0.7)
    until(lambda: ground.ended() >= moment, "some jobs have ended")
    keeper = keeper_of(process.pid)
    assert keeper, "there is no keeper"
    os.kill(keeper, signal.SIGKILL)
    ground.finish(process, 1)
    assert "keeper process was killed" in ground.said, ground.said[-2000:]
    counts = ground.check(codes)
    assert not counts["started again"], counts
    found = ground.history()
    for number, command in commands.items():
        told = found[command.partition(" #:")[0].strip()]
        assert told["code"] == codes[number], f"job {number} ended with {codes[number]}, and it says {told}"
    return counts


def both_killed(directory: Path, chance: random.Random, jobs: int = 200, kills: int = 40) -> Counts:
    """SIGKILL of scheduler and keeper at once: no job runs beside itself, and none is lost.

    How the jobs that ran then ended is unknown, so they are run again when they are gone.
    """
    counts: Counts = Counter()
    while counts["kills"] < kills:
        ground = Ground(directory / f"run-{counts['runs']}", chance)
        try:
            counts += _run_all_killed(ground, jobs, kills - counts["kills"])
        finally:
            ground.close()
        counts["runs"] += 1
    return counts


def _run_all_killed(ground: Ground, jobs: int, kills: int) -> Counts:
    where = ground.chance.choice((ON_CPU, ON_GPU))
    options = "gpus=0" if where == ON_CPU else ""
    given = ground.write("jobs", "".join(ground.command(each + 1, 0, 0.1, options) for each in range(jobs)))
    counts: Counts = Counter()
    args: tuple[str, ...] = where
    while counts["kills"] < kills:
        process = ground.start(*args, stdin=Path(os.devnull) if args != where else given)
        before = ground.ended()
        until(lambda: ground.ended() >= min(jobs, before + 1) or process.poll() is not None, "it has begun")  # noqa: B023
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=ground.chance.uniform(0, 0.3))
            break
        for pid in (keeper_of(process.pid), process.pid):
            if pid:
                os.kill(pid, signal.SIGKILL)
        process.wait()
        counts["kills"] += 1
        args = ("--resume",)
    else:
        process = ground.start("--resume")
    ground.finish(process)
    return counts + ground.check(range(1, jobs + 1), may_repeat=True)
