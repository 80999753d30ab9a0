"""What waiting for GPUs and sharing them among schedulers costs: no peer does it, so there is nothing to compare with.

NVML is the stand-in of the tests, whose answers cost nothing like a driver's: what is measured is our own part.
"""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from peers import ROOT, clean_environment
from tables import percentile, show, verdict

COMMAND = [str(ROOT / "bin/simple_gpu_scheduler"), "-q"]

sys.path.insert(0, str(ROOT))
from tests.support.nvml import GIB, Process, StandIn, a_gpu, compiler  # noqa: E402 - it lies beside the package


def hand_over(directory: Path, jobs: int) -> None:
    """Two schedulers, one GPU: who gets it, and how long it is free in between."""
    stamp = directory / "stamp"
    subprocess.run([str(shutil.which("cc")), "-O2", "-o", stamp, ROOT / "benchmarks/stamp.c"], check=True)
    out = directory / "turns"
    environment = clean_environment() | {"SGS_LEASE_DIR": str(directory / "leases")}
    running = []
    for name in "AB":
        lines = directory / f"jobs-{name}"
        lines.write_text(f"{stamp} {name} {out}\n" * jobs)
        with lines.open() as stdin:
            running.append(
                subprocess.Popen(
                    [*COMMAND, "--gpus", "0"], stdin=stdin, stderr=subprocess.DEVNULL, env=environment, cwd=directory
                )
            )
    for process in running:
        process.wait()
    turns = sorted((int(begin), int(end), name) for name, begin, end in map(str.split, out.read_text().splitlines()))
    both = [turn for turn in turns if turn[0] < min(max(t[0] for t in turns if t[2] == name) for name in "AB")]
    gaps = [(later[0] - earlier[1]) / 1e6 for earlier, later in itertools.pairwise(both) if later[2] != earlier[2]]
    shares = [sum(turn[2] == "A" for turn in both[:count]) / count for count in range(10, len(both))]
    high = percentile(gaps, 99)
    rows = [
        ["gap p50 ms", f"{percentile(gaps, 50):.2f}", ""],
        ["gap p99 ms", f"{high:.2f}", verdict(holds=high < 20, promise="under 20 ms")],
        [
            "share of one, at any time",
            f"{min(shares):.0%} to {max(shares):.0%}",
            verdict(holds=min(shares) >= 0.4 and max(shares) <= 0.6, promise="40 to 60 %"),
        ],
    ]
    show(f"Hand-over: two schedulers of {jobs} jobs of 10 ms each on one GPU", ["figure", "value", "promise"], rows)


def decision(directory: Path, starts: int) -> None:
    """One start with 8 GPUs, from the end of a job to the engine's call, and what of it is NVML's."""
    stand_in = StandIn(directory)
    stand_in.show([a_gpu(index) for index in range(8)])
    environment = clean_environment() | stand_in.environment | {"SGS_LEASE_DIR": str(directory / "leases")}
    environment.pop("NVML_STAND_IN_LOG", None)
    python, script = ROOT / ".venv/bin/python", ROOT / "benchmarks/decision.py"
    told = subprocess.run([python, script, str(starts)], env=environment, capture_output=True, text=True, check=True)
    ours, nvml = (float(word) for word in told.stdout.split())
    said = verdict(holds=ours < 1, promise="under 1 ms")
    rows = [["our own", f"{ours:.3f}", said], ["NVML's (the stand-in's)", f"{nvml:.3f}", ""]]
    show(f"A start decision with 8 GPUs, leased and looked at (mean of {starts})", ["part", "ms", "promise"], rows)


def waiting(directory: Path, stay: float) -> None:
    """What it costs to wait for 8 GPUs that others use."""
    with subprocess.Popen(["sleep", "1000"]) as user:
        stand_in = StandIn(directory)
        stand_in.show([a_gpu(index, used=GIB, processes=[Process(user.pid, GIB)]) for index in range(8)])
        environment = clean_environment() | stand_in.environment | {"SGS_LEASE_DIR": str(directory / "leases")}
        environment.pop("NVML_STAND_IN_LOG", None)
        with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
            assert process.stdin
            process.stdin.write(b"true\n")
            process.stdin.close()
            time.sleep(3)
            before = cpu_seconds(process.pid)
            time.sleep(stay)
            used = (cpu_seconds(process.pid) - before) / stay
            process.kill()
        user.kill()
    said = verdict(holds=used < 0.005, promise="well under 1 % of a core")
    show(f"Waiting for 8 GPUs that others use, over {stay:.0f} s", ["CPU", "promise"], [[f"{used:.2%}", said]])


def cpu_seconds(pid: int) -> float:
    """What a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(*, quick: bool) -> None:
    """All of it."""
    if compiler() is None:
        print("\nWhat concerns GPUs is not measured: it needs a C compiler (cc).")
        return
    with tempfile.TemporaryDirectory() as name:
        for part in ("hand-over", "decision", "waiting"):
            (Path(name) / part).mkdir()
        hand_over(Path(name) / "hand-over", 50 if quick else 200)
        decision(Path(name) / "decision", 200 if quick else 2000)
        waiting(Path(name) / "waiting", 3 if quick else 20)
