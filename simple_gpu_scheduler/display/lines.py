"""Events as lines for people: which events get one, its wording, and the sink that prints them on stderr."""

import os
import sys

from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.text import safe, show_command, show_gpus, show_job, show_outcome, show_waits
from simple_gpu_scheduler.base.units import show_duration
from simple_gpu_scheduler.base.values import Any, Callable, Mapping
from simple_gpu_scheduler.events import (
    Event,
    GpuReturned,
    GpuSetAside,
    JobDropped,
    JobEnded,
    JobStarted,
    LeftBehind,
    LineRefused,
    NeighbourCame,
    Noticed,
    Paused,
    RunEnded,
    StallSeen,
    StatusAsked,
    StopAsked,
    Waited,
)
from simple_gpu_scheduler.events.ledger import fate_of
from simple_gpu_scheduler.system.writer import Writer, write_all

_MOST_NUMBERS = 10


class EventWords:
    """`quiet` keeps only failures, `verbose` adds successes; without `says_starts`, starts and waits have no line.

    `can_resume`: whether the run can be resumed.
    """

    def __init__(
        self, *, quiet: bool = False, verbose: bool = False, says_starts: bool = True, can_resume: bool = False
    ) -> None:
        self._can_resume = can_resume
        self._quiet = quiet
        self._verbose = verbose
        self._says_starts = says_starts and not quiet
        self._words: Mapping[type, Callable[[Any], str]] = {
            JobStarted: self._started,
            JobEnded: self._ended,
            JobDropped: _dropped,
            StallSeen: _stall,
            LeftBehind: self._left_behind,
            LineRefused: _refused,
            StopAsked: _stopping,
            Paused: self._paused,
            StatusAsked: _status,
            Waited: self._waiting,
            NeighbourCame: self._neighbour,
            GpuSetAside: _set_aside,
            GpuReturned: _returned,
            Noticed: self._noticed,
            RunEnded: self._summary,
        }

    def line(self, event: Event) -> str:
        """The line or lines of an event; empty if it has none."""
        word = self._words.get(type(event))
        return word(event) if word else ""

    def _started(self, event: JobStarted) -> str:
        if not self._says_starts:
            return ""
        attempt = event.attempt
        line = f"Processing command `{show_command(attempt.job.command)}` on {show_gpus(attempt.gpus)}"
        if self._verbose:
            line += f": {show_job(attempt.job)}, attempt {attempt.number}, slot {attempt.slots[0]}"
        return line

    def _ended(self, event: JobEnded) -> str:
        how = self._how(event)
        return f"{show_job(event.attempt.job)} {how}: {show_command(event.attempt.job.command)}" if how else ""

    def _how(self, event: JobEnded) -> str:
        """How it ended; empty if that has no line."""
        outcome = event.outcome
        if outcome.kind == "succeeded" and not self._verbose:
            return ""
        after = f" after {show_duration(event.length)}"
        if fate_of(outcome.kind, is_cancelled=event.is_cancelled) == "cancelled":
            return f"was cancelled{after}"
        if event.is_interrupted:
            return "was interrupted before its next attempt" if event.is_left else f"was interrupted{after}"
        if outcome.kind == "succeeded":
            return f"succeeded{after}"
        again = "" if event.is_final or event.is_left else ", retrying"
        return f"{show_outcome(outcome)}{'' if outcome.kind == 'not started' else after}{again}"

    def _left_behind(self, event: LeftBehind) -> str:
        job = show_job(event.attempt.job)
        if event.beyond_us:
            return f"{job} left processes running, which this user may not end: {event.beyond_us}"
        if event.server:
            said = f"{job} left a {event.server} server running; it was ended, with everything that ran in it"
            return "" if self._quiet else f"{said}; to keep sessions, start {event.server} before the run, not in a job"
        was = "a process running, which was" if event.swept == 1 else f"{event.swept} processes running, which were"
        return "" if self._quiet else f"{job} left {was} ended (does the command end in `&`?)"

    def _waiting(self, event: Waited) -> str:
        return f"waiting: {show_waits(event.waits)}" if self._says_starts and event.waits else ""

    def _neighbour(self, event: NeighbourCame) -> str:
        numbers = ", ".join(str(job.number) for job in event.beside)
        jobs = f"job{'' if len(event.beside) == 1 else 's'} {numbers}" if numbers else "a job that has just ended"
        return "" if self._quiet else f"gpu {event.gpu}: {safe(event.who)} started on it alongside {jobs}"

    def _paused(self, event: Paused) -> str:
        if not self._says_starts:
            return ""
        return f"paused: no new jobs until `{PROGRAM} continue`" if event.is_paused else "continued"

    def _noticed(self, event: Noticed) -> str:
        return "" if self._quiet and not (event.is_failure or event.is_warning) else safe(event.sentence)

    def _summary(self, event: RunEnded) -> str:
        if self._quiet:
            return ""
        return _summary(event) + (_left(event.left) if event.left and self._can_resume else "")


