"""The pure decision: which waiting job starts where, now; and what follows from the end of an attempt.

Every change of a job's state is made here, by values that are passed in, the time included. It knows nothing of clocks,
threads, processes, or of who else uses a GPU: that is `free`.
"""

from collections.abc import Collection
from heapq import heappop, heappush
from typing import NamedTuple

from .jobs import Attempt, Job, Outcome
from .policies import Rank
from .slots import Limits, Slots

_NEVER = float("inf")


class Rules(NamedTuple):
    """What holds for every job that does not say otherwise."""

    retries: int = 0
    retry_delay: float = 0
    delay: float = 0


class Verdict(NamedTuple):
    """What the end of an attempt leads to: another attempt, or the job's end and that of jobs that waited for it."""

    retries: bool
    dropped: tuple[Job, ...] = ()


class _Waiting(NamedTuple):
    """A job's place in the order; as a tuple it sorts by rank, then by number."""

    rank: float
    number: int
    attempt: int
    job: Job


class Scheduler:
    """The waiting and the running jobs of one run."""

    def __init__(self, limits: Limits, rank: Rank, rules: Rules) -> None:
        self._slots = Slots(limits)
        self._rank = rank
        self._rules = rules
        self._by_width: dict[int, list[_Waiting]] = {}
        self._delayed: list[tuple[float, int, _Waiting]] = []
        self._blocked: dict[int, tuple[Job, set[int]]] = {}
        self._dependents: dict[int, list[int]] = {}
        self._ended: dict[int, bool] = {}
        self._running: dict[tuple[int, int], Attempt] = {}
        self._waiting = 0
        self._no_start_before = float("-inf")
        self._stopped = False

    @property
    def waiting(self) -> int:
        """How many jobs have yet to start."""
        return self._waiting + len(self._blocked) + len(self._delayed)

    @property
    def running(self) -> Collection[Attempt]:
        """The attempts under way, the oldest first."""
        return self._running.values()

    def stop(self) -> None:
        """Start nothing more."""
        self._stopped = True

    def add(self, job: Job) -> tuple[Job, ...]:
        """Take a job in. What comes back can never start: it waits for one that did not succeed."""
        if any(self._ended.get(number) is False for number in job.after):
            return self._drop(job)
        unmet = {number for number in job.after if number not in self._ended}
        if unmet:
            self._blocked[job.number] = (job, unmet)
            for number in unmet:
                self._dependents.setdefault(number, []).append(job.number)
        else:
            self._queue(self._place(job, 1))
        return ()

    def plan(self, now: float, free: Collection[str]) -> list[Attempt]:
        """The attempts that start now, on GPUs that others leave `free`. They count as running from here on."""
        while self._delayed and self._delayed[0][0] <= now:
            self._queue(heappop(self._delayed)[2])
        starts = []
        while self._waiting and not self._stopped and now >= self._no_start_before:
            attempt = self._next_start(free)
            if attempt is None:
                break
            starts.append(attempt)
            self._no_start_before = now + self._rules.delay
        return starts

    def next_wake(self, now: float) -> float:
        """When `plan` may have something to start though nothing has happened; infinity for never."""
        if self._stopped:
            return _NEVER
        retry = self._delayed[0][0] if self._delayed else _NEVER
        start = self._no_start_before if self._waiting and self._no_start_before > now else _NEVER
        return min(retry, start)

    def end(self, attempt: Attempt, outcome: Outcome, now: float) -> Verdict:
        """An attempt has ended and nothing of it is left."""
        del self._running[attempt.key]
        self._slots.give_back(attempt.slots)
        job = attempt.job
        if outcome.kind == "succeeded":
            self._remember(job, succeeded=True)
            self._release_dependents(job.number)
            return Verdict(retries=False)
        if self._may_retry(attempt, outcome):
            again = self._place(job, attempt.number + 1)
            heappush(self._delayed, (now + self._rules.retry_delay, job.number, again))
            return Verdict(retries=True)
        return Verdict(retries=False, dropped=self._drop(job)[1:])

    def _may_retry(self, attempt: Attempt, outcome: Outcome) -> bool:
        retries = self._rules.retries if attempt.job.retries is None else attempt.job.retries
        return attempt.number <= retries and outcome.kind != "not started" and not self._stopped

    def _place(self, job: Job, attempt: int) -> _Waiting:
        return _Waiting(self._rank(job), job.number, attempt, job)

    def _queue(self, waiting: _Waiting) -> None:
        heappush(self._by_width.setdefault(waiting.job.gpus, []), waiting)
        self._waiting += 1

    def _next_start(self, free: Collection[str]) -> Attempt | None:
        """The first job in the order that fits, and the first that does not keeps its place.

        That one holds a place on every GPU with room, so that narrower jobs behind it cannot starve it; but not when
        others occupy so many GPUs that it could not start even if all our own jobs ended.
        """
        held = 0
        for width in sorted(self._by_width, key=lambda width: self._by_width[width][0]):
            positions = self._slots.with_places(free, held) if width else []
            if self._slots.has_cpu() if not width else len(positions) >= width:
                return self._start(width, positions)
            if positions and not held and self._slots.within_reach(free) >= width:
                held = 1
        return None

    def _start(self, width: int, positions: list[int]) -> Attempt:
        queue = self._by_width[width]
        waiting = heappop(queue)
        if not queue:
            del self._by_width[width]
        self._waiting -= 1
        gpus, slots = self._slots.take(width, positions)
        attempt = Attempt(waiting.job, waiting.attempt, gpus, slots)
        self._running[attempt.key] = attempt
        return attempt

    def _remember(self, job: Job, *, succeeded: bool) -> None:
        if job.name:  # a job without a name cannot be waited for
            self._ended[job.number] = succeeded

    def _release_dependents(self, number: int) -> None:
        for dependent in self._dependents.pop(number, ()):
            if dependent not in self._blocked:
                continue
            job, unmet = self._blocked[dependent]
            unmet.discard(number)
            if not unmet:
                del self._blocked[dependent]
                self._queue(self._place(job, 1))

    def _drop(self, job: Job) -> tuple[Job, ...]:
        """The job, which did not succeed, and all that wait for it, directly or not."""
        dropped = [job]
        for lost in dropped:  # grows while it is walked: a chain may be longer than Python's stack
            self._remember(lost, succeeded=False)
            for dependent in self._dependents.pop(lost.number, ()):
                blocked = self._blocked.pop(dependent, None)
                if blocked:
                    dropped.append(blocked[0])
        return tuple(dropped)
