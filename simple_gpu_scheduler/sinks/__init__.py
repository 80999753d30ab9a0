"""Sinks: what consumes the events of a run. One file a sink, and the dict of them.

A sink is built from `SinkOptions`, takes what it needs of them, and knows no other sink.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from simple_gpu_scheduler.events import Sink

from .dry_run import DryRun
from .joblog import JobLog
from .plain import PlainLines


class SinkOptions(NamedTuple):
    """What the command line says that any sink may want to know."""

    quiet: bool = False
    verbose: bool = False
    joblog: str = ""
    keeps_joblog: bool = False


SINKS: Mapping[str, Callable[[SinkOptions], Sink]] = {
    "plain": lambda options: PlainLines(quiet=options.quiet, verbose=options.verbose),
    "joblog": lambda options: JobLog(options.joblog, keeps=options.keeps_joblog),
    "dry-run": lambda _options: DryRun(),
}
