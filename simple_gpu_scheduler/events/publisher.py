"""Handing events to the sinks, and going on whatever ails one. It does not know what events mean."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from . import Event, Noticed
from .ledger import Ledger


class Sink(Protocol):
    """Consumes events. It may raise; it must not wait for anybody."""

    def take(self, event: Event, /) -> None:
        """One event, in the order in which they happened."""

    def close(self) -> None:
        """No event follows."""


class SinkTroubleError(Exception):
    """A sink could not do something, says so, and goes on trying; the exit code tells of it if it `is_failure`."""

    def __init__(self, sentence: str, *, is_failure: bool = True) -> None:
        super().__init__(sentence)
        self.is_failure = is_failure


class Publisher:
    """Hands each event to every sink. A sink that fails is left out from then on, and the others are told.

    The ledger has each event before the sinks, and belongs to the thread that publishes.
    """

    def __init__(self, sinks: Iterable[Sink]) -> None:
        self._sinks = list(sinks)
        self.ledger = Ledger()

    def publish(self, event: Event) -> None:
        """Tell every sink."""
        self.ledger.take(event)
        for sink in self._sinks:
            try:
                sink.take(event)
            except SinkTroubleError as trouble:
                self._say(trouble)
            except Exception as error:  # noqa: BLE001 - whatever ails a sink, the jobs go on
                self._lose(sink, error)

    def close(self) -> None:
        """Tell every sink that it is over; those that are closed are told no more."""
        while self._sinks:  # the first one, which is the last here, tells people, also of what ails the others
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
        """Close the one that shows things, and no other, when there is a bug and nobody knows what else is broken."""
        with suppress(Exception):
            self._sinks[0].close()

    def _say(self, trouble: SinkTroubleError) -> None:
        self.publish(Noticed(str(trouble), trouble.is_failure, is_warning=True))

    def _lose(self, sink: Sink, error: Exception) -> None:
        if sink not in self._sinks:
            return
        self._sinks = [other for other in self._sinks if other is not sink]  # a new list: the old is being walked
        self.publish(Noticed(f"{type(sink).__name__} stopped recording: {error}; jobs continue", is_failure=True))
