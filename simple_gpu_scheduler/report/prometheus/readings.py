"""Readings of a GPU -> the curve and the figures of each attempt on it. Pure.

A reading is about the time before it, back to the one before. After a longer gap, only some of it is known.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median_low

from simple_gpu_scheduler.base.measurement import GPU_CURVE, CurvePoint, Figures, GpuUse
from simple_gpu_scheduler.base.values import NamedTuple

from ..numbers import Times, both, union

Column = Mapping[float, float]  # values by when they were read
_LONGEST = 2.5  # intervals between readings
_USUAL_INTERVAL, _LONGEST_INTERVAL = 15.0, 300.0
_P95 = 0.95
_ANEW = 0.5  # a counter that has fallen below this part of its value began anew


class ReadGpu(NamedTuple):
    """All that was read of one GPU, in order: pieces of its curve, and its counter of joules."""

    points: Sequence[CurvePoint]
    ends: Sequence[float]
    counter: Sequence[tuple[float, float]]
    interval: float
    total_memory: int | None


def interval_of(times: Iterable[float]) -> float:
    """How long it usually is from one reading to the next."""
    gaps = [after - before for before, after in pairwise(sorted(times))]
    return min(_LONGEST_INTERVAL, median_low(gaps)) if gaps else _USUAL_INTERVAL


def gpu_of(means: Mapping[str, Column], maxima: Mapping[str, Column]) -> ReadGpu:
    """That of the readings of each quantity; without a maximum, there was one reading, which is the mean."""
    ends = sorted({at for name in GPU_CURVE for at in means.get(name, ())})
    interval = interval_of(ends)
    points = []
    before = float("-inf")
    for at in ends:
        since = max(before, at - _LONGEST * interval)
        values = tuple([means.get(name, {}).get(at) for name in GPU_CURVE])
        highest = [maxima.get(name, {}).get(at) for name in GPU_CURVE]
        most = tuple([value if top is None else top for value, top in zip(values, highest, strict=True)])
        points.append(CurvePoint(since, at - since, values, most))
        before = at
    return ReadGpu(points, ends, _counter(means.get("energy", {})), interval, _total(means))


def _counter(column: Column) -> list[tuple[float, float]]:
    """Without readings that are a little lower than the one before: of two exporters, one reads later."""
    counter: list[tuple[float, float]] = []
    for at, value in sorted(column.items()):
        if not counter or not counter[-1][1] * _ANEW <= value < counter[-1][1]:
            counter.append((at, value))
    return counter


def _total(means: Mapping[str, Column]) -> int | None:
    used, free = means.get("memory", {}), means.get("free", {})
    totals = means.get("total") or {at: used[at] + free[at] for at in used.keys() & free.keys()}
    return round(max(totals.values())) if totals else None


def cut(gpu: ReadGpu, start: float, end: float) -> list[CurvePoint]:
    """The pieces that were read while an attempt ran."""
    pieces = gpu.points[bisect_right(gpu.ends, start) : bisect_right(gpu.ends, end)]
    if not pieces:
        return []
    first = pieces[0]
    since = max(start, first.at)
    return [first._replace(at=since, seconds=first.at + first.seconds - since), *pieces[1:]]


def use_of(name: str, gpu: ReadGpu, points: Sequence[CurvePoint], times: Times, crowded: Sequence[Times]) -> GpuUse:
    """The figures of an attempt. While it was `crowded`, other attempts were on the GPU too.

    They are those of the GPU: its memory is never known to be the attempt's.
    """
    figures = {quantity: _figures(points, at) for at, quantity in enumerate(GPU_CURVE)}
    busy = figures["utilization"]
    counted = joules(gpu, *times)
    energy = joules_by_power(points) if counted is None else counted
    known = [(each.at, each.at + each.seconds) for each in points]
    shared = sum(end - start for start, end in both(known, crowded[_places(crowded, times)]))
    told = {**figures, "device_memory": figures["memory"], "energy": energy}
    of_gpu = sorted(quantity for quantity, value in told.items() if value is not None) if shared else ["memory"]
    return GpuUse(
        name,
        sum(each.seconds for each in points),
        utilization=busy and busy._replace(p95=_p95(points)),
        memory_copy=figures["memory_copy"],
        memory=figures["memory"],
        device_memory=figures["memory"],
        total_memory=gpu.total_memory,
        idle=sum(each.seconds for each in points if each.means[0] == 0) if busy else None,
        temperature=figures["temperature"],
        power=figures["power"],
        energy=energy,
        by_power=counted is None and energy is not None,
        shared=shared,
        of_gpu=[each for each in of_gpu if told[each] is not None],
    )


def _places(ordered: Sequence[Times], times: Times) -> slice:
    """Where those are that may touch these times."""
    return slice(max(0, bisect_left(ordered, (times[0],)) - 1), bisect_left(ordered, (times[1],)))


def _figures(points: Iterable[CurvePoint], at: int) -> Figures | None:
    known = [each for each in points if each.means[at] is not None]
    if not known:
        return None
    area = sum((each.means[at] or 0.0) * each.seconds for each in known)
    return Figures(area / sum(each.seconds for each in known), max(each.maxima[at] or 0.0 for each in known))


def _p95(points: Iterable[CurvePoint]) -> float:
    """The utilisation that was not exceeded for 95 % of the time."""
    known = sorted((each.means[0], each.seconds) for each in points if each.means[0] is not None)
    left = sum(seconds for _, seconds in known) * _P95
    for value, seconds in known:
        left -= seconds
        if left <= 0:
            return value
    return known[-1][0]


def joules(gpu: ReadGpu, start: float, end: float) -> float | None:
    """What was counted between two moments; None if nothing was.

    A counter that is lower than before began anew at 0. An interval that is partly another's is divided by time, unless
    it is so long that nobody knows when in it the energy was used.
    """
    first = max(0, bisect_left(gpu.counter, (start,)) - 1)
    found = None
    for (before, was), (at, now) in pairwise(gpu.counter[first:]):
        if before >= end:
            break
        inside = min(at, end) - max(before, start)
        is_whole = inside == at - before
        if inside > 0 and (is_whole or at - before <= _LONGEST * gpu.interval):
            found = (found or 0.0) + (now - was if now >= was else now) * inside / (at - before)
    return found


def joules_by_power(points: Iterable[CurvePoint]) -> float | None:
    """The power over the time for which it is known."""
    at = GPU_CURVE.index("power")
    known = [power * each.seconds for each in points if (power := each.means[at]) is not None]
    return sum(known) if known else None


def crowded_times(attempts: Iterable[Times]) -> list[Times]:
    """When at least two of them ran."""
    found = []
    reach = float("-inf")
    for start, end in sorted(attempts):
        if start < min(end, reach):
            found.append((start, min(end, reach)))
        reach = max(reach, end)
    return union(found)
