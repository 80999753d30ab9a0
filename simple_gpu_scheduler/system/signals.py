"""Signals as messages: a thread waits for them and puts each on the inbox. It does not know what they mean.

Python's own handlers run in the main thread, between two of its instructions. If a signal comes just before that thread
starts to wait, Python notes it, but the thread still waits: under load, Ctrl-C and TERM sometimes did nothing until the
next message. A signal that a thread waits for with `sigwait` is never lost.
"""

import time

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import signal
from simple_gpu_scheduler.base.values import Callable, NamedTuple

from .threads import need_thread

_MESSAGES = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1)

_NOT_TO_END = (signal.SIGHUP, signal.SIGUSR1)
# The command `timeout` sends TERM twice, to us and to our process group, and means one.
AT_ONCE = 0.5


class Signalled(NamedTuple):
    """A signal has come."""

    number: int

    @property
    def stops(self) -> bool:
        """Whether it stops a run."""
        return self.number not in _NOT_TO_END


class signals_to:  # noqa: N801 - said where it is entered: with signals_to(inbox.put)
    """Put signals on the inbox during the run. Afterwards Ctrl-C and the like end the program at once.

    One that comes with the one that stopped the run does not: the summary would be lost.
    """

    def __init__(self, put: Callable[[Signalled], None]) -> None:
        self._put = put
        self._came_at = -AT_ONCE
        self._is_over = False

    def __enter__(self) -> None:
        # Writing to a terminal from the background must not stop the run where `stty tostop` is set.
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        # `nohup` ignores one.
        self._taken = [number for number in _MESSAGES if signal.getsignal(number) != signal.SIG_IGN]
        if not self._taken:
            return
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, self._taken)
        try:
            self._thread = need_thread(self._listen)
        except UserError:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
            raise

    def __exit__(self, *_error: object) -> None:
        if not self._taken:
            return
        self._is_over = True
        signal.pthread_kill(self._thread.ident or 0, self._taken[0])
        self._thread.join()
        last = signal.SIG_DFL if time.monotonic() - self._came_at >= AT_ONCE else self._end_if_late
        for number in self._taken:
            signal.signal(number, signal.SIG_IGN if number in _NOT_TO_END else last)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def _listen(self) -> None:
        while True:
            number = signal.sigwait(self._taken)
            if self._is_over:
                return
            if number not in _NOT_TO_END:
                self._came_at = time.monotonic()
            self._put(Signalled(number))

    def _end_if_late(self, number: int, _: object) -> None:
        if time.monotonic() - self._came_at >= AT_ONCE:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
