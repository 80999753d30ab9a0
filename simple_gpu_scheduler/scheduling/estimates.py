"""How long a job is likely to take: what its line says, else what others of its template took, else its time-out.

An estimate orders jobs and tells which may pass a wide one; it never ends any. Of each template that nobody knows, one
job counts as the shortest of all, so that it is early and tells of the others: the scout. It knows no clock, and
nothing of where the runs of before are kept. Pure.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from simple_gpu_scheduler.base.jobs import Job

from .templates import template_of_job

# Seconds: from the epoch to the year 4147. Beyond are milliseconds, or nonsense.
MOST_SECONDS = 2.0**36
RUNS_KEPT = 20  # of each template
_NOBODY = 0  # for the number of a job, while others of its template wait
_MOST_TEMPLATES = 100_000
UNKNOWN = float("inf")
_AN_HOUR = 3600.0  # what the others of an unknown template count as while nothing is known of any

History = Mapping[str, Sequence[float]]


class Recalled(NamedTuple):
    """What the runs of before have told, when it comes late."""

    history: History


def said(job: Job) -> float:
    """What its own line says of it."""
    return job.time if job.time is not None else job.timeout or UNKNOWN  # a time-out of 0 is none


class Estimates:
    """Of one run: what the runs of before have told, and what its own jobs tell."""

    def __init__(self, history: History | None = None, *, learns: bool = True) -> None:
        """`learns`: whether how long its own jobs take tells anything."""
        self._learns = learns
        self._runs = {name: list(runs[-RUNS_KEPT:]) for name, runs in (history or {}).items() if runs}
        self._scouts: dict[str, int] = {}
        # Of each template that nobody knows those that were taken in, of which some do not wait any more; those that
        # have a time-out apart, since they are no scouts.
        self._unknown: dict[str, deque[int]] = {}
        self._limited: dict[str, deque[int]] = {}
        self._given = 0
        self._total = 0.0

    def take_in(self, job: Job) -> tuple[float, float]:
        """How long it counts as when it takes its place in the order, and how long it takes as far as is known."""
        time = job.time
        if time is None:
            template = template_of_job(job)
            runs = self._runs.get(template)
            if not runs:
                (self._limited if job.timeout else self._unknown).setdefault(template, deque()).append(job.number)
                if not job.timeout:
                    return self._guess(job, template), UNKNOWN
                return job.timeout, job.timeout
            time = sum(runs) / len(runs)
        self._given += 1
        self._total += time
        return time, time

    def time_of(self, job: Job) -> float:
        """How long it takes as far as is known, of one that runs."""
        runs = self._runs.get(template_of_job(job)) if job.time is None else None
        return sum(runs) / len(runs) if runs else said(job)

    def _guess(self, job: Job, template: str) -> float:
        if self._scouts.setdefault(template, job.number) == job.number:
            return 0.0
        return self._total / self._given if self._given else _AN_HOUR

    def recall(self, history: History) -> Iterable[int]:
        """What the runs of before tell has come late: the numbers of those of whom more is known now."""
        new = {name: list(runs[-RUNS_KEPT:]) for name, runs in history.items() if runs and name not in self._runs}
        self._runs |= new
        return [number for name in new for number in self._known(name)]

    def learn(self, job: Job, runtime: float) -> Iterable[int]:
        """A job has succeeded: the numbers of those of whom more is known now."""
        if job.time is not None or not self._learns:
            return ()
        template = template_of_job(job)
        runs = self._runs.setdefault(template, [])
        runs.append(runtime)
        del runs[:-RUNS_KEPT]
        if len(self._runs) > _MOST_TEMPLATES:
            del self._runs[next(iter(self._runs))]
        return self._known(template)

    def _known(self, template: str) -> Iterable[int]:
        self._scouts.pop(template, None)
        return [*self._unknown.pop(template, ()), *self._limited.pop(template, ())]

    def forget(self, job: Job, is_waiting: Callable[[int], bool], *, has_failed: bool) -> int | None:
        """A job tells nothing, since it did not succeed or will not start: who is to be the scout instead.

        Nobody when it has failed, or a kind that always fails would always be ahead of the others.
        """
        if job.time is not None:
            return None
        template = template_of_job(job)
        for waiting in (self._unknown, self._limited):
            numbers = waiting.get(template, deque())
            while numbers and not is_waiting(numbers[0]):
                numbers.popleft()
            if not numbers:
                waiting.pop(template, None)
        scout = self._scouts.get(template)
        if scout not in (job.number, _NOBODY):
            return None
        if template not in self._unknown:
            del self._scouts[template]
        elif has_failed or scout == _NOBODY:
            self._scouts[template] = _NOBODY
        else:
            del self._scouts[template]
            return self._unknown[template].popleft()
        return None
