"""Writes to a journal without holding up jobs: a full disk is retried, a file system that hangs is not waited for.

Written lines survive the end of this process at once, and a power cut once a thread has synced them, many at a time.
It knows nothing of what is written.
"""

import os
import time

from simple_gpu_scheduler.base.stdlib import Empty, Event, Lock, SimpleQueue, deque
from simple_gpu_scheduler.base.values import Callable
from simple_gpu_scheduler.events.publisher import SinkTroubleError
from simple_gpu_scheduler.system.inbox import SystemInbox
from simple_gpu_scheduler.system.threads import start_thread

# Beyond this, lines that a full disk does not take are dropped, oldest first.
_MOST_KEPT = 64 * 1024 * 1024
_SYNC_PAUSE = 0.02
_TRY_AGAIN = 1.0
_PATIENCE = 10.0


def _write(fd: int, data: bytes) -> int:
    return os.write(fd, data)


class Appender:
    """Appends lines to an open file, for one thread; a second thread syncs them, and retries what was not written."""

    def __init__(self, fd: int, name: str, write: Callable[[int, bytes], int] | None = None) -> None:
        """`write` replaces `os.write` where something faster will do."""
        self._fd = fd
        self._name = name
        self._write_some = write or _write
        self._lock = Lock()  # guards the four below
        self._kept: deque[bytes] = deque()  # what could not be written yet
        self._size = 0
        self._is_torn = False  # whether the file may end within a line
        self._try_at = 0.0
        self._has_new = Event()
        self._has_thread = False
        self._unsynced = ""
        self._is_told = False

    def append(self, lines: bytes) -> None:
        """Write them; a SinkTroubleError says once that this failed and is retried."""
        with self._lock:
            is_new = not self._kept
            self._keep(lines)
            error = self._write() if is_new or time.monotonic() >= self._try_at else ""
        if not self._has_new.is_set():
            self._sync_soon()
        if error and is_new:
            raise SinkTroubleError(f"cannot write {self._name}: {error}; jobs continue, and writing is retried")
        if self._unsynced and not self._is_told:
            self._is_told = True
            raise SinkTroubleError(f"{self._name} may lose its last lines: {self._unsynced}; jobs continue")

    def close(self) -> None:
        """Write what is left, and sync it."""
        with self._lock:
            error = self._write()
        error = self._synced() or error or ("" if self._is_told else self._unsynced)
        if error:
            raise OSError(f"{error}; the last events are missing from it")

    def _write(self) -> str:
        """Write what is kept; why that failed, if it did. A torn line is written again, on its own line."""
        start = b"\n" if self._is_torn else b""
        data = start + b"".join(self._kept)
        written, error = 0, ""
        try:
            while written < len(data):  # after a short write, the next one says why
                written += self._write_some(self._fd, data[written:] if written else data)
        except OSError as failure:
            error = failure.strerror or str(failure)
            self._try_at = time.monotonic() + _TRY_AGAIN
        self._is_torn = bool(error)
        if error:
            self._forget(written - len(start) + 1)
        else:
            self._kept.clear()
            self._size = 0
        return error

    def _forget(self, written: int) -> None:
        """Forget what was written, counting the newline to come; a torn line is kept whole."""
        while self._kept and written >= len(self._kept[0]):
            written -= len(self._kept[0])
            self._size -= len(self._kept.popleft())
        if self._kept and written > 0:
            whole = self._kept[0].rfind(b"\n", 0, written) + 1
            self._kept[0] = self._kept[0][whole:]
            self._size -= whole

    def _keep(self, lines: bytes) -> None:
        self._kept.append(lines)
        self._size += len(lines)
        while self._size > _MOST_KEPT:
            self._size -= len(self._kept.popleft())

    def _sync_soon(self) -> None:
        if not self._has_thread:
            try:
                start_thread(self._sync)
            except RuntimeError:  # no more threads: a power cut may cost the last lines
                return
            self._has_thread = True
        self._has_new.set()

    def _sync(self) -> None:
        while True:
            self._has_new.wait(_TRY_AGAIN if self._kept else None)
            time.sleep(_SYNC_PAUSE)  # for lines that come together
            self._has_new.clear()
            with self._lock:
                if self._kept and time.monotonic() >= self._try_at:
                    self._write()
            self._unsynced = self._synced() or self._unsynced

    def _synced(self) -> str:
        """Why written lines may not be on the disk. The kernel says so once, and maybe to no write."""
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            return error.strerror or str(error)
        return ""


class PatientAppender:
    """The same through a thread, for file systems that may hang: it waits ten seconds at most."""

    def __init__(self, appender: Appender, name: str) -> None:
        self._appender = appender
        self._name = name
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._done = SystemInbox()
        self._unanswered: deque[int] = deque()  # the sizes of what was handed over
        self._size = 0
        start_thread(self._serve)

    def append(self, lines: bytes) -> None:
        """See `Appender`. While nothing answers, the newest is given up beyond a bound."""
        trouble = self._gather(0)
        was_late = bool(self._unanswered)
        if not was_late or self._size < _MOST_KEPT:
            self._hand_over(lambda: self._appender.append(lines), len(lines))
        trouble = self._gather(0 if was_late else _PATIENCE) or trouble
        if trouble:
            raise trouble
        if self._unanswered and not was_late:  # otherwise already reported
            raise SinkTroubleError(f"{self._name} does not respond; jobs continue without it")

    def close(self) -> None:
        """See `Appender`."""
        self._hand_over(self._appender.close, 0)
        trouble = self._gather(_PATIENCE)
        if trouble:
            raise trouble
        if self._unanswered:
            raise OSError("it does not respond; the last events are missing from it")

    def _hand_over(self, work: Callable[[], None], size: int) -> None:
        self._work.put(work)
        self._unanswered.append(size)
        self._size += size

    def _gather(self, patience: float) -> Exception | None:
        """Take the answers that come within `patience` seconds; the first trouble among them."""
        until = time.monotonic() + patience
        trouble = None
        while self._unanswered:
            try:
                answer = self._done.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                break
            self._size -= self._unanswered.popleft()
            trouble = trouble or answer
        return trouble

    def _serve(self) -> None:
        while True:
            work = self._work.get()
            try:
                work()
            except Exception as error:  # noqa: BLE001 - passed to the waiting thread
                self._done.put(error)
            else:
                self._done.put(None)
