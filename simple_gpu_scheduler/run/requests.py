"""What may be asked of a run from outside, and the answers: its status, and to stop, pause, cancel or try again.

It acts for the loop, in its thread. It knows nothing of sockets; a bad request is answered with a sentence.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from simple_gpu_scheduler.base.jobs import Attempt, Job
from simple_gpu_scheduler.events import Paused
from simple_gpu_scheduler.events.publisher import Publisher
from simple_gpu_scheduler.gpus.pool import Allotment
from simple_gpu_scheduler.resume.adopted import Adopted
from simple_gpu_scheduler.scheduling.scheduler import Scheduler

from .attempts import Attempts
from .outcomes import Outcomes
from .rules import RunRules

Answer = dict[str, Any]

_WHY_STOPPED = "simple_gpu_scheduler stop"
_STOPPING = "the run is being stopped, and starts nothing more"
_RETRIED = "simple_gpu_scheduler retry"


class Control:
    """Of one run."""

    def __init__(
        self,
        rules: RunRules,
        scheduler: Scheduler,
        attempts: Attempts,
        adopted: Adopted,
        outcomes: Outcomes,
        allotment: Allotment,
        publisher: Publisher,
        stop: Callable[..., None],
    ) -> None:
        self._rules = rules
        self._scheduler = scheduler
        self._attempts = attempts
        self._adopted = adopted
        self._outcomes = outcomes
        self._allotment = allotment
        self._publisher = publisher
        self._ledger = publisher.ledger
        self._stop_run = stop
        self._on: Mapping[str, Callable[[Answer], Answer]] = {
            "status": lambda _request: self._status(),
            "stop": self._stop,
            "pause": lambda _request: self._pause(is_paused=True),
            "continue": lambda _request: self._pause(is_paused=False),
            "cancel": lambda request: self._for_each(request, self._cancel),
            "retry": self._retry,
        }

    def answer(self, request: Answer) -> Answer:
        """What becomes of a request; `error` says in a sentence why nothing does."""
        do = request.get("do")
        act = self._on.get(do) if isinstance(do, str) else None
        if act is None:
            return {"error": f"a request says what to do: {', '.join(self._on)}"}
        try:
            return act(request)
        except _BadRequestError as error:
            return {"error": str(error)}

    def _status(self) -> Answer:
        runtimes, ledger = self._runtimes(), self._ledger
        eta = ledger.eta([(attempt.job, runtime) for attempt, runtime in runtimes])
        return {
            "run": self._rules.run_id.decode(),
            "running": [self._show(attempt, runtime) for attempt, runtime in runtimes],
            "counts": ledger.counts().by_state(),
            "paused": ledger.is_paused,
            "stopping": ledger.is_stopping,
            "waits": [f"gpu {wait.gpu}: {wait.sentence}" for wait in self._allotment.waits(self._scheduler)],
            "eta": None if eta.seconds is None else round(eta.seconds, 1),
            "eta_unknown": eta.why_not,
            "all_read": ledger.all_read,
        }

    def _show(self, attempt: Attempt, runtime: float) -> Answer:
        job = attempt.job
        shown = {
            "job": job.number,
            "name": job.name,
            "attempt": attempt.number,
            "gpus": list(attempt.gpus),
            "runtime": round(runtime, 3),
            "command": job.command.decode("utf-8", "surrogateescape"),
        }
        if log := self._rules.log_of(job):
            shown["log"] = log
        if job.time is not None:
            shown["estimate"] = job.time
        return shown

    def _stop(self, request: Answer) -> Answer:
        now = request.get("now", False)
        if not isinstance(now, bool):
            raise _BadRequestError("`now` is true or false")
        if now or not self._ledger.is_stopping:
            self._stop_run(_WHY_STOPPED, end_running=now)
        left = len(self._attempts) + len(self._adopted)
        jobs = f"{left} running job{'' if left == 1 else 's'}"
        return {"done": f"it starts nothing more, and {'ends' if now else 'waits for'} {jobs}", "running": left}

    def _pause(self, *, is_paused: bool) -> Answer:
        if self._ledger.is_stopping:
            raise _BadRequestError(_STOPPING)
        if self._ledger.is_paused == is_paused:
            return {"done": "it was paused already" if is_paused else "it was not paused"}
        self._scheduler.is_paused = is_paused
        self._publisher.publish(Paused(is_paused))
        return {"done": "it starts nothing more until it is told to" if is_paused else "it goes on"}

    def _for_each(self, request: Answer, act: Callable[[int], Answer]) -> Answer:
        return {"jobs": [{"job": number, **act(number)} for number in _numbers(request)]}

    def _cancel(self, number: int) -> Answer:
        for attempt, _ in self._runtimes():
            if attempt.job.number == number:
                return self._end(attempt)
        dropped = self._scheduler.cancel(number)
        if not dropped:
            return {"error": self._say_how_it_stands(number)}
        self._outcomes.drop(dropped[:1], is_cancelled=True)
        self._outcomes.drop(dropped[1:])
        return {"done": "it was cancelled", "also": [job.number for job, _ in dropped[1:]]}

    def _end(self, attempt: Attempt) -> Answer:
        self._scheduler.give_up_on(attempt.job.number)
        is_ours = any(run.attempt.key == attempt.key for run in self._attempts)
        is_new = (self._attempts if is_ours else self._adopted).end_one(attempt.key, "cancelled")
        return {"done": "it is being ended" if is_new else "it is being ended already"}

    def _retry(self, request: Answer) -> Answer:
        numbers = _numbers(request)
        if self._ledger.is_stopping:
            raise _BadRequestError(_STOPPING)
        ended = self._ledger.ended
        chosen: dict[int, Job] = {}
        answers = {number: self._choose(number, chosen) for number in sorted(numbers)}
        also = self._taken_along(chosen)
        again = [attempt for number in chosen if (attempt := ended[number].attempt)]
        never_tried = [job for number, job in (chosen | also).items() if ended[number].attempt is None]
        self._outcomes.requeue(again, never_tried, _RETRIED)
        return {"jobs": [{"job": number, **answers[number]} for number in numbers], "also": list(also)}

    def _choose(self, number: int, chosen: dict[int, Job]) -> Answer:
        """Put a job among those that are tried again, if it can be; those that it comes after were here before it."""
        ended = self._ledger.ended
        if number in ended:
            job = ended[number].job
            missing = [each for each in job.after if each in ended and each not in chosen]
            if missing:
                return {"error": f"it comes after job {missing[0]}, which did not succeed: retry that one too"}
            chosen[number] = job
            return {"done": "it waits again"}
        return {"error": self._say_how_it_stands(number)}

    def _taken_along(self, chosen: Mapping[int, Job]) -> dict[int, Job]:
        """The jobs that were not started because of these, and that nothing else keeps from it; in their order."""
        along: dict[int, Job] = {}
        ended = self._ledger.ended
        for number, (_, job, fate, _) in sorted(ended.items(), key=lambda entry: entry[0]):
            if fate != "not started" or not job.after or number in chosen:
                continue
            lost = [each for each in job.after if each in ended]
            if lost and all(each in chosen or each in along for each in lost):
                along[number] = job
        return along

    def _say_how_it_stands(self, number: int) -> str:
        ledger = self._ledger
        if number in ledger.refused:
            return "its line was refused"
        state = ledger.state_of(number)
        if state in (None, "waiting", "running"):
            return f"it is {state}" if state else "there is no such job"
        if state == "failed":
            return f"it has ended: {ledger.ended[number].fate}"
        return "it has succeeded" if state == "succeeded" else f"it was {state}"

    def _runtimes(self) -> list[tuple[Attempt, float]]:
        return [*self._adopted.runtimes(), *self._attempts.runtimes()]


class _BadRequestError(Exception):
    """Its text is the answer."""


def _numbers(request: Answer) -> Iterable[int]:
    """The jobs that are asked for, each once."""
    jobs = request.get("jobs")
    if not isinstance(jobs, list) or not jobs or not all(type(number) is int for number in jobs):
        raise _BadRequestError("`jobs` is a list of the numbers of jobs")
    return dict.fromkeys(jobs)
