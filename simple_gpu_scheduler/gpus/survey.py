"""What is on the GPUs of this machine, for people and programs: a value per GPU, as JSON and as table cells.

It only looks. Whether a job could start is judged by the same code as in a run. The live view gets only the vitals,
without asking which processes use the GPUs.
"""

import time
from functools import partial

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.units import show_share
from simple_gpu_scheduler.base.values import Callable, Iterable, Mapping, NamedTuple, Sequence
from simple_gpu_scheduler.gpus.leases import Holder, LeaseError
from simple_gpu_scheduler.gpus.leases.directory import LeaseFiles
from simple_gpu_scheduler.gpus.leases.lease import FileLease
from simple_gpu_scheduler.measurements import Meters
from simple_gpu_scheduler.measurements.recent import Recent
from simple_gpu_scheduler.system.marks import Family

from . import SILENCE, Device, Gpu, GpuVitals, Look, silence
from .discover import Machine, Wants, open_lease_files, open_nvml
from .looks import Inquiry
from .nvml import Nvml, Reading
from .occupancy import User
from .probe import NvmlProbe


class GpuReport(NamedTuple):
    """One GPU."""

    gpu: Gpu
    name: str
    reading: Reading
    meters: Meters
    leased: str
    unleasable: str
    users: tuple[User, ...]
    reason: str
    is_silent: bool = False  # the driver does not answer
    recent: Sequence[float | None] = ()
    holder: str = ""  # the user who has leased it

    @property
    def is_free(self) -> bool:
        """Whether a run that starts now would use it."""
        return not (self.leased or self.unleasable or self.reason)

    def to_json(self) -> Mapping[str, object]:
        """For JSON: bytes, per cent, degrees, watts, joules, MHz, seconds; null for what is unknown."""
        reading, meters = self.reading, self.meters
        known = reading.total != float("inf") and not reading.problem
        return {
            "gpu": self.gpu.id,
            "uuid": self.gpu.uuid or None,
            "name": self.name or None,
            "memory_total": int(reading.total) if known else None,
            "memory_used": reading.used if known else None,
            "utilization": reading.utilization,
            "temperature": meters.temperature,
            "power": meters.power,
            "power_limit": meters.power_limit,
            "leased": self.leased or None,
            "users": [_to_json(user) for user in self.users],
            "free": self.is_free,
            "reason": self.leased or self.unleasable or self.reason or None,
            "memory_copy": meters.memory_copy,
            "energy": meters.energy,
            "clock": meters.clock,
            "memory_clock": meters.memory_clock,
            "throttled": meters.throttled,
            "pcie_sent": meters.pcie_sent,
            "pcie_received": meters.pcie_received,
            "nvlink_sent": meters.nvlink_sent,
            "nvlink_received": meters.nvlink_received,
        }


class Survey:
    """Looks at every GPU once, or again and again."""

    def __init__(self, machine: Machine, wants: Wants, *, errors: bool = False) -> None:
        """With `errors`, its meters tell of those since the last look, as only one survey of a process may ask."""
        nvml = machine.nvml
        self._errors = errors
        self._gpus = machine.gpus
        self._nvml = nvml
        self._probe = NvmlProbe(nvml, Family(), wants.tolerance, wants.tolerated) if nvml else None
        self._names = _models(nvml.devices if nvml else ())
        self._ignores = wants.ignore_occupancy
        self._files = open_lease_files()
        self._inquiries: dict[Gpu, Inquiry[_Answers]] = {}  # what has not been answered yet
        self._recent = {gpu.id: Recent() for gpu in machine.gpus}

    def look(self) -> list[GpuReport]:
        """A report on each."""
        for gpu in self._gpus:
            if gpu not in self._inquiries:
                self._inquiries[gpu] = Inquiry(partial(self._examine, gpu))
        return [self._report(gpu) for gpu in self._gpus]

    def _examine(self, gpu: Gpu) -> "_Answers":
        if not (self._probe and self._nvml):
            return Reading(), [], Look(), Meters()
        return *self._probe.examine(gpu), self._nvml.meters(gpu, errors=self._errors) or Meters()

    def _report(self, gpu: Gpu) -> GpuReport:
        held, unleasable = _lease_of(gpu, self._files)
        leased, holder = held or ("", "")
        name, inquiry = self._names.get(gpu.uuid, ""), self._inquiries[gpu]
        if not inquiry.is_answered(SILENCE - inquiry.age):
            sentence = silence(inquiry.age)
            report = GpuReport(gpu, name, Reading(problem=sentence), Meters(), leased, unleasable, (), sentence)
            return report._replace(is_silent=True, holder=holder)
        reading, users, look, meters = self._inquiries.pop(gpu).get()
        is_ignored = look.reason and look.reason.by_occupancy and self._ignores
        seen = tuple(user for user in users if user.whose != "unseen")
        reason = look.reason.sentence if look.reason and not is_ignored else ""
        now, recent = time.monotonic(), self._recent[gpu.id]
        recent.add(now, reading.utilization)
        report = GpuReport(gpu, name, reading, meters, leased, unleasable, seen, reason)
        return report._replace(recent=recent.means(now), holder=holder)


