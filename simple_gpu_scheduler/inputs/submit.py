"""Appends whole lines to a queue: a named pipe that a scheduler reads, or a file that it follows.

Lines of several submitters never mix, and no half line stays in a file. It does not know what lines mean, nor which
queue to use.
"""

import errno
import fcntl
import os
import select
import stat
import time

from simple_gpu_scheduler.base.errors import SOME_DID_NOT_SUCCEED, UserError
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.stdlib import shlex, signal, suppress
from simple_gpu_scheduler.base.values import Callable, Iterator, NamedTuple, Sequence
from simple_gpu_scheduler.jobfile.split import SUBMITTED

from . import PIPE_SUFFIX

_ATOMIC = select.PIPE_BUF
_ROOM = 1024 * 1024  # the pipe size that every user may set, unless the system says otherwise
_PATIENCE, _PAUSE = 2.0, 0.01
_ENDS_US = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}

Say = Callable[[str], object]


class NotWrittenError(UserError):
    """Writing had started, and failed."""

    code = SOME_DID_NOT_SUCCEED


class WholeLine(NamedTuple):
    """A logical line as written, with its newlines; and the number of its first physical line."""

    number: int
    data: bytes


class Written(NamedTuple):
    """Where lines are: from a byte of a file on, or in a pipe after a comment that is nowhere else."""

    lines: Sequence[WholeLine]
    offset: int = 0
    mark: bytes = b""


