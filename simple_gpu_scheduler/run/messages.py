"""The inbox: all that the loop can be told, and where it waits for it. It knows nothing of what follows."""

from typing import Protocol

from simple_gpu_scheduler.base.errors import Broken, Trouble
from simple_gpu_scheduler.engines import Ended
from simple_gpu_scheduler.gpus.leases import LeaseCame
from simple_gpu_scheduler.inputs.reader import Batch, FileRead, SourceEnded
from simple_gpu_scheduler.remote.server import Asked
from simple_gpu_scheduler.resume.survivors import Outlived
from simple_gpu_scheduler.scheduling.estimates import Recalled
from simple_gpu_scheduler.system.signals import Signalled

Message = (
    Batch | FileRead | SourceEnded | Ended | Outlived | Broken | Trouble | Signalled | LeaseCame | Asked | Recalled
)


class Inbox(Protocol):
    """Messages to the runner. The real one is a SimpleQueue: a signal handler may put to it."""

    def get(self, *, timeout: float | None = None) -> Message:
        """The next message; `Empty` when none came in time."""
