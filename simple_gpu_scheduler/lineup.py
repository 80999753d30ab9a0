"""The jobs that could start now if there were room, by what they need, each kind in its order. Pure."""

from heapq import heappop, heappush
from typing import NamedTuple

from .jobs import Job

Need = tuple[int, int]  # GPUs, and memory on each
CPU: Need = (0, 0)


class Waiting(NamedTuple):
    """A job's place in the order; as a tuple it sorts by rank, then by number."""

    rank: float
    number: int
    attempt: int
    job: Job


class Lineup:
    """A heap for each need, so that only the first of each has to be looked at.

    Who is taken out stays in his heap until he is first there: to find him is long, and many may be taken out at once.
    """

    def __init__(self) -> None:
        self._by_need: dict[Need, list[Waiting]] = {}
        self._here: dict[int, Waiting] = {}

    def __len__(self) -> int:
        return len(self._here)

    def __contains__(self, need: Need) -> bool:
        return need in self._by_need

    def push(self, waiting: Waiting) -> None:
        """One more."""
        heappush(self._by_need.setdefault(_need(waiting.job), []), waiting)
        self._here[waiting.number] = waiting

    def in_order(self) -> list[Need]:
        """What is needed, by the order of those who are first."""
        return sorted(self._by_need, key=lambda need: self._by_need[need][0])

    def first(self, need: Need) -> Waiting:
        """The first that needs so much."""
        return self._by_need[need][0]

    def pop(self, need: Need) -> Waiting:
        """The same, taken out."""
        waiting = heappop(self._by_need[need])
        del self._here[waiting.number]
        self._pass_over_gone(need)
        return waiting

    def pop_all(self, need: Need) -> list[Waiting]:
        """All that need so much, in their order."""
        queue = sorted(waiting for waiting in self._by_need.pop(need) if self._is_here(waiting))
        for waiting in queue:
            del self._here[waiting.number]
        return queue

    def remove(self, number: int) -> Job | None:
        """Take a job out; None when it is not here."""
        waiting = self._here.pop(number, None)
        if waiting is None:
            return None
        self._pass_over_gone(_need(waiting.job))
        return waiting.job

    def _pass_over_gone(self, need: Need) -> None:
        queue = self._by_need[need]
        while queue and not self._is_here(queue[0]):
            heappop(queue)
        if not queue:
            del self._by_need[need]

    def _is_here(self, waiting: Waiting) -> bool:
        return self._here.get(waiting.number) is waiting  # he may have come back meanwhile

    @property
    def most_gpus(self) -> int:
        """How many GPUs the widest needs; 0 when none needs any."""
        return max((gpus for gpus, _ in self._by_need), default=0)

    @property
    def most_memory(self) -> int:
        """How much memory one of them needs at most."""
        return max((mem for _, mem in self._by_need), default=0)


def _need(job: Job) -> Need:
    return (job.gpus, job.mem or 0) if job.gpus else CPU
