"""From options to an exit code: checks all that can be checked before anything starts, then builds the parts."""

import errno
import gc
import os

from simple_gpu_scheduler import engines
from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.stdlib import SimpleQueue, suppress
from simple_gpu_scheduler.base.values import TYPE_CHECKING, Callable, NamedTuple, Sequence
from simple_gpu_scheduler.display.layout import Layout
from simple_gpu_scheduler.engines.protocol import Setting
from simple_gpu_scheduler.events import Noticed, RunEnded
from simple_gpu_scheduler.gpus.discover import Machine
from simple_gpu_scheduler.gpus.machine_file import read_machine_file
from simple_gpu_scheduler.inputs import gather
from simple_gpu_scheduler.inputs.reader import Parser, Reader
from simple_gpu_scheduler.jobfile.parse import LineParser
from simple_gpu_scheduler.journal import disk, files
from simple_gpu_scheduler.journal.sink import Recording, continue_journal, run_began, start_journal
from simple_gpu_scheduler.keeper.client import KeeperClient
from simple_gpu_scheduler.keeper.messages import Serve
from simple_gpu_scheduler.output.log_directory import stream_opener
from simple_gpu_scheduler.remote.server import Server, serve
from simple_gpu_scheduler.run import loop
from simple_gpu_scheduler.run.options import ExecutionOptions, Options
from simple_gpu_scheduler.run.state import EarlierRuns, RunRules, State
from simple_gpu_scheduler.scheduling import Rules
from simple_gpu_scheduler.scheduling.estimates import Estimates, PastLengths
from simple_gpu_scheduler.scheduling.policies import Policy
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Limits
from simple_gpu_scheduler.system.inbox import SystemInbox
from simple_gpu_scheduler.system.signals import signals_to
from simple_gpu_scheduler.system.threads import need_thread, start_thread

from .machine import MachineOfRun, wait_for_driver
from .outlets import Outlets, open_outlets, plan_layout

if TYPE_CHECKING:
    from simple_gpu_scheduler.joblog.resume import SkippingParser
    from simple_gpu_scheduler.resume.find import Resumed
    from simple_gpu_scheduler.resume.unfinished_jobs import Resumption

_STARTS_READING_WITHIN = 5.0


class OpenRun(NamedTuple):
    """What is open before the first line is read, and is closed when the run has ended."""

    run_id: str
    record: Recording
    outlets: Outlets
    keeper: KeeperClient | None
    gathered: gather.Gathered

    def say(self, *sentences: str) -> None:
        """Publish these as notices."""
        for sentence in sentences:
            self.outlets.publisher.publish(Noticed(sentence))

    def close(self) -> None:
        """The run is over."""
        self.outlets.publisher.close()  # may wait for a reader; Ctrl-C ends that
        if self.keeper:  # after that: it also tells the keeper that everything has been recorded
            self.keeper.close()

    def give_up(self, error: UserError, *, is_resumed: bool) -> None:
        """Record that nothing was run, or the run would seem to have died."""
        for sink in self.record.sinks:
            sink.take(RunEnded(0, 0, 0, 0, 0.0, all_read=False, code=error.code))
        self.close()
        if not is_resumed and not any(each.spool for each in self.gathered.inputs):
            self.record.forget()  # nothing was read


def run_jobs(options: Options, keeper: KeeperClient | None, resumed: "Resumed | None" = None) -> int:
    """Run all jobs of the input, and the remaining jobs of a resumed run; returns the exit code."""
    machine = MachineOfRun(options.wants, os.environ, is_patient=not options.execution.runs_nothing)
    options = options._replace(execution=_checked(options.execution))
    layout = plan_layout(options, resumed.run_id if resumed else "")
    lack_of = _lack_of(options, layout, machine)
    cap = read_machine_file().cap
    typed = gather.open_typed(options.input, resumed.state if resumed else None)
    gather.refuse_programs(typed, options.execution.shell)
    open_inputs = [each for _, each in typed]
    mem = options.wants.mem
    gather.refuse_errors(
        open_inputs, LineParser(lambda: _totals(machine), cap, mem, lack_of), by_null=options.input.null
    )
    gather.keep_input(open_inputs, options.records.joblog)
    parser, by_joblog = _parser(options, LineParser(lambda: machine.get().totals, cap, mem, lack_of), resumed)
    opened = _open(options, layout, typed, machine, keeper, resumed)
    inputs = [each._asdict() for each in opened.gathered.inputs]
    publisher = opened.outlets.publisher
    try:
        publisher.publish(run_began(opened.run_id, options.argv, inputs, is_resumed=bool(resumed)))
        _enter(options.execution.chdir)
        return _run(options, opened, machine, parser, by_joblog, resumed)
    except UserError as error:
        opened.give_up(error, is_resumed=bool(resumed))
        raise
    except Exception:  # a bug, whose report must not be overdrawn
        publisher.close_first()
        raise


