"""Policies by a score that changes while a job waits: `hrrn`, and what has been learned."""

from collections.abc import Callable

from simple_gpu_scheduler.jobs import Job

from .base import FIRST, Load, Queues, Ranked, Waiting

# A job of no length at all would be infinitely urgent.
LEAST = 1.0
# By `hrrn` nobody is passed by a job that came later by more than so many times his own length.
_PATIENCE = 100.0

Score = Callable[[Waiting, float, Load], float]


class Scored(Ranked):
    """Orders by a score that changes while a job waits, the largest first; in a queue who came first is first.

    A job that has waited for very long, by its own measure, is not passed by one that came much later: else there might
    always be somebody with a larger score.
    """

    def __init__(self, score: Score, patience: float) -> None:
        """Nobody is passed by a job that came later by more than `patience` times the length of a first one."""
        super().__init__(_came, by_time=True)
        self._score = score
        self._patience = patience

    def first(self, queues: Queues, now: float, load: Load) -> Waiting:
        """See `Policy`."""
        score = self._score
        best, most, limit = None, 0.0, float("inf")
        for queue in queues:
            waiting = queue[0]
            value = score(waiting, now, load)
            if best is None or value > most or (value == most and waiting < best):
                best, most = waiting, value
            limit = min(limit, self._limit(waiting))
        if best is None or best.since > limit:
            return self.ordered(queues, now, load)[0]
        return best

    def ordered(self, queues: Queues, now: float, load: Load) -> list[Waiting]:
        """See `Policy`."""
        heads = [*map(FIRST, queues)]
        limit = min(map(self._limit, heads))
        return sorted(heads, key=lambda each: (each.since > limit, -self._score(each, now, load), each))

    def _limit(self, waiting: Waiting) -> float:
        return waiting.since + self._patience * (waiting.length or LEAST)


class HighestRatio(Scored):
    """`hrrn`: the largest (w + T) / T first, which is the score of all that wait at once, for speed.

    Of equal ones the shortest: that is what they come to a moment later, when they came together.
    """

    def __init__(self) -> None:
        super().__init__(_ratio, _PATIENCE)

    def first(self, queues: Queues, now: float, _load: Load) -> Waiting:
        """See `Policy`."""
        heads = [queue[0] for queue in queues]
        ratios = [(now - head.since) / (head.length or LEAST) for head in heads]
        most = max(ratios)
        best = heads[ratios.index(most)]
        # Who has been passed for too long has waited for so long by his own measure, and the best for longer still.
        if most > _PATIENCE:
            limit = min([head.since + _PATIENCE * (head.length or LEAST) for head in heads])
            if best.since > limit:
                ratios = [ratio if head.since <= limit else -1.0 for head, ratio in zip(heads, ratios, strict=True)]
                most = max(ratios)
                best = heads[ratios.index(most)]
        if ratios.count(most) == 1:
            return best
        return min([head for head, ratio in zip(heads, ratios, strict=True) if ratio == most], key=_shortest)

    def ordered(self, queues: Queues, now: float, load: Load) -> list[Waiting]:
        """See `Policy`."""
        heads = [*map(FIRST, queues)]
        limit = min(map(self._limit, heads))
        return sorted(heads, key=lambda each: (each.since > limit, -_ratio(each, now, load), *_shortest(each)))


def _shortest(waiting: Waiting) -> tuple[float, int]:
    return waiting.length, waiting.number


def _came(_job: Job, since: float, _length: float) -> float:
    return since


def _ratio(waiting: Waiting, now: float, _load: Load) -> float:
    """(w + T) / T, less one."""
    return (now - waiting.since) / (waiting.length or LEAST)