def open_queue(path: str) -> int:
    """Open a queue for writing. It never waits: a pipe without a reader is an error."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(_why_closed(path, error)) from None
    mode = os.fstat(fd).st_mode
    if not stat.S_ISFIFO(mode) and not stat.S_ISREG(mode):
        os.close(fd)
        raise UserError(_no_queue(path))
    return fd


def _why_closed(path: str, error: OSError) -> str:
    shown = shlex.quote(path)
    if error.errno == errno.ENOENT:
        makes_it = "" if path.endswith(PIPE_SUFFIX) else " --make-fifo"
        return f"there is no {path}; start `{PROGRAM} --follow {shown}{makes_it}` first, or create the file"
    if error.errno == errno.ENXIO:  # sockets and devices without a driver say so too
        with suppress(OSError):
            if stat.S_ISFIFO(os.stat(path).st_mode):
                return (
                    f"no scheduler is reading the named pipe {path}; start `{PROGRAM} < {shown}` first "
                    f"(or `{PROGRAM} --resume`, if its run was stopped)"
                )
    if error.errno in (errno.EISDIR, errno.ENXIO, errno.ENODEV):
        return _no_queue(path)
    hint = "; ask its owner for permission to write" if error.errno == errno.EACCES else ""
    return f"cannot write to {path}: {error.strerror}{hint}"


def _no_queue(path: str) -> str:
    return f"{path} is not a queue; a queue is a named pipe that a scheduler reads, or a file that it follows"


def append(path: str, fd: int, lines: Sequence[WholeLine], say: Say, *, marks: bool = False) -> list[Written]:
    """Append whole lines, and close the queue; where they are, for which a pipe needs `marks`.

    A long wait is reported.
    """
    _lock(path, fd, say)
    while not _is_still(path, fd):  # it was replaced while we waited
        os.close(fd)
        fd = open_queue(path)
        _lock(path, fd, say)
    if stat.S_ISFIFO(os.fstat(fd).st_mode):
        written = _write_to_pipe(path, fd, lines, say, marks=marks)
    else:
        with _Uninterrupted():
            written = [Written(lines, _append_to_file(path, fd, _joined(lines)))]
    os.close(fd)
    return written


def _lock(path: str, fd: int, say: Say) -> None:
    """Keep other submitters out until the descriptor is closed. It works on a pipe as on a file."""
    end = time.monotonic() + _PATIENCE
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < end:
                    time.sleep(_PAUSE)
                    continue
                say(f"waiting for another writer, which has locked {path}")
                fcntl.flock(fd, fcntl.LOCK_EX)
            return
    except OSError as error:
        raise UserError(
            f"cannot lock {path}: {error.strerror}; without a lock, lines could mix. Keep the queue on a local disk"
        ) from None


def _is_still(path: str, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except OSError:
        return False


def _joined(lines: Sequence[WholeLine]) -> bytes:
    return b"".join(line.data for line in lines)


def _write_to_pipe(path: str, fd: int, lines: Sequence[WholeLine], say: Say, *, marks: bool) -> list[Written]:
    # A line that fits is written completely or not at all, even if we are killed.
    if any(len(line.data) > _ATOMIC for line in lines):
        with suppress(OSError):
            if fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) < _ROOM:
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _ROOM)
    written: list[Written] = []
    at = 0
    try:
        for piece in _pieces(lines, _MARK_SIZE if marks else 0):
            at = piece[0].number
            mark = _new_mark() if marks else b""
            _write(path, fd, mark + _joined(piece), say)
            written.append(Written(piece, mark=mark))
    except BrokenPipeError:
        raise NotWrittenError(
            f"the scheduler reading {path} is gone: line {at} of the input was not written in full, and later lines "
            "not at all; the journal of that scheduler shows which lines it had read"
        ) from None
    return written


def _new_mark() -> bytes:
    """A comment, which no reader runs, and which no other text has."""
    return SUBMITTED % os.urandom(8).hex().encode()


_MARK_SIZE = len(_new_mark())


def _pieces(lines: Sequence[WholeLine], more: int = 0) -> Iterator[list[WholeLine]]:
    """As many lines at a time as can be written atomically with `more` bytes, even without locks.

    A longer line is alone.
    """
    piece, size = list[WholeLine](), more
    for line in lines:
        if piece and size + len(line.data) > _ATOMIC:
            yield piece
            piece, size = [], more
        piece.append(line)
        size += len(line.data)
    yield piece


def _write(path: str, fd: int, data: bytes, say: Say) -> None:
    rest = memoryview(data)
    _wait_for_room(path, fd, say)
    with _Uninterrupted():  # half a line would be joined to the next one's
        while rest:
            try:
                rest = rest[os.write(fd, rest) :]
            except BlockingIOError:
                _wait_for_room(path, fd, say)


def _wait_for_room(path: str, fd: int, say: Say) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    if not poll.poll(_PATIENCE * 1000):
        say(f"{path} is full: its scheduler has enough jobs for now; waiting until it reads more")
        poll.poll()


class _Uninterrupted:
    """Defers signals that would end us; SIGQUIT (Ctrl-\\) still does."""

    def __enter__(self) -> None:
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS_US)

    def __exit__(self, *_error: object) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)


def _append_to_file(path: str, fd: int, data: bytes) -> int:
    """Write all or nothing; where it starts in the file."""
    size, wanted = os.fstat(fd).st_size, len(data)
    data = _before_ours(fd, size) + data
    written = 0
    try:
        while written < len(data):
            written += os.write(fd, memoryview(data)[written:])
        os.fsync(fd)
        return os.lseek(fd, 0, os.SEEK_CUR) - wanted  # a program that takes no lock may have been faster
    except OSError as error:
        took_back = _take_back(fd, size, written)
        rest = "nothing was submitted" if took_back else "it may end in half a line, which you must remove by hand"
        raise NotWrittenError(f"cannot write to {path}: {error.strerror}; {rest}") from None


def _take_back(fd: int, size: int, written: int) -> bool:
    try:
        if os.fstat(fd).st_size != size + written:  # another process has written after it without the lock
            return not written
        os.ftruncate(fd, size)
    except OSError:
        return not written
    return True


def _before_ours(fd: int, size: int) -> bytes:
    """Newlines to end an unfinished line of another writer. An extra empty line does no harm."""
    try:
        reading = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # writable but not readable
        return b"\n\n"
    end = os.pread(reading, 3, max(0, size - 3))
    os.close(reading)
    if not end:
        return b""
    continues = end.removesuffix(b"\n").removesuffix(b"\r").endswith(b"\\")
    return (b"" if end.endswith(b"\n") else b"\n") + (b"\n" if continues else b"")
