"""The scheduler's side of its keeper: creating the process and sending it messages. `launcher` starts jobs."""

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress

from simple_gpu_scheduler.system import processes
from simple_gpu_scheduler.system.job_environment import inherited
from simple_gpu_scheduler.system.threads import start_thread

from .intake import PipeKind
from .messages import Socket, pair, receive, send
from .process import Keeper


class KeeperClient:
    """A running keeper."""

    def __init__(self) -> None:
        """An OSError or RuntimeError says that it cannot be created.

        Create it before other threads, and early: it is a copy of this process as it is now.
        """
        self.pid = 0
        self.on_end: Callable[[], object] = lambda: None  # called in a thread if it ends before us
        self.is_gone = threading.Event()  # from then on, its former children are ours
        self._is_over = False
        self._sends = threading.Lock()
        self._problem: OSError | None = None
        self._is_ready = threading.Event()
        self._control, its_end = pair()
        processes.adopt_orphans()  # before the fork: older kernels apply it only to later processes
        # A thread creates it and stays its parent: when the main thread asks the kernel for its children, it means
        # orphans.
        start_thread(lambda: self._make(its_end))
        self._is_ready.wait()
        if self._problem:
            raise self._problem
        self._first: Socket | None = self._connect()

    def keep_journal(self, path: str) -> None:
        """Where to record what happens after we are gone. Opened again, since a lock belongs to the open file."""
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._send(b"journal", b"%d" % os.getpid(), files=[fd])
        os.close(fd)

    def enter(self, directory: str) -> None:
        """Where jobs run."""
        fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        ours, its_end = pair()
        self._send(b"enter", files=[fd, its_end.fileno()])
        os.close(fd)
        its_end.close()
        receive(ours)  # closed when it is there: starts come by other connections, and could be faster

    def connect(self) -> Socket:
        """A connection for one thread, which starts one job at a time. The first was made during start-up."""
        first, self._first = self._first, None
        return first or self._connect()

    def _connect(self) -> Socket:
        ours, its_end = pair()
        self._send(b"connect", files=[its_end.fileno()])
        its_end.close()
        return ours

    def take_in(self, granted: int, files: Sequence[int], kind: PipeKind) -> None:
        """Tell it to copy a pipe to a file; see `Intake`."""
        numbers = (granted, kind.is_named, kind.holds, kind.end == b"\0")
        self._send(b"intake", *[b"%d" % number for number in numbers], files=files)

    def let_go(self, recorded: bytes) -> None:
        """The ends of these attempts are in the journal; call this if no start follows soon that could say so."""
        with suppress(OSError):
            self._send(b"recorded", recorded)

    def close(self) -> None:
        """Everything is over and recorded."""
        self._is_over = True
        with suppress(OSError):  # it is gone
            self._send(b"bye")

    def _send(self, *fields: bytes, files: Sequence[int] = ()) -> None:
        with self._sends:
            send(self._control, *fields, files=files)

    def _make(self, its_end: Socket) -> None:
        try:
            with warnings.catch_warnings():
                # About forking beside threads, which is safe here: the keeper imports nothing more.
                warnings.simplefilter("ignore", DeprecationWarning)
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
        self.is_gone.set()
        if not self._is_over:
            self.on_end()


def _be_keeper(control: Socket, not_ours: Socket) -> None:
    """The keeper process. It gets no signals from a terminal, and others are blocked, as in all threads."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)  # stdin belongs to the scheduler
        os.close(null)
        not_ours.close()
        Keeper(control, inherited(os.environb)).serve()
    finally:
        os._exit(0)
