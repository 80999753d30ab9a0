"""The scheduler's side of its keeper: creating the process, and messages to and from it.

It never waits for the keeper, which may be suspended. If the keeper is killed, another one is created, which knows
nothing of what the first one did.
"""

import os

from simple_gpu_scheduler.base.stdlib import deque, suppress
from simple_gpu_scheduler.base.values import Sequence
from simple_gpu_scheduler.system import processes
from simple_gpu_scheduler.system.threads import NoSignals

from .connection import Socket, close_all, pair, receive_short, send
from .messages import Finish, Letter, Message, Recorded, Serve, TakeIn, decode, encode


class KeeperClient:
    """The keeper of this process, once it is created. To be used from one thread, but for `take_in`."""

    def __init__(self) -> None:
        self.pid = 0
        self._served: tuple[Serve, str] | None = None
        self._control: Socket | None = None
        self._unsent: deque[tuple[bytes, list[int]]] = deque()  # while there is no room for more
        self._number = 0  # goes on with the next keeper: it tells attempts apart
        self.known = 0  # the number of the last message of the keeper that was dealt with, and recorded
        self._told = 0  # the last such number that the keeper knows of

    def create(self) -> bool:
        """Create the process, if there is none; whether there was none. An OSError says why that cannot be done.

        Create the first one before other threads, and early: it is a copy of this process as it is now.
        """
        if self._control:
            return False
        processes.adopt_orphans()  # before the fork: older kernels apply it only to later processes
        control, its_end = pair()
        with NoSignals():
            self.pid = os.fork() if not self.pid else _fork_beside_threads()
            if not self.pid:
                _be_keeper(its_end, control)
        self._control = control
        self.known = self._told = 0
        if self._served:
            self.brief(*self._served)
        return True

    def brief(self, serve: Serve, journal: str, directory: str = os.curdir) -> None:
        """Tell it, and those that come after it, what it serves: its journal, if any, and where jobs run."""
        self._served = serve, journal
        if self._control:
            files = [os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)]
            if journal:  # opened again, since a lock belongs to the open file
                files.append(os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC))
            self.send(serve, files)
            close_all(files)

    def fileno(self) -> int:
        """What can be read when there is a message; -1 without a keeper."""
        return self._control.fileno() if self._control else -1

    def send(self, message: Message, files: Sequence[int] = ()) -> int:
        """Send it, later if there is no room now; its number. That the keeper is gone is reported by `receive`."""
        self._number += 1
        self._told = self.known
        data = encode(Letter(self._number, self.known, message))
        if self._unsent or not self._is_sent(data, files):
            self._unsent.append((data, [os.dup(fd) for fd in files]))
        return self._number

    @property
    def has_unsent(self) -> bool:
        """Whether messages wait for room."""
        return bool(self._unsent)

    def send_rest(self) -> None:
        """Send what there was no room for, as far as there is now."""
        while self._unsent and self._is_sent(*self._unsent[0]):
            close_all(self._unsent.popleft()[1])

    def _is_sent(self, data: bytes, files: Sequence[int]) -> bool:
        """Whether it is sent now, or nobody is there any more."""
        try:
            if self._control:
                send(self._control, data, files, wait=False)
        except BlockingIOError:
            return False
        except ConnectionError:
            pass
        return True

    def receive(self) -> Letter | None:
        """Its next message, which is there. Set `known` once it is dealt with.

        None if the keeper has ended; its children are ours. If nothing is `known` of it, it has never worked.
        """
        assert self._control  # noqa: S101 - or there is nothing to read
        data = receive_short(self._control)
        if data:
            return decode(data)
        while self._unsent:
            close_all(self._unsent.popleft()[1])
        self._control = None
        os.waitpid(self.pid, 0)  # from then on, its children are ours
        return None

    def tell_what_is_recorded(self) -> None:
        """All that is `known` was recorded; call it when no other message will follow soon."""
        if self.known > self._told:
            self.send(Recorded())

    def take_in(self, wanted: TakeIn, files: Sequence[int]) -> None:
        """Tell it to copy a pipe to a file; see `Intake`. An OSError says that there is no keeper."""
        if not self._control:
            raise BrokenPipeError
        send(self._control, encode(Letter(0, 0, wanted)), files)

    def close(self) -> None:
        """Everything is over and recorded."""
        self.send(Finish())


def _fork_beside_threads() -> int:
    """The child has only this thread, and a lock that another one holds now stays locked there: it must not import."""
    import warnings  # noqa: PLC0415 - rare

    from . import process  # noqa: F401, PLC0415 - as said

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _be_keeper(control: Socket, not_ours: Socket) -> None:
    """The keeper process. It gets no signals from a terminal, and others are blocked, as in all threads."""
    try:
        processes.adopt_orphans()  # its own too: not inherited by a fork
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)  # stdin belongs to the scheduler
        not_ours.close()
        _give_up_what_programs_do_not_inherit(control.fileno(), null)
        from simple_gpu_scheduler.system.job_environment import inherited  # noqa: PLC0415 - while we load the rest

        from .process import Keeper  # noqa: PLC0415 - as above

        Keeper(control, inherited(os.environb)).serve()
    finally:
        os._exit(0)


def _give_up_what_programs_do_not_inherit(but: int, null: int) -> None:
    """The copies of the scheduler's leases, locks and pipes: held by a later keeper, they would outlive the scheduler.

    The numbers stay in use: an object of the scheduler that is freed later must not close what is ours.
    """
    for fd in [int(name) for name in os.listdir("/proc/self/fd")]:
        with suppress(OSError):  # that of the listing
            if fd != but and not os.get_inheritable(fd):
                os.dup2(null, fd, inheritable=False)
