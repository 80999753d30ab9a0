"""Records -> when what ran where: every attempt of every job, scheduler sessions, waits for GPUs. Pure.

The state of the jobs now is in `journal.run_state`; an attempt without an end may still be running, or its run may be
dead: the caller says when the run was last heard of.
"""

from collections.abc import Iterable

from simple_gpu_scheduler.base.jobs import outcome_of
from simple_gpu_scheduler.base.values import NamedTuple
from simple_gpu_scheduler.journal.fields import is_sound
from simple_gpu_scheduler.journal.read import Record

from .measured import Measured, sound

INTERRUPTED = "interrupted"


class Span:
    """One attempt. Without an end it is running, or its end was not seen."""

    __slots__ = ("code", "ended", "gpus", "lost", "measured", "number", "outcome", "started")

    def __init__(self, number: int, gpus: tuple[str, ...], started: float) -> None:
        self.number = number
        self.gpus = gpus
        self.started = started
        self.ended: float | None = None
        self.outcome = ""
        self.code: int | None = None
        # When its scheduler was last heard of, if that died; the attempt may have run on.
        self.lost: float | None = None
        self.measured: Measured | None = None

    def end(self, at: float, outcome: str, code: int | None) -> None:
        """It has ended; a later record may change how, but not when."""
        if self.ended is None:
            self.ended = max(self.started, at)
        self.outcome, self.code = outcome, code

    def end_by(self, until: float) -> float:
        """When it ended, or `until` if it has not; the clock may have been set back since it started."""
        return max(self.started, until) if self.ended is None else self.ended

    def give_up(self, at: float) -> None:
        """Its end will not be seen."""
        self.end(at if self.lost is None else self.lost, INTERRUPTED, None)


class WaitSpan(NamedTuple):
    """Why and how long a GPU was waited for; `until` is missing while the wait lasts."""

    gpu: str
    reason: str
    since: float
    until: float | None


class Spans:
    """All attempts. Feed it the records in order."""

    def __init__(self) -> None:
        self.of_jobs: dict[int, list[Span]] = {}
        self.sessions: list[tuple[float, float]] = []  # of each scheduler; the last one may continue
        self.waits: list[WaitSpan] = []
        self._waiting: dict[str, tuple[str, float]] = {}
        self._open: dict[int, Span] = {}  # the newest attempt without an end, by job
        self._on = {
            "run began": self._began,
            "job started": self._started,
            "job requeued": self._requeued,
            "attempt measured": self._measured,
            "job ended": self._ended,
            "job exited": self._exited,
            "keeper alone": self._alone,
            "waited": self._waited,
            "run ended": self._run_ended,
        }

    def feed(self, records: Iterable[Record]) -> None:
        """Take in more records; impossible ones are skipped."""
        for record in records:
            if not is_sound(record):  # counted when the states are read
                continue
            take = self._on.get(record["event"], self._other)
            try:
                take(record, record["at"])
            except (KeyError, ValueError):  # a field is missing
                continue

    def close(self, until: float, running: Iterable[int]) -> None:
        """No more records. These jobs are still running, others without an end are not; last heard of at `until`."""
        alive = set(running)
        for number, span in self._open.items():
            if number not in alive:
                span.give_up(until)
        self._end_waits(self._waiting, None if alive else until)

    def _other(self, _record: Record, at: float) -> None:
        """A scheduler that writes is running."""
        since, until = self.sessions[-1] if self.sessions else (at, at)
        if at > until:
            self.sessions[-1:] = [(since, at)]

    def _began(self, _record: Record, at: float) -> None:
        if self.sessions:
            until = self.sessions[-1][1]
            self._end_waits(self._waiting, until)
            for span in self._open.values():
                if span.lost is None:  # otherwise an earlier one lost it
                    span.lost = until
        self.sessions.append((at, at))

    def _started(self, record: Record, at: float) -> None:
        self._other(record, at)
        gpus = tuple(record["gpus"])
        self._begin(record["job"], record["attempt"], gpus, at)
        if self._waiting:
            self._end_waits(gpus, at)

    def _requeued(self, record: Record, at: float) -> None:
        self._other(record, at)
        span = self._find(record["job"], record["attempt"]) if "attempt" in record else None
        if span:  # the system refused to start it
            self.of_jobs[record["job"]].remove(span)
            del self._open[record["job"]]

    def _begin(self, job: int, attempt: int, gpus: tuple[str, ...], at: float) -> None:
        earlier = self._open.get(job)
        if earlier is not None:
            earlier.give_up(at)
        self._open[job] = span = Span(attempt, gpus, at)
        self.of_jobs.setdefault(job, []).append(span)

    def _measured(self, record: Record, at: float) -> None:
        self._other(record, at)
        span = self._find(record["job"], record["attempt"])
        if span:
            span.measured = sound(record)

    def _ended(self, record: Record, at: float) -> None:
        self._other(record, at)
        span = self._find(record["job"], record["attempt"])
        if span is None:  # on a full disk the record of its start may be missing
            self._begin(record["job"], record["attempt"], (), record["started"])
            span = self._open[record["job"]]
        is_interrupted = record.get("interrupted")
        if span.ended is None or not is_interrupted:  # otherwise it waited for a retry when the run was stopped
            span.end(at, INTERRUPTED if is_interrupted else record["outcome"], record["code"])
        self._forget(record["job"], span)

    def _exited(self, record: Record, at: float) -> None:
        span = self._find(record["job"], record["attempt"])
        if span is None or span.ended is not None:
            return
        span.lost = min(at, self.sessions[-1][1]) if self.sessions else at
        outcome = outcome_of(record["status"])
        span.end(at, outcome.kind, outcome.code)
        self._forget(record["job"], span)

    def _forget(self, job: int, span: Span) -> None:
        if self._open.get(job) is span:
            del self._open[job]

    def _find(self, job: int, attempt: int) -> Span | None:
        return next((span for span in reversed(self.of_jobs.get(job, ())) if span.number == attempt), None)

    def _alone(self, record: Record, at: float) -> None:
        self._other(record, at)
        for job, attempt, _pid in record["running"]:
            if self._find(job, attempt) is None:
                self._begin(job, attempt, (), at)

    def _waited(self, record: Record, at: float) -> None:
        self._other(record, at)
        now = {each["gpu"]: each["for"] for each in record["waits"]}
        self._end_waits([gpu for gpu, (reason, _) in self._waiting.items() if now.get(gpu) != reason], at)
        for gpu, reason in now.items():
            self._waiting.setdefault(gpu, (reason, at))

    def _end_waits(self, gpus: Iterable[str], until: float | None) -> None:
        for gpu in list(gpus):
            wait = self._waiting.pop(gpu, None)
            if wait is not None:
                self.waits.append(WaitSpan(gpu, wait[0], wait[1], None if until is None else max(wait[1], until)))

    def _run_ended(self, record: Record, at: float) -> None:
        self._other(record, at)
        self._end_waits(self._waiting, at)
