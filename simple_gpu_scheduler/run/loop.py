"""The loop that owns the state of a run: inbox -> scheduler -> engine -> events.

It runs in the main thread and sleeps until a message comes or a deadline is due. The scheduler knows the
order, the engine places and processes, and the sinks how things are shown.
"""

from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.jobs import Attempt, Job, Outcome, Place
from simple_gpu_scheduler.base.stdlib import Empty, signal
from simple_gpu_scheduler.base.text import show_job
from simple_gpu_scheduler.base.values import TYPE_CHECKING, Any, Callable, Iterable, Mapping
from simple_gpu_scheduler.engines.protocol import (
    NEVER,
    Began,
    Diagnosed,
    Ended,
    Exited,
    ForEngine,
    Refused,
    Unstoppable,
)
from simple_gpu_scheduler.events import (
    AllRead,
    InputEnded,
    JobBegan,
    JobsRead,
    JobStarted,
    LeftBehind,
    LineRefused,
    Noticed,
    StatusAsked,
)
from simple_gpu_scheduler.inputs.reader import READ_AHEAD, Batch, EndOfInput, FileRead
from simple_gpu_scheduler.jobfile.parse import Refusal, chooses_gpus
from simple_gpu_scheduler.remote.server import Asked
from simple_gpu_scheduler.scheduling.backfill import Choice
from simple_gpu_scheduler.scheduling.estimates import PastLengths
from simple_gpu_scheduler.system.signals import Signalled

from . import attempts, ends, gpu_watch, history, requests, stop
from .state import Message, State, UnderWay

if TYPE_CHECKING:
    from simple_gpu_scheduler.resume.unfinished_jobs import Resumption

_UNFIT = (
    "some waiting jobs need more GPUs, or larger ones, than this run may use at once; to run them, stop this run and "
    "resume it with more GPUs"
)
_CHOOSES_ITSELF = (
    "sets CUDA_VISIBLE_DEVICES itself, so it may use a GPU that is not its own; remove that from the command"
)
_WITHDRAWN = {"error": "the request was withdrawn"}
# The system's own limit for a wait is not much longer.
_LONGEST_WAIT = 86_400.0


def resume(state: State, left: "Resumption") -> None:
    """Continue with what an earlier scheduler left of this run."""
    for job, fate, next_attempt in left.ended:
        state.scheduler.remember(job, next_attempt, succeeded=fate == "succeeded")
    now = state.clock.now()
    for each in left.survivors:
        state.scheduler.resume(each.attempt, each.excused, now)
        attempts.resume(state, each.attempt, each.began_at, each.ended_at)
        _watch(state, each.attempt, each.log)
    # Before jobs that are dropped at once: those have their own events.
    state.publish(left.as_event(state.runtimes()))
    for job, next_attempt in left.waiting:
        ends.drop(state, state.scheduler.add(job, now, next_attempt))
    if state.scheduler.has_unfit:
        state.publish(Noticed(_UNFIT))


def leave_out(state: State, failed: Iterable[int]) -> None:
    """These jobs are not run and failed before: jobs that depend on them must not start."""
    for number in failed:
        state.scheduler.remember(Job(number, b"", Place(0), name="-"), succeeded=False)


def run(state: State) -> None:
    """Run until the input has ended and nothing is left, or until stopped."""
    began = state.clock.now()
    if state.scheduler.waiting:  # what an earlier scheduler left, which may cause no message
        start_what_fits(state)
    _resume_reader(state)
    while not _is_over(state):
        message = _next_message(state)
        if message is not None:
            receive(state, message)
        attempts.enforce_deadlines(state)
        if state.watched:
            _check_stalls(state)
        start_what_fits(state)
        _resume_reader(state)
    state.engine.close()
    ends.give_up_retries(state)
    state.publish(state.ledger.summary(state.clock.now() - began, state.signal))


def receive(state: State, message: Message) -> None:
    """Act on a message."""
    _ON[type(message)](state, message)


def exit_code(state: State) -> int:
    """The exit code; call it after the sinks are closed, since that may fail too."""
    return state.ledger.exit_code(state.signal)


def _is_over(state: State) -> bool:
    if state.attempts:
        return False
    if state.ledger.is_stopping:
        return True
    if state.reader_has_ended and state.may_read_more and not state.scheduler.waiting:
        # The pipe has ended for now; it may have been written to until it is closed for good.
        state.may_read_more = False
        state.reader_has_ended = not state.stop_reading()
    return state.reader_has_ended and not state.scheduler.waiting


