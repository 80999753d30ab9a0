"""How two policies compare on the same workloads, and how sure that is. Pure."""

from collections.abc import Sequence
from math import sqrt

from simple_gpu_scheduler.base.values import NamedTuple

_NOTHING = 0.02  # percent


class Standing(NamedTuple):
    """How a policy does: its mean wait in seconds, how much more that is than another's, and how sure that is.

    `error` is the standard error of the difference; each workload, or part of one, is a sample.
    """

    wait: float
    difference: float
    error: float

    @property
    def is_surely_less(self) -> bool:
        """By more than two standard errors."""
        return self.difference < -2 * self.error

    @property
    def percent(self) -> float:
        """The difference in per cent of the other's wait."""
        return self.difference / self._whole

    @property
    def percent_error(self) -> float:
        """Its standard error."""
        return self.error / self._whole

    @property
    def _whole(self) -> float:
        return (self.wait - self.difference) / 100 or 1.0

    def in_words(self, name: str, other: str) -> str:
        """`learned beats sjf by 1.20 % ± 0.50 %`, where the second is one standard error."""
        percent, error = self.percent, self.percent_error
        if abs(percent) <= max(2 * error, _NOTHING):
            return f"{name} neither beats nor loses to {other}: {percent:+.2f} % ± {error:.2f} %"
        return f"{name} {'beats' if percent < 0 else 'loses to'} {other} by {abs(percent):.2f} % ± {error:.2f} %"


def standing(mine: Sequence[float], others: Sequence[float], sizes: Sequence[int]) -> Standing:
    """From the sums of waits, part by part. Parts may differ in size, so the difference per job is a ratio."""
    jobs = sum(sizes)
    difference = (sum(mine) - sum(others)) / jobs
    rest = sum((a - b - difference * size) ** 2 for a, b, size in zip(mine, others, sizes, strict=True))
    count = len(sizes)
    # One part says nothing about how parts differ.
    error = sqrt(rest * count / (count - 1)) / jobs if count > 1 else float("inf")
    return Standing(sum(mine) / jobs, difference, error)
