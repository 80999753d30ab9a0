"""Policies with a score that changes while a job waits: `hrrn` and `learned`."""

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.values import Callable

from .base import Heads, Load, Ranked, WaitingJob

# A job of length zero would be infinitely urgent.
LEAST = 1.0
# Under `hrrn`, a job is never passed by one that came later by more than this many times its own length.
_PATIENCE = 100.0

Score = Callable[[WaitingJob, float, Load], float]


class Scored(Ranked):
    """Orders by a score that changes while a job waits, largest first; within a queue, first come, first served.

    A job that has waited very long for its length is not passed by one that came much later: otherwise there might
    always be one with a larger score.
    """

    def __init__(self, score: Score, patience: float) -> None:
        """No job is passed by one that came later by more than `patience` times the length of the first of a queue."""
        super().__init__(_came, by_length=True)
        self._score = score
        self._patience = patience

    def first(self, heads: Heads, now: float, load: Load) -> WaitingJob:
        """See `Policy`."""
        limit = self._limit(heads)
        allowed = [head for head in heads if head.since <= limit]
        if len(allowed) == 1:
            return allowed[0]
        score = self._score
        scores = [score(head, now, load) for head in allowed]
        most = max(scores)
        return min([head for head, value in zip(allowed, scores, strict=True) if value == most])

    def ordered(self, heads: Heads, now: float, load: Load) -> list[WaitingJob]:
        """See `Policy`."""
        limit = self._limit(heads)
        return sorted(heads, key=lambda each: (each.since > limit, -self._score(each, now, load), each))

    def _limit(self, heads: Heads) -> float:
        """Jobs that came later than this may not start: they would pass a job that has been passed for long enough."""
        patience = self._patience
        return min([head.since + patience * (head.length or LEAST) for head in heads])


class HighestRatio(Scored):
    """`hrrn`: the largest (w + T) / T first.

    Of equals the shortest, which would have the largest ratio a moment later if they came together.
    """

    def __init__(self) -> None:
        super().__init__(_ratio, _PATIENCE)

    def first(self, heads: Heads, now: float, _load: Load) -> WaitingJob:
        """See `Policy`. The score is repeated here: a call for it would take longer than everything else."""
        limit = self._limit(heads)
        most, best = float("-inf"), next(iter(heads))
        for head in heads:
            if head.since <= limit:
                ratio = (now - head.since) / (head.length or LEAST)
                if ratio > most or (ratio == most and _shortest(head) < _shortest(best)):
                    most, best = ratio, head
        return best

    def ordered(self, heads: Heads, now: float, load: Load) -> list[WaitingJob]:
        """See `Policy`."""
        limit = self._limit(heads)
        return sorted(heads, key=lambda each: (each.since > limit, -_ratio(each, now, load), *_shortest(each)))


def _shortest(waiting: WaitingJob) -> tuple[float, int]:
    return waiting.length, waiting.number


def _came(_job: Job, since: float, _length: float) -> float:
    return since


def _ratio(waiting: WaitingJob, now: float, _load: Load) -> float:
    """(w + T) / T, less one."""
    return (now - waiting.since) / (waiting.length or LEAST)