def _next_message(state: State) -> Message | None:
    now = state.clock.now()
    wake = min(attempts.next_deadline(state), gpu_watch.next_wake(state), state.watch_at)
    if history.is_awaited(state):
        wake = min(wake, state.peaks_due)
    if state.starts:
        wake = min(wake, state.scheduler.next_wake(now))
        start = state.start_limit.next_try(len(state.attempts), now)
        if start < wake and state.scheduler.waiting:
            wake = start
    try:
        if wake == NEVER:
            message: Message = state.inbox.get()
        else:
            message = state.inbox.get(timeout=min(max(0.0, wake - now), _LONGEST_WAIT))
    except Empty:
        return None
    return message


def _on_batch(state: State, batch: Batch) -> None:
    jobs = [job for job in batch.jobs if isinstance(job, Job)]
    for refusal in (job for job in batch.jobs if isinstance(job, Refusal)):  # first: the mark is after them
        state.publish(LineRefused(refusal.place, refusal.problem, refusal.number))
    state.publish(JobsRead(jobs, batch.mark))
    if not state.has_told_of_choice:
        _tell_of_choice(state, jobs)
    now = state.clock.now()
    for job in jobs:
        ends.drop(state, state.scheduler.add(job, now))
    state.reader_waits = True


def _tell_of_choice(state: State, jobs: Iterable[Job]) -> None:
    """Once: in an old script, every line may be of this kind."""
    chooser = next((job for job in jobs if chooses_gpus(job.command) and job.gpus), None)
    if chooser:
        state.has_told_of_choice = True
        state.publish(Noticed(f"{show_job(chooser)} {_CHOOSES_ITSELF}"))


def _on_end_of_input(state: State, ended: EndOfInput) -> None:
    state.reader_has_ended = True
    state.publish(AllRead())
    state.may_read_more = ended.more_may_come
    if ended.problem:
        state.complain(ended.problem)
    if ended.changed:
        state.publish(Noticed(ended.changed, is_failure=True, is_bad_input=True))
    stop.check_failures(state)


def _on_engine(state: State, message: ForEngine) -> None:
    for report in state.engine.received(message.message, state.clock.now()):
        if isinstance(report, Ended):
            _on_ended(state, report)
        elif isinstance(report, Exited):
            attempts.exited(state, report.attempt)
        elif isinstance(report, Refused):
            _on_refused(state, report)
        elif isinstance(report, Unstoppable):
            attempts.cannot_end(state, report.attempt)
        elif isinstance(report, Diagnosed):
            _on_diagnosed(state, report)
        else:
            _on_began(state, report)


def _on_began(state: State, report: Began) -> None:
    attempts.began(state, report.attempt)
    _watch(state, report.attempt, state.rules.log_of(report.attempt.job))
    state.scheduler.begin(report.attempt, state.clock.now())
    state.publish(JobBegan(report.attempt, report.where))


def _on_refused(state: State, refused: Refused) -> None:
    """Let the job wait; without hope, or if it was to end anyway, it is not started."""
    now, attempt, known = state.clock.now(), refused.attempt, state.start_limit
    state.start_limit = known.refused(len(state.attempts) - 1, now)
    if state.attempts[attempt.key].ending or state.start_limit.is_hopeless(now):
        _on_ended(state, Ended(attempt, Outcome("not started", reason=refused.why)))
        return
    attempts.ended(state, attempt)
    ends.postpone(state, attempt, refused.why)
    state.engine.release(attempt)
    if known.is_news(now):
        state.publish(Noticed(f"waiting: {refused.why}; jobs start as soon as it does", is_warning=True))


