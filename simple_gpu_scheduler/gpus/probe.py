"""The probe that asks NVML which processes are on a GPU, and judges the answer."""

from collections.abc import Collection

from . import Gpu, Look, Tolerance
from .nvml import Nvml, Reading
from .occupancy import User, judge
from .users import OwnProcesses, identify

_UNSEEN = (
    "NVML reports processes that are not visible from here, as in a container, so a GPU's used memory decides whether "
    "it is free (--max-used-memory)"
)
_UNTOLD = (
    "NVML does not report which processes use a GPU, so its used memory decides whether it is free (--max-used-memory)"
)
_NO_UTILIZATION = "gpu {}: NVML does not report its utilisation, so --max-utilization is ignored for it"


class NvmlProbe:
    """Looks at GPUs through NVML."""

    def __init__(self, nvml: Nvml, family: OwnProcesses, tolerance: Tolerance, tolerated: Collection[int] = ()) -> None:
        self._nvml = nvml
        self._family = family
        self._tolerance = tolerance
        self._tolerated = tolerated
        self._remarks: dict[str, bool] = {}  # whether it was reported

    def look(self, gpu: Gpu, *, shared: bool) -> Look:
        """See `Probe`."""
        wants_utilization = self._tolerance.max_utilization is not None
        reading, users = self._read(gpu, utilization=wants_utilization)
        if any(user.whose == "unseen" for user in users) and _UNSEEN not in self._remarks:
            reading, users = self._read(
                gpu, utilization=wants_utilization
            )  # a process that just ended is gone from both
            self._remark_if(any(user.whose == "unseen" for user in users), _UNSEEN)
        self._remark_if(reading.processes is None and not reading.problem, _UNTOLD)
        is_untold = wants_utilization and reading.utilization is None and not reading.problem
        self._remark_if(is_untold, _NO_UTILIZATION.format(gpu.id))
        return judge(reading, users, self._tolerance, shared=shared)

    def examine(self, gpu: Gpu) -> tuple[Reading, list[User], Look]:
        """All that is known of a GPU, and the result of a look."""
        reading, users = self._read(gpu, utilization=True)
        return reading, users, judge(reading, users, self._tolerance, shared=False)

    def _read(self, gpu: Gpu, *, utilization: bool) -> tuple[Reading, list[User]]:
        reading = self._nvml.look(gpu, utilization=utilization)
        users = [identify(pid, memory, self._family, self._tolerated) for pid, memory in reading.processes or ()]
        return reading, users

    def remarks(self) -> list[str]:
        """See `Probe`."""
        fresh = [remark for remark, is_said in self._remarks.items() if not is_said]
        self._remarks.update(dict.fromkeys(fresh, True))
        return fresh

    def _remark_if(self, condition: bool, remark: str) -> None:
        if condition:
            self._remarks.setdefault(remark, False)
