"""The plain sink: one line on stderr for each thing that a person should know. Needs no terminal.

How lines are worded is for `words`, and how they get out without ever making the run wait for the writer.
"""

from simple_gpu_scheduler.events import Event

from .words import Words
from .writer import Writer

_STDERR = 2


class PlainLines:
    """Writes lines to stderr."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._writer = Writer(_STDERR)

    def take(self, event: Event, /) -> None:
        """Write the event's line, if it has one."""
        line = self._words.line(event)
        if line:
            self._writer.write(f"{line}\n".encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """Wait until everything is written, or nobody reads any more."""
        self._writer.close()
