"""From options to an exit code: checks what can be checked before anything starts, builds the parts, lets them run."""

import gc
import os
import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import NamedTuple

from simple_gpu_scheduler import outliving
from simple_gpu_scheduler.clock import SystemClock
from simple_gpu_scheduler.engines import ENGINES, EngineOptions
from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.events import Noticed, Publisher, Sink
from simple_gpu_scheduler.halting import Halt
from simple_gpu_scheduler.inbox import Message
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.keeper.client import KeeperClient
from simple_gpu_scheduler.lines import LineParser
from simple_gpu_scheduler.machine import Machine, Wants, allot, allot_without_leases, find_machine
from simple_gpu_scheduler.ownership import TREE, Family
from simple_gpu_scheduler.policies import POLICIES
from simple_gpu_scheduler.resuming import Matcher, Resumption, what_is_left
from simple_gpu_scheduler.run_rules import RunRules
from simple_gpu_scheduler.runner import Runner
from simple_gpu_scheduler.scheduler import Rules, Scheduler
from simple_gpu_scheduler.server import Server, serve
from simple_gpu_scheduler.signals import signals_to
from simple_gpu_scheduler.sinks import SINKS, SinkOptions
from simple_gpu_scheduler.slots import Limits
from simple_gpu_scheduler.sources import Reader
from simple_gpu_scheduler.threads import Meanwhile, start_thread

from . import by_joblog, gathering, inputs, recording
from .resume import Resumed


class Options(NamedTuple):
    """The command line of a run."""

    wants: Wants
    jobs_per_gpu: int
    cpu_slots: int
    policy: str
    delay: float
    timeout: float | None
    grace: float
    retries: int
    retry_delay: float
    halt: Halt | None
    quarantine: int
    null: bool
    follow: str | None
    no_follow: bool
    shell: str
    chdir: str | None
    dry_run: bool
    quiet: bool
    verbose: bool
    joblog: str | None
    journal: str | None
    no_journal: bool
    keep_runs: int
    logs: str | None
    resume: str | None
    resume_failed: bool
    files: tuple[str, ...]
    argv: tuple[str, ...]

    @property
    def resumes(self) -> bool:
        """Whether something that was begun is gone on with."""
        return self.resume is not None or self.resume_failed

    @property
    def resumes_by_joblog(self) -> bool:
        """Whether a job log tells what was done, and not a journal."""
        return self.resumes and not self.resume and bool(self.joblog) and not self.journal


def run_jobs(options: Options, keeper: KeeperClient | None, resumed: Resumed | None = None) -> int:
    """Run all jobs of the input, and of the run that is gone on with; the exit code."""
    keeps = not (options.no_journal or options.dry_run)
    machine = Meanwhile(lambda: find_machine(options.wants, os.environ))
    shell = _find_shell(options.shell)
    state = resumed.state if resumed else None
    typed = gathering.open_typed(options.files, options.follow, state, waits=options.no_follow)
    plain = LineParser(lambda: machine.get().totals)
    inputs.refuse_mistakes([source for _, source in typed], plain, by_null=options.null)
    inputs.keep_input([source for _, source in typed], options.joblog)
    run_id = resumed.run_id if resumed else files.new_run_id()
    record = recording.begin(run_id, options.journal, resumed) if keeps else recording.Recording()
    parser = LineParser(lambda: machine.get().totals)
    by_log = None
    if options.resumes_by_joblog and not resumed:  # read before the sink opens it
        by_log = by_joblog.skipping(parser, options.joblog or "", resume_failed=options.resume_failed)
    publisher = Publisher([*_sinks(options), *record.sinks()])
    keeper = _brief(keeper if record.path else None, record.path, options.chdir)
    hand_over = keeper.take_in if keeper else None
    gathered = gathering.gather(
        typed, record.path, hand_over, state, follows=not options.no_follow, by_null=options.null
    )
    publisher.publish(recording.run_began(run_id, options.argv, gathered.inputs, resumed))
    _enter(options.chdir)
    inbox: SimpleQueue[Message] = SimpleQueue()
    room = threading.Semaphore(0)
    reader = Reader(
        list(gathered.sources),
        Matcher(parser, state) if state else by_log or parser,
        inbox.put,
        room.acquire,
        by_null=options.null,
    )
    with signals_to(inbox.put):
        left = _take_over(resumed, inbox, failed_too=options.resume_failed) if resumed else None
        _start_reading(reader.run)
        found = machine.get()
        introductions = [inputs.introduce(each, follows=not options.no_follow) for each, _ in typed]
        for remark in (
            left.sentence(run_id) if left else "",
            *introductions,
            *(() if options.dry_run else found.remarks),
        ):
            if remark:
                publisher.publish(Noticed(remark))
        runner = _build(options, run_id, found, shell, publisher, inbox, room, keeper, reader)
        for problem in (record.problem, *gathered.problems):
            if problem:
                runner.complain(problem)
        if left:
            runner.take_over(left)
        if by_log:
            runner.leave_out(by_log.stay_failed)
        server = _listen(record.path, inbox, publisher)
        gc.freeze()  # what has been loaded stays, so it need not be looked through again
        gc.enable()
        runner.run()
        if server:
            server.close()
        if by_log:
            publisher.publish(Noticed(by_joblog.sentence(by_log, options.joblog or "")))
    if keeper:
        keeper.close()
    publisher.close()  # may wait for somebody to read; Ctrl-C ends that
    if record.path:
        files.prune(files.runs_directory(os.environ), options.keep_runs)
    return runner.exit_code()


