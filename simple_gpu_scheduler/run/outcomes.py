"""What the end of an attempt leads to: another attempt, or the last word on the job and on those that wait for it.

It keeps the counts and publishes the events. It acts for the loop, in its thread, and knows no clock and no engine.
"""

from collections.abc import Iterable

from simple_gpu_scheduler.base.jobs import Attempt, Ending, Job, Kind, Outcome
from simple_gpu_scheduler.events import JobDropped, JobEnded, JobRequeued
from simple_gpu_scheduler.events.ledger import Tally
from simple_gpu_scheduler.events.publisher import Publisher
from simple_gpu_scheduler.scheduling import Begin, Dropped
from simple_gpu_scheduler.scheduling.scheduler import Scheduler


class Outcomes:
    """Of one run. `failed` keeps the jobs that did not succeed, for those who want them tried again."""

    def __init__(self, scheduler: Scheduler, publisher: Publisher, tally: Tally) -> None:
        self._scheduler = scheduler
        self._publisher = publisher
        self._tally = tally
        self.interrupted = 0
        self._to_retry: dict[int, JobEnded] = {}
        self.failed: dict[int, tuple[Attempt | None, Job, Kind]] = {}

    def recall(self, job: Job, kind: Kind, begin: Begin) -> None:
        """How a job ended before this scheduler began, and where it would go on if it were tried again."""
        self._tally.read += 1
        self._tally.count(kind)
        self._scheduler.remember(job, begin, succeeded=kind == "succeeded")
        if kind != "succeeded":
            self._tally.excuse(job.number, kind)
            self.failed[job.number] = None, job, kind

    def started(self, attempt: Attempt) -> None:
        """It is being tried; what it did before is no longer its last word."""
        self._to_retry.pop(attempt.job.number, None)
        self.failed.pop(attempt.job.number, None)

    def ended(
        self, attempt: Attempt, outcome: Outcome, began_at: float, runtime: float, now: float, ending: Ending
    ) -> tuple[JobEnded, tuple[Dropped, ...]]:
        """An attempt has ended: the event, which is published, and the jobs that will never start therefore."""
        interrupted = ending == "stopped" and outcome.kind != "succeeded"
        verdict = self._scheduler.end(attempt, outcome, now, is_interrupted=interrupted)
        event = JobEnded(attempt, outcome, began_at, runtime, not verdict.retries, interrupted, ending == "cancelled")
        self._publisher.publish(event)
        self.interrupted += interrupted
        if verdict.retries:
            self._to_retry[attempt.job.number] = event
        else:
            if ending == "cancelled":
                self._tally.excuse(attempt.job.number, outcome.kind)
            self._count(event)
            self.drop(verdict.dropped)
        return event, verdict.dropped

    def drop(self, dropped: Iterable[Dropped], *, is_cancelled: bool = False) -> None:
        """These will never start; of one that has failed before, that is its last word."""
        for job, reason in dropped:
            failed = self._to_retry.pop(job.number, None)
            if failed:
                self._last_word(failed._replace(is_final=True))
            else:
                self._tally.count("not started")
                self.failed[job.number] = None, job, "not started"
                self._publisher.publish(JobDropped(job, reason, is_cancelled))

    def give_up_retries(self) -> None:
        """A job that was to be tried again, when the run was stopped, did what it did at its last attempt."""
        for event in self._to_retry.values():
            self._last_word(event._replace(is_final=True, is_interrupted=True))
        self._tally.count("not started", self._scheduler.waiting - len(self._to_retry))

    def requeue(self, failed: Iterable[Attempt], dropped: Iterable[Job], why: str) -> None:
        """Jobs that had come to their end are to be tried all the same."""
        failed, dropped = tuple(failed), tuple(dropped)
        for job in (*(attempt.job for attempt in failed), *dropped):
            _, _, kind = self.failed.pop(job.number)
            self._tally.take_back(job.number, kind)
            self._publisher.publish(JobRequeued(job, why))
        self.drop(self._scheduler.try_again(failed, dropped))

    def _last_word(self, event: JobEnded) -> None:
        self._publisher.publish(event)
        self._count(event)

    def _count(self, event: JobEnded) -> None:
        kind = event.outcome.kind
        self._tally.count(kind)
        if kind != "succeeded":
            self.failed[event.attempt.job.number] = event.attempt, event.attempt.job, kind
