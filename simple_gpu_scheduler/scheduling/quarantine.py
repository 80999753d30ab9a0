"""Which GPUs are faulty: job after job fails there within seconds while others succeed elsewhere.

Pure: given how attempts ended and what is running, it says which GPUs not to use. What becomes of the jobs that failed
there is up to the loop.
"""

from simple_gpu_scheduler.base.jobs import Attempt, Job, Outcome
from simple_gpu_scheduler.base.values import Callable, Collection, NamedTuple, Sequence

# Returns what is running, and for how long.
Running = Callable[[], Sequence[tuple[Attempt, float]]]

# An attempt of at least this length has not failed at once.
QUICK = 10.0
_MOST_REMEMBERED = 1000
_CHANCE = 1e-6
_NEVER = float("inf")


class Failure(NamedTuple):
    """A quick failure, the last attempt of its job, with the jobs that were dropped because of it."""

    attempt: Attempt
    outcome: Outcome
    dropped: Sequence[Job] = ()


class Aside(NamedTuple):
    """A GPU to set aside, and the failures there to retry elsewhere.

    If it `was_aside` already, they are those of attempts that were still running there.
    """

    gpu: str
    in_a_row: int
    failures: Sequence[Failure]
    was_aside: bool


class Ruling(NamedTuple):
    """GPUs that were set aside: those cleared, and those certainly faulty."""

    cleared: Sequence[str] = ()
    convicted: Sequence[str] = ()


class _Streak:
    """The quick failures in a row on one GPU, and the ends anywhere before them."""

    def __init__(self, good_before: int, bad_before: int) -> None:
        self.length = 0
        self.final: list[Failure] = []
        self.good_before = good_before
        self.bad_before = bad_before


_NO_VERDICT = Ruling()


class _Counts(dict[tuple[str, bool], int]):
    def __missing__(self, _key: tuple[str, bool]) -> int:
        return 0


class Quarantine:
    """Remembers, for each GPU, the quick failures in a row; `limit` of them make it suspect, 0 never."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._streaks: dict[str, _Streak] = {}
        self._ends = _Counts()  # by GPU ("" for all) and whether they were bad
        self._tried_elsewhere: set[int] = set()
        self.aside: frozenset[str] = frozenset()  # the GPUs that are set aside: on trial, convicted or never tried
        self._on_trial: dict[str, set[int]] = {}
        self.suspended: Collection[str] = ()

    def record(self, failure: Failure, length: float, *, is_final: bool) -> Ruling:
        """An attempt has ended; what that says about GPUs that were set aside."""
        attempt, outcome = failure.attempt, failure.outcome
        if not self._limit or not attempt.gpus or outcome.kind == "not started":
            return _NO_VERDICT
        succeeded = outcome.kind == "succeeded"
        is_bad = outcome.kind in ("failed", "killed") and length < QUICK
        if succeeded or is_bad:
            for gpu in attempt.gpus:
                self._ends[gpu, is_bad] += 1
            self._ends["", is_bad] += 1
        if not is_bad:
            for gpu in attempt.gpus:
                self._streaks.pop(gpu, None)
        elif len(attempt.gpus) == 1:  # it is unknown which of several GPUs is faulty
            self._extend(attempt.gpus[0], failure, is_final=is_final)
        return self._try(attempt.job.number, succeeded=succeeded) if is_final and self._on_trial else _NO_VERDICT

    def end_trials(self, is_pending: Callable[[int], bool]) -> list[str]:
        """The GPUs whose trial can no longer end, since its jobs were cancelled or dropped: they are cleared."""
        if not self._on_trial:
            return []
        cleared = [gpu for gpu, numbers in self._on_trial.items() if not any(map(is_pending, numbers))]
        self._clear(cleared)
        return cleared

    def review(self, running: Running) -> list[Aside]:
        """The faulty GPUs, given what is running and for how long; sets which are `suspended`."""
        self.suspended = ()
        if not self._streaks:
            return []
        found = self._late_failures()
        suspects = {gpu: streak for gpu, streak in self._streaks.items() if streak.length >= self._limit}
        if not suspects:
            return found
        now = running()
        suspended = set()
        for gpu, streak in suspects.items():
            elsewhere = [runtime for attempt, runtime in now if attempt.gpus and gpu not in attempt.gpus]
            good = self._ends["", False] - streak.good_before + sum(runtime >= QUICK for runtime in elsewhere)
            bad = self._ends["", True] - streak.bad_before - streak.length
            if self._is_at_fault(gpu, streak, good, bad):
                found.append(self._set_aside(gpu, streak))
            elif not good and not bad and elsewhere:  # wait for these to end
                suspended.add(gpu)
        self.suspended = suspended
        return found

    def _late_failures(self) -> list[Aside]:
        """What was still running on the GPUs that were set aside, and failed there too."""
        late = [self._set_aside(gpu, streak) for gpu, streak in tuple(self._streaks.items()) if gpu in self.aside]
        return [each for each in late if each.failures]

    def _is_at_fault(self, gpu: str, streak: _Streak, good: int, bad: int) -> bool:
        """Whether the streak cannot be chance, given the good and bad ends elsewhere since it started.

        If nothing failed elsewhere in the whole run, it cannot. Otherwise the jobs may just fail now and then.
        """
        good_elsewhere, bad_elsewhere = (self._ends["", is_bad] - self._ends[gpu, is_bad] for is_bad in (False, True))
        if not good or not bad_elsewhere:
            return bool(good)
        share = max((bad + 1) / (good + bad + 2), (bad_elsewhere + 1) / (good_elsewhere + bad_elsewhere + 2))
        return bool(share**streak.length < _CHANCE)

    def next_wake(self, running: Running) -> float:
        """In how many seconds a review may find more even if nothing happens."""
        if not self.suspended:
            return _NEVER
        return min((QUICK - runtime for _, runtime in running() if runtime < QUICK), default=_NEVER)

    def _extend(self, gpu: str, failure: Failure, *, is_final: bool) -> None:
        streak = self._streaks.setdefault(gpu, _Streak(self._ends["", False], self._ends["", True] - 1))
        streak.length += 1
        if is_final:
            streak.final.append(failure)
            del streak.final[:-_MOST_REMEMBERED]

    def _set_aside(self, gpu: str, streak: _Streak) -> Aside:
        del self._streaks[gpu]
        was_aside = gpu in self.aside
        self.aside |= {gpu}
        again = [failure for failure in streak.final if failure.attempt.job.number not in self._tried_elsewhere]
        numbers = {failure.attempt.job.number for failure in again}
        self._tried_elsewhere |= numbers
        if gpu in self._on_trial:
            self._on_trial[gpu] |= numbers
        elif numbers and not was_aside:
            self._on_trial[gpu] = numbers
        return Aside(gpu, streak.length, again, was_aside)

    def _clear(self, gpus: Sequence[str]) -> None:
        for gpu in gpus:
            del self._on_trial[gpu]
        self.aside -= set(gpus)

    def _try(self, number: int, *, succeeded: bool) -> Ruling:
        """If jobs that failed on a GPU fail elsewhere too, the jobs are at fault and not the GPU."""
        cleared, convicted = [], []
        for gpu, numbers in tuple(self._on_trial.items()):
            if number not in numbers:
                continue
            numbers.discard(number)
            if succeeded:
                convicted.append(gpu)
            elif not numbers:
                cleared.append(gpu)
        self._clear(cleared)
        for gpu in convicted:
            del self._on_trial[gpu]
        return Ruling(cleared, convicted)
