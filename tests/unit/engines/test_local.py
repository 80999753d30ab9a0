"""This machine as an engine: what it hands to the pool and to the processes, which are made by hand here."""

from queue import SimpleQueue
from typing import Any

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Place
from simple_gpu_scheduler.engines.children import ChildExited
from simple_gpu_scheduler.engines.local import LocalEngine
from simple_gpu_scheduler.engines.protocol import Ended, Exited, Setting

ATTEMPT = Attempt(Job(1, b"true", Place(1)), 1, ("0",), (1,))


class FakeChildren:
    """One attempt, whose main process has ended, and which may have left something."""

    def __init__(self) -> None:
        self.stops: list[bool] = []
        self.is_settled = False

    def has_ended(self, _attempt: Attempt) -> bool:
        return True

    def stop(self, _attempt: Attempt, *, force: bool) -> bool:
        self.stops.append(force)
        return True

    def settle(self, _exited: ChildExited) -> bool:
        return self.is_settled


def test_a_kill_that_comes_late_does_not_hurry_what_ends_the_leftovers() -> None:
    children = FakeChildren()
    nothing: Any = None
    engine = LocalEngine(Setting("run", nothing, nothing, SimpleQueue()), nothing, children, nothing)
    assert engine.stop([ATTEMPT], force=True) == ["ended"]
    assert children.stops == []
    exited = ChildExited(ATTEMPT, SUCCESS)
    assert engine.received(exited, 0) == [Exited(ATTEMPT)]
    assert engine.stop([ATTEMPT], force=True) == ["ended"]
    assert children.stops == [True], "now the leftovers are meant"
    children.is_settled = True
    assert engine.received(exited, 0) == [Ended(ATTEMPT, SUCCESS)]
