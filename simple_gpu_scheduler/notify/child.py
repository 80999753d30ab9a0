"""The notifier's processes: children of this process that must not be taken for leftovers of a job.

It starts and reaps them; it does not know what they are for.
"""

import os
import sys

from simple_gpu_scheduler.base.stdlib import Lock
from simple_gpu_scheduler.base.values import Sequence
from simple_gpu_scheduler.system import guardian, processes


class NotifierChildren:
    """May be used from any thread, but a thread must not end before what it started."""

    def __init__(self) -> None:
        self._lock = Lock()  # held while one is being started: it can be seen before its pid is known
        self._pids: set[int] = set()

    def start(
        self,
        starter: processes.Starter,
        argv: Sequence[bytes],
        more: Sequence[bytes],
        streams: processes.Streams,
    ) -> int:
        """Start a program with a guardian; the guardian's pid. An OSError says why it did not start."""
        guarded = (os.fsencode(sys.executable), b"-I", b"-S", os.fsencode(guardian.__file__), *argv)
        with self._lock:
            pid = starter.start(guarded, more, (), streams)
            self._pids.add(pid)
        return pid

    def reap(self, pid: int) -> int:
        """The wait status of an ended child."""
        with self._lock:
            self._pids.discard(pid)
            return processes.reap(pid)

    def pids(self) -> frozenset[int]:
        """Children that were started and not reaped."""
        with self._lock:
            return frozenset(self._pids)
