"""From options to an exit code: checks what can be checked before anything starts, builds the parts, lets them run."""

import gc
import os
import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from simple_gpu_scheduler import engines
from simple_gpu_scheduler.base.errors import Trouble, UserError
from simple_gpu_scheduler.engines import Setting
from simple_gpu_scheduler.events import Noticed, RunEnded
from simple_gpu_scheduler.events.publisher import Publisher, Sink
from simple_gpu_scheduler.gpus.discover import Machine, find_machine
from simple_gpu_scheduler.inputs import gather
from simple_gpu_scheduler.inputs.reader import Parser, Reader
from simple_gpu_scheduler.jobfile.parse import LineParser
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.keeper.client import KeeperClient
from simple_gpu_scheduler.output import place
from simple_gpu_scheduler.run import loop
from simple_gpu_scheduler.run.messages import Message
from simple_gpu_scheduler.run.options import Options
from simple_gpu_scheduler.run.rules import RunRules
from simple_gpu_scheduler.run.state import State
from simple_gpu_scheduler.scheduling import Rules
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits
from simple_gpu_scheduler.system.signals import signals_to
from simple_gpu_scheduler.system.threads import Meanwhile, need_thread

from . import checks
from . import journal as recording
from .display import Showing, decide, look_at_streams
from .lengths import find_estimates
from .sinks import Notifying

if TYPE_CHECKING:
    from simple_gpu_scheduler.joblog.resume import SkippingParser
    from simple_gpu_scheduler.resume.find import Resumed
    from simple_gpu_scheduler.resume.remaining import Resumption

_BEGUN_WITHIN = 5.0
_WITHOUT_KEEPER = (
    "the keeper process was killed; the jobs go on, but exit codes and what is in a pipe would now be lost with the "
    "scheduler"
)


class Begun(NamedTuple):
    """What is open and known before anything is read."""

    run_id: str
    shell: str
    record: recording.Recording
    journal: Sequence[Sink]
    publisher: Publisher
    keeper: KeeperClient | None
    gathered: gather.Gathered
    parser: Parser
    showing: Showing
    logs: str
    notifying: Notifying | None
    by_log: "SkippingParser | None" = None

    @property
    def problems(self) -> list[str]:
        """What is to be said loudly though it stops no job."""
        return [*([self.record.problem] if self.record.problem else []), *self.gathered.problems]


def run_jobs(options: Options, keeper: KeeperClient | None, resumed: "Resumed | None" = None) -> int:
    """Run all jobs of the input, and of the run that is gone on with; the exit code."""
    machine = Meanwhile(lambda: find_machine(options.wants, os.environ))
    begun = _begin(options, machine, keeper, resumed)
    try:
        return _run_begun(options, machine, begun, resumed)
    except UserError as error:  # so that it does not seem to have died
        for sink in begun.journal:
            sink.take(RunEnded(0, 0, 0, 0, 0.0, all_read=False, code=error.code))
        _close(begun)
        if not resumed and not any(each.spool for each in begun.gathered.inputs):
            begun.record.forget()  # nothing was taken in
        raise
    except Exception:  # a bug, whose report must not be drawn over
        begun.publisher.close_first()
        raise


def _run_begun(options: Options, machine: "Meanwhile[Machine]", begun: Begun, resumed: "Resumed | None") -> int:
    inbox: SimpleQueue[Message] = SimpleQueue()
    room = threading.Semaphore(0)
    reader = Reader(list(begun.gathered.sources), begun.parser, inbox.put, room.acquire, by_null=options.null)
    with signals_to(inbox.put):
        left = checks.what_is_left(resumed, failed_too=options.resume_failed) if resumed else None
        need_thread(reader.run)
        found = machine.get()
        if begun.gathered.introductions:  # before it is said that others can write
            reader.has_begun.wait(_BEGUN_WITHIN)
        if left:
            begun.publisher.publish(Noticed(left.sentence(begun.run_id)))
        where = begun.showing.introduction(begun.logs, is_named=bool(options.logs), is_recorded=bool(begun.record.path))
        remarks = () if options.runs_nothing else found.remarks
        for remark in (*begun.gathered.introductions, *([where] if where else ()), *remarks):
            begun.publisher.publish(Noticed(remark))
        state = _build(options, begun, found, inbox, room, reader, resumed, left)
        for problem in begun.problems:
            state.complain(problem)
        if left:
            loop.resume(state, left)
        _run(state, begun, inbox)
    _end(options, begun)
    return loop.exit_code(state)


