"""The sink that finishes job logs: a footer behind each attempt, and handing on what is to be shown of it.

Headers are written where the log is opened. It does not know how output is shown.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

from simple_gpu_scheduler.events import Event, JobEnded, JobStarted
from simple_gpu_scheduler.job_logs import footer, newest_header
from simple_gpu_scheduler.jobs import Attempt, Job
from simple_gpu_scheduler.publishing import SinkTroubleError

from .writer import write_all

Key = tuple[int, int]


class Printed(NamedTuple):
    """What one attempt has printed: from where to where in its log, and whether the log is not wanted any more."""

    attempt: Attempt
    log: str
    begin: int
    end: int
    is_unwanted: bool = False


class Relay(Protocol):
    """Shows what jobs print, in a thread of its own."""

    @property
    def problem(self) -> str:
        """Why it can show no more; nothing while it can."""

    def started(self, attempt: Attempt, log: str, begin: int) -> None:
        """An attempt will print there, behind its header, which will be at `begin`."""

    def ended(self, printed: Printed) -> None:
        """It prints no more."""

    def close(self) -> None:
        """Wait until all is shown, or nobody is there to see it."""


class Logs:
    """`failed_only`: the log of a job that succeeds is deleted."""

    def __init__(self, log_of: Callable[[Job], str], relay: Relay | None, *, failed_only: bool) -> None:
        self._log_of = log_of
        self._relay = relay
        self._failed_only = failed_only
        self._begins: dict[Key, int] = {}
        self._to_retry: set[Key] = set()  # whose end may be said a second time, as their last word
        self._has_complained = False

    def take(self, event: Event, /) -> None:
        """One event."""
        if isinstance(event, JobStarted) and event.log:
            self._start(event.attempt, event.log)
        elif isinstance(event, JobEnded) and event.attempt.key in self._to_retry:
            self._to_retry.discard(event.attempt.key)
        elif isinstance(event, JobEnded):
            if not event.is_final:
                self._to_retry.add(event.attempt.key)
            self._end(event, self._log_of(event.attempt.job))

    def close(self) -> None:
        """Nothing follows."""
        if self._relay:
            self._relay.close()
            self._complain(self._relay.problem)

    def _start(self, attempt: Attempt, log: str) -> None:
        if self._relay is None:
            return
        begin = 0
        with suppress(OSError):  # it is the first attempt
            begin = os.stat(log).st_size
        self._begins[attempt.key] = begin
        self._relay.started(attempt, log, begin)

    def _end(self, event: JobEnded, log: str) -> None:
        is_unwanted = self._failed_only and event.outcome.kind == "succeeded"
        begin = self._begins.pop(event.attempt.key, None)
        try:
            if begin is None and self._relay:  # an earlier scheduler had started it
                begin = newest_header(log)
            end = _finish(log, b"" if is_unwanted else footer(event.outcome, event.runtime, time.time()))
            if self._relay:
                self._relay.ended(Printed(event.attempt, log, begin or 0, end, is_unwanted))
            elif is_unwanted:
                os.unlink(log)
        except FileNotFoundError:  # it could not be made, which was said; or somebody wants it no more
            return
        except OSError as error:
            self._complain(f"the log {log} cannot be finished: {error.strerror}")
        if self._relay:
            self._complain(self._relay.problem)

    def _complain(self, problem: str) -> None:
        if problem and not self._has_complained:
            self._has_complained = True
            raise SinkTroubleError(problem)


def _finish(log: str, end: bytes) -> int:
    """Write the footer, on a line of its own; where the output before it ends."""
    fd = os.open(log, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            write_all(fd, b"\n")
            size += 1
        write_all(fd, end)
    finally:
        os.close(fd)
    return size
