"""The words of the standard library that are ours behave as those do."""

import bisect
import collections
import heapq
import queue
import shlex as standard_shlex
import threading
import time
from contextlib import suppress as theirs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base import stdlib
from simple_gpu_scheduler.base.stdlib import Event, re, shlex, signal, suppress


@pytest.mark.parametrize("suppress_", [suppress, theirs])
def test_suppress_drops_these_errors_and_no_others(suppress_):
    with suppress_(KeyError, OSError):
        raise FileNotFoundError
    with suppress_(OSError):
        pass
    with pytest.raises(ValueError, match="other"), suppress_(KeyError):
        raise ValueError("other")


def test_a_module_is_that_of_the_standard_library():
    assert re.fullmatch(r"\d", "1")
    assert signal.Signals(9).name == "SIGKILL"
    with pytest.raises(AttributeError):
        _ = re.nothing


def test_what_is_written_in_c_is_that_of_the_standard_library():
    for module in (bisect, collections, heapq, queue):
        for name in ("bisect_left", "deque", "heapify", "heappop", "heappush", "insort_right", "Empty", "SimpleQueue"):
            assert not hasattr(module, name) or getattr(stdlib, name) is getattr(module, name)


def test_a_module_is_loaded_once_something_of_it_is_used():
    later = stdlib._Later("this_is_not_there")
    with pytest.raises(ModuleNotFoundError):
        _ = later.anything
    assert stdlib._Later("json", {"known": 1}).known == 1
    with pytest.raises(ImportError):
        from simple_gpu_scheduler.base.stdlib import nothing  # noqa: F401, PLC0415


def test_what_signal_has_in_c_are_plain_numbers():
    assert type(signal.SIGTERM) is int
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL


@pytest.fixture(params=[Event, threading.Event])
def event(request):
    return request.param()


def test_an_event_is_waited_for_by_several_threads(event):
    came = []
    threads = [threading.Thread(target=lambda: came.append(event.wait())) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert not came
    event.set()
    for thread in threads:
        thread.join()
    assert came == [True] * 3
    assert event.is_set()
    assert event.wait()


def test_an_event_that_does_not_come_is_waited_for_as_long_as_asked(event):
    assert not event.wait(0)
    assert not event.wait(-1)
    begun = time.monotonic()
    assert not event.wait(0.05)
    assert time.monotonic() - begun >= 0.05
    event.set()
    event.set()
    assert event.wait(0)


def test_an_event_that_was_cleared_is_waited_for_again(event):
    event.set()
    event.clear()
    assert not event.is_set()
    assert not event.wait(0)
    late = threading.Timer(0.05, event.set)
    late.start()
    assert event.wait(30)
    late.join()


def test_no_wake_up_is_lost_between_two_threads():
    there, back = Event(), Event()

    def answer():
        for _ in range(2000):
            there.wait()
            there.clear()
            back.set()

    thread = threading.Thread(target=answer)
    thread.start()
    for _ in range(2000):
        there.set()
        assert back.wait(30)
        back.clear()
    thread.join()


@given(st.lists(st.text()))
def test_shlex_quotes_as_the_standard_library_does(words):
    assert shlex.join(words) == standard_shlex.join(words)


def test_all_of_ascii_is_quoted_as_the_standard_library_does():
    for word in ["", *map(chr, range(128))]:
        assert shlex.quote(word) == standard_shlex.quote(word)
        assert shlex.quote(f"a{word}b") == standard_shlex.quote(f"a{word}b")
