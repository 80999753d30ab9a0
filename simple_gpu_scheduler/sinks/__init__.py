"""Sinks: what consumes the events of a run. One file a sink, and the dict of them.

A sink is built from `SinkOptions`, takes what it needs of them, and knows no other sink.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from simple_gpu_scheduler.events import Sink

from .dry_run import DryRun
from .plain import PlainLines


class SinkOptions(NamedTuple):
    """What the command line says that any sink may want to know."""

    quiet: bool = False
    verbose: bool = False
    joblog: str = ""
    keeps_joblog: bool = False


def _joblog(options: SinkOptions) -> Sink:
    from .joblog import JobLog  # noqa: PLC0415 - loaded by those that use it

    return JobLog(options.joblog, keeps=options.keeps_joblog)


SINKS: Mapping[str, Callable[[SinkOptions], Sink]] = {
    "plain": lambda options: PlainLines(quiet=options.quiet, verbose=options.verbose),
    "joblog": _joblog,
    "dry-run": lambda _options: DryRun(),
}
