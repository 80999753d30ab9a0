"""The inbox: all that the loop can be told, and where it waits for it. It knows nothing of what follows."""

from typing import Protocol

from .engines import Ended
from .errors import Broken, Trouble
from .estimates import Recalled
from .leases import LeaseCame
from .outliving import Outlived
from .server import Asked
from .signals import Signalled
from .sources import Batch, FileRead, SourceEnded

Message = (
    Batch | FileRead | SourceEnded | Ended | Outlived | Broken | Trouble | Signalled | LeaseCame | Asked | Recalled
)


class Inbox(Protocol):
    """Messages to the runner. The real one is a SimpleQueue: a signal handler may put to it."""

    def get(self, *, timeout: float | None = None) -> Message:
        """The next message; `Empty` when none came in time."""
