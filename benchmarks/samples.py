"""What measuring the jobs costs: CPU while they run, and throughput, with samples and without.

NVML is the stand-in of the tests. What of the CPU is its own, in C, is shown too.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from peers import ROOT, clean_environment
from tables import show, verdict

COMMAND = [str(ROOT / "bin/simple_gpu_scheduler"), "-q"]
GPUS, PER_GPU = 8, 2
WAYS = {"without": ["--no-samples"], "with": []}
MOST = 0.002
# In its process, the time that the calls of one sample of each GPU spend in the library.
IN_THE_LIBRARY = """
import ctypes, sys, time
import pynvml
from simple_gpu_scheduler.gpus import Gpu
from simple_gpu_scheduler.gpus.nvml import Nvml
nvml, spent = Nvml(), [0.0]
find = pynvml._nvmlGetFunctionPointer
def timed(name):
    function = find(name)
    def call(*given):
        began = time.perf_counter()
        try:
            return function(*given)
        finally:
            spent[0] += time.perf_counter() - began
    return call
pynvml._nvmlGetFunctionPointer = timed
gpus = [Gpu(device.number, device.uuid, device.total) for device in nvml.devices]
for gpu in gpus:
    nvml.meters(gpu, errors=True, limits=False)
spent[0], times = 0.0, 100
for gpu in gpus * times:
    nvml.meters(gpu, errors=True, limits=False)
print(spent[0] / times)
"""

sys.path.insert(0, str(ROOT))
from tests.support.nvml import Ramp, StandIn, a_gpu, compiler  # noqa: E402 - it lies beside the package


def a_busy_gpu(index: int) -> object:
    """One that tells everything."""
    counters = Ramp(0, 1_000_000, time.time())
    return a_gpu(
        index,
        utilization=80,
        memory_utilization=30,
        energy=counters,
        clock=1400,
        throttle=0,
        pcie_tx_bytes=counters,
        pcie_rx_bytes=counters,
        nvlink_tx_kib=counters,
        nvlink_rx_kib=counters,
        xids={},
    )


def cpu_of(options: list[str], environment: Mapping[str, str], stay: float) -> float:
    """The share of a core that a scheduler takes while its jobs run."""
    gpus = [str(index) for index in range(GPUS)]
    argv = [*COMMAND, "--gpus", *gpus, "--jobs-per-gpu", str(PER_GPU), *options]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        assert process.stdin
        process.stdin.write(b"exec sleep 1000\n" * GPUS * PER_GPU)
        process.stdin.close()
        time.sleep(3)
        before, began = cpu_seconds(process.pid), time.monotonic()
        time.sleep(stay)
        used = (cpu_seconds(process.pid) - before) / (time.monotonic() - began)
        process.terminate()
    return used


def cpu_seconds(pid: int) -> float:
    """What all threads of a process have used, by the scheduler's clock: ticks are too coarse."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def cost(environment: Mapping[str, str], stay: float, rounds: int) -> None:
    used: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, options in WAYS.items():
            used[way].append(cpu_of(options, environment, stay))
    told = subprocess.run(
        [ROOT / ".venv/bin/python", "-c", IN_THE_LIBRARY], env=environment, capture_output=True, text=True, check=True
    )
    library = float(told.stdout)
    without, with_ = (statistics.median(used[way]) for way in WAYS)
    ours = with_ - without - library
    said = verdict(holds=ours < MOST, promise=f"under {MOST:.1%} of a core")
    rows = [
        ["without samples", f"{without:.3%}", ""],
        ["with samples", f"{with_:.3%}", ""],
        ["what samples cost", f"{with_ - without:.3%}", ""],
        ["of that, in NVML's stand-in, which reads a file at each call", f"{library:.3%}", ""],
        ["the rest, which is ours", f"{ours:.3%}", said],
    ]
    title = f"Samples: the scheduler's CPU with {GPUS} GPUs and {GPUS * PER_GPU} attempts, {rounds} times {stay:.0f} s"
    show(title, ["figure", "of a core", "promise"], rows)


def throughput(environment: Mapping[str, str], directory: Path, jobs: int, rounds: int) -> None:
    lines = directory / "jobs"
    lines.write_text("true\n" * jobs)
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, options in WAYS.items():
            began = time.perf_counter()
            with lines.open() as stdin:
                subprocess.run(
                    [*COMMAND, "--gpus", "0", "1", "2", "3", *options], stdin=stdin, env=environment, check=True
                )
            rates[way].append(jobs / (time.perf_counter() - began))
    without, with_ = (statistics.median(rates[way]) for way in WAYS)
    said = verdict(holds=with_ / without >= 0.98, promise="0.98 of that without")
    rows = [["without", f"{without:,.0f}", "", ""], ["with", f"{with_:,.0f}", f"{with_ / without:.2f}", said]]
    title = f"Samples: {jobs} times `true` on 4 GPUs that are looked at (median of {rounds})"
    show(title, ["samples", "jobs/s", "of without", "promise"], rows)


def measure(*, quick: bool) -> None:
    """All of it."""
    if compiler() is None:
        print("\nWhat samples cost is not measured: it needs a C compiler (cc).")
        return
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        stand_in = StandIn(directory / "nvml")
        stand_in.show([a_busy_gpu(index) for index in range(GPUS)])  # type: ignore[misc]
        places = {"SGS_LEASE_DIR": str(directory / "leases"), "XDG_STATE_HOME": str(directory / "state")}
        environment = clean_environment() | stand_in.environment | places
        environment.pop("NVML_STAND_IN_LOG", None)
        parts: list[Callable[[], object]] = [
            lambda: cost(environment, 5 if quick else 25, 1 if quick else 3),
            lambda: throughput(environment, directory, 200 if quick else 2000, 1 if quick else 7),
        ]
        for part in parts:
            part()
