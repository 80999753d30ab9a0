"""Which waiting job starts next, and where: the first in the order that fits and delays no wide one.

Choosing changes nothing: asked again, it gives the same answer until something happens. Pure.
"""

from simple_gpu_scheduler.base.jobs import Attempt
from simple_gpu_scheduler.base.values import NamedTuple
from simple_gpu_scheduler.scheduling.policies import WaitingJob

from .queues import Gap, Lineup
from .slots import NOTHING, Rooms, Slots


class Front(NamedTuple):
    """The first job in the order that has no room, with the time and rooms for which that holds."""

    waiting: WaitingJob
    now: float
    rooms: Rooms


class Choice(NamedTuple):
    """The attempt to start next. `before` is the job without room that it starts ahead of, if any."""

    waiting: WaitingJob
    attempt: Attempt
    before: Front | None = None


def choose(lineup: Lineup, slots: Slots, rooms: Rooms, now: float, front: Front | None = None) -> Choice | None:
    """The first job in the order that fits; None when none does.

    GPUs are reserved for the first job that does not fit, so that later jobs cannot starve it; but not if others use so
    much that it could not start even if all our own jobs ended. `front` is that job, if it was found before and only
    starts have happened since.
    """
    has_cpu = lineup.cpu_jobs > 0 and slots.has_cpu()
    if not (slots.open or has_cpu):
        return None
    if front and front.now == now and front.rooms is rooms:
        return _choose_passing(front, lineup, slots)
    for waiting in lineup.in_order(now, (slots.load, len(lineup))):
        gpus, mem, _, _, alone = waiting.kind
        if not gpus:
            if has_cpu:
                return Choice(waiting, slots.attempt(waiting.job, waiting.attempt))
            continue
        positions = slots.with_places(rooms, mem, alone=alone)
        if len(positions) >= gpus:
            return Choice(waiting, slots.attempt(waiting.job, waiting.attempt, positions, alone=alone))
        if slots.within_reach(rooms, mem, alone=alone) >= gpus:
            return _choose_passing(Front(waiting, now, rooms), lineup, slots)
    return None


def _choose_passing(front: Front, lineup: Lineup, slots: Slots) -> Choice | None:
    """The first job that may start ahead: it is known to end before the first can start, or needs none of its GPUs."""
    wide, now, rooms = front
    kept = slots.keep(rooms, wide.kind[0], wide.kind[1], now, alone=wide.kind[4])
    gap = Gap(len(slots.open), kept.start - now if kept.is_known else -1.0, slots.beyond(kept), slots.has_cpu())
    for waiting in lineup.passing(gap, now, (slots.load, len(lineup))):
        gpus, mem, _, _, alone = waiting.kind
        if not gpus:
            return Choice(waiting, slots.attempt(waiting.job, waiting.attempt), front)
        positions = slots.with_places(rooms, mem, NOTHING if waiting.estimate <= gap.seconds else kept, alone=alone)
        if len(positions) >= gpus:
            return Choice(waiting, slots.attempt(waiting.job, waiting.attempt, positions, alone=alone), front)
    return None
