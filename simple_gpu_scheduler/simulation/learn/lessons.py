"""The jobs that a policy learns from and those it is tested on: never the same. Pure."""

from collections.abc import Sequence
from random import Random

from simple_gpu_scheduler.base.values import NamedTuple
from simple_gpu_scheduler.simulation.significance import Standing
from simple_gpu_scheduler.simulation.simulate import Workload

_WINDOWS = 300
_FEWEST = 5  # workloads to choose by; with fewer, chance decides
_FEWEST_JOBS, _MOST_JOBS = 20, 2000
_PER_GPU = 4  # jobs of a part per GPU, or no job would wait


class Lessons(NamedTuple):
    """Workloads to learn from, and others to choose the best result by."""

    to_learn: Sequence[Workload]
    to_choose: Sequence[Workload]


class Exam(NamedTuple):
    """How the learned policy compares with another, and on what."""

    name: str
    other: str
    standing: Standing


class School(NamedTuple):
    """The lessons, and the exams by name."""

    lessons: Lessons
    exams: Sequence[tuple[str, Sequence[Workload]]]


def school_of(workloads: Sequence[Workload], gpus: int, seed: int) -> School:
    """Learn from the first half of many workloads, or from parts of the first half of one. A ValueError: too few.

    Only workloads to learn from may overlap: workloads that share jobs are not independent.
    """
    if len(workloads) > 1:
        third, half = len(workloads) // 6, len(workloads) // 2
        if third < _FEWEST:
            raise ValueError(f"there are {len(workloads)} workloads, and at least {6 * _FEWEST} are needed")
        lessons = Lessons(workloads[third:half], workloads[:third])
        return School(lessons, [("on workloads of other seeds", workloads[half:])])
    [whole] = workloads
    half, third = len(whole) // 2, len(whole) // 3
    if len(whole) < 6 * _FEWEST * _FEWEST_JOBS:
        raise ValueError(f"it has {len(whole):,} jobs, and at least {6 * _FEWEST * _FEWEST_JOBS:,} are needed")
    size = min(max(_FEWEST_JOBS, _PER_GPU * gpus), _MOST_JOBS, (half - third) // _FEWEST)
    rng = Random(seed)  # noqa: S311 - where to cut is no secret
    lessons = Lessons(_windows(whole[:third], size, rng), _parts(whole[third:half], size))
    exams = [
        ("on parts of the second half", _parts(whole[half:], size)),
        ("on the second half as a whole", [renumbered(whole[half:])]),
    ]
    return School(lessons, exams)


def _windows(workload: Workload, size: int, rng: Random) -> list[Workload]:
    """Parts that may overlap."""
    starts = [rng.randrange(len(workload) - size + 1) for _ in range(_WINDOWS)]
    return [renumbered(workload[start : start + size]) for start in starts]


def _parts(workload: Workload, size: int) -> list[Workload]:
    """Consecutive parts."""
    return [renumbered(workload[start : start + size]) for start in range(0, len(workload) - size + 1, size)]


def renumbered(workload: Workload) -> Workload:
    """The same jobs as a separate workload."""
    start = workload[0].at if workload else 0.0
    return [
        each._replace(at=each.at - start, job=each.job._replace(number=number))
        for number, each in enumerate(workload, 1)
    ]
