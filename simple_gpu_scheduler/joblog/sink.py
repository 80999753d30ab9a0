"""The job log: a row for each job that ran, in the columns of GNU parallel, so that scripts for it work.

`Send` is 0, and so is `Receive`: a job's output is its own and is not counted. It does not know what runs again.
"""

import os
import stat

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.jobs import Outcome
from simple_gpu_scheduler.events import Event, JobEnded
from simple_gpu_scheduler.events.publisher import SinkTroubleError
from simple_gpu_scheduler.system.writer import write_all

from .resume import HEADER, SIMULATED, continuation, is_simulated

_SIGTERM = 15
_HERE = b":"
# Rows that a full disk did not take.
_MOST_KEPT = 16 * 1024 * 1024
_BEGIN = 100  # enough of a row to tell its host


class JobLog:
    """Appends to a file that only its owner may read, since commands may hold secrets.

    With `keeps`, the rows in the file stay, and new ones follow. The log of a simulation says so (`is_simulated`), and
    never replaces the log of a real run.
    """

    def __init__(self, path: str, *, keeps: bool = False, is_simulated: bool = False) -> None:
        self._host = SIMULATED if is_simulated else _HERE
        self._path = path
        self._unwritten = bytearray()  # from within a row, if part of it was written
        self._missing = 0  # rows that were too many to be kept
        self._is_told = False
        try:
            # A pipe would be opened without waiting for its reader, and refused: it could make the run wait later.
            self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
            first = HEADER
            if stat.S_ISREG(os.fstat(self._fd).st_mode):
                if os.pread(self._fd, len(HEADER), 0) not in (b"", HEADER) and not keeps:
                    raise UserError(f"{path} is not a job log and is not overwritten; choose another file for --joblog")
                if is_simulated and os.fstat(self._fd).st_size > len(HEADER) and not _is_simulated(self._fd):
                    raise UserError(f"{path} lists jobs that really ran; choose another file for --joblog")
                size, first = _continuation(self._fd, path) if keeps else (0, HEADER)
                os.truncate(self._fd, size)
                os.fchmod(self._fd, 0o600)
            elif path != os.devnull:
                raise UserError(f"cannot write the job log {path}: it is not a regular file")
            write_all(self._fd, first)
        except OSError as error:
            raise UserError(f"cannot write the job log {path}: {error.strerror}") from None

    def take(self, event: Event, /) -> None:
        """Write a row at the end of a job."""
        if not isinstance(event, JobEnded) or not event.is_final or event.is_interrupted:
            return  # of a job that a stop has ended GNU parallel writes no row either: it is to run again
        if event.outcome.kind == "not started":
            return
        if len(self._unwritten) < _MOST_KEPT:
            self._unwritten += row(event, self._host)
        else:
            self._missing += 1
        error = self._write()
        if error and not self._is_told:
            self._is_told = True
            raise SinkTroubleError(f"{self._cannot}: {error}; jobs continue, and it is tried again", is_failure=False)

    def close(self) -> None:
        """Write what is left, and close the file."""
        error = self._write()
        os.close(self._fd)
        missing = self._missing + self._unwritten.count(b"\n")
        if missing:
            why = f": {error}" if error else ""
            raise SinkTroubleError(f"{self._cannot}{why}; {missing} row{'' if missing == 1 else 's'} missing from it")

    @property
    def _cannot(self) -> str:
        return f"cannot write the job log {self._path}"

    def _write(self) -> str:
        """Write what is kept; why that failed, if it did."""
        try:
            while self._unwritten:
                del self._unwritten[: os.write(self._fd, self._unwritten)]
        except OSError as error:
            return error.strerror or str(error)
        return ""


def _continuation(fd: int, path: str) -> tuple[int, bytes]:
    with open(fd, "rb", closefd=False) as file:
        data = file.read()
    try:
        return continuation(data)
    except ValueError as error:
        raise UserError(f"{path} is not a job log: {error}; give the one that the run wrote with --joblog") from None


def _is_simulated(fd: int) -> bool:
    return is_simulated(os.pread(fd, len(HEADER) + _BEGIN, 0))


def row(event: JobEnded, host: bytes = _HERE) -> bytes:
    """One row; a newline in the command is a NUL there, as GNU parallel has it, so that a row stays a line."""
    exit_code, signal = _codes(event.outcome)
    times = f"{event.started_at:.3f}\t{event.length:10.3f}"
    start = f"{event.attempt.job.number}\t{host.decode()}\t{times}\t0\t0\t{exit_code}\t{signal}\t"
    return start.encode() + event.attempt.job.command.replace(b"\n", b"\0") + b"\n"


def _codes(outcome: Outcome) -> tuple[int, int]:
    if outcome.kind in ("timed out", "stalled"):
        return -1, _SIGTERM
    return (0, outcome.code) if outcome.kind == "killed" else (outcome.code, 0)
