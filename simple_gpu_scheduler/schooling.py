"""What a learned policy learns from and what it is examined on: never the same jobs. Pure."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from .simulator import Arrival
from .standings import Standing

Workload = Sequence[Arrival]

_WINDOWS = 300
_FEWEST_JOBS, _MOST_JOBS = 40, 400
_PER_GPU = 4  # so many jobs of a window for each GPU, or nobody would wait


class Exam(NamedTuple):
    """How what was learned stands beside another policy, and on what."""

    name: str
    other: str
    standing: Standing


class School(NamedTuple):
    """The lessons, and the exams by what they are called."""

    lessons: Sequence[Workload]
    exams: Sequence[tuple[str, Sequence[Workload]]]


def school_of(workloads: Sequence[Workload], gpus: int, seed: int) -> School:
    """Of many workloads the first half to learn from; of one, pieces of its first half."""
    if len(workloads) > 1:
        half = len(workloads) // 2
        return School(workloads[:half], [("on workloads of other seeds", workloads[half:])])
    [whole] = workloads
    first, second = whole[: len(whole) // 2], renumbered(whole[len(whole) // 2 :])
    rng = Random(seed)  # noqa: S311 - where to cut is no secret
    exams = [
        ("on pieces of the second half", _windows(second, gpus, rng)),
        ("on the second half as a whole", [second]),
    ]
    return School(_windows(first, gpus, rng), exams)


def _windows(workload: Workload, gpus: int, rng: Random) -> list[Workload]:
    """So many pieces, which may overlap."""
    size = min(max(_FEWEST_JOBS, _PER_GPU * gpus), _MOST_JOBS)
    if len(workload) <= size:
        return [workload]
    begins = [rng.randrange(len(workload) - size + 1) for _ in range(_WINDOWS)]
    return [renumbered(workload[begin : begin + size]) for begin in begins]


def renumbered(workload: Workload) -> Workload:
    """The same jobs as a workload of their own."""
    begin = workload[0].at if workload else 0.0
    return [
        each._replace(at=each.at - begin, job=each.job._replace(number=number))
        for number, each in enumerate(workload, 1)
    ]
