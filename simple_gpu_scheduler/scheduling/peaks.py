"""How much memory a job with `mem=auto` needs on each GPU: the peak of others of its template, and a fifth more.

Peaks come from successes in earlier runs and in this one. While none is known, each job of the template is a scout,
which runs alone on its GPUs and tells the others. So does a job that failed before, perhaps for want of memory: its
next attempt runs alone. It does not know where earlier runs are kept, nor who measures. Pure.
"""

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.measurement import Measurement
from simple_gpu_scheduler.base.stdlib import math
from simple_gpu_scheduler.base.values import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

from .templates import template_of_job

MOST_BYTES = 2**60  # anything larger is nonsense
_MIB = 2**20
_MOST_TEMPLATES = 100_000

PeakHistory = Mapping[str, Sequence[float]]


class Claim(NamedTuple):
    """The memory that a job is promised on each GPU, 0 if none, and whether no other may be there."""

    mem: int
    alone: bool


def peak_of(measurement: Measurement, gpus: int) -> int | None:
    """The most memory that an attempt used on one of its `gpus` GPUs; None if that is not known of each.

    A peak of 0 tells nothing: its processes were not found, as those that a daemon starts.
    """
    uses = [(use.memory and use.memory.max, use.of_gpu, use.shared) for use in measurement.gpus]
    return _peak(uses, gpus)


def recorded_peak(values: object, gpus: int) -> int | None:
    """The same, from what a journal has of the GPUs, where each field may be anything."""
    if not isinstance(values, list):
        return None
    uses = []
    for each in values:
        use = each if isinstance(each, dict) else {}
        memory = use.get("memory")
        of_gpu = use.get("of_gpu", ())
        uses.append((memory.get("max") if isinstance(memory, dict) else None, of_gpu, use.get("shared", 0)))
    return _peak(uses, gpus)


def _peak(uses: Sequence[tuple[Any, Any, Any]], gpus: int) -> int | None:
    known = [
        most
        for most, of_gpu, shared in uses
        if type(most) in (int, float)
        and 0 < most < MOST_BYTES
        and isinstance(of_gpu, tuple | list)
        and not (shared and "memory" in of_gpu)  # else it is not the attempt's own
    ]
    return math.ceil(max(known)) if known and len(known) == len(uses) == gpus else None


def _with_reserve(peak: float) -> int:
    """What is promised to jobs of such a peak: a fifth more, in whole MiB."""
    return -(-math.ceil(peak) * 6 // (5 * _MIB)) * _MIB


def measured_of(mem: int) -> int:
    """About the peak for which so much is promised."""
    return mem * 5 // 6


class Peaks:
    """The peaks known in one run, and the jobs that wait and go by them."""

    def __init__(self, largest: Callable[[int], float], *, shares: bool) -> None:
        """`largest`: the most memory that so many GPUs have. `shares`: whether a GPU may have several jobs."""
        self._largest = largest
        self._shares = shares
        self._known: dict[str, int] = {}  # what is promised for each template
        self._failed: set[int] = set()
        self._waiting: dict[str, set[int]] = {}  # the numbers of the jobs of each template
        self.is_asked = False  # whether there was a job that goes by them

    def claim(self, job: Job, gpus: int) -> Claim:
        """What a job needs by now. One that needs about all of the largest GPUs runs alone on such ones.

        There, others may use a little, as the driver does: to wait for the last MiB could be in vain.
        """
        mem, most = self._known.get(template_of_job(job)), self._largest(gpus)
        if mem is None:
            return Claim(0, alone=self._shares)
        if mem >= most:
            return Claim(int(most), alone=True)
        return Claim(mem, alone=job.number in self._failed)

    def join(self, job: Job) -> None:
        """A job waits."""
        self.is_asked = True
        self._waiting.setdefault(template_of_job(job), set()).add(job.number)

    def leave(self, job: Job) -> None:
        """It does not any more."""
        template = template_of_job(job)
        numbers = self._waiting[template]
        numbers.discard(job.number)
        if not numbers:
            del self._waiting[template]

    def distrust(self, job: Job) -> None:
        """It failed: its next attempt runs alone."""
        if job.mem_auto:
            self._failed.add(job.number)

    def learn(self, job: Job, peak: float) -> Iterable[int]:
        """A job has succeeded: the numbers of the jobs that now need something else."""
        return self._take_in(template_of_job(job), peak)

    def add_history(self, history: PeakHistory) -> Iterable[int]:
        """Peaks of earlier runs have arrived: the same."""
        return [
            number for template, peaks in history.items() if peaks for number in self._take_in(template, max(peaks))
        ]

    def _take_in(self, template: str, peak: float) -> Iterable[int]:
        """In one run, only higher peaks change anything, so waiting jobs are seldom sorted again."""
        mem = _with_reserve(peak)
        if mem <= self._known.get(template, 0):
            return ()
        self._known[template] = mem
        if len(self._known) > _MOST_TEMPLATES:
            del self._known[next(iter(self._known))]
        return tuple(self._waiting.get(template, ()))

    @property
    def has_waiting(self) -> bool:
        """Whether any job that goes by them waits."""
        return bool(self._waiting)

    def waiting(self) -> Iterable[int]:
        """The numbers of all jobs that go by them."""
        return [number for numbers in self._waiting.values() for number in numbers]
