"""Sinks: what consumes the events of a run. One file a sink, and the dict of them.

A sink is built from `SinkOptions`, takes what it needs of them, and knows no other sink.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from simple_gpu_scheduler.display.lines import PlainLines, Words
from simple_gpu_scheduler.events.publisher import Sink
from simple_gpu_scheduler.gpus import GpuVitals
from simple_gpu_scheduler.notify.message import Occasion
from simple_gpu_scheduler.run.rules import log_of

if TYPE_CHECKING:
    from simple_gpu_scheduler.notify.child import Bystanders


class Notifying(NamedTuple):
    """The command that tells somebody, when it does, and what it is run with."""

    command: str
    on: frozenset[Occasion]
    shell: str
    environment: Mapping[bytes, bytes]
    bystanders: "Bystanders"


class SinkOptions(NamedTuple):
    """What the command line says that any sink may want to know."""

    quiet: bool = False
    verbose: bool = False
    says_starts: bool = True
    joblog: str = ""
    keeps_joblog: bool = False
    is_simulated: bool = False
    logs: str = ""
    output: str = "inherit"
    failed_logs_only: bool = False
    can_resume: bool = False
    vitals: Callable[[], Sequence[GpuVitals]] = list
    notifying: Notifying | None = None


def _words(options: SinkOptions) -> Words:
    return Words(
        quiet=options.quiet, verbose=options.verbose, says_starts=options.says_starts, can_resume=options.can_resume
    )


def _live(options: SinkOptions) -> Sink:
    from simple_gpu_scheduler.display.live.view import Live  # noqa: PLC0415 - as below

    return Live(_words(options), options.vitals)


def _logs(options: SinkOptions) -> Sink:
    from simple_gpu_scheduler.output.sink import Logs, Relay  # noqa: PLC0415 - as below

    relay: Relay | None = None
    if options.output == "group":
        from simple_gpu_scheduler.output.group import Grouped  # noqa: PLC0415 - as below

        relay = Grouped()
    elif options.output == "tag":
        from simple_gpu_scheduler.output.stdout import may_colour  # noqa: PLC0415 - as below
        from simple_gpu_scheduler.output.tag import Tagged  # noqa: PLC0415 - as below

        relay = Tagged(coloured=may_colour())
    return Logs(lambda job: log_of(options.logs, job), relay, failed_only=options.failed_logs_only)


def _notify(options: SinkOptions) -> Sink:
    from simple_gpu_scheduler.notify.command import Notifier  # noqa: PLC0415 - as below
    from simple_gpu_scheduler.notify.sink import Notify  # noqa: PLC0415 - as below

    who = options.notifying
    assert who  # noqa: S101 - who asks for it says how
    notifier = Notifier(who.command, who.shell, who.environment, who.bystanders)
    return Notify(notifier, who.on, lambda job: log_of(options.logs, job))


def _dry_run(_options: SinkOptions) -> Sink:
    from simple_gpu_scheduler.display.dry_run import DryRun  # noqa: PLC0415 - as below

    return DryRun()


def _joblog(options: SinkOptions) -> Sink:
    from simple_gpu_scheduler.joblog.sink import JobLog  # noqa: PLC0415 - loaded by those that use it

    return JobLog(options.joblog, keeps=options.keeps_joblog, is_simulated=options.is_simulated)


SINKS: Mapping[str, Callable[[SinkOptions], Sink]] = {
    "plain": lambda options: PlainLines(_words(options)),
    "live": _live,
    "logs": _logs,
    "joblog": _joblog,
    "notify": _notify,
    "dry-run": _dry_run,
}
