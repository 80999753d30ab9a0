"""Policies that share among labels: `fair` and `round-robin`."""

from collections import defaultdict
from collections.abc import Callable

from simple_gpu_scheduler.jobs import Job

from .base import FIRST, Load, Queues, Ranked, Waiting

_HALF_LIFE = 86_400.0
_ONE_SECOND = 1.0


class Shared(Ranked):
    """Orders by label, and the jobs of each in the order of the input."""

    by_label = True

    def __init__(self) -> None:
        super().__init__(_by_number, by_time=False)

    def first(self, queues: Queues, now: float, _load: Load) -> Waiting:
        """See `Policy`."""
        first: Waiting = min(map(FIRST, queues), key=self._key(now))
        return first

    def ordered(self, queues: Queues, now: float, _load: Load) -> list[Waiting]:
        """See `Policy`."""
        return sorted(map(FIRST, queues), key=self._key(now))

    def _key(self, now: float) -> Callable[[Waiting], tuple[float, int]]:
        raise NotImplementedError


class Account:
    """What a label has used: of the past so much as is not forgotten yet, and what goes on."""

    __slots__ = ("at", "past", "started", "width")

    def __init__(self) -> None:
        self.past = self.at = 0.0
        self.width, self.started = 0, 0.0  # of what runs: how wide it is in all, and the begin of each by its width

    def use(self, now: float) -> float:
        """In GPU-seconds. What runs counts for a second more than it has, so that labels take turns from the first."""
        return self._past_at(now) + self.width * (now + _ONE_SECOND) - self.started

    def add(self, width: int, started: float) -> None:
        """Something goes on."""
        self.width += width
        self.started += width * started

    def end(self, width: int, started: float, now: float) -> None:
        """It does no more."""
        self.add(-width, started)
        self.past = self._past_at(now) + width * (now - started)
        self.at = now

    def _past_at(self, now: float) -> float:
        return self.past * float(2 ** ((self.at - now) / _HALF_LIFE))


class Fair(Shared):
    """The label with the least use first, of GPUs or of CPU slots; use is forgotten by half in a day."""

    def __init__(self) -> None:
        super().__init__()
        self._accounts: defaultdict[tuple[str, bool], Account] = defaultdict(Account)
        self._started: dict[tuple[int, int], float] = {}

    def _key(self, now: float) -> Callable[[Waiting], tuple[float, int]]:
        accounts = self._accounts
        return lambda each: (accounts[_account(each)].use(now), each.number)

    def started(self, waiting: Waiting, now: float) -> None:
        """See `Policy`."""
        self._started[waiting.number, waiting.attempt] = now
        self._accounts[_account(waiting)].add(_width(waiting), now)

    def ended(self, waiting: Waiting, now: float, *, is_undone: bool) -> None:  # noqa: ARG002 - as the use of no time
        """See `Policy`."""
        started = self._started.pop((waiting.number, waiting.attempt))
        self._accounts[_account(waiting)].end(_width(waiting), started, now)


class RoundRobin(Shared):
    """The label first that has not had a turn for longest."""

    def __init__(self) -> None:
        super().__init__()
        self._turns: dict[str, int] = {}
        self._before: dict[tuple[int, int], int] = {}
        self._count = 0

    def _key(self, _now: float) -> Callable[[Waiting], tuple[float, int]]:
        turns = self._turns
        return lambda each: (turns.get(each.label, 0), each.number)

    def started(self, waiting: Waiting, _now: float) -> None:
        """See `Policy`."""
        self._count += 1
        self._before[waiting.number, waiting.attempt] = self._turns.get(waiting.label, 0)
        self._turns[waiting.label] = self._count

    def ended(self, waiting: Waiting, _now: float, *, is_undone: bool) -> None:
        """See `Policy`."""
        before = self._before.pop((waiting.number, waiting.attempt))
        if is_undone:
            self._turns[waiting.label] = before


def _account(waiting: Waiting) -> tuple[str, bool]:
    return waiting.label, not waiting.job.gpus


def _width(waiting: Waiting) -> int:
    return max(1, waiting.job.gpus)


def _by_number(_job: Job, _since: float, _length: float) -> float:
    return 0.0
