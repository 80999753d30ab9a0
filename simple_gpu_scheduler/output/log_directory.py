"""Where the jobs of a run print: the directory with their logs, and opening the log of an attempt there."""

import fcntl
import os
import select
import time

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.jobs import Attempt, Job
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import Callable, NamedTuple, Sequence
from simple_gpu_scheduler.events import Noticed
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.system.processes import Streams

from . import is_log, log_of


def log_directory(logs: str | None, journal: str) -> str:
    """Where logs go: the directory of `--logs`, or beside the journal."""
    if logs:
        return os.path.abspath(logs)
    directory = files.logs_of(journal) if journal else ""
    with suppress(OSError):  # no space, although there was for the journal
        if directory:
            os.makedirs(directory, 0o700, exist_ok=True)
            return directory
    import tempfile  # noqa: PLC0415 - 2 ms that few runs need

    return tempfile.mkdtemp(prefix="simple_gpu_scheduler-")


def make_directory(logs: str, run: str = "") -> None:
    """Create the directory of `--logs` and hold it for this run; if that is resumed, `run` is its ID."""
    directory = os.path.abspath(logs)
    try:
        os.makedirs(directory, exist_ok=True)
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileExistsError:
        raise UserError(f"--logs {logs}: it is not a directory; name another one") from None
    except OSError as error:
        raise UserError(f"--logs {logs}: {error.strerror}; name another directory") from None
    _hold(directory, fd)
    _refuse_survivors(directory, run)


def _hold(directory: str, fd: int) -> None:
    """Keep other runs from writing there while we run: logs of jobs with the same number would be mixed."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(f"another active run keeps its logs in {directory}; name another one: --logs DIR") from None
    except OSError:  # a file system without locks, where this is unknown
        os.close(fd)


def _refuse_survivors(directory: str, run: str) -> None:
    """Refuse logs that a job of another run still prints to, although the scheduler of that run is gone.

    This costs some 5 us for each log there, and nothing without `--logs`.
    """
    with os.scandir(directory) as entries:
        logs = [entry.path for entry in entries if is_log(entry.name)]
    if not logs:
        return
    from .log_file import run_that_prints  # noqa: PLC0415 - most runs have no logs

    for log in logs:
        holder = run_that_prints(log)
        if holder is None or (run and holder in (run, "")):
            continue
        which = f"run {safe(holder)}" if holder else "an earlier run"
        resume = f"continue that run with: {PROGRAM} --resume {safe(holder or 'RUN')}"
        raise UserError(
            f"a job of {which} is still running and prints to {safe(log)}, although the scheduler of that run is gone; "
            f"{resume}, or name another directory: --logs DIR"
        )


class LogDirectory(NamedTuple):
    """The logs of jobs in a directory, if there is one; `streams` are those that go there."""

    directory: str = ""
    streams: Sequence[int] = ()

    def of(self, job: Job) -> str:
        """The log of a job that starts now; empty if it has none."""
        return log_of(self.directory, job)


class LogsOnceHungUp:
    """No logs, until the terminal that we print to is gone.

    A job that printed there would fail, and so would all the jobs of a night after a dropped ssh connection. A pipe is
    left alone: whoever ends its reader, as `head` ends, wants its writers to end.
    """

    def __init__(self, journal: str) -> None:
        self._journal = journal
        self._terminals = [stream for stream in (1, 2) if os.isatty(stream)]
        self.directory = ""

    @property
    def streams(self) -> Sequence[int]:
        """Those of our streams that went to a terminal that is gone."""
        if not self._terminals:
            return ()
        poll = select.poll()  # each time, since no two threads may use one at once, and several start jobs
        for stream in self._terminals:
            poll.register(stream, 0)
        return [stream for stream, event in poll.poll(0) if event & select.POLLHUP]

    def of(self, job: Job) -> str:
        """See `LogDirectory`."""
        if not self.streams:
            return ""
        self.directory = self.directory or log_directory(None, self._journal)
        return log_of(self.directory, job)


def stream_opener(
    logs: LogDirectory | LogsOnceHungUp, run: str, put: Callable[[Noticed], None]
) -> Callable[[Attempt], Streams]:
    """A function that opens the log of an attempt. If that fails, the job runs anyway and prints to our streams."""

    def open_streams(attempt: Attempt) -> Streams:
        path = logs.of(attempt.job)
        if not path:
            return ()
        from .log_file import create, header  # noqa: PLC0415 - most runs have no logs

        try:
            fd = create(path, header(attempt, run, time.time()))
        except OSError as error:
            sentence = f"job {attempt.job.number} prints here, since its log {path} cannot be written: {error.strerror}"
            put(Noticed(sentence, is_failure=True))
            return ()
        return tuple([(fd, stream) for stream in logs.streams])

    return open_streams
