"""Writing to a journal so that it stops no job: a full disk is tried again, a file system that hangs is not waited for.

What is written survives the end of this process at once, and a power cut as soon as a thread has synced it, which it
does for many lines together. It knows nothing of what is written.
"""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from simple_gpu_scheduler.events import SinkTroubleError
from simple_gpu_scheduler.threads import start_thread

# Beyond this, what a full disk does not take is given up, the oldest first.
_MOST_KEPT = 64 * 1024 * 1024
_SYNC_PAUSE = 0.02
_TRY_AGAIN = 1.0
_PATIENCE = 10.0


class Appender:
    """Appends lines to an open file, from one thread."""

    def __init__(self, fd: int, name: str) -> None:
        self._fd = fd
        self._name = name
        self._kept: list[bytes] = []  # what could not be written yet
        self._size = 0
        self._try_at = 0.0
        self._has_new = threading.Event()
        self._thread: threading.Thread | None = None

    def append(self, lines: bytes) -> None:
        """Write them; a SinkTroubleError says once that it was not possible, and that it is tried again."""
        if self._kept and time.monotonic() < self._try_at:
            self._keep(lines)
            return
        is_new = not self._kept
        data = b"".join(self._kept) + lines
        error = self._write(data)
        if not error:
            self._kept.clear()
            self._size = 0
            self._sync_soon()
            return
        self._keep(lines)
        self._try_at = time.monotonic() + _TRY_AGAIN
        if is_new:
            raise SinkTroubleError(f"{self._name} cannot be written: {error}; the jobs go on, and it is tried again")

    def close(self) -> None:
        """Write what is left, and have it synced."""
        error = self._write(b"".join(self._kept)) if self._kept else ""
        with suppress(OSError):
            os.fdatasync(self._fd)
        if error:
            raise OSError(f"{error}; what happened last is not in it")

    def _write(self, data: bytes) -> str:
        """Why it could not be written, whole; a begin that was is written again, on a line of its own."""
        try:
            written = os.write(self._fd, data)
            while written < len(data):  # the next write tells why
                written += os.write(self._fd, data[written:])
        except OSError as error:
            if not self._kept:
                self._kept.append(b"\n")
            return error.strerror or str(error)
        return ""

    def _keep(self, lines: bytes) -> None:
        self._kept.append(lines)
        self._size += len(lines)
        while self._size > _MOST_KEPT:
            self._size -= len(self._kept.pop(0))

    def _sync_soon(self) -> None:
        if self._thread is None:
            try:
                self._thread = start_thread(self._sync)
            except RuntimeError:  # no more threads: a power cut may cost the last lines
                return
        self._has_new.set()

    def _sync(self) -> None:
        while True:
            self._has_new.wait()
            self._has_new.clear()
            with suppress(OSError):  # the next write meets it too, and says it
                os.fdatasync(self._fd)
            time.sleep(_SYNC_PAUSE)


class PatientAppender:
    """The same through a thread, for file systems that may hang: for more than ten seconds nobody waits."""

    def __init__(self, appender: Appender, name: str) -> None:
        self._appender = appender
        self._name = name
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._done: SimpleQueue[Exception | None] = SimpleQueue()
        self._late = 0
        start_thread(self._serve)

    def append(self, lines: bytes) -> None:
        """See `Appender`."""
        self._do(lambda: self._appender.append(lines))

    def close(self) -> None:
        """See `Appender`."""
        self._do(self._appender.close)

    def _do(self, work: Callable[[], None]) -> None:
        self._work.put(work)
        until = time.monotonic() + (0 if self._late else _PATIENCE)
        was_late = bool(self._late)
        self._late += 1
        while self._late:
            try:
                error = self._done.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                if was_late:  # that has been said
                    return
                raise SinkTroubleError(f"{self._name} does not answer; the jobs go on without it") from None
            self._late -= 1
            if error:
                raise error

    def _serve(self) -> None:
        while True:
            work = self._work.get()
            try:
                work()
            except Exception as error:  # noqa: BLE001 - it is for who waits
                self._done.put(error)
            else:
                self._done.put(None)


def is_remote(path: str) -> bool:
    """Whether a file lies on a file system that another machine keeps, and that may hang with it."""
    device = os.stat(path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            kinds = [line.partition(" - ")[2].split()[0] for line in mounts if line.split()[2] == number]
    except (OSError, IndexError):
        return False
    return any(kind.startswith(_REMOTE) for kind in kinds)


_REMOTE = ("nfs", "cifs", "smb", "fuse", "lustre", "beegfs", "gpfs", "afs", "ceph", "9p", "glusterfs", "pvfs")
