"""What happened in a run, in the past tense.

An event says what happened, not how it is shown or kept. Times are in seconds of the epoch, durations in seconds.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import Attempt, Fate, Job, Outcome, Place


class RunBegan(NamedTuple):
    """A run has begun, or goes on: which, where, by whom, with which command line, and from which inputs."""

    run: str
    version: int
    program: str
    host: str
    boot: str
    pid: int
    born: int
    directory: str
    argv: Sequence[str]
    inputs: Sequence[Mapping[str, str]]
    is_resumed: bool = False


class ReadMark(NamedTuple):
    """How far a growing input was read: `offset` bytes, the number of the next line, and which defaults hold there.

    `device`, `inode` and the checksum of all bytes before it tell whether a file is still the same.
    """

    source: str
    device: int = 0
    inode: int = 0
    offset: int = 0
    crc: int = 0
    line: int = 1
    defaults: Mapping[str, Any] = {}


class JobsRead(NamedTuple):
    """Jobs were read from the input, and how far it was read where that is to be remembered."""

    jobs: Sequence[Job]
    mark: ReadMark | None = None


class InputEnded(NamedTuple):
    """A file was read to its end."""

    path: str


class AllRead(NamedTuple):
    """The input has come to its end, for now at least."""


class TakenOver(NamedTuple):
    """How a run stood that is gone on with.

    Of those that run still: for how long, and to which log they print. `refused` are the numbers of lines.
    """

    ended: Sequence[tuple[Job, Fate]] = ()
    refused: Sequence[int] = ()
    running: Sequence[tuple[Attempt, float, str]] = ()
    waiting: Sequence[Job] = ()


class JobStarted(NamedTuple):
    """An attempt is being started; what it prints goes to the file `log` where it does not go where ours goes."""

    attempt: Attempt
    log: str = ""


class JobBegan(NamedTuple):
    """An attempt that waited in a cluster's queue runs now, `where` the cluster says."""

    attempt: Attempt
    where: str = ""


class JobEnded(NamedTuple):
    """An attempt has ended and nothing of it is left; `is_final` unless the job is tried again.

    `is_interrupted` when it did not end by itself, or was to be tried again, but the run was stopped; `is_cancelled`
    when somebody wanted it to end.
    """

    attempt: Attempt
    outcome: Outcome
    started_at: float
    runtime: float
    is_final: bool
    is_interrupted: bool = False
    is_cancelled: bool = False


class JobDropped(NamedTuple):
    """A job will never start."""

    job: Job
    reason: str
    is_cancelled: bool = False


class JobRequeued(NamedTuple):
    """A job that had ended, or will never have started, waits again."""

    job: Job
    why: str


class LeftBehind(NamedTuple):
    """An attempt had left processes: so many were ended, and these pids are another user's."""

    attempt: Attempt
    swept: int
    beyond_us: str


class LineRefused(NamedTuple):
    """A line could not become a job."""

    place: Place
    problem: str
    number: int = 0


class Paused(NamedTuple):
    """Nothing more is started until told; or, with False, that is over."""

    is_paused: bool


class StopAsked(NamedTuple):
    """Nothing more is started; `ends_running` when the running jobs are ended too, at once with `by_force`."""

    why: str
    ends_running: bool
    by_force: bool
    running: int


class StatusAsked(NamedTuple):
    """Somebody wants to know what runs and what waits."""

    running: Sequence[tuple[Attempt, float]]
    waiting: int


class Waited(NamedTuple):
    """Jobs wait, and this is why; said once for each change, and with nothing when that is over."""

    waits: Sequence[Wait]


class GpuSetAside(NamedTuple):
    """A GPU is used no more; `again` are the jobs that failed there and are tried elsewhere."""

    gpu: str
    reason: str
    again: Sequence[Job] = ()


class GpuReturned(NamedTuple):
    """A GPU is used again: what had failed there failed elsewhere too."""

    gpu: str


class Noticed(NamedTuple):
    """Something worth a sentence; `is_failure` when it is one that the exit code tells of.

    One that `is_warning` is said also to those who want to hear of failures only.
    """

    sentence: str
    is_failure: bool = False
    is_warning: bool = False


class RunEnded(NamedTuple):
    """All is over. `not_started` counts also what still waits; `all_read` says whether there was more to read.

    `left` counts the jobs that a scheduler which resumes the run has to do. Of these, `interrupted` were ended, or not
    tried again, because the run was stopped.
    """

    succeeded: int
    failed: int
    timed_out: int
    not_started: int
    elapsed: float
    all_read: bool
    code: int = 0
    left: int = 0
    cancelled: int = 0
    interrupted: int = 0


Event = (
    RunBegan
    | JobsRead
    | InputEnded
    | AllRead
    | TakenOver
    | JobRequeued
    | Paused
    | JobStarted
    | JobBegan
    | JobEnded
    | JobDropped
    | LeftBehind
    | LineRefused
    | StopAsked
    | StatusAsked
    | Waited
    | GpuSetAside
    | GpuReturned
    | Noticed
    | RunEnded
)
