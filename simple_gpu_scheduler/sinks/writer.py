"""Writing to a terminal or pipe that may be full, stopped or closed, without ever waiting for it.

What can be written at once is written by the caller, so that it stands before what a job prints next. The rest is left
to a thread, which also takes over when lines come quickly: one write for many lines. It knows nothing of what is
written.
"""

import os
import stat
import threading
import time

# How often a steady stream of lines is written: each write gives up the interpreter lock and waits to have it back.
_PAUSE = 0.02
# While nobody reads, this much is kept; beyond it the oldest is dropped, and the place of it is marked.
_MOST_KEPT = 4 * 1024 * 1024


class Writer:
    """Writes to a file descriptor that it shares with others and must not change."""

    def __init__(self, fd: int) -> None:
        self._blocking = fd
        self._direct = _without_waiting(fd)
        self._changed = threading.Condition()
        self._backlog: list[bytes] = []
        self._size = 0
        self._dropped = 0
        self._thread: threading.Thread | None = None
        self._busy = False
        self._closed = False
        self._written_at = float("-inf")

    def write(self, text: bytes) -> None:
        """Write it now if that needs no waiting, else soon."""
        with self._changed:
            if not self._backlog and not self._busy and time.monotonic() - self._written_at >= _PAUSE:
                text = self._write_directly(text)
            if text:
                self._keep(text)

    def close(self) -> None:
        """Wait until all is written or nobody is there to read it."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread:
            self._thread.join()
        if self._direct not in (None, self._blocking):
            os.close(self._direct)

    def _write_directly(self, text: bytes) -> bytes:
        """What could not be written without waiting."""
        if self._direct is None:
            return text
        self._written_at = time.monotonic()
        try:
            return text[os.write(self._direct, text) :]
        except BlockingIOError:
            return text
        except OSError:  # closed at the other end: there is nobody to tell, and the exit code tells the rest
            return b""

    def _keep(self, text: bytes) -> None:
        self._backlog.append(text)
        self._size += len(text)
        while self._size > _MOST_KEPT:
            self._size -= len(self._backlog.pop(0))
            self._dropped += 1
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_backlog, daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _write_backlog(self) -> None:
        while text := self._next():
            try:
                while text:
                    text = text[os.write(self._blocking, text) :]
            except OSError:  # as above
                pass
            with self._changed:
                self._busy = False
                self._written_at = time.monotonic()

    def _next(self) -> bytes:
        """All that is to be written, after a pause in which more may come; nothing when it is over."""
        with self._changed:
            while not self._backlog and not self._closed:
                self._changed.wait()
            self._changed.wait_for(lambda: self._closed, self._written_at + _PAUSE - time.monotonic())
            text = b"".join(self._backlog)
            if self._dropped:
                text = b"(%d lines were dropped while nobody read them)\n" % self._dropped + text
            self._backlog.clear()
            self._size = self._dropped = 0
            self._busy = bool(text)
            return text


def _without_waiting(fd: int) -> int | None:
    """A descriptor for the same thing whose writes never wait; None where there is none.

    O_NONBLOCK belongs to the open file, which the user's shell shares: a pipe or terminal is opened a second time. A
    plain file is not, since that would have a place in the file of its own, and it never makes anybody wait.
    """
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:  # a socket, or the terminal of another user after `su`
        return None
