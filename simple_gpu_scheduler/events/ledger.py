"""The counts of a run, and what they come to: the summary and the exit code. Pure; knows nothing of the loop."""

from collections import Counter

from simple_gpu_scheduler.base.errors import BAD_INPUT, BY_SIGNAL, SOME_DID_NOT_SUCCEED, SUCCEEDED
from simple_gpu_scheduler.base.jobs import Kind

from . import RunEnded

_FAILED: tuple[Kind, ...] = ("failed", "timed out", "killed")
_DID_NOT_SUCCEED: tuple[Kind, ...] = (*_FAILED, "not started")


class Tally:
    """Counts jobs by how they ended for good, and what went wrong beside them."""

    def __init__(self) -> None:
        self.read = 0
        self._refused = 0
        self._has_failure = False
        self._outcomes: Counter[Kind] = Counter()
        self._excused: set[int] = set()

    def count(self, kind: Kind, jobs: int = 1) -> None:
        """So many jobs have ended like this."""
        self._outcomes[kind] += jobs

    def excuse(self, job: int, kind: Kind) -> None:
        """Its failure says nothing of the others: it was cancelled, or ended before this scheduler began."""
        if kind in _FAILED:
            self._excused.add(job)

    def take_back(self, job: int, kind: Kind) -> None:
        """One that had ended like this is to be tried again."""
        self.count(kind, -1)
        self._excused.discard(job)

    def refuse(self) -> None:
        """A line was bad input."""
        self._refused += 1
        self.count("not started")

    def fail(self) -> None:
        """Something other than a job went wrong that the exit code must tell of."""
        self._has_failure = True

    @property
    def failed(self) -> int:
        """How many jobs ran and did not succeed, but for those that are excused."""
        return sum(self._outcomes[kind] for kind in _FAILED) - len(self._excused)

    def summary(self, elapsed: float, *, all_read: bool) -> RunEnded:
        """The last event."""
        return RunEnded(
            succeeded=self._outcomes["succeeded"],
            failed=self._outcomes["failed"] + self._outcomes["killed"],
            timed_out=self._outcomes["timed out"],
            not_started=self._outcomes["not started"],
            elapsed=elapsed,
            all_read=all_read,
        )

    def exit_code(self, signal: int) -> int:
        """The truth in one number; `signal` is the one that stopped the run, or 0."""
        if signal:
            return BY_SIGNAL + signal
        if self._refused:
            return BAD_INPUT
        if self._has_failure or any(self._outcomes[kind] for kind in _DID_NOT_SUCCEED):
            return SOME_DID_NOT_SUCCEED
        return SUCCEEDED
