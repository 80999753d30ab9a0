"""The attempts of a keeper as its child processes: started, signalled, waited for, and rid of what they leave behind.

The thread that starts an attempt stays with it until nothing of it is left; any thread may signal it. Threads are never
the main one, to which the kernel gives orphans. It knows attempts only by name, and nothing of who is told.
"""

import errno
import os
import sys
import time

from simple_gpu_scheduler.base.stdlib import Lock, signal
from simple_gpu_scheduler.base.values import Callable, NamedTuple, Sequence
from simple_gpu_scheduler.system import files, leftovers, processes
from simple_gpu_scheduler.system.leftovers import Owner, Running
from simple_gpu_scheduler.system.marks import TREE, mark_in

from .messages import PID, AttemptEnded, BeyondUs, MainExited, Message, Start, Stop

_ABOUT_A_START = 0.001
_MOST_LOOKS = 100
_UNSAID = sys.maxsize  # instead of a number: nobody was told yet


class _Main(NamedTuple):
    """The main process of a running attempt: how to recognise what belongs to it."""

    attempt: bytes
    mark: bytes
    tag: int


class Children:
    """Runs attempts in sessions of their own."""

    def __init__(
        self, environment: Sequence[bytes], tell: Callable[[Message], int], when_idle: Callable[[], object]
    ) -> None:
        """`tell` passes a message on and returns its number; `when_idle` is called when nothing runs any more."""
        self.run_id = b""
        self.grace = 0.0
        self._tell = tell
        self._when_idle = when_idle
        self._starter = processes.Starter(environment)
        self._tags = processes.Tags()
        self._orphans = processes.Orphans()
        self._signing = Lock()  # guards the next
        self._signed: dict[bytes, int] = {}  # by lease, the number of the newest start
        self._lock = Lock()  # guards what is below, and so pids: none is signalled after it was reaped
        self._busy: dict[bytes, int] = {}  # the attempts whose ends were not told yet, and their pids
        self._starting: set[bytes] = set()
        self._mains: dict[int, _Main] = {}
        self._left: dict[bytes, int] = {}  # whose main process has ended, and the number of the message that said so
        self._told: dict[bytes, int] = {}  # the signals for attempts that have no main process yet, or no longer
        self._told_groups: dict[int, bytes] = {}  # the process groups that were signalled, and their attempts
        self._is_closed = False

    def run(self, number: int, start: Start, descriptors: Sequence[int] | None) -> None:
        """Run an attempt until nothing of it is left, unless it is known already.

        `number` is that of the message; None as descriptors says that there were too many. They are closed.
        """
        attempt = start.attempt
        with self._lock:
            is_new = not self._is_closed and attempt not in self._busy
            if is_new:
                self._busy[attempt] = 0
                self._starting.add(attempt)
        try:
            pid, error = self._start(number, start, descriptors) if is_new else (0, 0)
        finally:
            for fd in descriptors or ():
                os.close(fd)
        if is_new:
            self._end(self._wait(attempt, pid) if pid else AttemptEnded(attempt, errno=error))

    def _start(self, number: int, start: Start, descriptors: Sequence[int] | None) -> tuple[int, int]:
        """The pid, or why there is none."""
        pid, error = 0, errno.EMFILE
        if start.attempt in self._told:
            error = errno.ECANCELED
        elif descriptors is not None:
            try:
                pid = self._launch(start, descriptors)
            except OSError as failure:
                error = failure.errno or errno.EIO
        self._register(number, start, pid)
        if pid and descriptors and start.signatures:
            self._sign(number, start, descriptors, pid)
        return pid, error

    def _launch(self, start: Start, files: Sequence[int]) -> int:
        streams = tuple(zip(files, map(int, start.streams.decode()), strict=False))
        return self._starter.start(start.argv, start.environment, tuple(files[len(streams) :]), streams)

    def _register(self, number: int, start: Start, pid: int) -> None:
        """From now on it can be signalled."""
        attempt = start.attempt
        with self._lock:
            self._busy[attempt] = pid
            if pid:
                tag = self._tags.of(number)
                self._tags.put(pid, tag)
                self._mains[pid] = _Main(attempt, mark_in(start.environment[-1], self.run_id), tag)
                if attempt in self._told:
                    self._signal(attempt, pid, self._told[attempt])
            self._starting.discard(attempt)

    def _sign(self, number: int, start: Start, descriptors: Sequence[int], pid: int) -> None:
        """Write into its lease files who has them. Of two starts that share one, the newer knows both."""
        leases = descriptors[len(start.streams) :]
        with self._signing:
            for name, text, fd in zip(start.signatures[::2], start.signatures[1::2], leases, strict=True):
                if self._signed.get(name, 0) < number:
                    self._signed[name] = number
                    files.write_at_start(fd, text.replace(PID, b"%d" % pid))

    def stop(self, stop: Stop, known: int) -> None:
        """Signal the process group of an attempt, now or as soon as it has one; or hurry the end of its leftovers.

        `known` is the number of the last message that the sender knew: who did not know that the main process has ended
        cannot mean what is left.
        """
        attempt, number = stop.attempt, signal.SIGKILL if stop.force else signal.SIGTERM
        with self._lock:
            pid = self._busy.get(attempt, 0)
            if pid in self._mains:
                may = self._signal(attempt, pid, number)
            else:
                may = True
                if known >= self._left.get(attempt, 0):
                    self._told[attempt] = number
        if not may:
            self._tell(BeyondUs(attempt))

    def _signal(self, attempt: bytes, pid: int, number: int) -> bool:
        self._told_groups[pid] = attempt
        return processes.signal_group(pid, number)

    def forget(self, attempt: bytes) -> None:
        """Its end was recorded: what was said of it too late means nothing."""
        self._told.pop(attempt, None)

    def close(self) -> list[tuple[bytes, int]]:
        """Start no more; the attempts that are not over, and their pids."""
        with self._lock:
            self._is_closed = True
        while self._starting:
            time.sleep(_ABOUT_A_START)
        with self._lock:
            return [(attempt, pid) for attempt, pid in self._busy.items() if pid]

    @property
    def are_idle(self) -> bool:
        """Whether all ends were told."""
        return not self._busy

    def _wait(self, attempt: bytes, pid: int) -> AttemptEnded:
        """Wait until its main process has ended, and then end what it left."""
        status = processes.wait_for_end(pid)
        with self._lock:
            del self._mains[pid]
            self._left[attempt] = _UNSAID
            ended = AttemptEnded(attempt, status, was_told=int(pid in self._told_groups))
        return self._sweep(ended) if self._has_orphans() else ended

    def _end(self, ended: AttemptEnded) -> None:
        """Nothing of it is left."""
        attempt = ended.attempt
        with self._lock:
            self._left.pop(attempt, None)
            self._told.pop(attempt, None)
            if self._told_groups:
                for group in [group for group, whose in self._told_groups.items() if whose == attempt]:
                    del self._told_groups[group]  # the number may soon belong to another group
        self._tell(ended)
        with self._lock:
            pid = self._busy.pop(attempt)
            if pid:
                processes.reap(pid)  # only now: if we are killed before, it is the scheduler's, with its status
            is_idle = not self._busy
        if is_idle:
            self._when_idle()

    def _has_orphans(self) -> bool:
        """Whether processes are left of attempts that have ended, or of those that run."""
        alive = self._orphans.alive()
        if alive is None:  # this kernel does not tell
            children = leftovers.children(os.getpid())
            self._running()  # asked later: what is being started is no orphan
            with self._lock:
                return processes.are_alive(children.difference(self._busy.values()))
        return alive

    def _sweep(self, ended: AttemptEnded) -> AttemptEnded:
        """End what it left behind; its end, with what was found.

        What is read from /proc is not certain: a process may be missed. What the kernel says is.
        """
        number = self._tell(MainExited(ended.attempt))
        with self._lock:
            self._left[ended.attempt] = number
        count, looks, server = 0, 0, ""
        while True:
            swept = self._end_strays(ended.attempt)
            count, server = count + swept.ended, server or swept.server
            beyond_us = ", ".join(map(str, swept.beyond_us))
            looks = 0 if swept.ended else looks + 1
            if looks > _MOST_LOOKS:
                beyond_us = "some that are not visible to this user"
            has_orphans = self._has_orphans()  # always asked: it also reaps those that were ended
            if beyond_us or len(self._busy) > 1 or not has_orphans:
                break
        return ended._replace(swept=count, beyond_us=beyond_us.encode(), server=server.encode())

    def _end_strays(self, attempt: bytes) -> leftovers.Swept:
        return leftovers.end_strays(
            self._running,
            self._owner,
            self.grace,
            lambda: self._told.get(attempt) == signal.SIGKILL,
            self._told_groups,
            lambda: attempt in self._told or attempt in [*self._told_groups.values()],
        )

    def _running(self) -> Running:
        """The main processes of running attempts, including those that are just being started."""
        starting = set(self._starting)
        while starting & self._starting:
            time.sleep(_ABOUT_A_START)
        with self._lock:
            return Running(self._mains)

    def _owner(self, pid: int) -> Owner:
        with self._lock:
            mains = tuple(self._mains.values())
        its_mark = mark_in(leftovers.read_variable(pid, TREE), self.run_id)
        if its_mark:
            return "running" if its_mark in [main.mark for main in mains] else "ended"
        tag = self._tags.read(pid)
        if not tag:
            return "unknown"
        return "running" if tag in [main.tag for main in mains] else "ended"
