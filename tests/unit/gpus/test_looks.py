"""Looks that take long: whoever asks does not wait for them, and GPUs do not wait for each other."""

import threading
from queue import Empty, SimpleQueue

import pytest

from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.gpus import Answer, Gpu, Look, LookCame, looks
from simple_gpu_scheduler.gpus.looks import Looks

SOON = 30  # far more than it takes


class Driver:
    """Answers at once, or about some GPUs only when it is let go on."""

    sees_others = True

    def __init__(self) -> None:
        self.hangs: dict[str, threading.Event] = {}
        self.asked: list[str] = []
        self.fails = False

    def answer(self, gpu: Gpu, *, shared: bool) -> Answer:
        self.asked.append(f"{gpu.id}{'+' if shared else ''}")
        if gpu.id in self.hangs:
            assert self.hangs[gpu.id].wait(SOON)
        if self.fails:
            raise ZeroDivisionError
        return Answer(gpu, Look(free=len(self.asked)))

    def remarks(self) -> list[str]:
        return ["a remark"]

    def hang(self, *gpus: str) -> None:
        self.hangs = {gpu: threading.Event() for gpu in gpus}

    def go_on(self) -> None:
        for each in self.hangs.values():
            each.set()
        self.hangs = {}


class Subject:
    def __init__(self) -> None:
        self.driver = Driver()
        self.inbox: SimpleQueue[LookCame | Broken] = SimpleQueue()
        self.looks = Looks(self.driver, self.inbox.put)

    def look(self, gpu: str, *, shared: bool = False) -> Answer | None:
        return self.looks.look(Gpu(gpu), shared=shared)

    def is_told(self) -> LookCame | Broken:
        return self.inbox.get(timeout=SOON)

    def is_told_nothing(self) -> bool:
        try:
            self.inbox.get(block=False)
        except Empty:
            return True
        return False


@pytest.fixture
def subject() -> Subject:
    return Subject()


def answer_of(subject: Subject, gpu: str, *, shared: bool = False) -> Look:
    """On a busy machine, it may take longer than a moment."""
    answer = subject.look(gpu, shared=shared)
    if answer is None:
        came = subject.is_told()
        assert isinstance(came, LookCame)
        answer = came.answer
    return answer.look


def test_an_answer_that_comes_at_once_is_given_at_once_and_only_once(subject: Subject) -> None:
    for count in range(1, 101):
        assert answer_of(subject, "0").free == count
    assert subject.is_told_nothing()
    assert answer_of(subject, "0", shared=True).free == 101
    assert subject.driver.asked == ["0"] * 100 + ["0+"]
    assert subject.looks.remarks() == ["a remark"]


def test_a_gpu_that_hangs_holds_up_neither_the_caller_nor_other_gpus(subject: Subject) -> None:
    subject.driver.hang("0", "1")
    assert subject.look("0") is None
    assert subject.look("1") is None
    assert subject.driver.asked == ["0", "1"]
    assert answer_of(subject, "2").free == 3
    assert subject.is_told_nothing()
    subject.driver.go_on()
    came = sorted(subject.is_told() for _ in "01")
    assert came == [LookCame(gpu, Answer(Gpu(gpu), Look(free=3))) for gpu in "01"]
    assert answer_of(subject, "0").free == 4


def test_threads_end_when_it_is_closed_but_one_whose_call_hangs_is_not_waited_for(subject: Subject) -> None:
    before = threading.active_count()
    answer_of(subject, "0")
    subject.driver.hang("1")
    assert subject.look("1") is None
    assert threading.active_count() == before + 2
    subject.looks.close()
    assert threading.active_count() == before + 1
    hanging = threading.enumerate()[-1]
    assert hanging.daemon, "or the program could not end"
    subject.driver.go_on()
    hanging.join(SOON)
    assert threading.active_count() == before


def test_a_bug_in_a_look_is_reported_whenever_it_shows(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    subject.driver.fails = True
    subject.driver.hang("0")
    assert subject.look("0") is None
    subject.driver.go_on()
    assert isinstance(subject.is_told(), Broken)
    monkeypatch.setattr(looks, "_MOMENT", SOON)
    with pytest.raises(ZeroDivisionError):
        subject.look("0")


def test_without_threads_it_asks_itself(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_more)
    assert subject.look("0") == Answer(Gpu("0"), Look(free=1))
