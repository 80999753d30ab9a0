"""Start-up: how long a program takes that has hardly anything to do, from its start to its exit."""

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from peers import OLD, OURS, PARALLEL, ROOT, Peer, clean_environment, run
from tables import show, verdict

_SGS, _SWEEP = str(ROOT / "bin/sgs"), str(ROOT / "bin/simple_hypersearch")
_INSTALLED = str(ROOT / ".venv/bin/simple_gpu_scheduler")
_OLD_SWEEP = str(ROOT / "benchmarks/.peers/bin/simple_hypersearch")
_ONE_LINE = ["{a}", "-p", "a", "1"]
_RESPONDS_WITHIN = 60


class Start(NamedTuple):
    """A program that is started, and the share of GNU parallel's time that it takes at most, if it is ours."""

    name: str
    seconds: Callable[[], float]
    promise: float | None = None


def measure(installed: dict[str, Peer], rounds: int) -> None:
    """All of it."""
    with tempfile.TemporaryDirectory() as directory, _living_run(Path(directory)) as environment:
        one = Path(directory) / "one"
        one.write_text("true\n")
        starts = [*_ours(one, environment), *_others(installed, one)]
        samples: dict[str, list[float]] = {}
        for _ in range(rounds):
            for start in starts:
                samples.setdefault(start.name, []).append(start.seconds())
    medians = {name: statistics.median(times) * 1000 for name, times in samples.items()}
    show(
        f"Start-up: one `true`, one line of a sweep, or one command about a run, to the exit (median of {rounds})",
        ["program", "ms", "of GNU parallel", "promise"],
        [_row(start, medians[start.name], medians.get(PARALLEL)) for start in starts],
    )


def _row(start: Start, median: float, parallel: float | None) -> list[str]:
    if parallel is None:
        return [start.name, f"{median:.1f}", "-", ""]
    share, said = median / parallel, ""
    if start.promise is not None:
        said = verdict(holds=share <= start.promise, promise=f"at most {start.promise:.2f}")
    return [start.name, f"{median:.1f}", f"{share:.2f}", said]


def _ours(one: Path, of_a_run: dict[str, str]) -> list[Start]:
    nothing, clean = Path(os.devnull), clean_environment()

    def take(argv: list[str], stdin: Path = nothing, environment: dict[str, str] = clean) -> Callable[[], float]:
        return lambda: _seconds(argv, stdin, environment)

    return [
        Start(OURS, take([_SGS, "--gpus", "0"], one), 0.65),
        Start(f"{OURS} --no-journal", take([_SGS, "--gpus", "0", "--no-journal"], one), 0.55),
        Start(f"{OURS}, as pip installs it", take([_INSTALLED, "--gpus", "0"], one)),
        Start("simple_hypersearch", take([_SWEEP, *_ONE_LINE]), 0.40),
        Start("sgs status", take([_SGS, "status"], environment=of_a_run), 0.65),
        Start("sgs submit", take([_SGS, "submit", "--", "true"], environment=of_a_run), 0.65),
        Start("sgs logs", take([_SGS, "logs", "1"], environment=of_a_run), 0.65),
    ]


def _others(installed: dict[str, Peer], one: Path) -> list[Start]:
    def take(peer: Peer) -> Callable[[], float]:
        return lambda: _time(lambda: run(peer, 1, one))

    starts = [Start(name, take(peer)) for name, peer in installed.items() if name != OURS]
    if OLD in installed:
        old = [_OLD_SWEEP, *_ONE_LINE]
        starts.append(Start("s-h 0.1.4", lambda: _seconds(old, Path(os.devnull), clean_environment())))
    return starts


def _seconds(argv: list[str], stdin: Path, environment: dict[str, str]) -> float:
    nowhere = subprocess.DEVNULL
    with stdin.open() as lines:
        return _time(
            lambda: subprocess.run(argv, stdin=lines, stdout=nowhere, stderr=nowhere, env=environment, check=True)
        )


def _time(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


@contextmanager
def _living_run(directory: Path) -> Iterator[dict[str, str]]:
    """A run whose GPU is busy, so that what is submitted waits; and the environment in which it is the only one."""
    own = {"XDG_STATE_HOME": str(directory / "state"), "SGS_LEASE_DIR": str(directory / "leases")}
    environment = clean_environment() | own
    nowhere = subprocess.DEVNULL
    argv = [_SGS, "--gpus", "0", "--ignore-occupancy", "--output", "files", "--follow", str(directory / "queue.fifo")]
    process = subprocess.Popen(argv, stdin=nowhere, stdout=nowhere, stderr=nowhere, env=environment)
    try:
        until = time.monotonic() + _RESPONDS_WITHIN
        for argv in (["submit", "--", "echo it runs; exec sleep 1000"], ["logs", "1"]):
            while not _succeeds([_SGS, *argv], environment):
                if time.monotonic() > until or process.poll() is not None:
                    raise RuntimeError("the run to ask does not respond")
                time.sleep(0.1)
        yield environment
    finally:
        process.terminate()
        process.wait()


def _succeeds(argv: list[str], environment: dict[str, str]) -> bool:
    nowhere = subprocess.DEVNULL
    done = subprocess.run(argv, stdin=nowhere, stdout=nowhere, stderr=nowhere, env=environment, check=False)
    return done.returncode == 0