def _begin(
    options: Options, machine: "Meanwhile[Machine]", keeper: KeeperClient | None, resumed: "Resumed | None"
) -> Begun:
    """Check all that can be checked, and open what is needed."""
    shell = checks.find_shell(options.shell)
    showing = decide(options, look_at_streams(os.environ))
    checks.check_directories(options)
    state = resumed.state if resumed else None
    typed = gather.open_typed(options.files, options.follow, state, waits=options.no_follow)
    sources = [source for _, source in typed]
    gather.refuse_mistakes(sources, LineParser(lambda: machine.get().totals), by_null=options.null)
    gather.keep_input(sources, options.joblog)
    parser = LineParser(lambda: machine.get().totals)
    by_log = checks.skipping(parser, options) if options.resumes_by_joblog and not resumed else None
    run_id = resumed.run_id if resumed else files.new_run_id()
    keeps = not (options.no_journal or options.runs_nothing)
    record = recording.begin(run_id, options.journal, resumed) if keeps else recording.Recording()
    journal = record.sinks()
    logs = place.log_directory(options, showing, record.path)
    notifying = checks.notifying(options, shell)
    keeps_joblog, can_resume = resumed is not None, bool(record.path)
    shown = checks.sinks(options, showing, logs, machine, keeps=keeps_joblog, can_resume=can_resume)
    publisher = Publisher([*shown, *journal, *checks.telling(notifying, logs)])
    # It was made before we went to the directory of a run that goes on.
    directory = options.chdir or (os.curdir if resumed else None)
    keeper = checks.brief(keeper if record.path else None, record.path, directory)
    hand_over = keeper.take_in if keeper else None
    gathered = gather.gather(typed, record.path, hand_over, state, options)
    publisher.publish(recording.run_began(run_id, options.argv, gathered.inputs, resumed))
    checks.enter(options.chdir)
    matching = checks.matching(parser, state) if state else by_log or parser
    return Begun(
        run_id, shell, record, journal, publisher, keeper, gathered, matching, showing, logs, notifying, by_log
    )


def _run(state: State, begun: Begun, inbox: "SimpleQueue[Message]") -> None:
    """From here on others may ask what it does."""
    if begun.by_log:
        loop.leave_out(state, begun.by_log.stay_failed)
    if begun.keeper:
        begun.keeper.on_end = lambda: inbox.put(Trouble(_WITHOUT_KEEPER))
        if begun.keeper.is_gone.is_set():
            begun.keeper.on_end()
    server = checks.listen(begun.record.path, inbox, begun.publisher)
    gc.freeze()  # what has been loaded stays, so it need not be looked through again
    gc.enable()
    loop.run(state)
    if server:
        server.close()


def _close(begun: Begun) -> None:
    begun.publisher.close()  # may wait for somebody to read; Ctrl-C ends that
    if begun.keeper:  # behind that: it also tells the keeper that all is on record
        begun.keeper.close()


def _end(options: Options, begun: Begun) -> None:
    if begun.by_log:
        begun.publisher.publish(Noticed(checks.left_out(begun.by_log, options)))
    _close(begun)
    if begun.record.path:
        files.prune(files.runs_directory(os.environ), options.keep_runs)


def _build(
    options: Options,
    begun: Begun,
    machine: Machine,
    inbox: "SimpleQueue[Message]",
    room: threading.Semaphore,
    reader: Reader,
    resumed: "Resumed | None",
    left: "Resumption | None",
) -> State:
    name = "simulated" if options.dry_run else options.engine
    world = engines.build(
        name,
        Setting(
            begun.run_id,
            machine,
            options.wants,
            inbox,
            room.release,
            begun.shell,
            options.grace,
            os.environb,
            place.stream_opener(begun.logs, begun.run_id, begun.showing, inbox.put),
            begun.notifying.bystanders.pids if begun.notifying else frozenset,
            begun.keeper,
            begun.record.path,
            resumed.size if resumed else 0,
            left.survivors if left else (),
            input_ends=options.no_follow or not any(each.kind in gather.QUEUES for each in begun.gathered.inputs),
            has_lengths=not options.dry_run,
        ),
    )
    limits = Limits(tuple(gpu.id for gpu in machine.gpus), options.jobs_per_gpu, options.cpu_slots, machine.totals)
    rules = Rules(options.retries, options.retry_delay, 0 if options.dry_run else options.delay)
    run_rules = RunRules(
        options.timeout,
        options.grace,
        options.halt,
        reads_all=options.policy.name != "fifo",
        quarantine=options.quarantine,
        run_id=begun.run_id.encode(),
        logs=begun.logs,
    )
    policy = options.policy.make()
    estimates, recall = find_estimates(options, policy, inbox)
    scheduler = Scheduler(limits, policy, rules, estimates, options.label)
    return State(run_rules, scheduler, world, begun.publisher, reader.stop, recall)
