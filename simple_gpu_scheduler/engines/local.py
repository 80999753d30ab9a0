"""This machine as an engine: leased GPUs that are looked at, and attempts as processes.

The pool knows the GPUs, and the children the processes. Survivors are attempts that an earlier scheduler of this run
started: they hold their own leases and are not children of this process.
"""

from collections.abc import Callable, Sequence

from simple_gpu_scheduler.base.clock import SystemClock
from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import Attempt, Key, outcome_of
from simple_gpu_scheduler.base.values import Any
from simple_gpu_scheduler.gpus import LookCame
from simple_gpu_scheduler.gpus.discover import open_pool
from simple_gpu_scheduler.gpus.leases import Hold, LeaseCame
from simple_gpu_scheduler.gpus.pool import Demand, Pool
from simple_gpu_scheduler.keeper import survivors
from simple_gpu_scheduler.keeper.survivors import SurvivorExited
from simple_gpu_scheduler.scheduling.slots import Rooms
from simple_gpu_scheduler.system.marks import TREE, Family, mark

from .children import ChildExited, Children
from .protocol import Ended, Exited, ForEngine, Refused, Report, Setting, Stopped, Tended, World


class LocalEngine:
    """See `Engine`."""

    queues = False

    def __init__(self, setting: Setting, pool: Pool, children: Children, put: Callable[[object], None]) -> None:
        """Starts watching the survivors, whose ends it will `put` on the inbox."""
        self._run_id = setting.run_id.encode()
        self._grace = setting.grace
        self._put = put
        self._pool = pool
        self._children = children
        self._left_out: frozenset[str] = frozenset()
        self._taken: dict[Key, Hold] = {}  # places of attempts that have not started yet
        self._left_something: set[Key] = set()  # attempts whose leftovers are being ended
        self._survivors = {each.attempt.key: each.attempt for each in setting.survivors}
        pids = {each.attempt.key: each.pid for each in setting.survivors if each.status is None}
        for each in setting.survivors:
            if each.status is not None:
                put(SurvivorExited(each.attempt.key, each.status))
        survivors.watch(setting.journal, setting.journal_size, self._run_id, pids, put)

    def rooms(self, without: frozenset[str]) -> Rooms:
        """See `Engine`."""
        self._leave_out(without)
        return self._pool.rooms()

    def waits(self, demand: Demand) -> list[Wait]:
        """See `Engine`. A GPU that a survivor has is in use by this run itself."""
        self._leave_out(demand.without)
        ours = {gpu for attempt in self._survivors.values() for gpu in attempt.gpus}
        return [wait for wait in self._pool.waits(demand) if wait.gpu not in ours]

    def take(self, attempt: Attempt, now: float) -> bool:
        """Lease its GPUs, and look at each once more."""
        hold = self._pool.take(mark(attempt, self._run_id), attempt.gpus, now)
        if hold:
            self._taken[attempt.key] = hold
        return hold is not None

    def start(self, attempt: Attempt) -> None:
        """See `Engine`."""
        self._children.start(attempt, self._taken.pop(attempt.key))

    def stop(self, attempts: Sequence[Attempt], *, force: bool) -> Sequence[Stopped]:
        """See `Engine`. Survivors are told all at once, since that looks through the processes of the machine."""
        keys = [attempt.key for attempt in attempts if attempt.key in self._survivors]
        if keys:
            survivors.end(self._run_id, keys, force=force)
        return ["stopping" if each.key in self._survivors else self._stop(each, force=force) for each in attempts]

    def _stop(self, attempt: Attempt, *, force: bool) -> Stopped:
        has_ended = self._children.has_ended(attempt)
        if has_ended and attempt.key not in self._left_something:
            return "ended"  # the loop does not know yet, so it cannot mean what may be left
        may = self._children.stop(attempt, force=force)
        return "ended" if has_ended else "stopping" if may else "not allowed"

    def received(self, message: Any, now: float) -> Sequence[Report]:
        """See `Engine`."""
        if isinstance(message, LeaseCame):
            self._pool.came(message.gpu, now)
            return ()
        if isinstance(message, LookCame):
            self._pool.looked(message.gpu, message.answer, now)
            return ()
        if isinstance(message, SurvivorExited):
            return [self._survivor_exited(message)]
        exited: ChildExited = message
        if not self._children.settle(exited):
            self._left_something.add(exited.attempt.key)
            return [Exited(exited.attempt)]
        self._left_something.discard(exited.attempt.key)
        if exited.is_refused:
            return [Refused(exited.attempt, exited.outcome.reason)]
        return [Ended(exited.attempt, exited.outcome, "", exited.swept, exited.beyond_us, exited.server)]

    def _survivor_exited(self, exited: SurvivorExited) -> Report:
        attempt = self._survivors[exited.key]
        if not exited.is_settled and survivors.sweep(self._run_id, exited, self._grace, self._put):
            return Exited(attempt)
        del self._survivors[exited.key]
        if exited.status is None:
            return Ended(attempt, None, "its exit code is unknown", swept=exited.swept, server=exited.server)
        return Ended(attempt, outcome_of(exited.status), swept=exited.swept, server=exited.server)

    def release(self, attempt: Attempt) -> None:
        """See `Engine`. A survivor has no lease of ours."""
        if attempt.slots:
            is_unused = self._taken.pop(attempt.key, None) is not None
            self._pool.give_back(mark(attempt, self._run_id), attempt.gpus, unused=is_unused)

    def tend(self, demand: Demand, now: float) -> Tended:
        """See `Engine`."""
        self._leave_out(demand.without)
        pool = self._pool
        if pool.has_idle:
            pool.let_go(now, demand.gpus)
        has_looked = pool.look_again(now, demand)
        pool.look_beside(now)
        self._children.recorded()
        remarks = pool.remarks() if pool.has_looked() else ()
        return Tended(pool.next_wake(now, demand), has_looked, remarks, pool.arrived())

    def close(self) -> None:
        """See `Engine`."""
        self._children.close()
        self._pool.close()  # or a lease that it still waits for would come

    def _leave_out(self, gpus: frozenset[str]) -> None:
        if gpus != self._left_out:
            self._left_out = gpus
            self._pool.leave_out(gpus)


def build(setting: Setting) -> World:
    """The engine of this machine, with real time."""

    def put(message: object) -> None:
        is_ours = isinstance(message, LeaseCame | LookCame | ChildExited | SurvivorExited)
        setting.inbox.put(ForEngine(message) if is_ours else message)

    tree = setting.environment.get(TREE, b"")
    pool = open_pool(setting.machine, setting.wants, put, Family(setting.run_id, tree), tree)
    return World(
        LocalEngine(setting, pool, Children(setting, put), put), setting.inbox, SystemClock(), setting.read_more
    )
