"""The GPUs of a run, and which of them it may use now: those that the probe finds free and that can be leased.

It takes and returns leases for attempts, waits in line if another scheduler has the lease, and looks again at GPUs
that others use. A look may be answered later: until then, nothing more starts on that GPU. It knows nothing of the
order of jobs, how a lease works, or how to look at a GPU.
"""

import os

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import GpuCap
from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.units import show_size
from simple_gpu_scheduler.base.values import Callable, Collection, Iterable, NamedTuple, Sequence
from simple_gpu_scheduler.gpus.leases import Hold, Lease, LeaseError, LeaseFileError
from simple_gpu_scheduler.scheduling.slots import Room

from . import SILENCE, Answer, Gpu, Look, Neighbour, Probe, Reason, silence
from .vacancy import AT_REST, NOBODY, observe

# Seconds between looks at a GPU that others use: from the first to the second, doubling each time.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 4.0
# The same for a GPU that others have just left.
_PAUSE_AT_REST = 1.0
# The same for a GPU on which others may arrive: one of ours, or a free one that a waiting job does not start on yet.
_PAUSE_BESIDE = 5.0
# How long an idle lease is kept for a job that needs several and waits for the next; so long does a late answer count.
_PATIENCE = 2.0
_NEVER = float("inf")


# The free memory assumed for a GPU that has not been looked at yet.
_UNKNOWN = Room()


class Demand(NamedTuple):
    """What the waiting jobs need: GPUs for the widest job, the most memory for a job; and which GPUs not to use."""

    gpus: int = 0  # 0 if no job waits for any
    memory: int = 0  # in bytes; 0 if no job says what it needs
    without: frozenset[str] = frozenset()  # GPUs that are set aside


class Question(NamedTuple):
    """A look that has not been answered yet, and what was so when it was asked for.

    `shared`: attempts of ours were on the GPU. `leased`: it has been ours since. `beside`: only newcomers matter.
    """

    at: float
    shared: bool
    leased: bool
    beside: bool


class GpuState:
    """One GPU of a run: its lease, the last look at it, and why it is not free."""

    def __init__(self, gpu: Gpu, lease: Lease) -> None:
        self.gpu = gpu
        self.lease = lease
        self.look = Look()
        self.vacancy = NOBODY
        self.looked_at = -_NEVER
        self.question: Question | None = None
        self.silent_for = 0.0  # seconds; counted from the deadline on
        self.looked_until = -_NEVER  # until when a late answer about our leased GPU counts as a look
        self.met: set[str] = set()  # users who came while attempts of ours were on it
        self.room = _UNKNOWN
        self.marks: list[bytes] = []  # how many of our attempts are on it
        self.is_held = self.in_line = self.was_free_behind_line = False
        self.is_wanted = False  # by another scheduler, so no more of our attempts may join
        self.is_anothers = False  # another scheduler was seen to have its lease; we do not stand in line
        self.idle_since = 0.0
        self.gone = False  # it is set aside
        self.unleasable = ""  # what is wrong with its lease files

    @property
    def may_be_used(self) -> bool:
        """As far as is known."""
        is_closed = self.in_line or self.is_wanted or self.unleasable or self.gone
        return not (is_closed or self.look.reason or self.question)

    @property
    def is_at_rest(self) -> bool:
        """Whether it is looked at only because others left it a moment ago."""
        is_at_rest = self.look.reason and self.look.reason.cause == AT_REST
        return bool(is_at_rest and not (self.gone or self.in_line or self.unleasable))

    @property
    def is_unused(self) -> bool:
        """Whether nobody is known to use it, we included; it may be long ago that it was looked at."""
        return self.may_be_used and not self.is_held

    @property
    def idle_until(self) -> float:
        """How long it may stay leased without an attempt: until the answer about it is overdue, or for a while."""
        if self.question and self.question.leased:
            return self.question.at + SILENCE
        return self.idle_since + _PATIENCE

    def notice_silence(self, now: float, after: float = SILENCE) -> None:
        """Count the seconds without an answer, after these."""
        at = self.question.at if self.question else _NEVER
        self.silent_for = now - at if now >= at + after else 0.0

    @property
    def reason(self) -> Reason | None:
        """That of the last look, unless the driver has not answered since."""
        return Reason(silence(self.silent_for), "not answering") if self.silent_for else self.look.reason

    def wait(self, demand: Demand) -> Wait | None:
        """Why it is not free, if that is not because of us."""
        gpu, reason = self.gpu.id, self.reason
        holder = self.lease.holder() if self.in_line or (self.is_anothers and not self.is_held) else None
        if self.gone:
            return None
        if holder:
            return Wait(gpu, holder.sentence, f"leased by {holder.name}")
        if self.unleasable:
            return Wait(gpu, self.unleasable, "lease files")
        if reason:
            return Wait(gpu, reason.sentence, reason.cause, reason.is_mine)
        if self.may_be_used and self.room.free + sum(self.room.held.values()) < demand.memory:
            needs = f"{show_size(self.room.free)} free, and a job needs {show_size(demand.memory)}"
            return Wait(gpu, needs, "memory")
        return None


