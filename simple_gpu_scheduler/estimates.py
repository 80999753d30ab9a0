"""How long a job is likely to take: what its line says, else what others of its template took, else its time-out.

An estimate orders jobs and tells which may pass a wide one; it never ends any. Of each template that nobody knows, one
job counts as the shortest of all, so that it is early and tells of the others: the scout. It knows no clock, and
nothing of where the runs of before are kept. Pure.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from .jobs import Job
from .templates import template_of

RUNS_KEPT = 20  # of each template
UNKNOWN = float("inf")

History = Mapping[str, Sequence[float]]


class Estimates:
    """Of one run: what the runs of before have told, and what its own jobs tell."""

    def __init__(self, history: History | None = None) -> None:
        self._runs = {name: deque(runs, RUNS_KEPT) for name, runs in (history or {}).items() if runs}
        self._scouts: dict[str, int] = {}
        self._unknown: dict[str, dict[int, None]] = {}  # the waiting jobs of templates that nobody knows, in order
        self._given = 0
        self._total = 0.0

    def take_in(self, job: Job) -> tuple[float, float]:
        """How long it counts as when it takes its place in the order, and how long it takes as far as is known."""
        time = job.time
        if time is None:
            template = _template(job)
            runs = self._runs.get(template)
            time = sum(runs) / len(runs) if runs else job.timeout
            if not time:  # a time-out of 0 is none
                return self._guess(job, template), UNKNOWN
        self._given += 1
        self._total += time
        return time, time

    def recall(self, history: History) -> Iterable[int]:
        """What the runs of before tell has come late: the numbers of those of whom more is known now."""
        new = {name: deque(runs, RUNS_KEPT) for name, runs in history.items() if runs and name not in self._runs}
        self._runs |= new
        for name in new:
            self._scouts.pop(name, None)
        return [number for name in new for number in self._unknown.pop(name, ())]

    def _guess(self, job: Job, template: str) -> float:
        self._unknown.setdefault(template, {})[job.number] = None
        if self._scouts.setdefault(template, job.number) == job.number:
            return 0.0
        return self._total / self._given if self._given else 0.0

    def learn(self, job: Job, runtime: float) -> Iterable[int]:
        """A job has succeeded: the numbers of those of whom more is known now."""
        if job.time is not None:
            return ()
        template = _template(job)
        self._runs.setdefault(template, deque(maxlen=RUNS_KEPT)).append(runtime)
        self._scouts.pop(template, None)
        return self._unknown.pop(template, ())

    def forget(self, job: Job) -> Iterable[int]:
        """A job tells nothing, since it did not succeed or will not start: who may be the scout instead, in order."""
        if job.time is not None:
            return ()
        template = _template(job)
        others = self._unknown.get(template, {})
        others.pop(job.number, None)
        if self._scouts.get(template) != job.number:
            return ()
        del self._scouts[template]
        return tuple(others)


def _template(job: Job) -> str:
    return template_of(job.command.decode("utf-8", "surrogateescape"))
