"""What is on the GPUs of this machine, for people and programs: a value per GPU, as JSON and as table cells.

It only looks. Whether a job could start is judged by the same code as in a run. The live view gets only the vitals,
without asking which processes use the GPUs.
"""

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.units import show_share
from simple_gpu_scheduler.base.values import Callable, Iterable, Mapping, NamedTuple
from simple_gpu_scheduler.gpus.leases import LeaseError
from simple_gpu_scheduler.gpus.leases.directory import LeaseFiles
from simple_gpu_scheduler.gpus.leases.lease import FileLease
from simple_gpu_scheduler.system.marks import Family

from . import NO_LIMIT, Device, Gpu, GpuVitals, Look
from .discover import Machine, Wants, open_lease_files, open_nvml
from .nvml import Nvml, Reading, Vitals
from .occupancy import User
from .probe import NvmlProbe


class GpuReport(NamedTuple):
    """One GPU."""

    gpu: Gpu
    name: str
    reading: Reading
    vitals: Vitals
    leased: str
    unleasable: str
    users: tuple[User, ...]
    reason: str

    @property
    def is_free(self) -> bool:
        """Whether a run that starts now would use it."""
        return not (self.leased or self.unleasable or self.reason)

    def to_json(self) -> Mapping[str, object]:
        """For JSON: bytes, per cent, degrees, watts, seconds; null for what is unknown."""
        reading, vitals = self.reading, self.vitals
        known = reading.total != float("inf") and not reading.problem
        return {
            "gpu": self.gpu.id,
            "uuid": self.gpu.uuid or None,
            "name": self.name or None,
            "memory_total": int(reading.total) if known else None,
            "memory_used": reading.used if known else None,
            "utilization": reading.utilization,
            "temperature": vitals.temperature,
            "power": vitals.power,
            "power_limit": vitals.power_limit,
            "leased": self.leased or None,
            "users": [_to_json(user) for user in self.users],
            "free": self.is_free,
            "reason": self.leased or self.unleasable or self.reason or None,
        }


def survey(machine: Machine, wants: Wants) -> list[GpuReport]:
    """Look at every GPU once."""
    files = open_lease_files()
    probe = NvmlProbe(machine.nvml, Family(), wants.tolerance, wants.tolerated) if machine.nvml else None
    names = _models(machine.nvml.devices if machine.nvml else ())
    rows = []
    for gpu in machine.gpus:
        leased, unleasable = _lease_of(gpu, files)
        reading, users, look = probe.examine(gpu) if probe else (Reading(), [], Look())
        is_ignored = look.reason and look.reason.by_occupancy and wants.ignore_occupancy
        vitals = machine.nvml.vitals(gpu) if machine.nvml else Vitals()
        rows.append(
            GpuReport(
                gpu,
                names.get(gpu.uuid, ""),
                reading,
                vitals,
                leased,
                unleasable,
                tuple(user for user in users if user.whose != "unseen"),
                look.reason.sentence if look.reason and not is_ignored else "",
            )
        )
    return rows


def _lease_of(gpu: Gpu, files: LeaseFiles) -> tuple[str, str]:
    """Who has leased it, and what is wrong with its lease files."""
    lease = FileLease(files, gpu.id, gpu.lease_name, lambda _message: None)
    try:
        holder = lease.holder()
    except LeaseError as error:
        return "", str(error)
    finally:
        lease.close()
    return holder.sentence if holder else "", ""


def _models(devices: Iterable[Device]) -> dict[str, str]:
    return {each.uuid: each.model for device in devices for each in (device, *device.instances)}


HEADINGS = ("GPU", "NAME", "MEMORY", "UTIL", "TEMP", "POWER", "STATE", "USED BY")


def cells(row: GpuReport) -> tuple[str, ...]:
    """One row of the table."""
    reading, vitals = row.reading, row.vitals
    has_memory = reading.total != float("inf") and not reading.problem
    watts = "" if vitals.power is None else f"{vitals.power:.0f} W"
    if watts and vitals.power_limit is not None:
        watts = f"{vitals.power:.0f} / {vitals.power_limit:.0f} W"
    by_process = [str(user) for user in row.users]
    state = row.leased or row.unleasable or ("in use" if by_process and row.reason else row.reason) or "free"
    return (
        row.gpu.id,
        row.name or "-",
        show_share(reading.used, reading.total) if has_memory else "-",
        "-" if reading.utilization is None else f"{reading.utilization} %",
        "-" if vitals.temperature is None else f"{vitals.temperature} °C",
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
        return [_vitals(nvml, gpu) if nvml else GpuVitals(gpu.id) for gpu in machine.gpus]


def _vitals(nvml: Nvml, gpu: Gpu) -> GpuVitals:
    reading, vitals = nvml.look(gpu, utilization=True, processes=False), nvml.vitals(gpu)
    has_memory = reading.total != NO_LIMIT and not reading.problem
    used, total = (reading.used, int(reading.total)) if has_memory else (None, None)
    return GpuVitals(gpu.id, reading.utilization, used, total, vitals.temperature, vitals.power)
