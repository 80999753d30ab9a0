"""The parts of a run that are made from its options, each with a sentence for what can be wrong with it."""

import errno
import os
import signal
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.events import Noticed
from simple_gpu_scheduler.events.publisher import Publisher, Sink
from simple_gpu_scheduler.gpus import GpuVitals
from simple_gpu_scheduler.inputs.reader import Parser
from simple_gpu_scheduler.jobfile.parse import LineParser
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.keeper.client import KeeperClient
from simple_gpu_scheduler.notify.message import Occasion
from simple_gpu_scheduler.output.place import make_directory
from simple_gpu_scheduler.remote.server import Server, serve
from simple_gpu_scheduler.run.messages import Message
from simple_gpu_scheduler.run.options import Options
from simple_gpu_scheduler.system.threads import Meanwhile

from .display import Showing
from .sinks import SINKS, Notifying, SinkOptions

if TYPE_CHECKING:
    from simple_gpu_scheduler.gpus.discover import Machine
    from simple_gpu_scheduler.joblog.resume import SkippingParser
    from simple_gpu_scheduler.journal.run_state import RunState
    from simple_gpu_scheduler.resume.find import Resumed
    from simple_gpu_scheduler.resume.remaining import Resumption


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
    from simple_gpu_scheduler.resume.remaining import Matcher  # noqa: PLC0415 - as below

    return Matcher(parser, state)


def skipping(parser: LineParser, options: Options) -> "SkippingParser":
    """The parser that leaves out what a job log speaks of."""
    from simple_gpu_scheduler.joblog import resume  # noqa: PLC0415 - as below

    return resume.skipping(parser, options)


def left_out(parser: "SkippingParser", options: Options) -> str:
    """What to say of that."""
    from simple_gpu_scheduler.joblog import resume  # noqa: PLC0415 - as below

    return resume.sentence(parser, options.joblog or "")


def what_is_left(resumed: "Resumed", *, failed_too: bool) -> "Resumption":
    """Of a run that is resumed."""
    from simple_gpu_scheduler.resume import remaining  # noqa: PLC0415 - a run that starts needs none of it

    return remaining.what_is_left(resumed.state, resumed.alive(), failed_too=failed_too)


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
    if options.logs and not options.runs_nothing:
        make_directory(options.logs)
    if options.chdir and not (os.path.isdir(options.chdir) and os.access(options.chdir, os.X_OK)):
        why = errno.ENOENT
        if os.path.exists(options.chdir):
            why = errno.EACCES if os.path.isdir(options.chdir) else errno.ENOTDIR
        raise UserError(f"--chdir {options.chdir}: {os.strerror(why)}")


def find_shell(shell: str) -> str:
    if "/" in shell:
        found = os.path.abspath(shell) if os.access(shell, os.X_OK) and not os.path.isdir(shell) else None
    else:
        from shutil import which  # noqa: PLC0415 - 2 ms that the default does not need

        found = which(shell)
    if not found:
        raise UserError(f"--shell {shell}: there is no such program, or it may not be run")
    return found


def sinks(
    options: Options,
    showing: Showing,
    logs: str,
    machine: "Meanwhile[Machine]",
    *,
    keeps: bool,
    can_resume: bool,
) -> list[Sink]:
    """What shows and logs; `keeps` what an earlier scheduler of the run has logged.

    `can_resume`: what is left of the run can be gone on with.
    """
    names = ["live" if showing.progress == "live" else "plain"]
    if logs:
        names.append("logs")
    if options.dry_run:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a listing ends quietly with its reader
        names.append("dry-run")
    elif options.joblog:
        names.append("joblog")
    sink_options = SinkOptions(
        quiet=options.quiet or options.dry_run,
        verbose=options.verbose and not options.dry_run,
        says_starts=showing.progress == "plain",
        joblog=options.joblog or "",
        keeps_joblog=options.resumes or keeps,
        is_simulated=options.engine == "simulated",
        logs=logs,
        output=showing.output,
        failed_logs_only=options.logs_failed_only,
        can_resume=can_resume,
        vitals=_vitals(machine) if showing.progress == "live" else list,
    )
    return [SINKS[name](sink_options) for name in names]


def telling(notifying: Notifying | None, logs: str) -> list[Sink]:
    """What tells somebody; it comes behind the journal, so that what it tells is on record."""
    return [SINKS["notify"](SinkOptions(logs=logs, notifying=notifying))] if notifying else []


def notifying(options: Options, shell: str) -> Notifying | None:
    """Who is to be told, and how."""
    if not options.notify or options.runs_nothing:
        return None
    from simple_gpu_scheduler.notify.child import Bystanders  # noqa: PLC0415 - few want it

    on = frozenset[Occasion]().union(*options.notify_on) or frozenset[Occasion](["end"])
    return Notifying(options.notify, on, shell, os.environb, Bystanders())


def _vitals(machine: "Meanwhile[Machine]") -> "Callable[[], Sequence[GpuVitals]]":
    from simple_gpu_scheduler.gpus.vitals import VitalsReader  # noqa: PLC0415 - for the live view alone

    return VitalsReader(machine.get).read


def enter(directory: str | None) -> None:
    """Go there: it is the jobs' directory, and posix_spawn has no way to give it to them alone."""
    if directory is None:
        return
    try:
        os.chdir(directory)
    except OSError as error:
        raise UserError(f"--chdir {directory}: {error.strerror}") from None
