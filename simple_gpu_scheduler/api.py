"""`lease()`: GPUs for a Python program, with the same rules and leases as the command.

While a lease is held, the environment of this process names its GPUs, so that CUDA and everything the program starts
see only these. There is one environment, so the leases of a process are taken by one thread.
"""

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from simple_gpu_scheduler.base.clock import SystemClock
from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.text import show_gpus, show_waits
from simple_gpu_scheduler.base.units import parse_duration, parse_size, show_duration
from simple_gpu_scheduler.gpus import DEFAULT_FREE_FOR, SILENCE, Tolerance
from simple_gpu_scheduler.gpus.acquire import Acquired, acquire
from simple_gpu_scheduler.gpus.discover import Machine, SilentDriverError, Wants, find_machine, open_pool
from simple_gpu_scheduler.gpus.names import parse_gpus
from simple_gpu_scheduler.gpus.pool import Demand, Pool
from simple_gpu_scheduler.system.inbox import SystemInbox
from simple_gpu_scheduler.system.marks import TREE, Family
from simple_gpu_scheduler.system.users import user_id

_VISIBLE, _ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
_NEVER = float("inf")
_LONGEST_WAIT = threading.TIMEOUT_MAX
_OVERRIDE = "share_with='me'"  # for a GPU on which only the user's own processes are


class LeaseTimeout(TimeoutError):  # noqa: N818 - as TimeoutError itself; the name says enough
    """The GPUs were not free in time; the text says who is using them."""


class GpuLease:
    """GPUs that this process holds until `release()`, the end of a `with` block on this, or the end of the process.

    In a forked child, its copy holds and releases nothing.
    """

    def __init__(self, held: "_LeasedGpus") -> None:
        self._held = held

    @property
    def gpus(self) -> tuple[str, ...]:
        """What CUDA_VISIBLE_DEVICES is set to: indexes, or UUIDs."""
        return self._held.gpus

    def release(self) -> None:
        """Give the GPUs back and restore the environment. Any thread may call it, and more than once.

        In a notebook or at Python's prompt, earlier leases of these GPUs are given back too: a cell that is run again
        takes another lease within the first, and the prompt keeps what it has shown, so the first is not even dropped.
        """
        _ours.release(self._held, *_ours.typed_before(self._held))

    def __enter__(self) -> tuple[str, ...]:
        """The GPUs, which are released at the end of the block."""
        if self._held.is_released:
            raise UserError(f"the lease of {self._held} has been released; call lease() again")
        return self.gpus

    def __exit__(self, *_: object) -> None:
        """Release them, whatever happened in the block."""
        _ours.release(self._held)

    def __repr__(self) -> str:
        """`<lease of gpu 0 (train.py:4)>`."""
        return f"<{'released ' if self._held.is_released else ''}lease of {self._held}>"

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """Warn, since nothing can release them any more. The end of the process is a good end, and says nothing."""
        if not is_finalizing() and _ours.is_lost(self._held):
            warnings.warn(
                f"the lease of {self._held} was dropped without release(); the GPUs stay leased until this process "
                "ends. Keep it in a variable to release it, or use `with`",
                ResourceWarning,
                stacklevel=2,
            )


def lease(
    count: int = 1,
    *,
    timeout: float | str | None = None,
    gpus: Iterable[int | str] | int | str | None = None,
    free_memory: int | str = 0,
    free_for: float | str = DEFAULT_FREE_FOR,
    share_with: Iterable[str] | str = (),
    ignore_occupancy: bool = False,
) -> GpuLease:
    """Wait until `count` GPUs are free, and hold them until `release()`, the end of a `with` block, or of the process.

    Its `gpus`, which `with lease() as gpus:` gives too, are what CUDA_VISIBLE_DEVICES is set to meanwhile: indexes, or
    UUIDs. Call it before anything initialises CUDA, which reads that only once.

    `timeout` is how long to wait, in seconds or as "30m"; 0 does not wait, None waits for as long as it takes.
    `gpus` are those to choose among: indexes, UUIDs, "0-3"; all that this process may see, when it is left out.
    `free_memory` ("10G") must be free; processes of the users in `share_with` ("me") do not matter, and with
    `ignore_occupancy` no processes do. Once others were seen on a GPU, they must have left it alone for `free_for`
    (seconds, or "30s").

    While it waits, the logger "simple_gpu_scheduler" says why, as a warning, once for each change.

    A `LeaseTimeout` is raised when the time is over, a `UserError` when it cannot be done at all, as while another
    thread of this process has a lease. Forked workers may each call it.
    """
    _check(count)
    words = ["all"] if gpus is None else [str(gpus)] if isinstance(gpus, str | int) else [str(gpu) for gpu in gpus]
    if not any(word.strip() for word in words):
        raise ValueError("gpus is empty; leave it out to use all")
    names = parse_gpus(words)
    alone = parse_duration(free_for) if isinstance(free_for, str) else free_for
    if not alone >= 0:  # nor is nan
        raise ValueError(f"free_for={free_for!r} is not a time; use seconds or '30s'")
    tolerance = Tolerance(free_memory if isinstance(free_memory, int) else parse_size(free_memory), free_for=alone)
    tolerated = frozenset(user_id(name) for name in ([share_with] if isinstance(share_with, str) else share_with))
    wants = Wants(names, ignore_occupancy, tolerance, tolerated, example="gpus=[0, 1]")
    seconds = parse_duration(timeout) if isinstance(timeout, str) else timeout
    if seconds is not None and not seconds >= 0:  # nor is nan
        raise ValueError(f"timeout={timeout!r} is not a time to wait; use seconds or '30m'")
    caller = sys._getframe(1)  # noqa: SLF001 - for messages about this lease
    is_typed = hasattr(sys, "ps1") and caller.f_globals.get("__name__") == "__main__"
    held = _ours.begin(f"{caller.f_code.co_filename}:{caller.f_lineno}", is_typed=is_typed)
    try:
        _take(held, count, _NEVER if seconds is None else seconds, wants)
    except BaseException:  # KeyboardInterrupt too
        _ours.release(held)
        raise
    return GpuLease(held)


