"""Engines: where attempts run. The protocol, the messages an engine sends, and the dict of them.

An engine runs what it is told to and says how it ended. It knows nothing of waiting jobs, retries or time-outs.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.jobs import Attempt, Outcome
from simple_gpu_scheduler.gpus.leases import Hold
from simple_gpu_scheduler.system.processes import Streams

if TYPE_CHECKING:
    from simple_gpu_scheduler.keeper.client import KeeperClient
    from simple_gpu_scheduler.notify.child import Bystanders


class Ended(NamedTuple):
    """An attempt's main process has ended, or did not start.

    When it is settled, nothing of it is left: so many processes that it had left were `swept` up, and `beyond_us` are
    the pids of those that this user may not end. `looks` counts those in a row that found nothing, though there is.
    """

    attempt: Attempt
    outcome: Outcome
    is_settled: bool = False
    swept: int = 0
    beyond_us: str = ""
    looks: int = 0


class Engine(Protocol):
    """Runs attempts; called from one thread only."""

    def start(self, attempt: Attempt, hold: Hold) -> None:
        """Start it soon, with what keeps its GPUs leased; an `Ended` follows, whatever happens."""

    def stop(self, attempt: Attempt, *, force: bool) -> bool:
        """Ask it and what it has left to end, or with `force` make them; False when this user may not."""

    def has_ended(self, attempt: Attempt) -> bool:
        """Whether its main process has ended, so that its `Ended` is on the way."""

    def settle(self, ended: Ended) -> bool:
        """Whether nothing of it is left. If not, what is left is being ended, and a settled `Ended` follows."""

    def recorded(self) -> None:
        """What became of the attempts that are settled is on record."""

    def close(self) -> None:
        """Nothing is started any more."""


class EngineOptions(NamedTuple):
    """What the command line says that any engine may want to know."""

    put: Callable[[Ended | Broken], None]
    run_id: str
    shell: str = "/bin/sh"
    grace: float = 10.0
    environment: Mapping[bytes, bytes] = {}
    keeper: "KeeperClient | None" = None
    open_streams: Callable[[Attempt], Streams] = lambda _attempt: ()
    bystanders: "Bystanders | None" = None


def _local(options: EngineOptions) -> Engine:
    from .local import LocalEngine  # noqa: PLC0415 - loaded by those that use it

    return LocalEngine(options)


def _dry_run(options: EngineOptions) -> Engine:
    from .dry_run import DryRunEngine  # noqa: PLC0415 - as above

    return DryRunEngine(options)


# What --engine can name; the first is used when nothing is said.
OFFERED = ("local", "simulated")
ENGINES: Mapping[str, Callable[[EngineOptions], Engine]] = {"local": _local, "dry-run": _dry_run}
