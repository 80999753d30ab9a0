"""From options to an exit code: checks what can be checked before anything starts, builds the parts, lets them run."""

import gc
import os
import signal
import stat
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import NamedTuple

from simple_gpu_scheduler.clock import SystemClock
from simple_gpu_scheduler.engines import ENGINES, EngineOptions
from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.events import Noticed, Publisher, Sink
from simple_gpu_scheduler.halting import Halt
from simple_gpu_scheduler.inbox import Message
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
from simple_gpu_scheduler.sources import Source, check, hold_open, read_jobs
from simple_gpu_scheduler.threads import Meanwhile, start_thread

_STDIN = 0
_MOST_MISTAKES_SHOWN = 10


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
    files: tuple[str, ...]


def run_jobs(options: Options) -> int:
    """Run all jobs of the input; the exit code."""
    machine = Meanwhile(lambda: find_machine(options.wants, os.environ))
    shell = _find_shell(options.shell)
    sources = _open_sources(options)
    parser = LineParser(lambda: machine.get().totals)
    _refuse_mistakes(sources, options, machine)
    _keep_input(sources, options.joblog)
    publisher = Publisher(_sinks(options))
    _enter(options.chdir)
    introductions = [_introduce(source, options) for source in sources]
    inbox: SimpleQueue[Message] = SimpleQueue()
    room = threading.Semaphore(0)
    with signals_to(inbox.put):
        _start_reading(lambda: read_jobs(sources, parser, inbox.put, room.acquire, by_null=options.null))
        found = machine.get()
        for remark in (*introductions, *(() if options.dry_run else found.remarks)):
            if remark:
                publisher.publish(Noticed(remark))
        runner = _build(options, found, shell, publisher, inbox, room)
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
    machine: Machine,
    shell: str,
    publisher: Publisher,
    inbox: "SimpleQueue[Message]",
    room: threading.Semaphore,
) -> Runner:
    run_id = _new_run_id()
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


def _open_sources(options: Options) -> list[Source]:
    return [_open(path, waits=options.no_follow) for path in options.files] if options.files else [Source(_STDIN)]


def _open(path: str, *, waits: bool) -> Source:
    if path == "-":
        return Source(_STDIN)
    try:
        # A named pipe that is held open is opened at once; else its first writer is waited for, or it would seem empty.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if waits else os.O_NONBLOCK))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; FILES hold commands, one a line") from None
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        raise UserError(f"cannot read {path}: it is a directory")
    os.set_blocking(fd, True)
    return Source(fd, path)


def _refuse_mistakes(sources: list[Source], options: Options, machine: "Meanwhile[Machine]") -> None:
    mistakes = check(sources, LineParser(lambda: machine.get().totals), by_null=options.null)
    if not mistakes:
        return
    lines = [f"  {refusal.place}: {refusal.problem}" for refusal in mistakes[:_MOST_MISTAKES_SHOWN]]
    if len(mistakes) > len(lines):
        lines.append(f"  and {len(mistakes) - len(lines)} more")
    raise UserError("\n".join(["nothing was started, since the input has mistakes:", *lines]))


def _keep_input(sources: list[Source], joblog: str | None) -> None:
    """Refuse a job log that is the input: it would be emptied before it was read."""
    try:
        log = os.stat(joblog) if joblog else None
    except OSError:  # there is none yet
        return
    if log and any(os.path.samestat(log, os.fstat(source.fd)) for source in sources) and stat.S_ISREG(log.st_mode):
        raise UserError(f"--joblog {joblog}: that is the file that the commands are read from")


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


def _introduce(source: Source, options: Options) -> str:
    """What to say of what may surprise: that a terminal is read, or that a named pipe does not end."""
    if os.isatty(source.fd):
        return "reading commands from the terminal, one a line; Ctrl-D ends the input"
    try:
        is_held = not options.no_follow and hold_open(source.fd)
    except OSError as error:
        raise UserError(
            f"cannot hold the named pipe open for its writers: {error.strerror}; let yourself write to it, or use "
            "--no-follow"
        ) from None
    return "the named pipe is held open for more commands until the run is stopped" if is_held else ""


def _new_run_id() -> str:
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"