class Pool:
    """Owned by one thread."""

    def __init__(
        self,
        gpus: Iterable[Gpu],
        open_lease: Callable[[Gpu], Lease],
        probe: Probe,
        cap: GpuCap | None = None,
        free_for: float = 0,
    ) -> None:
        """`free_for`: how many seconds others must have left a GPU alone, once they were seen on it."""
        self._free_for = free_for
        self._cap = cap
        self._places = {gpu.id: GpuState(gpu, open_lease(gpu)) for gpu in gpus}
        self._in_order = sorted(self._places.values(), key=_lease_name)
        self._open_lease = open_lease
        self._idle: set[GpuState] = set()  # leased GPUs without an attempt of ours
        self._has_looked = False
        self._are_all_usable = True
        self._probe = probe
        self._remarks: list[str] = []
        self._arrived: list[tuple[str, str]] = []
        self._beside_at = _NEVER
        self._pause = _FIRST_PAUSE
        self._look_at = _NEVER

    def open_leases(self) -> None:
        """Open the lease files, and leave out the GPUs whose files cannot be used; it fails if none can be."""
        for place in self._in_order:
            try:
                place.lease.open()
            except LeaseFileError as error:
                self._cannot_lease(place, str(error))
                if all(each.unleasable for each in self._in_order):
                    raise
            except LeaseError:
                self.close()
                raise

    def check_cap(self, count: int) -> None:
        """Refuse a number of GPUs that nobody may hold at once."""
        if self._cap and count > self._cap.gpus:
            raise UserError(f"{count} GPUs were requested; a run uses {self._cap}")

    def rooms(self) -> dict[str, Room]:
        """The GPUs that may be used, as far as is known; only `take` makes sure."""
        rooms = {id_: place.room for id_, place in self._places.items() if place.may_be_used}
        are_anothers = [place for place in self._places.values() if place.is_anothers]
        self._are_all_usable = len(rooms) == len(self._places) and not are_anothers
        return rooms

    def take(self, mark: bytes, gpus: Sequence[str], now: float) -> Hold | None:
        """Lease these GPUs, all or none, and look at each once more; None if another scheduler or user was faster."""
        places = [self._places[id_] for id_ in gpus]
        if len(places) > 1:
            places.sort(key=self._in_order.index)
        for place in places:  # all of them, to learn the holders of the others too
            if self._lease(place, now) and now > place.looked_until:
                self._look(place, now)
        if not all(place.is_held and place.may_be_used for place in places):
            self._look_soon(now)
            return None
        for place in places:
            place.marks.append(mark)
            place.looked_until = -_NEVER  # the next attempt needs a look of its own
            self._idle.discard(place)
        if self._probe.sees_others:
            self._beside_at = min(self._beside_at, now + _PAUSE_BESIDE)
        return Hold(tuple([(place.lease, place.marks) for place in places]))

    def give_back(self, mark: bytes, gpus: Sequence[str], *, unused: bool = False) -> None:
        """An attempt is over, or will not use them; a GPU without other attempts of ours is free for everyone."""
        for place in (self._places[id_] for id_ in gpus):
            place.marks.remove(mark)
            if not unused:
                place.room = _UNKNOWN  # outdated by now; `take` looks again
            if place.marks:  # the recorded process may be the one that has just ended
                place.lease.sign(place.marks, os.getpid())
                continue
            place.met.clear()
            if place.lease.is_wanted():
                self._release(place)
            else:  # to be let go of, unless the next attempt starts there at once
                self._forget_looks(place)
                place.idle_since = -_NEVER
                self._idle.add(place)

    @property
    def has_idle(self) -> bool:
        """Whether a GPU is leased without an attempt of ours."""
        return bool(self._idle)

    def let_go(self, now: float, width: int) -> None:
        """Give back unused leases, but for a while keep some of them for a job that needs `width` GPUs.

        Keep one only if the answer about it is still to come, or if it is one of several; and if so, only if no earlier
        GPU in the common order is missing, or two schedulers could deadlock.
        """
        may_keep = width > 0
        for place in self._in_order:
            is_kept = may_keep and (place.question or (width > 1 and place.may_be_used)) and now < place.idle_until
            if place in self._idle and not is_kept:
                self._release(place)
            may_keep = may_keep and not (width > 1 and place.in_line)

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

    def looked(self, gpu: str, answer: Answer, now: float) -> None:
        """The answer about a GPU has come late."""
        place = self._places.get(gpu)
        if place is None or place.question is None:
            return
        question, place.question, place.silent_for = place.question, None, 0.0
        if question.shared == bool(place.marks):  # otherwise it is about attempts that are over; `take` looks again
            self._answered(place, answer, now, beside=question.beside)
        if question.leased and place.is_held and not question.beside:
            place.looked_until, place.idle_since = now + _PATIENCE, now

    @property
    def is_asking(self) -> bool:
        """Whether a GPU is leased, and the answer about it still to come and not overdue."""
        return any(place.question and place.question.leased and not place.silent_for for place in self._idle)

    def notice_silence(self, now: float, after: float = SILENCE) -> None:
        """Let `waits` name the GPUs about which there was no answer for so long."""
        for place in self._places.values():
            place.notice_silence(now, after)

    def look_again(self, now: float, demand: Demand) -> bool:
        """If it is time, look at the GPUs that others use or may have come to; returns whether it was.

        If the memory matters, it looks at all.
        """
        if now < self._look_at:
            return False
        before = self._known()
        unused = self._unused(demand)
        self.notice_silence(now)
        for place in self._places.values():
            if place.in_line:
                self._look_past_line(place, now)
            elif place.unleasable:
                self._look_at_files(place, now)
            elif self._is_anothers_now(place):
                self._stand_in_line(place, now)
            elif (place.look.reason or demand.memory) and not place.gone:
                self._look(place, now)
            elif place in unused and (place.is_anothers or now >= place.looked_at + _PAUSE_BESIDE):
                self._look_from_outside(place, now)
        known = self._known()
        changed = before != known
        # Only `rooms` says that they are: whoever asks for them is to be woken once more.
        self._are_all_usable &= all(may_be_used and not is_anothers for may_be_used, is_anothers, _ in known)
        self._pause = _FIRST_PAUSE if changed else min(2 * self._pause, _LONGEST_PAUSE)
        self._look_at = min([now + self._pause, *self._ends_of_rests(now), *self._deadlines(now)])
        return True

    def look_beside(self, now: float) -> None:
        """If it is time, look who else is on a GPU of ours: at one at a time, since a look may take a while."""
        if now < self._beside_at:
            return
        ours = [place for place in self._places.values() if place.marks]
        due = min(ours, key=_last_look, default=None)
        if due and now >= due.looked_at + _PAUSE_BESIDE:
            self._look(due, now, beside=True)
        self._beside_at = min([place.looked_at + _PAUSE_BESIDE for place in ours], default=_NEVER)

    def arrived(self) -> list[tuple[str, str]]:
        """Who came to a GPU while attempts of ours were on it, since the last call: each user once, and which GPU."""
        arrived, self._arrived = self._arrived, []
        return arrived

    def next_wake(self, now: float, demand: Demand) -> float:
        """When to look again, or to give back a kept lease."""
        if not demand.gpus:
            self._look_at = _NEVER
        elif self._are_all_usable and not demand.memory:
            self._look_at = min([place.looked_at + _PAUSE_BESIDE for place in self._unused(demand)], default=_NEVER)
        elif self._look_at == _NEVER:
            self._look_soon(now)
        return min([self._look_at, self._beside_at, *[place.idle_until for place in self._idle]])

    def waits(self, demand: Demand) -> list[Wait]:
        """Why GPUs are not free, if that is not because of us."""
        found = [place.wait(demand) for place in self._places.values()]
        return [wait for wait in found if wait]

    def has_looked(self) -> bool:
        """Whether GPUs have been looked at since the last call, so that there may be news."""
        has_looked, self._has_looked = self._has_looked, False
        return has_looked

    def remarks(self) -> list[str]:
        """Remarks for the user, each once."""
        fresh, self._remarks = self._remarks, []
        return fresh + self._probe.remarks()

    def keep_only_used(self) -> None:
        """Give up all GPUs without an attempt of ours, and the places in line for them."""
        for place in [place for place in self._in_order if not place.marks]:
            self._in_order.remove(place)
            self._idle.discard(place)
            del self._places[place.gpu.id]
            place.lease.close()
        self._probe.close()

    def close(self, but: Collection[str] = ()) -> None:
        """Give back everything `but` these GPUs, and all places in line. It can be called again for the rest."""
        self._probe.close()
        for place in [place for place in self._in_order if place.gpu.id not in but]:
            with suppress(ValueError):  # the handler of a signal has just done it
                self._in_order.remove(place)
                place.lease.close()

    def leave_out(self, gpus: Collection[str]) -> None:
        """Stop using these, and use all others again."""
        for id_, place in self._places.items():
            place.gone = id_ in gpus

    def _known(self) -> list[tuple[bool, bool, bool]]:
        return [(place.may_be_used, place.is_anothers, bool(place.silent_for)) for place in self._places.values()]

    def _unused(self, demand: Demand) -> list[GpuState]:
        """The GPUs that nobody is known to use and that a wide job could have once it gets the others that it needs.

        A job that needs one GPU would have been offered them.
        """
        if demand.gpus <= 1:
            return []
        there = sum(not place.gone for place in self._places.values())
        ours = sum(bool(place.marks) for place in self._places.values())
        if demand.gpus > there or (self._cap and ours >= self._cap.gpus):
            return []
        return [place for place in self._places.values() if place.is_unused]

    def _look_from_outside(self, place: GpuState, now: float) -> None:
        """Look at a GPU without its lease, which nobody should have to wait for as long as no job of ours can start."""
        try:
            place.is_anothers = place.lease.holder() is not None
        except LeaseError as error:
            self._cannot_lease(place, str(error))
            return
        place.looked_at = now
        if not place.is_anothers:
            self._look(place, now)

    def _lease(self, place: GpuState, now: float) -> bool:
        if place.is_held:
            place.is_wanted = bool(place.marks) and place.lease.is_wanted()
            return not place.is_wanted
        try:
            taken = place.lease.take()
        except LeaseError as error:  # another user put something else in their place
            self._cannot_lease(place, str(error))
            return False
        place.unleasable, place.is_anothers = "", False
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
        self._forget_looks(place)
        self._idle.discard(place)
        place.lease.release()

    @staticmethod
    def _forget_looks(place: GpuState) -> None:
        place.looked_until = -_NEVER
        if place.question:
            place.question = place.question._replace(leased=False)

    def _look(self, place: GpuState, now: float, *, beside: bool = False) -> None:
        place.looked_at = now
        if place.question:  # one call that hangs is enough
            return
        shared = bool(place.marks)
        answer = self._probe.look(place.gpu, shared=shared)
        if answer is None:
            place.question = Question(now, shared, place.is_held, beside)
        else:
            self._answered(place, answer, now, beside=beside)

    def _answered(self, place: GpuState, answer: Answer, now: float, *, beside: bool) -> None:
        if answer.gpu.uuid != place.gpu.uuid:
            self._identify(place, answer.gpu)
        if not beside or answer.look.others or place.vacancy.after:  # else it stays free for the next attempt
            self._judge(place, answer.look, now)

    def _judge(self, place: GpuState, look: Look, now: float) -> None:
        self._has_looked = True
        if place.marks:
            newcomers = {each.user: each.who for each in look.others if each.user not in place.met}
            place.met.update(newcomers)
            self._arrived += [(place.gpu.id, who) for who in newcomers.values()]
        if look.others and not place.unleasable and self._had_the_lease(place, look.others):
            place.look = look
        else:
            place.vacancy, place.look = observe(place.vacancy, look, now, self._free_for)
        place.room = Room(look.free, look.held)

    @staticmethod
    def _had_the_lease(place: GpuState, others: Iterable[Neighbour]) -> bool:
        """Whether these belong to whoever has the lease, or had it last: one that is ending has given it back before.

        Such a process comes and goes in turn with us, and is not somebody's loop.
        """
        if not place.is_held and place.lease.holder():
            return True
        return {each.pid for each in others} == {place.lease.signed_by()}

    @staticmethod
    def _is_anothers_now(place: GpuState) -> bool:
        """Whether another scheduler leased it while we waited for somebody without a lease to go."""
        reason = place.look.reason
        is_waited_for = reason and reason.by_occupancy and not (place.gone or place.is_held)
        return bool(is_waited_for and place.lease.holder())

    def _stand_in_line(self, place: GpuState, now: float) -> None:
        """What is on it now is the other's job; and the other one has seen that it was free."""
        place.look, place.vacancy = Look(), NOBODY
        self._lease(place, now)

    def _deadlines(self, now: float) -> list[float]:
        ends = [place.question.at + SILENCE for place in self._places.values() if place.question]
        return [end for end in ends if end > now]

    def _ends_of_rests(self, now: float) -> list[float]:
        """When to look again at GPUs that others left a moment ago; in between, more often than usual."""
        ends = [
            place.vacancy.since + self._free_for
            for place in self._places.values()
            if place.is_at_rest and place.vacancy.since is not None
        ]
        return [max(now + _FIRST_PAUSE, min(end, now + _PAUSE_AT_REST)) for end in ends]

    def _identify(self, place: GpuState, found: Gpu) -> None:
        """A GPU that did not work at the start may work now: from then on it is leased by its UUID, as by everybody."""
        self._release(place)
        place.lease.close()
        place.gpu, place.lease = found, self._open_lease(found)
        try:
            place.lease.open()
        except LeaseError as error:
            self._cannot_lease(place, str(error))
        self._in_order.sort(key=_lease_name)

    def _look_soon(self, now: float) -> None:
        self._pause = _FIRST_PAUSE
        self._look_at = min(self._look_at, now + self._pause)

    def _cannot_lease(self, place: GpuState, why: str) -> None:
        self._has_looked = True
        if why != place.unleasable:
            place.unleasable = why
            self._remarks.append(f"gpu {place.gpu.id} is left out: {why}")

    def _look_at_files(self, place: GpuState, now: float) -> None:
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


def _last_look(place: GpuState) -> float:
    return place.looked_at


def _lease_name(place: GpuState) -> str:
    return place.gpu.lease_name
