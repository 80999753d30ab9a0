"""The GPUs of a run, and which of them it may use now: those that the probe finds free and that can be leased.

It takes and returns leases for attempts, waits in line if another scheduler has the lease, and looks again at GPUs
that others use. It knows nothing of the order of jobs, how a lease works, or how to look at a GPU.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.units import show_size
from simple_gpu_scheduler.gpus.leases import Hold, Lease, LeaseError
from simple_gpu_scheduler.scheduling.slots import Room

from . import Gpu, Look, Probe

# Seconds between looks at a GPU that others use: from the first to the second, doubling each time.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 4.0
# How long an idle lease is kept for a job that needs several and waits for the next.
_PATIENCE = 2.0
_NEVER = float("inf")


# The free memory assumed for a GPU that has not been looked at yet.
_UNKNOWN = Room()


class Demand(NamedTuple):
    """What the waiting jobs need: GPUs for the widest job, the most memory for a job; and which GPUs not to use."""

    gpus: int = 0  # 0 if no job waits for any
    memory: int = 0  # in bytes; 0 if no job says what it needs
    without: frozenset[str] = frozenset()  # GPUs that are set aside


class GpuState:
    """One GPU of a run: its lease, the last look at it, and why it is not free."""

    def __init__(self, gpu: Gpu, lease: Lease) -> None:
        self.gpu = gpu
        self.lease = lease
        self.look = Look()
        self.room = _UNKNOWN
        self.marks: list[bytes] = []  # how many of our attempts are on it
        self.is_held = self.in_line = self.was_free_behind_line = False
        self.is_wanted = False  # by another scheduler, so no more of our attempts may join
        self.idle_since = 0.0
        self.gone = False
        self.unleasable = ""  # what is wrong with its lease files

    @property
    def may_be_used(self) -> bool:
        """As far as is known."""
        return not (self.in_line or self.is_wanted or self.unleasable or self.look.reason or self.gone)

    def wait(self, demand: Demand) -> Wait | None:
        """Why it is not free, if that is not because of us."""
        gpu, reason = self.gpu.id, self.look.reason
        holder = self.lease.holder() if self.in_line else None
        if self.gone:
            return None
        if holder:
            return Wait(gpu, holder.sentence, f"leased by {holder.name}")
        if self.unleasable:
            return Wait(gpu, self.unleasable, "lease files")
        if reason:
            return Wait(gpu, reason.sentence, reason.cause, reason.by_occupancy)
        if self.may_be_used and self.room.free + sum(self.room.held.values()) < demand.memory:
            needs = f"{show_size(self.room.free)} free, and a job needs {show_size(demand.memory)}"
            return Wait(gpu, needs, "memory")
        return None


class Pool:
    """Owned by one thread."""

    def __init__(self, gpus: Iterable[Gpu], leases: Mapping[str, Lease], probe: Probe) -> None:
        self._places = {gpu.id: GpuState(gpu, leases[gpu.id]) for gpu in gpus}
        self._in_order = sorted(self._places.values(), key=lambda place: place.gpu.lease_name)
        self._idle: set[GpuState] = set()  # leased GPUs without an attempt of ours
        self._has_looked = False
        self._are_all_usable = True
        self._probe = probe
        self._pause = _FIRST_PAUSE
        self._look_at = _NEVER

    def rooms(self) -> dict[str, Room]:
        """The GPUs that may be used, as far as is known; only `take` makes sure."""
        rooms = {id_: place.room for id_, place in self._places.items() if place.may_be_used}
        self._are_all_usable = len(rooms) == len(self._places)
        return rooms

    def take(self, mark: bytes, gpus: Sequence[str], now: float) -> Hold | None:
        """Lease these GPUs, all or none, and look at each once more; None if another scheduler or user was faster."""
        places = [self._places[id_] for id_ in gpus]
        if len(places) > 1:
            places.sort(key=self._in_order.index)
        for place in places:  # all of them, to learn the holders of the others too
            if self._lease(place, now):
                self._look(place)
        if not all(place.is_held and place.may_be_used for place in places):
            self._look_soon(now)
            return None
        for place in places:
            place.marks.append(mark)
            self._idle.discard(place)
        return Hold(tuple([(place.lease, place.marks) for place in places]))

    def give_back(self, mark: bytes, gpus: Sequence[str], *, unused: bool = False) -> None:
        """An attempt is over, or will not use them; a GPU without other attempts of ours is free for everyone."""
        for place in (self._places[id_] for id_ in gpus):
            place.marks.remove(mark)
            if not unused:
                place.room = _UNKNOWN  # outdated by now; `take` looks again
            if not place.marks:
                self._release(place)
            else:  # the recorded process may be the one that has just ended
                place.lease.sign(place.marks, os.getpid())

    @property
    def in_use(self) -> int:
        """How many GPUs are not set aside."""
        return sum(not place.gone for place in self._in_order)

    @property
    def has_idle(self) -> bool:
        """Whether a GPU is leased without an attempt of ours."""
        return bool(self._idle)

    def let_go(self, now: float, width: int) -> None:
        """Give back unused leases, but for a while keep some of them for a job that needs `width` GPUs.

        Keep one only if no earlier GPU in the common order is missing, or two schedulers could deadlock.
        """
        may_keep = width > 1
        for place in self._in_order:
            is_kept = may_keep and place.may_be_used and now < place.idle_since + _PATIENCE
            if place in self._idle and not is_kept:
                self._release(place)
            may_keep = may_keep and not place.in_line

    def came(self, gpu: str, now: float) -> None:
        """A lease that we waited for is ours."""
        place = self._places[gpu]
        place.in_line = False
        if place.is_held:
            return
        if place.gone or not place.lease.take(past_the_line=True):  # asking for its holder may have cost us the lock
            place.lease.release()
        else:
            self._has(place, now)

    def look_again(self, now: float, *, at_all: bool) -> bool:
        """If it is time, look at the GPUs that others use, or `at_all`; returns whether it was."""
        if now < self._look_at:
            return False
        before = [place.may_be_used for place in self._places.values()]
        for place in self._places.values():
            if place.in_line:
                self._look_past_line(place, now)
            elif place.unleasable:
                self._look_at_files(place, now)
            elif (place.look.reason or at_all) and not place.gone:
                self._look(place)
        changed = before != [place.may_be_used for place in self._places.values()]
        self._pause = _FIRST_PAUSE if changed else min(2 * self._pause, _LONGEST_PAUSE)
        self._look_at = now + self._pause
        return True

    def next_wake(self, now: float, demand: Demand) -> float:
        """When to look again, or to give back a kept lease."""
        if (self._are_all_usable and not demand.memory) or not demand.gpus:
            self._look_at = _NEVER
        elif self._look_at == _NEVER:
            self._look_soon(now)
        return min([self._look_at, *[place.idle_since + _PATIENCE for place in self._idle]])

    def waits(self, demand: Demand) -> list[Wait]:
        """Why GPUs are not free, if that is not because of us."""
        found = [place.wait(demand) for place in self._places.values()]
        return [wait for wait in found if wait]

    def has_looked(self) -> bool:
        """Whether GPUs have been looked at since the last call, so that there may be news."""
        has_looked, self._has_looked = self._has_looked, False
        return has_looked

    def lost(self) -> list[tuple[str, str]]:
        """The GPUs that have been lost since the last call, and why; they are set aside."""
        lost = [place for place in self._places.values() if place.look.is_lost and not place.gone]
        for place in lost:
            place.gone = True
        return [(place.gpu.id, place.look.reason.sentence if place.look.reason else "") for place in lost]

    def remarks(self) -> list[str]:
        """Remarks for the user, each once."""
        return self._probe.remarks()

    def keep_only_used(self) -> None:
        """Give up all GPUs without an attempt of ours, and the places in line for them."""
        for place in [place for place in self._in_order if not place.marks]:
            self._in_order.remove(place)
            self._idle.discard(place)
            del self._places[place.gpu.id]
            place.lease.close()

    def close(self) -> None:
        """Give back everything, and all places in line."""
        for place in self._in_order:
            place.lease.close()

    def leave_out(self, gpus: Collection[str]) -> None:
        """Stop using these, and use all others again."""
        for id_, place in self._places.items():
            place.gone = id_ in gpus

    def _lease(self, place: GpuState, now: float) -> bool:
        if place.is_held:
            place.is_wanted = bool(place.marks) and place.lease.is_wanted()
            return not place.is_wanted
        try:
            taken = place.lease.take()
        except LeaseError as error:  # another user put something else in their place
            place.unleasable = str(error)
            return False
        if taken:
            self._has(place, now)
        else:
            place.in_line = True
            place.lease.wait_in_line()
        return taken

    def _has(self, place: GpuState, now: float) -> None:
        place.is_held, place.idle_since = True, now
        self._idle.add(place)

    def _release(self, place: GpuState) -> None:
        place.is_held = place.is_wanted = False
        self._idle.discard(place)
        place.lease.release()

    def _look(self, place: GpuState) -> None:
        self._has_looked = True
        place.look = look = self._probe.look(place.gpu, shared=bool(place.marks))
        place.room = Room(look.free, look.held)

    def _look_soon(self, now: float) -> None:
        self._pause = _FIRST_PAUSE
        self._look_at = min(self._look_at, now + self._pause)

    def _look_at_files(self, place: GpuState, now: float) -> None:
        place.unleasable = ""
        if self._lease(place, now) and not place.marks:
            self._release(place)

    def _look_past_line(self, place: GpuState, now: float) -> None:
        """The first scheduler in line may be suspended, and then no other would get the free GPU."""
        is_free = self._pause >= 1 and place.lease.take(past_the_line=True)
        if is_free and place.was_free_behind_line:
            place.in_line = False
            self._has(place, now)
        elif is_free:
            place.lease.release()
        place.was_free_behind_line = is_free and place.in_line
