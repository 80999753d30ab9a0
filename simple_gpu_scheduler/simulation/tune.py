"""Which policy suits a workload best, by how much, and how sure that is. Pure.

It compares mean waits part by part: ten parts of one workload, or each of several workloads. It does not know how
results are shown, nor of learned policies.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from simple_gpu_scheduler.base.values import NamedTuple
from simple_gpu_scheduler.scheduling.policies import MAY_STARVE
from simple_gpu_scheduler.scheduling.queues import Label

from .measures import Measures, Replay
from .significance import Standing, standing
from .simulate import Workload

BASE = "fifo"
AGEINGS = ("0.1", "0.3", "1", "3", "10")
_PARTS = 10
_WORTH = 1.0  # percent: a smaller gain is no gain
_ERRORS = 3  # standard errors, not 2, since this is the best of ten
FEW_PARTS = 5  # with fewer, nothing is sure
# With fewer jobs than this in a part, one of them decides.
_FEW = 20


class Candidate(NamedTuple):
    """A setting, its measures, how it compares with fifo, and in how many parts its mean wait was smaller."""

    policy: str
    measures: Measures
    standing: Standing
    wins: int = 0

    @property
    def may_starve(self) -> bool:
        """Whether a job may wait forever under it."""
        return self.policy in MAY_STARVE


class Tuned(NamedTuple):
    """All candidates, and the number of parts. `best` is free of starvation; `least` has the least mean wait."""

    candidates: Sequence[Candidate]
    parts: int
    best: Candidate
    least: Candidate

    @property
    def is_sure(self) -> bool:
        """Whether the best is significantly better than fifo."""
        beside = self.best.standing
        return self.parts >= FEW_PARTS and beside.difference < -_ERRORS * beside.error


def settings(workloads: Iterable[Workload], label: Label) -> list[str]:
    """The settings to try: policies for labels or priorities only if there are any."""
    jobs = [each.job for workload in workloads for each in workload]
    names = [BASE, *(f"aged:{ageing}" for ageing in AGEINGS), "hrrn", "sjf", "lpt"]
    if len(set(map(label, jobs))) > 1:
        names += ["fair", "round-robin"]
    if len({job.priority for job in jobs}) > 1:
        names.append("priority")
    return names


class Parts(NamedTuple):
    """The sum of the waits in each part, and its number of jobs."""

    waits: Sequence[float]
    sizes: Sequence[int]

    def wins(self, other: "Parts") -> int:
        """In how many parts the wait is less than the other's."""
        return sum(mine < theirs for mine, theirs in zip(self.waits, other.waits, strict=True))


def tune(results: Sequence[tuple[str, Measures, Sequence[Replay]]]) -> Tuned:
    """Compare the candidates; the first is the baseline."""
    parts = {name: in_parts(simulated) for name, _, simulated in results}
    base = next(iter(parts.values()))
    candidates = [
        Candidate(name, measures, standing(parts[name].waits, base.waits, base.sizes), parts[name].wins(base))
        for name, measures, _ in results
    ]
    least = min(candidates, key=lambda each: each.measures.wait.mean)
    best = min((each for each in candidates if not each.may_starve), key=lambda each: each.measures.wait.mean)
    if best.standing.percent > -_WORTH:
        best = candidates[0]
    return Tuned(candidates, len(base.sizes), best, least)


def in_parts(simulated: Sequence[Replay]) -> Parts:
    """Each of many workloads is a part; few are cut into ten equal parts each, or fewer if there are too few jobs."""
    if len(simulated) >= _PARTS:
        parts = [each.waits() for each in simulated if each.workload]
    else:
        waits = [wait for each in simulated for wait in each.waits()]
        count = max(1, min(_PARTS, len(waits) // _FEW))
        ends = [len(waits) * number // count for number in range(count + 1)]
        parts = [waits[start:end] for start, end in pairwise(ends)]
    return Parts([sum(part) for part in parts], [len(part) for part in parts])
