"""The loop that owns all state: inbox -> scheduler -> leases -> engine -> events.

It runs in the main thread, sleeps until a message comes or a deadline is due, and meets everything else through
protocols. It knows nothing of order (the scheduler's), processes (the engine's), or how things are shown (the sinks').
"""

import signal
from collections.abc import Callable, Iterable, Mapping
from queue import Empty
from typing import TYPE_CHECKING, Any

from simple_gpu_scheduler.base.clock import Clock
from simple_gpu_scheduler.base.errors import Broken, Trouble
from simple_gpu_scheduler.base.jobs import Job, Outcome, Place
from simple_gpu_scheduler.engines import Ended, Engine
from simple_gpu_scheduler.events import (
    AllRead,
    InputEnded,
    JobRequeued,
    JobsRead,
    LeftBehind,
    LineRefused,
    Noticed,
    StatusAsked,
)
from simple_gpu_scheduler.events.publisher import Publisher
from simple_gpu_scheduler.gpus.leases import LeaseCame
from simple_gpu_scheduler.gpus.pool import Allotment
from simple_gpu_scheduler.inputs.reader import READ_AHEAD, Batch, FileRead, SourceEnded
from simple_gpu_scheduler.jobfile.parse import Refusal
from simple_gpu_scheduler.remote.server import Asked
from simple_gpu_scheduler.resume.adopted import Adopted
from simple_gpu_scheduler.resume.survivors import Outlived
from simple_gpu_scheduler.scheduling.estimates import Recalled
from simple_gpu_scheduler.scheduling.quarantine import Quarantine
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.system.marks import mark
from simple_gpu_scheduler.system.signals import Signalled

from .attempts import Attempts
from .gpu_watch import GpuWatch
from .messages import Inbox, Message
from .outcomes import Outcomes
from .requests import Control
from .rules import RunRules
from .start import Starting
from .stop import Stopping

if TYPE_CHECKING:
    from simple_gpu_scheduler.resume.remaining import Resumption

# The system's own limit for a wait is not much beyond.
_LONGEST_WAIT = 86_400.0
_NEVER = float("inf")


