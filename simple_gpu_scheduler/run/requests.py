"""Requests to a run from outside, and the answers: status, stop, pause, continue, cancel and retry.

A bad request is answered with a sentence. It knows nothing of sockets.
"""

from simple_gpu_scheduler.base.jobs import Attempt, Job
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.text import show_wait
from simple_gpu_scheduler.base.values import Any, Callable, Iterable, Mapping
from simple_gpu_scheduler.events import Paused
from simple_gpu_scheduler.journal.records import measurement_values

from . import attempts, ends
from .state import State
from .stop import stop

Answer = dict[str, Any]

_WHY_STOPPED = f"{PROGRAM} stop"
_STOPPING = "the run is stopping and starts no more jobs"
_PAUSED = "paused; no new jobs until `continue`"
_RETRIED = f"{PROGRAM} retry"


def answer(state: State, request: Answer) -> Answer:
    """Act on a request and answer it; `error` explains in a sentence why it was refused."""
    do = request.get("do")
    act = _ON.get(do) if isinstance(do, str) else None
    if act is None:
        return {"error": f"a request needs `do`: one of {', '.join(_ON)}"}
    try:
        return act(state, request)
    except _BadRequestError as error:
        return {"error": str(error)}


def _status(state: State) -> Answer:
    runtimes, ledger = state.runtimes(), state.ledger
    eta = ledger.eta([(attempt.job, runtime) for attempt, runtime in runtimes])
    return {
        "run": state.rules.run_id.decode(),
        "running": [_show(state, attempt, runtime) for attempt, runtime in runtimes],
        "counts": ledger.counts().by_state(),
        "paused": ledger.is_paused,
        "stopping": ledger.is_stopping,
        "waits": [show_wait(wait.gpu, wait.sentence) for wait in state.engine.waits(state.demand)],
        "eta": None if eta.seconds is None else round(eta.seconds, 1),
        "eta_unknown": eta.why_not,
        "all_read": ledger.all_read,
    }


def _show(state: State, attempt: Attempt, runtime: float) -> Answer:
    job = attempt.job
    shown = {
        "job": job.number,
        "name": job.name,
        "attempt": attempt.number,
        "gpus": list(attempt.gpus),
        "runtime": round(runtime, 3),
        "command": job.command.decode("utf-8", "surrogateescape"),
    }
    if log := state.rules.log_of(job):
        shown["log"] = log
    if attempt.gpus and job.mem:
        shown["mem"] = job.mem
    if attempt.alone:
        shown["alone"] = True
    if warned := state.attempts[attempt.key].warned:
        shown["stalled"] = {"at": round(warned[0], 3), "reason": warned[1]}
    if job.time is not None:
        shown["estimate"] = job.time
    if measured := state.engine.measured(attempt.key):
        shown["measured"] = measurement_values(measured.measurement)
    return shown


def _stop(state: State, request: Answer) -> Answer:
    now = request.get("now", False)
    if not isinstance(now, bool):
        raise _BadRequestError("`now` must be true or false")
    if now or not state.ledger.is_stopping:
        stop(state, _WHY_STOPPED, ends_running=now)
    left = len(state.ledger.running)
    what = f"{'ending' if now else 'waiting for'} {left} running job{'' if left == 1 else 's'}"
    return {"done": f"stopping; no new jobs, {what if left else 'nothing is running'}", "running": left}


def _pause(state: State, *, is_paused: bool) -> Answer:
    if state.ledger.is_stopping:
        raise _BadRequestError(_STOPPING)
    if state.ledger.is_paused == is_paused:
        return {"done": "already paused" if is_paused else "not paused"}
    state.publish(Paused(is_paused))
    return {"done": _PAUSED if is_paused else "continuing"}


def _cancel(state: State, request: Answer) -> Answer:
    return {"jobs": [{"job": number, **_cancel_one(state, number)} for number in _numbers(request)]}


def _cancel_one(state: State, number: int) -> Answer:
    for attempt, _ in state.runtimes():
        if attempt.job.number == number:
            return _end(state, attempt)
    dropped = state.scheduler.cancel(number)
    if not dropped:
        return {"error": _say_how_it_stands(state, number)}
    ends.drop(state, dropped[:1], is_cancelled=True)
    ends.drop(state, dropped[1:])
    return {"done": "cancelled", "also": [job.number for job, _ in dropped[1:]]}


def _end(state: State, attempt: Attempt) -> Answer:
    state.scheduler.give_up_on(attempt.job.number)
    is_new = attempts.cancel(state, attempt.key)
    return {"done": "cancelling" if is_new else "already ending"}


def _retry(state: State, request: Answer) -> Answer:
    numbers = _numbers(request)
    if state.ledger.is_stopping:
        raise _BadRequestError(_STOPPING)
    ended = state.ledger.ended
    chosen: dict[int, Job] = {}
    answers = {number: _choose(state, number, chosen) for number in sorted(numbers)}
    also = _taken_along(state, chosen)
    again = [attempt for number in chosen if (attempt := ended[number].attempt)]
    never_tried = [job for number, job in (chosen | also).items() if ended[number].attempt is None]
    ends.requeue(state, again, never_tried, _RETRIED)
    return {"jobs": [{"job": number, **answers[number]} for number in numbers], "also": list(also)}


def _choose(state: State, number: int, chosen: dict[int, Job]) -> Answer:
    """Choose a job to retry, if possible; jobs that it depends on have been chosen before it."""
    ended = state.ledger.ended
    if number in ended:
        job = ended[number].job
        missing = [each for each in job.after if each in ended and each not in chosen]
        if missing:
            return {"error": f"it depends on job {missing[0]}, which did not succeed; retry that one too"}
        chosen[number] = job
        return {"done": "waiting again"}
    return {"error": _say_how_it_stands(state, number)}


def _taken_along(state: State, chosen: Mapping[int, Job]) -> dict[int, Job]:
    """The jobs that were not started because of these, and for no other reason, in order."""
    along: dict[int, Job] = {}
    ended = state.ledger.ended
    for number, (_, job, fate, _) in sorted(ended.items(), key=lambda entry: entry[0]):
        if fate != "not started" or not job.after or number in chosen:
            continue
        lost = [each for each in job.after if each in ended]
        if lost and all(each in chosen or each in along for each in lost):
            along[number] = job
    return along


def _say_how_it_stands(state: State, number: int) -> str:
    ledger = state.ledger
    if number in ledger.refused:
        return "its line was refused"
    how = ledger.state_of(number)
    if how in (None, "waiting", "running"):
        return f"it is {how}" if how else "there is no such job"
    if how == "failed":
        return f"it has ended: {ledger.ended[number].fate}"
    return "it has succeeded" if how == "succeeded" else f"it was {how}"


class _BadRequestError(Exception):
    """Its text is the answer."""


def _numbers(request: Answer) -> Iterable[int]:
    """The requested jobs, each once."""
    jobs = request.get("jobs")
    if not isinstance(jobs, list) or not jobs or not all(type(number) is int for number in jobs):
        raise _BadRequestError("`jobs` must be a list of job numbers")
    return dict.fromkeys(jobs)


_ON: Mapping[str, Callable[[State, Answer], Answer]] = {
    "status": lambda state, _request: _status(state),
    "stop": _stop,
    "pause": lambda state, _request: _pause(state, is_paused=True),
    "continue": lambda state, _request: _pause(state, is_paused=False),
    "cancel": _cancel,
    "retry": _retry,
}
