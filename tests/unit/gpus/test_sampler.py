"""Who is sampled when, with a driver made by hand."""

import threading
import time
from collections.abc import Iterator

import pytest

from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.jobs import Attempt, Job, Place
from simple_gpu_scheduler.base.measurement import CpuUse
from simple_gpu_scheduler.gpus import Gpu
from simple_gpu_scheduler.gpus.sampler import Sampler
from simple_gpu_scheduler.measurements import Meters
from simple_gpu_scheduler.system.marks import Family
from tests.support.until import until


class Driver:
    """Answers at once, or when the test says so."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_answer = threading.Event()
        self.may_answer.set()

    def meters(self, _gpu: Gpu, **_which: bool) -> Meters:
        self.asked += 1
        self.may_answer.wait(60)
        return Meters(utilization=50, energy=100.0 * time.monotonic())


class Patience:
    """In place of those that look at GPUs."""

    moment = 0.05

    def close(self) -> None:
        pass


@pytest.fixture(name="driver")
def a_driver() -> Driver:
    return Driver()


@pytest.fixture(name="broken")
def what_broke() -> Iterator[list[Broken]]:
    found: list[Broken] = []
    yield found
    assert found == []


@pytest.fixture(name="sampler")
def a_sampler(driver: Driver, broken: list[Broken]) -> Iterator[Sampler]:
    sampler = Sampler([Gpu("0", "GPU-0")], driver, Patience(), Family("run"), broken.append)  # type: ignore[arg-type]
    yield sampler
    driver.may_answer.set()
    sampler.close()


def attempt(number: int) -> Attempt:
    return Attempt(Job(number, b"train", Place(number)), 1, ("0",), (0,))


def test_an_attempt_after_a_pause_is_sampled_from_its_own_beginning(sampler: Sampler, driver: Driver) -> None:
    """The thread may rest since an attempt ended while it sampled, and so still take the GPU for watched."""
    sampler.begin(attempt(1), time.monotonic())
    sampler.end(attempt(1), time.monotonic(), CpuUse())
    until(lambda: sampler._beat._rests)
    sampler._watched = {"0"}
    driver.may_answer.clear()
    sampler.begin(attempt(2), time.monotonic())
    assert sampler._sampled["0"].is_free.locked(), "it is being read"


def test_the_end_of_an_attempt_does_not_wait_for_a_driver_that_hangs(sampler: Sampler, driver: Driver) -> None:
    driver.may_answer.clear()
    began = time.monotonic()
    sampler.begin(attempt(1), began - 10)
    until(lambda: driver.asked)
    for number in range(2, 12):
        sampler.begin(attempt(number), began - 10)
        sampler.end(attempt(number), time.monotonic(), CpuUse())
    assert sampler.end(attempt(1), time.monotonic(), CpuUse(1.5))
    assert driver.asked <= 2, "one hangs, and the beat's own"
