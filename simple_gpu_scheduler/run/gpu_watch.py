"""Watching a run's GPUs: those that are lost or at fault are set aside, and it is said why jobs wait for the others.

It acts for the loop, in its thread. Which GPUs are at fault is the quarantine's to know, which are free the
allotment's.
"""

from collections.abc import Iterable

from simple_gpu_scheduler.base.gpu_waits import Waiting
from simple_gpu_scheduler.base.jobs import Attempt
from simple_gpu_scheduler.events import GpuReturned, GpuSetAside, JobEnded, Noticed, Waited
from simple_gpu_scheduler.events.publisher import Publisher
from simple_gpu_scheduler.gpus.leases import Hold
from simple_gpu_scheduler.gpus.pool import Allotment
from simple_gpu_scheduler.scheduling import Dropped
from simple_gpu_scheduler.scheduling.quarantine import Aside, Failure, Quarantine, Running
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Rooms

from .outcomes import Outcomes

_NEVER = float("inf")
_NOT = (None,)


class GpuWatch:
    """Tells the scheduler and the allotment which GPUs to leave alone."""

    def __init__(
        self,
        scheduler: Scheduler,
        allotment: Allotment,
        publisher: Publisher,
        outcomes: Outcomes,
        quarantine: Quarantine,
    ) -> None:
        self._scheduler = scheduler
        self._allotment = allotment
        self._publisher = publisher
        self._outcomes = outcomes
        self._quarantine = quarantine
        self._waiting = Waiting()

    def rooms(self) -> Rooms:
        """The GPUs that may be used, but for those of which others will soon tell whether they are at fault."""
        return self._allotment.rooms(self._quarantine.suspended)

    def let_go(self, now: float) -> None:
        """Give back what is leased and not used."""
        if self._allotment.has_idle:
            self._allotment.let_go(now, self._scheduler.wants_gpus)

    def take(self, attempt: Attempt, its_mark: bytes, now: float) -> Hold | None:
        """What an attempt holds of its GPUs, all of them; None when somebody was there first, or has the memory."""
        hold = self._allotment.take(its_mark, attempt.gpus, now)
        if hold and attempt.job.mem and not self._scheduler.fits(attempt, self._allotment.rooms()):
            self._allotment.give_back(its_mark, attempt.gpus, unused=True)
            return None
        return hold

    def next_wake(self, now: float, running: Running) -> float:
        """When to look again though nothing has happened."""
        suspended = self._quarantine.suspended
        return min(
            self._allotment.next_wake(now, self._scheduler),
            now + self._quarantine.next_wake(running) if suspended else _NEVER,
        )

    def ended(self, event: JobEnded, dropped: Iterable[Dropped]) -> None:
        """An attempt has ended, and has taken these jobs with it."""
        failure = Failure(event.attempt, event.outcome, [job for job, _ in dropped])
        verdict = self._quarantine.record(failure, event.runtime, is_final=event.is_final)
        for gpu in verdict.convicted:
            self._scheduler.lose(gpu)
        for gpu in verdict.cleared:
            self._allotment.use_again(gpu)
            self._publisher.publish(GpuReturned(gpu))

    def review(self, running: Running) -> None:
        """Set aside what is at fault, and have what failed there tried elsewhere, which will tell whether it is."""
        for aside in self._quarantine.review(running):
            self._allotment.set_aside(aside.gpu)
            reason = f"{aside.in_a_row} jobs in a row failed there within seconds while others succeed elsewhere"
            self._publisher.publish(GpuSetAside(aside.gpu, reason, [each.attempt.job for each in aside.failures]))
            if aside.failures:
                self._revive(aside)
            else:
                self._scheduler.lose(aside.gpu)

    def look(self, now: float) -> None:
        """Look at what others use, if it is time to, and say what there is to say."""
        if self._allotment.look_again(now, at_all=bool(self._scheduler.wants_memory)):
            waits = self._waiting.say(self._allotment.waits(self._scheduler), now)
            if waits is not None:
                self._publisher.publish(Waited(waits))
        if not self._allotment.has_looked():
            return
        for gpu, reason in self._allotment.lost():
            self._scheduler.lose(gpu)
            self._publisher.publish(GpuSetAside(gpu, reason))
        for remark in self._allotment.remarks():
            self._publisher.publish(Noticed(remark))

    def tell(self) -> None:
        """Say why GPUs are not free, to somebody who asked."""
        waits = self._allotment.waits(self._scheduler)
        if waits:
            self._publisher.publish(Waited(waits))

    def _revive(self, aside: Aside) -> None:
        known = self._outcomes.failed  # what somebody has had tried again meanwhile is no more in it
        failures = [each for each in aside.failures if known.get(each.attempt.job.number, _NOT)[0] == each.attempt]
        failed = [failure.attempt for failure in failures]
        dropped = [job for failure in failures for job in failure.dropped if job.number in known]
        self._outcomes.requeue(failed, dropped, f"gpu {aside.gpu} is set aside")
