"""The sink that finishes job logs: it writes a footer after each attempt, and passes on its output to be shown.

Headers are written when a log is opened. It does not know how output is shown.
"""

import os
import time

from simple_gpu_scheduler.base.jobs import Attempt, Job, Key
from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.values import Callable, NamedTuple, Protocol, Sequence
from simple_gpu_scheduler.events import Event, JobEnded, JobStarted, RunResumed, StallSeen, StartRefused
from simple_gpu_scheduler.events.publisher import SinkTroubleError
from simple_gpu_scheduler.system.writer import write_all

from .log_file import UNKNOWN, footer, newest_header, open_to_finish


class Printed(NamedTuple):
    """The output of one attempt: from where to where in its log; to the end of the log if unknown.

    With `cut_at`, the log is not needed from there on. What is in the `gaps` was not printed by the attempt.
    """

    attempt: Attempt
    log: str
    start: int
    end: int | None = None
    cut_at: int | None = None
    gaps: Sequence[tuple[int, int]] = ()

    def cut(self) -> None:
        """Remove what is not needed; what an earlier run left in the log stays."""
        with suppress(OSError):  # it was deleted
            if self.cut_at:
                os.truncate(self.log, self.cut_at)
            elif self.cut_at is not None:
                os.unlink(self.log)


class Relay(Protocol):
    """Shows what jobs print, in its own thread."""

    @property
    def problem(self) -> str:
        """Why it can show no more; empty while it can."""

    def started(self, attempt: Attempt, log: str, start: int) -> None:
        """An attempt will print there, after its header, which will be at `start`."""

    def ended(self, printed: Printed) -> None:
        """It has ended."""

    def close(self) -> None:
        """Wait until all is shown, or there is no reader."""


class Logs:
    """`failed_only`: the log of a job that succeeds is deleted."""

    name = "the log writer"

    def __init__(self, log_of: Callable[[Job], str], relay: Relay | None, *, failed_only: bool) -> None:
        self._log_of = log_of
        self._relay = relay
        self._failed_only = failed_only
        self._starts: dict[Key, int] = {}
        self._firsts: dict[int, int] = {}  # where the first attempt of a job begins, if succeeding deletes them all
        self._earlier_logs: dict[Key, str] = {}  # the logs of attempts that an earlier scheduler had started
        self._to_retry: set[Key] = set()  # whose end may be reported again, as final
        self._gaps: dict[Key, list[tuple[int, int]]] = {}
        self._complained: set[str] = set()

    def take(self, event: Event, /) -> None:
        """One event."""
        if isinstance(event, JobStarted) and event.log:
            self._start(event.attempt, event.log)
        elif isinstance(event, StallSeen) and event.written:
            self._gaps.setdefault(event.attempt.key, []).append(event.written)
        elif isinstance(event, StartRefused):
            self._take_back(event.attempt)
        elif isinstance(event, RunResumed):
            self._earlier_logs = {attempt.key: log for attempt, _, log in event.running}
        elif isinstance(event, JobEnded) and event.attempt.key in self._to_retry:
            self._to_retry.discard(event.attempt.key)
        elif isinstance(event, JobEnded):
            if not event.is_final:
                self._to_retry.add(event.attempt.key)
            log = self._earlier_logs.pop(event.attempt.key, self._log_of(event.attempt.job))
            if log:
                self._end(event, log)

    def close(self) -> None:
        """No event follows."""
        if self._relay:
            self._relay.close()
            self._complain("relay", self._relay.problem)

    def _start(self, attempt: Attempt, log: str) -> None:
        start = 0
        with suppress(OSError):  # it is the first attempt
            start = os.stat(log).st_size
        self._starts[attempt.key] = start
        self._to_retry.discard((attempt.job.number, attempt.number - 1))
        if self._failed_only:
            self._firsts.setdefault(attempt.job.number, start)
        if self._relay:
            self._relay.started(attempt, log, start)

    def _take_back(self, attempt: Attempt) -> None:
        """It never began: all that it has in the log is a header. That goes now, before the next attempt prints."""
        start = self._starts.pop(attempt.key, UNKNOWN)
        if start == UNKNOWN:
            return
        printed = Printed(attempt, self._log_of(attempt.job), start, end=start)
        printed._replace(cut_at=start).cut()
        if self._relay:
            self._relay.ended(printed)

    def _end(self, event: JobEnded, log: str) -> None:
        key = event.attempt.key
        printed = Printed(event.attempt, log, self._starts.pop(key, UNKNOWN), gaps=self._gaps.pop(key, ()))
        fd = None
        try:
            fd = open_to_finish(log)
            if event.outcome.kind == "not started" and os.fstat(fd).st_size == printed.start:
                self._show(printed)  # it has no header here: the content belongs to another run
                return
            printed = self._look(printed, fd, has_succeeded=event.outcome.kind == "succeeded")
            self._show(printed)  # before there is a footer, which must not be shown
            if printed.cut_at is None:
                write_all(fd, footer(event.outcome, event.length, time.time()))
        except OSError as error:
            if fd is None:
                self._show(printed)
            if not isinstance(
                error, FileNotFoundError
            ):  # it could not be created, which was reported, or is not needed any more
                self._complain("logs", f"cannot finish the log {log}: {error.strerror}")
        finally:
            if fd is not None:
                os.close(fd)
        if self._relay:
            self._complain("relay", self._relay.problem)

    def _look(self, printed: Printed, fd: int, *, has_succeeded: bool) -> Printed:
        """Where the output ends, at the end of a line, and what is not needed."""
        size = os.fstat(fd).st_size
        if printed.start == UNKNOWN:  # an earlier scheduler had started it
            printed = printed._replace(start=newest_header(fd))
        first = self._firsts.pop(printed.attempt.job.number, printed.start) if has_succeeded else 0
        printed = printed._replace(end=size, cut_at=first if self._failed_only and has_succeeded else None)
        if size and os.pread(fd, 1, size - 1) != b"\n":
            with suppress(OSError):  # the disk is full; the content is shown anyway
                write_all(fd, b"\n")
                printed = printed._replace(end=size + 1)
        return printed

    def _show(self, printed: Printed) -> None:
        if self._relay:
            self._relay.ended(printed)
        else:
            printed.cut()

    def _complain(self, of: str, problem: str) -> None:
        """Report each problem once."""
        if problem and of not in self._complained:
            self._complained.add(of)
            raise SinkTroubleError(problem)