def _lack_of(options: Options, layout: Layout, machine: MachineOfRun) -> Callable[[str], str]:
    """A function that says what the run lacks for `stall` or `idle`; what is given is checked now."""

    def lack_of(name: str) -> str:
        from .sight import lack  # noqa: PLC0415 - few runs ask for it

        return lack(name, options, layout, machine.if_known)

    if options.failures.stall or options.failures.idle:
        from .sight import check  # noqa: PLC0415 - as above

        check(options.failures, lack_of)
    return lack_of


def _totals(machine: MachineOfRun) -> Sequence[float] | None:
    known = machine.if_known()
    return known.totals if known else None


def _open(
    options: Options,
    layout: Layout,
    typed: Sequence[gather.Typed],
    machine: MachineOfRun,
    keeper: KeeperClient | None,
    resumed: "Resumed | None",
) -> OpenRun:
    run_id = resumed.run_id if resumed else files.new_run_id()
    record = _record(options, run_id, resumed)
    try:
        outlets = open_outlets(options, layout, record, machine, is_resumed=bool(resumed))
        if keeper:
            _brief(keeper, run_id, record.path, options)
        gathered = _gather(options, typed, record.path, keeper, resumed)
    except UserError:
        if not resumed:
            record.forget()
        raise
    return OpenRun(run_id, record, outlets, keeper, gathered)


def _checked(execution: ExecutionOptions) -> ExecutionOptions:
    """The same options, with the full path of the shell. A UserError says what is wrong with one of them."""
    os.getcwd()  # fails here if it was deleted, before there is a journal
    execution = execution._replace(shell=_find_shell(execution.shell))
    directory = execution.chdir
    if directory and not (os.path.isdir(directory) and os.access(directory, os.X_OK)):
        why = errno.ENOENT
        if os.path.exists(directory):
            why = errno.EACCES if os.path.isdir(directory) else errno.ENOTDIR
        raise UserError(f"--chdir {directory}: {os.strerror(why)}")
    return execution


def _find_shell(shell: str) -> str:
    directories = [""] if "/" in shell else os.get_exec_path()
    for path in (os.path.join(directory, shell) for directory in directories):
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return os.path.abspath(path)
    raise UserError(f"--shell {shell}: no such program, or not executable")


def _enter(directory: str | None) -> None:
    """Change to the jobs' directory, since posix_spawn cannot set it for the jobs alone."""
    if directory is None:
        return
    try:
        os.chdir(directory)
    except OSError as error:
        raise UserError(f"--chdir {directory}: {error.strerror}") from None


def _parser(options: Options, parser: LineParser, resumed: "Resumed | None") -> "tuple[Parser, SkippingParser | None]":
    """The parser, which leaves out what was run before according to the journal or a job log."""
    if not (resumed or options.resumes_by_joblog):
        return parser, None
    from .resumed import matching, skipping  # noqa: PLC0415 - with the parts in `outlets` 4 ms

    if resumed:
        return matching(parser, resumed), None
    by_joblog = skipping(parser, options)
    return by_joblog, by_joblog


def _record(options: Options, run_id: str, resumed: "Resumed | None") -> Recording:
    if not options.keeps_journal:
        return Recording()
    return continue_journal(resumed.path, resumed.fd) if resumed else start_journal(run_id, options.records.journal)


