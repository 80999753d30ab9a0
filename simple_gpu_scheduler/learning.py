"""Finds the weights of the `learned` policy in the simulator, by the cross-entropy method; and compares policies.

The same seed gives the same weights: what it may cost is counted in simulated jobs, not in seconds. It knows nothing of
where workloads come from, nor of files. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from random import Random
from statistics import fmean, pstdev
from typing import NamedTuple

from .policies import Policy
from .policies.learned import SIZE, Learned, Weights
from .scheduler import Scheduler
from .simulator import Arrival, simulate
from .slots import Limits
from .standings import Standing, standing

Workload = Sequence[Arrival]
Numbers = list[float]

START = Weights()  # the order of `sjf`
BUDGET = 2_000_000
FEWEST = 12  # workloads to learn from

_GENERATIONS = 40  # or more, so that the budget is used
_CANDIDATES = 32
_ELITES = 8
_STEP = 0.7  # how far the mean and the deviations go to those of the elites at once
_DEVIATION = 0.5
_FLOOR = 0.02  # so that it does not end at the first good place
_FOR_CHOOSING = 0.25  # of the budget
_CHOICES = 3


class Lesson(NamedTuple):
    """What was learned: the weights, how they did on workloads kept for choosing them, and what it cost.

    The weights are those of the start when nothing surely beat it there.
    """

    weights: Weights
    standing: Standing
    jobs: int

    @property
    def is_new(self) -> bool:
        """Whether anything was."""
        return self.weights != START


def compare(
    workloads: Sequence[Workload], gpus: Sequence[str], policies: Mapping[str, Callable[[], Policy]], other: str
) -> dict[str, Standing]:
    """How each policy does, against one of them, on the same workloads."""
    sizes = [len(workload) for workload in workloads]
    waits = {name: [_wait(each, gpus, make()) for each in workloads] for name, make in policies.items()}
    return {name: standing(mine, waits[other], sizes) for name, mine in waits.items()}


def learn(
    workloads: Sequence[Workload],
    gpus: Sequence[str],
    seed: int,
    *,
    budget: int = BUDGET,
    say: Callable[[str], None] = lambda _: None,
) -> Lesson:
    """Learn the weights that make the mean wait small.

    The workloads should be many and short: a candidate is tried on a few of them, and `budget` is about how many jobs
    are simulated in all. No job may need more GPUs than there are. A ValueError is a sentence that says why nothing can
    be learned.
    """
    school = [workload for workload in workloads if workload]
    if len(school) < FEWEST:
        raise ValueError(f"there are only {len(school)} workloads to learn from, and it needs {FEWEST} or more")
    size = sum(map(len, school)) / len(school)
    tries = int(budget * (1 - _FOR_CHOOSING) / size) // (_CANDIDATES + 1)  # and one for the start
    if not tries:
        raise ValueError(f"a workload has {size:,.0f} jobs, too many to try each candidate on one; cut them shorter")
    rng = Random(seed)  # noqa: S311 - it draws candidates and no secrets
    rng.shuffle(school)
    kept = min(len(school) // 3, int(budget * _FOR_CHOOSING / _CHOICES / size))
    exams, lessons = school[:kept], school[kept:]
    a_generation = min(len(lessons), max(1, tries // _GENERATIONS))
    generations = tries // a_generation
    search, jobs = _Search(rng), 0
    for generation in range(1, generations + 1):
        some = rng.sample(lessons, a_generation)
        jobs += (_CANDIDATES + 1) * sum(map(len, some))
        change = search.go_on(partial(_cost, some, gpus))
        say(f"generation {generation} of {generations}: mean wait {100 * change:+.2f} % beside sjf")
    chosen, how = _choose([weights_of(_rounded(each)) for each in (search.mean, search.late_mean)], exams, gpus)
    return Lesson(chosen, how, jobs + _CHOICES * sum(map(len, exams)))


def _choose(found: Sequence[Weights], exams: Sequence[Workload], gpus: Sequence[str]) -> tuple[Weights, Standing]:
    """The best of those found, or the start when it is not surely better."""
    candidates = {str(at): weights for at, weights in enumerate((START, *found))}
    standings = compare(exams, gpus, {name: partial(Learned, weights) for name, weights in candidates.items()}, "0")
    best = min(standings, key=lambda name: standings[name].wait)
    if not standings[best].is_surely_less:
        best = "0"
    return candidates[best], standings[best]


class _Search:
    """The cross-entropy method: draw, keep the elites, draw around their mean, as widely as they differ."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.mean = [*chain(*START)]
        self._deviations = [_DEVIATION] * len(self.mean)
        self._means: list[Numbers] = []

    @property
    def late_mean(self) -> Numbers:
        """The mean of the means of the second half of the way, which has less noise."""
        return [fmean(column) for column in zip(*self._means[len(self._means) // 2 :], strict=True)]

    def go_on(self, cost: Callable[[Weights], float]) -> float:
        """One generation, all of which are tried on the same; by which part the elites' cost is above the start's."""
        drawn = [[*map(self._rng.gauss, self.mean, self._deviations)] for _ in range(_CANDIDATES)]
        costs = [cost(weights_of(numbers)) for numbers in drawn]
        order = sorted(range(_CANDIDATES), key=costs.__getitem__)[:_ELITES]
        columns = [*zip(*(drawn[at] for at in order), strict=True)]
        self.mean = [*map(_on_the_way, self.mean, map(fmean, columns))]
        self._deviations = [max(_FLOOR, each) for each in map(_on_the_way, self._deviations, map(pstdev, columns))]
        self._means.append(self.mean)
        at_start = cost(START)
        return fmean(costs[at] for at in order) / at_start - 1 if at_start else 0.0


def weights_of(numbers: Numbers) -> Weights:
    """In the order of the search."""
    return Weights(*(tuple(numbers[at : at + SIZE]) for at in range(0, len(numbers), SIZE)))


def _rounded(numbers: Numbers) -> Numbers:
    return [round(number, 4) for number in numbers]


def _on_the_way(old: float, new: float) -> float:
    return old + _STEP * (new - old)


def _cost(workloads: Sequence[Workload], gpus: Sequence[str], weights: Weights) -> float:
    return sum(_wait(workload, gpus, Learned(weights)) for workload in workloads)


def _wait(workload: Workload, gpus: Sequence[str], policy: Policy) -> float:
    """Of all its jobs together."""
    starts = simulate(workload, Scheduler(Limits(tuple(gpus)), policy), gpus)
    return sum(starts) - sum(arrival.at for arrival in workload)
