"""Copies parts of job logs to stdout, and copes with a reader that has gone. It knows nothing of jobs."""

import os
import select

from simple_gpu_scheduler.base.values import Callable
from simple_gpu_scheduler.system.writer import write_all

_STDOUT = 1
_AT_ONCE = 4 * 1024 * 1024


class Stdout:
    """Written by one thread. Once writing fails, the rest is dropped, and `problem` says why."""

    def __init__(self) -> None:
        self.problem = ""  # empty if the reader has gone: that is not a failure, as with any filter
        self.is_gone = False
        self._can_send = True  # not possible for a file opened for appending, or for some terminals

    def write(self, data: bytes) -> None:
        """Write everything, however long that takes."""
        self._or_give_up(lambda: write_all(_STDOUT, data))

    def copy(self, fd: int, start: int, end: int) -> None:
        """Write this part of a file."""
        self._or_give_up(lambda: self._copy(fd, start, end))

    def _or_give_up(self, write: Callable[[], None]) -> None:
        if self.is_gone:
            return
        try:
            write()
        except BrokenPipeError:
            self.is_gone = True
        except OSError as error:
            self.is_gone = True
            self.problem = f"cannot show the jobs' output any more ({error.strerror}); it is kept in their logs"

    def _copy(self, fd: int, start: int, end: int) -> None:
        while start < end and self._can_send:
            try:
                sent = os.sendfile(_STDOUT, fd, start, min(end - start, _AT_ONCE))
            except BlockingIOError:  # the other end was made non-blocking
                select.select([], [_STDOUT], [])
                continue
            except BrokenPipeError:
                raise
            except OSError:
                self._can_send = False
                break
            if not sent:
                return
            start += sent
        while start < end and (data := os.pread(fd, min(end - start, _AT_ONCE), start)):
            write_all(_STDOUT, data)
            start += len(data)


def may_colour() -> bool:
    """Whether it is a terminal with colours."""
    return os.isatty(_STDOUT) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
