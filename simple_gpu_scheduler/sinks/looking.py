"""Looking at the GPUs for the live view, in a thread of its own: a driver may take its time, or never answer.

It knows nothing of drivers, nor of what is shown.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from simple_gpu_scheduler.threads import start_thread

from . import GpuVitals

_PAUSE = 1.0
# Of the time at most this share is spent on looking.
_SHARE = 0.005


class Looking:
    """`newest` is what was seen last."""

    def __init__(self, vitals: Callable[[], Sequence[GpuVitals]]) -> None:
        self._vitals = vitals
        self.newest: Sequence[GpuVitals] = ()
        with suppress(RuntimeError):  # there can be no more threads: there is more to be seen than the GPUs
            start_thread(self._look_on)

    def _look_on(self) -> None:
        while True:
            began = time.thread_time()
            self.newest = self._vitals()
            time.sleep(max(_PAUSE, (time.thread_time() - began) / _SHARE))
