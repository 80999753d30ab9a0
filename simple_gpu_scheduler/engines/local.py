"""This machine as an engine: leased GPUs that are looked at, and attempts as processes of a keeper.

The pool knows the GPUs, and the keeper the processes. Survivors are attempts that outlived their keeper or an earlier
scheduler of this run.
"""

import errno
import os
import select

from simple_gpu_scheduler.base.clock import SystemClock
from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import Attempt, Key, Outcome, outcome_of
from simple_gpu_scheduler.base.measurement import CpuUse, Measured, Measurement, Stillness
from simple_gpu_scheduler.base.values import TYPE_CHECKING, Any, Mapping, NamedTuple, Sequence
from simple_gpu_scheduler.events import Noticed
from simple_gpu_scheduler.gpus import LookCame
from simple_gpu_scheduler.gpus.discover import open_looks, open_pool, open_sampler
from simple_gpu_scheduler.gpus.leases import Hold, LeaseCame
from simple_gpu_scheduler.gpus.pool import Demand, Pool
from simple_gpu_scheduler.keeper import messages, survivors
from simple_gpu_scheduler.keeper.client import KeeperClient
from simple_gpu_scheduler.keeper.messages import key_of, name_of
from simple_gpu_scheduler.keeper.survivors import SurvivorExited, Traces
from simple_gpu_scheduler.scheduling.slots import Rooms
from simple_gpu_scheduler.system import processes
from simple_gpu_scheduler.system.job_environment import own, unbuffered
from simple_gpu_scheduler.system.marks import TREE, Family, mark
from simple_gpu_scheduler.system.threads import start_thread

from .protocol import Diagnosed, Ended, Exited, ForEngine, Refused, Report, Setting, Tended, Unstoppable, World

if TYPE_CHECKING:  # loaded where there is NVML
    from simple_gpu_scheduler.gpus.sampler import Sampler

_STDOUT = 1
_WITHOUT_KEEPER = "the keeper process was killed; its jobs continue, and a new keeper starts the next ones"


class _Stacks(NamedTuple):
    """What the processes of an attempt are doing."""

    key: Key
    lines: Sequence[str]


class _Outlived(NamedTuple):
    """The attempts that were left to a keeper that is gone, and the numbers of the messages that started them."""

    has_worked: bool
    started: Mapping[Key, tuple[Attempt, int]]


