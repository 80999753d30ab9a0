"""Very many jobs that wait, very many writers at once; and a terminal that is gone."""

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

from .ground import ON_CPU, SCHEDULER, Counts, Ground, keeper_of, until

_MB = 1024


def many_waiting(
    directory: Path, chance: random.Random, jobs: int = 100_000, ready: float = 2.0, answered: float = 1.0
) -> Counts:
    """All slots are busy and the rest waits: what it takes, SIGKILL, and how soon the first of them runs on."""
    ground = Ground(directory, chance)
    gate = directory / "gate"
    busy = "".join(f"while [ ! -e {gate} ]; do sleep 0.05; done #: gpus=0 name=busy-{at}\n" for at in range(8))
    lines = (ground.command(number, options="gpus=0") for number in range(1, jobs + 1))
    given = ground.write("jobs", busy + "".join(lines))
    counts: Counts = Counter()
    try:
        # Any other policy than `fifo` wants all of them at hand.
        process = ground.start(*ON_CPU, "--policy", "priority", "--quiet", stdin=given)
        until(lambda: _waiting(ground) == jobs, "all wait", 120)
        counts["jobs waiting"] = jobs
        counts["MB, with all waiting"] = _megabytes(process.pid)
        counts["ms, status"] = _milliseconds(ground, answered)
        keeper = keeper_of(process.pid)
        process.kill()
        process.wait()
        gate.touch()
        until(lambda: not os.path.exists(f"/proc/{keeper}"), "its keeper has left")
        began = time.monotonic()
        process = ground.start("--resume", "--quiet")
        until(lambda: any(ground.ledger.iterdir()), "the first of them has started")
        took = time.monotonic() - began
        assert took < ready, f"it took {took:.2f} s until the first job of the resumed run started"
        counts["ms, resumed"] = round(took * 1000)
        counts["MB, resumed"] = _megabytes(process.pid)
        process.terminate()
        ground.finish(process, 128 + signal.SIGTERM)
    finally:
        gate.touch()
        ground.close()
    return counts


def _waiting(ground: Ground) -> int:
    shown = json.loads(ground.ask("status", "--json").stdout or "[]")
    return int(shown[0]["counts"]["waiting"]) if shown else -1


def _milliseconds(ground: Ground, answered: float) -> int:
    began = time.monotonic()
    asked = ground.ask("status")
    took = time.monotonic() - began
    assert asked.returncode == 0, asked.stderr
    assert took < answered, f"status took {took:.2f} s"
    return round(took * 1000)


def _megabytes(pid: int) -> int:
    """At most, so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // _MB


def many_writers(directory: Path, chance: random.Random, writers: int = 1000) -> Counts:
    """Each opens the pipe, writes one line, and closes it, all at once."""
    ground = Ground(directory, chance)
    path = directory / "queue"
    os.mkfifo(path)
    starts = threading.Barrier(writers)

    def write(number: int, line: bytes) -> None:
        starts.wait()
        fd = os.open(path, os.O_WRONLY)
        assert os.write(fd, line) == len(line), number
        os.close(fd)

    lines = {number: ground.command(number, options="gpus=0").encode() for number in range(1, writers + 1)}
    threads = [threading.Thread(target=write, args=each, daemon=True) for each in lines.items()]
    try:
        process = ground.start(*ON_CPU, "--follow", str(path))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a writer hangs though there is a reader"
        until(lambda: ground.ended() == writers, "all have run")
        assert ground.ask("stop").returncode == 0
        process.wait(timeout=30)
        counts = ground.check(lines)
        assert not counts["started again"]
        assert len(ground.history()) == writers
    finally:
        ground.close()
    counts["writers"] = writers
    return counts


def terminal_gone(directory: Path, chance: random.Random, jobs: int = 60) -> Counts:
    """The terminal is closed in mid-run, with a run and its jobs that print to it."""
    ground = Ground(directory, chance)
    lines = [f"echo waited; {ground.command(number, 0, 0.1, 'gpus=0')}" for number in range(1, jobs + 1)]
    given = ground.write("jobs", "".join(lines))
    ours, its = os.openpty()
    try:
        process = ground.start_on(its, "setsid", "--ctty", *SCHEDULER, *ON_CPU, "--verbose", str(given))
        os.close(its)
        until(lambda: ground.ended() > jobs / 4, "some jobs have ended")
        os.close(ours)
        ground.finish(process)
        counts = ground.check(range(1, jobs + 1))
        assert not counts["started again"]
        states = Counter(each["state"] for each in ground.history().values())
        assert states == {"succeeded": jobs}, states
    finally:
        ground.close()
    return counts
