"""How often and how long a Prometheus is asked: the step between two points, and from when to when. Pure."""

from collections.abc import Iterable
from math import ceil

from ..numbers import Times, union

MOST_POINTS = 11_000  # of a series in one answer; Prometheus refuses more
_COARSEST = 15  # seconds: the usual interval between readings, and a quarter of a short attempt
# Also asked for before and after an attempt, so that the readings next to it are known.
_MARGIN = 120.0

Window = tuple[int, int]


def step_of(attempts: Iterable[Times]) -> int:
    """Seconds between two points: as fine as one answer allows, unless that is too coarse for short attempts."""
    times = _widened(attempts)
    return min(_COARSEST, max(1, ceil((times[-1][1] - times[0][0]) / (MOST_POINTS - 2))))


def windows_of(attempts: Iterable[Times], step: int) -> list[Window]:
    """From when to when to ask, both multiples of the step; each in one answer. Long pauses are left out."""
    found: list[Window] = []
    longest = (MOST_POINTS - 1) * step
    for start, end in _widened(attempts):
        at, last = int(start // step) * step, ceil(end / step) * step
        if found:
            at = max(at, found[-1][1] + step)
        while at <= last:
            if not found or at > found[-1][0] + longest:
                found.append((at, at))
            found[-1] = found[-1][0], min(last, found[-1][0] + longest)
            at = found[-1][1] + step
    return found


def _widened(attempts: Iterable[Times]) -> list[Times]:
    return union((start - _MARGIN, end + _MARGIN) for start, end in attempts)
