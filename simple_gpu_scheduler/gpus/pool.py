"""The GPUs of a run, and which of them it may use now: those that the probe sees free, and that are leased.

It takes leases for attempts and gives them back, goes in line where another scheduler is before us, and looks again at
GPUs that others use. It knows nothing of jobs' order, of how a lease works or of how a GPU is looked at.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.units import show_size
from simple_gpu_scheduler.gpus.leases import Hold, Lease, LeaseError
from simple_gpu_scheduler.scheduling.slots import Room

from . import Gpu, Look, Probe

# A GPU that others use is looked at again after these, from the one to the other and doubling.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 4.0
# How long a lease is kept with nothing on it, for a job that needs several and waits for the next.
_PATIENCE = 2.0
_NEVER = float("inf")


# What is told of the memory of a GPU that nobody has looked at yet.
_UNKNOWN = Room()


class Demand(NamedTuple):
    """What waits for GPUs: how many the widest job needs, the most memory a job needs, which to leave."""

    gpus: int = 0  # 0 when nothing waits for any
    memory: int = 0  # in bytes; 0 when no job says what it needs
    without: frozenset[str] = frozenset()  # GPUs that are set aside


class GpuState:
    """One GPU of a run: leased or not, looked at, waited for, and why it is not free."""

    def __init__(self, gpu: Gpu, lease: Lease) -> None:
        self.gpu = gpu
        self.lease = lease
        self.look = Look()
        self.room = _UNKNOWN
        self.marks: list[bytes] = []  # of our attempts on it
        self.is_held = self.in_line = self.was_free_behind_line = False
        self.is_wanted = False  # by another scheduler, so no more of ours come to share it
        self.idle_since = 0.0
        self.gone = False
        self.unleasable = ""  # what ails its lease files

    @property
    def may_be_used(self) -> bool:
        """For all that is known."""
        return not (self.in_line or self.is_wanted or self.unleasable or self.look.reason or self.gone)

    def wait(self, demand: Demand) -> Wait | None:
        """Why it is not free, where that is not our own doing."""
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
        self._idle: set[GpuState] = set()  # what is leased with nothing of ours on it
        self._has_looked = False
        self._are_all_usable = True
        self._probe = probe
        self._pause = _FIRST_PAUSE
        self._look_at = _NEVER

    def rooms(self) -> dict[str, Room]:
        """The GPUs that may be used, as far as is known; `take` tells for sure."""
        rooms = {id_: place.room for id_, place in self._places.items() if place.may_be_used}
        self._are_all_usable = len(rooms) == len(self._places)
        return rooms

    def take(self, mark: bytes, gpus: Sequence[str], now: float) -> Hold | None:
        """Lease these GPUs, all or none, and look at each once more; None when somebody was there first."""
        places = [self._places[id_] for id_ in gpus]
        if len(places) > 1:
            places.sort(key=self._in_order.index)
        for place in places:  # all of them, so that it is known for whom the rest is waited
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
        """An attempt is over, or did not come to use them; a GPU with no other of ours on it is anybody's."""
        for place in (self._places[id_] for id_ in gpus):
            place.marks.remove(mark)
            if not unused:
                place.room = _UNKNOWN  # it is old by now, and `take` looks again
            if not place.marks:
                self._release(place)
            else:  # the process that is written down may be the one that is over
                place.lease.sign(place.marks, os.getpid())

    @property
    def in_use(self) -> int:
        """How many are not set aside."""
        return sum(not place.gone for place in self._in_order)

    @property
    def has_idle(self) -> bool:
        """Whether something is leased with nothing of ours on it."""
        return bool(self._idle)

    def let_go(self, now: float, width: int) -> None:
        """Give back what came and is not used, but for a while keep some of it for a job that needs `width` GPUs.

        Only with no earlier one in the common order still to come: two that wait for each other would wait for ever.
        """
        may_keep = width > 1
        for place in self._in_order:
            is_kept = may_keep and place.may_be_used and now < place.idle_since + _PATIENCE
            if place in self._idle and not is_kept:
                self._release(place)
            may_keep = may_keep and not place.in_line

    def came(self, gpu: str, now: float) -> None:
        """A lease that was waited for has come."""
        place = self._places[gpu]
        place.in_line = False
        if place.is_held:
            return
        if place.gone or not place.lease.take(past_the_line=True):  # asking who holds it may have cost us the lock
            place.lease.release()
        else:
            self._has(place, now)

    def look_again(self, now: float, *, at_all: bool) -> bool:
        """Look at what others use, or `at_all`, if it is time to; whether it was."""
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
        """When to look again, or to give back what has been kept."""
        if (self._are_all_usable and not demand.memory) or not demand.gpus:
            self._look_at = _NEVER
        elif self._look_at == _NEVER:
            self._look_soon(now)
        return min([self._look_at, *[place.idle_since + _PATIENCE for place in self._idle]])

    def waits(self, demand: Demand) -> list[Wait]:
        """Why GPUs are not free, where that is not our own doing."""
        found = [place.wait(demand) for place in self._places.values()]
        return [wait for wait in found if wait]

    def has_looked(self) -> bool:
        """Whether GPUs have been looked at since this was last asked, so that there may be something to say."""
        has_looked, self._has_looked = self._has_looked, False
        return has_looked

    def lost(self) -> list[tuple[str, str]]:
        """The GPUs that have been lost since this was last asked, and why; they are set aside."""
        lost = [place for place in self._places.values() if place.look.is_lost and not place.gone]
        for place in lost:
            place.gone = True
        return [(place.gpu.id, place.look.reason.sentence if place.look.reason else "") for place in lost]

    def remarks(self) -> list[str]:
        """What a person should know of how GPUs are looked at, each said once."""
        return self._probe.remarks()

    def keep_only_used(self) -> None:
        """Give up all GPUs that nothing of ours is on, and the places in line for them."""
        for place in [place for place in self._in_order if not place.marks]:
            self._in_order.remove(place)
            self._idle.discard(place)
            del self._places[place.gpu.id]
            place.lease.close()

    def close(self) -> None:
        """Give everything back, and what may still come in line."""
        for place in self._in_order:
            place.lease.close()

    def leave_out(self, gpus: Collection[str]) -> None:
        """Use these no more, and all others again."""
        for id_, place in self._places.items():
            place.gone = id_ in gpus

    def _lease(self, place: GpuState, now: float) -> bool:
        if place.is_held:
            place.is_wanted = bool(place.marks) and place.lease.is_wanted()
            return not place.is_wanted
        try:
            taken = place.lease.take()
        except LeaseError as error:  # somebody put something else in their place
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
        """Who was first in line may have been stopped, and then the GPU is free and nobody gets it."""
        is_free = self._pause >= 1 and place.lease.take(past_the_line=True)
        if is_free and place.was_free_behind_line:
            place.in_line = False
            self._has(place, now)
        elif is_free:
            place.lease.release()
        place.was_free_behind_line = is_free and place.in_line
