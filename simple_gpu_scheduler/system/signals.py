"""Signals as messages: a thread waits for them and puts each on the inbox. It does not know what they mean.

Python's own handlers run in the main thread, between two of its instructions. If a signal comes just before that thread
starts to wait, Python notes it, but the thread still waits: under load, Ctrl-C and TERM sometimes did nothing until the
next message. A signal that a thread waits for with `sigwait` is never lost.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.values import NamedTuple

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


@contextmanager
def signals_to(put: Callable[[Signalled], None]) -> Iterator[None]:
    """Put signals on the inbox during the run. Afterwards Ctrl-C and the like end the program at once.

    One that comes with the one that stopped the run does not: the summary would be lost.
    """
    # Writing to a terminal from the background must not stop the run where `stty tostop` is set.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    taken = [number for number in _MESSAGES if signal.getsignal(number) != signal.SIG_IGN]  # `nohup` ignores one
    if not taken:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, taken)
    is_over = threading.Event()
    came_at = -AT_ONCE

    def listen() -> None:
        nonlocal came_at
        while True:
            number = signal.sigwait(taken)
            if is_over.is_set():
                return
            if number not in _NOT_TO_END:
                came_at = time.monotonic()
            put(Signalled(number))

    def end_if_late(number: int, _: object) -> None:
        if time.monotonic() - came_at >= AT_ONCE:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    try:
        thread = need_thread(listen)
    except UserError:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise
    try:
        yield
    finally:
        is_over.set()
        signal.pthread_kill(thread.ident or 0, taken[0])
        thread.join()
        last = signal.SIG_DFL if time.monotonic() - came_at >= AT_ONCE else end_if_late
        for number in taken:
            signal.signal(number, signal.SIG_IGN if number in _NOT_TO_END else last)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
