"""Where the loop and other threads wait."""

import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from queue import Empty

import pytest

from simple_gpu_scheduler.system.inbox import SystemInbox
from simple_gpu_scheduler.system.threads import start_thread


def test_messages_come_in_the_order_in_which_they_were_put() -> None:
    inbox = SystemInbox()
    for number in range(1000):
        inbox.put(number)
    assert [inbox.get() for _ in range(1000)] == list(range(1000))
    with pytest.raises(Empty):
        inbox.get(block=False)


def test_none_is_lost_of_those_that_threads_put() -> None:
    inbox = SystemInbox()

    def put(who: int) -> None:
        for number in range(2000):
            inbox.put((who, number))

    for who in range(4):
        start_thread(lambda who=who: put(who))
    got = [inbox.get(timeout=120) for _ in range(8000)]
    for who in range(4):
        assert [number for whose, number in got if whose == who] == list(range(2000))


def test_the_handler_of_a_signal_ends_the_wait() -> None:
    inbox = SystemInbox()
    before = signal.signal(signal.SIGUSR1, lambda number, _frame: inbox.put(number))
    try:
        main = threading.main_thread().ident
        assert main
        start_thread(lambda: signal.pthread_kill(main, signal.SIGUSR1))
        assert inbox.get() == signal.SIGUSR1
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_timeout_may_be_longer_than_the_kernel_takes() -> None:
    inbox = SystemInbox()
    inbox.put("one")
    assert inbox.get(timeout=1e30) == "one"
    start_thread(lambda: inbox.put("other"))
    assert inbox.get(timeout=1e30) == "other"


def test_what_is_read_from_a_watched_descriptor_is_a_message_unless_it_is_none() -> None:
    inbox = SystemInbox()
    reading, writing = os.pipe()

    def read(ready: int) -> bytes | None:
        assert ready & select.POLLIN
        data = os.read(reading, 3)
        return data if data != b"no\n" else None

    inbox.watch(reading, read)
    os.write(writing, b"no\none")
    assert inbox.get(timeout=120) == b"one"
    os.write(writing, b"no\n")
    with pytest.raises(Empty):
        inbox.get(timeout=0.01)
    inbox.forget(reading)
    os.write(writing, b"two")
    with pytest.raises(Empty):
        inbox.get(timeout=0)
    os.close(reading)
    os.close(writing)


def test_room_to_write_is_reported_only_where_that_was_asked() -> None:
    inbox = SystemInbox()
    reading, writing = os.pipe()
    inbox.watch(writing, lambda ready: ready)
    with pytest.raises(Empty):
        inbox.get(timeout=0)
    inbox.watch(writing, lambda ready: ready, writes=True)
    assert inbox.get(timeout=120) == select.POLLOUT
    os.close(reading)
    inbox.forget(writing)
    os.close(writing)


@pytest.mark.parametrize("timeout", [None, 0, 1e-6, 1000])
def test_a_message_that_is_there_is_taken(timeout: float | None) -> None:
    inbox = SystemInbox()
    for number in (1, 2):
        inbox.put(number)
    assert [inbox.get(timeout=timeout), inbox.get(timeout=timeout)] == [1, 2]


@pytest.mark.parametrize("timeout", [0, 1e-6, 0.01])
def test_without_one_the_wait_is_over_in_time(timeout: float) -> None:
    inbox = SystemInbox()
    for _ in range(2):
        with pytest.raises(Empty):
            inbox.get(timeout=timeout)
        inbox.put(1)
        assert inbox.get() == 1


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
    inbox = SystemInbox()
    start_thread(lambda: (time.sleep(10), inbox.put(1)))
    for _ in range(10):
        with pytest.raises(Empty):
            inbox.get(timeout=0.01)
