"""The plain sink: one line on stderr for each thing that a person should know. Needs no terminal.

It words events; how the words get out without ever making the run wait is the writer's.
"""

from simple_gpu_scheduler.events import (
    Event,
    JobDropped,
    JobEnded,
    JobStarted,
    LineRefused,
    Noticed,
    RunEnded,
    StatusAsked,
    StopAsked,
)
from simple_gpu_scheduler.units import show_duration

from .wording import safe, show_command, show_gpus, show_job, show_outcome
from .writer import Writer

_STDERR = 2


class PlainLines:
    """Writes lines to stderr; `quiet` leaves failures only, `verbose` adds the successes."""

    def __init__(self, *, quiet: bool = False, verbose: bool = False) -> None:
        self._quiet = quiet
        self._verbose = verbose
        self._writer = Writer(_STDERR)

    def take(self, event: Event, /) -> None:
        """Write the event's line, if it has one."""
        line = self._line(event)
        if line:
            self._writer.write(f"{line}\n".encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """Wait until everything is written, or nobody reads any more."""
        self._writer.close()

    def _line(self, event: Event) -> str:
        if isinstance(event, JobStarted):
            return "" if self._quiet else _started(event, self._verbose)
        if isinstance(event, JobEnded):
            return _ended(event) if self._verbose or event.outcome.kind != "succeeded" else ""
        if isinstance(event, RunEnded):
            return "" if self._quiet else _summary(event)
        if isinstance(event, Noticed) and self._quiet and not event.is_failure:
            return ""
        return _other(event)


def _started(event: JobStarted, verbose: bool) -> str:
    attempt = event.attempt
    line = f"Processing command `{show_command(attempt.job.command)}` on {show_gpus(attempt)}"
    if verbose:
        line += f": {show_job(attempt.job)}, attempt {attempt.number}, slot {attempt.slots[0]}"
    return line


def _ended(event: JobEnded) -> str:
    job = event.attempt.job
    again = "" if event.is_final else ", is tried again"
    took = "" if event.outcome.kind == "not started" else f" after {show_duration(event.runtime)}"
    return f"{show_job(job)} {show_outcome(event.outcome)}{took}{again}: {show_command(job.command)}"


def _summary(event: RunEnded) -> str:
    unread = "" if event.all_read else ", the rest of the input was not read"
    return (
        f"{event.succeeded} succeeded, {event.failed} failed, {event.timed_out} timed out, "
        f"{event.not_started} not started{unread} in {show_duration(event.elapsed)}"
    )


def _other(event: Event) -> str:
    if isinstance(event, JobDropped):
        return f"{show_job(event.job)} was not started: {event.reason}: {show_command(event.job.command)}"
    if isinstance(event, LineRefused):
        return f"{event.place}: not started: {safe(event.problem)}"
    if isinstance(event, StopAsked):
        return _stopping(event)
    if isinstance(event, StatusAsked):
        return _status(event)
    return safe(event.sentence) if isinstance(event, Noticed) else ""


def _stopping(event: StopAsked) -> str:
    jobs = f"{event.running} running job{'' if event.running == 1 else 's'}"
    if not event.running:
        what = "nothing is running"
    elif event.by_force:
        what = f"killing {jobs}"
    elif event.ends_running:
        what = f"ending {jobs}"
    else:
        what = f"waiting for {jobs} (Ctrl-C again ends them)"
    return f"{event.why}: starting nothing more, {what}"


def _status(event: StatusAsked) -> str:
    lines = [
        f"running on {show_gpus(attempt)} for {show_duration(runtime)}: {show_job(attempt.job)}: "
        f"{show_command(attempt.job.command)}"
        for attempt, runtime in event.running
    ]
    return "\n".join([*lines, f"{len(lines)} running, {event.waiting} waiting"])
