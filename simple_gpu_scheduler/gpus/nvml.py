"""What NVML says: which GPUs there are, and what is happening on each. The only file that imports pynvml.

It turns NVML errors into words, and fields that a GPU lacks into None. It does not know who owns a process, or when a
GPU counts as free.
"""

import threading
import time
from contextlib import contextmanager

from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.values import Any, Callable, Iterator, Mapping, NamedTuple
from simple_gpu_scheduler.measurements import Meters

from . import NO_LIMIT, Device, Gpu
from .meters import Meter

_ANOTHER = "it came back as another GPU; a new run can use it"


# Seconds until NVML is initialised again for a lost GPU: the first time, and at most. It may take the driver a second.
_FIRST_PAUSE, _LONGEST_PAUSE = 4.0, 300.0
_NEVER = float("inf")


class Unavailable(Exception):  # noqa: N818 - a state of the machine, not an error
    """NVML cannot be used here, because of this problem; `may_pass`: the driver may still be starting."""

    def __init__(self, problem: str, *, may_pass: bool) -> None:
        super().__init__(f"NVML does not work: {problem}")
        self.problem = problem
        self.may_pass = may_pass


class Reading(NamedTuple):
    """What NVML says about a GPU. Memory is in bytes, without what the driver reserves; None: it does not say."""

    total: float = NO_LIMIT
    used: int = 0
    free: float = NO_LIMIT
    utilization: int | None = None
    processes: tuple[tuple[int, int | None], ...] | None = ()
    problem: str = ""


