"""What showing and keeping the jobs' output costs: beside one that prints much, for many short ones, for a view."""

import fcntl
import os
import pty
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from contextlib import suppress
from pathlib import Path

from peers import ROOT, clean_environment
from tables import show, verdict

sys.path.insert(0, str(ROOT))
from tests.support.nvml import StandIn, a_gpu

COMMAND = [str(ROOT / "bin/simple_gpu_scheduler"), "-q", "--progress", "plain"]
MODES = ("inherit", "group", "tag", "files")
_LINE = "epoch 12 step 3456 loss 0.123456 accuracy 0.789 learning rate 0.0001 throughput 1234 it/s"
_BAR = r"printf '\repoch %d: 45%%|####      | 450/1000 [00:12<00:15, 36.2it/s]' $i"


def measure(*, quick: bool) -> None:
    """All of it."""
    beside_much(50_000_000 if quick else 1_000_000_000, 1 if quick else 3)
    many_short(300 if quick else 2000, 1 if quick else 7)
    view(2.0 if quick else 20.0)


def beside_much(size: int, rounds: int) -> None:
    """Short jobs on one slot, while a job on another prints, and while it does the same and prints nothing."""
    samples: dict[str, list[tuple[float, float, float]]] = {mode: [] for mode in MODES}
    for _ in range(rounds):
        for mode in MODES:
            quiet, _ = rate_beside(mode, f"yes '{_LINE}' | head -c {size} | cat > /dev/null")
            samples[mode].append((quiet, *rate_beside(mode, f"yes '{_LINE}' | head -c {size} | cat")))
    rows = []
    for mode, found in samples.items():
        quiet, loud, peak = (statistics.median(values) for values in zip(*found, strict=True))
        said = verdict(holds=loud / quiet >= 0.8 and peak < 60, promise="0.8, under 60 MB")
        rows.append([mode, f"{loud:,.0f}", f"{quiet:,.0f}", f"{loud / quiet:.2f}", f"{peak:.0f}", said])
    show(
        f"Output: `true` beside a job that prints {size / 1e9:g} GB, or as much to nowhere (median of {rounds})",
        ["--output", "jobs/s", "to nowhere", "share", "MB", "promise"],
        rows,
    )


def rate_beside(mode: str, job: str) -> tuple[float, float]:
    """How many jobs a second were run while the one did, and the peak of the scheduler's memory in MB."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "jobs").write_text(f"{job}\n" + "true\n" * 50_000)
        argv = [*COMMAND, "--gpus", "0", "1", "--output", mode, "--joblog", "rows", "jobs"]
        environment = clean_environment() | {"XDG_STATE_HOME": name, "SGS_LEASE_DIR": f"{name}/leases"}
        with (directory / "out").open("wb") as out:
            process = subprocess.Popen(argv, stdout=out, stderr=subprocess.DEVNULL, cwd=directory, env=environment)
            while process.poll() is None and not has_row(directory / "rows"):
                time.sleep(0.02)
            peak = peak_of(process.pid)
            process.send_signal(signal.SIGTERM)
            process.wait()
        rows = [line.split("\t") for line in (directory / "rows").read_text().splitlines()[1:]]
        took = next(float(row[3]) for row in rows if row[0] == "1")
        first = min(float(row[2]) for row in rows)
        beside = [row for row in rows if row[0] != "1" and float(row[2]) < first + took]
        return len(beside) / took, peak


def has_row(rows: Path) -> bool:
    """Whether the job that prints is over."""
    return rows.exists() and "\n1\t" in rows.read_text()


def peak_of(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1000
    return 0.0


def many_short(jobs: int, rounds: int) -> None:
    samples: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(rounds):
        for mode, found in samples.items():
            found.append(seconds(mode, jobs))
    rates = {mode: jobs / statistics.median(found) for mode, found in samples.items()}
    rows = [[mode, f"{rate:,.0f}", f"{rate / rates['inherit']:.2f}"] for mode, rate in rates.items()]
    rows.append(
        ["only making as many files", f"{jobs / statistics.median(making(jobs) for _ in range(rounds)):,.0f}", ""]
    )
    show(
        f"Output: {jobs} times `echo hello` on 4 slots, start-up included (median of {rounds})",
        ["--output", "jobs/s", "of inherit"],
        rows,
    )


def making(files: int) -> float:
    """How long the file system takes to make so many: what a log for each job costs at least."""
    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        for number in range(files):
            (Path(name) / str(number)).write_bytes(b"x" * 200)
        return time.perf_counter() - began


def seconds(mode: str, jobs: int) -> float:
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryFile() as lines:
        lines.write(b"echo hello\n" * jobs)
        lines.seek(0)
        argv = [*COMMAND, "--gpus", "0-3", "--output", mode]
        environment = clean_environment() | {"XDG_STATE_HOME": name}
        began = time.perf_counter()
        with (Path(name) / "out").open("wb") as out:
            subprocess.run(argv, stdin=lines, stdout=out, stderr=subprocess.DEVNULL, env=environment, check=True)
        return time.perf_counter() - began


def view(stay: float) -> None:
    """What the live view takes of a core while eight jobs write progress bars."""
    rows = []
    for waiting in (10, 100_000):
        share = share_of_a_core(waiting, stay, "live") - share_of_a_core(waiting, stay, "plain")
        said = verdict(holds=share < 0.01, promise="under 1 %")
        rows.append([f"{waiting:,}", f"{share:.2%}", said])
    show(
        f"Live view: eight GPUs, eight progress bars; of a core, beyond plain lines (over {stay:.0f} s)",
        ["waiting jobs", "share", "promise"],
        rows,
    )


def share_of_a_core(waiting: int, stay: float, progress: str) -> float:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        bars = f"for i in $(seq 10000); do {_BAR}; sleep 0.05; done\n"
        (directory / "jobs").write_text(bars * 8 + "sleep 1000\n" * waiting)
        nvml = StandIn(directory)
        nvml.show([a_gpu(index) for index in range(8)])
        environment = clean_environment() | dict(nvml.environment) | {"TERM": "xterm-256color", "XDG_STATE_HOME": name}
        environment.pop("CI", None)
        argv = [COMMAND[0], "--gpus", "0-7", "--ignore-occupancy", "--policy", "priority"]
        argv += ["--progress", progress, "--output", "files", str(directory / "jobs")]
        pid, terminal = pty.fork()
        if not pid:
            os.chdir(directory)
            os.execve(argv[0], argv, environment)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
        threading.Thread(target=drain, args=(terminal,), daemon=True).start()
        time.sleep(5)  # all lines are read by then
        before = ticks(pid)
        time.sleep(stay)
        used = ticks(pid) - before
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        return used / os.sysconf("SC_CLK_TCK") / stay


def drain(terminal: int) -> None:
    with suppress(OSError):
        while os.read(terminal, 65536):
            pass


def ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return int(fields[11]) + int(fields[12])
