"""The attempts under way, their deadlines, and ending them: TERM, a grace period, KILL.

It is owned by the loop. Why an attempt is to end is told to it; how one is ended is the engine's.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from simple_gpu_scheduler.base.clock import Clock
from simple_gpu_scheduler.base.jobs import Attempt, Ending
from simple_gpu_scheduler.engines import Ended, Engine
from simple_gpu_scheduler.gpus.leases import Hold

_NEVER = float("inf")


class UnderWay(NamedTuple):
    """When it began by both clocks, why it is being ended, and when its main process was, if before the rest."""

    attempt: Attempt
    began: float
    began_at: float
    ending: Ending = ""
    ended: float | None = None

    def runtime(self, now: float) -> float:
        """How long its main process has run."""
        return (self.ended or now) - self.began


class Attempts:
    """Those that run, in the order in which they were started."""

    def __init__(self, engine: Engine, clock: Clock, grace: float, complain: Callable[[str], None]) -> None:
        self._engine = engine
        self._clock = clock
        self._grace = grace
        self._complain = complain
        self._running: dict[tuple[int, int], UnderWay] = {}
        # The next deadline of those that have one: of the time-out, or once they are being ended of the grace period.
        self._due: dict[tuple[int, int], float] = {}

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[UnderWay]:
        return iter(self._running.values())

    def runtimes(self) -> list[tuple[Attempt, float]]:
        """What runs, and for how long."""
        now = self._clock.now()
        return [(run.attempt, now - run.began) for run in self]

    @property
    def next_deadline(self) -> float:
        """When one is to be ended."""
        return min(self._due.values(), default=_NEVER)

    def start(self, attempt: Attempt, hold: Hold, timeout: float | None) -> None:
        """Start one; `timeout` holds for a job that does not say otherwise."""
        now = self._clock.now()
        timeout = timeout if attempt.job.timeout is None else attempt.job.timeout
        if timeout:  # 0 says that this one has none
            self._due[attempt.key] = now + timeout
        self._running[attempt.key] = UnderWay(attempt, now, self._clock.wall())
        self._engine.start(attempt, hold)

    def end(self, ended: Ended) -> UnderWay | None:
        """The main process of one has ended; the attempt, as it was, when nothing of it is left."""
        key = ended.attempt.key
        run, _ = self._running[key], self._due.pop(key, None)
        if self._engine.settle(ended):
            del self._running[key]
            return run
        self._running[key] = run._replace(ended=run.ended or self._clock.now())
        return None

    def stop(self, *, force: bool) -> None:
        """End all of them; by force also those that are being ended already."""
        for run in tuple(self):
            if force or not (run.ending or run.ended):
                self._end(run, run.ending or "stopped", force=force)

    def end_one(self, key: tuple[int, int], why: Ending) -> bool:
        """End one; False when it is being ended already, or has ended but for what it left."""
        run = self._running[key]
        if run.ending or run.ended:
            return False
        self._end(run, why, force=False)
        return True

    def enforce_deadlines(self) -> None:
        """End those whose time is over."""
        if not self._due:
            return
        now = self._clock.now()
        for run in [self._running[key] for key, due in self._due.items() if due <= now]:
            if not run.ending and self._engine.has_ended(run.attempt):  # in time; the loop is late, after Ctrl-Z
                self._due[run.attempt.key] = _NEVER
            else:
                self._end(run, run.ending or "timed out", force=bool(run.ending))

    def recorded(self) -> None:
        """How those that are over ended is on record."""
        self._engine.recorded()

    def close(self) -> None:
        """None is started any more."""
        self._engine.close()

    def _end(self, run: UnderWay, why: Ending, *, force: bool) -> None:
        force = force or self._grace == 0
        key = run.attempt.key
        self._running[key] = run._replace(ending=why)
        self._due[key] = _NEVER if force else self._clock.now() + self._grace
        if not self._engine.stop(run.attempt, force=force):
            self._due[key] = _NEVER
            self._complain(
                f"job {run.attempt.job.number} runs as another user and cannot be ended; waiting for its end"
            )