class _LeasedGpus:
    """What one lease holds. It outlives a `GpuLease` that was dropped."""

    def __init__(self, where: str, *, is_typed: bool) -> None:
        self.where = where
        self.is_typed = is_typed  # at a prompt or in a notebook's cell, and not in a program
        self.thread = threading.current_thread()
        self.pool: Pool | None = None
        self.gpus: tuple[str, ...] = ()  # none while it waits for them
        self.changes: Mapping[str, str] = {}
        self.is_released = False

    def __str__(self) -> str:
        return f"{show_gpus(self.gpus)} ({self.where})"


def _is_retyped(older: _LeasedGpus, newer: _LeasedGpus) -> bool:
    both_typed = older.is_typed and newer.is_typed
    return both_typed and not newer.is_released and not set(older.gpus).isdisjoint(newer.gpus)


class _Process:
    """The leases of this process, and its environment, which is that of the newest."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """A forked child holds no lease, and a thread that it lacks may have held the guard."""
        self._guard = threading.RLock()  # the handler of a signal may release a lease at any moment
        self._leases: list[_LeasedGpus] = []  # in the order in which they were asked for
        self._before: Mapping[str, str | None] = {}  # the first of them

    def begin(self, where: str, *, is_typed: bool) -> _LeasedGpus:
        """Ask for a lease; a UserError if another thread has one, or waits for one."""
        with self._guard:
            held = _LeasedGpus(where, is_typed=is_typed)
            other = next((each for each in self._leases if each.thread is not held.thread), None)
            if other:
                does = f"holds the lease of {other}" if other.gpus else f"waits for GPUs ({other.where})"
                raise UserError(
                    f"another thread ({other.thread.name}) {does}, and the threads of a process share one "
                    f"{_VISIBLE}; lease the GPUs of all threads at once, as with lease(2), or use processes"
                )
            self._leases.append(held)
            return held

    def add(self, held: _LeasedGpus, gpus: tuple[str, ...], changes: Mapping[str, str]) -> None:
        """It has its GPUs now."""
        with self._guard:
            if not self.newest():
                self._before = {name: os.environ.get(name) for name in changes}
            held.gpus, held.changes = gpus, changes
            self._show()

    def newest(self) -> _LeasedGpus | None:
        """The newest lease that has its GPUs."""
        return next((held for held in reversed(self._leases) if held.gpus), None)

    def release(self, *done: _LeasedGpus) -> None:
        """Give back the GPUs of each, except those of a later lease that is nested in it, which it alone protects."""
        with self._guard:
            for held in done:
                held.is_released = True
            before, needed = self.newest(), set[str]()
            for each in reversed(self._leases.copy()):
                if not each.is_released:
                    needed.update(each.gpus)
                elif needed.isdisjoint(each.gpus):
                    self._close(each)
                elif each.pool:
                    each.pool.close(needed)
            if self.newest() is not before:
                self._show()

    def typed_before(self, held: _LeasedGpus) -> list[_LeasedGpus]:
        """Earlier leases of its GPUs, if all of them were typed."""
        older = self._leases[: self._leases.index(held)] if held in self._leases else []
        return [each for each in older if _is_retyped(each, held)]

    def is_lost(self, held: _LeasedGpus) -> bool:
        """Whether nothing will release it, now that it was dropped.

        The garbage collector calls this in the middle of anything, so it takes no lock.
        """
        leases = self._leases.copy()
        if held.is_released or held not in leases:
            return False
        return not any(_is_retyped(held, each) for each in leases[leases.index(held) :] if each is not held)

    def _close(self, held: _LeasedGpus) -> None:
        with suppress(ValueError):  # the handler of a signal has just done it
            self._leases.remove(held)
            if held.pool:
                held.pool.close()

    def _show(self) -> None:
        newest = self.newest()
        for name, value in (newest.changes if newest else self._before).items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


_ours = _Process()
os.register_at_fork(after_in_child=_ours.forget)


def _take(held: _LeasedGpus, count: int, seconds: float, wants: Wants) -> None:
    """Wait for the GPUs of a lease."""
    inbox = SystemInbox()
    clock, me = SystemClock(), os.getpid()
    until = clock.now() + seconds
    mark = f"/lease-{me}-{time.time_ns()}".encode()
    tree = os.environb.get(TREE, b"")
    outer = _ours.newest()
    if not outer:
        _warn_if_too_late()
    machine = _find(wants, clock, until)
    _check_there_are(count, machine, outer)
    for remark in machine.remarks:
        warnings.warn(remark, RuntimeWarning, stacklevel=3)
    remarks: list[str] = []
    held.pool = pool = open_pool(machine, wants, inbox.put, Family(outer_tree=tree), tree)
    got = acquire(count, pool, mark, inbox, clock, until, _say, remarks.append)
    for remark in remarks:
        warnings.warn(remark, RuntimeWarning, stacklevel=3)
    if not isinstance(got, Acquired):
        waits = show_waits(pool.waits(Demand(count)), _OVERRIDE)
        what = "no GPU was" if count == 1 else f"fewer than {count} GPUs were"
        when = f" within {show_duration(seconds)}" if seconds else ""
        raise LeaseTimeout(f"{what} free{when}: {waits}")
    got.hold.sign(me)
    if outer and outer.gpus != got.gpus:
        _warn_if_too_late()
    _ours.add(held, got.gpus, _changes(got.gpus, tree + mark))


def _find(wants: Wants, clock: SystemClock, until: float) -> Machine:
    """The GPUs. A driver that does not answer is waited for like a GPU that is not free, but at least for SILENCE."""
    try:
        return find_machine(wants, os.environ, within=SILENCE)
    except SilentDriverError as error:
        _say([Wait("all", str(error), "not answering")])
    try:
        return find_machine(wants, os.environ, within=min(until - clock.now(), _LONGEST_WAIT))
    except SilentDriverError as error:
        raise LeaseTimeout(f"it is not known which GPUs are free: {error}") from None


def _say(waits: Sequence[Wait]) -> None:
    """Once per change. The program decides where it goes; without a word from it, to stderr."""
    import logging  # noqa: PLC0415 - most leases never wait

    logging.getLogger("simple_gpu_scheduler").warning("lease() waits: %s", show_waits(waits, _OVERRIDE))


def _changes(gpus: tuple[str, ...], tree: bytes) -> Mapping[str, str]:
    """The variables that jobs get too: the GPUs to use, CUDA's numbering, and the mark of this lease."""
    return {_VISIBLE: ",".join(gpus), _ORDER: os.environ.get(_ORDER, "PCI_BUS_ID"), TREE.decode(): tree.decode()}


