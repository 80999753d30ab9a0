"""Engines: where attempts run, whole. The protocol, what an engine reports, and the table of engines.

There are two kinds. For a placing engine our scheduler chooses the GPUs (this machine, simulated time). A queueing
engine hands attempts to a cluster, which has a queue of its own and chooses by itself: there an attempt begins some
time after it was started, and the engine says so by a `Began`.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from simple_gpu_scheduler.base.clock import Clock
from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import Attempt, Outcome

if TYPE_CHECKING:  # the table is read for --help too, which needs none of these
    from simple_gpu_scheduler.gpus.discover import Machine, Wants
    from simple_gpu_scheduler.gpus.pool import Demand
    from simple_gpu_scheduler.keeper.client import KeeperClient
    from simple_gpu_scheduler.keeper.survivors import Survivor
    from simple_gpu_scheduler.scheduling.slots import Rooms
    from simple_gpu_scheduler.system.processes import Streams


NEVER = float("inf")


class ForEngine(NamedTuple):
    """A message to the loop's inbox from one of the engine's own threads; the loop hands it to the engine."""

    message: Any


class Began(NamedTuple):
    """An attempt that waited in a cluster's queue runs now; its time-out and its length count from here."""

    attempt: Attempt
    where: str = ""


class Exited(NamedTuple):
    """The main process of an attempt has ended; what it left behind is still being ended."""

    attempt: Attempt


class Ended(NamedTuple):
    """An attempt is over, and nothing of it is left. It may also never have started.

    Without an outcome it was interrupted: preempted, its node was lost, the cluster refused it after all, or nobody
    knows how it ended; `why` says which, and the job runs again. `swept` counts the processes that it had left behind
    and that were ended; `beyond_us` lists the pids of those that this user may not end.
    """

    attempt: Attempt
    outcome: Outcome | None
    why: str = ""
    swept: int = 0
    beyond_us: str = ""


Report = Began | Exited | Ended

# What came of the wish to stop an attempt: it will end, its main process had ended by then, or this user may not.
Stopped = Literal["stopping", "ended", "not allowed"]


class Tended(NamedTuple):
    """What an engine found when it looked after its places, and when it wants to be asked again."""

    wake: float = NEVER
    has_looked: bool = False  # so that why jobs wait may have changed
    lost: Sequence[tuple[str, str]] = ()  # GPUs that are of no use any more, and why
    remarks: Sequence[str] = ()


class Engine(Protocol):
    """Runs attempts. The loop's thread owns it; its own threads only put a `ForEngine` on the inbox.

    Attempts of an earlier scheduler that still run are given to it when it is made. Each attempt that was started, by
    us or by an earlier scheduler, has exactly one `Ended`, whatever happens.
    """

    queues: bool  # whether a cluster chooses the GPUs, so that an attempt begins when a `Began` says so

    def rooms(self, demand: "Demand") -> "Rooms":
        """The GPUs that may be used, as far as is known, with the memory that others leave free."""

    def waits(self, demand: "Demand") -> list[Wait]:
        """Why the others may not be used."""

    def take(self, attempt: Attempt, now: float) -> bool:
        """Take the places of an attempt, all or none; False when somebody else was there first."""

    def start(self, attempt: Attempt) -> None:
        """Start an attempt whose places are taken."""

    def stop(self, attempts: Sequence[Attempt], *, force: bool) -> Sequence[Stopped]:
        """Ask these and what they left behind to end, or with `force` make them; what came of it for each."""

    def received(self, message: Any, now: float) -> Sequence[Report]:
        """What a message from one of its threads means for the run."""

    def release(self, attempt: Attempt) -> None:
        """Give its places back: it was not started, or its end is on record."""

    def tend(self, demand: "Demand", now: float) -> Tended:
        """Give back what is not used, look again at what others use; called before the loop sleeps."""

    def close(self) -> None:
        """Nothing is started any more."""


class Inbox(Protocol):
    """Where the loop waits. The real one is a SimpleQueue."""

    def get(self, *, timeout: float | None = None) -> Any:
        """The next message; `Empty` when none came in time."""


class World(NamedTuple):
    """What the loop acts on, and by which time."""

    engine: Engine
    inbox: Inbox
    clock: Clock
    read_more: Callable[[], object]


class Setting(NamedTuple):
    """What engines are made from; each takes what it needs."""

    run_id: str
    machine: "Machine"
    wants: "Wants"
    inbox: "SimpleQueue[Any]"
    read_more: Callable[[], object] = lambda: None
    shell: str = "/bin/sh"
    grace: float = 10.0
    environment: Mapping[bytes, bytes] = {}
    open_streams: "Callable[[Attempt], Streams]" = lambda _attempt: ()
    spared: Callable[[], frozenset[int]] = frozenset  # children of this process that belong to no attempt
    keeper: "KeeperClient | None" = None
    journal: str = ""
    journal_size: int = 0  # what was read of it
    survivors: "Sequence[Survivor]" = ()
    input_ends: bool = True
    has_lengths: bool = True  # False for a dry run


class EngineEntry(NamedTuple):
    """A line of the table: what `--engine NAME` offers, and the module whose `build` makes it."""

    help: str
    module: str
    runs_nothing: bool = False


ENGINES: Mapping[str, EngineEntry] = {
    "local": EngineEntry("run jobs on the GPUs of this machine", "local"),
    "simulated": EngineEntry(
        "run nothing and let no time pass: a job takes as long as `sleep N` in it says, or else time=",
        "simulated",
        runs_nothing=True,
    ),
}


def build(name: str, setting: Setting) -> World:
    """The engine of that name, with the inbox and the clock that go with it."""
    world: World = import_module(f"{__name__}.{ENGINES[name].module}").build(setting)
    return world
