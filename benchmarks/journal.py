"""What the journal costs: jobs a second with it and without, and how long a large run takes to be resumed."""

import os
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from peers import OURS, ROOT, clean_environment, peers
from tables import show, verdict

_COMMAND = str(ROOT / "bin/simple_gpu_scheduler")
_RUN = "20260101-000000-000000"
_MAKE_JOURNAL = """
import os, sys
from simple_gpu_scheduler.events import JobEnded, JobsRead, JobStarted, RunBegan
from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Place
from simple_gpu_scheduler.journal.records import encode
run, jobs, ended = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
host = os.uname().nodename
began = RunBegan(run, 1, "", host, "", 0, 0, os.getcwd(), ["--gpus", "0-7", "--ignore-occupancy"], [])
print(encode(began, 0.0), end="")
for number in range(1, jobs + 1):
    job = Job(number, b"touch started; exec sleep 1000 # --lr 0.%d" % number, Place(number))
    print(encode(JobsRead([job]), 0.0), end="")
    if number <= ended:
        attempt = Attempt(job, 1, ("0",), (0,))
        print(encode(JobStarted(attempt), 0.0) + encode(JobEnded(attempt, SUCCESS, 0.0, 1.0, True), 0.0), end="")
"""


def measure(*, quick: bool) -> None:
    """All of it."""
    throughput(300 if quick else 2000, 1 if quick else 9)
    resume(10_000 if quick else 100_000, 1 if quick else 5)


def throughput(jobs: int, rounds: int) -> None:
    rows = []
    for slots in (2, 4, 8):
        argv = peers()[OURS].argv(slots)
        samples: dict[str, list[float]] = {"with": [], "without": []}
        for _ in range(rounds):
            samples["with"].append(seconds(argv, jobs))
            samples["without"].append(seconds([*argv, "--no-journal"], jobs))
        rates = {name: jobs / statistics.median(times) for name, times in samples.items()}
        share = rates["with"] / rates["without"]
        said = verdict(holds=share >= 0.85, promise="at least 0.85")
        rows.append([str(slots), f"{rates['with']:,.0f}", f"{rates['without']:,.0f}", f"{share:.2f}", said])
    show(
        f"The journal: {jobs} times `true`, jobs a second (median of {rounds})",
        ["slots", "with it", "--no-journal", "share", "promise"],
        rows,
    )


def seconds(argv: list[str], jobs: int) -> float:
    """How long so many jobs take."""
    with tempfile.TemporaryFile() as lines:
        lines.write(b"true\n" * jobs)
        lines.seek(0)
        began = time.perf_counter()
        nowhere = subprocess.DEVNULL
        subprocess.run(argv, stdin=lines, stdout=nowhere, stderr=nowhere, env=clean_environment(), check=True)
        return time.perf_counter() - began


def resume(jobs: int, rounds: int) -> None:
    rows = []
    for ended in (0, jobs // 2, jobs - 8):
        took = statistics.median(seconds_to_resume(jobs, ended) for _ in range(rounds))
        said = verdict(holds=took < 2, promise="under 2 s")
        rows.append([f"{ended:,}", f"{took:.2f}", said])
    show(
        f"--resume of a run of {jobs:,} jobs, to the start of the first (median of {rounds})",
        ["ended before", "s", "promise"],
        rows,
    )


def seconds_to_resume(jobs: int, ended: int) -> float:
    """From the call to the first job's first act."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        runs = directory / "state/simple_gpu_scheduler/runs"
        runs.mkdir(parents=True, mode=0o700)
        python = str(ROOT / ".venv/bin/python")
        made = subprocess.run(
            [python, "-c", _MAKE_JOURNAL, _RUN, str(jobs), str(ended)],
            stdout=subprocess.PIPE,
            check=True,
            cwd=directory,
        )
        (runs / f"{_RUN}.jsonl").write_bytes(made.stdout)
        environment = clean_environment() | {
            "XDG_STATE_HOME": str(directory / "state"),
            "SGS_LEASE_DIR": str(directory / "leases"),
        }
        nowhere = subprocess.DEVNULL
        began = time.perf_counter()
        process = subprocess.Popen(
            [_COMMAND, "--resume"], stdin=nowhere, stdout=nowhere, stderr=nowhere, cwd=directory, env=environment
        )
        while not (directory / "started").exists():
            if process.poll() is not None:
                raise RuntimeError("the resumed run has ended")
            time.sleep(0.001)
        took = time.perf_counter() - began
        os.kill(process.pid, signal.SIGTERM)
        process.wait()
        return took
