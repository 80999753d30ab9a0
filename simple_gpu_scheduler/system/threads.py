"""Threads that get no signals, and values that they compute. It does not know what they do."""

import sys
from _thread import start_new_thread

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import Event, signal, suppress
from simple_gpu_scheduler.base.values import Callable, Generic, TypeVar

T = TypeVar("T")
_ALL = signal.valid_signals()


class Thread:
    """A thread without `threading`, which takes 2 ms to load; or where that is loaded, one of its own."""

    def __init__(self, run: Callable[[], object]) -> None:
        self._run = run
        self._has_ended = Event()
        self.ident: int | None = start_new_thread(self._run_to_end, ())

    def _run_to_end(self) -> None:
        try:
            self._run()
        finally:
            self._has_ended.set()

    def is_alive(self) -> bool:
        """Whether it runs."""
        return not self._has_ended.is_set()

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended."""
        self._has_ended.wait(timeout)


def start_thread(run: Callable[[], object]) -> Thread:
    """Start a daemon thread with all signals blocked; a RuntimeError says that the system allows no more threads.

    The kernel gives a signal to any thread that does not block it. Python's handlers run in the main thread only, and a
    signal that another thread took does not wake it: it would be acted on at the next message, which may be tomorrow.
    """
    known = sys.modules.get("threading")  # whoever has loaded it, such as a debugger, wants to know of its threads
    if known and known.__spec__ and getattr(known.__spec__, "_initializing", False):  # another thread is loading it
        known = None
    with NoSignals():  # the thread inherits the mask
        if known is None:
            return Thread(run)
        thread: Thread = known.Thread(target=run, daemon=True)
        thread.start()  # type: ignore[attr-defined] # it is one of `threading`
    return thread


class NoSignals:
    """Within it, signals are blocked, and for good in whatever is started there."""

    def __enter__(self) -> None:
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ALL)

    def __exit__(self, *_: object) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)


def need_thread(run: Callable[[], object]) -> Thread:
    """The same, if nothing works without it."""
    try:
        return start_thread(run)
    except RuntimeError:
        raise UserError("this user may not start more threads (ulimit -u); nothing was started") from None


class Meanwhile(Generic[T]):
    """A value that a thread computes while others continue; `get` waits for it."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self._error: Exception | None = None
        self._is_done = False
        self._thread: Thread | None = None
        with suppress(RuntimeError):  # there can be no more threads: `get` makes it
            self._thread = start_thread(self._run)

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
