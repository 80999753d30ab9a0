"""Slots: which places on which GPUs the jobs of this run take, and the memory they declared. Pure.

Slots are numbered over the whole run: first those of the first GPU, and so on, then those for CPU jobs. No two attempts
that run at the same time have the same number, so a job can make a port or a directory of it. It knows of other users
of a GPU only what is left of it: its room.
"""

from simple_gpu_scheduler.base.jobs import Attempt, Job, Key
from simple_gpu_scheduler.base.stdlib import insort_right
from simple_gpu_scheduler.base.values import Container, Mapping, NamedTuple, Sequence

_UNLIMITED = float("inf")
_LONG_AGO = float("-inf")

Need = tuple[int, int]  # GPUs, and memory on each


class Limits(NamedTuple):
    """What a run may use at once. `totals` is the memory of each GPU, where known.

    With `elsewhere` a cluster chooses the GPUs: each job takes one of the CPU slots, whatever it needs.
    """

    gpus: tuple[str, ...]
    jobs_per_gpu: int = 1
    cpu_slots: int = 1
    totals: tuple[float, ...] = ()
    elsewhere: bool = False
    at_once: int | None = None  # how many of the GPUs may be held at once


class Room(NamedTuple):
    """The memory of a GPU that others leave us: what is free now, and what each of our attempts holds."""

    free: float = _UNLIMITED
    held: Mapping[Key, int] = {}


Rooms = Mapping[str, Room]


class Kept(NamedTuple):
    """What is reserved for the first job without room: a place, and memory, on each of these GPUs, by position.

    It is known to start at `start`, or some time after; a job that ends by then delays nothing.
    """

    start: float
    gpus: Container[int]
    mem: int
    alone: bool = False  # no other attempt may be there when it starts

    @property
    def is_known(self) -> bool:
        """Whether the start is known."""
        return self.start != _UNLIMITED


NOTHING = Kept(_UNLIMITED, (), 0)


