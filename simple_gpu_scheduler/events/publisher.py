"""Hands events to the sinks, and keeps going when one fails. It does not know what events mean."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from . import Event, Noticed
from .ledger import Ledger


class Sink(Protocol):
    """Consumes events. It may raise; it must not block."""

    def take(self, event: Event, /) -> None:
        """Take one event; they come in the order in which they happened."""

    def close(self) -> None:
        """No event follows."""


class SinkTroubleError(Exception):
    """A sink failed at something, but keeps trying; it shows in the exit code if it `is_failure`."""

    def __init__(self, sentence: str, *, is_failure: bool = True) -> None:
        super().__init__(sentence)
        self.is_failure = is_failure


class Publisher:
    """Hands each event to every sink. A sink that raises is dropped, and the others are notified.

    The ledger gets each event before the sinks do, and belongs to the publishing thread.
    """

    def __init__(self, sinks: Iterable[Sink]) -> None:
        self._sinks = list(sinks)
        self.ledger = Ledger()

    def publish(self, event: Event) -> None:
        """Hand it to every sink."""
        self.ledger.take(event)
        for sink in self._sinks:
            try:
                sink.take(event)
            except SinkTroubleError as trouble:
                self._say(trouble)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with a sink, jobs continue
                self._lose(sink, error)

    def close(self) -> None:
        """Close every sink; a closed sink gets no more events."""
        while self._sinks:  # the first, closed last, shows messages, including those about the others
            sink = self._sinks[-1]
            try:
                sink.close()
            except SinkTroubleError as trouble:
                self._sinks.remove(sink)
                self._say(trouble)
            except Exception as error:  # noqa: BLE001 - as above
                self._lose(sink, error)
            else:
                self._sinks.remove(sink)

    def close_first(self) -> None:
        """After a bug, close only the sink that shows messages: nothing else can be trusted."""
        with suppress(Exception):
            self._sinks[0].close()

    def _say(self, trouble: SinkTroubleError) -> None:
        self.publish(Noticed(str(trouble), trouble.is_failure, is_warning=True))

    def _lose(self, sink: Sink, error: Exception) -> None:
        if sink not in self._sinks:
            return
        self._sinks = [
            other for other in self._sinks if other is not sink
        ]  # a new list: the old one is being iterated over
        self.publish(Noticed(f"{type(sink).__name__} stopped recording: {error}; jobs continue", is_failure=True))
