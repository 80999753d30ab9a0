"""The journal as a sink: each event is recorded before anything follows from it."""

import time
from typing import Protocol

from simple_gpu_scheduler.events import Event

from .records import encode


class Appends(Protocol):
    """Takes the lines."""

    def append(self, lines: bytes, /) -> None:
        """Write them."""

    def close(self) -> None:
        """Nothing follows."""


class Journal:
    """Writes events as lines."""

    def __init__(self, appender: Appends) -> None:
        self._appender = appender

    def take(self, event: Event, /) -> None:
        """One event."""
        lines = encode(event, time.time())
        if lines:
            self._appender.append(lines.encode())

    def close(self) -> None:
        """Nothing follows."""
        self._appender.close()
