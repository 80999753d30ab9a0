"""What a policy is, and what it sees of a job. Of the policies it knows only the simplest kind."""

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.values import Callable, Collection, NamedTuple, Protocol

# GPUs, memory on each, rough length, the label if the policy asks for it, and whether it shares its GPUs with no other.
Kind = tuple[int, int, int, str, bool]


class WaitingJob(NamedTuple):
    """A job's place in the order; as a tuple it sorts by rank, then by number.

    `length` decides the order and may be a guess; `estimate` is the known length, else infinite.
    """

    rank: float
    number: int
    attempt: int
    job: Job
    since: float
    length: float
    estimate: float
    kind: Kind


Heads = Collection[WaitingJob]  # the first of each queue
Load = tuple[float, int]  # the share of the GPUs that is in use, and how many jobs wait


class Policy(Protocol):
    """The order of one run."""

    by_length: bool  # whether it asks how long jobs take
    by_label: bool  # whether each label has a queue of its own

    def rank(self, job: Job, since: float, length: float) -> float:
        """A job's place in its queue, smallest first; it keeps it while it waits."""

    def first(self, heads: Heads, now: float, load: Load) -> WaitingJob:
        """The job to start next."""

    def ordered(self, heads: Heads, now: float, load: Load) -> list[WaitingJob]:
        """All of them, in the order of starting."""

    def started(self, waiting: WaitingJob, now: float) -> None:
        """It got its GPUs in its turn. Not called for a job that passed a wide one; `ended` is."""

    def ended(self, waiting: WaitingJob, now: float) -> None:
        """It gave them back."""


class Ranked:
    """Orders by the rank alone."""

    by_label = False

    def __init__(self, rank: Callable[[Job, float, float], float], *, by_length: bool) -> None:
        self.rank = rank
        self.by_length = by_length

    def first(self, heads: Heads, _now: float, _load: Load) -> WaitingJob:
        """See `Policy`."""
        return min(heads)

    def ordered(self, heads: Heads, _now: float, _load: Load) -> list[WaitingJob]:
        """See `Policy`."""
        return sorted(heads)

    def started(self, _waiting: WaitingJob, _now: float) -> None:
        """Changes nothing."""

    def ended(self, _waiting: WaitingJob, _now: float) -> None:
        """As above."""
