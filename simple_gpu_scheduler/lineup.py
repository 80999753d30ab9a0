"""The jobs that could start now if there were room, by what they need, each kind in its order. Pure."""

from heapq import heapify, heappop, heappush
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
    """A heap for each need, so that only the first of each has to be looked at."""

    def __init__(self) -> None:
        self._by_need: dict[Need, list[Waiting]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, need: Need) -> bool:
        return need in self._by_need

    def push(self, waiting: Waiting) -> None:
        """One more."""
        job = waiting.job
        need = (job.gpus, job.mem or 0) if job.gpus else CPU
        heappush(self._by_need.setdefault(need, []), waiting)
        self._size += 1

    def in_order(self) -> list[Need]:
        """What is needed, by the order of those who are first."""
        return sorted(self._by_need, key=lambda need: self._by_need[need][0])

    def first(self, need: Need) -> Waiting:
        """The first that needs so much."""
        return self._by_need[need][0]

    def pop(self, need: Need) -> Waiting:
        """The same, taken out."""
        queue = self._by_need[need]
        waiting = heappop(queue)
        if not queue:
            del self._by_need[need]
        self._size -= 1
        return waiting

    def pop_all(self, need: Need) -> list[Waiting]:
        """All that need so much, in their order."""
        queue = sorted(self._by_need.pop(need))
        self._size -= len(queue)
        return queue

    def remove(self, number: int) -> Job | None:
        """Take a job out; None when it is not here."""
        for need, queue in self._by_need.items():
            for at, waiting in enumerate(queue):
                if waiting.number == number:
                    queue[at] = queue[-1]
                    queue.pop()
                    heapify(queue)
                    if not queue:
                        del self._by_need[need]
                    self._size -= 1
                    return waiting.job
        return None

    @property
    def most_gpus(self) -> int:
        """How many GPUs the widest needs; 0 when none needs any."""
        return max((gpus for gpus, _ in self._by_need), default=0)

    @property
    def most_memory(self) -> int:
        """How much memory one of them needs at most."""
        return max((mem for _, mem in self._by_need), default=0)