class Slots:
    """The places of one run, free or taken."""

    def __init__(self, limits: Limits) -> None:
        per_gpu = limits.jobs_per_gpu
        self.gpus = limits.gpus
        self._totals = limits.totals or (_UNLIMITED,) * len(limits.gpus)
        self._per_gpu = per_gpu
        self._elsewhere = limits.elsewhere
        self._at_once = len(limits.gpus) if limits.at_once is None else limits.at_once
        self.is_capped = self._at_once < len(limits.gpus)  # whether fewer GPUs may be held at once than there are
        # The free slots of each GPU, in order.
        self._free = [list(range(gpu * per_gpu, (gpu + 1) * per_gpu)) for gpu in range(len(limits.gpus))]
        self.open = list(range(len(limits.gpus)))  # the GPUs that have a place, by position and in order
        self.are_shared = per_gpu > 1
        self._ours: list[dict[Key, float]] = [{} for _ in limits.gpus]  # the attempts there, and until when if known
        self._place_from = [_LONG_AGO] * len(limits.gpus)  # from when each has a place, as far as known
        self._declared: list[dict[Key, int]] = [{} for _ in limits.gpus]
        self._closed: set[int] = set()  # GPUs whose attempt is alone there; the rest of their slots are no places
        self.lost: set[str] = set()
        first_cpu = len(limits.gpus) * per_gpu
        self._free_cpu = list(range(first_cpu, first_cpu + limits.cpu_slots))
        self._first_cpu = first_cpu

    def need(self, job: Job) -> Need:
        """How many of our GPUs a job needs, and the memory on each."""
        if not job.gpus or self._elsewhere:
            return (0, 0)
        return (job.gpus, job.mem or 0)

    @property
    def load(self) -> float:
        """The share of the GPUs that have no place."""
        return 1 - len(self.open) / len(self.gpus) if self.gpus else 0.0

    def has_cpu(self) -> bool:
        """Whether a CPU job could start."""
        return bool(self._free_cpu)

    def within_cap(self, rooms: Rooms, outlived: int) -> Rooms:
        """The rooms without GPUs that would be too many at once.

        `outlived`: how many are held by attempts that have no slots here.
        """
        held = [gpu for gpu, ours in zip(self.gpus, self._ours, strict=True) if ours]
        idle = [gpu for gpu in self.gpus if gpu in rooms and gpu not in held]
        more = max(0, self._at_once - outlived - len(held))
        return {gpu: rooms[gpu] for gpu in (*held, *idle[:more]) if gpu in rooms}

    def with_places(self, rooms: Rooms, mem: int = 0, kept: Kept = NOTHING, *, alone: bool = False) -> list[int]:
        """The GPUs, by position, that have a free place and memory, given others and what is reserved."""
        gpus = self.gpus
        if alone:  # so large a GPU will do, whatever others use
            empty = [at for at in self.open if gpus[at] in rooms and not self._ours[at] and self._totals[at] >= mem]
            return [at for at in empty if at not in kept.gpus]
        if not mem and kept is NOTHING:
            return self.open if len(rooms) == len(gpus) else [at for at in self.open if gpus[at] in rooms]
        return [at for at in self.open if gpus[at] in rooms and self._has(at, rooms[gpus[at]], mem, kept)]

    def beyond(self, kept: Kept) -> int:
        """How many GPUs have a place besides what is reserved."""
        gpus, free = kept.gpus, self._free
        return sum([at not in gpus or (len(free[at]) > 1 and not kept.alone) for at in self.open])

    def keep(self, rooms: Rooms, gpus: int, mem: int, now: float, *, alone: bool = False) -> Kept:
        """What to reserve for a job without room: GPUs that it can have at once, as early as is known.

        Of those free by then, the last to become free, so that others can use the first for longer. If it is unknown
        when enough will be free, something on each; or for a job that must be alone, only those with the fewest jobs.
        """
        free_from: Sequence[float] = self._place_from
        if mem or alone or len(rooms) < len(self.gpus):
            free_from = [self._free_from(at, rooms, mem, alone=alone) for at in range(len(self.gpus))]
        start = sorted(free_from)[gpus - 1]
        if start == _UNLIMITED or start <= now:  # or they are overdue, and may end at any moment
            kept = self._emptiest(rooms, gpus, mem) if alone else range(len(self.gpus))
            return Kept(_UNLIMITED, kept, mem, alone)
        by_then = sorted([(time, at) for at, time in enumerate(free_from) if time <= start])
        return Kept(start, {at for _, at in by_then[-gpus:]}, mem, alone)

    def _emptiest(self, rooms: Rooms, gpus: int, mem: int) -> Sequence[int]:
        """So many GPUs of this size with the fewest attempts of ours. As nothing joins these, they stay so."""
        ours = self._ours
        can_have = [at for at, gpu in enumerate(self.gpus) if self._totals[at] >= mem and (gpu in rooms or ours[at])]
        return sorted(can_have, key=lambda at: len(ours[at]))[:gpus]

    def within_reach(self, rooms: Rooms, mem: int, *, alone: bool = False) -> int:
        """How many GPUs a wide job could have if all our own jobs ended."""
        if not mem and len(rooms) == len(self.gpus):
            return len(self.gpus)
        if alone:
            return sum(
                self._totals[at] >= mem and (gpu in rooms or bool(self._ours[at])) for at, gpu in enumerate(self.gpus)
            )
        return sum(
            self._all_but_ours(rooms[gpu]) >= mem if gpu in rooms else len(self._free[at]) < self._per_gpu
            for at, gpu in enumerate(self.gpus)
        )

    def could_ever_fit(self, gpus: int, mem: int) -> bool:
        """Whether enough GPUs, and large enough ones, are left."""
        large = [at for at, gpu in enumerate(self.gpus) if gpu not in self.lost and self._totals[at] >= mem]
        return min(len(large), self._at_once) >= gpus

    def largest(self, gpus: int) -> float:
        """The most memory that each of so many GPUs has; without limit if there are not so many, or it is unknown."""
        totals = sorted([self._totals[at] for at, gpu in enumerate(self.gpus) if gpu not in self.lost], reverse=True)
        return totals[gpus - 1] if gpus <= len(totals) else _UNLIMITED

    def attempt(self, job: Job, number: int, positions: Sequence[int] = (), *, alone: bool = False) -> Attempt:
        """An attempt on as many of these GPUs as the job needs, emptiest first, or in a CPU slot.

        It names the first free slots, but takes none.
        """
        if not positions:
            return Attempt(job, number, (), (self._free_cpu[0],))
        gpus, free = self.gpus, self._free
        chosen = positions[: job.gpus]
        if self._per_gpu > 1:
            chosen = sorted(sorted(positions, key=lambda at: -len(free[at]))[: job.gpus])
        return Attempt(job, number, tuple([gpus[at] for at in chosen]), tuple([free[at][0] for at in chosen]), alone)

    def take(self, attempt: Attempt, until: float = _UNLIMITED) -> None:
        """Take exactly the slots of an attempt; each must be free. `until` is its expected end, if known."""
        job, number, gpus, slots, alone = attempt
        if not gpus:
            self._free_cpu.remove(slots[0])
            return
        key = (job.number, number)
        for slot in slots:
            at = slot // self._per_gpu
            free, ours = self._free[at], self._ours[at]
            free.remove(slot)
            ours[key] = until
            if alone:
                self._closed.add(at)
            if alone or not free:
                self.open.remove(at)
                self._place_from[at] = until if self._per_gpu == 1 else min(ours.values())
            if job.mem:
                self._declared[at][key] = job.mem

    def expect(self, attempt: Attempt, until: float) -> None:
        """Its expected end is now known better."""
        for at in {self._position(slot) for slot in attempt.slots if slot < self._first_cpu}:
            self._ours[at][attempt.key] = until
            if not self._has_place(at):
                self._place_from[at] = min(self._ours[at].values())

    def fits(self, attempt: Attempt, rooms: Rooms) -> bool:
        """Whether an attempt whose places are not taken yet still has the memory, after a closer look at its GPUs."""
        mem = attempt.job.mem
        return (
            not (attempt.gpus and mem)  # `mem` of a CPU job means nothing
            or attempt.alone
            or all(
                gpu in rooms and self._left(self._position(slot), rooms[gpu]) >= mem
                for gpu, slot in zip(attempt.gpus, attempt.slots, strict=True)
            )
        )

    def give_back(self, attempt: Attempt) -> None:
        """Free its slots."""
        key = attempt.key
        for slot in attempt.slots:
            if slot >= self._first_cpu:
                insort_right(self._free_cpu, slot)
                continue
            at = slot // self._per_gpu
            free = self._free[at]
            if not self._has_place(at):
                self._closed.discard(at)
                insort_right(self.open, at)
                self._place_from[at] = _LONG_AGO
            insort_right(free, slot)
            del self._ours[at][key]
            if attempt.job.mem:
                del self._declared[at][key]

    def lose(self, gpu: str) -> None:
        """This GPU will not be used any more."""
        self.lost.add(gpu)

    def _position(self, slot: int) -> int:
        return slot // self._per_gpu

    def _has_place(self, at: int) -> bool:
        return bool(self._free[at]) and at not in self._closed

    def _has(self, at: int, room: Room, mem: int, kept: Kept) -> bool:
        is_kept = at in kept.gpus
        if is_kept and (kept.alone or len(self._free[at]) == 1):
            return False
        needed = mem + (kept.mem if is_kept else 0)
        return not needed or self._left(at, room) >= needed

    def _free_from(self, at: int, rooms: Rooms, mem: int, *, alone: bool = False) -> float:
        """From when a GPU has a place and the memory, as far as is known."""
        ours = self._ours[at]
        if self.gpus[at] not in rooms:
            # All attempts there are ours, since others get in only after our last one has ended.
            return max(ours.values(), default=_UNLIMITED)
        if alone:
            return max(ours.values(), default=_LONG_AGO) if self._totals[at] >= mem else _UNLIMITED
        room = rooms[self.gpus[at]]
        if self._has_place(at) and (not mem or self._left(at, room) >= mem):
            return _LONG_AGO
        left = self._left(at, room)
        for until, key in sorted((until, key) for key, until in ours.items()):
            left += max(self._declared[at].get(key, 0), room.held.get(key, 0))
            if not mem or left >= mem:
                return until
        return _UNLIMITED

    def _left(self, at: int, room: Room) -> float:
        """What is free, minus what our attempts declared and do not use yet."""
        # Without a look at what is free, the total counts.
        return min(room.free, self._totals[at]) - sum(
            max(0, mem - room.held.get(key, 0)) for key, mem in self._declared[at].items()
        )

    @staticmethod
    def _all_but_ours(room: Room) -> float:
        return room.free + sum(room.held.values())
