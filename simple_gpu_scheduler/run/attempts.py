"""The attempts under way: their deadlines, and ending them by TERM, a grace period and KILL.

How an attempt is ended is the engine's to know, and what follows from its end that of `ends`.
"""

from collections.abc import Iterable

from simple_gpu_scheduler.base.jobs import Attempt, Ending
from simple_gpu_scheduler.engines import NEVER

from .state import Key, State, UnderWay

# Processes that were just forked may be missed by a KILL, so it is sent again to what does not end.
_KILL_AGAIN = 1.0


def start(state: State, attempt: Attempt) -> None:
    """Start an attempt whose places are taken. In a cluster's queue it only begins to wait."""
    state.attempts[attempt.key] = UnderWay(attempt, None, state.clock.wall())
    if not state.engine.queues:
        began(state, attempt)
    state.engine.start(attempt)


def began(state: State, attempt: Attempt) -> None:
    """It runs from now on, and its time-out counts from here."""
    now = state.clock.now()
    run = state.attempts[attempt.key]
    state.attempts[attempt.key] = run._replace(began=now, began_at=state.clock.wall())
    if not run.ending:
        _expect(state, attempt, now)


def resume(state: State, attempt: Attempt, began_at: float, *, has_exited: bool) -> None:
    """One that an earlier scheduler started still runs, or its end is on its way."""
    runtime = max(0.0, state.clock.wall() - began_at)
    began = state.clock.now() - runtime
    state.attempts[attempt.key] = UnderWay(attempt, began, began_at)
    if not has_exited:
        _expect(state, attempt, began)


def _expect(state: State, attempt: Attempt, began: float) -> None:
    timeout = state.rules.failures.timeout if attempt.job.timeout is None else attempt.job.timeout
    if timeout:  # 0 says that this one has none
        state.due[attempt.key] = began + timeout


def exited(state: State, attempt: Attempt) -> None:
    """Its main process has ended, and something that it left behind has not."""
    state.due.pop(attempt.key, None)
    run = state.attempts[attempt.key]
    state.attempts[attempt.key] = run._replace(ended=run.ended or state.clock.now())


def ended(state: State, attempt: Attempt) -> UnderWay:
    """Nothing of it is left: how it stood."""
    state.due.pop(attempt.key, None)
    return state.attempts.pop(attempt.key)


def stop_all(state: State, *, force: bool) -> None:
    """End all of them; by force also those that are being ended already."""
    runs = [run for run in state.attempts.values() if force or not (run.ending or run.ended)]
    _end(state, runs, "stopped", force=force)


def cancel(state: State, key: Key) -> bool:
    """End one; False when it is being ended already, or has ended but for what it left behind."""
    run = state.attempts[key]
    if run.ending or run.ended:
        return False
    _end(state, [run], "cancelled", force=False)
    return True


def next_deadline(state: State) -> float:
    """When one is to be ended."""
    return min(state.due.values(), default=NEVER)


def enforce_deadlines(state: State) -> None:
    """End those whose time is over."""
    if not state.due:
        return
    now = state.clock.now()
    late = [state.attempts[key] for key, due in state.due.items() if due <= now]
    _end(state, [run for run in late if not run.ending], "timed out", force=False)
    _end(state, [run for run in late if run.ending], "timed out", force=True)


def _end(state: State, runs: Iterable[UnderWay], why: Ending, *, force: bool) -> None:
    """End these at once: to look for the processes of some takes as long as for those of one."""
    runs = tuple(runs)
    if not runs:
        return
    force = force or state.rules.failures.grace == 0
    answers = state.engine.stop([run.attempt for run in runs], force=force)
    due = state.clock.now() + (_KILL_AGAIN if force else state.rules.failures.grace)
    for run, answer in zip(runs, answers, strict=True):
        key = run.attempt.key
        if answer == "ended" and not run.ending:  # in time, and by itself; the loop is late, after Ctrl-Z
            state.due.pop(key, None)
            continue
        state.attempts[key] = run._replace(ending=run.ending or why)
        state.due[key] = due
        if answer == "not allowed":
            state.due[key] = NEVER
            state.complain(f"job {key[0]} runs as another user and cannot be stopped; waiting for it to end")
