"""`--engine simulated`: no process runs, and time goes on only from one event to the next.

This is the loop's engine, its clock and its inbox in one, since the three must agree. What `sleep N` says in a
command is how long it takes, else its `time=`; `exit N` and `false` say how it ends.
"""

import re
import signal
from collections.abc import Callable
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Outcome
from simple_gpu_scheduler.gpus.leases import Hold
from simple_gpu_scheduler.inputs.reader import Batch, SourceEnded
from simple_gpu_scheduler.system.signals import Signalled

from . import Ended

if TYPE_CHECKING:
    from simple_gpu_scheduler.run.messages import Message

_SLEEP = re.compile(rb"(?<![\w./-])sleep((?:[ \t]+[0-9.]\S*)+)")
_LENGTH = re.compile(rb"([0-9]*\.?[0-9]+)([smhd]?)(?![\w.<>])")
_LONGEST = 100  # what is longer is no number that anybody would wait for
_UNITS = {b"": 1, b"s": 1, b"m": 60, b"h": 3600, b"d": 86_400}
_EXIT = re.compile(rb"(?<![\w./-])(?:exit\s+([0-9]{1,3})|(false))\s*(?:#.*)?$")
_NEVER = float("inf")
# How long a pipe that is held open for any number of writers is given, before time goes on without them.
_PATIENCE = 0.05


class Simulated:
    """Engine, clock and inbox."""

    def __init__(
        self, inbox: "SimpleQueue[Message]", wall: float, read_more: Callable[[], object], *, ends: bool
    ) -> None:
        """`ends`: whether the input ends by itself, so that it is waited for."""
        self._inbox = inbox
        self._wall = wall
        self._read_more = read_more
        self._patience = None if ends else _PATIENCE
        self._is_read = False  # whether the reader has nothing to give, until it is told to go on
        self._now = 0.0
        self._ends: list[tuple[float, int, Ended]] = []
        self._ending: dict[tuple[int, int], int] = {}  # which of the ends of an attempt counts
        self._count = 0

    def now(self) -> float:
        """See `Clock`."""
        return self._now

    def wall(self) -> float:
        """See `Clock`."""
        return self._wall + self._now

    def get(self, *, timeout: float | None = None) -> "Message":
        """See `Inbox`: what has really come, and then what comes next by our own time."""
        try:
            message = self._inbox.get(block=not self._is_read, timeout=self._patience)
        except Empty:
            self._is_read = True
            return self._next_end(_NEVER if timeout is None else self._now + timeout)
        # What we are told to stop for, nothing is read behind.
        stops = isinstance(message, Signalled) and message.number != signal.SIGUSR1
        if stops or isinstance(message, Batch | SourceEnded):
            self._is_read = True
        return message

    def read_more(self) -> None:
        """Have the reader go on."""
        self._is_read = False
        self._read_more()

    def _next_end(self, until: float) -> "Message":
        while self._ends and self._ends[0][0] <= until:
            at, count, ended = heappop(self._ends)
            if self._ending.get(ended.attempt.key) == count:
                del self._ending[ended.attempt.key]
                self._now = max(self._now, at)
                return ended
        if until == _NEVER:  # nothing comes but from outside
            return self._inbox.get()
        self._now = until
        raise Empty

    def start(self, attempt: Attempt, _hold: Hold) -> None:
        """It will have ended in a while."""
        self._end_at(self._now + _seconds(attempt.job), attempt, _outcome(attempt.job))

    def stop(self, attempt: Attempt, *, force: bool) -> bool:
        """It ends at once."""
        self._end_at(self._now, attempt, Outcome("killed", signal.SIGKILL if force else signal.SIGTERM))
        return True

    def _end_at(self, at: float, attempt: Attempt, outcome: Outcome) -> None:
        self._count += 1
        self._ending[attempt.key] = self._count
        heappush(self._ends, (at, self._count, Ended(attempt, outcome, is_settled=True)))

    def has_ended(self, attempt: Attempt) -> bool:
        """Whether it has by now."""
        count = self._ending.get(attempt.key)
        return any(number == count and at <= self._now for at, number, _ in self._ends)

    def settle(self, _ended: Ended) -> bool:
        """Nothing is ever left."""
        return True

    def recorded(self) -> None:
        """It is all the same."""

    def close(self) -> None:
        """There is nothing to close."""


def _seconds(job: Job) -> float:
    words = [word for words in _SLEEP.findall(job.command) for word in words.split() if len(word) < _LONGEST]
    lengths = [float(found[1]) * _UNITS[found[2]] for word in words if (found := _LENGTH.match(word))]
    return sum(lengths) if lengths else job.time or 0.0


def _outcome(job: Job) -> Outcome:
    found = _EXIT.search(job.command)
    if not found:
        return SUCCESS
    code = 1 if found[2] else int(found[1]) & 0xFF
    return Outcome("failed", code) if code else SUCCESS
