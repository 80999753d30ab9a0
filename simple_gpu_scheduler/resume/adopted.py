"""The attempts of an earlier scheduler that are still running, their deadlines, and how they end. Owned by the loop."""

import signal
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

from simple_gpu_scheduler.base.clock import Clock
from simple_gpu_scheduler.base.jobs import Attempt, Ending, Outcome, outcome_of

from .survivors import Outlived, end

if TYPE_CHECKING:
    from .remaining import Outliving

_NEVER = float("inf")
# A process forked during the search is missed, so search again for attempts that do not end.
_TRY_AGAIN = 1.0


class AdoptedEnd(NamedTuple):
    """One has ended; without an outcome nobody knows how."""

    attempt: Attempt
    outcome: Outcome | None
    began_at: float
    runtime: float
    ending: Ending


class Adopted:
    """They are no children of ours and have their leases themselves."""

    def __init__(self, run_id: bytes, clock: Clock, grace: float, stop: Callable[..., None] = end) -> None:
        self._run_id = run_id
        self._clock = clock
        self._grace = grace
        self._stop = stop
        self._running: dict[tuple[int, int], Outliving] = {}
        self._endings: dict[tuple[int, int], Ending] = {}
        self._due: dict[tuple[int, int], float] = {}

    def __len__(self) -> int:
        return len(self._running)

    def add(self, outliving: "Outliving", timeout: float | None) -> None:
        """One more; `timeout` holds for a job that does not say otherwise."""
        attempt = outliving.attempt
        timeout = timeout if attempt.job.timeout is None else attempt.job.timeout
        self._running[attempt.key] = outliving
        if timeout and outliving.status is None:  # else its end is on its way
            self._due[attempt.key] = self._clock.now() + timeout - self._runtime(outliving)

    def runtimes(self) -> list[tuple[Attempt, float]]:
        """What runs, and for how long."""
        return [(each.attempt, self._runtime(each)) for each in self._running.values()]

    @property
    def next_deadline(self) -> float:
        """When one is to be ended."""
        return min(self._due.values(), default=_NEVER)

    def end(self, message: Outlived) -> AdoptedEnd:
        """One has ended."""
        each = self._running.pop(message.key)
        self._due.pop(message.key, None)
        ending = self._endings.pop(message.key, "")
        outcome = None if message.status is None else outcome_of(message.status)
        if ending == "timed out":
            outcome = Outcome("timed out")
        elif outcome is None and ending:
            outcome = Outcome("killed", signal.SIGTERM)
        return AdoptedEnd(each.attempt, outcome, each.began_at, self._runtime(each), ending)

    def end_one(self, key: tuple[int, int], why: Ending) -> bool:
        """End one; False when it is being ended already."""
        if key in self._endings:
            return False
        self._end([key], why, force=False)
        return True

    def stop(self, *, force: bool) -> None:
        """End all of them; by force also those that are being ended already."""
        self._end([key for key in self._running if force or key not in self._endings], "stopped", force=force)

    def enforce_deadlines(self) -> None:
        """End those whose time is over."""
        now = self._clock.now()
        due = [key for key, due in self._due.items() if due <= now]
        self._end([key for key in due if key in self._endings], "timed out", force=True)
        self._end([key for key in due if key not in self._endings], "timed out", force=False)

    def _end(self, keys: Collection[tuple[int, int]], why: Ending, *, force: bool) -> None:
        if not keys:
            return
        force = force or self._grace == 0
        for key in keys:
            self._endings.setdefault(key, why)
            self._due[key] = self._clock.now() + (_TRY_AGAIN if force else self._grace)
        self._stop(self._run_id, keys, force=force)  # once for all: it looks through the processes of the machine

    def _runtime(self, each: "Outliving") -> float:
        return max(0.0, self._clock.wall() - each.began_at)
