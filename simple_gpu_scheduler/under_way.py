"""An attempt under way, as the loop remembers it. Knows no clock: both times are what the loop was told."""

from typing import Literal, NamedTuple

from .jobs import Attempt

Ending = Literal["", "timed out", "stopped"]


class UnderWay(NamedTuple):
    """When it began by both clocks, why it is being ended, and when its main process was, if before the rest."""

    attempt: Attempt
    began: float
    began_at: float
    ending: Ending = ""
    ended: float | None = None

    def runtime(self, now: float) -> float:
        """How long its main process has run."""
        return (self.ended or now) - self.began
