"""Why jobs wait, as messages: each change once, and nothing for what lasts only a moment. Pure."""

from simple_gpu_scheduler.base.values import NamedTuple, Sequence

# Two schedulers that pass a GPU back and forth do so many times a second.
_MOMENT = 1.0


class Wait(NamedTuple):
    """Why one GPU is not free; `cause` stays the same as long as the reason does.

    `is_mine`: other processes of this user are the only reason.
    """

    gpu: str
    sentence: str
    cause: str
    is_mine: bool = False


class Waiting:
    """Remembers which waits were reported."""

    def __init__(self, patience: float = _MOMENT) -> None:
        self._patience = patience
        self._now: Sequence[tuple[str, str]] = ()
        self._since = 0.0
        self._said: Sequence[tuple[str, str]] = ()

    def say(self, waits: Sequence[Wait], now: float) -> Sequence[Wait] | None:
        """The waits to report, empty when they are over; None if already reported, or if too recent to be worth it."""
        causes = [(wait.gpu, wait.cause) for wait in waits]
        if causes != self._now:
            self._now, self._since = causes, now
        if causes == self._said or now - self._since < self._patience:
            return None
        self._said = causes
        return waits

    @property
    def are_said(self) -> bool:
        """Whether the last waits were reported, if with other times and sizes."""
        return self._now == self._said
