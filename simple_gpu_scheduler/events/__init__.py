"""What happened in a run, in the past tense.

An event says what happened, not how it is shown or recorded. Times are in seconds since the epoch.
"""

from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import Attempt, Fate, Job, Outcome, Place
from simple_gpu_scheduler.base.measurement import Curve, Measurement
from simple_gpu_scheduler.base.values import Any, Mapping, NamedTuple, Sequence


class RunBegan(NamedTuple):
    """A run was started or resumed: which, where, by what version, with which command line and inputs."""

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
    """How far a growing input was read: `offset` bytes, the number of the next line, and the defaults in force there.

    `device`, `inode` and the checksum of all bytes before it show whether a file is still the same. `source` is the
    input's name in the journal, whose fields these are. After a file was changed, `holds` has the jobs whose lines it
    holds now: the ends of the ranges of their numbers. `unfinished` is that of its last line if that has no end yet.
    """

    source: str
    device: int = 0
    inode: int = 0
    offset: int = 0
    crc: int = 0
    line: int = 1
    defaults: Mapping[str, Any] = {}
    holds: Sequence[int] | None = None
    unfinished: int = 0


class JobsRead(NamedTuple):
    """Jobs were read from the input, and how far it was read, if that must be remembered."""

    jobs: Sequence[Job]
    mark: ReadMark | None = None


class InputEnded(NamedTuple):
    """A file was read to its end."""

    path: str


class AllRead(NamedTuple):
    """The input has ended, at least for now."""


class RunResumed(NamedTuple):
    """The state of a run that is being resumed.

    `running` has the attempts still running, for how long, and the log of each. `refused` are line numbers.
    `lengths` are those of the jobs that succeeded.
    """

    ended: Sequence[tuple[Job, Fate]] = ()
    refused: Sequence[int] = ()
    running: Sequence[tuple[Attempt, float, str]] = ()
    waiting: Sequence[Job] = ()
    lengths: Sequence[float] = ()


class JobStarted(NamedTuple):
    """An attempt is being started; its output goes to the file `log`, or to our own output if that is empty."""

    attempt: Attempt
    log: str = ""


class JobBegan(NamedTuple):
    """An attempt that waited in a cluster's queue runs now, `where` the cluster says."""

    attempt: Attempt
    where: str = ""


class AttemptMeasured(NamedTuple):
    """What an attempt did to its GPUs and the CPU, right before its end."""

    attempt: Attempt
    measurement: Measurement


class CurvesDrawn(NamedTuple):
    """Curves of an attempt, or pieces of them; their times are since `began_at`. Not in the journal, but beside it."""

    attempt: Attempt
    began_at: float
    curves: Sequence[Curve]


class StallSeen(NamedTuple):
    """An attempt has stalled, for this reason, and continues unless it `ends` because of that.

    What is known was written to its `log`, if it has one; `written` is from where to where, which it did not print.
    """

    attempt: Attempt
    reason: str
    ends: bool = False
    log: str = ""
    written: tuple[int, int] | None = None


class JobEnded(NamedTuple):
    """An attempt has ended and no process of it is left; `is_final` unless the job is retried.

    `length` is how long its main process ran. `is_interrupted` if the run was stopped, so that it was ended, or is not
    retried; `is_cancelled` if the user cancelled it. `is_left`: its next attempt is left to a resumed run.
    """

    attempt: Attempt
    outcome: Outcome
    started_at: float
    length: float
    is_final: bool
    is_interrupted: bool = False
    is_cancelled: bool = False
    is_left: bool = False


class StartRefused(NamedTuple):
    """The system refused to start an attempt for now: it never began, and its job waits again."""

    attempt: Attempt
    why: str


class JobDropped(NamedTuple):
    """A job will never start."""

    job: Job
    reason: str
    is_cancelled: bool = False


class JobRequeued(NamedTuple):
    """A job that had ended, or was never started, waits again."""

    job: Job
    why: str


class LeftBehind(NamedTuple):
    """An attempt had left processes: `swept` were ended; the pids in `beyond_us` belong to another user.

    `server` is the terminal multiplexer among those that were ended, such as tmux.
    """

    attempt: Attempt
    swept: int
    beyond_us: str
    server: str = ""


class LineRefused(NamedTuple):
    """A line could not become a job."""

    place: Place
    problem: str
    number: int = 0


class Paused(NamedTuple):
    """No more jobs are started until the run continues; with False, it does."""

    is_paused: bool


class StopAsked(NamedTuple):
    """No more jobs are started; with `ends_running` running jobs are ended too, at once with `by_force`."""

    why: str
    ends_running: bool
    by_force: bool
    running: int


class StatusAsked(NamedTuple):
    """The user asked what is running and what is waiting."""

    running: Sequence[tuple[Attempt, float]]
    waiting: int


class Waited(NamedTuple):
    """Why jobs wait; sent once for each change, and empty when that is over."""

    waits: Sequence[Wait]


class WaitsSeen(NamedTuple):
    """The reasons that were sent last, as a newer look shows them: for how long, with how much memory.

    Empty while no job waits, so that nobody looks. Not in the journal.
    """

    waits: Sequence[Wait]


class NeighbourCame(NamedTuple):
    """Somebody else's process started on a GPU on which these jobs run: `who` is its user and program."""

    gpu: str
    who: str
    beside: Sequence[Job]


class GpuSetAside(NamedTuple):
    """A GPU is no longer used; `again` are the jobs that failed there and are retried elsewhere."""

    gpu: str
    reason: str
    again: Sequence[Job] = ()


class GpuReturned(NamedTuple):
    """A GPU is back in use: no job that failed there succeeded elsewhere."""

    gpu: str


class Noticed(NamedTuple):
    """Something worth a message; `is_failure` if it must show in the exit code.

    If it `is_warning`, it is shown even when only failures are. If it `is_bad_input`, part of the input was not read.
    """

    sentence: str
    is_failure: bool = False
    is_warning: bool = False
    is_bad_input: bool = False


class RunEnded(NamedTuple):
    """The run is over. `not_started` includes jobs still waiting; `all_read` is false if there was more to read.

    `left` counts the jobs left for a scheduler that resumes the run. Of these, `interrupted` were ended, or not
    retried, because the run was stopped.
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
    stalled: int = 0


Event = (
    RunBegan
    | JobsRead
    | InputEnded
    | AllRead
    | RunResumed
    | JobRequeued
    | Paused
    | JobStarted
    | JobBegan
    | AttemptMeasured
    | StallSeen
    | CurvesDrawn
    | JobEnded
    | StartRefused
    | JobDropped
    | LeftBehind
    | LineRefused
    | StopAsked
    | StatusAsked
    | Waited
    | WaitsSeen
    | NeighbourCame
    | GpuSetAside
    | GpuReturned
    | Noticed
    | RunEnded
)
