"""When attempts were on which GPU, and how busy each kept it -> for how long each of them wasted it. Pure.

Of an attempt only the mean utilisation is known. So it is taken to have used its GPU evenly while it was there.
"""

from collections.abc import Iterable, Sequence

from simple_gpu_scheduler.base.text import visible
from simple_gpu_scheduler.base.values import NamedTuple

from .measured import Measured
from .timeline import Span

_FULL = 100.0
_UNKNOWN = 0.0, 0.0


class Stay(NamedTuple):
    """An attempt on a GPU, and the share of it that it used: `own`, or `whole` if it is that of all that were there."""

    start: float
    end: float
    own: float | None = None
    whole: float | None = None


class Shares(NamedTuple):
    """Of the time of a stay, from 0 to 1: what is charged to it, and the part of that which nobody used."""

    charged: float
    unused: float


def charge(spans: Iterable[Span], until: float) -> None:
    """Add to each GPU of each attempt for how long it is charged with it, and for how long it wasted it, in seconds."""
    stays: dict[str, list[Stay]] = {}
    measured: dict[str, list[Measured | None]] = {}
    for span in spans:
        known = {gpu["gpu"]: gpu for gpu in span.measured["gpus"]} if span.measured else {}
        for name in dict.fromkeys([*map(visible, span.gpus), *known]):
            stays.setdefault(name, []).append(_stay(span.started, span.end_by(until), known.get(name)))
            measured.setdefault(name, []).append(known.get(name))
    for name, each in stays.items():
        for gpu, shares in zip(measured[name], shared_out(each), strict=True):
            if gpu and "utilization" in gpu:
                gpu["charged"] = round(shares.charged * gpu["seconds"], 3)
                gpu["wasted"] = round(shares.unused * gpu["seconds"], 3)


def _stay(start: float, end: float, gpu: Measured | None) -> Stay:
    if not gpu or "utilization" not in gpu:
        return Stay(start, end)
    used = min(1.0, gpu["utilization"]["mean"] / _FULL)
    is_whole = "utilization" in gpu.get("of_gpu", ())
    return Stay(start, end, None if is_whole else used, used if is_whole else None)


def shared_out(stays: Sequence[Stay]) -> list[Shares]:
    """The shares of those that were on one GPU.

    What is not used while several are there is divided equally among them; so together they waste what nobody used.
    """
    edges = sorted({edge for stay in stays for edge in stay[:2]})
    starts: dict[float, list[Stay]] = {}
    ends: dict[float, list[Stay]] = {}
    for stay in stays:
        if stay.end > stay.start:
            starts.setdefault(stay.start, []).append(stay)
            ends.setdefault(stay.end, []).append(stay)
    sums = {edges[0]: _UNKNOWN} if edges else {}
    there: list[Stay] = []
    for edge, following in zip(edges, [*edges[1:], None], strict=True):
        left = {id(stay) for stay in ends.get(edge, ())}
        there = [stay for stay in there if id(stay) not in left] + starts.get(edge, [])
        if following is not None:
            charged, unused = sums[edge]
            part = (following - edge) / len(there) if there else 0.0
            sums[following] = charged + part, unused + part * (1 - _used(there))
    return [_shares(stay, sums) for stay in stays]


def _used(there: Iterable[Stay]) -> float:
    """The share of the GPU that these used together; what it says of itself counts more than their sum."""
    whole = [stay.whole for stay in there if stay.whole is not None]
    return sum(whole) / len(whole) if whole else min(1.0, sum(stay.own or 0.0 for stay in there))


def _shares(stay: Stay, sums: dict[float, tuple[float, float]]) -> Shares:
    length = stay.end - stay.start
    if length <= 0:
        return Shares(1.0, 1 - _used([stay]))
    (charged, unused), (before, unused_before) = sums[stay.end], sums[stay.start]
    return Shares(*(max(0.0, min(1.0, each / length)) for each in (charged - before, unused - unused_before)))
