"""The local engine: a pool of threads, each of which starts a process and waits for its end.

The threads share with the rest of the program only the queue of what to do and the inbox for what happened. It knows
nothing of GPUs, order or time.
"""

import signal
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from simple_gpu_scheduler import process_tree, processes
from simple_gpu_scheduler.engines import Ended, EngineOptions
from simple_gpu_scheduler.engines.environment import ATTEMPT, JOB, RUN, inherited, own
from simple_gpu_scheduler.jobs import Attempt, Outcome, outcome_of

Key = tuple[int, int]

_ABOUT_A_START = 0.001


class LocalEngine:
    """Runs attempts as shell commands on this machine."""

    def __init__(self, options: EngineOptions) -> None:
        self._put = options.put
        self._shell = options.shell.encode("utf-8", "surrogateescape")
        self._grace = options.grace
        self._run_id = options.run_id.encode()
        self._inherited = inherited(options.environment)
        self._starter = processes.Starter()
        self._work: SimpleQueue[Callable[[], Ended] | None] = SimpleQueue()
        self._threads = 0
        self._busy = 0
        self._starting: set[Key] = set()
        self._lock = threading.Lock()  # over the three below, and so over pids: none is signalled after it was reaped
        self._pids: dict[Key, int] = {}
        self._mains: dict[int, Key] = {}
        self._cancelled: set[Key] = set()
        processes.adopt_orphans()

    def start(self, attempt: Attempt) -> None:
        """Hand the attempt to a thread."""
        self._do(lambda: self._run(attempt))

    def stop(self, attempt: Attempt, *, force: bool) -> None:
        """Signal the attempt's process group, or have that done as soon as it has one."""
        with self._lock:
            pid = self._pids.get(attempt.key)
            if pid is not None:
                processes.signal_group(pid, signal.SIGKILL if force else signal.SIGTERM)
            else:
                self._cancelled.add(attempt.key)

    def settle(self, ended: Ended) -> bool:
        """Look for what the attempt left behind; if there is something, let a thread end it first."""
        self._busy -= 1
        self._cancelled.discard(ended.attempt.key)
        has_orphans = processes.has_orphans()  # asked in any case: it also reaps those that a sweep has ended
        if ended.is_settled or not has_orphans:
            return True
        self._do(lambda: self._sweep(ended))
        return False

    def close(self) -> None:
        """Let the threads go."""
        for _ in range(self._threads):
            self._work.put(None)

    def _do(self, work: Callable[[], Ended]) -> None:
        self._busy += 1
        self._work.put(work)
        if self._busy > self._threads:
            self._threads += 1
            threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            self._put(work())

    def _run(self, attempt: Attempt) -> Ended:
        try:
            pid = self._start(attempt)
        except OSError as error:
            return Ended(attempt, Outcome("not started", reason=error.strerror or str(error)))
        if pid is None:
            return Ended(attempt, Outcome("not started", reason="it was stopped first"))
        processes.wait_for_end(pid)
        with self._lock:
            del self._pids[attempt.key], self._mains[pid]
            status = processes.reap(pid)
        return Ended(attempt, outcome_of(status))

    def _start(self, attempt: Attempt) -> int | None:
        key, command = attempt.key, attempt.job.command
        if key in self._cancelled:
            return None
        # Only where it is needed: a shell that is not POSIX may take `--` for the command.
        guard = (b"--",) if command[:1] in (b"-", b"+") else ()
        self._starting.add(key)
        try:
            pid = self._starter.start(
                (self._shell, b"-c", *guard, command), [*self._inherited, *own(attempt, self._run_id)]
            )
            with self._lock:
                self._pids[key] = pid
                self._mains[pid] = key
                if key in self._cancelled:
                    processes.signal_group(pid, signal.SIGTERM)
        finally:
            self._starting.discard(key)
        return pid

    def _sweep(self, ended: Ended) -> Ended:
        left = process_tree.end_strays(self._running_mains, self._owner, self._grace)
        pids = ", ".join(str(process.pid) for process in left)
        return ended._replace(is_settled=True, left=pids)

    def _running_mains(self) -> dict[int, Key]:
        """The main processes, including those that are just being started: they must not be taken for strays."""
        starting = set(self._starting)
        while starting & self._starting:
            time.sleep(_ABOUT_A_START)
        with self._lock:
            return dict(self._mains)

    def _owner(self, pid: int) -> Key | None:
        marks = process_tree.read_environment(pid, (RUN, JOB, ATTEMPT))
        if marks.get(RUN) != self._run_id:
            return None
        try:
            return int(marks[JOB]), int(marks[ATTEMPT])
        except (KeyError, ValueError):  # the job has put something else there
            return None
