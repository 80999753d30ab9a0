"""The lease of one GPU as a lock on a file, with a second file as a turnstile that all schedulers pass in turn.

A scheduler first takes the turnstile, and keeps it until it has the lease. So one scheduler waits for the lease, the
others for the turnstile, and the one that just gave the lease back comes last. The kernel wakes them.
"""

import os
import time

from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.stdlib import Lock, SimpleQueue, suppress
from simple_gpu_scheduler.base.values import Sequence
from simple_gpu_scheduler.system import files
from simple_gpu_scheduler.system.threads import start_thread

from . import Holder, LeaseCame, LeaseError, Put
from .directory import LeaseFiles
from .record import SIZE, Record, decode, encode, is_one_of_ours, show_holder

_NEXT = ".next"
_NOT_OPEN = -1
_NEVER = float("-inf")
_FRESH = 1.0

# Closed while their threads waited, by directory and name. A thread that sleeps in flock cannot be called back, so the
# next to want that lease reuses the thread instead of starting another.
_abandoned: "dict[tuple[str, str], FileLease]" = {}
_guard = Lock()  # guards these, closing, what a thread does once it has its lease, and records


def open_lease(files: LeaseFiles, gpu: str, name: str, put: Put, tree: bytes = b"") -> "FileLease":
    """The lease of a GPU, with its place in line if this process already has one."""
    with _guard:
        lease = _abandoned.pop((files.path, name), None)
        if lease:
            lease.belong_to(gpu, put, tree)
            return lease
    return FileLease(files, gpu, name, put, tree)


def _forget_lines() -> None:
    """A forked child has no waiting threads, and a lock may be held by one that is missing."""
    global _guard  # noqa: PLW0603 - the module's only state
    _guard = Lock()
    for lease in _abandoned.values():
        lease.close_files()
    _abandoned.clear()


os.register_at_fork(after_in_child=_forget_lines)


