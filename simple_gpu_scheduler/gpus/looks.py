"""Asks the driver without waiting for it: a call to a driver in trouble may take minutes, and cannot be called back.

Each GPU has a thread of its own, so at most one call for each GPU hangs, and the others are looked at meanwhile. What
an answer means, and how long one may take, is not known here.
"""

import threading
import time

from simple_gpu_scheduler.base.errors import Broken
from simple_gpu_scheduler.base.stdlib import SimpleQueue, suppress
from simple_gpu_scheduler.base.values import Callable, NamedTuple, Protocol, TypeVar
from simple_gpu_scheduler.system.threads import Meanwhile, start_thread

from . import Answer, Gpu, LookCame

T = TypeVar("T")
PutLook = Callable[[LookCame | Broken], object]

# Seconds that whoever asks waits for an answer, which usually takes 0.02 to 5 ms.
_MOMENT = 0.05
# The same while another GPU does not answer, so that eight such GPUs do not take eight moments.
_SHORT_MOMENT = 0.005


class Slow(Protocol):
    """A probe whose answers may take long."""

    sees_others: bool

    def answer(self, gpu: Gpu, *, shared: bool) -> Answer:
        """See `Probe.look`."""

    def remarks(self) -> list[str]:
        """See `Probe`."""


class Looks:
    """See `Probe`. Answers that take longer than a moment are put on the inbox."""

    def __init__(self, probe: Slow, put: PutLook) -> None:
        self.sees_others = probe.sees_others
        self.remarks = probe.remarks
        self._probe = probe
        self._put = put
        self._askers: dict[str, _Asker] = {}

    @property
    def moment(self) -> float:
        """How long to wait for an answer."""
        return _SHORT_MOMENT if any(each.is_busy for each in self._askers.values()) else _MOMENT

    def look(self, gpu: Gpu, *, shared: bool) -> Answer | None:
        """See `Probe`. If no thread can be started, it takes as long as it takes."""
        moment, asker = self.moment, self._asker(gpu)
        return asker.ask(_Question(gpu, shared), moment) if asker else self._probe.answer(gpu, shared=shared)

    def _asker(self, gpu: Gpu) -> "_Asker | None":
        """The thread of this GPU; None if no more threads can be started."""
        if gpu.id not in self._askers:
            with suppress(RuntimeError):
                self._askers[gpu.id] = _Asker(self._probe, self._put)
        return self._askers.get(gpu.id)

    def close(self) -> None:
        """See `Probe`. The threads end, except those whose call hangs: a fork of a program with threads is risky."""
        while self._askers:
            with suppress(KeyError):  # the handler of a signal has just done it
                self._askers.popitem()[1].close()


class _Question(NamedTuple):
    gpu: Gpu
    shared: bool


class _Asker:
    """A thread that asks one question after another."""

    def __init__(self, probe: Slow, put: PutLook) -> None:
        self.is_busy = False
        self._probe = probe
        self._put = put
        self._questions: SimpleQueue[_Question | None] = SimpleQueue()
        self._came = threading.Lock()  # free once an answer is there that is waited for
        self._came.acquire()
        self._guard = threading.Lock()  # over what follows
        self._answer: Answer | Broken | None = None
        self._is_late = False
        self._thread = start_thread(self._run)

    def ask(self, question: _Question, patience: float) -> Answer | None:
        """The answer; None if it takes longer, and is put on the inbox."""
        self.is_busy, self._is_late, self._answer = True, False, None
        self._questions.put(question)
        if not self._came.acquire(timeout=patience):
            if self._turns_late():
                return None
            self._came.acquire()
        self.is_busy = False
        if isinstance(self._answer, Broken):
            raise self._answer.error
        return self._answer

    def _turns_late(self) -> bool:
        """Nobody waits any more; False if the answer has come in this very moment."""
        with self._guard:
            self._is_late = self._answer is None
        return self._is_late

    def _run(self) -> None:
        while question := self._questions.get():
            answer = self._answer_to(question)
            with self._guard:
                self._answer = answer
            if not self._is_late:
                self._came.release()
                continue
            self.is_busy = False
            self._put(answer if isinstance(answer, Broken) else LookCame(question.gpu.id, answer))

    def _answer_to(self, question: _Question) -> Answer | Broken:
        try:
            return self._probe.answer(question.gpu, shared=question.shared)
        except Exception as error:  # noqa: BLE001 - a bug, which is reported by whoever gets it
            return Broken(error)

    def close(self) -> None:
        """End the thread, once its last question is answered."""
        self._questions.put(None)
        if not self.is_busy:
            self._thread.join()


class Inquiry(Meanwhile[T]):
    """A question to the driver, in a thread of its own."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self.since = time.monotonic()
        super().__init__(ask)

    @property
    def age(self) -> float:
        """Seconds since it was asked."""
        return time.monotonic() - self.since

    def is_answered(self, within: float) -> bool:
        """Whether it is within so many seconds from now; without a thread, `get` will take its time."""
        if self._thread:
            self._thread.join(max(0.0, within))
        return self._thread is None or not self._thread.is_alive()
