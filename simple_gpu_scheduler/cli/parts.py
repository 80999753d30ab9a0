"""The parts of a run that are made from its options, each with a sentence for what can be wrong with it."""

import errno
import os
import signal
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

from simple_gpu_scheduler import outliving
from simple_gpu_scheduler.errors import Trouble, UserError
from simple_gpu_scheduler.events import Noticed, Publisher, Sink
from simple_gpu_scheduler.inbox import Message
from simple_gpu_scheduler.jobs import Attempt
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.keeper.client import KeeperClient
from simple_gpu_scheduler.lines import LineParser
from simple_gpu_scheduler.outliving import Outlived
from simple_gpu_scheduler.run_rules import RunRules
from simple_gpu_scheduler.server import Server, serve
from simple_gpu_scheduler.sinks import SINKS, SinkOptions
from simple_gpu_scheduler.sources import Parser
from simple_gpu_scheduler.threads import start_thread

from .options import Options

if TYPE_CHECKING:
    from simple_gpu_scheduler.joblog_resume import SkippingParser
    from simple_gpu_scheduler.journal.states import RunState
    from simple_gpu_scheduler.resuming import Resumption

    from .resume import Resumed


def brief(keeper: KeeperClient | None, journal: str, directory: str | None) -> KeeperClient | None:
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


def matching(parser: LineParser, state: "RunState") -> Parser:
    """The parser that leaves out what a run had."""
    from simple_gpu_scheduler.resuming import Matcher  # noqa: PLC0415 - as below

    return Matcher(parser, state)


def skipping(parser: LineParser, options: Options) -> "SkippingParser":
    """The parser that leaves out what a job log speaks of."""
    from . import by_joblog  # noqa: PLC0415 - as below

    return by_joblog.skipping(parser, options)


def left_out(parser: "SkippingParser", options: Options) -> str:
    """What to say of that."""
    from . import by_joblog  # noqa: PLC0415 - as below

    return by_joblog.sentence(parser, options.joblog or "")


def take_over(resumed: "Resumed", inbox: "SimpleQueue[Message]", *, failed_too: bool) -> "Resumption":
    from simple_gpu_scheduler.resuming import what_is_left  # noqa: PLC0415 - a run that begins needs none of it

    left = what_is_left(resumed.state, resumed.alive(), failed_too=failed_too)
    for each in left.outliving:
        if each.status is not None:
            inbox.put(Outlived(each.attempt.key, each.status))
    keys = {each.attempt.key: each.pid for each in left.outliving if each.status is None}
    outliving.watch(resumed.path, resumed.size, resumed.run_id.encode(), keys, inbox.put)
    return left


def listen(journal: str, inbox: "SimpleQueue[Message]", publisher: Publisher) -> Server | None:
    """Let others ask; without a journal a run cannot be found."""
    if not journal:
        return None
    server = serve(files.socket_of(journal), inbox.put)
    if isinstance(server, str):
        publisher.publish(Noticed(server))
        return None
    return server


def check_directories(options: Options) -> None:
    """What is wrong with those that were named is met before anything is begun."""
    log_directory(options)
    if options.chdir and not (os.path.isdir(options.chdir) and os.access(options.chdir, os.X_OK)):
        why = errno.ENOENT
        if os.path.exists(options.chdir):
            why = errno.EACCES if os.path.isdir(options.chdir) else errno.ENOTDIR
        raise UserError(f"--chdir {options.chdir}: {os.strerror(why)}")


def log_directory(options: Options) -> str:
    """Where job logs go; nothing for where our own output goes."""
    if not options.logs or options.dry_run:
        return ""
    directory = os.path.abspath(options.logs)
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise UserError(f"--logs {options.logs}: {error.strerror}") from None
    return directory


def log_opener(rules: RunRules, put: Callable[[Trouble], None]) -> Callable[[Attempt], int | None]:
    """Opens the log of an attempt. Where that fails, the job runs all the same, and prints where we do."""

    def open_log(attempt: Attempt) -> int | None:
        path = rules.log_of(attempt.job)
        if not path:
            return None
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            put(Trouble(f"job {attempt.job.number} prints here, since its log {path} failed: {error.strerror}"))
            return None

    return open_log


def start_reading(read: Callable[[], None]) -> None:
    try:
        start_thread(read)
    except RuntimeError:
        raise UserError("the system lets this user start no more threads (ulimit -u); nothing was started") from None


def find_shell(shell: str) -> str:
    if "/" in shell:
        found = os.path.abspath(shell) if os.access(shell, os.X_OK) and not os.path.isdir(shell) else None
    else:
        from shutil import which  # noqa: PLC0415 - 2 ms that the default does not need

        found = which(shell)
    if not found:
        raise UserError(f"--shell {shell}: there is no such program, or it may not be run")
    return found


def sinks(options: Options, *, keeps: bool) -> list[Sink]:
    """What shows and logs; `keeps` what an earlier scheduler of the run has logged."""
    names = ["plain"]
    if options.dry_run:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a listing ends quietly with its reader
        names.append("dry-run")
    elif options.joblog:
        names.append("joblog")
    quiet = options.quiet or options.dry_run
    return [
        SINKS[name](
            SinkOptions(quiet, options.verbose and not options.dry_run, options.joblog or "", options.resumes or keeps)
        )
        for name in names
    ]


def enter(directory: str | None) -> None:
    """Go there: it is the jobs' directory, and posix_spawn has no way to give it to them alone."""
    if directory is None:
        return
    try:
        os.chdir(directory)
    except OSError as error:
        raise UserError(f"--chdir {directory}: {error.strerror}") from None
