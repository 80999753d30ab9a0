"""What the end of an attempt leads to: another attempt, or the last word on the job and on those that wait for it.

It publishes the events. It acts for the loop, in its thread, and knows no clock and no engine.
"""

from collections.abc import Iterable, Mapping

from simple_gpu_scheduler.base.jobs import Attempt, Ending, Job, Outcome
from simple_gpu_scheduler.events import JobDropped, JobEnded, JobRequeued
from simple_gpu_scheduler.events.ledger import End
from simple_gpu_scheduler.events.publisher import Publisher
from simple_gpu_scheduler.scheduling import Dropped
from simple_gpu_scheduler.scheduling.scheduler import Scheduler


class Outcomes:
    """Of one run."""

    def __init__(self, scheduler: Scheduler, publisher: Publisher) -> None:
        self._scheduler = scheduler
        self._publisher = publisher
        self._ledger = publisher.ledger

    @property
    def failed(self) -> Mapping[int, End]:
        """The jobs that did not succeed, for those who want them tried again."""
        return self._ledger.ended

    def ended(
        self, attempt: Attempt, outcome: Outcome, began_at: float, runtime: float, now: float, ending: Ending
    ) -> tuple[JobEnded, tuple[Dropped, ...]]:
        """An attempt has ended: the event, which is published, and the jobs that will never start therefore."""
        interrupted = ending == "stopped" and outcome.kind != "succeeded"
        verdict = self._scheduler.end(attempt, outcome, now, is_interrupted=interrupted)
        event = JobEnded(attempt, outcome, began_at, runtime, not verdict.retries, interrupted, ending == "cancelled")
        self._publisher.publish(event)
        self.drop(verdict.dropped)
        return event, verdict.dropped

    def drop(self, dropped: Iterable[Dropped], *, is_cancelled: bool = False) -> None:
        """These will never start; of one that has failed before, that is its last word."""
        for job, reason in dropped:
            failed = self._ledger.to_retry.get(job.number)
            if failed:
                self._publisher.publish(failed._replace(is_final=True, is_cancelled=is_cancelled))
            else:
                self._publisher.publish(JobDropped(job, reason, is_cancelled))

    def give_up_retries(self) -> None:
        """The run was stopped: a job that was to be tried again waits until it is resumed."""
        for event in tuple(self._ledger.to_retry.values()):
            self._publisher.publish(event._replace(is_final=True, is_interrupted=True))

    def requeue(self, failed: Iterable[Attempt], dropped: Iterable[Job], why: str) -> None:
        """Jobs that had come to their end are to be tried all the same."""
        failed, dropped = tuple(failed), tuple(dropped)
        for job in (*(attempt.job for attempt in failed), *dropped):
            self._publisher.publish(JobRequeued(job, why))
        self.drop(self._scheduler.try_again(failed, dropped))
