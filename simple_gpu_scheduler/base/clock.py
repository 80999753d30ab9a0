"""The time of this machine. The only place from which the loop takes it, so that a test can hand it another."""

import time
from typing import Protocol


class Clock(Protocol):
    """Two times: one that only goes forward, and the one on the wall."""

    def now(self) -> float:
        """Seconds that never jump; compare them only with each other."""

    def wall(self) -> float:
        """Seconds since the epoch, as anybody may have set them."""


class SystemClock:
    """The real time."""

    def now(self) -> float:
        """See `Clock`."""
        return time.monotonic()

    def wall(self) -> float:
        """See `Clock`."""
        return time.time()
