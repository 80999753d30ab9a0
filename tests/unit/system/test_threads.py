"""Messages between threads."""

import signal
import time
from collections.abc import Iterator
from queue import Empty

import pytest

from simple_gpu_scheduler.system.threads import MessageQueue, start_thread


@pytest.mark.parametrize("timeout", [None, 0, 1e-6, 1000])
def test_a_message_that_is_there_is_taken(timeout: float | None) -> None:
    queue: MessageQueue[int] = MessageQueue()
    for number in (1, 2):
        queue.put(number)
    assert [queue.get(timeout=timeout), queue.get(timeout=timeout)] == [1, 2]


@pytest.mark.parametrize("timeout", [0, 1e-6, 0.01])
def test_without_one_the_wait_is_over_in_time(timeout: float) -> None:
    queue: MessageQueue[int] = MessageQueue()
    for _ in range(2):
        with pytest.raises(Empty):
            queue.get(timeout=timeout)
        queue.put(1)
        assert queue.get() == 1


@pytest.fixture
def signals() -> Iterator[None]:
    """Signals all the time, whose handler runs for longer than a wait."""
    before = signal.signal(signal.SIGALRM, lambda *_: time.sleep(0.02))
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.025)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("signals")
def test_a_signal_that_is_handled_as_the_time_passes_does_not_make_the_wait_endless() -> None:
    queue: MessageQueue[int] = MessageQueue()
    start_thread(lambda: (time.sleep(10), queue.put(1)))
    for _ in range(10):
        with pytest.raises(Empty):
            queue.get(timeout=0.01)


def test_every_message_of_several_threads_arrives() -> None:
    queue: MessageQueue[int] = MessageQueue()
    for _ in range(4):
        start_thread(lambda: [queue.put(number) for number in range(1000)])
    assert sum(queue.get(timeout=10) for _ in range(4000)) == 4 * sum(range(1000))
