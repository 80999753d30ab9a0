"""The protocol of an engine, what it reports, and what it is built from.

There are two kinds. For a placing engine our scheduler chooses the GPUs (this machine, simulated time). A queueing
engine hands attempts to a cluster, which has its own queue and chooses the GPUs itself: there, an attempt runs
only some time after it was started, and the engine reports that with `Began`.
"""

from simple_gpu_scheduler.base.clock import Clock
from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import Attempt, Key, Outcome
from simple_gpu_scheduler.base.measurement import Measured, Stillness
from simple_gpu_scheduler.base.values import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, Protocol, Sequence

if TYPE_CHECKING:  # only named here; an engine loads what it uses
    from simple_gpu_scheduler.gpus.discover import Machine, Wants
    from simple_gpu_scheduler.gpus.pool import Demand
    from simple_gpu_scheduler.keeper.client import KeeperClient
    from simple_gpu_scheduler.keeper.survivors import Survivor
    from simple_gpu_scheduler.scheduling.slots import Rooms
    from simple_gpu_scheduler.system.inbox import SystemInbox
    from simple_gpu_scheduler.system.processes import Streams


NEVER = float("inf")


class ForEngine(NamedTuple):
    """A message from one of the engine's threads to the loop's inbox; the loop hands it to the engine."""

    message: Any


class Began(NamedTuple):
    """An attempt that waited in a cluster's queue is running now; its timeout and length count from here."""

    attempt: Attempt
    where: str = ""


class Exited(NamedTuple):
    """The main process of an attempt has ended; processes that it left behind are still being ended."""

    attempt: Attempt


class Ended(NamedTuple):
    """An attempt is over, and nothing of it is left. It may also never have started.

    Without an outcome it was interrupted: preempted, lost with its node, refused late by the cluster, or ended in an
    unknown way; `why` says which, and the job runs again. `swept` counts processes that it left behind and that were
    ended; `beyond_us` lists the pids of those that this user may not end; `server` is the terminal multiplexer among
    them, such as tmux. `by_itself`: it is known that it ended before it could be told to. `measured` is what it did to
    its GPUs and the CPU.
    """

    attempt: Attempt
    outcome: Outcome | None
    why: str = ""
    swept: int = 0
    beyond_us: str = ""
    server: str = ""
    by_itself: bool = False
    measured: Measured | None = None


class Refused(NamedTuple):
    """The system refuses to start the attempt now, and may not later. It never began, and has no other end."""

    attempt: Attempt
    why: str


class Unstoppable(NamedTuple):
    """This user may not end the attempt, for which that was asked."""

    attempt: Attempt


class Diagnosed(NamedTuple):
    """What the processes of an attempt are doing, as was asked: lines of text."""

    attempt: Attempt
    lines: Sequence[str]


Report = Began | Exited | Ended | Refused | Unstoppable | Diagnosed


class Tended(NamedTuple):
    """What an engine found when it checked its places, and when it wants to be called again."""

    wake: float = NEVER
    has_looked: bool = False  # so the reasons why jobs wait may have changed
    remarks: Sequence[str] = ()
    curves: Sequence[tuple[Attempt, Measured]] = ()  # pieces of those of attempts that run for long
    arrived: Sequence[tuple[str, str]] = ()  # others who came to a GPU that attempts of ours are on: which, and who


class Engine(Protocol):
    """Runs attempts. The loop's thread owns it; its own threads only put a `ForEngine` on the inbox.

    It gets the attempts of an earlier scheduler that are still running when it is created. Each attempt that was
    started, by this scheduler or an earlier one, has exactly one `Ended` (or `Refused`), whatever happens.
    """

    queues: bool  # whether a cluster chooses the GPUs, so that an attempt begins when a `Began` says so

    def rooms(self, without: frozenset[str]) -> "Rooms":
        """The GPUs that can be used, as far as is known, and the memory that others leave free there."""

    def waits(self, demand: "Demand") -> list[Wait]:
        """Why the other GPUs cannot be used."""

    def take(self, attempt: Attempt, now: float) -> bool:
        """Take the places of an attempt, all or none; False if another scheduler or user was faster."""

    def start(self, attempt: Attempt) -> None:
        """Start an attempt whose places are taken."""

    def stop(self, attempts: Sequence[Attempt], *, force: bool) -> None:
        """Ask these attempts and what they left behind to end, or with `force` kill them."""

    def received(self, message: Any, now: float) -> Sequence[Report]:
        """Translate a message from one of its threads into what it means for the run."""

    def release(self, attempt: Attempt) -> None:
        """Give back its places: it was not started, or its end has been recorded."""

    def tend(self, demand: "Demand", now: float) -> Tended:
        """Give back unused places and look again at GPUs in use by others; called before the loop sleeps."""

    def measured(self, key: Key) -> Measured | None:
        """What an attempt has done to its GPUs and the CPU so far, as far as that is known."""

    def stillness(self, key: Key) -> Stillness | None:
        """Since when an attempt has been doing nothing new; None if that is not known."""

    def diagnose(self, attempt: Attempt) -> None:
        """Find out what its processes are doing; the answer is a `Diagnosed`, unless it ends before."""

    def close(self) -> None:
        """Nothing will be started any more."""


class Inbox(Protocol):
    """Where the loop waits. The real one is a `SystemInbox`."""

    def get(self, *, timeout: float | None = None) -> Any:
        """The next message; `Empty` if none came in time."""


class World(NamedTuple):
    """What the loop acts on, and by which clock."""

    engine: Engine
    inbox: Inbox
    clock: Clock
    read_more: Callable[[], object]


class Setting(NamedTuple):
    """What engines are built from; each takes what it needs."""

    run_id: str
    machine: "Machine"
    wants: "Wants"
    inbox: "SystemInbox"
    read_more: Callable[[], object] = lambda: None
    shell: str = "/bin/sh"
    grace: float = 10.0
    environment: Mapping[bytes, bytes] = {}
    open_streams: "Callable[[Attempt], Streams]" = lambda _attempt: ()
    keeper: "KeeperClient | None" = None
    journal: str = ""
    journal_size: int = 0  # what was read of it
    survivors: "Sequence[Survivor]" = ()
    input_ends: bool = True
    has_lengths: bool = True  # False for a dry run
    samples: bool = False  # whether to measure what attempts do
