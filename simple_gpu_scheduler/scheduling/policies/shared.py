"""Policies that share GPUs among labels: `fair` and `round-robin`."""

from abc import ABC, abstractmethod

from simple_gpu_scheduler.base.jobs import Job, Key

from .base import Heads, Load, Ranked, WaitingJob

_A_DAY = _HALF_LIFE = 86_400.0
_ONE_SECOND = 1.0
_MANY = 1000  # labels; beyond twice the useful ones, the others are forgotten
_LONG_AGO = float("-inf")

Name = tuple[str, bool]  # a label, and whether this is for CPU slots
Turn = tuple[float, int]  # when, and a counter for turns at the same moment
Placed = tuple[float, float, int, WaitingJob]  # sorts by the label's place, and then by number


class Shared(Ranked, ABC):
    """Orders by label, and the jobs of each label in input order. GPUs and CPU slots are shared separately."""

    by_label = True

    def __init__(self) -> None:
        super().__init__(_by_number, by_length=False)

    def first(self, heads: Heads, now: float, _load: Load) -> WaitingJob:
        """See `Policy`."""
        return min(self._placed(heads, now))[-1]

    def ordered(self, heads: Heads, now: float, _load: Load) -> list[WaitingJob]:
        """See `Policy`."""
        return [placed[-1] for placed in sorted(self._placed(heads, now))]

    @abstractmethod
    def _placed(self, heads: Heads, now: float) -> list[Placed]:
        """Each job with its place."""


class Account:
    """What a label has used: its past use as far as not forgotten, and what it is running."""

    __slots__ = ("at", "last", "past", "started", "width")

    def __init__(self) -> None:
        self.past = self.at = 0.0
        self.last = _LONG_AGO  # when something was started last
        self.width, self.started = (
            0,
            0.0,
        )  # of running attempts: total width, and the sum of start times weighted by width

    def use(self, now: float) -> float:
        """In GPU-seconds. Running attempts count one second extra, so that labels take turns from the start."""
        return self._past_at(now) + self.width * (now + _ONE_SECOND) - self.started

    def add(self, width: int, started: float) -> None:
        """An attempt starts."""
        self.width += width
        self.started += width * started

    def counts(self, now: float) -> bool:
        """Whether to remember it."""
        return self.width > 0 or now - self.last < _A_DAY or self._past_at(now) > _ONE_SECOND

    def end(self, width: int, started: float, now: float) -> None:
        """An attempt ends."""
        self.add(-width, started)
        self.past = self._past_at(now) + width * (now - started)
        self.at = now

    def _past_at(self, now: float) -> float:
        return self.past * float(2 ** ((self.at - now) / _HALF_LIFE))


class Fair(Shared):
    """The label with the least use first, of GPUs or of CPU slots; past use halves every day.

    Jobs that pass a wide one are not counted, since nothing else could have used their GPUs.

    A label that has waited a day with nothing started goes first, the longest wait before others: otherwise a stream
    of new labels could keep it from ever starting.
    """

    def __init__(self) -> None:
        super().__init__()
        self._accounts: dict[Name, Account] = {}
        self._most = _MANY
        self._started: dict[Key, float] = {}  # of running attempts, except those that passed a wide job

    def _placed(self, heads: Heads, now: float) -> list[Placed]:
        accounts, known = self._accounts, dict[Name, tuple[float, float]]()
        a_day_ago = now - _A_DAY
        placed: list[Placed] = []
        for head in heads:
            gpus, _, _, label, _ = head.kind
            name = label, not gpus
            if name not in known:
                account = accounts.get(name)
                known[name] = (account.use(now), account.last) if account else (0.0, _LONG_AGO)
            use, last = known[name]
            if last < a_day_ago and head.since < a_day_ago:
                placed.append((-1.0, max(head.since, last), head.number, head))
            else:
                placed.append((use, 0.0, head.number, head))
        return placed

    def started(self, waiting: WaitingJob, now: float) -> None:
        """See `Policy`."""
        account = self._accounts.setdefault(_name(waiting), Account())
        self._started[waiting.number, waiting.attempt] = now
        account.add(_width(waiting), now)
        account.last = now

    def ended(self, waiting: WaitingJob, now: float) -> None:
        """See `Policy`."""
        started = self._started.pop((waiting.number, waiting.attempt), None)
        if started is None:
            return
        self._accounts[_name(waiting)].end(_width(waiting), started, now)
        if len(self._accounts) > self._most:
            self._accounts = {name: each for name, each in self._accounts.items() if each.counts(now)}
            self._most = 2 * len(self._accounts) + _MANY


class RoundRobin(Shared):
    """The label whose last turn is longest ago first; without a turn, the arrival of its first job counts."""

    def __init__(self) -> None:
        super().__init__()
        self._turns: dict[Name, Turn] = {}  # the last of each label
        self._running: dict[Key, Name] = {}  # attempts that had a turn and still run
        self._count = 0
        self._most = _MANY

    def _placed(self, heads: Heads, _now: float) -> list[Placed]:
        return [(*self._turn(head), head.number, head) for head in heads]

    def _turn(self, head: WaitingJob) -> Turn:
        return self._turns.get(_name(head)) or (head.since, 0)

    def started(self, waiting: WaitingJob, now: float) -> None:
        """See `Policy`."""
        self._count += 1
        name = _name(waiting)
        self._turns[name] = now, self._count
        self._running[waiting.number, waiting.attempt] = name

    def ended(self, waiting: WaitingJob, _now: float) -> None:
        """See `Policy`."""
        self._running.pop((waiting.number, waiting.attempt), None)
        if len(self._turns) > self._most:
            # A label with no turn for long, and nothing running, may as well be forgotten.
            busy = set(self._running.values())
            idle = sorted((turn, name) for name, turn in self._turns.items() if name not in busy)
            for _, name in idle[: len(idle) // 2]:
                del self._turns[name]
            self._most = len(self._turns) + _MANY  # not twice as many, since half of the idle ones stay


def _name(waiting: WaitingJob) -> Name:
    return waiting.kind[3], not waiting.kind[0]


def _width(waiting: WaitingJob) -> int:
    return max(1, waiting.job.gpus)


def _by_number(_job: Job, _since: float, _length: float) -> float:
    return 0.0
