"""The pure decision: which waiting job starts where, now; and what follows from the end of an attempt.

Every change of a job's state is made here, by values that are passed in, the time included. It knows nothing of clocks,
threads, processes, or of who else uses a GPU: that is told by `rooms`, the GPUs that others leave free.
"""

from collections.abc import Collection, Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from .dependencies import Dependencies
from .jobs import Attempt, Job, Outcome
from .lineup import CPU, Lineup, Need, Waiting
from .policies import Rank
from .slots import Held, Limits, Rooms, Slots

_NEVER = float("inf")
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


class Begin(NamedTuple):
    """Where a job goes on that was tried before: its next attempt, and how many of the earlier ones do not count."""

    attempt: int = 1
    excused: int = 0


_AT_FIRST = Begin()


class Scheduler:
    """The waiting and the running jobs of one run."""

    def __init__(self, limits: Limits, rank: Rank, rules: Rules) -> None:
        self._slots = Slots(limits)
        self._rank = rank
        self._rules = rules
        self._lineup = Lineup()
        self._delayed: list[tuple[float, int, Waiting]] = []
        self._dependencies = Dependencies()
        self._running: dict[tuple[int, int], Attempt] = {}
        self._begins: dict[int, Begin] = {}
        self._not_again: set[int] = set()
        self._no_start_before = float("-inf")
        self._stopped = False
        self.is_paused = False

    @property
    def waiting(self) -> int:
        """How many jobs have yet to start."""
        return len(self._lineup) + len(self._dependencies) + len(self._delayed)

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
        return 0 if self._stopped or self.is_paused else self._lineup.most_gpus

    @property
    def wants_memory(self) -> int:
        """How much of it one of those needs at most."""
        return self._lineup.most_memory

    def remember(self, job: Job, begin: Begin = _AT_FIRST, *, succeeded: bool) -> None:
        """A job has come to its end before; others may come after it. `begin`: where it goes on if it is retried."""
        self._dependencies.remember(job, succeeded=succeeded)
        if not succeeded:
            self._begins[job.number] = begin

    def adopt(self, attempt: Attempt, excused: int) -> None:
        """An attempt of an earlier scheduler still runs. It takes no slot here; `end` it as the others."""
        self._begins[attempt.job.number] = Begin(attempt.number, excused)
        self._running[attempt.key] = attempt

    def interrupt(self, attempt: Attempt) -> None:
        """An attempt is over and tells nothing: it is made again, and does not count."""
        self._leave(attempt)
        excused = self._begins.get(attempt.job.number, _AT_FIRST).excused
        self._begins[attempt.job.number] = Begin(attempt.number + 1, excused + 1)
        self._lineup.push(self._place(attempt.job))

    def add(self, job: Job, begin: Begin = _AT_FIRST) -> tuple[Dropped, ...]:
        """Take a job in. What comes back can never start."""
        if begin != _AT_FIRST:
            self._begins[job.number] = begin
        if self._dependencies.have_failed(job):
            return self._drop(job, "a job that it comes after did not succeed")
        if not self._dependencies.block(job):
            self._lineup.push(self._place(job))
        return ()

    def plan(self, now: float, rooms: Rooms) -> list[Attempt]:
        """The attempts that start now, on GPUs that others leave free. They count as running from here on."""
        while self._delayed and self._delayed[0][0] <= now:
            self._lineup.push(heappop(self._delayed)[2])
        starts: list[Attempt] = []
        while self._lineup and not (self._stopped or self.is_paused) and now >= self._no_start_before:
            if not self._slots.has_gpu() and CPU not in self._lineup:
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
        self._lineup.push(self._place(attempt.job, attempt.number))
        self._no_start_before = float("-inf")

    def try_again(self, failed: Iterable[Attempt], dropped: Iterable[Job]) -> tuple[Dropped, ...]:
        """Give jobs that had failed for good one more attempt, and those that they took with them their wait.

        What comes back can never start all the same.
        """
        failed, dropped = tuple(failed), sorted(dropped, key=lambda job: job.number)
        for job in (*(attempt.job for attempt in failed), *dropped):
            self._dependencies.forget(job.number)
            self._not_again.discard(job.number)
        for job, number, *_ in failed:
            self._begins[job.number] = Begin(number + 1, self._begins.get(job.number, _AT_FIRST).excused)
            self._lineup.push(self._place(job))
        return tuple(lost for job in dropped for lost in self.add(job))

    def lose(self, gpu: str) -> None:
        """A GPU is of no use any more."""
        self._slots.lose(gpu)

    def drop_unfit(self) -> tuple[Dropped, ...]:
        """The waiting jobs that can never start since GPUs were lost."""
        if not self._slots.lost:
            return ()
        needs = self._lineup.in_order()
        unfit = [need for need in needs if not self._slots.could_ever_fit(self._lineup.first(need).job)]
        lost = [waiting.job for need in unfit for waiting in self._lineup.pop_all(need)]
        return tuple(dropped for job in lost for dropped in self._drop(job, _TOO_FEW))

    def cancel(self, number: int) -> tuple[Dropped, ...]:
        """Take a waiting job out, and with it those that wait for it; nothing when there is no such job."""
        job = self._lineup.remove(number) or self._dependencies.take(number)
        for at, (_, delayed, waiting) in enumerate(self._delayed):
            if delayed == number:
                job = waiting.job
                del self._delayed[at]
                heapify(self._delayed)
                break
        return self._drop(job, "it was cancelled") if job else ()

    def give_up_on(self, number: int) -> None:
        """A job is not to be tried again when it ends, whatever it does."""
        self._not_again.add(number)

    def next_wake(self, now: float) -> float:
        """When `plan` may have something to start though nothing has happened; infinity for never."""
        if self._stopped or self.is_paused:
            return _NEVER
        retry = self._delayed[0][0] if self._delayed else _NEVER
        start = self._no_start_before if self._lineup and self._no_start_before > now else _NEVER
        return min(retry, start)

    def end(self, attempt: Attempt, outcome: Outcome, now: float) -> Verdict:
        """An attempt has ended and nothing of it is left."""
        self._leave(attempt)
        job = attempt.job
        if outcome.kind == "succeeded":
            self._dependencies.remember(job, succeeded=True)
            for released in self._dependencies.release(job.number):
                self._lineup.push(self._place(released))
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
        if attempt.job.number in self._not_again or outcome.kind == "not started" or self._stopped:
            return False
        return attempt.number - self._begins.get(attempt.job.number, _AT_FIRST).excused <= retries

    def _place(self, job: Job, attempt: int = 0) -> Waiting:
        attempt = attempt or self._begins.get(job.number, _AT_FIRST).attempt
        return Waiting(self._rank(job), job.number, attempt, job)

    def _next_start(self, rooms: Rooms) -> Attempt | None:
        """The first job in the order that fits, and the first that does not keeps its place.

        That one holds a place on every GPU with room, so that those behind it that need less cannot starve it; but not
        when others occupy so much that it could not start even if all our own jobs ended.
        """
        held = Held()
        for need in self._lineup.in_order():
            width, mem = need
            positions = self._slots.with_places(rooms, mem, held) if width else []
            if self._slots.has_cpu() if not width else len(positions) >= width:
                return self._start(need, positions)
            if width and not held.places and self._slots.within_reach(rooms, mem) >= width:
                held = Held(1, mem)
        return None

    def _start(self, need: Need, positions: list[int]) -> Attempt:
        waiting = self._lineup.pop(need)
        attempt = self._slots.take(waiting.job, waiting.attempt, positions)
        self._running[attempt.key] = attempt
        return attempt

    def _drop(self, job: Job, reason: str) -> tuple[Dropped, ...]:
        _, *others = self._dependencies.fail(job)
        return Dropped(job, reason), *(Dropped(other, f"job {job.number} did not succeed") for other in others)
