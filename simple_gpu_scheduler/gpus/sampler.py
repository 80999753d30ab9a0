"""Takes samples while attempts run: of their GPUs once a second, and of their processes every ten seconds.

The loop's thread, which owns this, says who begins and ends, and takes what was sampled. It never waits for the driver:
other threads ask, and one that hangs is replaced. Nothing is asked while nothing runs. What is made of samples is in
`measurements`.
"""

import time

from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.jobs import Attempt, Key
from simple_gpu_scheduler.base.measurement import CpuUse, Measured, Measurement, Stillness
from simple_gpu_scheduler.base.stdlib import Lock, deque
from simple_gpu_scheduler.base.values import Callable, Mapping, NamedTuple, Sequence
from simple_gpu_scheduler.measurements import GpuSample, Meters
from simple_gpu_scheduler.measurements.accounts import GpuAccounts
from simple_gpu_scheduler.measurements.cpu import CpuAccount
from simple_gpu_scheduler.measurements.stillness import together
from simple_gpu_scheduler.system.leftovers import Process, is_hidden, read_process
from simple_gpu_scheduler.system.marks import Family
from simple_gpu_scheduler.system.threads import start_thread
from simple_gpu_scheduler.system.usage import Usage, usage_by_session

from . import DEFAULT_MAX_USED, Gpu
from .beat import PAUSE, Beat
from .looks import Looks
from .nvml import Nvml

_PAUSE_OF_PROCESSES = 10.0
_MOST_OF_A_CORE = 0.0005  # for the processes: to look through those of a large machine takes long
_DRAIN = 10.0
_FRESH = 0.1
_LONGEST_READING = 2.5
_SHORT_MOMENT = 0.005  # to wait for a driver that has not answered in time before

# Whose a process is if that cannot be told: it is not visible from here, or has lost its mark.
_UNKNOWN = "unknown"


class _Sampled(NamedTuple):
    attempt: Attempt
    began: float
    cpu: CpuAccount


