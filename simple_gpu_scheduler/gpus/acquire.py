"""Waiting for GPUs without a queue of jobs, as the `run` command and `lease()` do.

It does not know what the GPUs are for.
"""

from simple_gpu_scheduler.base.clock import Clock
from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.gpu_waits import Wait, Waiting
from simple_gpu_scheduler.base.stdlib import Empty
from simple_gpu_scheduler.base.values import Callable, NamedTuple, Protocol, Sequence
from simple_gpu_scheduler.gpus.leases import Hold, LeaseCame
from simple_gpu_scheduler.system.signals import Signalled

from . import SILENCE, LookCame
from .pool import Demand, Pool

_LONGEST_WAIT = 86_400.0


class LeaseInbox(Protocol):
    """Where leases, late looks and signals arrive."""

    def get(self, *, timeout: float | None = None) -> LeaseCame | LookCame | Broken | Signalled:
        """The next message; `Empty` if none came in time."""


class Acquired(NamedTuple):
    """The GPUs, and what holds their leases."""

    gpus: tuple[str, ...]
    hold: Hold


def acquire(
    count: int,
    pool: Pool,
    mark: bytes,
    inbox: LeaseInbox,
    clock: Clock,
    until: float,
    say: Callable[[Sequence[Wait]], object],
    remark: Callable[[str], object],
) -> Acquired | Signalled | None:
    """The requested number of GPUs; None if too few were free by the deadline; or the signal that ended the wait."""
    pool.check_cap(count)
    demand, waiting = Demand(count), Waiting()
    began = clock.now()
    while True:
        now = clock.now()
        acquired = _take(count, pool, mark, now)
        for sentence in pool.remarks():
            remark(sentence)
        if acquired:
            pool.keep_only_used()
            return acquired
        # Even who does not want to wait needs an answer.
        last = began + SILENCE if until <= began and pool.is_asking else until
        if now >= last:
            pool.notice_silence(now, after=0)
            return None
        pool.let_go(now, count)
        if pool.look_again(now, demand):
            waits = waiting.say(pool.waits(demand), now)
            if waits:
                say(waits)
        wake = min(last, pool.next_wake(now, demand), now + _LONGEST_WAIT)
        try:
            message = inbox.get(timeout=max(0.0, wake - now))
        except Empty:
            continue
        if isinstance(message, Signalled):
            return message
        _receive(message, pool, clock.now())


def _receive(message: LeaseCame | LookCame | Broken, pool: Pool, now: float) -> None:
    if isinstance(message, Broken):
        raise message.error
    if isinstance(message, LookCame):
        pool.looked(message.gpu, message.answer, now)
    else:
        pool.came(message.gpu, now)


def _take(count: int, pool: Pool, mark: bytes, now: float) -> Acquired | None:
    while len(gpus := tuple(pool.rooms())[:count]) == count:
        hold = pool.take(mark, gpus, now)
        if hold:
            return Acquired(gpus, hold)
    return None
