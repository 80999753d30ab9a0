"""What may be asked of a run from outside, and the answers: its status, and to stop, pause, cancel or try again.

It acts for the loop, in its thread. It knows nothing of sockets; a bad request is answered with a sentence.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from simple_gpu_scheduler.base.jobs import Attempt, Job
from simple_gpu_scheduler.events import Event, JobsRead, LineRefused, Paused, StopAsked
from simple_gpu_scheduler.events.eta import Progress, estimate
from simple_gpu_scheduler.events.ledger import Tally
from simple_gpu_scheduler.events.publisher import Publisher
from simple_gpu_scheduler.gpus.pool import Allotment
from simple_gpu_scheduler.resume.adopted import Adopted
from simple_gpu_scheduler.scheduling.scheduler import Scheduler

from .attempts import Attempts
from .outcomes import Outcomes
from .rules import RunRules

if TYPE_CHECKING:
    from simple_gpu_scheduler.resume.remaining import Resumption

Answer = dict[str, Any]

_WHY_STOPPED = "simple_gpu_scheduler stop"
_STOPPING = "the run is being stopped, and starts nothing more"
_RETRIED = "simple_gpu_scheduler retry"


class Control:
    """Of one run. It is a sink too, since it must know what happens."""

    def __init__(
        self,
        rules: RunRules,
        scheduler: Scheduler,
        attempts: Attempts,
        adopted: Adopted,
        outcomes: Outcomes,
        allotment: Allotment,
        publisher: Publisher,
        tally: Tally,
        stop: Callable[..., None],
        all_read: Callable[[], bool],
    ) -> None:
        self._rules = rules
        self._scheduler = scheduler
        self._attempts = attempts
        self._adopted = adopted
        self._outcomes = outcomes
        self._allotment = allotment
        self._publisher = publisher
        self._tally = tally
        self._stop_run = stop
        self._all_read = all_read
        self._progress = Progress()
        self._is_stopping = False
        self._last_read = 0
        self._refused: set[int] = set()
        self._cancelled: set[int] = set()
        self._on: Mapping[str, Callable[[Answer], Answer]] = {
            "status": lambda _request: self._status(),
            "stop": self._stop,
            "pause": lambda _request: self._pause(is_paused=True),
            "continue": lambda _request: self._pause(is_paused=False),
            "cancel": lambda request: self._for_each(request, self._cancel),
            "retry": self._retry,
        }

    def take_over(self, left: "Resumption") -> None:
        """What there was of the run before this scheduler."""
        waiting = [job for job, _ in left.waiting]
        numbers = {job.number for job in waiting} | {job.number for job, *_ in left.ended}
        numbers |= {each.attempt.job.number for each in left.outliving}
        self._last_read = max(numbers, default=0)
        self._refused |= set(range(1, self._last_read)) - numbers
        self._progress.take(JobsRead(waiting))

    def take(self, event: Event, /) -> None:
        """Something has happened."""
        if isinstance(event, JobsRead) and event.jobs:
            self._last_read = max(self._last_read, event.jobs[-1].number)
        elif isinstance(event, LineRefused):
            self._last_read = max(self._last_read, event.number)
            self._refused.add(event.number)
        elif isinstance(event, StopAsked):
            self._is_stopping = True
        self._progress.take(event)

    def close(self) -> None:
        """Nothing happens any more."""

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
        runtimes = self._runtimes()
        counts = self._tally.summary(0, all_read=False)
        starts = not (self._is_stopping or self._scheduler.is_paused)
        running = [(attempt.job, runtime) for attempt, runtime in runtimes]
        known = self._progress.known(running, self._scheduler.waiting)
        eta = estimate(known, starts=starts, all_read=self._all_read())
        return {
            "run": self._rules.run_id.decode(),
            "running": [self._show(attempt, runtime) for attempt, runtime in runtimes],
            "counts": {
                "waiting": self._scheduler.waiting,
                "running": len(runtimes),
                "succeeded": counts.succeeded,
                "failed": counts.failed + counts.timed_out,
                "not started": counts.not_started - len(self._cancelled),
                "cancelled": len(self._cancelled),
            },
            "paused": self._scheduler.is_paused,
            "stopping": self._is_stopping,
            "waits": [f"gpu {wait.gpu}: {wait.sentence}" for wait in self._allotment.waits(self._scheduler)],
            "eta": None if eta.seconds is None else round(eta.seconds, 1),
            "eta_unknown": eta.why_not,
            "all_read": self._all_read(),
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
        if now or not self._is_stopping:
            self._stop_run(_WHY_STOPPED, end_running=now)
        left = len(self._attempts) + len(self._adopted)
        jobs = f"{left} running job{'' if left == 1 else 's'}"
        return {"done": f"it starts nothing more, and {'ends' if now else 'waits for'} {jobs}", "running": left}

    def _pause(self, *, is_paused: bool) -> Answer:
        if self._is_stopping:
            raise _BadRequestError(_STOPPING)
        if self._scheduler.is_paused == is_paused:
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
            return {"error": self._say_ended(number)}
        self._outcomes.drop(dropped[:1], is_cancelled=True)
        self._outcomes.drop(dropped[1:])
        if self._outcomes.failed[number][2] == "not started":  # else it had failed before, and has now for good
            self._cancelled.add(number)
        return {"done": "it was cancelled", "also": [job.number for job, _ in dropped[1:]]}

    def _end(self, attempt: Attempt) -> Answer:
        self._scheduler.give_up_on(attempt.job.number)
        is_ours = any(run.attempt.key == attempt.key for run in self._attempts)
        is_new = (self._attempts if is_ours else self._adopted).end_one(attempt.key, "cancelled")
        return {"done": "it is being ended" if is_new else "it is being ended already"}

    def _retry(self, request: Answer) -> Answer:
        numbers = _numbers(request)
        if self._is_stopping:
            raise _BadRequestError(_STOPPING)
        failed = self._outcomes.failed
        chosen: dict[int, Job] = {}
        answers = {number: self._choose(number, chosen) for number in sorted(numbers)}
        also = self._taken_along(chosen)
        again = [attempt for number in chosen if (attempt := failed[number][0])]
        never_tried = [job for number, job in (chosen | also).items() if failed[number][0] is None]
        self._cancelled.difference_update(chosen)
        self._outcomes.requeue(again, never_tried, _RETRIED)
        return {"jobs": [{"job": number, **answers[number]} for number in numbers], "also": list(also)}

    def _choose(self, number: int, chosen: dict[int, Job]) -> Answer:
        """Put a job among those that are tried again, if it can be; those that it comes after were here before it."""
        if number in self._outcomes.failed:
            _, job, _ = self._outcomes.failed[number]
            missing = [each for each in job.after if each in self._outcomes.failed and each not in chosen]
            if missing:
                return {"error": f"it comes after job {missing[0]}, which did not succeed: retry that one too"}
            chosen[number] = job
            return {"done": "it waits again"}
        if any(attempt.job.number == number for attempt, _ in self._runtimes()):
            return {"error": "it is running"}
        return {"error": "it is waiting" if self._progress.is_waiting(number) else self._say_ended(number)}

    def _taken_along(self, chosen: Mapping[int, Job]) -> dict[int, Job]:
        """The jobs that were not started because of these, and that nothing else keeps from it; in their order."""
        along: dict[int, Job] = {}
        for number, (_, job, kind) in sorted(self._outcomes.failed.items(), key=lambda entry: entry[0]):
            if kind != "not started" or not job.after or number in chosen or number in self._cancelled:
                continue
            lost = [each for each in job.after if each in self._outcomes.failed]
            if lost and all(each in chosen or each in along for each in lost):
                along[number] = job
        return along

    def _say_ended(self, number: int) -> str:
        if not 0 < number <= self._last_read:
            return "there is no such job"
        if number in self._refused:
            return "its line was refused"
        if number in self._outcomes.failed:
            kind = self._outcomes.failed[number][2]
            return "it was not started" if kind == "not started" else f"it has ended: {kind}"
        return "it has succeeded"

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
