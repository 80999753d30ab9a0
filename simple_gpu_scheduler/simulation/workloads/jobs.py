"""The jobs of a workload, and their arrivals in the simulator, with what the scheduler may know of lengths.

It does not know where jobs come from or how arrivals are used. Pure.
"""

from collections.abc import Callable, Iterable, Mapping

from simple_gpu_scheduler.base.jobs import Job, Place
from simple_gpu_scheduler.base.values import NamedTuple
from simple_gpu_scheduler.simulation.simulate import Arrival


class WorkloadJob(NamedTuple):
    """One job as recorded: when it arrived, its length, and the time its user requested. All in seconds."""

    submit: float
    length: float
    gpus: int = 1
    user: str = ""
    requested: float | None = None
    command: str = ""
    priority: int = 0


_LENGTHS: Mapping[str, Callable[[WorkloadJob], float | None]] = {
    "exact": lambda job: job.length,
    "requested": lambda job: job.requested,
    "past": lambda _job: None,
    "none": lambda _job: None,
}
# What the scheduler may know of the length of a job; with `none`, its `Estimates` must not learn.
ESTIMATES = tuple(_LENGTHS)


def arrivals(jobs: Iterable[WorkloadJob], most_gpus: int, estimates: str) -> tuple[list[Arrival], list[str]]:
    """In order of submission, the first at 0, without jobs that could never fit; and remarks on those.

    `estimates` is one of ESTIMATES.
    """
    estimate_of = _LENGTHS[estimates]
    ordered = sorted(jobs, key=lambda job: job.submit)
    fitting = [job for job in ordered if job.gpus <= most_gpus]
    first = fitting[0].submit if fitting else 0.0
    commands = _Commands()
    found = [
        Arrival(job.submit - first, _job(number, job, commands.of(job), estimate_of(job)), job.length)
        for number, job in enumerate(fitting, 1)
    ]
    too_wide = len(ordered) - len(fitting)
    if not too_wide:
        return found, []
    width = f"{most_gpus:,} GPU{'' if most_gpus == 1 else 's'}"
    widest = max(job.gpus for job in ordered)
    return found, [left_out(too_wide, "job", f"wider than {width}") + f"; the widest needs {widest:,}"]


def left_out(count: int, noun: str, which: str) -> str:
    """A remark: `3 rows without a duration are left out`."""
    return f"{count:,} {noun}{'s' * (count != 1)} {which} {'is' if count == 1 else 'are'} left out"


class _Commands:
    """The command of each job; without one, one per user and width, so that lengths can be learned for them.

    Letters number them, since a template would leave open a number, or a quote in a user's name.
    """

    _LETTERS = str.maketrans("0123456789", "abcdefghij")

    def __init__(self) -> None:
        self._made: dict[tuple[str, int], bytes] = {}

    def of(self, job: WorkloadJob) -> bytes:
        """As a job has it."""
        if job.command:
            return job.command.encode("utf-8", "surrogateescape")
        kind = (job.user, job.gpus)
        if kind not in self._made:
            self._made[kind] = f"kind {str(len(self._made)).translate(self._LETTERS)}".encode()
        return self._made[kind]


def _job(number: int, job: WorkloadJob, command: bytes, estimate: float | None) -> Job:
    return Job(number, command, Place(number), gpus=job.gpus, time=estimate, priority=job.priority, label=job.user)
