"""What the tests of leases share: jobs that notice others on their GPU, the line for a lease, and other users."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import SCHEDULER, Program

# The lease file of GPU 0 where its UUID is unknown; then `ALONE` needs no NVML and asks for none.
LEASE = "index-0"
ALONE = ("--gpus", "0", "--ignore-occupancy")
UID = 1234

_LONELY = """
set -C  # so that > makes a file, and fails where there is one
IFS=,
for gpu in $CUDA_VISIBLE_DEVICES; do
    : > busy-$gpu || { echo "$SGS_RUN $SGS_JOB: gpu $gpu" >> collisions; exit 1; }
done
sleep $1
echo "$2" >> done
for gpu in $CUDA_VISIBLE_DEVICES; do rm busy-$gpu; done
"""


def lonely(directory: Path, seconds: float = 0.005, word: str = "x") -> str:
    """A command that fails, and leaves a note, when another of its kind is on one of its GPUs."""
    script = directory / "lonely.sh"
    if not script.exists():
        script.write_text(_LONELY)
        script.chmod(0o755)
    return f"sh {script} {seconds} {word}"


def were_alone(directory: Path) -> bool:
    """Whether none of them met another."""
    collisions = directory / "collisions"
    assert (directory / "done").stat().st_size, "no job has run at all"
    return not collisions.exists() or not collisions.stat().st_size


def leases() -> Path:
    """The directory of the lease files."""
    return Path(os.environ["SGS_LEASE_DIR"])


def unmeasured() -> dict[str, str]:
    """The environment for programs that are killed, or are another user's: no data on coverage."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}


def in_line(lease: str = LEASE, directory: Path | None = None) -> int:
    """How many wait for a lease, at its turnstile or behind it, as the kernel tells."""
    files = [(directory or leases()) / name for name in (lease, f"{lease}.next")]
    inodes = [str(file.stat().st_ino) for file in files if file.exists()]
    rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return sum("->" in row and any(word.rpartition(":")[2] in inodes for word in row) for row in rows)


def is_leased(lease: str = LEASE) -> bool:
    """Whether it is held."""
    with open(leases() / lease, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def held(lease: str = LEASE) -> Iterator[None]:
    """Hold a lease, as anybody may."""
    if not leases().exists():
        leases().mkdir()
        leases().chmod(0o1777)
    with open(leases() / lease, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def mount_namespace(script: str, cwd: Path, environment: Mapping[str, str] = os.environ) -> str:
    """What a shell script prints, with its stderr, that may mount for itself alone; $SGS is the program."""
    if os.geteuid() or not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("mounting in private takes root and `unshare -m`")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        cwd=cwd,
        env={**environment, "SGS": " ".join(SCHEDULER)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    return done.stdout.decode()


@contextmanager
def endless(program: Program, command: str) -> Iterator[None]:
    """Meanwhile, a scheduler runs this command again and again."""
    with subprocess.Popen(["yes", command], stdout=subprocess.PIPE) as lines:
        process = program.start(*ALONE, "--quiet", stdin=lines.stdout, env=unmeasured())
        assert lines.stdout
        lines.stdout.close()  # so that it ends with its reader
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)
            lines.kill()


def as_user(uid: int) -> list[str]:
    """What to put before a command so that another user runs it; for root, nothing."""
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if uid else []


def start_as(program: Program, uid: int, *args: str, umask: int = 0o022) -> "subprocess.Popen[bytes]":
    """Start the scheduler as another user."""
    command = [*as_user(uid), *SCHEDULER, *args]
    process = subprocess.Popen(
        command,
        cwd=program.directory,
        env=unmeasured() | {"XDG_STATE_HOME": str(program.directory / f"state-{uid}")},
        umask=umask,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    program._started.append(process)
    return process


def needs_users() -> None:
    """Skip what other users cannot do here."""
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("to run programs as other users takes root and setpriv")
    probe = [*as_user(UID), sys.executable, "-c", "import simple_gpu_scheduler"]
    if subprocess.run(probe, cwd="/", env=unmeasured(), capture_output=True, check=False).returncode:
        pytest.skip("other users may not read this Python or this package")
