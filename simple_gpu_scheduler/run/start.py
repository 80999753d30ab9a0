"""Starting what fits: from the scheduler's choice to leased GPUs and an attempt under way. It acts for the loop."""

from simple_gpu_scheduler.events import JobStarted
from simple_gpu_scheduler.events.publisher import Publisher
from simple_gpu_scheduler.scheduling.backfill import Choice
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.system.marks import mark

from .attempts import Attempts
from .gpu_watch import GpuWatch
from .outcomes import Outcomes
from .rules import RunRules


class Starting:
    """Asks the scheduler until there is nothing more that it would start."""

    def __init__(
        self,
        scheduler: Scheduler,
        watch: GpuWatch,
        outcomes: Outcomes,
        attempts: Attempts,
        publisher: Publisher,
        rules: RunRules,
    ) -> None:
        self._scheduler = scheduler
        self._watch = watch
        self._outcomes = outcomes
        self._attempts = attempts
        self._publisher = publisher
        self._rules = rules

    def start_what_fits(self, now: float, *, is_stopping: bool) -> None:
        """Start it, give back what is not used, and say what waits."""
        if not is_stopping:
            self._watch.review(self._attempts.runtimes)
        self._start_all(now)
        self._watch.let_go(now)
        self._watch.look(now)
        self._outcomes.drop(self._scheduler.drop_unfit())

    def _start_all(self, now: float) -> None:
        rooms = self._watch.rooms()
        while choice := self._scheduler.next(now, rooms):
            if not self._start(choice, now):  # somebody was there first, so the rooms have changed
                rooms = self._watch.rooms()

    def _start(self, choice: Choice, now: float) -> bool:
        """Take the places first, and only then commit; False when they could not be taken."""
        attempt = choice.attempt
        hold = self._watch.take(attempt, mark(attempt, self._rules.run_id), now)
        if hold is None:
            return False
        self._scheduler.start(choice, now)
        self._publisher.publish(JobStarted(attempt, self._rules.log_of(attempt.job)))
        self._attempts.start(attempt, hold, self._rules.timeout)
        return True
