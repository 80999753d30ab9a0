"""Starts programs, through the keeper or without one.

A job started by the keeper is not our child; the keeper reports its end. If the keeper is killed, its jobs become our
children, as all orphans do, and from then on jobs are started without it.
"""

import errno
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from simple_gpu_scheduler.system import processes
from simple_gpu_scheduler.system.leftovers import children, read_variable
from simple_gpu_scheduler.system.marks import TREE

from .client import KeeperClient
from .messages import Socket, receive_short, send

_REPARENTED_WITHIN = 1.0
_EXECUTED_WITHIN = 5.0
_PAUSE = 0.002


class Launcher:
    """Starts programs for one thread, one at a time: through the keeper, or by itself."""

    def __init__(
        self, starter: processes.Starter, keeper: KeeperClient | None, taken: Callable[[int], int | None]
    ) -> None:
        """`taken` gives the wait status of a process that was reaped as an orphan."""
        self._starter = starter
        self._keeper = keeper
        self._is_refused = False  # the keeper may start no thread for us now
        self._connection = self._connect()
        self._taken = taken

    def start(
        self,
        key: tuple[int, int],
        recorded: bytes,
        argv: Sequence[bytes],
        own: Sequence[bytes],
        leases: Sequence[int],
        streams: processes.Streams,
    ) -> int:
        """Start a program; its pid. `recorded` names the attempts whose ends were recorded in the journal since.

        An OSError says why it was not started; see `processes.why_refused`.
        """
        if self._is_refused and self._keeper:
            self._connection = self._connect()
            if self._is_refused:
                self._keeper.let_go(recorded)
                raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        if self._connection:
            numbers = b"".join([b"%d" % number for _, number in streams])
            fields = (b"start", b"%d.%d" % key, recorded, numbers, b"%d" % len(argv), *argv, *own)
            try:
                send(self._connection, *fields, files=[*(fd for fd, _ in streams), *leases])
                answer = receive_short(self._connection)
            except ConnectionError:
                answer = None
            if answer:
                kind, number = answer
                if kind == b"failed":
                    raise OSError(int(number), os.strerror(int(number)))
                return int(number)
            self._connection = None
            found = self._find_started(own[-1])
            if found:
                return found
        return self._starter.start(argv, own, tuple(leases), streams)

    def wait(self, pid: int) -> int:
        """Wait until it has ended: its wait status. Its pid stays its own until `reap`."""
        if self._connection:
            answer = receive_short(self._connection)
            if answer:
                return int(answer[1])
            self._connection = None
        return self._wait_here(pid)

    def reap(self, pid: int) -> None:
        """It will not be signalled any more. The next start tells the keeper."""
        if self._connection or self._taken(pid) is not None:
            return
        with suppress(ChildProcessError):  # the main thread was faster, and its status is known by now
            processes.reap(pid)

    def _connect(self) -> Socket | None:
        try:
            connection = self._keeper.connect() if self._keeper else None
        except OSError:  # it was killed, or there are no more descriptors
            connection = None
        answer = receive_short(connection) if connection else None
        self._is_refused = answer == [b"refused"]
        return connection if answer == [b"ready"] else None

    def _find_started(self, tree: bytes) -> int:
        """The process that the keeper started but was killed before reporting; 0 for none.

        If it started and ended in between, that is unknown, and it is started once more.
        """
        if not self._keeper:
            return 0
        self._keeper.is_gone.wait()
        until = time.monotonic() + _EXECUTED_WITHIN
        while True:
            ours = children(os.getpid()) - {self._keeper.pid}
            for pid in ours:
                if TREE + b"=" + read_variable(pid, TREE) == tree:
                    return pid
            # A child that has not executed its program yet still looks like the keeper.
            if time.monotonic() > until or not any(_arguments(pid) == _arguments(os.getpid()) for pid in ours):
                return 0
            time.sleep(_PAUSE)

    def _wait_here(self, pid: int) -> int:
        """Wait for a child of ours, or of a killed keeper, whose children become ours a moment later."""
        until = time.monotonic() + _REPARENTED_WITHIN
        while True:
            status = self._taken(pid)
            if status is not None:
                return status
            try:
                return processes.wait_for_end(pid)
            except ChildProcessError:
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)


def _arguments(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
            return file.read()
    except OSError:  # it has just ended
        return b""
