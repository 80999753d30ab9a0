"""Attempts as processes of this machine: a pool of threads, each of which starts an attempt and waits until it ends.

The threads share only two things with the rest of the program: the queue of work and the inbox for results. It knows
nothing of GPUs, order or time.
"""

import errno
import os
import signal
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.jobs import Attempt, Key, Outcome, outcome_of
from simple_gpu_scheduler.base.values import NamedTuple
from simple_gpu_scheduler.gpus.leases import Hold
from simple_gpu_scheduler.keeper.launcher import Launcher
from simple_gpu_scheduler.system import leftovers, processes
from simple_gpu_scheduler.system.job_environment import inherited, own, unbuffered
from simple_gpu_scheduler.system.leftovers import Owner, Running
from simple_gpu_scheduler.system.marks import TREE, mark, mark_in
from simple_gpu_scheduler.system.threads import start_thread

from .protocol import Setting

_ABOUT_A_START = 0.001
_INIT = 1
_REAPED = 0
_MOST_LOOKS = 100


class ChildExited(NamedTuple):
    """The main process of an attempt has ended, or could not be started; `is_refused` if that may be otherwise soon.

    Once it is settled, nothing of the attempt is left: `swept` counts the processes that it left behind and that were
    ended, `beyond_us` lists the pids of those that this user may not end, and `server` is the server among them, as
    tmux. `looks` counts looks in a row that found nothing although something is left.
    """

    attempt: Attempt
    outcome: Outcome
    is_settled: bool = False
    swept: int = 0
    beyond_us: str = ""
    server: str = ""
    looks: int = 0
    is_refused: bool = False


