"""The scheduler's side of its keeper: making the process, and starting jobs through it.

A job that was started so is no child of ours; its end is told by the keeper. Should that be killed, its jobs become our
children, as all orphans do, and from then on jobs are started without one.
"""

import os
import threading
import time
import warnings
from collections.abc import Callable, Sequence

from simple_gpu_scheduler import processes
from simple_gpu_scheduler.engines.environment import inherited
from simple_gpu_scheduler.threads import start_thread

from .messages import Socket, pair, receive, send
from .process import Keeper

_REPARENTED_WITHIN = 1.0
_PAUSE = 0.002


class KeeperClient:
    """A running keeper."""

    def __init__(self) -> None:
        """An OSError or RuntimeError says that there can be none.

        To be made before other threads, and early: what it has of this process is as of now.
        """
        self.pid = 0
        self.on_end: Callable[[], object] = lambda: None  # called in a thread when it has ended before us
        self._is_over = False
        self._sends = threading.Lock()
        self._problem: OSError | None = None
        self._is_ready = threading.Event()
        self._control, its_end = pair()
        processes.adopt_orphans()  # before the fork: older kernels tell it only to processes that are made later
        # A thread makes it and stays its parent: the main thread asks the kernel whether it has any children, and means
        # orphans.
        start_thread(lambda: self._make(its_end))
        self._is_ready.wait()
        if self._problem:
            raise self._problem

    def keep_journal(self, path: str) -> None:
        """Where to write what happens when we are gone. Opened anew, since a lock belongs to the open file."""
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._send(b"journal", b"%d" % os.getpid(), files=[fd])
        os.close(fd)

    def enter(self, directory: str) -> None:
        """Where jobs run."""
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._send(b"enter", files=[fd])
        os.close(fd)

    def connect(self) -> Socket:
        """A connection for one thread, which starts one job at a time."""
        ours, its_end = pair()
        self._send(b"connect", files=[its_end.fileno()])
        its_end.close()
        return ours

    def take_in(self, granted: int, files: Sequence[int], *, is_named: bool) -> None:
        """Have a pipe emptied into a file; see `Intake` for what the files are."""
        self._send(b"intake", b"%d" % granted, b"named" if is_named else b"", files=files)

    def close(self) -> None:
        """All is over, and on record."""
        self._is_over = True
        try:
            self._send(b"bye")
        except OSError:  # it is gone
            return

    def _send(self, *fields: bytes, files: Sequence[int] = ()) -> None:
        with self._sends:
            send(self._control, *fields, files=files)

    def _make(self, its_end: Socket) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads: it loads nothing more
                self.pid = os.fork()
        except OSError as error:
            self._problem = error
            self._is_ready.set()
            return
        if not self.pid:
            _be_keeper(its_end, self._control)
        its_end.close()
        self._is_ready.set()
        os.waitpid(self.pid, 0)
        if not self._is_over:
            self.on_end()


def _be_keeper(control: Socket, not_ours: Socket) -> None:
    """The process itself. No signal of a terminal comes here, and those of others are blocked, as in all threads."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)  # stdin is the scheduler's
        os.close(null)
        not_ours.close()
        Keeper(control, inherited(os.environb)).serve()
    finally:
        os._exit(0)


class Launcher:
    """Starts programs for one thread, one at a time: through the keeper, or by itself."""

    def __init__(
        self, starter: processes.Starter, connection: Socket | None, taken: Callable[[int], int | None]
    ) -> None:
        """`taken` gives the wait status of a process that was reaped as an orphan."""
        self._starter = starter
        self._connection = connection
        self._taken = taken

    def start(
        self,
        key: tuple[int, int],
        recorded: bytes,
        argv: Sequence[bytes],
        own: Sequence[bytes],
        leases: Sequence[int],
        log: int | None,
    ) -> int:
        """Its pid. `recorded` names the attempts whose ends are in the journal since this was last said."""
        if self._connection:
            outputs = [] if log is None else [log]
            fields = (b"start", b"%d.%d" % key, recorded, b"%d" % len(outputs), b"%d" % len(argv), *argv, *own)
            try:
                send(self._connection, *fields, files=[*outputs, *leases])
                answer = receive(self._connection)
            except ConnectionError:
                answer = None
            if answer:
                kind, number = answer.fields
                if kind == b"failed":
                    raise OSError(int(number), os.strerror(int(number)))
                return int(number)
            self._connection = None
        return self._starter.start(argv, own, tuple(leases), log)

    def wait(self, pid: int) -> int:
        """Wait until it has ended: its wait status. Its pid stays its own until `reap`."""
        if self._connection:
            answer = receive(self._connection)
            if answer:
                return int(answer.fields[1])
            self._connection = None
            return self._wait_for_adopted(pid)
        return processes.wait_for_end(pid)

    def reap(self, pid: int) -> None:
        """Nobody will signal it any more."""
        if self._connection:
            try:
                send(self._connection, b"reaped")
            except OSError:
                self._connection = None
        elif self._taken(pid) is None:
            processes.reap(pid)

    def _wait_for_adopted(self, pid: int) -> int:
        """The keeper was killed, and its children become ours: a moment later."""
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
