"""The clock of this machine. The loop takes its time only from here, so that a test can pass another clock."""

import time

from simple_gpu_scheduler.base.values import Protocol


class Clock(Protocol):
    """Two times: one that only moves forward, and wall-clock time."""

    def now(self) -> float:
        """Seconds that never jump; compare them only with each other."""

    def wall(self) -> float:
        """Seconds since the epoch; this clock may be set."""


class SystemClock:
    """The real time."""

    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)