class FileLease:
    """See `Lease`. Inside a job, a GPU that is leased for that job is taken by a second lease within the first."""

    def __init__(self, files: LeaseFiles, gpu: str, name: str, put: Put, tree: bytes = b"") -> None:
        self.belong_to(gpu, put, tree)
        self._files = files
        self._outer_name = self._name = name
        self._lock = self._turnstile = _NOT_OPEN
        self._looked_at = _NEVER
        self._waits: SimpleQueue[bool] | None = None
        self._is_in_line = False

    def belong_to(self, gpu: str, put: Put, tree: bytes) -> None:
        """From now on use `put` to report that it came."""
        self._gpu = gpu
        self._put = put
        self._tree = tree
        self._is_closed = False

    def open(self) -> None:
        """See `Lease`."""
        if self._lock == _NOT_OPEN:
            self._reopen(self._name)

    def take(self, *, past_the_line: bool = False) -> bool:
        """See `Lease`. It also goes past the line if it has been through it."""
        if past_the_line:
            return self._is_current() and files.try_lock(self._lock)
        if self._is_in_line:
            return False
        self.open()
        self._look_inside()
        if not self._is_current():
            self._reopen(self._name)
        if not files.try_lock(self._turnstile):
            return False
        took = files.try_lock(self._lock)
        files.unlock(self._turnstile)
        return took

    def wait_in_line(self) -> None:
        """See `Lease`. A thread waits; if no thread can be started, it can still be taken past the line later."""
        if self._waits is None:
            waits: SimpleQueue[bool] = SimpleQueue()
            with suppress(RuntimeError):
                start_thread(lambda: self._wait(waits))
                self._waits = waits
        if self._waits is not None and not self._is_in_line:
            self._is_in_line = True
            self._waits.put(True)

    @property
    def descriptor(self) -> int | None:
        """See `Lease`."""
        return self._lock

    def sign(self, marks: Sequence[bytes], pid: int, job: int = 0, name: str = "") -> None:
        """See `Lease`. That writing fails on a full disk takes nothing from the lease."""
        self.sign_first(marks, pid, b"%d" % pid, job, name)

    def sign_first(self, marks: Sequence[bytes], pid: int, word: bytes, job: int, name: str) -> tuple[bytes, bytes]:
        """See `Lease`."""
        with _guard:  # or an older list of marks could overwrite a newer one
            text = encode(Record(pid, tuple(marks), job, name), word)
            files.write_at_start(self._lock, text.replace(word, b"%d" % pid))
        return self._name.encode(), text

    def is_wanted(self) -> bool:
        """See `Lease`. A scheduler that waits holds the turnstile, or may hold that of newer files."""
        if not (self._is_current() and files.try_lock(self._turnstile)):
            return True
        files.unlock(self._turnstile)
        return False

    def release(self) -> None:
        """See `Lease`."""
        files.unlock(self._lock)

    def holder(self) -> Holder | None:
        """See `Lease`."""
        self.open()
        record = self._record_of_holder()
        return show_holder(record, time.time() - os.fstat(self._lock).st_mtime) if record else None

    def signed_by(self) -> int:
        """See `Lease`."""
        return decode(os.pread(self._lock, SIZE, 0)).pid if self._lock != _NOT_OPEN else 0

    def close(self) -> None:
        """See `Lease`. What a thread in line gets later, it gives back itself."""
        with _guard:
            self._is_closed = True
            self.release()
            if self._is_in_line:
                _abandoned[self._files.path, self._outer_name] = self
                return
        if self._waits is None:
            self.close_files()
        else:
            self._waits.put(False)

    def close_files(self) -> None:
        """Close the descriptors; those inherited by others stay locked."""
        for fd in (self._lock, self._turnstile):
            if fd != _NOT_OPEN:
                os.close(fd)

    def _wait(self, waits: "SimpleQueue[bool]") -> None:
        while waits.get():
            try:
                self._stand_in_line()
            except OSError as error:
                self._put(Broken(error))
            if self._waits is None:
                break
        self.close_files()

    def _stand_in_line(self) -> None:
        files.lock(self._turnstile)
        files.lock(self._lock)
        files.unlock(self._turnstile)
        with _guard:
            self._is_in_line = False
            if self._is_closed:
                files.unlock(self._lock)
                _abandoned.pop((self._files.path, self._outer_name), None)
                self._waits = None
            else:
                self._put(LeaseCame(self._gpu))

    def _look_inside(self) -> None:
        """Inside a job that holds this lease itself, move on to the lease within it, and so on."""
        level, name = 0, self._outer_name
        while self._tree and self._is_held_around(name):
            level += 1
            name = f"{self._outer_name}.inside-{level}"
        if name != self._name:
            self._reopen(name)

    def _is_held_around(self, name: str) -> bool:
        if name != self._name:
            self._reopen(name)
        record = self._record_of_holder()
        return record is not None and is_one_of_ours(record, self._tree)

    def _record_of_holder(self) -> Record | None:
        if files.try_lock(self._lock):
            files.unlock(self._lock)
            return None
        return decode(os.pread(self._lock, SIZE, 0))

    def _is_current(self) -> bool:
        """Whether the files still have their names: otherwise two schedulers might lock different files.

        Clean-ups of /tmp delete what is days old, so one look per second is enough.
        """
        now = time.monotonic()
        if now - self._looked_at < _FRESH:
            return True
        names = ((self._lock, self._name), (self._turnstile, self._name + _NEXT))
        if not all(self._files.is_still(fd, name) for fd, name in names):
            return False
        self._looked_at = now
        return True

    def _reopen(self, name: str) -> None:
        fds = self._open(name)  # first, since it may fail
        self.close_files()
        self._name = name
        self._lock, self._turnstile = fds
        self._looked_at = time.monotonic()

    def _open(self, name: str) -> tuple[int, int]:
        lock = self._files.open(name)
        try:
            return lock, self._files.open(name + _NEXT)
        except LeaseError:
            os.close(lock)
            raise
