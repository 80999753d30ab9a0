"""How each program is made to run the lines of its stdin in parallel. A peer that is not installed is left out."""

import atexit
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
OURS, XARGS, PARALLEL, OLD = "simple_gpu_scheduler", "xargs -P", "GNU parallel", "s-g-s 0.1.4"
TASK_SPOOLER, NQ = "task-spooler", "nq"


class Peer(NamedTuple):
    """A program: how it is called for so many slots, and in which variable a job finds its slot."""

    name: str
    argv: Callable[[int], list[str]]
    slot_variable: str = ""


def peers() -> dict[str, Peer]:
    """Those that are installed; ours first."""
    old = ROOT / "benchmarks/.peers/bin/simple_gpu_scheduler"
    known = [
        Peer(OURS, lambda slots: [str(ROOT / "bin/simple_gpu_scheduler"), "--gpus", f"0-{slots - 1}"], "SGS_SLOT"),
        Peer(
            XARGS,
            lambda slots: ["xargs", "--process-slot-var=SLOT", f"-P{slots}", "-d", "\\n", "-n1", "sh", "-c"],
            "SLOT",
        ),
        Peer(PARALLEL, lambda slots: ["parallel", f"-j{slots}"], "PARALLEL_JOBSLOT"),
        Peer(OLD, lambda slots: [str(old), "--gpus", *map(str, range(slots))], "CUDA_VISIBLE_DEVICES"),
        Peer(TASK_SPOOLER, lambda slots: ["sh", "-c", _TASK_SPOOLER.format(slots=slots)]),
        Peer(NQ, lambda _slots: ["sh", "-c", _NQ]),
    ]
    programs = {TASK_SPOOLER: "tsp", NQ: "nq"}
    return {peer.name: peer for peer in known if shutil.which(programs.get(peer.name, peer.argv(1)[0]))}


# Neither reads a list of commands: each job is handed in by a call of its own, and the last is waited for.
_TASK_SPOOLER = 'tsp -S {slots}; while read -r line; do tsp -n sh -c "$line" >/dev/null; done; tsp -w; tsp -K'
_NQ = 'while read -r line; do nq -q sh -c "$line"; done; nq -w'


def run(peer: Peer, slots: int, stdin: Path) -> None:
    """Let it run all lines of a file."""
    with tempfile.TemporaryDirectory() as directory, stdin.open() as lines, (Path(directory) / "err").open("wb") as err:
        own = {"TS_SOCKET": f"{directory}/socket", "NQDIR": directory}
        subprocess.run(
            peer.argv(slots),
            stdin=lines,
            stdout=subprocess.DEVNULL,
            stderr=err,
            env=clean_environment() | own,
            check=peer.name == OURS,  # a run that fails is quick
        )


@cache
def home() -> str:
    """A home without settings. It is kept for the whole run: GNU parallel makes itself at home the first time."""
    directory = tempfile.mkdtemp(prefix="bench-home-")
    atexit.register(shutil.rmtree, directory)
    (Path(directory) / ".parallel").mkdir()
    (Path(directory) / ".parallel/will-cite").touch()
    if shutil.which("parallel"):
        subprocess.run(["parallel"], input=b"true\n", env=os.environ | {"HOME": directory}, check=False)
    return directory


def clean_environment() -> dict[str, str]:
    """The environment without what would slow Python down, and without anybody's settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {"HOME": home()}


def peak_while_running(argv: list[str], stdin: Path | None, stay: float, early_for: float = 1) -> tuple[float, float]:
    """The peak resident size, after the first moments and at the end or after so long; then the program is ended."""
    with Path(stdin or os.devnull).open() as lines:
        process = subprocess.Popen(
            argv, stdin=lines, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment()
        )
    early = late = 0.0
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < stay:
        found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        late = int(found[1]) / 1024 if found else late
        if time.monotonic() - began < early_for:
            early = late
        time.sleep(0.05)
    process.kill()
    process.wait()
    return early, late
