"""This machine as an engine: what it hands to the pool and to the processes, which are made by hand here."""

from queue import SimpleQueue
from typing import Any

import pytest

from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Place
from simple_gpu_scheduler.engines.children import ChildExited
from simple_gpu_scheduler.engines.local import LocalEngine
from simple_gpu_scheduler.engines.protocol import Ended, Exited, Setting
from simple_gpu_scheduler.gpus.pool import Demand
from simple_gpu_scheduler.keeper import survivors
from simple_gpu_scheduler.keeper.survivors import Survivor, SurvivorExited

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


class FakePool:
    """Two GPUs, both of which are leased."""

    def waits(self, _demand: Demand) -> list[Wait]:
        return [Wait(gpu, "leased by root (pid 7)", "leased by root") for gpu in "01"]


def test_a_gpu_that_a_survivor_has_is_not_said_to_be_somebody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survivors, "watch", lambda *_: None)
    monkeypatch.setattr(survivors, "sweep", lambda *_: False)
    nothing: Any = None
    pool: Any = FakePool()
    setting = Setting("run", nothing, nothing, SimpleQueue(), survivors=(Survivor(ATTEMPT, 7, 0.0, 0),))
    engine = LocalEngine(setting, pool, nothing, nothing)
    assert [wait.gpu for wait in engine.waits(Demand(1))] == ["1"]
    engine.received(SurvivorExited(ATTEMPT.key, 0), 0)
    assert [wait.gpu for wait in engine.waits(Demand(1))] == ["0", "1"]