class Runner:
    """One run, from its first line to its exit code."""

    def __init__(
        self,
        scheduler: Scheduler,
        engine: Engine,
        allotment: Allotment,
        publisher: Publisher,
        inbox: Inbox,
        clock: Clock,
        read_more: Callable[[], object],
        stop_reading: Callable[[], bool],
        rules: RunRules,
        recall: Callable[[], object] | None = None,
    ) -> None:
        """`recall` has what earlier runs tell of lengths put to the inbox; it is asked when that begins to matter."""
        self._recall = recall
        self._scheduler = scheduler
        self._allotment = allotment
        self._publisher = publisher
        self._inbox = inbox
        self._clock = clock
        self._read_more = read_more
        self._stop_reading = stop_reading
        self._rules = rules
        self._ledger = publisher.ledger
        self._attempts = Attempts(engine, clock, rules.grace, self.complain)
        self._outcomes = Outcomes(scheduler, publisher)
        self._watch = GpuWatch(scheduler, allotment, publisher, self._outcomes, Quarantine(rules.quarantine))
        self._starting = Starting(scheduler, self._watch, self._outcomes, self._attempts, publisher, rules)
        self._adopted = Adopted(rules.run_id, clock, rules.grace)
        self._reader_waits = self._reader_has_ended = self._may_read_more = False
        self._stopping = Stopping(scheduler, self._attempts, self._adopted, publisher, rules.halt)
        parts = scheduler, self._attempts, self._adopted, self._outcomes, allotment, publisher
        self._control = Control(rules, *parts, self._stopping.stop)
        self._on: Mapping[type, Callable[[Any], None]] = {
            Batch: self._on_batch,
            FileRead: lambda message: publisher.publish(InputEnded(message.path)),
            SourceEnded: self._on_source_ended,
            Ended: self._on_ended,
            Outlived: self._on_outlived,
            Trouble: lambda message: self.complain(message.sentence),
            Broken: _raise,
            Signalled: self._on_signal,
            Recalled: lambda message: scheduler.recall(message.history),
            Asked: lambda asked: asked.reply(self._control.answer(asked.request)),
            LeaseCame: lambda message: allotment.came(message.gpu, clock.now()),
        }

    def take_over(self, left: "Resumption") -> None:
        """Go on with what an earlier scheduler has left of this run."""
        for job, fate, begin in left.ended:
            self._scheduler.remember(job, begin, succeeded=fate == "succeeded")
        now = self._clock.now()
        for each in left.outliving:
            self._scheduler.adopt(each.attempt, each.excused, now)
            self._adopted.add(each, self._rules.timeout)
        # Before those that are dropped at once: they are told by events of their own.
        self._publisher.publish(left.as_event(self._adopted.runtimes()))
        for job, begin in left.waiting:
            self._outcomes.drop(self._scheduler.add(job, now, begin))

    def leave_out(self, failed: Iterable[int]) -> None:
        """These are not run, and have failed before: what comes after one of them must not start."""
        for number in failed:
            self._scheduler.remember(Job(number, b"", Place(0), name="-"), succeeded=False)

    def run(self) -> None:
        """Run until the input has ended and nothing is left, or until stopped."""
        began = self._clock.now()
        if self._scheduler.waiting:  # what an earlier scheduler has left, for which no message may come
            self._starting.start_what_fits(began, is_stopping=False)
        while not self._is_over():
            message = self._next_message()
            if message is not None:
                self._on[type(message)](message)
            self._attempts.enforce_deadlines()
            self._adopted.enforce_deadlines()
            self._starting.start_what_fits(self._clock.now(), is_stopping=self._ledger.is_stopping)
            self._attempts.recorded()
            self._let_reader_go_on()
            if self._recall and self._scheduler.asks_times:
                self._recall()
                self._recall = None
        self._attempts.close()
        self._outcomes.give_up_retries()
        self._publisher.publish(self._ledger.summary(self._clock.now() - began, self._stopping.signal))

    def exit_code(self) -> int:
        """What became of the run; to be asked when its sinks are closed, since that may fail too."""
        return self._ledger.exit_code(self._stopping.signal)

    def _is_over(self) -> bool:
        if self._attempts or self._adopted:
            return False
        if self._ledger.is_stopping:
            return True
        if self._reader_has_ended and self._may_read_more and not self._scheduler.waiting:
            # A pipe that has ended for now: only when it is closed for good can nobody have written to it.
            self._may_read_more = False
            self._reader_has_ended = not self._stop_reading()
        return self._reader_has_ended and not self._scheduler.waiting

    def _next_message(self) -> Message | None:
        now = self._clock.now()
        wake = min(
            self._attempts.next_deadline,
            self._adopted.next_deadline,
            self._scheduler.next_wake(now),
            self._watch.next_wake(now, self._attempts.runtimes),
        )
        if wake == _NEVER:
            return self._inbox.get()
        try:
            return self._inbox.get(timeout=min(max(0.0, wake - now), _LONGEST_WAIT))
        except Empty:
            return None

    def _on_batch(self, batch: Batch) -> None:
        jobs = [job for job in batch.jobs if isinstance(job, Job)]
        self._publisher.publish(JobsRead(jobs, batch.mark))
        now = self._clock.now()
        for job in batch.jobs:
            if isinstance(job, Refusal):
                self._publisher.publish(LineRefused(job.place, job.problem, job.number))
            else:
                self._outcomes.drop(self._scheduler.add(job, now))
        self._reader_waits = True

    def _on_source_ended(self, ended: SourceEnded) -> None:
        self._reader_has_ended = True
        self._publisher.publish(AllRead())
        self._may_read_more = ended.more_may_come
        if ended.problem:
            self.complain(ended.problem)
        self._stopping.check_failures()

    def _on_ended(self, ended: Ended) -> None:
        run, now = self._attempts.end(ended), self._clock.now()
        if run is None:
            return
        attempt = run.attempt
        outcome = Outcome("timed out") if run.ending == "timed out" else ended.outcome
        event, dropped = self._outcomes.ended(attempt, outcome, run.began_at, run.runtime(now), now, run.ending)
        # Behind the event: when its GPU is somebody else's, its end must be on record.
        self._allotment.give_back(mark(attempt, self._rules.run_id), attempt.gpus)
        if ended.beyond_us or (ended.swept and not run.ending):  # who is ended has no time to tidy up
            self._publisher.publish(LeftBehind(attempt, ended.swept, ended.beyond_us))
        if run.ending != "cancelled":  # which tells nothing of its GPU
            self._watch.ended(event, dropped)
        self._stopping.check_failures()

    def _on_outlived(self, message: Outlived) -> None:
        end, now = self._adopted.end(message), self._clock.now()
        if end.outcome is None:
            self._scheduler.interrupt(end.attempt)
            self._publisher.publish(JobRequeued(end.attempt.job, "nobody knows its exit code"))
        else:
            self._outcomes.ended(end.attempt, end.outcome, end.began_at, end.runtime, now, end.ending)
            self._stopping.check_failures()

    def _on_signal(self, message: Signalled) -> None:
        if message.number == signal.SIGUSR1:
            self._tell_status()
        else:
            self._stopping.signalled(message.number, self._clock.now())

    def _let_reader_go_on(self) -> None:
        has_room = self._rules.reads_all or self._scheduler.waiting < READ_AHEAD
        if self._reader_waits and has_room and not self._ledger.is_stopping:
            self._reader_waits = False
            self._read_more()

    def complain(self, what: str) -> None:
        """Something other than a job went wrong, and the exit code tells of it."""
        self._publisher.publish(Noticed(what, is_failure=True))

    def _tell_status(self) -> None:
        running = self._attempts.runtimes() + self._adopted.runtimes()
        self._publisher.publish(StatusAsked(running, self._scheduler.waiting))
        self._watch.tell()


def _raise(message: Broken) -> None:
    raise message.error
