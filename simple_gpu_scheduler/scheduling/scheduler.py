"""The pure decision: which waiting job starts where, now; and what follows from the end of an attempt.

`next` chooses an attempt and changes nothing. The caller takes its places, and only then does `start` commit it.

Every change of a job's state is made here, from values that are passed in, time included. It knows nothing of clocks,
threads or processes; what others use is in `rooms`, the GPUs that they leave free.
"""

from simple_gpu_scheduler.base.jobs import Attempt, Job, Outcome
from simple_gpu_scheduler.base.stdlib import heapify, heappop, heappush
from simple_gpu_scheduler.base.values import Collection, Iterable, NamedTuple
from simple_gpu_scheduler.scheduling.policies import Policy, WaitingJob

from . import AT_FIRST, Dropped, NextAttempt, Rules, Verdict
from .backfill import Choice, Front, choose
from .dependencies import Dependencies
from .estimates import UNKNOWN, Estimates, History, own_estimate
from .peaks import PeakHistory, Peaks
from .queues import Label, Lineup
from .slots import Limits, Need, Rooms, Slots

_NEVER = float("inf")
_TOO_FEW = "it needs more or larger GPUs than are left"


class _Running(NamedTuple):
    """A running attempt. One started by an earlier scheduler never waited here."""

    attempt: Attempt
    since: float
    waiting: WaitingJob | None

    @property
    def arrived(self) -> float:
        """When its job came, which is its place in the order if it waits again."""
        return (self.waiting or self).since


class _Delayed(NamedTuple):
    """A job that waits for its retry delay."""

    due: float
    number: int
    job: Job
    attempt: int
    since: float


