"""Writes to a terminal or pipe that may be full, stopped or closed, without ever waiting for it.

The caller writes what can be written at once, so that it comes before what a job prints next. A thread writes the
rest, and also everything while lines come quickly: one write for many lines. It knows nothing of what is written.
"""

import os
import select
import stat
import time

from simple_gpu_scheduler.base.stdlib import Event, Lock, suppress

from .threads import Thread, start_thread

# How often a steady stream of lines is written: each write releases the interpreter lock and must reacquire it.
_PAUSE = 0.02
# While nothing reads, this much is kept; beyond it the oldest is dropped, and a mark left in its place.
_MOST_KEPT = 4 * 1024 * 1024


class Writer:
    """Writes to a file descriptor that it shares with others and must not change."""

    def __init__(self, fd: int) -> None:
        self._blocking = fd
        self._direct = _without_waiting(fd)
        self._lock = Lock()  # guards the next three, and setting `_is_writing`
        self._kept: list[bytes] = []
        self._size = 0
        self._dropped = 0
        self._is_writing = False
        self._has_text = Event()
        self._closing = Event()
        self._thread: Thread | None = None
        self._written_at = float("-inf")

    def write(self, text: bytes) -> None:
        """Write it now if that does not block, else soon."""
        with self._lock:
            is_behind = self._kept or self._is_writing
            if not is_behind and time.monotonic() - self._written_at >= _PAUSE:
                text = self._write_directly(text)
            if text:
                self._keep(text)

    @property
    def is_behind(self) -> bool:
        """Whether something waits for the terminal or pipe to take it."""
        return bool(self._kept or self._is_writing)

    def close(self) -> None:
        """Wait until all is written or there is no reader."""
        with self._lock:  # or the thread, between checking the first and clearing the second, would wait forever
            self._closing.set()
            self._has_text.set()
        if self._thread:
            self._thread.join()
        else:
            self._write_kept()
        if self._direct is not None and self._direct != self._blocking:
            os.close(self._direct)

    def _write_directly(self, text: bytes) -> bytes:
        """The rest, which could not be written without blocking."""
        if self._direct is None:
            return text
        self._written_at = time.monotonic()
        try:
            return text[os.write(self._direct, text) :]
        except BlockingIOError:
            return text
        except OSError:  # closed at the other end: nothing can be reported, but the exit code tells the rest
            return b""

    def _keep(self, text: bytes) -> None:
        self._kept.append(text)
        self._size += len(text)
        while self._size > _MOST_KEPT and len(self._kept) > 1:  # the newest stays, however long it is
            self._size -= len(self._kept.pop(0))
            self._dropped += 1
        if self._thread is None:
            try:
                self._thread = start_thread(self._write_kept)
                self._has_text.set()  # there may be text from before
            except RuntimeError:  # no more threads now: the next text may have one
                self._write_without_thread()
                return
        if len(self._kept) == 1:
            self._has_text.set()

    def _write_without_thread(self) -> None:
        text = self._write_directly(b"".join(self._kept))
        self._kept[:] = [text] if text else []
        self._size = len(text)

    def _write_kept(self) -> None:
        while text := self._next():
            with suppress(OSError):  # as above
                write_all(self._blocking, text)
            self._written_at = time.monotonic()
            self._is_writing = False

    def _next(self) -> bytes:
        """Everything to write, after a pause in which more may come; empty at the end."""
        self._has_text.wait()
        self._closing.wait(max(0.0, self._written_at + _PAUSE - time.monotonic()))
        with self._lock:
            text = b"".join(self._kept)
            if self._dropped:
                text = b"(%d lines were dropped because they were not read)\n" % self._dropped + text
            self._kept.clear()
            self._size = self._dropped = 0
            self._is_writing = bool(text)
            if not self._closing.is_set():
                self._has_text.clear()
        return text


def write_all(fd: int, data: bytes) -> None:
    """Write all of it, waiting as long as needed, even if the other end was made non-blocking."""
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:
            select.select([], [fd], [])


def _without_waiting(fd: int) -> int | None:
    """A descriptor for the same thing whose writes never block; None if that is impossible.

    O_NONBLOCK belongs to the open file, which the user's shell shares: a pipe or terminal is opened a second time. A
    regular file is not, since that would have its own offset, and writing to it never blocks.
    """
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:  # a socket, or the terminal of another user after `su`
        return None
