"""The jobs that could start now if there were room, in order: one queue per kind of job.

The jobs of a queue have the same needs and about the same length, so only the first of each is looked at. It asks the
policy for the order and the estimates for the lengths. It knows nothing of GPUs. Pure.
"""

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.stdlib import heappop, heappush, math
from simple_gpu_scheduler.base.values import Callable, Iterable, Iterator, NamedTuple
from simple_gpu_scheduler.scheduling.policies import Heads, Kind, Load, Policy, WaitingJob

from .estimates import UNKNOWN, Estimates, History
from .peaks import PeakHistory, Peaks
from .slots import Need

Label = Callable[[Job], str]

_NO_LENGTH = -10_000


class Gap(NamedTuple):
    """What is free while a wide job waits: this many GPUs for this many seconds, and some of them for longer."""

    gpus: int
    seconds: float
    beyond: int
    has_cpu: bool


class Lineup:
    """A removed job stays in its queue until it is first: finding it takes long, and many may be removed.

    Lengths are looked up only where they matter: for the policy, or once a job needs several GPUs or declares memory.
    """

    def __init__(
        self, policy: Policy, estimates: Estimates, label: Label, need: Callable[[Job], Need], peaks: Peaks
    ) -> None:
        self._policy = policy
        self._estimates = estimates
        self._label = label
        self._need = need
        self._peaks = peaks
        self.by_length = policy.by_length
        self._queues: dict[Kind, list[WaitingJob]] = {}
        self._heads: dict[Kind, WaitingJob] = {}  # the first of each queue
        self._by_gpus: dict[int, dict[Kind, WaitingJob]] = {}  # the same, by how many GPUs are needed
        self._here: dict[int, WaitingJob] = {}
        self._most: Need | None = None  # unless that has to be found anew
        self.cpu_jobs = 0

    def __len__(self) -> int:
        return len(self._here)

    def add(self, job: Job, attempt: int, since: float) -> None:
        """Add a job."""
        length, estimate = 0.0, UNKNOWN
        (gpus, mem), alone = self._need(job), False
        if job.mem_auto and gpus:
            mem, alone = self._peaks.claim(job, gpus)
            job = job._replace(mem=mem or None)
            self._peaks.join(job)
        if self.by_length:
            length, estimate = self._estimates.take_in(job)
        elif gpus > 1 or mem or alone:  # from now on jobs may start ahead of others
            self.by_length = True
            self._place_anew(list(self._here))
            length, estimate = self._estimates.take_in(job)
        roughly = math.frexp(length)[1] if length else 0
        if estimate == UNKNOWN:  # a guess is no length
            roughly += _NO_LENGTH
        label = self._label(job) if self._policy.by_label else ""
        kind = (gpus, mem, roughly, label, alone)
        rank = self._policy.rank(job, since, length)
        self._push(WaitingJob(rank, job.number, attempt, job, since, length, estimate, kind))

    def in_order(self, now: float, load: Load) -> Iterator[WaitingJob]:
        """The first of each queue, in the order of starting."""
        return self._in_order(self._heads.values(), now, load)

    def passing(self, gap: Gap, now: float, load: Load) -> Iterator[WaitingJob]:
        """The same, but only jobs that may fit into a gap."""
        found: list[WaitingJob] = []
        for gpus, heads in self._by_gpus.items():
            if gpus <= gap.beyond:
                found += heads.values() if gpus or gap.has_cpu else ()
            elif gpus <= gap.gpus:
                found += [head for head in heads.values() if head.estimate <= gap.seconds]
        return self._in_order(found, now, load)

    def _in_order(self, heads: Heads, now: float, load: Load) -> Iterator[WaitingJob]:
        """Nearly always only the first is needed."""
        if heads:
            first = self._policy.first(heads, now, load)
            yield first
        if len(heads) > 1:
            yield from [each for each in self._policy.ordered(heads, now, load) if each is not first]

    def take(self, waiting: WaitingJob, now: float, *, passes: bool) -> None:
        """A job starts. One that `passes` a wide job does not use up a turn."""
        self._leave(waiting.number)
        self._pass_over_gone(waiting.kind)
        if not passes:
            self._policy.started(waiting, now)

    def gave_back(self, waiting: WaitingJob, now: float) -> None:
        """A started job has left its GPUs, whatever became of it."""
        self._policy.ended(waiting, now)

    def learn(self, waiting: WaitingJob, length: float, *, succeeded: bool) -> None:
        """A started job has ended; its length may say something about others of its kind."""
        if not self.by_length:
            return
        if succeeded:
            self._place_anew(self._estimates.learn(waiting.job, length))
        else:
            self._forget(waiting.job, has_failed=True)

    def add_history(self, history: History) -> None:
        """The lengths from earlier runs have arrived."""
        self._place_anew(self._estimates.add_history(history))

    def learn_peak(self, job: Job, peak: float) -> None:
        """A job has succeeded, and how much memory it needed is known."""
        if self._peaks.is_asked:
            self._place_anew(self._peaks.learn(job, peak))

    def add_peaks(self, history: PeakHistory) -> None:
        """The peaks from earlier runs have arrived."""
        self._place_anew(self._peaks.add_history(history))

    def claim_anew(self) -> None:
        """There are fewer GPUs now: a job may need all that the others have."""
        self._place_anew(self._peaks.waiting())

    def estimate_of(self, job: Job) -> float:
        """The length of a running job, as far as is known by now."""
        return self._estimates.estimate_of(job)

    def remove(self, number: int) -> Job | None:
        """Remove a job; None if it is not here."""
        if number not in self._here:
            return None
        waiting = self._leave(number)
        self._pass_over_gone(waiting.kind)
        if self.by_length:
            self._forget(waiting.job, has_failed=False)
        return waiting.job

    def needs(self) -> set[Need]:
        """The different needs of the jobs here."""
        return {kind[:2] for kind in self._queues}

    def pop_all(self, need: Need) -> list[Job]:
        """Remove all jobs with these needs; ordered by number."""
        kinds = [kind for kind in self._queues if kind[:2] == need]
        numbers = sorted(each.number for kind in kinds for each in self._queues[kind] if self._is_here(each))
        return [job for number in numbers if (job := self.remove(number))]

    @property
    def most(self) -> Need:
        """The most GPUs that a job needs, and the most memory that must be free; each 0 if none needs any."""
        if self._most is None:
            gpus, mems = [kind[0] for kind in self._queues], [kind[1] for kind in self._queues if not kind[4]]
            self._most = (max([0, *gpus]), max([0, *mems]))
        return self._most

    def _push(self, waiting: WaitingJob) -> None:
        queue = self._queues.get(waiting.kind)
        if queue is None:
            queue = self._queues[waiting.kind] = []
            self._most = None
        heappush(queue, waiting)
        if queue[0] is waiting:
            self._set_head(waiting)
        self._here[waiting.number] = waiting
        self.cpu_jobs += not waiting.kind[0]

    def _leave(self, number: int) -> WaitingJob:
        waiting = self._here.pop(number)
        if waiting.job.mem_auto and waiting.kind[0]:
            self._peaks.leave(waiting.job)
        self.cpu_jobs -= not waiting.kind[0]
        return waiting

    def _forget(self, job: Job, *, has_failed: bool) -> None:
        scout = self._estimates.forget(job, self._here.__contains__, has_failed=has_failed)
        if scout is not None:
            self._place_anew([scout])

    def _place_anew(self, numbers: Iterable[int]) -> None:
        places = [self._leave(number) for number in tuple(numbers) if number in self._here]
        for kind in {each.kind for each in places}:
            self._pass_over_gone(kind)
        for each in places:
            self.add(each.job, each.attempt, each.since)

    def _pass_over_gone(self, kind: Kind) -> None:
        queue, here = self._queues[kind], self._here
        while queue and here.get(queue[0].number) is not queue[0]:  # as in `_is_here`, which would take longer
            heappop(queue)
        if queue:
            self._set_head(queue[0])
        else:
            del self._queues[kind], self._heads[kind], self._by_gpus[kind[0]][kind]
            self._most = None

    def _set_head(self, waiting: WaitingJob) -> None:
        self._heads[waiting.kind] = self._by_gpus.setdefault(waiting.kind[0], {})[waiting.kind] = waiting

    def _is_here(self, waiting: WaitingJob) -> bool:
        return self._here.get(waiting.number) is waiting  # it may have come back meanwhile
