"""`lease()`: GPUs for a Python program, with the same rules and leases as the command.

While it holds GPUs, it changes the environment of this process, so that CUDA and everything the program starts see only
these GPUs.
"""

import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from simple_gpu_scheduler.base.clock import SystemClock
from simple_gpu_scheduler.base.errors import Broken, UserError
from simple_gpu_scheduler.base.text import show_waits
from simple_gpu_scheduler.base.units import parse_duration, parse_size, show_duration
from simple_gpu_scheduler.gpus import Tolerance
from simple_gpu_scheduler.gpus.acquire import Acquired, acquire
from simple_gpu_scheduler.gpus.discover import Wants, find_machine, open_pool
from simple_gpu_scheduler.gpus.leases import LeaseCame
from simple_gpu_scheduler.gpus.names import parse_gpus
from simple_gpu_scheduler.gpus.pool import Demand
from simple_gpu_scheduler.system.marks import TREE, Family
from simple_gpu_scheduler.system.signals import Signalled
from simple_gpu_scheduler.system.threads import MessageQueue
from simple_gpu_scheduler.system.users import user_id

_VISIBLE, _ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
_NEVER = float("inf")


class LeaseTimeout(TimeoutError):  # noqa: N818 - as TimeoutError itself; the name says enough
    """The GPUs were not free in time; the text says who is using them."""


@contextmanager
def lease(
    count: int = 1,
    *,
    timeout: float | str | None = None,
    gpus: Iterable[int | str] | str | None = None,
    free_memory: int | str = 0,
    share_with: Iterable[str] | str = (),
    ignore_occupancy: bool = False,
) -> Iterator[tuple[str, ...]]:
    """Wait until `count` GPUs are free, and hold them while the `with` block runs.

    It yields what CUDA_VISIBLE_DEVICES is set to meanwhile: indexes, or UUIDs. Call it before anything initialises
    CUDA, which reads that only once.

    `timeout` is how long to wait, in seconds or as "30m"; 0 does not wait, None waits for as long as it takes.
    `gpus` are those to choose among: indexes, UUIDs, "0-3"; all that this process may see, when it is left out.
    `free_memory` ("10G") must be free; processes of the users in `share_with` ("me") do not matter, and with
    `ignore_occupancy` no processes do.

    A `LeaseTimeout` is raised when the time is over, a `UserError` when it cannot be done at all. It is for one thread
    of a process at a time, since the environment is the whole process's; forked workers may each call it.
    """
    _check(count)
    words = ["all"] if gpus is None else [gpus] if isinstance(gpus, str) else [str(gpu) for gpu in gpus]
    if not any(word.strip() for word in words):
        raise ValueError("gpus is empty; leave it out to use all")
    names = parse_gpus(words)
    tolerance = Tolerance(free_memory if isinstance(free_memory, int) else parse_size(free_memory))
    tolerated = frozenset(user_id(name) for name in ([share_with] if isinstance(share_with, str) else share_with))
    wants = Wants(names, ignore_occupancy, tolerance, tolerated, example="gpus=[0, 1]")
    seconds = parse_duration(timeout) if isinstance(timeout, str) else timeout
    if seconds is not None and not seconds >= 0:  # nor is nan
        raise ValueError(f"timeout={timeout!r} is not a time to wait; use seconds or '30m'")
    _warn_if_too_late()
    with _leased(count, _NEVER if seconds is None else seconds, wants) as got:
        yield got


@contextmanager
def _leased(count: int, seconds: float, wants: Wants) -> Iterator[tuple[str, ...]]:
    inbox: MessageQueue[LeaseCame | Broken | Signalled] = MessageQueue()
    clock, me = SystemClock(), os.getpid()
    until = clock.now() + seconds
    mark = f"/lease-{me}-{time.time_ns()}".encode()
    tree = os.environb.get(TREE, b"")
    machine = find_machine(wants, os.environ)
    if count > len(machine.gpus):
        raise UserError(f"{count} GPUs were requested, but there are only {len(machine.gpus)}")
    for remark in machine.remarks:
        warnings.warn(remark, RuntimeWarning, stacklevel=5)
    remarks: list[str] = []
    pool = open_pool(machine, wants, inbox.put, Family(outer_tree=tree), tree)
    try:
        got = acquire(count, pool, mark, inbox, clock, until, lambda _waits: None, remarks.append)
        for remark in remarks:
            warnings.warn(remark, RuntimeWarning, stacklevel=5)
        if not isinstance(got, Acquired):
            waits = show_waits(pool.waits(Demand(count)), "ignore_occupancy=True")
            what = "no GPU was" if count == 1 else f"fewer than {count} GPUs were"
            when = f" within {show_duration(seconds)}" if seconds else ""
            raise LeaseTimeout(f"{what} free{when}: {waits}")
        got.hold.sign(me)
        with _environment(got.gpus, tree + mark):
            yield got.gpus
    finally:
        if os.getpid() == me:  # a forked child that leaves the block has nothing to release
            pool.close()


@contextmanager
def _environment(gpus: tuple[str, ...], tree: bytes) -> Iterator[None]:
    """Set the variables that jobs get too: the GPUs to use, CUDA's numbering, and the mark of this lease."""
    changes = {_VISIBLE: ",".join(gpus), _ORDER: os.environ.get(_ORDER, "PCI_BUS_ID"), TREE.decode(): tree.decode()}
    before: Mapping[str, str | None] = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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
