"""What follows from the end of an attempt: a retry, or the end of the job and of jobs that depend on it."""

from simple_gpu_scheduler.base.jobs import Attempt, Job, Outcome
from simple_gpu_scheduler.base.values import Iterable
from simple_gpu_scheduler.events import JobDropped, JobEnded, JobRequeued, StartRefused
from simple_gpu_scheduler.scheduling import Dropped

from .state import State, UnderWay


def conclude(
    state: State, run: UnderWay, outcome: Outcome, peak: int | None = None
) -> tuple[JobEnded, tuple[Dropped, ...]]:
    """Publish the end of an attempt. Returns the event, and the jobs that will never start because of it.

    `peak` is the most memory that it used on one of its GPUs, if that is known and matters.
    """
    now, attempt = state.clock.now(), run.attempt
    interrupted = run.ending == "stopped" and outcome.kind != "succeeded"
    verdict = state.scheduler.end(attempt, outcome, now, is_interrupted=interrupted, peak=peak)
    event = JobEnded(
        attempt,
        outcome,
        run.began_at,
        run.runtime(now),
        not verdict.retries,
        interrupted,
        run.ending == "cancelled",
        is_left=verdict.retries and state.ledger.is_stopping,
    )
    state.publish(event)
    drop(state, verdict.dropped)
    return event, verdict.dropped


def interrupt(state: State, attempt: Attempt, why: str) -> None:
    """An attempt ended without a result: its job runs again."""
    state.scheduler.interrupt(attempt, state.clock.now())
    state.publish(JobRequeued(attempt.job, why))


def postpone(state: State, attempt: Attempt, why: str) -> None:
    """The system refused to start an attempt: its job waits, and nothing counts."""
    state.scheduler.postpone(attempt, state.clock.now())
    state.publish(StartRefused(attempt, why))


def drop(state: State, dropped: Iterable[Dropped], *, is_cancelled: bool = False) -> None:
    """These jobs will never start; for a job that failed before, that was its last attempt."""
    for job, reason in dropped:
        failed = state.ledger.to_retry.get(job.number)
        if failed:
            state.publish(failed._replace(is_final=True, is_cancelled=is_cancelled))
        else:
            state.publish(JobDropped(job, reason, is_cancelled))


def give_up_retries(state: State) -> None:
    """The run was stopped: jobs waiting for a retry now wait until the run is resumed."""
    for event in tuple(state.ledger.to_retry.values()):
        state.publish(event._replace(is_final=True, is_interrupted=True, is_left=True))


def requeue(state: State, failed: Iterable[Attempt], dropped: Iterable[Job], why: str) -> None:
    """Let jobs that were over run again."""
    failed, dropped = tuple(failed), tuple(dropped)
    for job in (*(attempt.job for attempt in failed), *dropped):
        state.publish(JobRequeued(job, why))
    drop(state, state.scheduler.try_again(failed, dropped))