class Nvml:
    """NVML, initialised. Making one takes as long as the driver needs, which may be seconds."""

    # Of the process: NVML counts how often it was initialised, and a run that exports metrics has two of these.
    _lock = threading.Lock()  # over what follows
    _calls = 0  # under way, each in a thread of its own
    _initialised = 0

    def __init__(self) -> None:
        import pynvml  # type: ignore[import-untyped] # noqa: PLC0415 - 16 ms that only machines with GPUs spend

        self._nvml: Any = pynvml
        self._handles: dict[str, Any] = {}
        self._problems: dict[str, str] = {}  # of those that do not work
        self._unasked: dict[str, Device] = {}  # of which only the UUID was known
        self._meter: dict[str, Meter] = {}
        self._renew_at, self._pause = _NEVER, _FIRST_PAUSE
        try:
            pynvml.nvmlInit()
            with self._lock:
                Nvml._initialised += 1
            self.devices = self._list()
        except pynvml.NVMLError as error:
            raise Unavailable(self._words(error), may_pass=error.value not in self._lasting()) from None

    def look(self, gpu: Gpu, *, utilization: bool = False, processes: bool = True) -> Reading:
        """What is happening on a GPU, now; only what is asked for."""
        if not gpu.uuid:
            return Reading(problem=self._problems.get(gpu.lease_name, "NVML does not list it"))
        with self._call():
            return self._look(gpu, utilization=utilization, processes=processes)

    @contextmanager
    def _call(self) -> Iterator[None]:
        """No lock is held meanwhile, since it may hang. NVML is initialised again only when no call is under way."""
        with self._lock:
            if not Nvml._calls:
                self._renew_if_due()
            Nvml._calls += 1
        try:
            yield
        finally:
            with self._lock:
                Nvml._calls -= 1

    def _look(self, gpu: Gpu, *, utilization: bool, processes: bool) -> Reading:
        try:
            handle = self._handle(gpu)
            if self._is_divided(gpu, handle):
                return Reading(problem=_ANOTHER)
            total, used, free = self._memory(handle)
            busy = self._ask(lambda: self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu) if utilization else None
            reading = Reading(total, used, free, busy, self._processes(handle) if processes else None)
        except self._nvml.NVMLError as error:
            self._problems[gpu.lease_name] = self._words(error)
            if error.value in self._repeated():
                self._renew_later()
            return Reading(problem=self._words(error))
        if self._problems.pop(gpu.lease_name, None):
            self._pause = _FIRST_PAUSE
        return reading

    def _renew_later(self) -> None:
        if self._renew_at == _NEVER:
            self._renew_at = time.monotonic() + self._pause

    def _renew_if_due(self) -> None:
        """Initialise NVML again: it may repeat what it once said of a lost GPU for as long as it is open."""
        if time.monotonic() < self._renew_at:
            return
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        self._renew_at = _NEVER
        self._handles.clear()
        self._meter.clear()
        for _ in range(Nvml._initialised):
            with suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()
        with suppress(self._nvml.NVMLError):  # then each look says why, and leads here again
            for _ in range(Nvml._initialised):
                self._nvml.nvmlInit()
            self._list()

    def identify(self, gpu: Gpu) -> Gpu:
        """The GPU that now has the number of one whose UUID was unknown; the same if it is still unknown."""
        try:
            with self._call():
                devices = self._list()
        except self._nvml.NVMLError as error:
            self._problems[gpu.lease_name] = self._words(error)
            devices = ()
        found = next((device for device in devices if device.number == gpu.id and device.uuid), None)
        if found is None:
            self._renew_later()
            return gpu
        numbers = {device.uuid: device.number for device in devices}
        is_renumbered = any(numbers.get(each.uuid, each.number) != each.number for each in self.devices if each.uuid)
        if is_renumbered or found.has_mig:
            self._problems[gpu.lease_name] = _ANOTHER
            return gpu
        return gpu._replace(uuid=found.uuid, total=found.total)

    def _is_divided(self, gpu: Gpu, handle: Any) -> bool:
        """Whether MIG divides a GPU of which that was unknown at the start; its instances are no GPUs of this run."""
        device = self._unasked.get(gpu.lease_name)
        if device and self._ask_for(device, handle).has_mig:
            return True
        self._unasked.pop(gpu.lease_name, None)
        return False

    def _handle(self, gpu: Gpu) -> Any:
        """Its handle; after a problem another one if there is, since the GPU may have been reset."""
        name = gpu.lease_name
        if name in self._problems or name not in self._handles:
            try:
                self._handles[name] = self._nvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
            except self._nvml.NVMLError:
                if name not in self._handles:
                    raise
        return self._handles[name]

    def driver_version(self) -> str:
        """That of the driver; empty if NVML does not say."""
        try:
            return self._ask(lambda: _text(self._nvml.nvmlSystemGetDriverVersion())) or ""
        except self._nvml.NVMLError:
            return ""

    def meters(self, gpu: Gpu, *, errors: bool = False, by_process: bool = False, limits: bool = True) -> Meters | None:
        """What its meters show; None if NVML cannot say. `look` says why.

        With `errors` and the shares of its processes only if wanted, since these are told to one thread, and once.
        """
        with self._call(), suppress(self._nvml.NVMLError):
            return self._meters(gpu, errors=errors, by_process=by_process, limits=limits)
        return None

    def _meters(self, gpu: Gpu, *, errors: bool, by_process: bool, limits: bool) -> Meters | None:
        name = gpu.lease_name
        if name not in self._handles:
            return None
        handle, meter = self._handles[name], self._meter.get(name)
        if meter is None:
            meter = self._meter[name] = Meter(self._nvml, handle)
        told = meter.errors() if errors else {}  # first: a GPU that is lost tells of nothing else
        if name not in self._problems:
            with suppress(self._nvml.NVMLError):
                return self._shown(handle, meter, limits=limits, by_process=by_process)._replace(**told)
        return Meters(**told) if told.get("xids") else None

    def _shown(self, handle: Any, meter: Meter, *, limits: bool, by_process: bool) -> Meters:
        total, used, _ = self._memory(handle)
        processes = self._processes(handle)
        if total == NO_LIMIT:  # the computer's own memory: what its processes use is all that is known
            told = [memory for _, memory in processes or () if memory is not None]
            memory: Mapping[str, Any] = {"used": sum(told)} if told else {}
        else:
            memory = {"used": used, "total": int(total)}
        return Meters(
            **memory,
            **meter.read(limits=limits),
            processes=processes,
            busy=meter.busy() if by_process else None,
        )

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
                name, device = Gpu(number, uuid).lease_name, Device(number, uuid)
                self._handles[name], self._unasked[name] = handle, device
                device = self._ask_for(device, handle)
                self._unasked.pop(name, None)
                return device
        except self._nvml.NVMLError as error:
            problem = self._words(error)
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

    def _lasting(self) -> tuple[int, ...]:
        """The errors of a driver that runs, or is too old."""
        nvml = self._nvml
        return (
            nvml.NVML_ERROR_NOT_SUPPORTED,
            nvml.NVML_ERROR_NO_PERMISSION,
            nvml.NVML_ERROR_LIBRARY_NOT_FOUND,
            nvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        )

    def _repeated(self) -> tuple[int, ...]:
        """The errors that NVML may repeat although the GPU works again."""
        nvml = self._nvml
        return nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED, nvml.NVML_ERROR_UNINITIALIZED

    def _words(self, error: Any) -> str:
        nvml = self._nvml
        known = {
            nvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
            nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "the NVIDIA driver and its library have different versions; "
            "after a driver update, a reboot fixes that",
            nvml.NVML_ERROR_NO_PERMISSION: "this user may not query the NVIDIA driver",
            nvml.NVML_ERROR_GPU_IS_LOST: "fallen off the bus; a reboot may bring it back",
            nvml.NVML_ERROR_INSUFFICIENT_POWER: "its power cables are not attached",
            nvml.NVML_ERROR_RESET_REQUIRED: "it needs a reset",
        }
        return known.get(error.value) or f"NVML reports: {error}"


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
