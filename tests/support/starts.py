"""What the tests of the scheduler share: starting all that can start, as the loop does without other users."""

from simple_gpu_scheduler.base.jobs import Attempt
from simple_gpu_scheduler.scheduling.scheduler import Scheduler
from simple_gpu_scheduler.scheduling.slots import Rooms


def start_all(subject: Scheduler, now: float, rooms: Rooms) -> list[Attempt]:
    """What starts now, in its order."""
    started = []
    while choice := subject.next(now, rooms):
        subject.start(choice, now)
        started.append(choice.attempt)
    return started
