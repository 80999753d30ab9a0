"""The directory with the logs of a run's jobs: where it is, and opening the log of an attempt there."""

import fcntl
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from simple_gpu_scheduler.base.errors import Trouble, UserError
from simple_gpu_scheduler.base.jobs import Attempt
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.system.processes import Streams

from . import log_of


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


def make_directory(logs: str) -> None:
    """Create the directory of `--logs` and hold it for this run."""
    directory = os.path.abspath(logs)
    try:
        os.makedirs(directory, exist_ok=True)
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileExistsError:
        raise UserError(f"--logs {logs}: it is not a directory; name another one") from None
    except OSError as error:
        raise UserError(f"--logs {logs}: {error.strerror}; name another directory") from None
    _hold(directory, fd)


def _hold(directory: str, fd: int) -> None:
    """Keep other runs from writing there while we run: logs of jobs with the same number would be mixed."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(f"another run keeps its logs in {directory} now; name another directory: --logs DIR") from None
    except OSError:  # a file system without locks, where this is unknown
        os.close(fd)


def stream_opener(
    directory: str, run: str, logged: Sequence[int], put: Callable[[Trouble], None]
) -> Callable[[Attempt], Streams]:
    """A function that opens the log of an attempt. If that fails, the job runs anyway and prints to our streams."""
    if not directory:
        return lambda _attempt: ()
    from .log_file import create, header  # noqa: PLC0415 - most runs have no logs

    def open_streams(attempt: Attempt) -> Streams:
        path = log_of(directory, attempt.job)
        try:
            fd = create(path, header(attempt, run, time.time()))
        except OSError as error:
            put(Trouble(f"job {attempt.job.number} prints here, since its log {path} failed: {error.strerror}"))
            return ()
        return tuple([(fd, stream) for stream in logged])

    return open_streams
