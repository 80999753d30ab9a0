"""Copies a pipe to a file, so that nothing written to the pipe is lost if a process is killed.

The scheduler reads the file and says how far the copy may be ahead: otherwise an endless writer would fill the disk.
It runs in a thread of the keeper, or of the scheduler if there is no keeper. Of lines it knows only how they end.
"""

import errno
import fcntl
import os
import select
import sys

from simple_gpu_scheduler.base.stdlib import suppress

from .connection import Socket, receive, send
from .messages import TakeIn

_AT_ONCE = 64 * 1024
_MOST_UNSYNCED = 256
_GONE_WITHIN = 1000  # ms
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_GET_PIPE_SIZE = 1032  # fcntl.F_GETPIPE_SZ, which Python 3.10 does not always have
_INT = 4
_NONBLOCK = getattr(os, "SPLICE_F_NONBLOCK", 2)


class Intake:
    """One pipe, its file, and the socket to the scheduler.

    Of a named pipe, `pipe` may be a descriptor of its place alone: it is opened here, since from then on writers write.
    """

    def __init__(self, pipe: int, spool: int, notify: Socket, wanted: TakeIn) -> None:
        self._pipe = pipe
        self._line_end = b"\0" if wanted.by_null else b"\n"
        self._spool = spool
        self._notify = notify
        self._is_named = wanted.is_named
        self._holds = bool(wanted.holds)
        self._held: int | None = None
        self._granted = wanted.granted
        self._size = os.fstat(spool).st_size
        self._splices = True
        self._unwritten = b""
        self._has_ended = False

    def run(self) -> None:
        """Copy until the scheduler says stop, or is gone; then copy the rest."""
        if self._is_named:
            self._open()
        self._tell(b"open")
        poll = select.poll()
        unsynced = 0
        while True:
            is_open = self._size < self._granted and not self._has_ended
            poll.register(self._notify.fileno(), select.POLLIN)
            if is_open:
                poll.register(self._pipe, select.POLLIN)
            ready = dict(poll.poll(0) if unsynced else poll.poll())
            if not ready or unsynced > _MOST_UNSYNCED:
                self._sync()
                unsynced = 0
                continue
            unsynced += 1
            if is_open:
                poll.unregister(self._pipe)
            if self._notify.fileno() in ready and not self._heed():
                break
            if self._pipe in ready and not self._take_some():
                return
        self._finish()

    def _open(self) -> None:
        # Keep it open: a pipe opened after its last writer has gone never reports its end.
        if fcntl.fcntl(self._pipe, fcntl.F_GETFL) & os.O_PATH:
            opened = os.open(f"/proc/self/fd/{self._pipe}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.close(self._pipe)
            self._pipe = opened
        if self._holds:
            self._hold()

    def _hold(self) -> None:
        with suppress(OSError):  # it may be read and not written to
            self._held = os.open(f"/proc/self/fd/{self._pipe}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def _let_go(self) -> None:
        """Close our own end. Only without it does the pipe tell when the last writer has gone."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def _heed(self) -> bool:
        """Do what the scheduler says; False if it says stop."""
        received = receive(self._notify)
        if received is None or received.data == b"close":
            return False
        self._granted = int(received.data)
        return True

    def _take_some(self) -> bool:
        """Copy what is there; False if the file cannot be written, so that the scheduler must read the pipe itself."""
        try:
            moved = self._move()
            if not moved and self._holds:
                self._separate()
        except BlockingIOError:  # another reader was faster
            return True
        except OSError as error:
            self._tell(b"failed", (error.strerror or "").encode(), self._unwritten)
            os.close(self._pipe)  # the scheduler's own end is the last
            self._let_go()
            return False
        self._size += moved
        if moved:
            self._tell(b"%d" % self._size)
            if self._holds:
                self._let_go()
            return True
        if self._holds:
            self._hold()
        if self._held is None:
            self._end()
        return True

    def _separate(self) -> None:
        """The last writer has gone. If its last line has no end, give it one."""
        if self._size and os.pread(self._spool, 1, self._size - 1) != self._line_end:
            self._unwritten = self._line_end
            self._size += os.pwrite(self._spool, self._line_end, self._size)
            self._unwritten = b""
            self._tell(b"half", b"%d" % self._size)

    def _end(self) -> None:
        """The last writer has gone. From now on hold a named pipe open, so that late writers are read."""
        self._tell(b"end")
        self._has_ended = True
        if self._is_named:
            self._holds = False
            self._hold()  # if this fails, it is closed with the run
            self._has_ended = self._held is None

    def _move(self) -> int:
        """Copy bytes from the pipe to the file; if possible in one system call, so that no kill can lose them."""
        if self._splices:
            try:
                return os.splice(self._pipe, self._spool, _AT_ONCE, offset_dst=self._size, flags=_NONBLOCK)
            except BlockingIOError:
                raise
            except (OSError, AttributeError) as error:
                if isinstance(error, OSError) and error.errno in _NO_ROOM:
                    raise
                self._splices = False  # not every file system can, and some C libraries have no way to say it
        self._unwritten = os.read(self._pipe, _AT_ONCE)
        written = 0
        while self._unwritten:
            count = os.pwrite(self._spool, self._unwritten, self._size + written)
            written += count
            self._unwritten = self._unwritten[count:]
        return written

    def _finish(self) -> None:
        """Copy the rest and close the pipe, so that later writers get an error.

        While its other end is open, what was written just before the close can still be read.
        """
        if self._held is None:
            self._hold()
        with suppress(OSError):
            self._drain()
            os.close(self._pipe)
            while self._held is not None and _is_unread(self._held) and _bytes_in(self._held):
                self._pipe = os.open(f"/proc/self/fd/{self._held}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                self._drain()
                os.close(self._pipe)
        self._let_go()
        self._sync()
        self._tell(b"closed", b"%d" % self._size)

    def _sync(self) -> None:
        """Sync it: many lines at once while they come quickly, one as soon as none follows."""
        with suppress(OSError):
            os.fdatasync(self._spool)

    def _drain(self) -> None:
        """Copy what is in it now, not what a writer keeps adding: it will get an error soon."""
        left = fcntl.fcntl(self._pipe, _GET_PIPE_SIZE)
        with suppress(BlockingIOError):  # another reader was faster
            while left > 0 and _bytes_in(self._pipe) and (moved := self._move()):
                self._size += moved
                left -= moved

    def _tell(self, *fields: bytes) -> None:
        with suppress(OSError):  # it is gone
            send(self._notify, b"\0".join(fields))


def _is_unread(held: int) -> bool:
    """Whether the pipe has no readers left, so that no write to it succeeds.

    That may take a moment: a job that is being started has our end too until its program is loaded, and so has a
    scheduler that was killed until it is gone.
    """
    poll = select.poll()
    poll.register(held, 0)
    return bool(poll.poll(_GONE_WITHIN))


def _bytes_in(fd: int) -> int:
    from termios import FIONREAD  # noqa: PLC0415 - another number on each kind of processor

    return int.from_bytes(fcntl.ioctl(fd, FIONREAD, bytes(_INT)), sys.byteorder)
