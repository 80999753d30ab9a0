"""What attempts did to their GPUs and the CPU: readings of meters, and the figures and curves made of them. Pure.

Who reads the meters, and where figures are written, is not known here. Times are seconds of a clock that never goes
back.
"""

from simple_gpu_scheduler.base.jobs import Key
from simple_gpu_scheduler.base.values import Mapping, NamedTuple


class Meters(NamedTuple):
    """One reading of a GPU: per cent, bytes, degrees, watts, joules, MHz. None: this GPU does not say.

    `utilization` and `memory_copy` are shares of a moment before it. Energy and traffic are counters; `xids` are the
    errors since the last reading. `processes` have their memory, `busy` their shares of the utilisation.
    """

    utilization: int | None = None
    memory_copy: int | None = None
    used: int | None = None
    total: int | None = None
    temperature: int | None = None
    power: float | None = None
    power_limit: float | None = None
    energy: float | None = None
    clock: int | None = None
    memory_clock: int | None = None
    throttled: tuple[str, ...] | None = None
    pcie_sent: int | None = None
    pcie_received: int | None = None
    nvlink_sent: int | None = None
    nvlink_received: int | None = None
    xids: tuple[int, ...] | None = None
    processes: tuple[tuple[int, int | None], ...] | None = None
    busy: Mapping[int, float] | None = None


class GpuSample(NamedTuple):
    """A reading, when it was made, and what of it is our attempts': their memory and shares, where that is known.

    `held` is None if some process on the GPU is not known, or its memory.
    """

    at: float
    meters: Meters
    held: Mapping[Key, int] | None = None
    shares: Mapping[Key, float] | None = None
