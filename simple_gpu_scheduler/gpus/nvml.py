"""What NVML says: which GPUs there are, and what is happening on each. The only file that knows pynvml.

It turns NVML errors into words, and fields that a GPU lacks into None. It does not know who owns a process, or when a
GPU counts as free.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from . import NO_LIMIT, Device, Gpu


class Unavailable(Exception):  # noqa: N818 - a state of the machine, not an error
    """NVML cannot be used here; the text says why."""


class Reading(NamedTuple):
    """What NVML says about a GPU. Memory is in bytes, without what the driver reserves; None: it does not say."""

    total: float = NO_LIMIT
    used: int = 0
    free: float = NO_LIMIT
    utilization: int | None = None
    processes: tuple[tuple[int, int | None], ...] | None = ()
    problem: str = ""
    is_lost: bool = False


class Vitals(NamedTuple):
    """Values that are only shown: degrees, watts."""

    temperature: int | None = None
    power: float | None = None
    power_limit: float | None = None


class Nvml:
    """NVML, initialised. Making one takes as long as the driver needs, which may be seconds."""

    def __init__(self) -> None:
        import pynvml  # type: ignore[import-untyped] # noqa: PLC0415 - 16 ms that only machines with GPUs spend

        self._nvml: Any = pynvml
        self._handles: dict[str, Any] = {}
        self._problems: dict[str, str] = {}  # of those that have no handle
        try:
            pynvml.nvmlInit()
            self.devices = self._list()
        except pynvml.NVMLError as error:
            raise Unavailable(f"NVML does not work: {self._words(error)}") from None

    def look(self, gpu: Gpu, *, utilization: bool = False, processes: bool = True) -> Reading:
        """What is happening on a GPU, now; only what is asked for."""
        handle = self._handles.get(gpu.lease_name)
        if handle is None:
            return Reading(problem=self._problems.get(gpu.lease_name, "NVML does not list it"), is_lost=True)
        try:
            total, used, free = self._memory(handle)
            busy = self._ask(lambda: self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu) if utilization else None
            return Reading(total, used, free, busy, self._processes(handle) if processes else None)
        except self._nvml.NVMLError as error:
            return Reading(problem=self._words(error), is_lost=error.value in self._beyond_hope())

    def vitals(self, gpu: Gpu) -> Vitals:
        """Temperature and power; empty if NVML cannot say."""
        handle, nvml = self._handles.get(gpu.lease_name), self._nvml
        if handle is None:
            return Vitals()
        try:
            temperature = self._ask(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
            power = self._ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000)
            limit = self._ask(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000)
        except nvml.NVMLError:  # look() reports the problem
            return Vitals()
        return Vitals(temperature, power, limit)

    def _list(self) -> tuple[Device, ...]:
        nvml = self._nvml
        found = []
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                bus = _text(nvml.nvmlDeviceGetPciInfo(handle).busId).lower()
                found.append((bus.rjust(16, "0"), handle, ""))
            except nvml.NVMLError as error:
                found.append(("", None, self._words(error)))
        if all(bus for bus, _, _ in found):  # NVML promises no order, and CUDA will number them along the bus
            found.sort(key=lambda entry: entry[0])
        return tuple(self._device(str(index), handle, problem) for index, (_, handle, problem) in enumerate(found))

    def _device(self, number: str, handle: Any, problem: str = "") -> Device:
        """A GPU, even one of which only the problem is known."""
        uuid = ""
        try:
            if handle is not None:
                uuid = _text(self._nvml.nvmlDeviceGetUUID(handle))
                self._handles[Gpu(number, uuid).lease_name] = handle
                return self._ask_for(Device(number, uuid), handle)
        except self._nvml.NVMLError as error:
            problem = self._words(error)
            if error.value in self._beyond_hope():
                self._handles.pop(Gpu(number, uuid).lease_name, None)
        self._problems[Gpu(number, uuid).lease_name] = problem
        return Device(number, uuid, problem=problem)

    def _ask_for(self, device: Device, handle: Any) -> Device:
        nvml = self._nvml
        model = self._ask(lambda: _text(nvml.nvmlDeviceGetName(handle))) or "?"
        total, _, _ = self._memory(handle)
        device = device._replace(model=model, total=total)
        if ":" in device.number or self._ask(lambda: nvml.nvmlDeviceGetMigMode(handle)[0]) != 1:
            return device
        return device._replace(instances=self._instances(device.number, handle), has_mig=True)

    def _instances(self, number: str, handle: Any) -> tuple[Device, ...]:
        nvml = self._nvml
        found: list[Device] = []
        for at in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
            try:
                instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, at)
            except nvml.NVMLError_NotFound:
                continue
            found.append(self._device(f"{number}:{len(found)}", instance))
        return tuple(found)

    def _memory(self, handle: Any) -> tuple[float, int, float]:
        nvml = self._nvml
        try:
            memory = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
        except nvml.NVMLError_FunctionNotFound:  # a driver from before 2022, which counts the reserved memory as used
            memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        except nvml.NVMLError_NotSupported:  # a GPU that shares the computer's own memory
            return NO_LIMIT, 0, NO_LIMIT
        return memory.total, memory.used, memory.free

    def _processes(self, handle: Any) -> tuple[tuple[int, int | None], ...] | None:
        """The pids of compute processes, and their memory.

        Version 2 is tried first: its entries have one size, those of version 3 two, depending on the driver.
        """
        nvml = self._nvml
        for version in ("_v2", "_v2", "_v3"):  # twice, since there may be more than pynvml made room for
            try:
                found = getattr(nvml, "nvmlDeviceGetComputeRunningProcesses" + version)(handle)
                return tuple((process.pid, process.usedGpuMemory) for process in found)
            except (nvml.NVMLError_FunctionNotFound, nvml.NVMLError_InsufficientSize):
                continue
            except (nvml.NVMLError_NotSupported, nvml.NVMLError_NoPermission):
                return None
        return None

    def _ask(self, call: Callable[[], Any]) -> Any:
        """The answer; None if this GPU has none."""
        nvml = self._nvml
        try:
            return call()
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_NoPermission, nvml.NVMLError_FunctionNotFound):
            return None

    def _beyond_hope(self) -> tuple[int, ...]:
        """The errors that do not go away by waiting."""
        nvml = self._nvml
        return nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED, nvml.NVML_ERROR_NO_PERMISSION

    def _words(self, error: Any) -> str:
        nvml = self._nvml
        known = {
            nvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
            nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "the NVIDIA driver and its library have different versions; "
            "after a driver update, a reboot fixes that",
            nvml.NVML_ERROR_NO_PERMISSION: "this user may not query the NVIDIA driver",
            nvml.NVML_ERROR_GPU_IS_LOST: "it has fallen off the bus; a reboot may bring it back",
            nvml.NVML_ERROR_INSUFFICIENT_POWER: "its power cables are not attached",
            nvml.NVML_ERROR_RESET_REQUIRED: "it needs a reset",
        }
        return known.get(error.value) or f"NVML reports: {error}"


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
