"""What became of each job: a fold over the events; source of counts, summary, exit code and status. Pure.

The rule is in docs/decisions/events.md. Of jobs that succeeded it keeps only the count, since a run may have a
million jobs. It has no clock: `now` is passed in, and only tells since when something has been running.
"""

from simple_gpu_scheduler.base.errors import BAD_INPUT, BY_SIGNAL, SOME_DID_NOT_SUCCEED, SUCCEEDED
from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import Attempt, Fate, Job, Kind
from simple_gpu_scheduler.base.values import Any, Callable, Literal, Mapping, NamedTuple, Sequence

from . import (
    AllRead,
    Event,
    JobBegan,
    JobDropped,
    JobEnded,
    JobRequeued,
    JobsRead,
    JobStarted,
    LeftBehind,
    LineRefused,
    Noticed,
    Paused,
    RunEnded,
    RunResumed,
    StartRefused,
    StopAsked,
    Waited,
    WaitsSeen,
)
from .eta import Eta, Lengths, eta_of

State = Literal["waiting", "running", "succeeded", "failed", "not started", "cancelled", "interrupted"]
_STATES: Mapping[Fate, State] = {
    "succeeded": "succeeded",
    "failed": "failed",
    "killed": "failed",
    "timed out": "failed",
    "stalled": "failed",
    "not started": "not started",
    "cancelled": "cancelled",
}


def fate_of(kind: Kind, *, is_cancelled: bool) -> Fate:
    """What became of a job whose last attempt ended like this. A success counts even if it was cancelled."""
    return "cancelled" if is_cancelled and kind != "succeeded" else kind


def state_after(
    kind: Kind, *, is_final: bool = True, is_interrupted: bool = False, is_cancelled: bool = False
) -> State:
    """The state of a job after an attempt ended, or, for "not started", after the job was dropped."""
    if is_interrupted:
        return "interrupted"
    if not is_final:
        return "waiting"
    return _STATES[fate_of(kind, is_cancelled=is_cancelled)]


class Started(NamedTuple):
    """A running attempt, when it started by the reader's clock, and its log."""

    attempt: Attempt
    since: float
    log: str = ""


class End(NamedTuple):
    """A job that ended without success, and its last attempt if this scheduler made one."""

    attempt: Attempt | None
    job: Job
    fate: Fate
    is_earlier: bool = False  # it ended before this scheduler started


class Counts(NamedTuple):
    """How many jobs there are of each kind. Killed jobs count as `failed`, refused lines as `not_started`."""

    waiting: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    timed_out: int = 0
    not_started: int = 0
    cancelled: int = 0
    interrupted: int = 0
    stalled: int = 0

    @property
    def unsuccessful(self) -> int:
        """Jobs that ended without success."""
        return self.failed + self.timed_out + self.stalled + self.not_started + self.cancelled

    @property
    def total(self) -> int:
        """All jobs that were read."""
        return self.waiting + self.interrupted + self.running + self.succeeded + self.unsuccessful

    def by_state(self) -> dict[State, int]:
        """The same, by job state."""
        return {
            "waiting": self.waiting,
            "running": self.running,
            "succeeded": self.succeeded,
            "failed": self.failed + self.timed_out + self.stalled,
            "not started": self.not_started,
            "cancelled": self.cancelled,
            "interrupted": self.interrupted,
        }


