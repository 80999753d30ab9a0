"""What the live view knows of a run: told by events, and no more of it than can be seen. Pure; it draws nothing.

What it costs depends on what runs and not on what waits.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import Attempt
from simple_gpu_scheduler.events import (
    AllRead,
    Event,
    JobDropped,
    JobEnded,
    JobRequeued,
    JobsRead,
    JobStarted,
    LineRefused,
    Paused,
    RunEnded,
    StopAsked,
    TakenOver,
    Waited,
)
from simple_gpu_scheduler.events.eta import Eta, Progress, estimate


class UnderWay(NamedTuple):
    """An attempt that runs, since when by the view's clock, and its log."""

    attempt: Attempt
    began: float
    log: str = ""


class Counts(NamedTuple):
    """Jobs by how they stand; `total` are those that were read, of more to come unless `all_read`."""

    succeeded: int
    failed: int
    not_started: int
    running: int
    waiting: int
    total: int
    all_read: bool


class Board:
    """Told of each event."""

    def __init__(self) -> None:
        self.running: dict[tuple[int, int], UnderWay] = {}
        self.waits: Sequence[Wait] = ()
        self.is_paused = self.is_stopping = self.is_over = False
        self._all_read = False
        self._read = self._succeeded = self._failed = self._not_started = 0
        self._did_not_start: set[int] = set()  # of these a requeued one is, or it had failed
        self._progress = Progress()
        self._on: Mapping[type, Callable[[Any, float], None]] = {
            JobsRead: lambda event, _now: self._count_read(len(event.jobs)),
            LineRefused: lambda event, _now: self._refuse(event.number),
            TakenOver: self._take_over,
            JobStarted: self._start,
            JobEnded: self._end,
            JobDropped: lambda event, _now: self._drop(event.job.number),
            JobRequeued: self._requeue,
            Waited: lambda event, _now: setattr(self, "waits", event.waits),
            Paused: lambda event, _now: setattr(self, "is_paused", event.is_paused),
            StopAsked: lambda _event, _now: setattr(self, "is_stopping", True),
            AllRead: lambda _event, _now: setattr(self, "_all_read", True),
            RunEnded: lambda _event, _now: setattr(self, "is_over", True),
        }

    def take(self, event: Event, now: float) -> None:
        """One event."""
        act = self._on.get(type(event))
        if act:
            act(event, now)
        self._progress.take(event)

    def counts(self) -> Counts:
        """How the jobs stand."""
        running = len(self.running)
        waiting = self._read - self._succeeded - self._failed - self._not_started - running
        ended = (self._succeeded, self._failed, self._not_started)
        return Counts(*ended, running, max(0, waiting), self._read, self._all_read)

    def eta(self, now: float) -> Eta:
        """When all will be done."""
        running = [(each.attempt.job, now - each.began) for each in self.running.values()]
        known = self._progress.known(running, self.counts().waiting)
        return estimate(known, starts=not (self.is_paused or self.is_stopping), all_read=self._all_read)

    def _count_read(self, jobs: int) -> None:
        self._read += jobs
        self._all_read = False if jobs else self._all_read

    def _refuse(self, number: int) -> None:
        self._count_read(1)
        self._drop(number)

    def _drop(self, number: int) -> None:
        self._not_started += 1
        self._did_not_start.add(number)

    def _take_over(self, event: TakenOver, now: float) -> None:
        self._succeeded, self._failed, self._not_started = event.succeeded, event.failed, event.not_started
        self._read += sum(event[:3]) + len(event.running) + len(event.waiting)
        for attempt, runtime, log in event.running:
            self.running[attempt.key] = UnderWay(attempt, now - runtime, log)
        self._did_not_start.update(event.dropped)
        self._progress.take(JobsRead(event.waiting))

    def _start(self, event: JobStarted, now: float) -> None:
        self.running[event.attempt.key] = UnderWay(event.attempt, now, event.log)

    def _end(self, event: JobEnded, _now: float) -> None:
        number = event.attempt.job.number
        self.running.pop(event.attempt.key, None)
        if not event.is_final or event.is_interrupted:
            return
        if event.outcome.kind == "succeeded":
            self._succeeded += 1
        elif event.outcome.kind == "not started":
            self._drop(number)
        else:
            self._failed += 1

    def _requeue(self, event: JobRequeued, _now: float) -> None:
        number = event.job.number
        outlived = [key for key in self.running if key[0] == number]
        if outlived:  # it was another scheduler's, and nobody knows how it ended
            del self.running[outlived[0]]
        elif number in self._did_not_start:
            self._did_not_start.discard(number)
            self._not_started -= 1
        else:
            self._failed -= 1
