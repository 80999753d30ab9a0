"""The attempts of a keeper as its child processes: started, signalled, waited for, and rid of what they leave behind.

The thread that starts an attempt stays with it until nothing of it is left; any thread may signal it. Threads are never
the main one, to which the kernel gives orphans. It knows attempts only by name, and nothing of who is told.
"""

import errno
import os
import time

from simple_gpu_scheduler.base.stdlib import Lock, signal
from simple_gpu_scheduler.base.values import Callable, Sequence
from simple_gpu_scheduler.system import files, leftovers, processes
from simple_gpu_scheduler.system.leftovers import Owner, Running
from simple_gpu_scheduler.system.marks import TREE, attempts_in

from .connection import close_all
from .messages import PID, AttemptEnded, BeyondUs, MainExited, Message, Start, Stop, name_of, written_use

_ABOUT_A_START = 0.001
_MOST_LOOKS = 100
_AT_ONCE = 1.0  # seconds: of shorter attempts nobody wants to know what they used
_UNSAID = 2**63  # instead of a number: nobody was told yet


class _Child:
    """An attempt that is not over. Only `Children` changes it."""

    def __init__(self, attempt: bytes, tag: int) -> None:
        self.attempt = attempt
        self.tag = tag
        self.began = time.monotonic()
        self.pid = 0  # of its main process: 0 until that is known, -1 if it could not be started
        self.exited = 0  # once the main process has ended, the number of the message that said so
        self.was_told = False  # whether the process group was signalled
        self.told = 0  # the signal for it while it has no main process yet, or no longer

    @property
    def has_main(self) -> bool:
        """Whether its main process exists, and so its pid is not another's."""
        return self.pid > 0 and not self.exited

    def signal(self, number: int) -> bool:
        """Signal its process group; False if that is not allowed."""
        self.was_told = True
        return processes.send_signal(-self.pid, number)


