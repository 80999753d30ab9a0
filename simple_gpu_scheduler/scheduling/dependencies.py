"""Which jobs wait for which, by `after`: what the end of one releases, and what it takes with it. Pure."""

from collections.abc import Iterator

from simple_gpu_scheduler.base.jobs import Job


class Dependencies:
    """Remembers how named jobs ended, and who waits for those that have not."""

    def __init__(self) -> None:
        self._blocked: dict[int, tuple[Job, set[int]]] = {}
        self._dependents: dict[int, list[int]] = {}
        self._ended: dict[int, bool] = {}

    def __len__(self) -> int:
        return len(self._blocked)

    def have_failed(self, job: Job) -> bool:
        """Whether one that this job comes after did not succeed."""
        return any(self._ended.get(number) is False for number in job.after)

    def block(self, job: Job) -> bool:
        """Keep a job that comes after others until they have succeeded; False when they have."""
        unmet = {number for number in job.after if number not in self._ended}
        if unmet:
            self._blocked[job.number] = (job, unmet)
            for number in unmet:
                self._dependents.setdefault(number, []).append(job.number)
        return bool(unmet)

    def remember(self, job: Job, *, succeeded: bool) -> None:
        """How a job has ended."""
        if job.name:  # a job without a name cannot be waited for
            self._ended[job.number] = succeeded

    def forget(self, number: int) -> None:
        """It has not ended after all."""
        self._ended.pop(number, None)

    def release(self, number: int) -> Iterator[Job]:
        """A job has succeeded: those that have waited for it alone."""
        for dependent in self._dependents.pop(number, ()):
            if dependent not in self._blocked:
                continue
            job, unmet = self._blocked[dependent]
            unmet.discard(number)
            if not unmet:
                del self._blocked[dependent]
                yield job

    def take(self, number: int) -> Job | None:
        """A blocked job, which does not wait any more."""
        blocked = self._blocked.pop(number, None)
        return blocked[0] if blocked else None

    def fail(self, job: Job) -> list[Job]:
        """A job did not or will not succeed: it, and all that wait for it, directly or not."""
        lost = [job]
        for each in lost:  # grows while it is walked: a chain may be longer than Python's stack
            self.remember(each, succeeded=False)
            dependents = (self.take(number) for number in self._dependents.pop(each.number, ()))
            lost += [dependent for dependent in dependents if dependent]
        return lost
