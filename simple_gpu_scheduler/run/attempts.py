"""The running attempts: their deadlines, and ending them with TERM, a grace period and KILL.

The engine knows how to end an attempt; `ends` knows what follows from the end.
"""

from simple_gpu_scheduler.base.jobs import Attempt, Ending, Key
from simple_gpu_scheduler.base.measurement import Measured, Measurement
from simple_gpu_scheduler.base.values import Iterable
from simple_gpu_scheduler.engines.protocol import NEVER
from simple_gpu_scheduler.events import AttemptMeasured, CurvesDrawn

from .state import State, UnderWay

# Processes that were just forked may be missed by a KILL, so it is sent again until they end.
_KILL_AGAIN = 1.0


def start(state: State, attempt: Attempt) -> None:
    """Start an attempt whose places are taken. On a cluster it first waits in a queue."""
    began = None if state.engine.queues else state.clock.now()
    state.attempts[attempt.key] = UnderWay(attempt, began, state.clock.wall())
    if began is not None:
        _expect(state, attempt, began)
    state.engine.start(attempt)


def began(state: State, attempt: Attempt) -> None:
    """It is running now, and its timeout counts from here."""
    now = state.clock.now()
    run = state.attempts[attempt.key]
    state.attempts[attempt.key] = run._replace(began=now, began_at=state.clock.wall())
    if not run.ending:
        _expect(state, attempt, now)


def resume(state: State, attempt: Attempt, began_at: float, ended_at: float | None) -> None:
    """Resume watching an attempt of an earlier scheduler: it is still running, or its end will be reported soon."""
    began = state.clock.now() - max(0.0, state.clock.wall() - began_at)
    ended = None if ended_at is None else began + max(0.0, ended_at - began_at)
    state.attempts[attempt.key] = UnderWay(attempt, began, began_at, ended=ended)
    if ended is None:
        _expect(state, attempt, began)


def _expect(state: State, attempt: Attempt, began: float) -> None:
    timeout = state.rules.failures.timeout if attempt.job.timeout is None else attempt.job.timeout
    if timeout:  # 0: no timeout for this job
        state.due[attempt.key] = began + timeout


def exited(state: State, attempt: Attempt) -> None:
    """Its main process has ended, but processes that it left behind have not."""
    state.due.pop(attempt.key, None)
    run = state.attempts[attempt.key]
    state.attempts[attempt.key] = run._replace(ended=run.ended or state.clock.now())


def ended(state: State, attempt: Attempt) -> UnderWay:
    """Nothing of it is left; returns its last state."""
    key = attempt.key
    state.due.pop(key, None)
    return state.attempts.pop(key)


def measured(state: State, run: UnderWay, what: Measured) -> None:
    """Report what an attempt did to its GPUs and the CPU, now that it has ended."""
    if what.measurement != Measurement():
        state.publish(AttemptMeasured(run.attempt, what.measurement))
    draw(state, run, what)


def draw(state: State, run: UnderWay, what: Measured) -> None:
    """Report its curves, or pieces of them. Their times are since it began, or since we watch it."""
    curves = [curve for curve in what.curves if curve.points]
    if curves:
        late = 0.0 if run.began is None else max(0.0, what.began - run.began)
        state.publish(CurvesDrawn(run.attempt, run.began_at + late, curves))


def stop_all(state: State, *, force: bool) -> None:
    """End all of them; with `force` also those that are already ending."""
    runs = [run for run in state.attempts.values() if force or not (run.ending or run.ended)]
    _end(state, runs, "stopped", force=force)


def cancel(state: State, key: Key) -> bool:
    """End one; False if it is already ending, or if only processes that it left behind remain."""
    run = state.attempts[key]
    if run.ending or run.ended:
        return False
    _end(state, [run], "cancelled", force=False)
    return True


def end_stalled(state: State, key: Key, why: str) -> None:
    """End one that has stalled."""
    run = state.attempts[key] = state.attempts[key]._replace(why=why)
    _end(state, [run], "stalled", force=False)


def next_deadline(state: State) -> float:
    """When the next attempt must be ended."""
    return min(state.due.values()) if state.due else NEVER


def enforce_deadlines(state: State) -> None:
    """End those whose time is up."""
    if not state.due:
        return
    now = state.clock.now()
    late = [state.attempts[key] for key, due in state.due.items() if due <= now]
    _end(state, [run for run in late if not run.ending], "timed out", force=False)
    _end(state, [run for run in late if run.ending], "timed out", force=True)


def _end(state: State, runs: Iterable[UnderWay], why: Ending, *, force: bool) -> None:
    """End these together: finding the processes of several takes as long as finding those of one."""
    runs = tuple(runs)
    if not runs:
        return
    force = force or state.rules.failures.grace == 0
    state.engine.stop([run.attempt for run in runs], force=force)
    due = state.clock.now() + (_KILL_AGAIN if force else state.rules.failures.grace)
    for run in runs:
        key = run.attempt.key
        state.attempts[key] = run._replace(ending=run.ending or why)
        state.due[key] = due


def cannot_end(state: State, attempt: Attempt) -> None:
    """It is another user's."""
    state.due[attempt.key] = NEVER
    state.complain(f"job {attempt.job.number} runs as another user and cannot be stopped; waiting for it to end")