class Children:
    """Runs attempts in sessions of their own."""

    def __init__(self, environment: Sequence[bytes], tell: Callable[[Message], int]) -> None:
        """`tell` passes a message on and returns its number."""
        self.run_id = b""
        self.grace = 0.0
        self._tell = tell
        self._starter = processes.Starter(environment)
        self._orphans = processes.Orphans()
        self._signing = Lock()  # guards the next
        self._signed: dict[bytes, int] = {}  # by lease, the number of the newest start
        self._lock = Lock()  # guards what is below, and so pids: none is signalled after it was reaped
        self._unfinished: dict[bytes, _Child] = {}  # those whose ends were not told yet
        self._told: dict[bytes, int] = {}  # the signals for others: not known yet, or no longer
        self._is_closed = False

    def run(self, number: int, start: Start, descriptors: Sequence[int] | None) -> None:
        """Run an attempt until nothing of it is left, unless it is known already.

        `number` is that of the message; None as descriptors says that there were too many. They are closed.
        """
        attempt, child = start.attempt, None
        with self._lock:
            if not self._is_closed and attempt not in self._unfinished:
                child = self._unfinished[attempt] = _Child(attempt, processes.tag_of(number))
                child.told = self._told.pop(attempt, 0)
        try:
            error = self._start(child, number, start, descriptors) if child else 0
        finally:
            close_all(descriptors or ())
        if child:
            self._tell(self._wait(child) if child.pid > 0 else AttemptEnded(attempt, errno=error))
            with self._lock:
                del self._unfinished[attempt]
                if child.pid > 0:  # only now: if we are killed before, it is the scheduler's, with its status
                    processes.reap(child.pid)

    def _start(self, child: _Child, number: int, start: Start, descriptors: Sequence[int] | None) -> int:
        """Start its main process; the errno if that fails."""
        pid = error = 0
        if child.told:
            error = errno.ECANCELED
        elif descriptors is None:
            error = errno.EMFILE
        else:
            streams = tuple(zip(descriptors, map(int, start.streams.decode()), strict=False))
            leases = tuple(descriptors[len(streams) :])
            try:
                pid = self._starter.start(start.argv, start.environment, leases, streams, child.tag)
            except OSError as failure:
                error = failure.errno or errno.EIO
        with self._lock:
            child.pid = pid or -1
            if pid and child.told:
                child.signal(child.told)
        if pid:
            self._sign(number, start.signatures, leases, pid)
        return error

    def _sign(self, number: int, signatures: Sequence[bytes], leases: Sequence[int], pid: int) -> None:
        """Write into its lease files who has them. Of two starts that share one, the newer knows both."""
        with self._signing:
            for name, text, fd in zip(signatures[::2], signatures[1::2], leases, strict=True):
                if self._signed.get(name, 0) < number:
                    self._signed[name] = number
                    files.write_at_start(fd, text.replace(PID, b"%d" % pid))

    def stop(self, stop: Stop, known: int) -> None:
        """Signal the process group of an attempt, now or as soon as it has one; or hurry the end of its leftovers.

        `known` is the number of the last message that the sender knew: who did not know that the main process has ended
        cannot mean what is left.
        """
        number = signal.SIGKILL if stop.force else signal.SIGTERM
        may = True
        with self._lock:
            child = self._unfinished.get(stop.attempt)
            if not child:
                self._told[stop.attempt] = number
            elif child.has_main:
                may = child.signal(number)
            elif known >= child.exited:
                child.told = number
        if not may:
            self._tell(BeyondUs(stop.attempt))

    def forget(self, attempt: bytes) -> None:
        """Its end was recorded: what was said of it too late means nothing."""
        self._told.pop(attempt, None)

    def close(self) -> list[tuple[bytes, int]]:
        """Start no more; the attempts that are not over, and their pids."""
        self._is_closed = True
        self._wait_for_starts()
        with self._lock:
            return [(child.attempt, child.pid) for child in self._unfinished.values() if child.pid > 0]

    @property
    def are_idle(self) -> bool:
        """Whether all ends were told."""
        return not self._unfinished

    def _wait_for_starts(self) -> None:
        """Wait until those that are just being started have their pids."""
        with self._lock:
            children = list(self._unfinished.values())
        while any(not child.pid for child in children):
            time.sleep(_ABOUT_A_START)

    def _wait(self, child: _Child) -> AttemptEnded:
        """Wait until its main process has ended, and then end what it left."""
        status = processes.wait_for_end(child.pid)
        with self._lock:
            child.exited = _UNSAID
        used = b""
        if time.monotonic() - child.began >= _AT_ONCE and (told := processes.used_by(child.pid)):
            used = written_use(told)
        ended = AttemptEnded(child.attempt, status, was_told=int(child.was_told), used=used)
        return self._sweep(child, ended) if self._has_orphans() else ended

    def _has_orphans(self) -> bool:
        """Whether processes are left of attempts that have ended, or of those that run."""
        alive = self._orphans.alive()
        if alive is None:  # this kernel does not tell
            children = leftovers.children(os.getpid())
            self._wait_for_starts()  # asked later: what is being started is no orphan
            with self._lock:
                return processes.are_alive(children.difference([child.pid for child in self._unfinished.values()]))
        return alive

    def _sweep(self, child: _Child, ended: AttemptEnded) -> AttemptEnded:
        """End what it left behind; its end, with what was found.

        What is read from /proc is not certain: a process may be missed. What the kernel says is.
        """
        child.exited = self._tell(MainExited(child.attempt))
        count, looks, server = 0, 0, ""
        while True:
            swept = leftovers.end_all(
                lambda: leftovers.strays(leftovers.read_table(), os.getpid(), self._running(), self._owner),
                self.grace,
                lambda: child.told or (signal.SIGTERM if child.was_told else 0),
                lambda: [each.pid for each in list(self._unfinished.values()) if each.was_told],
            )
            count, server = count + swept.ended, server or swept.server
            beyond_us = ", ".join(map(str, swept.beyond_us))
            looks = 0 if swept.ended else looks + 1
            if looks > _MOST_LOOKS:
                beyond_us = "some that are not visible to this user"
            has_orphans = self._has_orphans()  # always asked: it also reaps those that were ended
            if beyond_us or len(self._unfinished) > 1 or not has_orphans:
                return ended._replace(swept=count, beyond_us=beyond_us.encode(), server=server.encode())

    def _mains(self) -> list[_Child]:
        with self._lock:
            return [child for child in self._unfinished.values() if child.has_main]

    def _running(self) -> Running:
        """The main processes of running attempts, including those that are just being started."""
        self._wait_for_starts()
        return Running(child.pid for child in self._mains())

    def _owner(self, pid: int) -> Owner:
        attempts = attempts_in(leftovers.read_variable(pid, TREE), self.run_id)
        its = name_of(attempts[0]) if attempts else leftovers.read_tag(pid)
        if not its:
            return "unknown"
        return "running" if any(its in (main.attempt, main.tag) for main in self._mains()) else "ended"
