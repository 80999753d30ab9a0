"""The attempts that outlived an earlier scheduler of this run, and how they end. Owned by the loop."""

from collections.abc import Callable
from typing import NamedTuple

from .clock import Clock
from .jobs import Attempt, Outcome, outcome_of
from .outliving import Outlived, end
from .resuming import Outliving


class AdoptedEnd(NamedTuple):
    """One has ended; without an outcome nobody knows how."""

    attempt: Attempt
    outcome: Outcome | None
    began_at: float
    runtime: float
    was_stopped: bool


class Adopted:
    """They are no children of ours and have their leases themselves."""

    def __init__(
        self,
        run_id: bytes,
        clock: Clock,
        stop: Callable[..., None] = end,
    ) -> None:
        self._run_id = run_id
        self._clock = clock
        self._stop = stop
        self._running: dict[tuple[int, int], Outliving] = {}
        self._is_stopped = False
        self._cancelled: set[tuple[int, int]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def add(self, outliving: Outliving) -> None:
        """One more."""
        self._running[outliving.attempt.key] = outliving

    def runtimes(self) -> list[tuple[Attempt, float]]:
        """What runs, and for how long."""
        now = self._clock.wall()
        return [(each.attempt, now - each.began_at) for each in self._running.values()]

    def end(self, message: Outlived) -> AdoptedEnd:
        """One has ended."""
        each = self._running.pop(message.key)
        outcome = None if message.status is None else outcome_of(message.status)
        if outcome is None and (self._is_stopped or message.key in self._cancelled):
            outcome = Outcome("killed", 15)
        return AdoptedEnd(
            each.attempt, outcome, each.began_at, max(0.0, self._clock.wall() - each.began_at), self._is_stopped
        )

    def end_one(self, key: tuple[int, int], _why: str) -> bool:
        """End one; False when it is being ended already."""
        if self._is_stopped or key in self._cancelled:
            return False
        self._cancelled.add(key)
        self._stop(self._run_id, key, force=False)
        return True

    def stop(self, *, force: bool) -> None:
        """End all of them."""
        self._is_stopped = True
        for key in self._running:
            self._stop(self._run_id, key, force=force)
