"""Finds what an attempt leaves behind after its main process has ended, and ends it: a moment, TERM, a grace period,
KILL.

Daemons create a session of their own and keep running when their parent has ended; as orphans they become children of
this process. A pure function over a snapshot of /proc decides which of them may belong to an attempt that still runs.
How an attempt marks its processes is up to the engine.
"""

import os
import time

from simple_gpu_scheduler.base.stdlib import signal
from simple_gpu_scheduler.base.values import Callable, Collection, Iterable, Literal, Mapping, NamedTuple, Sequence

from .processes import TAGS, UNTAGGED, send_signal

# The attempt of a process by its mark or tag: a running one, an ended one, or neither mark nor tag.
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
    oldest = min((table[pid].born for pid in running if pid in table), default=float("inf"))
    found = []
    for orphan in table.values():
        if orphan.parent != me or orphan.pid in running or orphan.session in running:
            continue
        whose = owner(orphan.pid)
        if whose == "ended" or (whose == "unknown" and orphan.born < oldest):
            found.append(orphan)
    return [process for process in below(table, found) if not process.has_ended]


def below(table: Table, processes: Iterable[Process]) -> list[Process]:
    """These and all processes below them."""
    by_parent: dict[int, list[Process]] = {}
    for process in table.values():
        by_parent.setdefault(process.parent, []).append(process)
    found = list(processes)
    for process in found:  # grows while it is walked
        found += by_parent.get(process.pid, ())
    return found


class Swept(NamedTuple):
    """How many processes had to be ended, the pids of those of other users, and the terminal multiplexer among them."""

    ended: int
    beyond_us: Sequence[int]
    server: str


def end_all(
    find: Callable[[], Iterable[Process]],
    grace: float,
    told: Callable[[], int] = lambda: 0,
    told_groups: Callable[[], Collection[int]] = tuple,
) -> Swept:
    """End all that is found and does not end by itself, and wait until it is gone.

    A look at /proc is not atomic, and may miss a process that forks and exits meanwhile: so it takes two clean ones in
    a row. If the attempt was `told` to end, what it left is too, without delay; with KILL, the grace period is over.
    The process groups in `told_groups` have had a TERM: to many programs a second one means that there is no time left.
    """
    patient_until, kill_at = time.monotonic() + PATIENCE, 0.0
    signalled: set[tuple[int, int]] = set()
    beyond_us: set[tuple[int, int]] = set()
    pause, clean, count, server = _FIRST_PAUSE, 0, 0, ""
    while True:
        left = [process for process in find() if process.identity not in beyond_us]
        clean = 0 if left else clean + 1
        if clean == _CLEAN_LOOKS:
            return Swept(count, sorted(pid for pid, _ in beyond_us), server)
        now = time.monotonic()
        if left and (count or told() or now >= patient_until):
            if not count:
                count, server, kill_at, pause = len(left), server_among(left), now + grace, _FIRST_PAUSE
            force = told() == signal.SIGKILL or now >= kill_at
            for process in left:
                knows = process.identity in signalled or process.group in told_groups()
                if (force or not knows) and not _tell(process, force=force):
                    beyond_us.add(process.identity)
                signalled.add(process.identity)
        time.sleep(pause if left else _FIRST_PAUSE)
        pause = min(2 * pause, _LONGEST_PAUSE if count else _LONGEST_PATIENT_PAUSE)


def server_among(processes: Iterable[Process]) -> str:
    """The program of a server that keeps terminals for its user: tmux, screen, or none."""
    names = [read_entry(process.pid, "comm").rstrip(b"\n") for process in processes]
    return next((_SERVERS[name] for name in names if name in _SERVERS), "")


def _tell(process: Process, *, force: bool) -> bool:
    """Signal a process, unless its pid is another's now; False if that is not allowed."""
    now = read_process(process.pid)
    if now is None or now.identity != process.identity:
        return True
    return send_signal(process.pid, signal.SIGKILL if force else signal.SIGTERM)


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
    fields = read_entry(pid, "stat").rpartition(b") ")[2].split()
    if len(fields) < 20:  # noqa: PLR2004 - all or none of them are there
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
    pairs = read_entry(pid, "environ").split(b"\0")
    return next((pair[len(name) + 1 :] for pair in pairs if pair.startswith(name + b"=")), b"")


def read_tag(pid: int) -> int:
    """The tag of a process that was not reaped, also of another user's, such as `sudo`; 0 if it has none."""
    limit = read_entry(pid, "limits").partition(b"Max msgqueue size")[2].split()[:1]
    tag = UNTAGGED - int(limit[0]) if limit and limit[0].isdigit() else 0
    return tag if 0 < tag < TAGS else 0


def read_entry(pid: int, name: str) -> bytes:
    """What /proc says of a process; empty if there is none any more, or it may not be read."""
    try:
        with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""
