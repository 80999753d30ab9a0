"""What the processes of an attempt used: readings while it runs, and what the kernel says when it has ended."""

from simple_gpu_scheduler.base.measurement import CPU, CpuUse, Curve, CurvePoint, Stillness
from simple_gpu_scheduler.base.values import Any

from .curves import GrowingCurve, larger
from .stillness import CpuTime

_FINEST = 10.0


class CpuAccount:
    """Of one attempt. CPU time is never forgotten: a process that has ended may be missing in the next reading."""

    def __init__(self, began: float) -> None:
        self._began = self._last = began
        self._seen = CpuUse()
        self._time = CpuTime(began)
        self._curve = GrowingCurve(finest=_FINEST)

    def feed(self, at: float, used: CpuUse) -> None:
        """A reading, of what was used so far and of the memory now."""
        before, self._seen = self._seen.seconds or 0.0, merged(self._seen, used)
        elapsed = at - self._last
        if elapsed > 0:
            self._last = at
            cores = ((self._seen.seconds or 0.0) - before) / elapsed
            self._time.feed(at, cores)
            values = cores, used.peak_memory
            self._curve.add(CurvePoint(at - elapsed - self._began, elapsed, values, values))

    def use(self, at_end: CpuUse = CpuUse()) -> CpuUse:  # noqa: B008 - a value, which nobody changes
        """What it has used so far, and what was told at its end."""
        return merged(self._seen, at_end)

    @property
    def stillness(self) -> Stillness | None:
        """Since when it has used no CPU time; None if that is not known."""
        return self._time.stillness

    @property
    def curve(self) -> Curve:
        """How busy it was."""
        return Curve(CPU, self._curve.points)


def merged(one: CpuUse, other: CpuUse) -> CpuUse:
    """The larger of each: either may have missed something, and neither invents."""
    values: list[Any] = [larger(mine, its) for mine, its in zip(one, other, strict=True)]
    return CpuUse(*values)
