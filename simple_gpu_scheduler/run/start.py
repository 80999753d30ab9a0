"""From the scheduler's choice to an attempt under way: choose, take the places, and only then commit."""

from simple_gpu_scheduler.events import JobStarted
from simple_gpu_scheduler.scheduling.backfill import Choice

from . import attempts, gpu_watch
from .ends import drop
from .state import State


def start_what_fits(state: State) -> None:
    """Ask the scheduler until it would start nothing more."""
    if not state.ledger.is_stopping:
        gpu_watch.review(state)
    if state.starts:
        _start_all(state, state.clock.now())
    gpu_watch.tend(state)
    drop(state, state.scheduler.drop_unfit())


def _start_all(state: State, now: float) -> None:
    rooms = gpu_watch.rooms(state)
    while choice := state.scheduler.next(now, rooms):
        if not _start(state, choice, now):  # another scheduler or user was faster, so the rooms have changed
            rooms = gpu_watch.rooms(state)


def _start(state: State, choice: Choice, now: float) -> bool:
    """Take the places first, and only then commit; False if they could not be taken."""
    attempt = choice.attempt
    if not state.engine.take(attempt, now):
        return False
    if attempt.job.mem and not state.scheduler.fits(attempt, gpu_watch.rooms(state)):
        state.engine.release(attempt)
        return False
    state.scheduler.start(choice, now)
    state.publish(JobStarted(attempt, state.rules.log_of(attempt.job)))
    attempts.start(state, attempt)
    return True