_Answers = tuple[Reading, list[User], Look, Meters]


def _lease_of(gpu: Gpu, files: LeaseFiles) -> tuple[Holder | None, str]:
    """Who has leased it, and what is wrong with its lease files."""
    lease = FileLease(files, gpu.id, gpu.lease_name, lambda _message: None)
    try:
        return lease.holder(), ""
    except LeaseError as error:
        return None, str(error)
    finally:
        lease.close()


def _models(devices: Iterable[Device]) -> dict[str, str]:
    return {each.uuid: each.model for device in devices for each in (device, *device.instances)}


HEADINGS = ("GPU", "NAME", "MEMORY", "UTIL", "TEMP", "POWER", "STATE", "USED BY")


def cells(row: GpuReport) -> tuple[str, ...]:
    """One row of the table."""
    reading, meters = row.reading, row.meters
    has_memory = reading.total != float("inf") and not reading.problem
    watts = "" if meters.power is None else f"{meters.power:.0f} W"
    if watts and meters.power_limit is not None:
        watts = f"{meters.power:.0f} / {meters.power_limit:.0f} W"
    by_process = [str(user) for user in row.users]
    state = row.leased or row.unleasable or ("in use" if by_process and row.reason else row.reason) or "free"
    return (
        row.gpu.id,
        row.name or "-",
        show_share(reading.used, reading.total) if has_memory else "-",
        "-" if reading.utilization is None else f"{reading.utilization} %",
        "-" if meters.temperature is None else f"{meters.temperature} °C",
        watts or "-",
        state,
        ", ".join(by_process) or "-",
    )


def _to_json(user: User) -> Mapping[str, object]:
    return {
        "pid": user.pid,
        "user": user.name or None,
        "program": user.program or None,
        "memory": user.memory,
        "seconds": None if user.age is None else round(user.age),
    }


class VitalsReader:
    """For the view's thread. Initialises NVML if nothing else needed it."""

    def __init__(self, machine: Callable[[], Machine | None]) -> None:
        self._machine = machine
        self._nvml: Nvml | None = None
        self._has_asked = False
        self._recent: dict[str, Recent] = {}

    def read(self) -> list[GpuVitals]:
        """The vitals of each GPU of the run; only its name if there is no NVML."""
        try:
            machine = self._machine()
        except UserError:  # the run reports it, and does not start
            return []
        if machine is None:  # the driver is waited for
            return []
        if not self._has_asked:
            self._has_asked = True
            self._nvml = machine.nvml or open_nvml()[0]
        nvml = self._nvml
        return [self._vitals(nvml, gpu) if nvml else GpuVitals(gpu.id) for gpu in machine.gpus]

    def _vitals(self, nvml: Nvml, gpu: Gpu) -> GpuVitals:
        meters, now = nvml.meters(gpu), time.monotonic()
        recent = self._recent.setdefault(gpu.id, Recent())
        if meters is None:  # it may work again, which only a look finds out
            nvml.look(gpu, processes=False)
            return GpuVitals(gpu.id, recent=recent.means(now))
        recent.add(now, meters.utilization)
        used = meters.used if meters.total else None
        shown = meters.utilization, used, meters.total, meters.temperature, meters.power
        return GpuVitals(gpu.id, *shown, recent=recent.means(now))
