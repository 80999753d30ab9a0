"""Simulated time: no process runs, and time moves only from one event to the next.

This is the loop's engine, clock and inbox in one, since the three must agree. A job takes as long as `sleep N` in its
command says, or else its `time=`; `exit N` and `false` set how it ends. In a dry run, jobs take next to no time and
succeed; since their ends come one after another, GPUs are used in turn.
"""

import time

from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Key, Outcome
from simple_gpu_scheduler.base.stdlib import Empty, heappop, heappush, re, signal
from simple_gpu_scheduler.base.values import Any, Sequence
from simple_gpu_scheduler.gpus.pool import Demand
from simple_gpu_scheduler.inputs.reader import Batch, EndOfInput
from simple_gpu_scheduler.scheduling.slots import Room, Rooms
from simple_gpu_scheduler.system.signals import Signalled

from .protocol import NEVER, Ended, ForEngine, Report, Setting, Tended, World

_SLEEP = re.compile(rb"(?<![\w./-])sleep((?:[ \t]+[0-9.]\S*)+)")
_LENGTH = re.compile(rb"([0-9]*\.?[0-9]+)([smhd]?)(?![\w.<>])")
_LONGEST = 100  # numbers with more digits are not plausible lengths
_UNITS = {b"": 1, b"s": 1, b"m": 60, b"h": 3600, b"d": 86_400}
_EXIT = re.compile(rb"(?<![\w./-])(?:exit\s+([0-9]{1,3})|(false))\s*(?:#.*)?$")
# How long to wait for writers of a pipe that is held open before time advances without them.
_PATIENCE = 0.05
# How long the jobs of a dry run take: not nothing, or `fair` would see no use of the GPUs.
_MOMENT = 1e-6


class Simulated:
    """Engine, clock and inbox."""

    queues = False

    def __init__(self, setting: Setting, wall: float) -> None:
        """`wall` is the time when the run starts."""
        self._inbox = setting.inbox
        self._wall = wall
        self._read_more = setting.read_more
        self._has_lengths = setting.has_lengths
        self._gpus = tuple(gpu.id for gpu in setting.machine.gpus)
        self._patience = None if setting.input_ends else _PATIENCE
        self._is_read = False  # whether the reader pauses until it is asked to read more
        self._now = 0.0
        self._ends: list[tuple[float, int, Ended]] = []
        self._ending: dict[tuple[int, int], int] = {}  # which of the ends of an attempt is valid
        self._count = 0

    def now(self) -> float:
        """See `Clock`."""
        return self._now

    def wall(self) -> float:
        """See `Clock`."""
        return self._wall + self._now

    def get(self, *, timeout: float | None = None) -> Any:
        """See `Inbox`: what has really come, and then what comes next by our own time."""
        try:
            message = self._inbox.get(block=not self._is_read, timeout=self._patience)
        except Empty:
            self._is_read = True
            return self._next_end(NEVER if timeout is None else self._now + timeout)
        # Nothing is read after a message that stops the run.
        stops = isinstance(message, Signalled) and message.number != signal.SIGUSR1
        if stops or isinstance(message, Batch | EndOfInput):
            self._is_read = True
        return message

    def read_more(self) -> None:
        """Let the reader continue."""
        self._is_read = False
        self._read_more()

    def _next_end(self, until: float) -> Any:
        while self._ends and self._ends[0][0] <= until:
            at, count, ended = heappop(self._ends)
            if self._ending.get(ended.attempt.key) == count:
                del self._ending[ended.attempt.key]
                self._now = max(self._now, at)
                return ForEngine(ended)
        if until == NEVER:  # messages can only come from outside
            return self._inbox.get()
        self._now = until
        raise Empty

    def rooms(self, without: frozenset[str]) -> Rooms:
        """All of them, empty."""
        return {gpu: Room() for gpu in self._gpus if gpu not in without}

    def waits(self, _demand: Demand) -> list[Wait]:
        """There are no other users."""
        return []

    def take(self, _attempt: Attempt, _now: float) -> bool:
        """Always possible: there are no other users."""
        return True

    def start(self, attempt: Attempt) -> None:
        """Plan its end."""
        if self._has_lengths:
            self._end_at(self._now + _length_of(attempt.job), Ended(attempt, _outcome(attempt.job), by_itself=True))
        else:
            self._end_at(self._now + _MOMENT, Ended(attempt, SUCCESS, by_itself=True))

    def stop(self, attempts: Sequence[Attempt], *, force: bool) -> None:
        """They end at once."""
        killed = Outcome("killed", signal.SIGKILL if force else signal.SIGTERM)
        for attempt in attempts:
            count = self._ending.get(attempt.key)
            if not any(number == count and at <= self._now for at, number, _ in self._ends):
                self._end_at(self._now, Ended(attempt, killed))

    def received(self, message: Any, _now: float) -> Sequence[Report]:
        """See `Engine`."""
        return [message]

    def release(self, attempt: Attempt) -> None:
        """Nothing was taken."""

    def tend(self, _demand: Demand, _now: float) -> Tended:
        """There is nothing to look after."""
        return Tended()

    def measured(self, _key: Key) -> None:
        """Nothing runs."""

    def stillness(self, _key: Key) -> None:
        """As above."""

    def diagnose(self, _attempt: Attempt) -> None:
        """As above."""

    def _end_at(self, at: float, ended: Ended) -> None:
        self._count += 1
        self._ending[ended.attempt.key] = self._count
        heappush(self._ends, (at, self._count, ended))

    def close(self) -> None:
        """There is nothing to close."""


def build(setting: Setting) -> World:
    """Engine, clock and inbox in one."""
    simulated = Simulated(setting, time.time())
    return World(simulated, simulated, simulated, simulated.read_more)


def _length_of(job: Job) -> float:
    words = [word for words in _SLEEP.findall(job.command) for word in words.split() if len(word) < _LONGEST]
    lengths = [float(found[1]) * _UNITS[found[2]] for word in words if (found := _LENGTH.match(word))]
    return sum(lengths) if lengths else job.time or 0.0


def _outcome(job: Job) -> Outcome:
    found = _EXIT.search(job.command)
    if not found:
        return SUCCESS
    code = 1 if found[2] else int(found[1]) & 0xFF
    return Outcome("failed", code) if code else SUCCESS