class Sampler:
    """For the GPUs of one run."""

    def __init__(
        self, gpus: Sequence[Gpu], nvml: Nvml, looks: Looks, family: Family, put: Callable[[Broken], object]
    ) -> None:
        self._sampled = {gpu.id: _SampledGpu(gpu, nvml, family) for gpu in gpus}
        self._accounts = {gpu.id: GpuAccounts(gpu.id) for gpu in gpus}
        self._looks = looks
        self._family = family
        self._put = put
        self._new: dict[Key, tuple[Attempt, float]] = {}  # for which no account was opened yet: most end before that
        self._running: dict[Key, _Sampled] = {}
        self._drain_at = float("inf")
        self._beat = Beat(self._sample_all, self._has_work, put)
        # Shared with its thread.
        self._present: dict[str, int] = {}  # how many attempts are on a GPU
        self._watched: set[str] = set()
        self._used: deque[tuple[float, Mapping[Key, Usage]]] = deque()
        self._owners: dict[tuple[int, int], Key] = {}  # of the leaders of sessions
        self._processes_due = 0.0
        self._is_slow = False  # whether the driver was waited for in vain

    def begin(self, attempt: Attempt, now: float) -> None:
        """An attempt runs from now on."""
        if not self._has_work():
            self._processes_due = now + _PAUSE_OF_PROCESSES
            self._watched = set()  # its thread rests, perhaps since an attempt ended while it sampled
        self._new[attempt.key] = attempt, now
        self._drain_at = min(self._drain_at, now + _DRAIN)
        for gpu in attempt.gpus:
            if gpu in self._accounts:
                self._present[gpu] = self._present.get(gpu, 0) + 1
                if gpu not in self._watched:
                    self._watched.add(gpu)
                    self._sample(gpu)
        self._beat.wake()

    def end(self, attempt: Attempt, now: float, told: CpuUse) -> Measured | None:
        """It has ended; None if that was at once. `told` is what the kernel says that it used."""
        gpus = [gpu for gpu in attempt.gpus if gpu in self._accounts]
        began = self._began(attempt.key)
        if began is None:
            return None
        for gpu in gpus:
            self._present[gpu] -= 1
        if now - began < PAUSE:  # nothing is told of it
            self._forget(attempt.key, gpus)
            return None
        self._open_accounts()
        for gpu in gpus:
            self._accounts[gpu].end(attempt.key, now)
        self._last_samples(gpus, now)
        closed = [each for gpu in gpus if (each := self._accounts[gpu].close(attempt.key))]
        self._take_in_processes()
        running = self._running.pop(attempt.key)
        used, curves = [use for use, _ in closed], [curve for _, curve in closed]
        curves.append(running.cpu.curve)
        return Measured(running.began, Measurement(tuple(used), running.cpu.use(told)), curves)

    def _has_work(self) -> bool:
        return bool(self._new or self._running)

    def _began(self, key: Key) -> float | None:
        if key in self._new:
            return self._new[key][1]
        return self._running[key].began if key in self._running else None

    def _forget(self, key: Key, gpus: Sequence[str]) -> None:
        if not self._new.pop(key, None):
            del self._running[key]
            for gpu in gpus:
                self._accounts[gpu].close(key)

    def _open_accounts(self) -> None:
        """Before samples are taken in. To open one costs more than all else that an attempt costs here."""
        for key, (attempt, began) in self._new.items():
            self._running[key] = _Sampled(attempt, began, CpuAccount(began))
            for gpu in attempt.gpus:
                if gpu in self._accounts:
                    self._accounts[gpu].begin(key, began)
        self._new.clear()

    def _last_samples(self, gpus: Sequence[str], now: float) -> None:
        """One more, for what is counted up: energy and traffic."""
        answers = []
        for gpu in gpus:
            self._take_in(gpu)
            last = self._accounts[gpu].last
            if last is None or now - last.at > _FRESH:
                answered = self._sample(gpu)
                answers += [answered] if answered else []
        if answers:
            moment = time.monotonic() + (_SHORT_MOMENT if self._is_slow else self._looks.moment)
            came = [answered.acquire(timeout=max(0.0, moment - time.monotonic())) for answered in answers]
            self._is_slow = not all(came)
        for gpu in gpus:
            self._take_in(gpu)

    def measured(self, key: Key) -> Measured | None:
        """What an attempt has done so far, without its curves."""
        self._open_accounts()
        running = self._running.get(key)
        if running is None:
            return None
        self._take_in_processes()
        used = [use for each in self._accounts_of(running.attempt) if (use := each.use(key))]
        return Measured(running.began, Measurement(tuple(used), running.cpu.use()), ())

    def stillness(self, key: Key) -> Stillness | None:
        """Since when an attempt has been doing nothing new; None if that is not known."""
        self._open_accounts()
        running = self._running.get(key)
        if running is None:
            return None
        if not running.attempt.gpus:
            self._take_in_processes()
            return running.cpu.stillness
        return together([each.stillness(key) for each in self._accounts_of(running.attempt)])

    def pieces(self, now: float) -> list[tuple[Attempt, Measured]]:
        """The pieces of curves that are to be written now."""
        if now < self._drain_at:
            return []
        self._beat.check(now)
        self._open_accounts()
        self._drain_at = now + _DRAIN if self._running else float("inf")
        self._take_in_processes()
        found = []
        for gpu, accounts in self._accounts.items():
            self._take_in(gpu)
            for key, curve in accounts.pieces(now):
                running = self._running[key]
                found.append((running.attempt, Measured(running.began, Measurement(), (curve,))))
        return found

    @property
    def next_wake(self) -> float:
        """When to ask for pieces; and so for how long others may wait when a call hangs."""
        return self._drain_at

    def close(self) -> None:
        """Nothing runs any more."""
        self._beat.close()
        self._looks.close()

    def _accounts_of(self, attempt: Attempt) -> list[GpuAccounts]:
        """Those of its GPUs, with all that was read."""
        gpus = [gpu for gpu in attempt.gpus if gpu in self._accounts]
        for gpu in gpus:
            self._take_in(gpu)
        return [self._accounts[gpu] for gpu in gpus]

    def _take_in(self, gpu: str) -> None:
        samples = self._sampled[gpu].samples
        while samples:
            self._accounts[gpu].feed(samples.popleft())

    def _take_in_processes(self) -> None:
        while self._used:
            at, usage = self._used.popleft()
            for key, used in usage.items():
                if key in self._running:
                    cores = None if used.cores == float("inf") else used.cores
                    seen = CpuUse(used.seconds, cores, used.memory, used.read, used.written)
                    self._running[key].cpu.feed(at, seen)

    def _sample(self, gpu: str) -> "Lock | None":
        """Let a thread read the meters of a GPU, unless that is being done; what is free once it is.

        It is none of those that look at GPUs: a meter that hangs would take its GPU from the run, and hold up the end.
        """
        meter = self._sampled[gpu]
        if not meter.is_free.acquire(blocking=False):
            return None
        answered = Lock()
        answered.acquire()
        is_shared = self._is_shared(gpu)

        def ask() -> None:
            try:
                meter.read(is_shared=is_shared)
            except Exception as error:  # noqa: BLE001 - a bug, which the loop raises
                self._put(Broken(error))
            finally:
                meter.is_free.release()
                answered.release()

        try:
            start_thread(ask)
        except RuntimeError:  # no more threads can be started
            meter.is_free.release()
            return None
        return answered

    def _is_shared(self, gpu: str) -> bool:
        return self._present.get(gpu, 0) > 1

    def _sample_all(self, is_wanted: Callable[[], bool]) -> None:
        """In one thread, since to wake one for each GPU would cost more than the samples."""
        self._watched = {gpu for gpu in self._accounts if self._present.get(gpu)}
        for gpu in tuple(self._watched):
            meter = self._sampled[gpu]
            if meter.is_free.acquire(blocking=False):
                try:
                    meter.read(is_shared=self._is_shared(gpu))
                finally:
                    meter.is_free.release()
                if not is_wanted():
                    return
        began = time.monotonic()
        if self._has_work() and began >= self._processes_due:
            owners: dict[tuple[int, int], Key] = {}
            self._used.append((began, usage_by_session(lambda leader: self._owner(leader, owners))))
            self._owners = owners
            took = time.monotonic() - began
            self._processes_due = began + max(_PAUSE_OF_PROCESSES, took / _MOST_OF_A_CORE)

    def _owner(self, leader: Process, owners: dict[tuple[int, int], Key]) -> Key | None:
        """Whose it is; that it is nobody's is asked each time, since it may not have its mark yet."""
        key = self._owners.get(leader.identity) or self._family.attempt_of(leader.pid)
        if key:
            owners[leader.identity] = key
        return key


