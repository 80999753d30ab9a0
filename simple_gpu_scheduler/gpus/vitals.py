"""What the live view shows of the GPUs: from NVML, without asking which processes are on them."""

from collections.abc import Callable

from simple_gpu_scheduler.base.errors import UserError

from . import NO_LIMIT, Gpu, GpuVitals
from .discover import Machine, open_nvml
from .nvml import Nvml


class VitalsReader:
    """For the view's thread. Initialises NVML if nothing else needed it."""

    def __init__(self, machine: Callable[[], Machine]) -> None:
        self._machine = machine
        self._nvml: Nvml | None = None
        self._has_asked = False

    def read(self) -> list[GpuVitals]:
        """The vitals of each GPU of the run; only its name if there is no NVML."""
        try:
            machine = self._machine()
        except UserError:  # the run reports it, and does not start
            return []
        if not self._has_asked:
            self._has_asked = True
            self._nvml = machine.nvml or open_nvml()[0]
        nvml = self._nvml
        return [_vitals(nvml, gpu) if nvml else GpuVitals(gpu.id) for gpu in machine.gpus]


def _vitals(nvml: Nvml, gpu: Gpu) -> GpuVitals:
    reading, vitals = nvml.look(gpu, utilization=True, processes=False), nvml.vitals(gpu)
    has_memory = reading.total != NO_LIMIT and not reading.problem
    used, total = (reading.used, int(reading.total)) if has_memory else (None, None)
    return GpuVitals(gpu.id, reading.utilization, used, total, vitals.temperature, vitals.power)