def _brief(keeper: KeeperClient | None, journal: str, directory: str | None) -> KeeperClient | None:
    """Tell the keeper what it needs; None when there is none, or it was killed."""
    if not keeper:
        return None
    try:
        keeper.keep_journal(journal)
        if directory:
            keeper.enter(directory)
    except OSError:  # it may have been killed; what is wrong with the directory is said soon
        return None
    return keeper


def _take_over(resumed: Resumed, inbox: "SimpleQueue[Message]", *, failed_too: bool) -> Resumption:
    left = what_is_left(resumed.state, resumed.alive(), failed_too=failed_too)
    keys = {each.attempt.key: each.pid for each in left.outliving}
    outliving.watch(resumed.path, resumed.size, resumed.run_id.encode(), keys, inbox.put)
    return left


def _listen(journal: str, inbox: "SimpleQueue[Message]", publisher: Publisher) -> Server | None:
    """Let others ask; without a journal a run cannot be found."""
    if not journal:
        return None
    server = serve(f"{files.stem(journal)}.sock", inbox.put)
    if isinstance(server, str):
        publisher.publish(Noticed(server))
        return None
    return server


def _start_reading(read: Callable[[], None]) -> None:
    try:
        start_thread(read)
    except RuntimeError:
        raise UserError("the system lets this user start no more threads (ulimit -u); nothing was started") from None


def _build(
    options: Options,
    run_id: str,
    machine: Machine,
    shell: str,
    publisher: Publisher,
    inbox: "SimpleQueue[Message]",
    room: threading.Semaphore,
    keeper: KeeperClient | None,
    reader: Reader,
) -> Runner:
    tree = os.environb.get(TREE, b"")
    limits = Limits(tuple(gpu.id for gpu in machine.gpus), options.jobs_per_gpu, options.cpu_slots, machine.totals)
    rules = Rules(options.retries, options.retry_delay, 0 if options.dry_run else options.delay)
    engine_options = EngineOptions(inbox.put, run_id, shell, options.grace, os.environb, keeper)
    if options.dry_run:
        allotment = allot_without_leases(machine)
    else:
        allotment = allot(machine, options.wants, inbox.put, Family(run_id, tree), tree)
    return Runner(
        Scheduler(limits, POLICIES[options.policy], rules),
        ENGINES["dry-run" if options.dry_run else "local"](engine_options),
        allotment,
        publisher,
        inbox,
        SystemClock(),
        room.release,
        reader.stop,
        RunRules(
            options.timeout,
            options.grace,
            options.halt,
            reads_all=options.policy != "fifo",
            quarantine=options.quarantine,
            run_id=run_id.encode(),
            logs=os.path.abspath(options.logs) if options.logs else "",
        ),
    )


def _find_shell(shell: str) -> str:
    if "/" in shell:
        found = os.path.abspath(shell) if os.access(shell, os.X_OK) and not os.path.isdir(shell) else None
    else:
        from shutil import which  # noqa: PLC0415 - 2 ms that the default does not need

        found = which(shell)
    if not found:
        raise UserError(f"--shell {shell}: there is no such program, or it may not be run")
    return found


def _sinks(options: Options) -> list[Sink]:
    names = ["plain"]
    if options.dry_run:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a listing ends quietly with its reader
        names.append("dry-run")
    elif options.joblog:
        names.append("joblog")
    quiet = options.quiet or options.dry_run
    return [
        SINKS[name](SinkOptions(quiet, options.verbose and not options.dry_run, options.joblog or "", options.resumes))
        for name in names
    ]


def _enter(directory: str | None) -> None:
    """Go there: it is the jobs' directory, and posix_spawn has no way to give it to them alone."""
    if directory is None:
        return
    try:
        os.chdir(directory)
    except OSError as error:
        raise UserError(f"--chdir {directory}: {error.strerror}") from None
