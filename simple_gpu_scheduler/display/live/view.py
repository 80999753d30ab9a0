"""The live view: a thread draws the state of the ledger four times a second, and prints messages above it.

The thread owns the terminal, and nothing important waits for it: the loop only hands it events. `frame` lays out the
picture, `screen` gets it to the terminal.
"""

import os
import threading
import time

from simple_gpu_scheduler.base.stdlib import deque, signal, suppress
from simple_gpu_scheduler.base.text import show_command
from simple_gpu_scheduler.base.values import Callable, Sequence
from simple_gpu_scheduler.display.lines import EventWords
from simple_gpu_scheduler.events import Event, JobEnded
from simple_gpu_scheduler.events.ledger import Ledger, Started
from simple_gpu_scheduler.gpus import GpuVitals
from simple_gpu_scheduler.output.log_file import last_lines, last_shown, read_tail
from simple_gpu_scheduler.system.threads import need_thread, start_thread

from .frame import Failed, Picture, RunningJob, frame
from .screen import Screen

_STDERR = 2
_PAUSE = 0.25
_DONE_WITHIN = 5.0
# How many messages are kept while the terminal takes none, as after Ctrl-S.
_MOST_MESSAGES = 20_000
_MOST_FAILURES = 2
_LAST_OUTPUT, _FAILURE_OUTPUT, _FAILURE_LINES = 2048, 8192, 3
# Blocked, so that the thread can wait for them: the end of a Ctrl-Z, and what tells it to wake up.
_WAKING = (signal.SIGCONT, signal.SIGWINCH)


class Live:
    """To be made in the main thread."""

    def __init__(self, words: EventWords, vitals: Callable[[], Sequence[GpuVitals]]) -> None:
        self._words = words
        self._ledger = Ledger()  # its own, since another thread reads it
        self._messages: deque[str] = deque(maxlen=_MOST_MESSAGES)
        self._dropped = 0
        self._failures: deque[Failed] = deque(maxlen=_MOST_FAILURES)
        self._lock = threading.Lock()  # guards all above but the first
        self._outputs: dict[str, tuple[int, str]] = {}  # of each log its size when it was read, and its last line
        self._looking = Looking(vitals)
        self._screen = Screen(_STDERR, coloured=not os.environ.get("NO_COLOR"))
        self._is_closed = self._is_broken = False
        signal.pthread_sigmask(signal.SIG_BLOCK, _WAKING)
        self._thread = need_thread(self._draw_on)

    def take(self, event: Event, /) -> None:
        """One event."""
        failure = self._failure(event) if isinstance(event, JobEnded) else None
        with self._lock:
            self._ledger.take(event, time.monotonic())
            if failure:
                self._failures.append(failure)
        line = self._words.line(event)
        if line:
            self._say(line)

    def _failure(self, event: JobEnded) -> Failed | None:
        """Read its last output now: the next attempt will print to the same log."""
        run = self._ledger.running.get(event.attempt.key)
        if run is None or event.outcome.kind == "succeeded" or event.is_interrupted or event.is_cancelled:
            return None
        printed = last_lines(read_tail(run.log, _FAILURE_OUTPUT), _FAILURE_LINES) if run.log else ()
        return Failed(self._words.line(event), printed, show_command(event.attempt.job.command))

    def close(self) -> None:
        """Leave only the messages on the screen."""
        self._is_closed = True
        if self._thread.is_alive():
            signal.pthread_kill(self._thread.ident or 0, signal.SIGWINCH)
        self._thread.join(_DONE_WITHIN)  # it may be reading a file system that hangs
        self._screen.draw(self._take_messages(), ())
        self._screen.close()

    def _draw_on(self) -> None:
        while not self._is_closed:
            came = signal.sigtimedwait(_WAKING, _PAUSE)
            if came and came.si_signo == signal.SIGCONT:
                self._screen.forget()
            if self._is_closed:
                return
            try:
                self._draw()
            except Exception as error:  # noqa: BLE001 - if the view fails, messages must still be shown
                self._is_broken = True
                self._say(f"the live view failed because of a bug; showing plain lines from here on: {error!r}")

    def _say(self, line: str) -> None:
        with self._lock:
            self._dropped += len(self._messages) == _MOST_MESSAGES
            self._messages.append(line)

    def _draw(self) -> None:
        if self._screen.is_behind:
            return
        if self._is_broken or not self._screen.is_ours:  # others use the terminal meanwhile
            self._screen.say(self._take_messages())
            return
        width, height = self._screen.size()
        picture = self._picture()
        if signal.SIGCONT in signal.sigpending():  # stopped and continued since: the shell has printed here
            return
        messages = self._take_messages()
        self._screen.draw(messages, frame(picture, width - 1, height - 1) if not self._ledger.is_over else ())

    def _take_messages(self) -> list[str]:
        with self._lock:
            messages = list(self._messages)
            if self._dropped:
                messages.insert(0, f"({self._dropped} lines dropped while the terminal accepted none)")
            self._dropped = 0
            self._messages.clear()
        return messages

    def _picture(self) -> Picture:
        now = time.monotonic()
        with self._lock:
            ledger = self._ledger
            running, failures = list(ledger.running.values()), list(self._failures)
            eta = ledger.eta([(each.attempt.job, now - each.since) for each in running])
            counts, all_read, waits = ledger.counts(), ledger.all_read, ledger.waits
            state = "stopping; no new jobs" if ledger.is_stopping else "paused" if ledger.is_paused else ""
        self._forget_outputs(running)
        shown = [RunningJob(each.attempt, now - each.since, self._printed(each.log)) for each in running]
        return Picture(shown, self._looking.newest, counts, all_read, eta, waits, failures, state)

    def _printed(self, log: str) -> str:
        """The last line of a log, which is read only if it has grown."""
        if not log:
            return ""
        try:
            size = os.stat(log).st_size
        except OSError:
            return ""
        if log not in self._outputs or self._outputs[log][0] != size:
            self._outputs[log] = size, last_shown(read_tail(log, _LAST_OUTPUT))
        return self._outputs[log][1]

    def _forget_outputs(self, running: Sequence[Started]) -> None:
        logs = {each.log for each in running}
        self._outputs = {log: known for log, known in self._outputs.items() if log in logs}


_BETWEEN_LOOKS = 1.0
# The largest share of time to spend on looking.
_SHARE = 0.005


class Looking:
    """Looks at the GPUs in a thread; `newest` is the last result."""

    def __init__(self, vitals: Callable[[], Sequence[GpuVitals]]) -> None:
        self._vitals = vitals
        self.newest: Sequence[GpuVitals] = ()
        with suppress(RuntimeError):  # there can be no more threads: there is more to be seen than the GPUs
            start_thread(self._look_on)

    def _look_on(self) -> None:
        while True:
            began = time.thread_time()
            self.newest = self._vitals()
            time.sleep(max(_BETWEEN_LOOKS, (time.thread_time() - began) / _SHARE))