class Scheduler:
    """The waiting and the running jobs of one run."""

    def __init__(
        self,
        limits: Limits,
        policy: Policy,
        rules: Rules = Rules(),  # noqa: B008 - frozen
        estimates: Estimates | None = None,
        label: Label = lambda _job: "",
    ) -> None:
        self._slots = Slots(limits)
        self._rules = rules
        self._peaks = Peaks(self._slots.largest, shares=self._slots.are_shared)
        self._lineup = Lineup(policy, estimates or Estimates(), label, self._slots.need, self._peaks)
        self._delayed: list[_Delayed] = []
        self._dependencies = Dependencies()
        self._running: dict[tuple[int, int], _Running] = {}
        self._since: dict[int, float] = {}  # arrival of jobs that wait for others, or may be retried
        self._now = 0.0  # the latest time passed in
        self._next_attempts: dict[int, NextAttempt] = {}
        self._not_again: set[int] = set()
        self._no_start_before = float("-inf")
        self._front: Front | None = None  # the job passed by the last start, until something else happens

    @property
    def waiting(self) -> int:
        """How many jobs have yet to start."""
        return len(self._lineup) + len(self._dependencies) + len(self._delayed)

    @property
    def gpus(self) -> Collection[str]:
        """All GPUs of the run."""
        return self._slots.gpus

    @property
    def running(self) -> Collection[Attempt]:
        """The running attempts, oldest first."""
        return [each.attempt for each in self._running.values()]

    @property
    def wants(self) -> Need:
        """How many GPUs the widest job needs among those waiting only for GPUs, and the most memory that one needs."""
        return self._lineup.most

    def remember(self, job: Job, next_attempt: NextAttempt = AT_FIRST, *, succeeded: bool) -> None:
        """A job ended before; others may depend on it. `next_attempt`: where it resumes if it is retried."""
        self._dependencies.remember(job, succeeded=succeeded)
        if not succeeded:
            self._continue_at(job, next_attempt)

    def resume(self, attempt: Attempt, excused: int, now: float) -> None:
        """An attempt of an earlier scheduler is still running. It takes no slot here; `end` it like any other."""
        self._continue_at(attempt.job, NextAttempt(attempt.number, excused))
        self._running[attempt.key] = _Running(attempt, now, None)

    def begin(self, attempt: Attempt, now: float) -> None:
        """An attempt that waited in a cluster's queue runs now: its length counts from here."""
        self._running[attempt.key] = self._running[attempt.key]._replace(since=now)

    def interrupt(self, attempt: Attempt, now: float) -> None:
        """An attempt ended without a result: the job runs again, and the attempt does not count."""
        since = self._leave(attempt, now).arrived
        excused = self._next_attempts.get(attempt.job.number, AT_FIRST).excused
        self._next_attempts[attempt.job.number] = NextAttempt(attempt.number + 1, excused + 1)
        self._line_up(attempt.job, since)

    def postpone(self, attempt: Attempt, now: float) -> None:
        """An attempt could not be started now: it waits again, in its old place."""
        self._lineup.add(attempt.job, attempt.number, self._leave(attempt, now).arrived)

    @property
    def asks_lengths(self) -> bool:
        """Whether lengths matter."""
        return self._lineup.by_length

    @property
    def asks_peaks(self) -> bool:
        """Whether it matters how much memory jobs need."""
        return self._peaks.is_asked

    @property
    def waits_for_peaks(self) -> bool:
        """Whether jobs wait that go by the memory of others."""
        return self._peaks.has_waiting

    def add_history(self, history: History, peaks: PeakHistory | None = None) -> None:
        """Take in how long such jobs took in earlier runs, and how much memory they needed."""
        self._front = None
        self._lineup.add_history(history)
        self._lineup.add_peaks(peaks or {})
        for attempt, since, waiting in self._running.values():
            if waiting:
                self._slots.expect(attempt, since + self._lineup.estimate_of(attempt.job))

    def add(self, job: Job, now: float, next_attempt: NextAttempt = AT_FIRST) -> tuple[Dropped, ...]:
        """Add a job. The jobs returned can never start."""
        self._now = max(self._now, now)
        if next_attempt != AT_FIRST:
            self._continue_at(job, next_attempt)
        if not job.after:
            self._line_up(job, now)
            return ()
        if self._dependencies.have_failed(job):
            return self._drop(job, "a job it depends on did not succeed")
        if self._dependencies.block(job):
            self._since[job.number] = now
        else:
            self._line_up(job, now)
        return ()

    def next(self, now: float, rooms: Rooms) -> Choice | None:
        """The attempt to start next, on GPUs that others leave free; None if nothing can start now.

        This changes nothing: asked again, it gives the same answer. If rooms change, pass a new mapping.
        """
        self._now = now
        while self._delayed and self._delayed[0].due <= now:
            self._front = None
            self._lineup.add(*heappop(self._delayed)[2:])
        if now < self._no_start_before:
            return None
        if self._slots.is_capped:
            outlived = sum(len(each.attempt.gpus) for each in self._running.values() if each.waiting is None)
            rooms = self._slots.within_cap(rooms, outlived)
        return choose(self._lineup, self._slots, rooms, now, self._front)

    def fits(self, attempt: Attempt, rooms: Rooms) -> bool:
        """Whether an attempt that was chosen still has the memory that it needs, after a closer look at its GPUs."""
        return self._slots.fits(attempt, rooms)

    def start(self, choice: Choice, now: float) -> None:
        """Commit what `next` has just chosen: from here on the attempt runs."""
        waiting, attempt, self._front = choice
        # A lineup that is not `by_length` looks up no estimates.
        estimate = own_estimate(waiting.job) if waiting.estimate == UNKNOWN else waiting.estimate
        self._slots.take(attempt, now + estimate)
        self._lineup.take(waiting, now, passes=self._front is not None and waiting.kind[0] > 0)
        self._running[attempt.key] = _Running(attempt, now, waiting)
        self._no_start_before = now + self._rules.delay

    def try_again(self, failed: Iterable[Attempt], dropped: Iterable[Job]) -> tuple[Dropped, ...]:
        """Give jobs that failed for good one more attempt, and let the jobs dropped because of them wait again.

        The jobs returned can never start anyway.
        """
        failed, dropped = tuple(failed), sorted(dropped, key=lambda job: job.number)
        for job in (*(attempt.job for attempt in failed), *dropped):
            self._dependencies.forget(job.number)
            self._not_again.discard(job.number)
        for job, number, *_ in failed:
            self._next_attempts[job.number] = NextAttempt(
                number + 1, self._next_attempts.get(job.number, AT_FIRST).excused
            )
            self._line_up(job, self._since.pop(job.number, self._now))
        return tuple(lost for job in dropped for lost in self.add(job, self._since.pop(job.number, self._now)))

    def lose(self, gpu: str) -> None:
        """A GPU is at fault, and will not be used any more."""
        self._slots.lose(gpu)
        self._front = None
        self._lineup.claim_anew()

    def drop_unfit(self) -> tuple[Dropped, ...]:
        """The waiting jobs that can never start since GPUs are at fault."""
        if not self._slots.lost:
            return ()
        self._front = None
        return tuple(
            lost for need in self._unfit() for job in self._lineup.pop_all(need) for lost in self._drop(job, _TOO_FEW)
        )

    @property
    def has_unfit(self) -> bool:
        """Whether a waiting job needs more than there is: an earlier scheduler of this run had more GPUs."""
        return bool(self._unfit())

    def _unfit(self) -> list[Need]:
        return [need for need in sorted(self._lineup.needs()) if not self._slots.could_ever_fit(*need)]

    def cancel(self, number: int) -> tuple[Dropped, ...]:
        """Remove a waiting job and the jobs that depend on it; nothing if there is no such job."""
        self._front = None
        job = self._lineup.remove(number) or self._dependencies.take(number)
        for delayed in [each for each in self._delayed if each.number == number]:
            job = delayed.job
            self._delayed.remove(delayed)
            heapify(self._delayed)
        return self._drop(job, "it was cancelled") if job else ()

    def give_up_on(self, number: int) -> None:
        """A job is not to be retried, however it ends."""
        self._not_again.add(number)

    def next_wake(self, now: float) -> float:
        """When `next` may have something to start even if nothing happens; infinity for never."""
        start = self._no_start_before if self._lineup and self._no_start_before > now else _NEVER
        return min(self._delayed[0].due if self._delayed else _NEVER, start)

    def end(
        self, attempt: Attempt, outcome: Outcome, now: float, *, is_interrupted: bool = False, peak: float | None = None
    ) -> Verdict:
        """An attempt has ended, and nothing of it is left. What depends on one that `is_interrupted` keeps waiting.

        `peak` is the most memory that it used on one of its GPUs, if that was measured.
        """
        self._now = now
        job, running = attempt.job, self._leave(attempt, now)
        succeeded = outcome.kind == "succeeded"
        if running.waiting:
            self._lineup.learn(running.waiting, now - running.since, succeeded=succeeded)
        if succeeded:
            if peak is not None and attempt.gpus and running.waiting:  # of others, only the rest was seen
                self._lineup.learn_peak(job, peak)
            if job.name:  # no job can depend on one without a name
                self._dependencies.remember(job, succeeded=True)
                for released in self._dependencies.release(job.number):
                    self._line_up(released, self._since.pop(released.number, now))
            return Verdict(retries=False)
        since = running.arrived
        if not is_interrupted:
            self._peaks.distrust(job)
        if not is_interrupted and self._has_retries(attempt, outcome):
            heappush(self._delayed, _Delayed(now + self._rules.retry_delay, job.number, job, attempt.number + 1, since))
            return Verdict(retries=True)
        self._since[job.number] = since
        return Verdict(retries=False, dropped=() if is_interrupted else self._drop(job, "")[1:])

    def _continue_at(self, job: Job, next_attempt: NextAttempt) -> None:
        """An earlier scheduler tried a job."""
        self._next_attempts[job.number] = next_attempt
        if next_attempt.has_failed or next_attempt.attempt - 1 > next_attempt.excused:
            self._peaks.distrust(job)

    def _leave(self, attempt: Attempt, now: float) -> _Running:
        self._front = None
        running = self._running.pop(attempt.key)
        self._slots.give_back(attempt)
        if running.waiting:
            self._lineup.gave_back(running.waiting, now)
        return running

    def _has_retries(self, attempt: Attempt, outcome: Outcome) -> bool:
        retries = self._rules.retries if attempt.job.retries is None else attempt.job.retries
        may = not (attempt.job.number in self._not_again or outcome.kind == "not started")
        return may and attempt.number - self._next_attempts.get(attempt.job.number, AT_FIRST).excused <= retries

    def _line_up(self, job: Job, since: float) -> None:
        self._front = None
        self._lineup.add(job, self._next_attempts.get(job.number, AT_FIRST).attempt, since)

    def _drop(self, job: Job, reason: str) -> tuple[Dropped, ...]:
        _, *others = self._dependencies.fail(job)
        name = f' "{job.name}"' if job.name else ""
        return Dropped(job, reason), *(Dropped(other, f"job {job.number}{name} did not succeed") for other in others)
