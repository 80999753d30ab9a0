"""What to say of why jobs wait: each change once, and nothing that lasts no longer than a moment. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

# Two schedulers that hand a GPU to each other do so many times a second.
_MOMENT = 1.0


class Wait(NamedTuple):
    """Why one GPU is not free; `cause` is the same for as long as it is the same reason."""

    gpu: str
    sentence: str
    cause: str
    by_occupancy: bool = False


class Waiting:
    """Remembers what was said."""

    def __init__(self, patience: float = _MOMENT) -> None:
        self._patience = patience
        self._now: Sequence[tuple[str, str]] = ()
        self._since = 0.0
        self._said: Sequence[tuple[str, str]] = ()

    def say(self, waits: Sequence[Wait], now: float) -> Sequence[Wait] | None:
        """What is worth saying of these, also that it is over; None when it was said, or may be over in a moment."""
        causes = [(wait.gpu, wait.cause) for wait in waits]
        if causes != self._now:
            self._now, self._since = causes, now
        if causes == self._said or now - self._since < self._patience:
            return None
        self._said = causes
        return waits
