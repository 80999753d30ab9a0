"""Watches a run's GPUs: sets aside faulty ones, and reports why jobs wait for the others, and who else starts
something on those that its jobs use.

The quarantine knows which GPUs are faulty, the engine which are free.
"""

from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.values import Iterable, Sequence
from simple_gpu_scheduler.events import GpuReturned, GpuSetAside, JobEnded, NeighbourCame, Noticed, Waited, WaitsSeen
from simple_gpu_scheduler.scheduling import Dropped
from simple_gpu_scheduler.scheduling.quarantine import Aside, Failure
from simple_gpu_scheduler.scheduling.slots import Rooms

from . import attempts, ends
from .state import State


def rooms(state: State) -> Rooms:
    """The GPUs that can be used, except suspects, whose fault other jobs will soon confirm or disprove."""
    found = state.engine.rooms(state.quarantine.aside)
    suspended = state.quarantine.suspended
    return {gpu: room for gpu, room in found.items() if gpu not in suspended} if suspended else found


def next_wake(state: State) -> float:
    """When to look again even if nothing happens."""
    if not state.quarantine.suspended:
        return state.wake
    return min(state.wake, state.clock.now() + state.quarantine.next_wake(state.runtimes))


def ended(state: State, event: JobEnded, dropped: Iterable[Dropped]) -> None:
    """An attempt has ended, and these jobs were dropped because of it."""
    failure = Failure(event.attempt, event.outcome, [job for job, _ in dropped])
    verdict = state.quarantine.record(failure, event.length, is_final=event.is_final)
    for gpu in verdict.convicted:
        state.scheduler.lose(gpu)
    _return(state, verdict.cleared)


def _return(state: State, gpus: Iterable[str]) -> None:
    for gpu in gpus:
        state.publish(GpuReturned(gpu))


def review(state: State) -> None:
    """Set aside suspects and retry elsewhere what failed there, which shows whether the GPU is at fault."""
    _return(state, state.quarantine.end_trials(lambda job: state.ledger.state_of(job) in ("waiting", "running")))
    for aside in state.quarantine.review(state.runtimes):
        reason = f"{aside.in_a_row} jobs in a row failed there within seconds while others succeed elsewhere"
        if aside.was_aside:
            reason = "what was still running there failed too"
        state.publish(GpuSetAside(aside.gpu, reason, [each.attempt.job for each in aside.failures]))
        if aside.failures:
            _try_elsewhere(state, aside)
        else:
            state.scheduler.lose(aside.gpu)


def tend(state: State) -> None:
    """Let the engine check its places, and report what it found."""
    now, demand = state.clock.now(), state.demand
    state.wake, has_looked, remarks, curves, arrived = state.engine.tend(demand, now)
    if has_looked:
        _report(state, state.engine.waits(demand), now)
    elif state.ledger.waits and not demand.gpus:  # no job waits, so nobody looks whether this is still so
        state.publish(WaitsSeen(()))
    for remark in remarks:
        state.publish(Noticed(remark))
    for attempt, measured in curves:
        attempts.draw(state, state.attempts[attempt.key], measured)
    for gpu, who in arrived:
        beside = [run.attempt.job for run in state.attempts.values() if gpu in run.attempt.gpus]
        state.publish(NeighbourCame(gpu, who, beside))


def _report(state: State, waits: Sequence[Wait], now: float) -> None:
    news = state.waiting.say(waits, now)
    if news is not None:
        state.publish(Waited(news))
    elif state.waiting.are_said and waits != state.ledger.waits:
        state.publish(WaitsSeen(waits))


def tell(state: State) -> None:
    """Report why GPUs are not free, on request."""
    waits = state.engine.waits(state.demand)
    if waits:
        state.publish(Waited(waits))


def _try_elsewhere(state: State, aside: Aside) -> None:
    over = state.ledger.ended  # jobs that were retried meanwhile are no longer in it
    failures = [
        each for each in aside.failures if (end := over.get(each.attempt.job.number)) and end.attempt == each.attempt
    ]
    failed = [failure.attempt for failure in failures]
    dropped = [job for failure in failures for job in failure.dropped if job.number in over]
    ends.requeue(state, failed, dropped, f"gpu {aside.gpu} is set aside")
