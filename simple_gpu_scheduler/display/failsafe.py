"""Keeps a run visible when what shows it fails: the line of the event, and the reason, then go straight to stderr."""

import select

from simple_gpu_scheduler.events import Event, RunEnded
from simple_gpu_scheduler.events.publisher import Sink, SinkTroubleError
from simple_gpu_scheduler.system.writer import write_all

from .lines import EventWords

_STDERR = 2


class Failsafe:
    """Hands events to the sink that shows the run. It is tried again with each event."""

    def __init__(self, sink: Sink, words: EventWords) -> None:
        self._sink = sink
        self._words = words
        self._summary = ""
        self._has_failed = False

    def take(self, event: Event, /) -> None:
        """See `Sink`. Nothing is lost by a failure that is reported here, so the exit code does not show it."""
        try:
            if isinstance(event, RunEnded):
                self._summary = self._words.line(event)
            self._sink.take(event)
        except SinkTroubleError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the run must be seen
            _write(self._line(event), waits=isinstance(event, RunEnded))
            if not self._has_failed:
                self._has_failed = True
                sentence = f"the display failed: {_reason(error)}; jobs continue, and what it cannot show is printed"
                raise SinkTroubleError(sentence, is_failure=False) from None

    def close(self) -> None:
        """See `Sink`. The summary may be among what is no longer shown."""
        try:
            self._sink.close()
        except Exception as error:  # noqa: BLE001 - as above
            _write(f"the display failed: {_reason(error)}", waits=True)
            _write(self._summary, waits=True)

    def _line(self, event: Event) -> str:
        try:
            return self._words.line(event)
        except Exception:  # noqa: BLE001 - this may be what failed
            return ""


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _write(line: str, *, waits: bool) -> None:
    if not line:
        return
    poll = select.poll()
    poll.register(_STDERR, select.POLLOUT)
    try:
        if waits or poll.poll(0):  # a stopped terminal must not stop the run
            write_all(_STDERR, f"{line}\n".encode("utf-8", "backslashreplace"))
    except OSError:  # closed: the exit code has to be enough
        return
