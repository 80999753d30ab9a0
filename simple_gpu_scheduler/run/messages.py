"""All messages to the loop's inbox. It does not know what follows from them."""

from simple_gpu_scheduler.base.errors import Broken, Trouble
from simple_gpu_scheduler.engines import ForEngine
from simple_gpu_scheduler.inputs.reader import Batch, FileRead, SourceEnded
from simple_gpu_scheduler.remote.server import Asked
from simple_gpu_scheduler.scheduling.estimates import Recalled
from simple_gpu_scheduler.system.signals import Signalled

Message = Batch | FileRead | SourceEnded | ForEngine | Broken | Trouble | Signalled | Asked | Recalled
