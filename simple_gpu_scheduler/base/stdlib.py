"""Words of the standard library, without the modules that take long to load: a start would spend 10 ms on them.

`collections`, `contextlib`, `functools`, `enum`, `queue`, `re`, `signal` and `threading` load one another. Most of what
a run needs of them is written in C and has a small module of its own. The rest is loaded when it is first used.
"""

from simple_gpu_scheduler.base.values import TYPE_CHECKING

if TYPE_CHECKING:
    import json as json
    import math as math
    import re as re
    import shlex as shlex
    import shutil as shutil
    import signal as signal
    from bisect import bisect_left as bisect_left
    from bisect import insort_right as insort_right
    from collections import deque as deque
    from contextlib import suppress as suppress
    from heapq import heapify as heapify
    from heapq import heappop as heappop
    from heapq import heappush as heappush
    from queue import Empty as Empty
    from queue import SimpleQueue as SimpleQueue
    from threading import Event as Event
    from threading import Lock as Lock
else:
    import _signal
    from _collections import deque as deque
    from _thread import allocate_lock as Lock  # noqa: N812 - the name it has in threading

    _IN_C = dict.fromkeys(("heapify", "heappop", "heappush"), "_heapq")
    _IN_C |= dict.fromkeys(("Empty", "SimpleQueue"), "_queue")
    _IN_C |= dict.fromkeys(("bisect_left", "insort_right"), "_bisect")

    def __getattr__(name):
        """Load what is a file of its own, which takes 0.4 ms, when it is asked for."""
        if name not in _IN_C:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value = getattr(__import__(_IN_C[name]), name)
        return value

    class _Later:
        """A module that is loaded when something of it is used that `known` does not have."""

        def __init__(self, name, known=()):
            self.__dict__.update(known, __name__=name)

        def __getattr__(self, name):
            value = getattr(__import__(self.__name__), name)
            setattr(self, name, value)
            return value

    _SAFE = "%+,-./0123456789:=@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"

    def _quote(word):
        """See `shlex.quote`."""
        return word if word and not word.strip(_SAFE) else "'" + word.replace("'", "'\"'\"'") + "'"

    def _join(words):
        """See `shlex.join`."""
        return " ".join(map(_quote, words))

    json = _Later("json")
    math = _Later("math")
    re = _Later("re")
    shlex = _Later("shlex", {"quote": _quote, "join": _join})
    shutil = _Later("shutil")
    # Its functions take and return plain numbers, where those of `signal` make members of an enumeration of them.
    signal = _Later("signal", vars(_signal))

    class suppress:  # noqa: N801 - the name it has in contextlib
        """See `contextlib.suppress`."""

        def __init__(self, *errors):
            self._errors = errors

        def __enter__(self):
            """Nothing is done."""

        def __exit__(self, kind, _error, _traceback):
            return kind is not None and issubclass(kind, self._errors)

    class Event:
        """See `threading.Event`."""

        def __init__(self):
            self._guard = Lock()  # over the two below
            self._is_set = False
            self._bells = []  # a lock for each thread that waits, which it cannot take before it is released here

        def is_set(self):
            return self._is_set

        def set(self):
            with self._guard:
                self._is_set = True
                bells, self._bells = self._bells, []
            for bell in bells:
                bell.release()

        def clear(self):
            with self._guard:
                self._is_set = False

        def wait(self, timeout=None):
            with self._guard:
                if self._is_set:
                    return True
                bell = Lock()
                bell.acquire()
                self._bells.append(bell)
            if bell.acquire(timeout=-1 if timeout is None else max(0, timeout)):
                return True
            with self._guard, suppress(ValueError):  # it was rung just now
                self._bells.remove(bell)
            return self._is_set