def _check_there_are(count: int, machine: Machine, outer: _LeasedGpus | None) -> None:
    if count > len(machine.gpus):
        why = f"; this process already has the lease of {outer}: release() it first" if outer else ""
        raise UserError(f"{count} GPUs were requested, but there are only {len(machine.gpus)}{why}")


def _check(count: int) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ValueError(f"{count!r} is not a number of GPUs (1 or more)")


def _warn_if_too_late() -> None:
    late = []
    for name, is_initialised in _FRAMEWORKS.items():
        with suppress(AttributeError, TypeError):  # half loaded, or of a version without this function
            if sys.modules.get(name) and is_initialised():
                late.append(name)
    if late:
        warnings.warn(
            f"{late[0]} has already initialised CUDA, so it does not see which GPUs are leased; call lease() first",
            RuntimeWarning,
            stacklevel=4,
        )


def _torch() -> bool:
    return bool(sys.modules["torch"].cuda.is_initialized())


def _jax() -> bool:
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bool(bridge and bridge.backends_are_initialized())


def _tensorflow() -> bool:
    eager = sys.modules.get("tensorflow.python.eager.context")
    context = eager.context_safe() if eager else None
    return bool(context and context._initialized)  # noqa: SLF001 - tensorflow has no public way to ask


_FRAMEWORKS = {"torch": _torch, "jax": _jax, "tensorflow": _tensorflow}
