"""How long a job is likely to take: its `time=`, else what others of its template took, else its timeout.

An estimate orders jobs and decides which may start ahead of a wide one; it never ends any. For a template of unknown
length, one job, the scout, counts as the shortest of all, so that it runs early and measures the others. It has no
clock, and does not know where earlier runs are kept. Pure.
"""

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.stdlib import deque
from simple_gpu_scheduler.base.values import Callable, Iterable, Mapping, NamedTuple, Sequence

from .peaks import PeakHistory
from .templates import template_of_job

# Seconds: from the epoch to the year 4147. Anything larger is milliseconds, or nonsense.
MOST_SECONDS = 2.0**36
RUNS_KEPT = 20  # of each template
_NO_SCOUT = 0  # instead of a job number, while others of its template wait
_MOST_TEMPLATES = 100_000
UNKNOWN = float("inf")
_AN_HOUR = 3600.0  # the length of the others of an unknown template while no length is known

History = Mapping[str, Sequence[float]]


class PastLengths(NamedTuple):
    """Lengths from earlier runs, which arrive during the run; with `peaks` of memory, if these were asked for."""

    history: History
    peaks: PeakHistory | None = None


def own_estimate(job: Job) -> float:
    """Its own `time=`."""
    return job.time if job.time is not None else job.timeout or UNKNOWN  # a timeout of 0 is none


class Estimates:
    """The lengths known in one run: from earlier runs, and from its own jobs."""

    def __init__(self, history: History | None = None, *, learns: bool = True) -> None:
        """`learns`: whether to learn from its own jobs."""
        self._learns = learns
        self._runs = {name: list(runs[-RUNS_KEPT:]) for name, runs in (history or {}).items() if runs}
        self._scouts: dict[str, int] = {}
        # The jobs of each template of unknown length; some may no longer wait. Jobs with a timeout are kept
        # apart, since they are never scouts.
        self._unknown: dict[str, deque[int]] = {}
        self._limited: dict[str, deque[int]] = {}
        self._given = 0
        self._total = 0.0

    def take_in(self, job: Job) -> tuple[float, float]:
        """The length that decides its place in the order, maybe a guess; and its estimate, or `UNKNOWN`."""
        estimate = job.time
        if estimate is None:
            template = template_of_job(job)
            runs = self._runs.get(template)
            if not runs:
                (self._limited if job.timeout else self._unknown).setdefault(template, deque()).append(job.number)
                if not job.timeout:
                    return self._guess(job, template), UNKNOWN
                return job.timeout, job.timeout
            estimate = sum(runs) / len(runs)
        self._given += 1
        self._total += estimate
        return estimate, estimate

    def estimate_of(self, job: Job) -> float:
        """The length of a running job, as far as is known; else infinity."""
        runs = self._runs.get(template_of_job(job)) if job.time is None else None
        return sum(runs) / len(runs) if runs else own_estimate(job)

    def _guess(self, job: Job, template: str) -> float:
        if self._scouts.setdefault(template, job.number) == job.number:
            return 0.0
        return self._total / self._given if self._given else _AN_HOUR

    def add_history(self, history: History) -> Iterable[int]:
        """Lengths from earlier runs have arrived: the numbers of the jobs whose length is now known better."""
        new = {name: list(runs[-RUNS_KEPT:]) for name, runs in history.items() if runs and name not in self._runs}
        self._runs |= new
        return [number for name in new for number in self._known(name)]

    def learn(self, job: Job, length: float) -> Iterable[int]:
        """A job has succeeded: the numbers of the jobs whose length is now known better."""
        if job.time is not None or not self._learns:
            return ()
        template = template_of_job(job)
        runs = self._runs.setdefault(template, [])
        runs.append(length)
        del runs[:-RUNS_KEPT]
        if len(self._runs) > _MOST_TEMPLATES:
            del self._runs[next(iter(self._runs))]
        return self._known(template)

    def _known(self, template: str) -> Iterable[int]:
        self._scouts.pop(template, None)
        return [*self._unknown.pop(template, ()), *self._limited.pop(template, ())]

    def forget(self, job: Job, is_waiting: Callable[[int], bool], *, has_failed: bool) -> int | None:
        """A job cannot be learned from, since it did not succeed or will not start: the number of the new scout.

        None if it failed, or a template that always fails would always be ahead of the others.
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
        if scout not in (job.number, _NO_SCOUT):
            return None
        if template not in self._unknown:
            del self._scouts[template]
        elif has_failed or scout == _NO_SCOUT:
            self._scouts[template] = _NO_SCOUT
        else:
            del self._scouts[template]
            return self._unknown[template].popleft()
        return None