class LocalEngine:
    """See `Engine`."""

    queues = False
    _clock = SystemClock()

    def __init__(self, setting: Setting, pool: Pool, keeper: KeeperClient, sampler: "Sampler | None" = None) -> None:
        """Starts watching the survivors, whose ends will come to the inbox."""
        self._setting = setting
        self._pool = pool
        self._keeper = keeper
        self._sampler = sampler
        # Now, since each look into the environment or at the terminal would be one for each start.
        self._shell = os.fsencode(setting.shell)
        self._outer_tree = setting.environment.get(TREE, b"")
        self._unbuffered = unbuffered(setting.environment), unbuffered(setting.environment, [_STDOUT])
        self._left_out: frozenset[str] = frozenset()
        self._taken: dict[Key, Hold] = {}  # places of attempts that have not started yet
        self._started: dict[Key, tuple[Attempt, int]] = {}  # whose ends the keeper will tell, and their numbers
        self._untold: set[Key] = set()  # which are to end, and the keeper has not told them yet
        self._traces = Traces(setting.run_id.encode())
        self._survivors = {each.attempt.key: each.attempt for each in setting.survivors}
        pids = {each.attempt.key: each.pid for each in setting.survivors if each.status is None}
        for each in setting.survivors:
            if each.status is not None:
                self._put(SurvivorExited(each.attempt.key, each.status))
        survivors.watch(setting.journal, setting.journal_size, self._traces, pids, self._put)
        self._watch_keeper()
        if sampler:
            for attempt in self._survivors.values():
                sampler.begin(attempt, self._clock.now())

    def _put(self, message: object) -> None:
        """Send ourselves a message through the loop; also from threads, whose errors the loop raises."""
        self._setting.inbox.put(message if isinstance(message, Broken) else ForEngine(message))

    def _watch_keeper(self) -> None:
        if self._keeper.fileno() >= 0:
            self._setting.inbox.watch(self._keeper.fileno(), self._read, writes=self._keeper.has_unsent)

    def _read(self, ready: int) -> ForEngine | None:
        """The next message of the keeper; or send it more, if there is room again."""
        if not ready & ~select.POLLOUT:
            self._keeper.send_rest()
            self._watch_keeper()
            return None
        fd = self._keeper.fileno()
        letter = self._keeper.receive()
        if letter:
            return ForEngine(letter)
        self._setting.inbox.forget(fd)
        # Now, since a message that came before this one may start an attempt, for which there is a new keeper.
        started, self._started = self._started, {}
        return ForEngine(_Outlived(self._keeper.known > 0, started))

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
        hold = self._pool.take(mark(attempt, self._traces.run_id), attempt.gpus, now)
        if hold:
            self._taken[attempt.key] = hold
        return hold is not None

    def start(self, attempt: Attempt) -> None:
        """See `Engine`."""
        try:
            if self._keeper.create():  # the last one was killed
                self._watch_keeper()
            number = self._send_start(attempt, self._taken.pop(attempt.key))
        except OSError as error:
            number = 0
            self._put(messages.AttemptEnded(name_of(attempt.key), errno=error.errno or errno.EAGAIN))
        self._started[attempt.key] = attempt, number
        if self._sampler:
            self._sampler.begin(attempt, self._clock.now())

    def _send_start(self, attempt: Attempt, hold: Hold) -> int:
        job = attempt.job
        # Only where it is needed: a shell that is not POSIX may take `--` for the command.
        guard = (b"--",) if job.command[:1] in (b"-", b"+") else ()
        streams = self._setting.open_streams(attempt)
        numbers = [number for _, number in streams]
        start = messages.Start(
            name_of(attempt.key),
            (self._shell, b"-c", *guard, job.command),
            (*self._unbuffered[_STDOUT in numbers], *own(attempt, self._traces.run_id, self._outer_tree)),
            b"".join([b"%d" % number for number in numbers]),
            # Signed before it starts: a scheduler inside it will look for its mark.
            hold.sign_first(os.getpid(), messages.PID, job.number, job.name),
        )
        try:
            return self._keeper.send(start, [*(fd for fd, _ in streams), *hold.descriptors])
        finally:
            for fd in {fd for fd, _ in streams}:
                os.close(fd)

    def stop(self, attempts: Sequence[Attempt], *, force: bool) -> None:
        """See `Engine`. Survivors are told all at once, since that looks through the processes of the machine."""
        keys = [attempt.key for attempt in attempts if attempt.key in self._survivors]
        if keys:
            survivors.end(self._traces, keys, force=force)
        self._untold |= {attempt.key for attempt in attempts if attempt.key not in keys}
        for attempt in attempts:
            if attempt.key in self._started:
                self._keeper.send(messages.Stop(name_of(attempt.key), int(force)))

    def received(self, message: Any, now: float) -> Sequence[Report]:
        """See `Engine`."""
        if isinstance(message, messages.Letter):
            self._keeper.known = message.number
            message = message.message
        if isinstance(message, messages.AttemptEnded):
            return [self._ended(message, now)]
        if isinstance(message, messages.MainExited | messages.BeyondUs):
            kind = Exited if isinstance(message, messages.MainExited) else Unstoppable
            started = self._started.get(key_of(message.attempt))
            return [kind(started[0])] if started else ()  # it may have ended just before a signal was refused
        if isinstance(message, SurvivorExited):
            return [self._survivor_exited(message, now)]
        if isinstance(message, _Outlived):
            return self._outlived(message, now)
        if isinstance(message, _Stacks):
            attempt = self._survivors.get(message.key) or self._started.get(message.key, (None, 0))[0]
            return [Diagnosed(attempt, message.lines)] if attempt else ()
        if isinstance(message, messages.Obeyed):
            self._untold.discard(key_of(message.attempt))
        elif isinstance(message, LeaseCame):
            self._pool.came(message.gpu, now)
        elif isinstance(message, LookCame):
            self._pool.looked(message.gpu, message.answer, now)
        return ()

    def _ended(self, ended: messages.AttemptEnded, now: float) -> Report:
        attempt, _ = self._started.pop(key_of(ended.attempt))
        measured = self._stop_measuring(attempt, now, ended.used)
        if ended.errno:
            return _not_started(attempt, ended.errno)
        beyond_us, server = ended.beyond_us.decode(), ended.server.decode()
        outcome = outcome_of(ended.status)
        return Ended(attempt, outcome, "", ended.swept, beyond_us, server, not ended.was_told, measured)

    def _stop_measuring(self, attempt: Attempt, now: float, used: bytes = b"") -> Measured | None:
        """An attempt has ended; what it did. `used` is what the keeper told."""
        told = CpuUse()
        if used and self._setting.samples:
            by_kernel = messages.use_of(used)
            told = CpuUse(by_kernel.seconds, None, by_kernel.memory or None, by_kernel.read, by_kernel.written)
        if self._sampler:
            return self._sampler.end(attempt, now, told)
        return Measured(now, Measurement(cpu=told)) if told != CpuUse() else None

    def measured(self, key: Key) -> Measured | None:
        """See `Engine`."""
        return self._sampler.measured(key) if self._sampler else None

    def stillness(self, key: Key) -> Stillness | None:
        """See `Engine`."""
        return self._sampler.stillness(key) if self._sampler else None

    def diagnose(self, attempt: Attempt) -> None:
        """See `Engine`. It is done in a thread, since it takes seconds."""
        from simple_gpu_scheduler.system.stacks import stacks_of  # noqa: PLC0415 - few jobs stall

        def look() -> None:
            try:
                pids = survivors.find_alive(self._traces).get(attempt.key, ())
                self._put(_Stacks(attempt.key, stacks_of(pids, self._setting.environment)))
            except Exception as error:  # noqa: BLE001 - a bug, which the loop raises
                self._put(Broken(error))

        try:
            start_thread(look)
        except RuntimeError:  # no more threads can be started
            self._put(_Stacks(attempt.key, ()))

    def _outlived(self, outlived: _Outlived, now: float) -> Sequence[Report]:
        """A keeper that never worked has run nothing."""
        has_worked, started = outlived
        if not has_worked:
            for attempt, _ in started.values():
                self._stop_measuring(attempt, now)
            return [_not_started(attempt, errno.EAGAIN) for attempt, _ in started.values()]
        self._setting.inbox.put(Noticed(_WITHOUT_KEEPER, is_failure=True))
        self._survivors |= {key: attempt for key, (attempt, _) in started.items()}
        tags = {tag: key for key, (_, number) in started.items() if (tag := processes.tag_of(number))}
        self._traces = self._traces._replace(keys={**self._traces.keys, **tags})
        survivors.watch_orphans(self._traces, started, self._put)
        # Not the others: to many programs a second TERM means that there is no time left. A KILL is repeated anyway.
        self.stop([self._survivors[key] for key in started if key in self._untold], force=False)
        return ()

    def _survivor_exited(self, exited: SurvivorExited, now: float) -> Report:
        attempt = self._survivors[exited.key]
        if not exited.is_settled and survivors.sweep(self._traces, exited, self._setting.grace, self._put):
            return Exited(attempt)
        del self._survivors[exited.key]
        outcome = None if exited.status is None else outcome_of(exited.status)
        why = "" if outcome else "its exit code is unknown"
        measured = self._stop_measuring(attempt, now)
        return Ended(attempt, outcome, why, swept=exited.swept, server=exited.server, measured=measured)

    def release(self, attempt: Attempt) -> None:
        """See `Engine`. A survivor of an earlier scheduler has no lease of ours."""
        self._untold.discard(attempt.key)
        if attempt.slots:
            is_unused = self._taken.pop(attempt.key, None) is not None
            self._pool.give_back(mark(attempt, self._traces.run_id), attempt.gpus, unused=is_unused)

    def tend(self, demand: Demand, now: float) -> Tended:
        """See `Engine`."""
        self._leave_out(demand.without)
        pool = self._pool
        if pool.has_idle:
            pool.let_go(now, demand.gpus)
        has_looked = pool.look_again(now, demand)
        pool.look_beside(now)
        self._keeper.tell_what_is_recorded()
        if self._keeper.has_unsent:
            self._watch_keeper()
        remarks = pool.remarks() if pool.has_looked() else ()
        wake = pool.next_wake(now, demand)
        curves = self._sampler.pieces(now) if self._sampler else ()
        if self._sampler:
            wake = min(wake, self._sampler.next_wake)
        return Tended(wake, has_looked, remarks, curves, pool.arrived())

    def close(self) -> None:
        """See `Engine`."""
        self._pool.close()  # or a lease that it still waits for would come
        if self._sampler:
            self._sampler.close()

    def _leave_out(self, gpus: frozenset[str]) -> None:
        if gpus != self._left_out:
            self._left_out = gpus
            self._pool.leave_out(gpus)


def _not_started(attempt: Attempt, number: int) -> Refused | Ended:
    refused = processes.why_refused(number)
    if refused:
        return Refused(attempt, refused)
    reason = "it was stopped before it could start" if number == errno.ECANCELED else os.strerror(number)
    return Ended(attempt, Outcome("not started", reason=reason))


def build(setting: Setting) -> World:
    """The engine of this machine, with real time."""
    tree = setting.environment.get(TREE, b"")

    def put(message: object) -> None:
        setting.inbox.put(ForEngine(message) if isinstance(message, LeaseCame | LookCame) else message)

    family = Family(setting.run_id, tree)
    looks = open_looks(setting.machine, setting.wants, family, put) if setting.samples else None
    pool = open_pool(setting.machine, setting.wants, put, family, tree, looks)
    sampler = open_sampler(setting.machine, looks, family, put)
    engine = LocalEngine(setting, pool, setting.keeper or KeeperClient(), sampler)
    return World(engine, setting.inbox, SystemClock(), setting.read_more)
