"""The curves of attempts -> one curve of each GPU over the run, in steps of equal length. Pure.

Attempts that are on a GPU at the same time each have a curve of it. Their memory and their shares of the utilisation
are summed; what is the GPU's own, as its temperature, is the same in all of them and counts once.
"""

from collections.abc import Iterable, Mapping, Sequence

from simple_gpu_scheduler.base.jobs import Key
from simple_gpu_scheduler.base.measurement import CPU, GPU_CURVE, CurvePoint
from simple_gpu_scheduler.base.text import visible
from simple_gpu_scheduler.base.values import Any, NamedTuple
from simple_gpu_scheduler.journal.samples import DrawnCurve, short_figure

from .numbers import Times, union

MOST_STEPS, FEW_STEPS = 600, 60
_SHORTEST = 1.0
_FULL = 100.0
_SUMMED = {"utilization", "memory"}


class GpuCurve(NamedTuple):
    """That of one attempt on a GPU; `of_gpu` are the quantities that are the GPU's own."""

    points: Sequence[CurvePoint]
    of_gpu: frozenset[str] = frozenset()


class GpuLane(NamedTuple):
    """The curve of a GPU: for each step its known seconds, those at a utilisation of 0, and the means, None if unknown.

    `seconds`, `idle` and `energy` are those of the whole lane.
    """

    begin: float
    step: float
    known: Sequence[float]
    zeros: Sequence[float]
    means: Mapping[str, Sequence[float | None]]

    @property
    def seconds(self) -> float:
        """For how long there are readings."""
        return sum(self.known)

    @property
    def idle(self) -> float:
        """For how long the utilisation was 0 while a job held the GPU."""
        return sum(self.zeros)

    @property
    def energy(self) -> float | None:
        """Joules: the power over the time that jobs held the GPU."""
        mean = self.mean("power")
        return None if mean is None else sum(
            power * seconds for power, seconds in zip(self.means["power"], self.known, strict=True) if power is not None
        )  # fmt: skip

    def mean(self, name: str) -> float | None:
        """Of a quantity, over the time that it was known."""
        told = [(mean, each) for mean, each in zip(self.means[name], self.known, strict=True) if mean is not None]
        seconds = sum(each for _, each in told)
        return sum(mean * each for mean, each in told) / seconds if seconds else None

    def to_json(self, gpu: str) -> dict[str, Any]:
        """For JSON; quantities that were never known are left out."""
        columns = {name: [short_figure(mean) for mean in means] for name, means in self.means.items()}
        return {
            "gpu": gpu,
            "from": round(self.begin, 3),
            "step": round(self.step, 3),
            "seconds": [round(each, 3) for each in self.known],
            "idle": [round(each, 3) for each in self.zeros],
            **{name: column for name, column in columns.items() if any(each is not None for each in column)},
        }


def by_gpu(curves: Mapping[Key, Sequence[DrawnCurve]], own: Mapping[Key, Mapping[str, frozenset[str]]]) -> dict[
    str, list[GpuCurve]
]:  # fmt: skip
    """The curves of each GPU; `own` names what is the GPU's own, where the journal tells.

    Of an attempt that is still running it does not: all is taken for the GPU's, which invents nothing.
    """
    found: dict[str, list[GpuCurve]] = {}
    for key, drawn in curves.items():
        for curve in drawn:
            if curve.gpu != CPU and curve.points:
                gpu = visible(curve.gpu)
                of_gpu = own.get(key, {}).get(gpu, frozenset(GPU_CURVE))
                found.setdefault(gpu, []).append(GpuCurve(curve.points, of_gpu))
    return found


def merged(
    curves: Sequence[GpuCurve], begin: float, end: float, most: int = MOST_STEPS, names: Sequence[str] = GPU_CURVE
) -> GpuLane:
    """One curve, in at most so many steps between the two moments."""
    step = max(_SHORTEST, (end - begin) / most)
    size = max(1, min(most, -int(-(end - begin) // step)))
    places = _Places(begin, step, size)
    held = [(point.at, point.at + point.seconds) for curve in curves for point in curve.points]
    busy = [(point.at, point.at + point.seconds) for curve in curves for point in curve.points if point.means[0] != 0]
    known = places.seconds(union(held))
    active = places.seconds(union(busy))
    zeros = [max(0.0, one - other) for one, other in zip(known, active, strict=True)]
    means = {name: _means(places, curves, name, at, known) for at, name in enumerate(GPU_CURVE) if name in names}
    return GpuLane(begin, step, known, zeros, means)


def _means(
    places: "_Places", curves: Sequence[GpuCurve], name: str, at: int, known: Sequence[float]
) -> list[float | None]:
    areas, told = [0.0] * places.size, [0.0] * places.size
    for curve in curves:
        for point in curve.points:
            value = point.means[at]
            if value is not None:
                for place, seconds in places.of(point.at, point.at + point.seconds):
                    areas[place] += value * seconds
                    told[place] += seconds
    # Over the time of all attempts, each once: what they had at the same time adds up.
    is_summed = name in _SUMMED and not any(name in curve.of_gpu for curve in curves)
    over = [min(one, other) for one, other in zip(known, told, strict=True)] if is_summed else told
    means = [area / seconds if seconds > 0 else None for area, seconds in zip(areas, over, strict=True)]
    return [None if mean is None else min(_FULL, mean) for mean in means] if name == "utilization" else means


class _Places(NamedTuple):
    """The steps."""

    begin: float
    step: float
    size: int

    def of(self, start: float, end: float) -> Iterable[tuple[int, float]]:
        """The steps that an interval touches, and for how long."""
        first = int((start - self.begin) // self.step)
        last = int((end - self.begin) // self.step)
        if first == last:
            return ((first, end - start),) if 0 <= first < self.size and end > start else ()
        return self._several(start, end, max(0, first), min(self.size - 1, last))

    def _several(self, start: float, end: float, first: int, last: int) -> Iterable[tuple[int, float]]:
        for place in range(first, last + 1):
            since = self.begin + place * self.step
            seconds = min(end, since + self.step) - max(start, since)
            if seconds > 0:
                yield place, seconds

    def seconds(self, intervals: Iterable[Times]) -> list[float]:
        """How much of each step they cover."""
        found = [0.0] * self.size
        for start, end in intervals:
            for place, seconds in self.of(start, end):
                found[place] += seconds
        return found
