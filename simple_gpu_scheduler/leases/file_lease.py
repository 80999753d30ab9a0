"""The lease of one GPU as a lock on a file, with a second file as the turnstile through which everybody goes in turn.

Who wants the lease first takes the turnstile, and keeps it until the lease is his. So one waits behind the lease, the
others behind the turnstile, and who has just given the lease back comes last. The kernel wakes them.
"""

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from queue import SimpleQueue

from simple_gpu_scheduler.errors import Broken
from simple_gpu_scheduler.threads import start_thread

from . import Holder, LeaseCame, Put, locks
from .files import LeaseFiles
from .record import SIZE, Record, decode, encode, is_one_of_ours
from .words import show_holder

_NEXT = ".next"
_FRESH = 1.0


class FileLease:
    """See `Lease`. Inside a job, a GPU that is leased for that very job is had by a lease within it."""

    def __init__(self, files: LeaseFiles, gpu: str, name: str, put: Put, tree: bytes = b"") -> None:
        self._files = files
        self._gpu = gpu
        self._put = put
        self._tree = tree
        self._outer_name = self._name = name
        self._lock, self._turnstile = self._open(name)
        self._looked_at = time.monotonic()
        self._waits: SimpleQueue[bool] | None = None
        self._is_closed = False
        self._guard = threading.Lock()  # over that, and whether what has come is told

    def take(self, *, past_the_line: bool = False) -> bool:
        """See `Lease`. Past the line also goes who has been through it."""
        if past_the_line:
            return self._is_current() and locks.try_lock(self._lock)
        self._look_inside()
        if not self._is_current():
            self._reopen(self._name)
        if not locks.try_lock(self._turnstile):
            return False
        took = locks.try_lock(self._lock)
        locks.unlock(self._turnstile)
        return took

    def wait_in_line(self) -> None:
        """See `Lease`. A thread waits; where there can be none, only who goes past the line gets it, some time."""
        if self._waits is None:
            waits: SimpleQueue[bool] = SimpleQueue()
            with suppress(RuntimeError):
                start_thread(lambda: self._wait(waits))
                self._waits = waits
        if self._waits is not None:
            self._waits.put(True)

    @property
    def descriptor(self) -> int | None:
        """See `Lease`."""
        return self._lock

    def sign(self, marks: Sequence[bytes], pid: int) -> None:
        """See `Lease`. That writing fails on a full disk takes nothing from the lease."""
        locks.write_at_begin(self._lock, encode(Record(pid, tuple(marks))))

    def is_wanted(self) -> bool:
        """See `Lease`. Who waits has the turnstile."""
        if not locks.try_lock(self._turnstile):
            return True
        locks.unlock(self._turnstile)
        return False

    def release(self) -> None:
        """See `Lease`."""
        locks.unlock(self._lock)

    def holder(self) -> Holder | None:
        """See `Lease`."""
        record = self._record_of_holder()
        return show_holder(record) if record else None

    def close(self) -> None:
        """See `Lease`. A thread that waits cannot be called back: what it gets, it gives back itself."""
        with self._guard:
            self._is_closed = True
            self.release()
        if self._waits is None:
            self._close_files()
        else:
            self._waits.put(False)

    def _close_files(self) -> None:
        for fd in (self._lock, self._turnstile):
            os.close(fd)

    def _wait(self, waits: "SimpleQueue[bool]") -> None:
        while waits.get() and not self._is_closed:
            try:
                self._stand_in_line()
            except OSError as error:
                self._put(Broken(error))
        self._close_files()

    def _stand_in_line(self) -> None:
        locks.lock(self._turnstile)
        locks.lock(self._lock)
        locks.unlock(self._turnstile)
        with self._guard:
            if self._is_closed:
                locks.unlock(self._lock)
            else:
                self._put(LeaseCame(self._gpu))

    def _look_inside(self) -> None:
        """Inside a job that holds this lease itself, go on to the lease within it, and within that."""
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
        if locks.try_lock(self._lock):
            locks.unlock(self._lock)
            return None
        return decode(os.pread(self._lock, SIZE, 0))

    def _is_current(self) -> bool:
        """Whether the files are still those of their names: else two schedulers might lock two different ones.

        Who cleans up /tmp deletes what is days old, so one look a second is enough.
        """
        now = time.monotonic()
        if now - self._looked_at < _FRESH:
            return True
        self._looked_at = now
        names = ((self._lock, self._name), (self._turnstile, self._name + _NEXT))
        return all(self._files.is_still(fd, name) for fd, name in names)

    def _reopen(self, name: str) -> None:
        self._close_files()
        self._name = name
        self._lock, self._turnstile = self._open(name)

    def _open(self, name: str) -> tuple[int, int]:
        return self._files.open(name), self._files.open(name + _NEXT)
