"""What the Python processes among some processes are doing, by `py-spy dump`, if that program is installed.

It knows pids, and nothing of attempts. It waits: call it from a thread of its own.
"""

import os
import time
from io import FileIO

from simple_gpu_scheduler.base.stdlib import signal, suppress
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import Iterable, Mapping, Sequence

from . import processes
from .leftovers import Process, read_process

PROGRAM = "py-spy"
# Beyond the first ones, which started the others, come the copies of a data loader.
_MOST_PROCESSES = 8
_MOST_LINES, _MOST_BYTES = 200, 256 * 1024  # of one process
_SECONDS, _IN_ALL, _AFTER_KILL = 5.0, 15.0, 1.0
_PAUSE = 0.02
_STDOUT, _STDERR = 1, 2


def stacks_of(pids: Iterable[int], environment: Mapping[bytes, bytes]) -> list[str]:
    """For each Python process, the oldest first, what the program says of it; nothing if there is none."""
    pythons = _pythons(pids)
    if not pythons:
        return []
    program = _find(environment.get(b"PATH", os.fsencode(os.defpath)))
    if not program:
        return [f"{PROGRAM} is not on PATH; with it, the stacks of the Python processes would be here"]
    starter = processes.Starter([b"%s=%s" % item for item in environment.items()])
    until = time.monotonic() + _IN_ALL
    lines = []
    for process in pythons[:_MOST_PROCESSES]:
        lines.append(f"{PROGRAM} dump --pid {process.pid}")
        due = min(until, time.monotonic() + _SECONDS)
        lines += [f"  {line}" for line in _dump(starter, program, process.pid, due)]
    if len(pythons) > _MOST_PROCESSES:
        lines.append(f"{len(pythons) - _MOST_PROCESSES} more Python processes")
    return lines


def _pythons(pids: Iterable[int]) -> Sequence[Process]:
    found = [process for pid in pids if _is_python(pid) and (process := read_process(pid))]
    return sorted((each for each in found if not each.has_ended), key=lambda each: (each.born, each.pid))


def _is_python(pid: int) -> bool:
    with suppress(OSError):
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith("python")
    return False


def _find(path: bytes) -> bytes:
    """The program; empty if it is not in one of these directories."""
    for directory in path.split(b":"):
        found = os.path.join(directory or b".", PROGRAM.encode())
        if os.access(found, os.X_OK) and os.path.isfile(found):
            return os.path.abspath(found)
    return b""


def _dump(starter: processes.Starter, program: bytes, pid: int, due: float) -> list[str]:
    with FileIO(os.memfd_create("stacks", os.MFD_CLOEXEC), "r+") as said:
        streams = ((said.fileno(), _STDOUT), (said.fileno(), _STDERR))
        try:
            its_pid = starter.start([program, b"dump", b"--pid", b"%d" % pid], (), (), streams)
        except OSError as error:
            return [f"it cannot be started: {error.strerror}"]
        is_late = not _has_ended(its_pid, due)
        if is_late:
            processes.send_signal(-its_pid, signal.SIGKILL)
            if not _has_ended(its_pid, time.monotonic() + _AFTER_KILL):  # it runs sudo
                return ["it did not answer in time, and cannot be killed"]
        processes.reap(its_pid)
        text = os.pread(said.fileno(), _MOST_BYTES, 0).decode("utf-8", "backslashreplace")
    lines = [safe(line.rstrip()) for line in text.split("\n") if line.strip()]
    more = ["..."] if len(lines) > _MOST_LINES else []
    return lines[:_MOST_LINES] + more + (["it did not answer in time and was killed"] if is_late else [])


def _has_ended(pid: int, due: float) -> bool:
    while not processes.has_ended(pid):
        if time.monotonic() >= due:
            return False
        time.sleep(_PAUSE)
    return True
