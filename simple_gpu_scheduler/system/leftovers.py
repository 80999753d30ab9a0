"""Finds what an attempt leaves behind after its main process has ended, and ends it: a moment, TERM, a grace period,
KILL.

Daemons create a session of their own and keep running when their parent has ended; as orphans they become children of
this process. A pure function over a snapshot of /proc decides which of them may belong to an attempt that still runs.
How an attempt marks its processes is up to the engine.
"""

import os
import time

from simple_gpu_scheduler.base.stdlib import signal, suppress
from simple_gpu_scheduler.base.values import Callable, Collection, Iterable, Literal, Mapping, NamedTuple, Sequence

# The attempt of a process by its mark: a running one, an ended one, or no mark.
Owner = Literal["running", "ended", "unknown"]

# How long leftovers have to end by themselves: the helpers of Python's multiprocessing do when their parent has gone.
PATIENCE = 0.5
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.1
_LONGEST_PATIENT_PAUSE = 0.02
_CLEAN_LOOKS = 2
_SERVERS = {b"tmux: server": "tmux", b"screen": "screen"}


class Process(NamedTuple):
    """A row of the process table. `born` is in clock ticks since boot."""

    pid: int
    parent: int
    group: int
    session: int
    born: int
    has_ended: bool

    @property
    def identity(self) -> tuple[int, int]:
        """A lasting identity: its parent may change, and its pid may be reused."""
        return self.pid, self.born


Table = Mapping[int, Process]


# The main processes of the running attempts, which must not be ended.
Running = frozenset[int]


def strays(table: Table, me: int, running: Running, owner: Callable[[int], Owner]) -> list[Process]:
    """The orphans of `me` that cannot belong to a running attempt, and all processes below them.

    One that left its session and lost its mark may belong to any attempt that was running when it was started.
    """
    by_parent = _by_parent(table)
    oldest = min((table[pid].born for pid in running if pid in table), default=None)
    found = []
    for orphan in by_parent.get(me, ()):
        if orphan.pid in running or orphan.session in running:
            continue
        whose = owner(orphan.pid)
        may_be_of_one = oldest is not None and oldest <= orphan.born
        if whose == "running" or (whose == "unknown" and may_be_of_one):
            continue
        found.append(orphan)
    return [process for process in _with_all_below(found, by_parent) if not process.has_ended]


def below(table: Table, pid: int) -> list[Process]:
    """All processes below one."""
    by_parent = _by_parent(table)
    return _with_all_below(by_parent.get(pid, []), by_parent)


def _by_parent(table: Table) -> dict[int, list[Process]]:
    found: dict[int, list[Process]] = {}
    for process in table.values():
        found.setdefault(process.parent, []).append(process)
    return found


def _with_all_below(processes: Sequence[Process], by_parent: Mapping[int, list[Process]]) -> list[Process]:
    found = list(processes)
    for process in found:  # grows while it is walked
        found += by_parent.get(process.pid, ())
    return found


class Swept(NamedTuple):
    """How many processes had to be ended, the pids of those of other users, and the terminal multiplexer among them."""

    ended: int = 0
    beyond_us: Sequence[int] = ()
    server: str = ""


def end_strays(
    running: Callable[[], Running],
    owner: Callable[[int], Owner],
    grace: float,
    hurry: Callable[[], bool],
    told_groups: Collection[int] = (),
    is_told: Callable[[], bool] = lambda: False,
) -> Swept:
    """End all strays that do not end by themselves, and wait until they are gone.

    A snapshot is not atomic, and may miss a process that forks and exits meanwhile: so it takes two clean ones in a
    row. With `hurry` the grace period is over. The processes in `told_groups` have had a TERM: to many programs a
    second one means that there is no time left. If the attempt `is_told` to end, its strays are too, without delay.
    """
    _wait_for_strays(running, owner, lambda: is_told() or hurry())
    kill_at = time.monotonic() + grace
    told: set[tuple[int, int]] = set()
    beyond_us: set[tuple[int, int]] = set()
    pause, clean, at_first, server = _FIRST_PAUSE, 0, 0, ""
    while True:
        found = strays(read_table(), os.getpid(), running(), owner)
        left = [process for process in found if process.identity not in beyond_us]
        clean = 0 if left else clean + 1
        if not at_first:
            at_first, server = len(left), server_among(process.pid for process in left)
        force = hurry() or time.monotonic() >= kill_at
        for process in left:
            knows = process.identity in told or process.group in told_groups
            if (force or not knows) and not _tell(process, force=force):
                beyond_us.add(process.identity)
            told.add(process.identity)
        if clean == _CLEAN_LOOKS:
            break
        time.sleep(pause if left else _FIRST_PAUSE)
        pause = min(2 * pause, _LONGEST_PAUSE)
    return Swept(at_first, sorted(pid for pid, _ in beyond_us), server)


def _wait_for_strays(running: Callable[[], Running], owner: Callable[[int], Owner], hurry: Callable[[], bool]) -> None:
    """Give them a moment to end by themselves."""
    until, pause = time.monotonic() + PATIENCE, _FIRST_PAUSE
    while not hurry() and time.monotonic() < until and strays(read_table(), os.getpid(), running(), owner):
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PATIENT_PAUSE)


def server_among(pids: Iterable[int]) -> str:
    """The program of a server that keeps terminals for its user: tmux, screen, or none."""
    return next((server for pid in pids if (server := _SERVERS.get(_name(pid), ""))), "")


def _name(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/comm", "rb", buffering=0) as file:
            return file.read().rstrip(b"\n")
    except OSError:  # it has just ended
        return b""


def _tell(process: Process, *, force: bool) -> bool:
    """Signal a process; False if that is not allowed."""
    now = read_process(process.pid)
    if now is None or now.identity != process.identity:
        return True
    try:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL if force else signal.SIGTERM)
            os.kill(process.pid, signal.SIGCONT)
    except PermissionError:
        return False
    return True


def children(pid: int) -> frozenset[int]:
    """The pids of its children, now."""
    return frozenset(process.pid for process in read_table().values() if process.parent == pid)


def read_table() -> dict[int, Process]:
    """All visible processes, by pid.

    The newest are read first: they are the ones that may be gone in a moment. One whose parent has gone by the time
    that is looked for has been given to another, and is read again.
    """
    pids = sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True)
    table = {pid: process for pid in pids if (process := read_process(pid))}
    for pid in [process.pid for process in table.values() if process.parent not in table]:
        again = read_process(pid)
        if again:
            table[pid] = again
    return table


def read_process(pid: int) -> Process | None:
    """One row, or None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.read().rpartition(b") ")[2].split()
    except OSError:  # it has just ended
        return None
    if len(fields) < 20:  # noqa: PLR2004 - as above, between open and read
        return None
    # A zombie whose other threads still run has not ended: only its main thread has.
    has_ended = fields[0] in (b"Z", b"X") and int(fields[17]) < 2  # noqa: PLR2004
    return Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]), has_ended)


def is_hidden(pid: int) -> bool:
    """Whether a process that /proc does not show exists and is another user's, as where it is mounted with hidepid."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):  # in a container, a pid of the machine may be larger than any here
        pass
    return False


def read_variable(pid: int, name: bytes) -> bytes:
    """A variable of the initial environment of a process; empty if it is not set or may not be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            pairs = file.read().split(b"\0")
    except OSError:
        return b""
    return next((pair[len(name) + 1 :] for pair in pairs if pair.startswith(name + b"=")), b"")