def _keep(opened: OpenRun) -> str:
    """Mark the run, so that it is not deleted by itself; why that failed, if it did."""
    try:
        if opened.record.path:
            disk.keep(files.runs_directory(os.environ), opened.run_id)
    except OSError as error:
        later = f"try again later: {PROGRAM} clean --keep {opened.run_id}"
        return f"the run cannot be marked with --keep: {error.strerror}; {later}"
    return ""


def _brief(keeper: KeeperClient, run_id: str, journal: str, options: Options) -> None:
    """Tell the keeper what it serves."""
    serve = Serve(os.getpid(), run_id.encode(), b"%r" % options.failures.grace)
    with suppress(OSError):  # a problem with the directory is reported soon
        keeper.brief(serve, journal, options.execution.chdir or os.curdir)


def _gather(
    options: Options,
    typed: Sequence[gather.Typed],
    journal: str,
    keeper: KeeperClient | None,
    resumed: "Resumed | None",
) -> gather.Gathered:
    hand_over = keeper.take_in if keeper else None
    return gather.gather(typed, journal, hand_over, resumed.state if resumed else None, options.input)


def _run(
    options: Options,
    opened: OpenRun,
    machine: MachineOfRun,
    parser: Parser,
    by_joblog: "SkippingParser | None",
    resumed: "Resumed | None",
) -> int:
    inbox = SystemInbox()
    room: SimpleQueue[None] = SimpleQueue()  # something for each time that the reader may read more
    reader = Reader(list(opened.gathered.open_inputs), parser, inbox.put, room.get, by_null=options.input.null)
    with signals_to(inbox.put), _Listening(opened, inbox):
        left = _what_is_left(options, resumed)
        need_thread(reader.run)
        came = wait_for_driver(machine, options.wants.names, inbox, opened.outlets.publisher.publish)
        found = machine.if_known() or Machine(())  # without GPUs, it is being stopped
        if opened.gathered.introductions:  # before saying that others can write
            reader.has_begun.wait(_STARTS_READING_WITHIN)
        if left:
            opened.say(left.sentence(opened.run_id))
        opened.say(*_introductions(options, opened, found))
        state = _build(options, opened, found, inbox, room, reader, resumed, left)
        kept = _keep(opened) if options.records.keep else ""  # nothing can refuse the run any more
        for problem in filter(None, [opened.record.problem, kept, *opened.gathered.problems]):
            state.complain(problem)
        if left:
            loop.resume(state, left)
        if by_joblog:
            loop.leave_out(state, by_joblog.stay_failed)
        if not found.gpus:
            state.complain("stopped before the NVIDIA driver worked; no job was started")
        for message in came:
            loop.receive(state, message)
        _run_frozen(state)
    if by_joblog:
        opened.say(_left_out(options, by_joblog))
    opened.close()
    if opened.record.path:
        disk.prune(files.runs_directory(os.environ), options.records.keep_runs, _can_be_resumed)
    return loop.exit_code(state)


def _can_be_resumed(journal: str) -> bool:
    """Whether lines of its input would be lost with it, or run again, as those of a growing file."""
    is_finished = disk.is_finished(journal)
    if is_finished is not None:
        return not is_finished
    from simple_gpu_scheduler.journal.find import began  # noqa: PLC0415 - hardly any run comes here
    from simple_gpu_scheduler.resume.find import is_done  # noqa: PLC0415 - as above

    return bool(began(journal)) and not is_done(journal, failed_too=False)


def _what_is_left(options: Options, resumed: "Resumed | None") -> "Resumption | None":
    if not resumed:
        return None
    from .resumed import what_is_left  # noqa: PLC0415 - as above

    return what_is_left(resumed, failed_too=options.resume.failed_too)


def _left_out(options: Options, parser: "SkippingParser") -> str:
    from .resumed import left_out  # noqa: PLC0415 - as above

    return left_out(parser, options)


def _introductions(options: Options, opened: OpenRun, machine: Machine) -> list[str]:
    """What the user should know at the start: about the inputs, the jobs' output and the GPUs."""
    outlets = opened.outlets
    where = outlets.layout.introduction(
        outlets.logs.directory, is_named=bool(options.output.logs), is_recorded=bool(opened.record.path)
    )
    remarks = () if options.execution.runs_nothing else machine.remarks
    return [*opened.gathered.introductions, *filter(None, [where]), *remarks]