class Children:
    """Runs attempts as shell commands on this machine."""

    def __init__(self, setting: Setting, put: Callable[[ChildExited | Broken], None]) -> None:
        self._put = put
        self._shell = os.fsencode(setting.shell)
        self._grace = setting.grace
        self._run_id = setting.run_id.encode()
        self._outer_tree = setting.environment.get(TREE, b"")
        self._environment = setting.environment
        self._starter = processes.Starter(inherited(setting.environment))
        self._keeper = setting.keeper
        self._open_streams = setting.open_streams
        self._spared = setting.spared
        self._settled: list[Key] = []  # whose ends were recorded, which the keeper must know
        self._reaped: dict[int, int] = {}  # main processes that came to us as orphans, when the keeper was killed
        self._tags = processes.Tags()
        self._work: SimpleQueue[Callable[[Launcher], ChildExited] | None] = SimpleQueue()
        self._threads = 0
        self._busy = 0
        self._starting: set[Key] = set()
        self._lock = threading.Lock()  # guards what is below, and so pids: none is signalled after it was reaped
        self._pids: dict[Key, int] = {}  # _REAPED from the end of the main process until the attempt is settled
        self._marks: dict[int, tuple[bytes, int]] = {}
        self._told: dict[Key, int] = {}  # the signals sent to attempts that have no process yet, or no longer
        self._told_groups: dict[int, Key] = {}  # the process groups that were signalled, and their attempts
        processes.adopt_orphans()
        # Earlier children, of the shell that became this program, belong to no attempt.
        self._before = leftovers.children(os.getpid()) if processes.has_orphans() else frozenset[int]()
        self._spares_unknown = bool(self._before) or os.getpid() == _INIT
        if self._keeper:
            self._before |= {self._keeper.pid}

    def start(self, attempt: Attempt, hold: Hold) -> None:
        """Hand the attempt to a thread."""
        recorded = self._take_settled()
        if not self._do(lambda launcher: self._run(launcher, attempt, hold, recorded), now=True):
            self._busy += 1  # its end is reported anyway
            if self._keeper:
                self._keeper.let_go(recorded)
            self._put(_not_started(attempt, OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))))

    def stop(self, attempt: Attempt, *, force: bool) -> bool:
        """Signal the attempt's process group, now or as soon as it has one; False when this user may not."""
        number = signal.SIGKILL if force else signal.SIGTERM
        with self._lock:
            pid = self._pids.get(attempt.key)
            if pid:
                return self._signal(attempt.key, pid, number)
            self._told[attempt.key] = number
        return True

    def has_ended(self, attempt: Attempt) -> bool:
        """Whether its main process has ended."""
        with self._lock:
            pid = self._pids.get(attempt.key)
            if not pid:
                return pid == _REAPED
            process = leftovers.read_process(pid)
            return process is None or process.has_ended

    def settle(self, ended: ChildExited) -> bool:
        """Look for what the attempt left behind; if there is something, let a thread end it first."""
        self._busy -= 1
        # Always called: it also reaps those that a sweep has ended.
        has_orphans = processes.has_orphans(self._keep_status)
        # What the kernel says is certain. What a thread read from /proc is not: it may have slept, or missed a process.
        is_sure = not has_orphans or (ended.is_settled and (self._busy or self._spares_unknown or ended.beyond_us))
        if is_sure or not self._do(lambda _launcher: self._sweep(ended)):
            self._forget(ended.attempt.key)
            if ended.is_refused:
                self._end_idle_threads()
            return True
        return False

    def _end_idle_threads(self) -> None:
        """Each counts against the limit on processes, and so does its partner in the keeper."""
        while self._threads > max(1, self._busy):
            self._work.put(None)
            self._threads -= 1

    def _keep_status(self, pid: int, status: int) -> None:
        if self._keeper and (pid in self._marks or self._keeper.is_gone.is_set()):  # it may be seen in a moment
            self._reaped[pid] = status

    def _forget(self, key: Key) -> None:
        if self._keeper:
            self._settled.append(key)
        with self._lock:
            self._told.pop(key, None)
            self._pids.pop(key, None)
            for group in [group for group, whose in self._told_groups.items() if whose == key]:
                del self._told_groups[group]  # the number may soon belong to another group

    def _signal(self, key: Key, pid: int, number: int) -> bool:
        self._told_groups[pid] = key
        return processes.signal_group(pid, number)

    def recorded(self) -> None:
        """Tell the keeper which ends were recorded, unless a later start has told it already."""
        if self._settled and self._keeper:
            self._keeper.let_go(self._take_settled())

    def _take_settled(self) -> bytes:
        keys = b" ".join([b"%d.%d" % key for key in self._settled])
        self._settled.clear()
        return keys

    def close(self) -> None:
        """End the threads."""
        for _ in range(self._threads):
            self._work.put(None)

    def _do(self, work: Callable[[Launcher], ChildExited], *, now: bool = False) -> bool:
        """Let a thread do it, later if no more threads can be started unless it must be `now`; False if none will."""
        if self._busy >= self._threads:
            try:
                start_thread(self._serve)
                self._threads += 1
            except RuntimeError:
                if now or not self._threads:
                    return False
        self._busy += 1
        self._work.put(work)
        return True

    def _serve(self) -> None:
        launcher = Launcher(self._starter, self._keeper, self._reaped.get)
        while (work := self._work.get()) is not None:
            try:
                self._put(work(launcher))
            except BaseException as error:  # noqa: BLE001 - the loop raises it; here, the end would never be reported
                self._put(Broken(error))

    def _run(self, launcher: Launcher, attempt: Attempt, hold: Hold, recorded: bytes) -> ChildExited:
        try:
            pid = self._start(launcher, attempt, hold, recorded)
        except OSError as error:
            return _not_started(attempt, error)
        if pid is None:
            return ChildExited(attempt, Outcome("not started", reason="it was stopped before it could start"))
        hold.sign(pid, attempt.job.number, attempt.job.name)
        status = launcher.wait(pid)
        with self._lock:
            self._pids[attempt.key] = _REAPED
            del self._marks[pid]
            launcher.reap(pid)
            self._reaped.pop(pid, None)
        return ChildExited(attempt, outcome_of(status))

    def _start(self, launcher: Launcher, attempt: Attempt, hold: Hold, recorded: bytes) -> int | None:
        key, command = attempt.key, attempt.job.command
        if key in self._told:
            return None
        # Only where it is needed: a shell that is not POSIX may take `--` for the command.
        guard = (b"--",) if command[:1] in (b"-", b"+") else ()
        # Before it starts: a scheduler inside it will look for its mark.
        hold.sign(os.getpid(), attempt.job.number, attempt.job.name)
        argv = (self._shell, b"-c", *guard, command)
        streams = self._open_streams(attempt)
        prints = unbuffered(self._environment, [number for _, number in streams])
        own_variables = [*prints, *own(attempt, self._run_id, self._outer_tree)]
        self._starting.add(key)
        try:
            pid = launcher.start(key, recorded, argv, own_variables, hold.descriptors, streams)
            with self._lock:
                self._pids[key] = pid
                self._marks[pid] = (mark(attempt, self._run_id), self._tags.put(pid))
                if key in self._told:
                    self._signal(key, pid, self._told[key])
        finally:
            self._starting.discard(key)
            for fd in {fd for fd, _ in streams}:
                os.close(fd)
        return pid

    def _sweep(self, ended: ChildExited) -> ChildExited:
        key = ended.attempt.key
        swept = leftovers.end_strays(
            self._running,
            self._owner,
            self._grace,
            lambda: self._told.get(key) == signal.SIGKILL,
            self._told_groups,
            lambda: key in self._told or key in [*self._told_groups.values()],
        )
        pids = ", ".join(map(str, swept.beyond_us))
        looks = 0 if swept.ended else ended.looks + 1
        if looks > _MOST_LOOKS:
            pids = "some that are not visible to this user"
        return ended._replace(
            is_settled=True,
            swept=ended.swept + swept.ended,
            beyond_us=pids,
            server=ended.server or swept.server,
            looks=looks,
        )

    def _running(self) -> Running:
        """The pids that are no strays, including processes that are just being started."""
        starting = set(self._starting)
        while starting & self._starting:
            time.sleep(_ABOUT_A_START)
        spared = self._spared()
        with self._lock:
            return Running(set(self._marks), self._before | spared, self._spares_unknown)

    def _owner(self, pid: int) -> Owner:
        with self._lock:
            marks, tags = zip(*self._marks.values(), strict=True) if self._marks else ((), ())
        its_mark = mark_in(leftovers.read_variable(pid, TREE), self._run_id)
        if its_mark:
            return "running" if its_mark in marks else "ended"
        tag = self._tags.read(pid)
        if not tag:
            return "unknown"
        return "running" if tag in tags else "ended"


def _not_started(attempt: Attempt, error: OSError) -> ChildExited:
    refused = processes.why_refused(error.errno or 0)
    reason = refused or error.strerror or str(error)
    return ChildExited(attempt, Outcome("not started", reason=reason), is_refused=bool(refused))
