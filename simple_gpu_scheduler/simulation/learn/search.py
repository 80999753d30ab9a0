"""Finds the weights of the `learned` policy in the simulator, by the cross-entropy method.

The same seed gives the same weights: its budget is counted in simulated jobs, not in seconds. It does not know where
workloads come from. Pure.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from random import Random
from statistics import fmean, pstdev

from simple_gpu_scheduler.scheduling.policies.learned import SIZE, Learned, Weights
from simple_gpu_scheduler.scheduling.policies.names import LEARNED, Chosen
from simple_gpu_scheduler.simulation.compare import Site, replay
from simple_gpu_scheduler.simulation.measures import Replay
from simple_gpu_scheduler.simulation.significance import standing
from simple_gpu_scheduler.simulation.simulate import Workload

from .lessons import Lessons

Numbers = list[float]

START = Weights()  # the order of `sjf`
BUDGET = 2_000_000

_GENERATIONS = 40  # or more, so that the budget is used
_CANDIDATES = 32
_ELITES = 8
_STEP = 0.7  # how far mean and deviations move to those of the elites per step
_DEVIATION = 0.5
_FLOOR = 0.02  # so that it does not stop at the first good point
_FOR_CHOOSING = 0.25  # of the budget
_CHOICES = 3


def learn(
    lessons: Lessons, site: Site, seed: int, *, budget: int = BUDGET, say: Callable[[str], None] = lambda _: None
) -> Weights:
    """The weights that minimise the mean wait; the initial ones if nothing is significantly better.

    The workloads should be many and short: a candidate is tried on a few of them, and `budget` is about how many jobs
    are simulated in all. No job may need more GPUs than there are. A ValueError is a sentence that says why nothing can
    be learned.
    """
    some_size = fmean(map(len, lessons.to_learn))
    tries = int(budget * (1 - _FOR_CHOOSING) / some_size) // (_CANDIDATES + 1)  # and one for the start
    if not tries:
        raise ValueError(f"a workload has {some_size:,.0f} jobs, too many to try each candidate on one")
    to_choose = lessons.to_choose[: max(1, int(budget * _FOR_CHOOSING / _CHOICES / some_size))]
    if not _wait(to_choose, site, START):
        raise ValueError("no job waits in any of its parts, whatever the order")
    a_generation = min(len(lessons.to_learn), max(1, tries // _GENERATIONS))
    generations = tries // a_generation
    rng = Random(seed)  # noqa: S311 - it draws candidates and no secrets
    search = _Search(rng)
    for generation in range(1, generations + 1):
        some = rng.sample(lessons.to_learn, a_generation)
        change = search.step(partial(_wait, some, site))
        say(f"generation {generation} of {generations}: mean wait {100 * change:+.2f} % compared with sjf")
    return _choose([weights_of(_rounded(each)) for each in (search.mean, search.late_mean)], to_choose, site)


def _choose(found: Sequence[Weights], workloads: Sequence[Workload], site: Site) -> Weights:
    """The best of those found, or the initial weights if it is not significantly better."""
    waits = {weights: [_wait([each], site, weights) for each in workloads] for weights in (START, *found)}
    best = min(found, key=lambda weights: sum(waits[weights]))
    beside = standing(waits[best], waits[START], [*map(len, workloads)])
    return best if beside.is_surely_less else START


class _Search:
    """The cross-entropy method: draw, keep the elites, draw around their mean with their deviation."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.mean = [*chain(*START)]
        self._deviations = [_DEVIATION] * len(self.mean)
        self._means: list[Numbers] = []

    @property
    def late_mean(self) -> Numbers:
        """The mean of the means of the second half of the search, which has less noise."""
        return [fmean(column) for column in zip(*self._means[len(self._means) // 2 :], strict=True)]

    def step(self, cost: Callable[[Weights], float]) -> float:
        """One generation, all tried on the same workloads; how much the elites cost relative to the start."""
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
    """From a vector of the search."""
    return Weights(*(tuple(numbers[at : at + SIZE]) for at in range(0, len(numbers), SIZE)))


def _rounded(numbers: Numbers) -> Numbers:
    return [round(number, 4) for number in numbers]


def _on_the_way(old: float, new: float) -> float:
    return old + _STEP * (new - old)


def _wait(workloads: Sequence[Workload], site: Site, weights: Weights) -> float:
    """The total wait of all their jobs."""
    policy = Chosen(LEARNED, partial(Learned, weights))
    return sum(sum(Replay(each, replay(each, policy, site)).waits()) for each in workloads)
