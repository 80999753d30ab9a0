"""What a policy is, and what it sees of a job. It knows no policy but the simplest kind."""

from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from simple_gpu_scheduler.base.jobs import Job

Kind = tuple[int, int, int, str]  # GPUs, memory on each, the length roughly, and the label if the policy asks for it


class WaitingJob(NamedTuple):
    """A job's place in the order; as a tuple it sorts by rank, then by number.

    `length` is how long it counts as for the order, which may be a guess; `time` is what is known, else infinite.
    """

    rank: float
    number: int
    attempt: int
    job: Job
    since: float
    length: float
    time: float
    kind: Kind


Heads = Collection[WaitingJob]  # the first of each queue
Load = tuple[float, int]  # the share of the GPUs that is in use, and how many jobs wait


class Policy(Protocol):
    """Of one run."""

    by_time: bool  # whether it asks how long jobs take
    by_label: bool  # whether each label has a queue of its own

    def rank(self, job: Job, since: float, length: float) -> float:
        """A job's place in its queue, the smallest first; it keeps it for as long as it waits."""

    def first(self, heads: Heads, now: float, load: Load) -> WaitingJob:
        """Who is to start next."""

    def ordered(self, heads: Heads, now: float, load: Load) -> list[WaitingJob]:
        """All of them, as they are to start."""

    def started(self, waiting: WaitingJob, now: float) -> None:
        """It has got its GPUs, in its turn. Of one that passed a wide job only the end is told."""

    def ended(self, waiting: WaitingJob, now: float) -> None:
        """It has given them back."""


class Ranked:
    """Orders by the rank alone."""

    by_label = False

    def __init__(self, rank: Callable[[Job, float, float], float], *, by_time: bool) -> None:
        self.rank = rank
        self.by_time = by_time

    def first(self, heads: Heads, _now: float, _load: Load) -> WaitingJob:
        """See `Policy`."""
        return min(heads)

    def ordered(self, heads: Heads, _now: float, _load: Load) -> list[WaitingJob]:
        """See `Policy`."""
        return sorted(heads)

    def started(self, _waiting: WaitingJob, _now: float) -> None:
        """It is all the same."""

    def ended(self, _waiting: WaitingJob, _now: float) -> None:
        """As above."""
