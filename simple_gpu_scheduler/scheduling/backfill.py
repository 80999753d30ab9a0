"""Which waiting job starts next, and on which GPUs: the first in the order that fits and delays no wide one. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from simple_gpu_scheduler.scheduling.policies import Waiting

from .queues import Gap, Lineup
from .slots import NOTHING, Rooms, Slots


class Choice(NamedTuple):
    """Who starts, on which GPUs by position, and whom of those that wait for more GPUs it goes before."""

    waiting: Waiting
    positions: Sequence[int]
    before: Waiting | None = None

    @property
    def passes(self) -> bool:
        """Whether it takes GPUs that come before somebody else's turn."""
        return self.before is not None and self.waiting.kind[0] > 0


def choose(lineup: Lineup, slots: Slots, rooms: Rooms, now: float, wide: Waiting | None = None) -> Choice | None:
    """The first job in the order that fits; None when none does.

    The first that does not fit keeps its place: GPUs are kept for it, so that those behind cannot starve it. But not
    when others occupy so much that it could not start even if all our own jobs ended. `wide` is who that was when it
    was asked last, and nothing but a start has happened since.
    """
    has_cpu = lineup.cpu_jobs > 0 and slots.has_cpu()
    if not (slots.open or has_cpu):
        return None
    if wide:
        return _choose_passing(wide, lineup, slots, rooms, now)
    for waiting in lineup.in_order(now, (slots.load, len(lineup))):
        gpus, mem, _, _ = waiting.kind
        if not gpus:
            if has_cpu:
                return Choice(waiting, ())
            continue
        positions = slots.with_places(rooms, mem)
        if len(positions) >= gpus:
            return Choice(waiting, positions)
        if slots.within_reach(rooms, mem) >= gpus:
            return _choose_passing(waiting, lineup, slots, rooms, now)
    return None


def _choose_passing(wide: Waiting, lineup: Lineup, slots: Slots, rooms: Rooms, now: float) -> Choice | None:
    """Who may pass one that waits for GPUs: who is known to have ended by then, or needs none of those kept for it."""
    kept = slots.keep(rooms, wide.kind[0], wide.kind[1], now)
    gap = Gap(len(slots.open), kept.start - now if kept.is_known else -1.0, slots.beyond(kept), slots.has_cpu())
    for waiting in lineup.passing(gap, now, (slots.load, len(lineup))):
        gpus, mem, _, _ = waiting.kind
        if not gpus:
            return Choice(waiting, (), wide)
        positions = slots.with_places(rooms, mem, NOTHING if waiting.time <= gap.seconds else kept)
        if len(positions) >= gpus:
            return Choice(waiting, positions, wide)
    return None
