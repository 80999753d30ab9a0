"""`--output group`: the output of an attempt is shown at once when it has ended, so it is never mixed with others."""

import os

from simple_gpu_scheduler.base.jobs import Attempt
from simple_gpu_scheduler.base.stdlib import SimpleQueue, suppress
from simple_gpu_scheduler.system.threads import need_thread

from .log_file import UNKNOWN, after_header, open_to_read
from .sink import Printed
from .stdout import Stdout


class Grouped:
    """A thread copies log after log."""

    def __init__(self) -> None:
        self._stdout = Stdout()
        self._ended: SimpleQueue[Printed | None] = SimpleQueue()
        self._thread = need_thread(self._show_all)

    def started(self, attempt: Attempt, log: str, start: int) -> None:
        """Nothing to show yet."""

    def ended(self, printed: Printed) -> None:
        """See `Relay`."""
        self._ended.put(printed)

    @property
    def problem(self) -> str:
        """See `Relay`."""
        return self._stdout.problem

    def close(self) -> None:
        """See `Relay`."""
        self._ended.put(None)
        self._thread.join()

    def _show_all(self) -> None:
        while (printed := self._ended.get()) is not None:
            with suppress(OSError):  # it was deleted
                self._show(printed)

    def _show(self, printed: Printed) -> None:
        fd = open_to_read(printed.log)
        try:
            end = os.fstat(fd).st_size if printed.end is None else printed.end
            start = after_header(fd, printed.start)
            if start != UNKNOWN:
                for since, until in printed.gaps:
                    self._stdout.copy(fd, start, since)
                    start = max(start, until)
                self._stdout.copy(fd, start, end)
        finally:
            os.close(fd)
        if not self._stdout.is_gone:  # otherwise it is nowhere else
            printed.cut()
