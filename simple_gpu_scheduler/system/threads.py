"""Threads that get no signals, what they send each other, and values they compute. It does not know what they do."""

import threading
import time
from contextlib import contextmanager

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import Empty, SimpleQueue, signal, suppress
from simple_gpu_scheduler.base.values import Callable, Generic, Iterator, TypeVar

T = TypeVar("T")
_ALL = signal.valid_signals()


def start_thread(run: Callable[[], object]) -> threading.Thread:
    """Start a daemon thread with all signals blocked; a RuntimeError says that the system allows no more threads.

    The kernel gives a signal to any thread that does not block it. Python's handlers run in the main thread only, and a
    signal that another thread took does not wake it: it would be acted on at the next message, which may be tomorrow.
    """
    thread = threading.Thread(target=run, daemon=True)
    with no_signals():
        thread.start()  # inherits the mask
    return thread


@contextmanager
def no_signals() -> Iterator[None]:
    """Block all signals meanwhile, and for good in what is started meanwhile."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ALL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def need_thread(run: Callable[[], object]) -> threading.Thread:
    """The same, if nothing works without it."""
    try:
        return start_thread(run)
    except RuntimeError:
        raise UserError("this user may not start more threads (ulimit -u); nothing was started") from None


class MessageQueue(SimpleQueue[T]):
    """Where one thread waits for messages. Any thread may put some, and so may the handler of a signal."""

    def __init__(self) -> None:
        self._bell = threading.Lock()  # free once a message has come, until it is noticed
        self._bell.acquire()

    def put(self, item: T, block: bool = True, timeout: float | None = None) -> None:
        """Put it, which never waits."""
        super().put(item, block, timeout)
        with suppress(RuntimeError):  # it is free already
            self._bell.release()

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """The next message; `Empty` if none came in time.

        Before Python 3.13, that of a SimpleQueue waits forever if the timeout passes while it prepares to wait, or
        while the handler of a signal runs. A lock has no such fault.
        """
        until = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return super().get(block=False)
            except Empty:
                left = until - time.monotonic()
                if not block or not left > 0:
                    raise
            self._bell.acquire(timeout=min(left, threading.TIMEOUT_MAX))


class Meanwhile(Generic[T]):
    """A value that a thread computes while others continue; `get` waits for it."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self._error: Exception | None = None
        self._is_done = False
        try:
            self._thread: threading.Thread | None = start_thread(self._run)
        except RuntimeError:  # there can be no more threads: `get` makes it
            self._thread = None

    def get(self) -> T:
        """The value, or the error from computing it."""
        if self._thread:
            self._thread.join()  # the loop and the reader may both come here
        elif not self._is_done:
            self._run()
        if self._error:
            raise self._error
        return self._made  # type: ignore[return-value] # made, or an error was met

    def _run(self) -> None:
        try:
            self._made = self._make()
        except Exception as error:  # noqa: BLE001 - `get` raises it
            self._error = error
        self._is_done = True
