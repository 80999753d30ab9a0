"""What an attempt leaves behind when its main process has ended, and ending it: TERM, a grace period, KILL.

Daemons make a session of their own and outlive their parent; as orphans they become children of this process. Which of
those may belong to a job that still runs is decided by a pure function over a snapshot of /proc.
"""

import os
import signal
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import NamedTuple

Key = tuple[int, int]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.1


class Process(NamedTuple):
    """A row of the process table. `born` is in clock ticks since boot; with the pid it tells a process for good."""

    pid: int
    parent: int
    session: int
    born: int
    is_zombie: bool


Table = Mapping[int, Process]
FindOwner = Callable[[int], Key | None]


def strays(table: Table, me: int, mains: Mapping[int, Key], owner: FindOwner) -> list[Process]:
    """The orphans of `me` that cannot belong to an attempt that still runs, and all below them.

    `mains` are the main processes of the running attempts, `owner` reads the mark in a process's environment. A process
    that has left its session and cleared its environment tells nothing: it may belong to whatever ran when it was born.
    """
    below: dict[int, list[Process]] = {}
    for process in table.values():
        below.setdefault(process.parent, []).append(process)
    running = set(mains.values())
    oldest = min((table[pid].born for pid in mains if pid in table), default=None)
    found = []
    for orphan in below.get(me, ()):
        if orphan.pid in mains or orphan.session in mains or orphan.session == table[me].session:
            continue
        key = owner(orphan.pid)
        if key in running or (key is None and oldest is not None and oldest <= orphan.born):
            continue
        found.append(orphan)
    for process in found:  # grows while it is walked
        found += below.get(process.pid, ())
    return [process for process in found if not process.is_zombie]


def end_strays(mains: Callable[[], Mapping[int, Key]], owner: FindOwner, grace: float) -> list[Process]:
    """End all strays and wait until they are gone; those that cannot be ended, since they are another user's."""
    kill_at = time.monotonic() + grace
    told: set[Process] = set()
    beyond_us: set[Process] = set()
    pause = _FIRST_PAUSE
    while True:
        left = [process for process in strays(read_table(), os.getpid(), mains(), owner) if process not in beyond_us]
        if not left:
            return list(beyond_us)
        force = time.monotonic() >= kill_at
        for process in left:
            if (force or process not in told) and not _tell(process, force=force):
                beyond_us.add(process)
        told.update(left)
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _tell(process: Process, *, force: bool) -> bool:
    """Signal a process; False when that is not allowed."""
    if _read_process(process.pid) != process:  # it has ended, and the pid may be another's
        return True
    try:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL if force else signal.SIGTERM)
            os.kill(process.pid, signal.SIGCONT)
    except PermissionError:
        return False
    return True


def read_table() -> dict[int, Process]:
    """All processes that can be seen, by pid."""
    processes = (_read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in processes if process}


def _read_process(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.read().rpartition(b") ")[2].split()
    except OSError:  # it has just ended
        return None
    if len(fields) < 20:  # noqa: PLR2004 - as above, between open and read
        return None
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), fields[0] in (b"Z", b"X"))


def read_environment(pid: int, names: Collection[bytes]) -> dict[bytes, bytes]:
    """These variables as the process was started with; those that it does not have, or that may not be read, lack."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            pairs = [pair.partition(b"=") for pair in file.read().split(b"\0")]
    except OSError:
        return {}
    return {name: value for name, _, value in pairs if name in names}