def _on_ended(state: State, ended: Ended) -> None:
    run = attempts.ended(state, ended.attempt)
    if ended.by_itself and run.ending:  # the loop was late, as after Ctrl-Z
        run = run._replace(ending="")
    if ended.outcome is None or ended.outcome.kind != "not started":
        state.start_limit = state.start_limit.ran()
    outcome = _outcome(run, ended)
    if ended.measured:
        attempts.measured(state, run, ended.measured)
    if outcome is None:
        ends.interrupt(state, ended.attempt, ended.why)
        state.engine.release(ended.attempt)
        return
    peak = history.peak(state, run.attempt, ended.measured)
    event, dropped = ends.conclude(state, run, outcome, peak)
    # After the event: when another scheduler gets the GPU, the end must have been recorded.
    state.engine.release(run.attempt)
    if ended.beyond_us or (ended.swept and not run.ending):  # a job that we ended had no time to clean up
        state.publish(LeftBehind(run.attempt, ended.swept, ended.beyond_us, ended.server))
    if outcome.kind == "succeeded":
        history.tell_nothing_learned(state, run.attempt, peak)
    if run.ending != "cancelled" and run.attempt.slots:  # otherwise it says nothing about a GPU of ours
        gpu_watch.ended(state, event, dropped)
    stop.check_failures(state)


def _outcome(run: UnderWay, ended: Ended) -> Outcome | None:
    if run.ending == "timed out":
        return Outcome("timed out")
    if run.ending == "stalled":
        return Outcome("stalled", reason=run.why)
    if run.ending and ended.outcome is None:  # nothing says how it ended, but we ended it: it must not run again
        return Outcome("killed", signal.SIGTERM)
    return ended.outcome


def _on_signal(state: State, message: Signalled) -> None:
    if message.number == signal.SIGUSR1:
        state.publish(StatusAsked(state.runtimes(), state.scheduler.waiting))
        gpu_watch.tell(state)
    else:
        stop.signalled(state, message.number)


def _resume_reader(state: State) -> None:
    if not state.reader_waits or state.ledger.is_stopping:
        return
    if state.rules.reads_all or state.scheduler.waiting < READ_AHEAD:
        state.reader_waits = False
        state.read_more()


def _raise(_state: State, message: Broken) -> None:
    raise message.error


_ON: Mapping[type, Callable[[State, Any], object]] = {
    Batch: _on_batch,
    FileRead: lambda state, message: state.publish(InputEnded(message.path)),
    EndOfInput: _on_end_of_input,
    ForEngine: _on_engine,
    Noticed: lambda state, message: state.publish(message),
    Broken: _raise,
    Signalled: _on_signal,
    PastLengths: history.arrived,
    Asked: lambda state, asked: asked.reply(requests.answer(state, asked.request) if asked.take() else _WITHDRAWN),
}


def start_what_fits(state: State) -> None:
    """Ask the scheduler until it would start nothing more."""
    history.ask(state)
    if not state.ledger.is_stopping:
        gpu_watch.review(state)
    if state.starts and not history.is_awaited(state):
        _start_all(state, state.clock.now())
        history.tell_of_scouts(state)
        stop.check_gpus(state)
    gpu_watch.tend(state)
    ends.drop(state, state.scheduler.drop_unfit())


def _start_all(state: State, now: float) -> None:
    rooms = gpu_watch.rooms(state)
    while state.start_limit.allows(len(state.attempts), now) and (choice := state.scheduler.next(now, rooms)):
        if not _start(state, choice, now):  # another scheduler or user was faster, so the rooms have changed
            rooms = gpu_watch.rooms(state)


def _start(state: State, choice: Choice, now: float) -> bool:
    """Take the places first, and only then commit; False if they could not be taken."""
    attempt = choice.attempt
    if not state.engine.take(attempt, now):
        return False
    if attempt.job.mem and not state.scheduler.fits(attempt, gpu_watch.rooms(state)):
        state.engine.release(attempt)
        return False
    state.scheduler.start(choice, now)
    history.tell_need(state, attempt)
    log = state.rules.log_of(attempt.job)
    state.publish(JobStarted(attempt, log))
    state.start_limit = state.start_limit.started(len(state.attempts), now)
    attempts.start(state, attempt)
    _watch(state, attempt, log)
    return True


def _watch(state: State, attempt: Attempt, log: str) -> None:
    failures, job = state.rules.failures, attempt.job
    if state.rules.watches and (failures.stall or failures.idle or job.stall or job.idle):
        from . import stalls  # noqa: PLC0415 - few runs watch their jobs

        stalls.watch(state, attempt, log)


def _check_stalls(state: State) -> None:
    from . import stalls  # noqa: PLC0415 - as above

    stalls.check(state)


def _on_diagnosed(state: State, report: Diagnosed) -> None:
    from . import stalls  # noqa: PLC0415 - as above

    stalls.diagnosed(state, report)
