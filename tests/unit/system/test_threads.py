"""Messages between threads."""

from queue import Empty

import pytest

from simple_gpu_scheduler.system.threads import MessageQueue


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
