"""Slots: which places on which GPUs are taken by the jobs of this run, and the memory that they said they need. Pure.

Slots are numbered over the whole run: first those of the first GPU, and so on, then those for CPU jobs. No two attempts
that run at the same time have the same number, so a job can make a port or a directory of it. It knows of other users
of a GPU only what is left of it: its room.
"""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from .jobs import Attempt, Job

_UNLIMITED = float("inf")


class Limits(NamedTuple):
    """What a run may use at the same time. `totals` is the memory of each GPU, where it is known."""

    gpus: tuple[str, ...]
    jobs_per_gpu: int = 1
    cpu_slots: int = 1
    totals: tuple[float, ...] = ()


class Room(NamedTuple):
    """The memory of a GPU that others leave free: what is free now, and what each of our attempts has of the rest."""

    free: float = _UNLIMITED
    held: Mapping[tuple[int, int], int] = {}


Rooms = Mapping[str, Room]


class Held(NamedTuple):
    """What is kept on each GPU for a job that waits for more of them: a place, and memory."""

    places: int = 0
    mem: int = 0


class Slots:
    """The places of one run, free or taken."""

    def __init__(self, limits: Limits) -> None:
        per_gpu = limits.jobs_per_gpu
        self._gpus = limits.gpus
        self._totals = limits.totals or (_UNLIMITED,) * len(limits.gpus)
        self._per_gpu = per_gpu
        self._free = [list(range(gpu * per_gpu, (gpu + 1) * per_gpu)) for gpu in range(len(limits.gpus))]
        self._declared: list[dict[tuple[int, int], int]] = [{} for _ in limits.gpus]
        self.lost: set[str] = set()
        first_cpu = len(limits.gpus) * per_gpu
        self._free_cpu = list(range(first_cpu, first_cpu + limits.cpu_slots))
        self._first_cpu = first_cpu
        self._untaken = first_cpu

    def has_gpu(self) -> bool:
        """Whether any GPU has a place."""
        return self._untaken > 0

    def has_cpu(self) -> bool:
        """Whether a CPU job could start."""
        return bool(self._free_cpu)

    def with_places(self, rooms: Rooms, mem: int = 0, held: Held = Held()) -> list[int]:  # noqa: B008 - frozen
        """The GPUs, by position, on which others and what is held leave a place, and the memory."""
        needed = mem + held.mem
        return [
            at
            for at, places in enumerate(self._free)
            if len(places) > held.places
            and self._gpus[at] in rooms
            and (not needed or self._left(at, rooms[self._gpus[at]]) >= needed)
        ]

    def within_reach(self, rooms: Rooms, mem: int = 0) -> int:
        """On how many GPUs a wide job could be, were all our own jobs to end."""
        return sum(
            self._all_but_ours(rooms[gpu]) >= mem if gpu in rooms else len(self._free[at]) < self._per_gpu
            for at, gpu in enumerate(self._gpus)
        )

    def could_ever_fit(self, job: Job) -> bool:
        """Whether the GPUs that are not lost are enough, and large enough, for a job."""
        large = [at for at, gpu in enumerate(self._gpus) if gpu not in self.lost and self._totals[at] >= (job.mem or 0)]
        return len(large) >= job.gpus

    def take(self, job: Job, attempt: int, positions: Sequence[int]) -> Attempt:
        """Take a place on as many of these GPUs as the job needs, the emptiest first; for none of them a CPU slot."""
        self._untaken -= job.gpus
        if not job.gpus:
            return Attempt(job, attempt, (), (heappop(self._free_cpu),))
        if self._per_gpu > 1:
            positions = sorted(positions, key=lambda at: -len(self._free[at]))
        chosen = sorted(positions[: job.gpus])
        slots = tuple(heappop(self._free[at]) for at in chosen)
        if job.mem:
            for at in chosen:
                self._declared[at][job.number, attempt] = job.mem
        return Attempt(job, attempt, tuple(self._gpus[at] for at in chosen), slots)

    def fits(self, attempt: Attempt, rooms: Rooms) -> bool:
        """Whether an attempt that has its places has the memory too, after a closer look."""
        return not attempt.job.mem or all(
            gpu in rooms and self._left(self._position(slot), rooms[gpu]) >= 0
            for gpu, slot in zip(attempt.gpus, attempt.slots, strict=True)
        )

    def give_back(self, attempt: Attempt) -> None:
        """Its slots are free again."""
        for slot in attempt.slots:
            is_cpu = slot >= self._first_cpu
            heappush(self._free_cpu if is_cpu else self._free[self._position(slot)], slot)
            if not is_cpu:
                self._untaken += 1
                self._declared[self._position(slot)].pop(attempt.key, None)

    def lose(self, gpu: str) -> None:
        """This GPU will not come back."""
        self.lost.add(gpu)

    def _position(self, slot: int) -> int:
        return slot // self._per_gpu

    def _left(self, at: int, room: Room) -> float:
        """What is free, less what our attempts said they need and do not have yet."""
        # The total counts where nobody looks at what is free.
        return min(room.free, self._totals[at]) - sum(
            max(0, mem - room.held.get(key, 0)) for key, mem in self._declared[at].items()
        )

    @staticmethod
    def _all_but_ours(room: Room) -> float:
        return room.free + sum(room.held.values())
