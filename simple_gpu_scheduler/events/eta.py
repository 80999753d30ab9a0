"""Estimates when a run will be done, from how long its jobs have taken so far. Pure."""

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.values import NamedTuple, Sequence


class Eta(NamedTuple):
    """Seconds left; or None, and why there is no estimate."""

    seconds: float | None
    why_not: str = ""


class ExpectedLengths(NamedTuple):
    """The sum of the `time=` of several jobs."""

    jobs: int = 0
    total: float = 0.0
    longest: float = 0.0


class Known(NamedTuple):
    """The basis of an estimate: the mean length of the jobs that succeeded, and the `time=` of those that have one."""

    mean: float | None
    running: Sequence[tuple[float | None, float]]  # the `time=` of each, and how long it has been running
    waiting: int
    estimates: ExpectedLengths = ExpectedLengths()  # of the waiting jobs that have one


def eta_of(known: Known, *, starts: bool, all_read: bool) -> Eta:
    """Assumes that as many jobs as now keep running until none waits; `starts`: whether jobs are started at all."""
    waiting = known.waiting if starts else 0
    if starts and not all_read:
        return Eta(None, "still reading the input")
    if waiting and not known.running:
        return Eta(None, "no job is running")
    has_unknown = waiting > known.estimates.jobs or any(estimate is None for estimate, _ in known.running)
    if has_unknown and known.mean is None:
        return Eta(None, "no job has succeeded yet")
    mean = known.mean or 0.0
    left = [max(0.0, (mean if estimate is None else estimate) - runtime) for estimate, runtime in known.running]
    to_come = known.estimates if waiting else ExpectedLengths()
    others = max(0, waiting - to_come.jobs) * mean
    longest = max([*left, to_come.longest, mean if others else 0.0])
    seconds = max(longest, (sum(left) + to_come.total + others) / max(1, len(left)))
    return Eta(None, "running jobs have exceeded their estimates") if left and not seconds else Eta(seconds)


class Lengths:
    """Collects the basis of an estimate: lengths of jobs that succeeded, and the `time=` of waiting jobs."""

    def __init__(self) -> None:
        self._succeeded = 0
        self._lengths = 0.0  # their sum
        self._estimates: dict[float, int] = {}  # how many waiting jobs have each
        self._total = 0.0

    def succeeded(self, length: float) -> None:
        """A job of this length succeeded."""
        self._succeeded += 1
        self._lengths += length

    def expect(self, estimate: float) -> None:
        """A job with this `time=` waits."""
        self._estimates[estimate] = self._estimates.get(estimate, 0) + 1
        self._total += estimate

    def expect_no_more(self, estimate: float) -> None:
        """It no longer waits."""
        self._total -= estimate
        self._estimates[estimate] -= 1
        if not self._estimates[estimate]:
            del self._estimates[estimate]

    def known(self, running: Sequence[tuple[Job, float]], waiting: int) -> Known:
        """The basis of an estimate, given the running jobs, how long each has run, and how many wait."""
        mean = self._lengths / self._succeeded if self._succeeded else None
        if mean is not None:  # jobs that have already run for longer will raise it
            longer = [runtime for job, runtime in running if job.time is None and runtime > mean]
            mean = (self._lengths + sum(longer)) / (self._succeeded + len(longer))
        estimates = ExpectedLengths(sum(self._estimates.values()), self._total, max(self._estimates, default=0.0))
        return Known(mean, [(job.time, runtime) for job, runtime in running], waiting, estimates)
