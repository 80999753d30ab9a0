"""The sink that notifies: it runs the user's command at the end of a run, or when jobs fail or end.

A thread sends one notification at a time, and combines what comes too quickly. How the command is run, and what it
gets, is in other files.
"""

import os
import threading
import time

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.values import Callable, Sequence
from simple_gpu_scheduler.display.lines import EventWords
from simple_gpu_scheduler.events import Event, JobDropped, JobEnded, JobRequeued, RunBegan, RunEnded
from simple_gpu_scheduler.events.ledger import Ledger
from simple_gpu_scheduler.events.publisher import SinkTroubleError
from simple_gpu_scheduler.output.log_file import last_lines, read_tail
from simple_gpu_scheduler.system.threads import Thread, start_thread

from . import Trigger
from .command import Notifier
from .message import (
    MOST_JOBS,
    MOST_SENTENCES,
    JobEnd,
    Notification,
    Numbers,
    Told,
    cut_text,
    is_end,
    is_failure,
    numbers_of,
    summarize,
    told,
    trigger_of,
)

_LIMIT = 60.0
_PAUSE = 30.0
_MOST_LINES = 10
_NEVER = float("inf")
# At the end there may be three: one that is running, one for jobs still to report, and the end.
_SHARES = 3


class Notify:
    """`limit` is how long a notification may take, and also all that are left at the end together.

    After one has started, the next waits for `pause`, or for the end of the run.
    """

    name = "the notifier"

    def __init__(
        self,
        notifier: Notifier,
        on: frozenset[Trigger],
        log_of: Callable[[Job], str],
        *,
        limit: float = _LIMIT,
        pause: float = _PAUSE,
    ) -> None:
        self._notifier = notifier
        self._on = on
        self._log_of = log_of
        self._limit = limit
        self._pause = pause
        self._words = EventWords(verbose=True)
        self._began_at = time.monotonic()
        self._thread: Thread | None = None
        self._changed = threading.Condition()  # over all below
        self._blank = Notification("end", "")
        self._news = News(on)
        self._end: RunEnded | None = None
        self._has_ended = False
        self._ends_at = _NEVER  # all must be sent by then
        self._next_at = self._due = -_NEVER
        self._problems: list[str] = []

    def take(self, event: Event, /) -> None:
        """One event."""
        with self._changed:
            self._news.take(event)
            if isinstance(event, RunBegan):
                self._blank = self._blank._replace(run=event.run, host=event.host, directory=event.directory)
            elif isinstance(event, RunEnded):
                self._end = event if self._on & {"end", "each"} else None
                self._ends_at = time.monotonic() + self._limit
            self._changed.notify()
            has_work = bool(self._news or self._end)
        if has_work and not self._thread:
            self._start_thread()
        self._complain("" if isinstance(event, RunEnded) else "; the run continues")

    def close(self) -> None:
        """Wait until all is sent, or the time is over."""
        with self._changed:
            self._has_ended = True
            self._ends_at = min(self._ends_at, time.monotonic() + self._limit)
            self._changed.notify()
        if self._thread:
            self._thread.join()
        else:
            self._serve()
        self._complain("")

    def _start_thread(self) -> None:
        try:
            self._thread = start_thread(self._serve)
        except RuntimeError:  # no more threads can be started: retried at the next event, and reported at the end
            return

    def _complain(self, addition: str) -> None:
        with self._changed:
            problems, self._problems = self._problems, []
        if problems:
            raise SinkTroubleError("; ".join(dict.fromkeys(problems)) + addition, is_failure=False)

    def _serve(self) -> None:
        while make := self._next():
            try:
                problem = self._notifier.tell(make(), self._until)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with it, jobs continue
                problem = f"notification failed: {error}"
            if problem:
                with self._changed:
                    self._problems.append(problem)

    def _until(self) -> float:
        """When the running notification is out of time: at the end, those that follow get their share."""
        with self._changed:
            to_come = bool(self._news) + bool(self._end)
            return min(self._due, self._ends_at - to_come * self._limit / _SHARES)

    def _next(self) -> Callable[[], Notification] | None:
        """Wait for the next notification; None if there will be none."""
        with self._changed:
            while not self._is_due():
                if self._has_ended:
                    return None
                self._changed.wait(self._next_at - time.monotonic() if self._news else None)
            now = time.monotonic()
            self._next_at, self._due = now + self._pause, now + self._limit
            if self._news:
                return self._of_jobs(self._news.take_untold(), now)
            return self._of_run()

    def _is_due(self) -> bool:
        if self._news:
            return time.monotonic() >= self._next_at or self._ends_at != _NEVER
        return self._end is not None

    def _of_jobs(self, ends: Sequence[JobEnd], now: float) -> Callable[[], Notification]:
        blank = self._blank._replace(numbers=self._news.numbers, seconds=now - self._began_at)
        return lambda: blank._replace(
            trigger=trigger_of(ends, self._on),
            summary=summarize(ends, [self._words.line(end) for end in ends[:MOST_SENTENCES]]),
            jobs=[self._told(end) for end in ends[:MOST_JOBS]],
            more=max(0, len(ends) - MOST_JOBS),
        )

    def _of_run(self) -> Callable[[], Notification] | None:
        end, self._end = self._end, None
        if end is None:
            return None
        failed = self._news.failed
        blank = self._blank._replace(numbers=numbers_of(end), seconds=end.elapsed, code=end.code)
        return lambda: blank._replace(
            summary=cut_text(self._words.line(end)),
            jobs=[self._told(each) for each in failed[:MOST_JOBS]],
            more=max(0, len(failed) - MOST_JOBS),
        )

    def _told(self, end: JobEnd) -> Told:
        about = told(end)
        log = self._log_of(about.job)
        if not about.attempt or not os.path.exists(log):  # it never started, or its log was not wanted
            return about
        return about._replace(log=log, last_lines=last_lines(read_tail(log, run=self._blank.run), _MOST_LINES))


class News:
    """`untold` are the ends still to be reported, `failed` all jobs that have failed; both by job."""

    def __init__(self, on: frozenset[Trigger]) -> None:
        self._on = on
        self._ledger = Ledger()  # its own, since another thread reads it
        self._untold: dict[int, JobEnd] = {}
        self._failed: dict[int, JobEnd] = {}

    def __bool__(self) -> bool:
        return bool(self._untold)

    def take(self, event: Event) -> None:
        """One event."""
        self._ledger.take(event)
        if isinstance(event, JobEnded | JobDropped) and is_end(event):
            self._ended(event)
        elif isinstance(event, JobRequeued):
            self._untold.pop(event.job.number, None)
            self._failed.pop(event.job.number, None)

    def take_untold(self) -> list[JobEnd]:
        """All ends that have not been reported; they count as reported then."""
        ends = list(self._untold.values())
        self._untold.clear()
        return ends

    @property
    def failed(self) -> list[JobEnd]:
        """Those that have failed for good."""
        return list(self._failed.values())

    @property
    def numbers(self) -> Numbers:
        """Counts of ended jobs, as in the summary."""
        counts = self._ledger.counts()
        return Numbers(*[getattr(counts, name) for name in Numbers._fields])

    def _ended(self, event: JobEnd) -> None:
        number = told(event).job.number
        if is_failure(event):
            self._failed[number] = event
        if "each" in self._on or ("fail" in self._on and is_failure(event)):
            self._untold[number] = event
