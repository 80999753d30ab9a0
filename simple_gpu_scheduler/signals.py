"""Signals as messages: a handler does nothing but put one on the inbox. It knows nothing of what they lead to."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple

_MESSAGES = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1)

_NOT_TO_END = (signal.SIGHUP, signal.SIGUSR1)


class Signalled(NamedTuple):
    """A signal has come."""

    number: int


@contextmanager
def signals_to(put: Callable[[Signalled], None]) -> Iterator[None]:
    """Put signals on the inbox while the run goes on. Afterwards Ctrl-C and the like end the program at once."""

    def on_signal(number: int, _frame: FrameType | None) -> None:
        put(Signalled(number))

    taken = [number for number in _MESSAGES if signal.getsignal(number) != signal.SIG_IGN]  # `nohup` ignores one
    for number in taken:
        signal.signal(number, on_signal)
    # Writing to a terminal from the background must not stop the run where `stty tostop` is set.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_IGN if number in _NOT_TO_END else signal.SIG_DFL)
