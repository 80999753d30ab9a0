"""`--output tag`: each line that a job prints is shown as it comes, with the name or number of the job.

A thread reads what was added to the logs of running jobs, so no job ever waits for a reader of our output, and jobs
are not affected by whatever happens to the scheduler.
"""

import os
from functools import partial

from simple_gpu_scheduler.base.jobs import Attempt, Job, Key
from simple_gpu_scheduler.base.stdlib import Empty, suppress
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import Callable, NamedTuple
from simple_gpu_scheduler.system.inbox import SystemInbox
from simple_gpu_scheduler.system.threads import need_thread

from .log_file import UNKNOWN, after_header, open_to_read, without_remarks
from .sink import Printed
from .stdout import Stdout

# Small, since other threads wait while lines are tagged.
_AT_ONCE = 32 * 1024
_LONGEST_LINE = 256 * 1024
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.01, 0.2
_COLOURS = (36, 33, 32, 35, 34, 31)


class _Started(NamedTuple):
    attempt: Attempt
    log: str
    start: int


class Tagged:
    """Shows new output within a fifth of a second."""

    def __init__(self, *, coloured: bool) -> None:
        self._stdout = Stdout()
        self._coloured = coloured
        self._told = SystemInbox()
        self._running: dict[Key, _Followed] = {}
        self._ends: dict[Key, int] = {}  # set before a footer is written, so that none is ever shown
        self._is_closing = False
        self._thread = need_thread(self._show_all)

    def started(self, attempt: Attempt, log: str, start: int) -> None:
        """See `Relay`."""
        self._told.put(_Started(attempt, log, start))

    def ended(self, printed: Printed) -> None:
        """See `Relay`."""
        if printed.end is not None:
            self._ends[printed.attempt.key] = printed.end
        self._told.put(printed)

    @property
    def problem(self) -> str:
        """See `Relay`."""
        return self._stdout.problem

    def close(self) -> None:
        """See `Relay`."""
        self._told.put(None)
        self._thread.join()

    def _show_all(self) -> None:
        pause = _SHORTEST_PAUSE
        while not self._is_closing:
            self._listen(pause if self._running else None)
            has_more = False
            for key, each in self._running.items():
                text = each.read_on(partial(self._ends.get, key))
                has_more |= text is not None
                self._stdout.write(text or b"")
            pause = _SHORTEST_PAUSE if has_more else min(2 * pause, _LONGEST_PAUSE)

    def _listen(self, pause: float | None) -> None:
        with suppress(Empty):
            self._heed(self._told.get(timeout=pause))
            while not self._is_closing:
                self._heed(self._told.get(block=False))

    def _heed(self, told: _Started | Printed | None) -> None:
        if told is None:
            self._is_closing = True
        elif isinstance(told, _Started):
            self._running[told.attempt.key] = self._follow(told)
        else:
            followed = self._running.pop(told.attempt.key, None) or self._follow(_Started(*told[:3]))
            self._show_rest(followed, told)
            self._ends.pop(told.attempt.key, None)

    def _show_rest(self, followed: "_Followed", printed: Printed) -> None:
        while (text := followed.read_on(lambda: printed.end)) is not None:
            self._stdout.write(text)
        self._stdout.write(followed.rest())
        followed.close()
        if not self._stdout.is_gone:  # otherwise it exists only there
            printed.cut()

    def _follow(self, started: _Started) -> "_Followed":
        return _Followed(started.log, started.start, tag(started.attempt.job, coloured=self._coloured))


def tag(job: Job, *, coloured: bool) -> bytes:
    """The prefix of each line of a job."""
    text = f"[{safe(job.name) or job.number}]"
    if coloured:
        text = f"\x1b[{_COLOURS[job.number % len(_COLOURS)]}m{text}\x1b[0m"
    return f"{text} ".encode("utf-8", "backslashreplace")


def tagged(lines: bytes, its_tag: bytes) -> bytes:
    """Whole lines, each with the tag; of a line that was overwritten, as by a progress bar, only the last state."""
    if b"\r" in lines:
        lines = lines.replace(b"\r\n", b"\n")
        if b"\r" in lines:
            lines = b"\n".join([line.rstrip(b"\r").rpartition(b"\r")[2] for line in lines.split(b"\n")])
    return its_tag + lines[:-1].replace(b"\n", b"\n" + its_tag) + b"\n"


class _Followed:
    """The part of an attempt's log that has not been shown."""

    def __init__(self, log: str, start: int, its_tag: bytes) -> None:
        self._log = log
        self._header = start
        self._tag = its_tag
        self._fd = -1
        self._at = UNKNOWN
        self._kept = b""  # an unfinished line

    def read_on(self, end_of: Callable[[], int | None]) -> bytes | None:
        """The next whole lines, with their tags; None if there is nothing new. `end_of` is called after reading."""
        if self._at == UNKNOWN and not self._open():
            return None
        if os.fstat(self._fd).st_size < self._at:  # the job has truncated it
            self._at = 0
        data = os.pread(self._fd, _AT_ONCE, self._at)
        end = end_of()
        if end is not None:
            data = data[: max(0, end - self._at)]
        if not data:
            return None
        self._at += len(data)
        lines, newline, rest = data.rpartition(b"\n")
        if not newline:
            self._kept += rest
            return self.rest() if len(self._kept) > _LONGEST_LINE else b""
        whole, self._kept = self._kept + lines + newline, rest
        whole = without_remarks(whole)
        return tagged(whole, self._tag) if whole else b""

    def rest(self) -> bytes:
        """The unfinished line."""
        kept, self._kept = self._kept, b""
        return tagged(kept + b"\n", self._tag) if kept else b""

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def _open(self) -> bool:
        if self._fd < 0:
            with suppress(OSError):  # it does not exist yet
                self._fd = open_to_read(self._log)
        if self._fd >= 0:
            self._at = after_header(self._fd, self._header)
        return self._at != UNKNOWN
