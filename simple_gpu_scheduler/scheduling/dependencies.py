"""Which jobs wait for which, by `after`: what the end of a job releases, and what it drops. Pure."""

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.values import Iterator


class Dependencies:
    """Remembers how named jobs ended, and which jobs wait for the others."""

    def __init__(self) -> None:
        self._blocked: dict[int, tuple[Job, set[int]]] = {}
        self._dependents: dict[int, list[int]] = {}
        self._ended: dict[int, bool] = {}

    def __len__(self) -> int:
        return len(self._blocked)

    def have_failed(self, job: Job) -> bool:
        """Whether a job that this one depends on did not succeed."""
        return any(self._ended.get(number) is False for number in job.after)

    def block(self, job: Job) -> bool:
        """Hold a job until those it depends on have succeeded; False if they already have."""
        unmet = {number for number in job.after if number not in self._ended}
        if unmet:
            self._blocked[job.number] = (job, unmet)
            for number in unmet:
                self._dependents.setdefault(number, []).append(job.number)
        return bool(unmet)

    def remember(self, job: Job, *, succeeded: bool) -> None:
        """Remember how a job ended."""
        if job.name:  # no job can depend on one without a name
            self._ended[job.number] = succeeded

    def forget(self, number: int) -> None:
        """Forget that it ended."""
        self._ended.pop(number, None)

    def release(self, number: int) -> Iterator[Job]:
        """A job has succeeded: the jobs that waited only for it."""
        for dependent in self._dependents.pop(number, ()):
            if dependent not in self._blocked:
                continue
            job, unmet = self._blocked[dependent]
            unmet.discard(number)
            if not unmet:
                del self._blocked[dependent]
                yield job

    def take(self, number: int) -> Job | None:
        """Take out a blocked job."""
        blocked = self._blocked.pop(number, None)
        return blocked[0] if blocked else None

    def fail(self, job: Job) -> list[Job]:
        """A job did not or will not succeed: it, and all jobs that depend on it, directly or not."""
        lost = [job]
        for each in lost:  # grows while being iterated over: a chain may be longer than Python's stack
            self.remember(each, succeeded=False)
            dependents = (self.take(number) for number in self._dependents.pop(each.number, ()))
            lost += [dependent for dependent in dependents if dependent]
        return lost