class _SampledGpu:
    """Of one GPU. Its thread reads it; what was read is for the loop's thread."""

    def __init__(self, gpu: Gpu, nvml: Nvml, family: Family) -> None:
        self.samples: deque[GpuSample] = deque()
        self.is_free = Lock()  # unless it is being read
        self._gpu = gpu
        self._nvml = nvml
        self._family = family
        self._known: dict[int, Key | str | None] = {}  # by pid, as long as it stays in the list

    def read(self, *, is_shared: bool) -> None:
        """Take a sample. Shares of processes are asked for only if several attempts `is_shared` the GPU."""
        at = time.monotonic()
        meters = self._nvml.meters(self._gpu, errors=True, by_process=is_shared, limits=False)
        if meters is None or time.monotonic() > at + _LONGEST_READING:  # nobody knows of which moment it tells
            return
        processes = dict(meters.processes or ())
        self._known = {pid: self._known.get(pid) or self._whose(pid) for pid in {*processes, *(meters.busy or ())}}
        self.samples.append(GpuSample(at, meters, self._held(meters, processes), self._shares(meters)))

    def _whose(self, pid: int) -> Key | str | None:
        """The attempt of a process; None if it is somebody else's."""
        key = self._family.attempt_of(pid)
        if key is None and (self._family.includes(pid) or (read_process(pid) is None and not is_hidden(pid))):
            return _UNKNOWN
        return key

    def _held(self, meters: Meters, processes: Mapping[int, int | None]) -> Mapping[Key, int] | None:
        is_told = processes or (meters.used or 0) <= DEFAULT_MAX_USED  # a container may show none of them
        if meters.processes is None or not is_told or _UNKNOWN in [self._known[pid] for pid in processes]:
            return None
        held: dict[Key, int] = {}
        for pid, memory in processes.items():
            key = self._known[pid]
            if isinstance(key, tuple):
                if memory is None:
                    return None
                held[key] = held.get(key, 0) + memory
        return held

    def _shares(self, meters: Meters) -> Mapping[Key, float] | None:
        if meters.busy is None:
            return None
        shares: dict[Key, float] = {}
        for pid, share in meters.busy.items():
            key = self._known[pid]
            if isinstance(key, tuple):
                shares[key] = shares.get(key, 0.0) + share
        return shares
