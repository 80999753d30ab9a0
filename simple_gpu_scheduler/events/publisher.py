"""Hands events to the sinks, and keeps going when one fails. It does not know what events mean."""

from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.values import Iterable, Protocol

from . import Event, Noticed
from .ledger import Ledger


class Sink(Protocol):
    """Consumes events. It may raise; it must not block. Messages about it use its `name`, if it has one."""

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
    """Hands each event to every sink. A sink that raises misses that event, which is said once, and gets the next.

    The ledger gets each event before the sinks do, and belongs to the publishing thread.
    """

    def __init__(self, sinks: Iterable[Sink]) -> None:
        self._sinks = list(sinks)
        self._missed: dict[int, int] = {}  # how many events a sink failed at, by its id
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
                self._fail(sink, error)

    def close(self) -> None:
        """Close every sink; a closed sink gets no more events."""
        while self._sinks:  # the first, closed last, shows messages, including those about the others
            sink = self._sinks[-1]
            try:
                sink.close()
            except SinkTroubleError as trouble:
                self._remove(sink)
                self._say(trouble)
            except Exception as error:  # noqa: BLE001 - as above
                self._remove(sink)
                self.publish(Noticed(f"{_name(sink)} could not be finished: {_reason(error)}", is_failure=True))
            else:
                self._remove(sink)

    def close_first(self) -> None:
        """After a bug, close only the sink that shows messages: nothing else can be trusted."""
        with suppress(Exception):
            self._sinks[0].close()

    def _say(self, trouble: SinkTroubleError) -> None:
        self.publish(Noticed(str(trouble), trouble.is_failure, is_warning=True))

    def _remove(self, sink: Sink) -> None:
        self._sinks = [other for other in self._sinks if other is not sink]  # a new list: the old one may be in use
        missed = self._missed.get(id(sink), 0)
        if missed:
            self.publish(Noticed(f"{_name(sink)} missed {missed} event{'' if missed == 1 else 's'}", is_warning=True))

    def _fail(self, sink: Sink, error: Exception) -> None:
        is_first = id(sink) not in self._missed
        self._missed[id(sink)] = self._missed.get(id(sink), 0) + 1
        if is_first:
            why = f"{_name(sink)} failed: {_reason(error)}; jobs continue, and it is tried again"
            self.publish(Noticed(why, is_failure=True, is_warning=True))


def _name(sink: Sink) -> str:
    return str(getattr(sink, "name", type(sink).__name__))


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
