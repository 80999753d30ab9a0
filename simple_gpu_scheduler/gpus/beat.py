"""A thread that does something once a second while there is work for it, and sleeps otherwise.

If it hangs, as a call to the driver may, another one takes its place. It does not know what is done.
"""

import time

from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.stdlib import Lock
from simple_gpu_scheduler.base.values import Callable
from simple_gpu_scheduler.system.threads import start_thread

from . import SILENCE

PAUSE = 1.0


class Beat:
    """Owned by one thread, which must call `check` now and then."""

    def __init__(
        self,
        act: Callable[[Callable[[], bool]], object],
        has_work: Callable[[], bool],
        put: Callable[[Broken], object],
    ) -> None:
        """`act` is told how to ask whether it is still wanted: it should return if another thread does its work."""
        self._act = act
        self._has_work = has_work
        self._put = put
        self._bell = Lock()
        self._bell.acquire()
        self._lock = Lock()  # over what follows
        self._number = 0  # of the newest thread, the only one that is wanted
        self._has_thread = False
        self._rests = True
        self._since: float | None = None  # when what is being done began

    def wake(self) -> None:
        """There is work."""
        with self._lock:
            if self._rests:
                self._rests = False
                if not self._has_thread:
                    self._start()
                elif self._bell.locked():
                    self._bell.release()

    def check(self, now: float) -> None:
        """Replace the thread if it hangs."""
        with self._lock:
            if self._since is not None and now > self._since + SILENCE:
                self._since = None
                self._start()

    def close(self) -> None:
        """Nothing is to be done any more."""
        with self._lock:
            self._number = -1
            if self._bell.locked():
                self._bell.release()

    def _start(self) -> None:
        self._number = number = self._number + 1
        try:
            start_thread(lambda: self._run(number))
            self._has_thread = True
        except RuntimeError:  # no more threads can be started; perhaps later
            self._has_thread, self._rests = False, True

    def _run(self, number: int) -> None:
        def is_wanted() -> bool:
            return number == self._number

        due = time.monotonic()
        while is_wanted():
            now = time.monotonic()
            if self._rests:
                self._bell.acquire()
                due = time.monotonic() + PAUSE
            elif now < due:
                self._bell.acquire(timeout=due - now)
            else:
                due = max(due + PAUSE, now)
                self._do(now, is_wanted)

    def _do(self, now: float, is_wanted: Callable[[], bool]) -> None:
        self._since = now
        try:
            self._act(is_wanted)
        except Exception as error:  # noqa: BLE001 - a bug, which the loop raises
            self._put(Broken(error))
        with self._lock:
            if is_wanted():
                self._since = None
                self._rests = not self._has_work()