def _run_frozen(state: State) -> None:
    """Run, without looking for garbage in what is loaded."""
    gc.freeze()  # what has been loaded stays, so the collector need not check it again
    gc.enable()
    loop.run(state)


class _Listening:
    """Within it, requests from outside are answered; without a journal, a run cannot be found."""

    def __init__(self, opened: OpenRun, inbox: SystemInbox) -> None:
        self._opened = opened
        self._inbox = inbox

    def __enter__(self) -> None:
        path = self._opened.record.path
        self._server = serve(files.socket_of(path), self._inbox.put) if path else None
        if isinstance(self._server, str):
            self._opened.say(self._server)

    def __exit__(self, *_: object) -> None:
        if isinstance(self._server, Server):
            self._server.close()


def _build(
    options: Options,
    opened: OpenRun,
    machine: Machine,
    inbox: SystemInbox,
    room: "SimpleQueue[None]",
    reader: Reader,
    resumed: "Resumed | None",
    left: "Resumption | None",
) -> State:
    wants, order, failures, how = options.wants, options.order, options.failures, options.execution
    outlets, run_id = opened.outlets, opened.run_id
    world = engines.build(
        "simulated" if how.dry_run else how.engine,
        Setting(
            run_id,
            machine,
            wants,
            inbox,
            read_more=lambda: room.put(None),
            shell=how.shell,
            grace=failures.grace,
            environment=os.environb,
            open_streams=stream_opener(outlets.logs, run_id, inbox.put),
            keeper=opened.keeper,
            journal=opened.record.path,
            journal_size=resumed.size if resumed else 0,
            survivors=left.survivors if left else (),
            input_ends=options.input.no_follow or not opened.gathered.has_queue,
            has_lengths=not how.dry_run,
            samples=options.takes_samples and bool(opened.record.path),
        ),
    )
    limits = Limits(
        tuple(gpu.id for gpu in machine.gpus),
        wants.jobs_per_gpu,
        wants.cpu_slots,
        machine.totals,
        at_once=machine.cap.gpus if machine.cap else None,
    )
    rules = Rules(failures.retries, failures.retry_delay, 0 if how.dry_run else order.delay)
    run_rules = RunRules(
        failures,
        order.policy.name != "fifo",
        run_id.encode(),
        watches=not how.runs_nothing,
        sees_output=outlets.layout.logs_all,
        log_of=outlets.logs.of,
    )
    policy = order.policy.make()
    estimates, load_history = find_estimates(how, policy, inbox)
    scheduler = Scheduler(limits, policy, rules, estimates, order.label)
    history = EarlierRuns(load_history, policy.by_length, _why_unmeasured(options, opened, machine))
    return State(run_rules, scheduler, world, outlets.publisher, reader.stop, history)


def _why_unmeasured(options: Options, opened: OpenRun, machine: Machine) -> str | None:
    """Why nobody will know how much memory jobs need; None if that does not matter."""
    if options.execution.runs_nothing or options.wants.jobs_per_gpu == 1:
        return None
    if not (options.takes_samples and opened.record.path):
        return "this run takes no samples"
    return "" if machine.nvml else "this run does not use NVML"


def find_estimates(
    execution: ExecutionOptions, policy: Policy, inbox: SystemInbox
) -> tuple[Estimates, Callable[[bool], object]]:
    """The known lengths: read now if the order depends on them, otherwise a function to read them later."""

    def read(*, with_peaks: bool) -> PastLengths:
        from simple_gpu_scheduler.journal.lengths import past_lengths  # noqa: PLC0415 - as above, with json

        return past_lengths(os.environ, with_peaks=with_peaks)

    def tell(with_peaks: bool) -> None:
        inbox.put(read(with_peaks=with_peaks))

    def ask(with_peaks: bool) -> None:
        with suppress(RuntimeError):  # no more threads can be started: then they stay unknown
            start_thread(lambda: tell(with_peaks))

    learns = not execution.dry_run  # whose jobs take no time
    known = read(with_peaks=False).history if policy.by_length else None
    # In simulated time, the moment of their arrival would be arbitrary.
    return Estimates(known, learns=learns), tell if execution.runs_nothing else ask
