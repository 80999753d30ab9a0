"""A curve of any length in a bounded number of points. What was highest stays so, and so does the area below."""

from simple_gpu_scheduler.base.measurement import CurvePoint
from simple_gpu_scheduler.base.values import Iterable, Sequence

MOST_POINTS = 600
_LATE = 0.1  # readings do not come exactly once a second


class GrowingCurve:
    """A curve to which readings are added. Its points are of about the same length, except for the last."""

    def __init__(self, most: int = MOST_POINTS, finest: float = 1.0) -> None:
        """No point but the last is shorter than `finest` seconds."""
        self._most = most
        self._width, self._late = finest, _LATE * finest
        self._closed: list[CurvePoint] = []
        self._open: CurvePoint | None = None

    def add(self, point: CurvePoint) -> None:
        """A reading, after all others; it may be a point of another curve."""
        self._open = point if self._open is None else _joined(self._open, point)
        if self._open.seconds < self._width - self._late:
            return
        self._closed.append(self._open)
        self._open = None
        while len(self._closed) >= self._most:  # one more may be open
            self._width *= 2
            self._closed = _in_pairs(self._closed)

    @property
    def points(self) -> list[CurvePoint]:
        """The curve so far."""
        return [*self._closed, self._open] if self._open else list(self._closed)


def thinned(points: Iterable[CurvePoint], most: int = MOST_POINTS) -> Sequence[CurvePoint]:
    """The same curve in at most so many points."""
    points = list(points)
    while len(points) > most:
        points = _in_pairs(points)
    return points


def _in_pairs(points: list[CurvePoint]) -> list[CurvePoint]:
    joined = [_joined(one, other) for one, other in zip(points[::2], points[1::2], strict=False)]
    return joined + points[2 * len(joined) :]


def _joined(one: CurvePoint, other: CurvePoint) -> CurvePoint:
    seconds = one.seconds + other.seconds
    means = tuple(
        [_mean(mine, one.seconds, its, other.seconds) for mine, its in zip(one.means, other.means, strict=True)]
    )
    maxima = tuple([larger(mine, its) for mine, its in zip(one.maxima, other.maxima, strict=True)])
    return CurvePoint(one.at, seconds, means, maxima)


def _mean(one: float | None, seconds: float, other: float | None, its_seconds: float) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    whole = seconds + its_seconds
    return (one * seconds + other * its_seconds) / whole if whole else max(one, other)


def larger(one: float | None, other: float | None) -> float | None:
    """The larger of two values that may be unknown."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
