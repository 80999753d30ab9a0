"""The engine of `--dry-run`: every attempt succeeds at once, and nothing is run."""

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt
from simple_gpu_scheduler.gpus.leases import Hold

from . import Ended, EngineOptions


class DryRunEngine:
    """Answers each start with a success. Since answers queue up behind each other, GPUs are used in turn."""

    def __init__(self, options: EngineOptions) -> None:
        self._put = options.put

    def start(self, attempt: Attempt, _hold: Hold) -> None:
        """It has succeeded."""
        self._put(Ended(attempt, SUCCESS, is_settled=True))

    def stop(self, _attempt: Attempt, *, force: bool) -> bool:  # noqa: ARG002 - the protocol's name
        """It has ended already."""
        return True

    def has_ended(self, _attempt: Attempt) -> bool:
        """It has."""
        return True

    def settle(self, _ended: Ended) -> bool:
        """Nothing is ever left."""
        return True

    def recorded(self) -> None:
        """It is all the same."""

    def close(self) -> None:
        """There is nothing to close."""
