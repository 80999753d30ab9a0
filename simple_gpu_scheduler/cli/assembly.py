"""From options to an exit code: checks what can be checked before anything starts, builds the parts, lets them run."""

import gc
import os
import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import NamedTuple

from simple_gpu_scheduler.clock import SystemClock
from simple_gpu_scheduler.engines import ENGINES, EngineOptions
from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.events import Noticed, Publisher, Sink
from simple_gpu_scheduler.halting import Halt
from simple_gpu_scheduler.inbox import Message
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.lines import LineParser
from simple_gpu_scheduler.machine import Machine, Wants, allot, allot_without_leases, find_machine
from simple_gpu_scheduler.ownership import TREE, Family
from simple_gpu_scheduler.policies import POLICIES
from simple_gpu_scheduler.run_rules import RunRules
from simple_gpu_scheduler.runner import Runner
from simple_gpu_scheduler.scheduler import Rules, Scheduler
from simple_gpu_scheduler.signals import signals_to
from simple_gpu_scheduler.sinks import SINKS, SinkOptions
from simple_gpu_scheduler.slots import Limits
from simple_gpu_scheduler.sources import read_jobs
from simple_gpu_scheduler.threads import Meanwhile, start_thread

from . import inputs, recording


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
    files: tuple[str, ...]
    argv: tuple[str, ...]


def run_jobs(options: Options) -> int:
    """Run all jobs of the input; the exit code."""
    machine = Meanwhile(lambda: find_machine(options.wants, os.environ))
    shell = _find_shell(options.shell)
    sources = inputs.open_sources(options.files, waits=options.no_follow)
    parser = LineParser(lambda: machine.get().totals)
    inputs.refuse_mistakes(sources, LineParser(lambda: machine.get().totals), by_null=options.null)
    inputs.keep_input(sources, options.joblog)
    run_id = files.new_run_id()
    record = (
        recording.Recording() if options.no_journal or options.dry_run else recording.begin(run_id, options.journal)
    )
    publisher = Publisher([*_sinks(options), *record.sinks()])
    publisher.publish(recording.run_began(run_id, options.argv, sources, is_resumed=False))
    _enter(options.chdir)
    introductions = [inputs.introduce(source, follows=not options.no_follow) for source in sources]
    inbox: SimpleQueue[Message] = SimpleQueue()
    room = threading.Semaphore(0)
    with signals_to(inbox.put):
        _start_reading(lambda: read_jobs(sources, parser, inbox.put, room.acquire, by_null=options.null))
        found = machine.get()
        for remark in (*introductions, *(() if options.dry_run else found.remarks)):
            if remark:
                publisher.publish(Noticed(remark))
        runner = _build(options, run_id, found, shell, publisher, inbox, room)
        if record.problem:
            runner.complain(record.problem)
        gc.freeze()  # what has been loaded stays, so it need not be looked through again
        gc.enable()
        runner.run()
    publisher.close()  # may wait for somebody to read; Ctrl-C ends that
    return runner.exit_code()


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
) -> Runner:
    tree = os.environb.get(TREE, b"")
    limits = Limits(tuple(gpu.id for gpu in machine.gpus), options.jobs_per_gpu, options.cpu_slots, machine.totals)
    rules = Rules(options.retries, options.retry_delay, 0 if options.dry_run else options.delay)
    engine_options = EngineOptions(inbox.put, run_id, shell, options.grace, os.environb)
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
        RunRules(
            options.timeout,
            options.grace,
            options.halt,
            reads_all=options.policy != "fifo",
            quarantine=options.quarantine,
            run_id=run_id.encode(),
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
        SINKS[name](SinkOptions(quiet, options.verbose and not options.dry_run, options.joblog or "")) for name in names
    ]


def _enter(directory: str | None) -> None:
    """Go there: it is the jobs' directory, and posix_spawn has no way to give it to them alone."""
    if directory is None:
        return
    try:
        os.chdir(directory)
    except OSError as error:
        raise UserError(f"--chdir {directory}: {error.strerror}") from None
