"""What is done once a second while there is work, by a thread that is replaced if it hangs."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.gpus import SILENCE
from simple_gpu_scheduler.gpus import beat as beats
from simple_gpu_scheduler.gpus.beat import Beat
from tests.support.until import until


class Work:
    """Done as often as the beat says; it may hang, or fail."""

    def __init__(self) -> None:
        self.times = 0
        self.is_there = True
        self.hangs: threading.Event | None = None
        self.error: Exception | None = None
        self.came_late: list[bool] = []
        self.broken: list[Broken] = []

    def do(self, is_wanted: Callable[[], bool]) -> None:
        self.times += 1
        if self.error:
            raise self.error
        hangs, self.hangs = self.hangs, None
        if hangs:
            hangs.wait(60)
            self.came_late.append(is_wanted())


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beats, "PAUSE", 0.01)


@contextmanager
def beating(work: Work) -> Iterator[Beat]:
    beat = Beat(work.do, lambda: work.is_there, work.broken.append)
    beat.wake()
    yield beat
    beat.close()


def test_it_goes_on_while_there_is_work_and_rests_until_it_is_woken() -> None:
    work = Work()
    with beating(work) as beat:
        until(lambda: work.times > 3)
        work.is_there = False
        until(lambda: beat._rests)
        done = work.times
        time.sleep(0.1)
        assert work.times == done
        work.is_there = True
        beat.wake()
        until(lambda: work.times > done + 3)


def test_one_that_hangs_is_replaced_and_knows_that_it_is_not_wanted_when_it_comes_back() -> None:
    work = Work()
    work.hangs = hangs = threading.Event()
    with beating(work) as beat:
        until(lambda: work.times == 1)
        beat.check(time.monotonic())
        beat.check(time.monotonic() + SILENCE / 2)
        assert work.times == 1, "it may still answer"
        beat.check(time.monotonic() + SILENCE + 1)
        until(lambda: work.times > 4)
        hangs.set()
        until(lambda: work.came_late)
        assert work.came_late == [False]
        done = work.times
        until(lambda: work.times > done + 2)
    assert not work.broken


def test_a_bug_is_passed_on() -> None:
    work = Work()
    work.error = RuntimeError("a bug")
    with beating(work):
        until(lambda: work.broken)
    assert str(work.broken[0].error) == "a bug"


def test_without_a_thread_nothing_is_done_and_it_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_run: Callable[[], object]) -> None:
        raise RuntimeError("can't start new thread")

    work = Work()
    start = beats.start_thread
    monkeypatch.setattr(beats, "start_thread", refuse)
    beat = Beat(work.do, lambda: True, work.broken.append)
    beat.wake()
    assert work.times == 0
    monkeypatch.setattr(beats, "start_thread", start)
    beat.wake()
    until(lambda: work.times > 1)
    beat.close()


def test_it_ends_when_it_is_closed() -> None:
    before = threading.active_count()
    work = Work()
    with beating(work):
        until(lambda: work.times)
    until(lambda: threading.active_count() == before)
