"""What the meters of a GPU show: load, memory, heat, power, energy, clocks, traffic, errors.

It turns NVML's answers into values, and knows which questions a GPU has no answer to. What jobs made of it, and when to
read the meters, is not known here.
"""

from simple_gpu_scheduler.base.values import Any, Callable, Mapping, Sequence

# Bits of NVML's reasons why a clock is lower than it could be. Not here: that the GPU is idle (1), or that somebody set
# its clocks (2, 0x10, 0x100).
_THROTTLED = (("heat", 0x20 | 0x40), ("power", 0x4 | 0x80), ("hardware", 0x8))
# Counters of bytes that `nvmlDeviceGetFieldValues` knows, and what to multiply them by. NVML's other way to ask for the
# traffic of PCIe takes it 20 ms.
_ALL_LINKS = 0xFFFFFFFF
_COUNTERS: tuple[tuple[str, int, int, int], ...] = (
    ("pcie_sent", 197, 0, 1),
    ("pcie_received", 198, 0, 1),
    ("nvlink_sent", 138, _ALL_LINKS, 1024),
    ("nvlink_received", 139, _ALL_LINKS, 1024),
)
_MOST_XIDS = 100  # at once
_WHOLE = 100  # per cent


class Meter:
    """Reads one GPU. What it once did not support is not asked again."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._not_there = nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_INVALID_ARGUMENT, nvml.NVML_ERROR_NO_PERMISSION
        self._unsupported = nvml.NVMLError_NotSupported, nvml.NVMLError_NoPermission, nvml.NVMLError_FunctionNotFound
        # What says that the other readers have no answer either.
        self._of_all = (
            nvml.NVML_ERROR_GPU_IS_LOST,
            nvml.NVML_ERROR_RESET_REQUIRED,
            nvml.NVML_ERROR_UNINITIALIZED,
            nvml.NVML_ERROR_DRIVER_NOT_LOADED,
        )
        self._readers: tuple[Callable[[], Mapping[str, Any]], ...] = (
            self._load,
            lambda: {"temperature": nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)},
            lambda: {"power": nvml.nvmlDeviceGetPowerUsage(handle) / 1000},
            lambda: {"energy": nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000},
            lambda: {"clock": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)},
            lambda: {"throttled": throttled(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))},
            self._traffic,
        )
        self._limits: tuple[Callable[[], Mapping[str, Any]], ...] = (
            lambda: {"power_limit": nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000},
            lambda: {"memory_clock": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)},
        )
        self._silent: set[object] = set()  # the readers that this GPU has no answer for
        self._counters = _COUNTERS
        self._errors_since: Any = None  # NVML's event set, once it was made
        self._busy_since = 0  # NVML's time of the newest share of a process

    def read(self, *, limits: bool) -> Mapping[str, Any]:
        """The fields of `Meters` that the GPU says, but for errors, memory and processes. A lost GPU is an NVMLError.

        The `limits` are the fields that hardly change.
        """
        return self._read((*self._readers, *self._limits) if limits else self._readers)

    def errors(self) -> Mapping[str, Any]:
        """Those since this was last asked. Only one thread may ask, since each is told once."""
        return self._read((self._errors,))

    def _read(self, readers: Sequence[Callable[[], Mapping[str, Any]]]) -> Mapping[str, Any]:
        nvml, values = self._nvml, dict[str, Any]()
        for reader in readers:
            if reader not in self._silent:
                try:
                    values |= reader()
                except self._unsupported:
                    self._silent.add(reader)
                except nvml.NVMLError as error:
                    if error.value in self._of_all:
                        raise
        return values

    def _load(self) -> Mapping[str, Any]:
        rates = self._nvml.nvmlDeviceGetUtilizationRates(self._handle)
        # Drivers have told of more than there can be.
        return {"utilization": min(_WHOLE, rates.gpu), "memory_copy": min(_WHOLE, rates.memory)}

    def _traffic(self) -> Mapping[str, Any]:
        counters = self._counters  # as of now: another thread may just learn which of them there are
        asked = [(field, scope) for _, field, scope, _ in counters]
        answers = self._nvml.nvmlDeviceGetFieldValues(self._handle, asked) if asked else ()
        answered = list(zip(counters, answers, strict=True))
        self._counters = tuple([counter for counter, answer in answered if answer.nvmlReturn not in self._not_there])
        return {
            name: int(answer.value.ullVal) * unit
            for (name, _, _, unit), answer in answered
            if answer.nvmlReturn == self._nvml.NVML_SUCCESS
        }

    def _errors(self) -> Mapping[str, Any]:
        """NVML tells of each error once, from the moment on when it was first asked."""
        nvml = self._nvml
        if self._errors_since is None:
            since = nvml.nvmlEventSetCreate()
            try:
                nvml.nvmlDeviceRegisterEvents(self._handle, nvml.nvmlEventTypeXidCriticalError, since)
            except nvml.NVMLError:
                nvml.nvmlEventSetFree(since)
                raise
            self._errors_since = since
        xids: list[int] = []
        try:
            while len(xids) < _MOST_XIDS:
                xids.append(int(nvml.nvmlEventSetWait_v2(self._errors_since, 0).eventData))
        except nvml.NVMLError as error:
            if not xids and error.value != nvml.NVML_ERROR_TIMEOUT:
                raise
        return {"xids": tuple(xids)}

    def busy(self) -> Mapping[int, float] | None:
        """The mean share of each process since this was last asked; None if the GPU does not say."""
        nvml = self._nvml
        try:
            samples: Sequence[Any] = nvml.nvmlDeviceGetProcessUtilization(self._handle, self._busy_since)
        except nvml.NVMLError as error:
            return {} if error.value in (nvml.NVML_SUCCESS, nvml.NVML_ERROR_NOT_FOUND) else None
        fresh = [each for each in samples if each.timeStamp > self._busy_since]
        self._busy_since = max([each.timeStamp for each in fresh], default=self._busy_since)
        shares: dict[int, list[int]] = {}
        for each in fresh:
            shares.setdefault(each.pid, []).append(each.smUtil)
        return {pid: sum(found) / len(found) for pid, found in shares.items()}


def throttled(reasons: int) -> tuple[str, ...]:
    """Why the clocks are lower than they could be, by NVML's bits."""
    return tuple([name for name, bits in _THROTTLED if reasons & bits])