def _left(jobs: int) -> str:
    return f"\n{jobs} job{'' if jobs == 1 else 's'} left; continue with: {PROGRAM} --resume"


def _summary(event: RunEnded) -> str:
    if event.all_read and not any((*event[:4], event.cancelled, event.interrupted, event.stalled)):
        return "no commands were read"
    numbers = (
        f"{event.succeeded} succeeded, {event.failed} failed, {event.timed_out} timed out, "
        f"{f'{event.stalled} stalled, ' if event.stalled else ''}{event.not_started} not started"
    )
    numbers += f", {event.cancelled} cancelled" if event.cancelled else ""
    numbers += f", {event.interrupted} interrupted" if event.interrupted else ""
    unread = "" if event.all_read else "; the rest of the input was not read"
    return f"{numbers} in {show_duration(event.elapsed)}{unread}"


def _set_aside(event: GpuSetAside) -> str:
    numbers = ", ".join(str(job.number) for job in event.again[:_MOST_NUMBERS])
    more = f" and {len(event.again) - _MOST_NUMBERS} more" if len(event.again) > _MOST_NUMBERS else ""
    one = len(event.again) == 1
    again = (
        f"; job{'' if one else 's'} {numbers}{more} {'is' if one else 'are'} retried elsewhere" if event.again else ""
    )
    return f"gpu {event.gpu} is set aside: {safe(event.reason)}{again}"


def _returned(event: GpuReturned) -> str:
    return f"gpu {event.gpu} is back in use: no job that failed there succeeded elsewhere"


def _stall(event: StallSeen) -> str:
    attempt = event.attempt
    number = attempt.job.number
    if event.ends:  # its end follows
        return ""
    more = f"more is in its log: {PROGRAM} logs {number}; " if event.log else ""
    where = f" on {show_gpus(attempt.gpus)}" if attempt.gpus else ""
    which = f"{show_job(attempt.job)}{where}"
    return f"{which} seems stalled: {event.reason}; {more}to end it: {PROGRAM} cancel {number}"


def _dropped(event: JobDropped) -> str:
    what = "was cancelled" if event.is_cancelled else f"was not started: {event.reason}"
    return f"{show_job(event.job)} {what}: {show_command(event.job.command)}"


def _refused(event: LineRefused) -> str:
    return f"{safe(str(event.place))}: not started: {safe(event.problem)}"


def _stopping(event: StopAsked) -> str:
    jobs = f"{event.running} running job{'' if event.running == 1 else 's'}"
    if not event.running:
        what = "nothing is running"
    elif event.by_force:
        what = f"killing {jobs}"
    elif event.ends_running:
        what = f"ending {jobs}"
    else:
        again = "again " if event.why == "Ctrl-C" else ""
        what = f"waiting for {jobs} (Ctrl-C {again}to end {'it' if event.running == 1 else 'them'})"
    return f"{event.why}: stopping; no new jobs, {what}"


def _status(event: StatusAsked) -> str:
    lines = [
        f"running on {show_gpus(attempt.gpus)} for {show_duration(runtime)}: {show_job(attempt.job)}: "
        f"{show_command(attempt.job.command)}"
        for attempt, runtime in event.running
    ]
    return "\n".join([*lines, f"{len(lines)} running, {event.waiting} waiting"])


_STDERR = 2


class PlainLines:
    """Writes lines to stderr."""

    def __init__(self, words: EventWords) -> None:
        self._words = words
        self._writer = Writer(_STDERR)

    def take(self, event: Event, /) -> None:
        """Write the event's line, if it has one."""
        line = self._words.line(event)
        if line:
            self._writer.write(f"{line}\n".encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """Wait until everything is written, or nothing reads it any more."""
        self._writer.close()


_STDOUT = 1


class DryRun:
    """Writes `gpu 0: command` for each job in order of starting.

    The command's bytes are written as they are, except on a terminal: there, a command of unknown origin must not move
    the cursor or hide its end.
    """

    name = "the list of jobs"

    def __init__(self) -> None:
        self._shown = _escaped if os.isatty(_STDOUT) else bytes

    def take(self, event: Event, /) -> None:
        """Print a start."""
        if isinstance(event, JobStarted):
            command = self._shown(event.attempt.job.command.strip())
            write_all(_STDOUT, b"%s: %s\n" % (show_gpus(event.attempt.gpus).encode(), command))

    def close(self) -> None:
        """Nothing is held back."""


def _escaped(command: bytes) -> bytes:
    return safe(command.decode("utf-8", "backslashreplace")).encode(sys.stdout.encoding, "backslashreplace")
