"""The nouns as frozen values: a job, one attempt at it, and how that attempt ended.

They are NamedTuples because a million of them are made and they must load quickly. They know nothing of how a line is
written, where GPUs come from or what a process is.
"""

from simple_gpu_scheduler.base.values import Literal, NamedTuple

Kind = Literal["succeeded", "failed", "timed out", "stalled", "killed", "not started"]
# What became of a job: how its last attempt ended, unless it was cancelled.
Fate = Literal["succeeded", "failed", "timed out", "stalled", "killed", "not started", "cancelled"]
# Why we end an attempt; empty while we do not.
Ending = Literal["", "timed out", "stalled", "stopped", "cancelled"]


class Place(NamedTuple):
    """Where a job was read: line 12, or line 12 of more.txt. In a followed file the line also has a digest."""

    line: int
    input: str = ""
    digest: str = ""

    def __str__(self) -> str:
        return f"line {self.line} of {self.input}" if self.input else f"line {self.line}"


class Patience(NamedTuple):
    """For how long an attempt may do nothing, 0 without limit; beyond it the user is warned, or the attempt ended."""

    seconds: float
    ends: bool = False


class Job(NamedTuple):
    """One command to run, with its options. An option that is `None` leaves it to the setting of the run.

    With `mem_auto`, jobs of its kind tell how much memory it needs: `mem` is that where it waits or runs, if known.
    """

    number: int
    command: bytes
    place: Place
    gpus: int = 1
    mem: int | None = None
    timeout: float | None = None
    time: float | None = None
    retries: int | None = None
    priority: int = 0
    name: str = ""
    after: tuple[int, ...] = ()
    label: str = ""
    mem_auto: bool = False
    stall: Patience | None = None
    idle: Patience | None = None


class GpuCap(NamedTuple):
    """The most GPUs that a run may hold at once, and the file that says so."""

    gpus: int
    said_by: str

    def __str__(self) -> str:
        return f"at most {self.gpus} at once ({self.said_by}, gpus-per-run)"


Key = tuple[int, int]  # of an attempt: the number of its job, and its own


class Attempt(NamedTuple):
    """One run of a job, and where: the ids of its GPUs and the run-wide numbers of its slots.

    If it runs `alone`, no other attempt of the run is on its GPUs.
    """

    job: Job
    number: int
    gpus: tuple[str, ...]
    slots: tuple[int, ...]
    alone: bool = False

    @property
    def key(self) -> Key:
        """Unique among the attempts of the run."""
        return self.job.number, self.number


class Outcome(NamedTuple):
    """How an attempt ended. `code` is the exit code or the signal; `reason` says why it was not started or ended."""

    kind: Kind
    code: int = 0
    reason: str = ""


SUCCESS = Outcome("succeeded")


def outcome_of(wait_status: int) -> Outcome:
    """The outcome for a wait status of the kernel."""
    if wait_status == 0:
        return SUCCESS
    signal = wait_status & 0x7F
    return Outcome("killed", signal) if signal else Outcome("failed", wait_status >> 8)