class Ledger:
    """Covers one scheduler's part of a run: what earlier schedulers left arrives as one event.

    `ended` holds the jobs that ended without success, `to_retry` the failures whose jobs wait for another attempt, and
    `interrupted` those of the waiting jobs that had started and wait because the run was stopped.
    """

    def __init__(self) -> None:
        self.waiting: dict[int, Job] = {}
        self.running: dict[tuple[int, int], Started] = {}
        self.ended: dict[int, End] = {}
        self.to_retry: dict[int, JobEnded] = {}
        self.interrupted: set[int] = set()
        self.refused: set[int] = set()
        self.last_read = 0
        self.waits: Sequence[Wait] = ()
        self.is_paused = self.is_stopping = self.is_over = self.all_read = False
        self.has_trouble = False  # something other than a job went wrong, which the exit code shows
        self.has_bad_input = False  # part of the input was not read
        self._fates: dict[Fate, int] = dict.fromkeys(_STATES, 0)
        self._failed_earlier = 0
        self._lengths = Lengths()
        self._on: Mapping[type, Callable[[Any, float], None]] = {
            JobsRead: lambda event, _now: self._read(event.jobs),
            LineRefused: lambda event, _now: self._refuse(event.number),
            AllRead: lambda _event, _now: setattr(self, "all_read", True),
            RunResumed: self._resume,
            JobStarted: self._start,
            JobBegan: self._begin,
            JobEnded: self._end,
            JobDropped: self._drop,
            StartRefused: lambda event, _now: self._requeue(event.attempt.job),
            JobRequeued: lambda event, _now: self._requeue(event.job),
            Waited: lambda event, _now: setattr(self, "waits", event.waits),
            WaitsSeen: lambda event, _now: setattr(self, "waits", event.waits),
            Paused: lambda event, _now: setattr(self, "is_paused", event.is_paused),
            StopAsked: lambda _event, _now: setattr(self, "is_stopping", True),
            LeftBehind: lambda event, _now: self._trouble(is_one=bool(event.beyond_us)),
            Noticed: lambda event, _now: self._notice(event),
            RunEnded: lambda _event, _now: setattr(self, "is_over", True),
        }

    def take(self, event: Event, now: float = 0.0) -> None:
        """One event."""
        act = self._on.get(type(event))
        if act:
            act(event, now)

    def counts(self) -> Counts:
        """The counts now."""
        fates = self._fates
        return Counts(
            len(self.waiting) - len(self.interrupted),
            len(self.running),
            fates["succeeded"],
            fates["failed"] + fates["killed"],
            fates["timed out"],
            fates["not started"] + len(self.refused),
            fates["cancelled"],
            len(self.interrupted),
            fates["stalled"],
        )

    @property
    def failed(self) -> int:
        """How many jobs ran under this scheduler and failed, which is what `--halt` counts."""
        failed = [count for fate, count in self._fates.items() if _STATES[fate] == "failed"]
        return sum(failed) - self._failed_earlier

    def state_of(self, number: int) -> State | None:
        """The state of a job; None if there is no such number."""
        if number in self.waiting:
            return "interrupted" if number in self.interrupted else "waiting"
        if number in self.ended:
            return _STATES[self.ended[number].fate]
        if number in self.refused or not 0 < number <= self.last_read:
            return None
        return "running" if self._attempts_at(number) else "succeeded"

    def eta(self, running: Sequence[tuple[Job, float]]) -> Eta:
        """When all will be done, given the running jobs and how long each has run."""
        known = self._lengths.known(running, len(self.waiting))
        return eta_of(known, starts=not (self.is_paused or self.is_stopping), all_read=self.all_read)

    def summary(self, elapsed: float, signal: int) -> RunEnded:
        """The last event; jobs that still wait were not started, or were interrupted."""
        counts = self.counts()
        return RunEnded(
            counts.succeeded,
            counts.failed,
            counts.timed_out,
            counts.not_started + counts.waiting,
            elapsed,
            self.all_read and not self.has_bad_input,
            self.exit_code(signal),
            left=counts.waiting + counts.interrupted,
            cancelled=counts.cancelled,
            interrupted=counts.interrupted,
            stalled=counts.stalled,
        )

    def exit_code(self, signal: int) -> int:
        """The truth in one number; `signal` is the one that stopped the run, or 0."""
        if signal:
            return BY_SIGNAL + signal
        if self.refused or self.has_bad_input:
            return BAD_INPUT
        return SOME_DID_NOT_SUCCEED if self.has_trouble or self.ended or self.waiting else SUCCEEDED

    def _read(self, jobs: Sequence[Job]) -> None:
        if not jobs:
            return
        self.last_read = max(self.last_read, jobs[-1].number)
        self.all_read = False
        for job in jobs:
            self._wait(job)

    def _refuse(self, number: int) -> None:
        self.last_read = max(self.last_read, number)
        self.all_read = False
        self.refused.add(number)

    def _resume(self, event: RunResumed, now: float) -> None:
        for job, fate in event.ended:
            self._settle(End(None, job, fate, is_earlier=True))
        for length in event.lengths:
            self._lengths.succeeded(length)
        for attempt, runtime, log in event.running:
            self.running[attempt.key] = Started(attempt, now - runtime, log)
        for job in event.waiting:
            self._wait(job)
        self.refused.update(event.refused)
        jobs = (*(job for job, _ in event.ended), *(each[0].job for each in event.running), *event.waiting)
        self.last_read = max((self.last_read, *event.refused, *(job.number for job in jobs)))

    def _start(self, event: JobStarted, now: float) -> None:
        self._wait_no_more(event.attempt.job.number)
        self.running[event.attempt.key] = Started(event.attempt, now, event.log)

    def _begin(self, event: JobBegan, now: float) -> None:
        key = event.attempt.key
        self.running[key] = self.running[key]._replace(since=now)

    def _end(self, event: JobEnded, _now: float) -> None:
        attempt, kind = event.attempt, event.outcome.kind
        job = attempt.job
        self.running.pop(attempt.key, None)
        if kind == "succeeded":  # a job that fails in its first second tells nothing about the others
            self._lengths.succeeded(event.length)
        if event.is_interrupted:
            self._wait(job)
            self.interrupted.add(job.number)
        elif event.is_final:
            self._wait_no_more(job.number)
            self._settle(End(attempt, job, fate_of(kind, is_cancelled=event.is_cancelled)))
        else:
            self._wait(job)
            self.to_retry[job.number] = event

    def _drop(self, event: JobDropped, _now: float) -> None:
        self._wait_no_more(event.job.number)
        self._settle(End(None, event.job, fate_of("not started", is_cancelled=event.is_cancelled)))

    def _requeue(self, job: Job) -> None:
        end = self.ended.pop(job.number, None)
        if end:
            self._fates[end.fate] -= 1
            self._failed_earlier -= _is_earlier_failure(end)
        for key in self._attempts_at(job.number):  # it belonged to another scheduler, and its end is unknown
            del self.running[key]
        self._wait(job)

    def _attempts_at(self, number: int) -> list[tuple[int, int]]:
        return [key for key in self.running if key[0] == number]

    def _settle(self, end: End) -> None:
        self._fates[end.fate] += 1
        if end.fate != "succeeded":
            self.ended[end.job.number] = end
            self._failed_earlier += _is_earlier_failure(end)

    def _wait(self, job: Job) -> None:
        self._wait_no_more(job.number)
        self.waiting[job.number] = job
        if job.time is not None:
            self._lengths.expect(job.time)

    def _wait_no_more(self, number: int) -> None:
        job = self.waiting.pop(number, None)
        if job is None:
            return
        if job.time is not None:
            self._lengths.expect_no_more(job.time)
        self.to_retry.pop(number, None)
        self.interrupted.discard(number)

    def _notice(self, event: Noticed) -> None:
        self._trouble(is_one=event.is_failure)
        self.has_bad_input = self.has_bad_input or event.is_bad_input

    def _trouble(self, *, is_one: bool) -> None:
        self.has_trouble = self.has_trouble or is_one


def _is_earlier_failure(end: End) -> bool:
    return end.is_earlier and _STATES[end.fate] == "failed"
