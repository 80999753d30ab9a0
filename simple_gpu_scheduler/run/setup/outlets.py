"""Where a run's events go: the display, the records and the notifier; and where its jobs print."""

import os

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.stdlib import signal
from simple_gpu_scheduler.base.values import Callable, NamedTuple
from simple_gpu_scheduler.display.failsafe import Failsafe
from simple_gpu_scheduler.display.layout import Layout, choose_layout, look_at_streams
from simple_gpu_scheduler.display.lines import EventWords, PlainLines
from simple_gpu_scheduler.events.publisher import Publisher, Sink
from simple_gpu_scheduler.journal.sink import Recording, Samples
from simple_gpu_scheduler.output.log_directory import LogDirectory, LogsOnceHungUp, log_directory, make_directory
from simple_gpu_scheduler.run.options import Options

from .machine import MachineOfRun


class Outlets(NamedTuple):
    """What is told about a run, and where its jobs print."""

    publisher: Publisher
    layout: Layout
    logs: LogDirectory | LogsOnceHungUp


def plan_layout(options: Options, run: str) -> Layout:
    """What shows the run, and where jobs print; a directory given for their logs is now held by this run.

    `run` is the ID of a resumed run, which may continue its logs.
    """
    runs_nothing = options.execution.runs_nothing
    layout = choose_layout(options.display, options.output, look_at_streams(os.environ), runs_nothing=runs_nothing)
    if options.output.logs and not runs_nothing:
        make_directory(options.output.logs, run)
    return layout


def open_outlets(
    options: Options, layout: Layout, record: Recording, machine: MachineOfRun, *, is_resumed: bool
) -> Outlets:
    """The first sink shows the run; the notifier is last, so that what it reports has been recorded."""
    logs: LogDirectory | LogsOnceHungUp = LogDirectory()
    if layout.logged:
        logs = LogDirectory(log_directory(options.output.logs, record.path), layout.logged)
    elif not options.execution.runs_nothing:
        logs = LogsOnceHungUp(record.path)
    notifies = bool(options.notify.command) and not options.execution.runs_nothing
    sinks: list[Sink] = [_display(options, layout, machine, can_resume=bool(record.path))]
    if layout.logged:
        sinks.append(_logs(options, layout, logs.of))
    if options.execution.dry_run:
        sinks.append(_dry_run())
    elif options.records.joblog:
        sinks.append(_joblog(options, options.records.joblog, keeps=options.resume.is_asked or is_resumed))
    sinks += record.sinks
    if record.path and options.takes_samples:
        sinks.append(Samples(record.path))
    if notifies:
        sinks.append(_notify(options, logs.of))
    return Outlets(Publisher(sinks), layout, logs)


def _display(options: Options, layout: Layout, machine: MachineOfRun, *, can_resume: bool) -> Sink:
    display, is_dry = options.display, options.execution.dry_run
    words = EventWords(
        quiet=display.quiet or is_dry,
        verbose=display.verbose and not is_dry,
        says_starts=layout.progress == "plain",
        can_resume=can_resume,
    )
    if layout.progress != "live":
        return Failsafe(PlainLines(words), words)
    from simple_gpu_scheduler.display.live.view import Live  # noqa: PLC0415 - 20 ms
    from simple_gpu_scheduler.gpus.survey import VitalsReader  # noqa: PLC0415 - see above

    return Failsafe(Live(words, VitalsReader(machine.if_known).read), words)


# The imports of the sinks below and of a resumed run take 4 ms together, and most runs need none of them.


def _logs(options: Options, layout: Layout, log_of: Callable[[Job], str]) -> Sink:
    from simple_gpu_scheduler.output.group import Grouped  # noqa: PLC0415 - see above
    from simple_gpu_scheduler.output.sink import Logs, Relay  # noqa: PLC0415 - see above
    from simple_gpu_scheduler.output.stdout import may_colour  # noqa: PLC0415 - see above
    from simple_gpu_scheduler.output.tag import Tagged  # noqa: PLC0415 - see above

    relay: Relay | None = None
    if layout.output == "group":
        relay = Grouped()
    elif layout.output == "tag":
        relay = Tagged(coloured=may_colour())
    return Logs(log_of, relay, failed_only=options.output.failed_logs_only)


def _dry_run() -> Sink:
    from simple_gpu_scheduler.display.lines import DryRun  # noqa: PLC0415 - see above

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a listing ends quietly with its reader
    return DryRun()


def _joblog(options: Options, path: str, *, keeps: bool) -> Sink:
    from simple_gpu_scheduler.joblog.sink import JobLog  # noqa: PLC0415 - see above

    return JobLog(path, keeps=keeps, is_simulated=options.execution.runs_nothing)


def _notify(options: Options, log_of: Callable[[Job], str]) -> Sink:
    from simple_gpu_scheduler.notify.command import Notifier  # noqa: PLC0415 - see above
    from simple_gpu_scheduler.notify.sink import Notify  # noqa: PLC0415 - see above

    return Notify(Notifier(options.notify.command, options.execution.shell, os.environb), options.notify.on, log_of)
