"""Since when an attempt has been doing nothing new: a constant utilisation of its GPUs, or one of 0; or no CPU time.

What counts as stalled is decided here too. What a job prints, and what follows when it has stalled, is not known.
"""

from simple_gpu_scheduler.base.jobs import Patience
from simple_gpu_scheduler.base.measurement import Stillness
from simple_gpu_scheduler.base.values import NamedTuple, Sequence

# A utilisation that stays within this many per cent is constant: one that hangs is read as 99 and as 100.
_BAND = 1.0
# What the threads of a hung program use that only look at the time, as a share of a core.
_NO_CPU_TIME = 0.01
# After a longer gap between two readings, as when the driver hung, what was before it tells nothing.
_LONGEST_GAP = 5.0

STALL, IDLE = "stall", "idle"


class Level:
    """Since when a quantity has been constant, and since when it has been 0, by its readings."""

    __slots__ = ("_constant", "_high", "_low", "_seen", "_value", "_zero")

    def __init__(self) -> None:
        self._value: float | None = None
        self._seen = self._constant = self._low = self._high = 0.0
        self._zero: float | None = None

    def feed(self, at: float, seconds: float, value: float | None) -> None:
        """A reading, which holds for so many seconds before it; None if the quantity was not told."""
        if self._value is None or at - self._seen > _LONGEST_GAP:
            self._value, self._zero = None, None
        if value is None:
            self._value = None
            return
        if self._value is None:
            self._constant, self._low, self._high = at - seconds, value, value
        self._low, self._high = min(self._low, value), max(self._high, value)
        if self._high - self._low > _BAND:
            self._constant, self._low, self._high = at, value, value
        if value > 0:
            self._zero = None
        elif self._zero is None:
            self._zero = at - seconds if self._value is None else at
        self._value, self._seen = value, at

    @property
    def stillness(self) -> Stillness | None:
        """None if the last reading did not tell it."""
        if self._value is None:
            return None
        return Stillness(self._seen, self._constant, self._zero, (self._value,))


class CpuTime:
    """Since when processes have used no CPU time."""

    __slots__ = ("_seen", "_since")

    def __init__(self, began: float) -> None:
        self._since = began
        self._seen: float | None = None

    def feed(self, at: float, cores: float) -> None:
        """Since the last reading, so many cores were busy."""
        if cores >= _NO_CPU_TIME:
            self._since = at
        self._seen = at

    @property
    def stillness(self) -> Stillness | None:
        """None before the first reading."""
        return None if self._seen is None else Stillness(self._seen, self._since)


def together(parts: Sequence[Stillness | None]) -> Stillness | None:
    """Of all GPUs of an attempt; None if it is not known of one of them."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    idle = [part.idle for part in known if part.idle is not None]
    return Stillness(
        min(part.seen for part in known),
        max(part.constant for part in known),
        max(idle) if len(idle) == len(known) else None,
        tuple(level for part in known for level in part.levels),
    )


class Due(NamedTuple):
    """When an attempt will have stalled if nothing changes; if it `has_come`, the readings reach as far."""

    cause: str
    at: float
    has_come: bool
    patience: Patience


def stalls_at(still: Stillness, quiet_since: float | None, patience: Patience | None) -> Due | None:
    """By `stall`: without output since then, and constant. None if that was not asked, or output cannot be seen."""
    if not patience or not patience.seconds or quiet_since is None:
        return None
    at = max(still.constant, quiet_since) + patience.seconds
    return Due(STALL, at, still.seen >= at, patience)


def idles_at(still: Stillness, patience: Patience | None) -> Due | None:
    """By `idle`: its GPUs at 0. None if that was not asked, or they are not, or it has none."""
    if not patience or not patience.seconds or still.idle is None:
        return None
    at = still.idle + patience.seconds
    return Due(IDLE, at, still.seen >= at, patience)
