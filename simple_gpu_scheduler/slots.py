"""Slots: which places on which GPUs are taken by the jobs of this run. Pure; knows nothing of other users of a GPU.

Slots are numbered over the whole run: first those of the first GPU, and so on, then those for CPU jobs. No two attempts
that run at the same time have the same number, so a job can make a port or a directory of it.
"""

from collections.abc import Collection, Iterable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple


class Limits(NamedTuple):
    """What a run may use at the same time."""

    gpus: tuple[str, ...]
    jobs_per_gpu: int = 1
    cpu_slots: int = 1


class Slots:
    """The places of one run, free or taken."""

    def __init__(self, limits: Limits) -> None:
        per_gpu = limits.jobs_per_gpu
        self._gpus = limits.gpus
        self._per_gpu = per_gpu
        self._free = [list(range(gpu * per_gpu, (gpu + 1) * per_gpu)) for gpu in range(len(limits.gpus))]
        first_cpu = len(limits.gpus) * per_gpu
        self._free_cpu = list(range(first_cpu, first_cpu + limits.cpu_slots))
        self._first_cpu = first_cpu

    def has_cpu(self) -> bool:
        """Whether a CPU job could start."""
        return bool(self._free_cpu)

    def with_places(self, free: Collection[str], more_than: int = 0) -> list[int]:
        """The GPUs, by position, that others leave free and on which more than so many places are ours to take."""
        return [at for at, places in enumerate(self._free) if len(places) > more_than and self._gpus[at] in free]

    def within_reach(self, free: Collection[str]) -> int:
        """On how many GPUs a wide job could be, were all our own jobs to end."""
        return sum(gpu in free or len(self._free[at]) < self._per_gpu for at, gpu in enumerate(self._gpus))

    def take(self, width: int, positions: Sequence[int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Take a place on `width` of these GPUs, the emptiest first: their ids and the slots. No width: a CPU slot."""
        if not width:
            return (), (heappop(self._free_cpu),)
        if self._per_gpu > 1:
            positions = sorted(positions, key=lambda at: -len(self._free[at]))
        chosen = sorted(positions[:width])
        return tuple(self._gpus[at] for at in chosen), tuple(heappop(self._free[at]) for at in chosen)

    def give_back(self, slots: Iterable[int]) -> None:
        """These slots are free again."""
        for slot in slots:
            is_cpu = slot >= self._first_cpu
            heappush(self._free_cpu if is_cpu else self._free[slot // self._per_gpu], slot)
