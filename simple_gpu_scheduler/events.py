"""What happened in a run, in the past tense, and handing it to the sinks.

An event says what happened, not how it is shown or kept. Times are in seconds of the epoch, durations in seconds.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from .jobs import Attempt, Job, Outcome, Place
from .waiting import Wait


class JobStarted(NamedTuple):
    """An attempt is being started."""

    attempt: Attempt


class JobEnded(NamedTuple):
    """An attempt has ended and nothing of it is left; `is_final` unless the job is tried again."""

    attempt: Attempt
    outcome: Outcome
    started_at: float
    runtime: float
    is_final: bool


class JobDropped(NamedTuple):
    """A job will never start."""

    job: Job
    reason: str


class LeftBehind(NamedTuple):
    """An attempt had left processes: so many were ended, and these pids are another user's."""

    attempt: Attempt
    swept: int
    beyond_us: str


class LineRefused(NamedTuple):
    """A line could not become a job."""

    place: Place
    problem: str


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
    """Jobs wait, and this is why; said once for each change."""

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
    """Something worth a sentence; `is_failure` when it is one that the exit code tells of."""

    sentence: str
    is_failure: bool = False


class RunEnded(NamedTuple):
    """All is over. `not_started` counts the jobs that were read; `all_read` says whether there were others."""

    succeeded: int
    failed: int
    timed_out: int
    not_started: int
    elapsed: float
    all_read: bool


Event = (
    JobStarted
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


class Sink(Protocol):
    """Consumes events. It may raise; it must not wait for anybody."""

    def take(self, event: Event, /) -> None:
        """One event, in the order in which they happened."""

    def close(self) -> None:
        """No event follows."""


class Publisher:
    """Hands each event to every sink. A sink that fails is left out from then on, and the others are told."""

    def __init__(self, sinks: Iterable[Sink]) -> None:
        self._sinks = list(sinks)
        self.has_lost_a_sink = False

    def publish(self, event: Event) -> None:
        """Tell every sink."""
        for sink in self._sinks:
            try:
                sink.take(event)
            except Exception as error:  # noqa: BLE001 - whatever ails a sink, the jobs go on
                self._lose(sink, error)

    def close(self) -> None:
        """Tell every sink that it is over."""
        for sink in reversed(self._sinks):  # the first one tells people, also of what ails the others
            try:
                sink.close()
            except Exception as error:  # noqa: BLE001 - as above
                self._lose(sink, error)

    def _lose(self, sink: Sink, error: Exception) -> None:
        if sink not in self._sinks:
            return
        self._sinks = [other for other in self._sinks if other is not sink]  # a new list: the old is being walked
        self.has_lost_a_sink = True
        self.publish(Noticed(f"{type(sink).__name__} stopped recording: {error}; the jobs go on", is_failure=True))
