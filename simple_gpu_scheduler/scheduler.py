"""The pure decision: which waiting job starts where, now; and what follows from the end of an attempt.

Every change of a job's state is made here, by values that are passed in, the time included. It knows nothing of clocks,
threads, processes, or of who else uses a GPU: that is told by `rooms`, the GPUs that others leave free.
"""

from collections.abc import Collection, Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from .jobs import Attempt, Job, Outcome
from .policies import Rank
from .slots import Held, Limits, Rooms, Slots

_NEVER = float("inf")
_CPU = (0, 0)
_TOO_FEW = "it needs more GPUs, or larger ones, than are left"


class Rules(NamedTuple):
    """What holds for every job that does not say otherwise."""

    retries: int = 0
    retry_delay: float = 0
    delay: float = 0


class Dropped(NamedTuple):
    """A job that will never start, and why."""

    job: Job
    reason: str


class Verdict(NamedTuple):
    """What the end of an attempt leads to: another attempt, or the job's end and that of jobs that waited for it."""

    retries: bool
    dropped: tuple[Dropped, ...] = ()


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
        self._by_need: dict[tuple[int, int], list[_Waiting]] = {}
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

    @property
    def wants_gpus(self) -> int:
        """How many GPUs the widest job needs that only waits for them; 0 when there is none."""
        return 0 if self._stopped else max((gpus for gpus, _ in self._by_need), default=0)

    @property
    def wants_memory(self) -> int:
        """How much of it one of those needs at most."""
        return max((mem for _, mem in self._by_need), default=0)

    def add(self, job: Job) -> tuple[Dropped, ...]:
        """Take a job in. What comes back can never start."""
        if any(self._ended.get(number) is False for number in job.after):
            return self._drop(job, "a job that it comes after did not succeed")
        unmet = {number for number in job.after if number not in self._ended}
        if unmet:
            self._blocked[job.number] = (job, unmet)
            for number in unmet:
                self._dependents.setdefault(number, []).append(job.number)
        else:
            self._queue(self._place(job, 1))
        return ()

    def plan(self, now: float, rooms: Rooms) -> list[Attempt]:
        """The attempts that start now, on GPUs that others leave free. They count as running from here on."""
        while self._delayed and self._delayed[0][0] <= now:
            self._queue(heappop(self._delayed)[2])
        starts = []
        while self._waiting and not self._stopped and now >= self._no_start_before:
            if not self._slots.has_gpu() and _CPU not in self._by_need:
                break
            attempt = self._next_start(rooms)
            if attempt is None:
                break
            starts.append(attempt)
            self._no_start_before = now + self._rules.delay
        return starts

    def fits(self, attempt: Attempt, rooms: Rooms) -> bool:
        """Whether a planned attempt still has the memory that it needs, after a closer look at its GPUs."""
        return self._slots.fits(attempt, rooms)

    def put_back(self, attempt: Attempt) -> None:
        """A planned attempt cannot start where it was to: somebody else was there first. It has its old place again."""
        self._leave(attempt)
        self._queue(self._place(attempt.job, attempt.number))
        self._no_start_before = float("-inf")

    def try_again(self, failed: Iterable[Attempt], dropped: Iterable[Job]) -> tuple[Dropped, ...]:
        """Give jobs that had failed for good one more attempt, and those that they took with them their wait.

        What comes back can never start all the same.
        """
        failed, dropped = tuple(failed), sorted(dropped, key=lambda job: job.number)
        for job in (*(attempt.job for attempt in failed), *dropped):
            self._ended.pop(job.number, None)
        for attempt in failed:
            self._queue(self._place(attempt.job, attempt.number + 1))
        return tuple(lost for job in dropped for lost in self.add(job))

    def lose(self, gpu: str) -> None:
        """A GPU is of no use any more."""
        self._slots.lose(gpu)

    def drop_unfit(self) -> tuple[Dropped, ...]:
        """The waiting jobs that can never start since GPUs were lost."""
        if not self._slots.lost:
            return ()
        unfit = [need for need, queue in self._by_need.items() if not self._slots.could_ever_fit(queue[0].job)]
        lost = [waiting.job for need in unfit for waiting in sorted(self._by_need.pop(need))]
        self._waiting -= len(lost)
        return tuple(dropped for job in lost for dropped in self._drop(job, _TOO_FEW))

    def next_wake(self, now: float) -> float:
        """When `plan` may have something to start though nothing has happened; infinity for never."""
        if self._stopped:
            return _NEVER
        retry = self._delayed[0][0] if self._delayed else _NEVER
        start = self._no_start_before if self._waiting and self._no_start_before > now else _NEVER
        return min(retry, start)

    def end(self, attempt: Attempt, outcome: Outcome, now: float) -> Verdict:
        """An attempt has ended and nothing of it is left."""
        self._leave(attempt)
        job = attempt.job
        if outcome.kind == "succeeded":
            self._remember(job, succeeded=True)
            self._release_dependents(job.number)
            return Verdict(retries=False)
        if self._may_retry(attempt, outcome):
            again = self._place(job, attempt.number + 1)
            heappush(self._delayed, (now + self._rules.retry_delay, job.number, again))
            return Verdict(retries=True)
        return Verdict(retries=False, dropped=self._drop(job, "")[1:])

    def _leave(self, attempt: Attempt) -> None:
        del self._running[attempt.key]
        self._slots.give_back(attempt)

    def _may_retry(self, attempt: Attempt, outcome: Outcome) -> bool:
        retries = self._rules.retries if attempt.job.retries is None else attempt.job.retries
        return attempt.number <= retries and outcome.kind != "not started" and not self._stopped

    def _place(self, job: Job, attempt: int) -> _Waiting:
        return _Waiting(self._rank(job), job.number, attempt, job)

    def _queue(self, waiting: _Waiting) -> None:
        job = waiting.job
        need = (job.gpus, job.mem or 0) if job.gpus else _CPU
        heappush(self._by_need.setdefault(need, []), waiting)
        self._waiting += 1

    def _next_start(self, rooms: Rooms) -> Attempt | None:
        """The first job in the order that fits, and the first that does not keeps its place.

        That one holds a place on every GPU with room, so that those behind it that need less cannot starve it; but not
        when others occupy so much that it could not start even if all our own jobs ended.
        """
        held = Held()
        for need in sorted(self._by_need, key=lambda need: self._by_need[need][0]):
            width, mem = need
            positions = self._slots.with_places(rooms, mem, held) if width else []
            if self._slots.has_cpu() if not width else len(positions) >= width:
                return self._start(need, positions)
            if width and not held.places and self._slots.within_reach(rooms, mem) >= width:
                held = Held(1, mem)
        return None

    def _start(self, need: tuple[int, int], positions: list[int]) -> Attempt:
        queue = self._by_need[need]
        waiting = heappop(queue)
        if not queue:
            del self._by_need[need]
        self._waiting -= 1
        attempt = self._slots.take(waiting.job, waiting.attempt, positions)
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

    def _drop(self, job: Job, reason: str) -> tuple[Dropped, ...]:
        """The job, which did not or will not succeed, and all that wait for it, directly or not."""
        dropped = [Dropped(job, reason)]
        for lost, _ in dropped:  # grows while it is walked: a chain may be longer than Python's stack
            self._remember(lost, succeeded=False)
            for dependent in self._dependents.pop(lost.number, ()):
                blocked = self._blocked.pop(dependent, None)
                if blocked:
                    dropped.append(Dropped(blocked[0], f"job {job.number} did not succeed"))
        return tuple(dropped)
