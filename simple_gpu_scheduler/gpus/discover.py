"""Finds the GPUs of this machine that a command may use, and builds what looks at them and leases them, from options.

It asks NVML if needed, otherwise the driver's files, and says in a sentence what could not be found out.
"""

import os

from simple_gpu_scheduler.base.errors import Broken, UserError
from simple_gpu_scheduler.base.jobs import GpuCap
from simple_gpu_scheduler.base.stdlib import re
from simple_gpu_scheduler.base.units import show_size
from simple_gpu_scheduler.base.values import TYPE_CHECKING, Callable, Collection, Mapping, NamedTuple
from simple_gpu_scheduler.gpus.leases import LeaseCame
from simple_gpu_scheduler.gpus.leases.directory import LeaseFiles, shared_directory
from simple_gpu_scheduler.gpus.leases.lease import open_lease
from simple_gpu_scheduler.system.files import can_load
from simple_gpu_scheduler.system.marks import Family

from . import Device, FixedProbe, Gpu, LookCame, Tolerance, silence
from .machine_file import MachineFile, read_machine_file
from .names import choose, choose_all, choose_unlisted, need_listing, order_is_ours, visible
from .pool import Pool

if TYPE_CHECKING:
    from .looks import Inquiry, Looks
    from .nvml import Nvml
    from .sampler import Sampler

Put = Callable[[LeaseCame | LookCame | Broken], object]

# Seconds in which NVML must be initialised for somebody who waits for that: without persistence mode, a driver with
# eight GPUs takes several.
PATIENCE = 20.0
_NEVER = float("inf")
_VISIBLE = "CUDA_VISIBLE_DEVICES"


class Wants(NamedTuple):
    """The sections "GPUs" and "When a GPU counts as free" of --help; without `names`, all GPUs.

    `example` shows in error messages how to name some. `mem` is that of jobs that do not say what they need.
    """

    names: tuple[str, ...] = ()
    ignore_occupancy: bool = False
    tolerance: Tolerance = Tolerance()
    tolerated: Collection[int] = ()
    example: str = "--gpus 0 1"
    jobs_per_gpu: int = 1
    cpu_slots: int = 1
    mem: int | str | None = None


class Machine(NamedTuple):
    """The GPUs that were found, how to look at them, and remarks for the user."""

    gpus: tuple[Gpu, ...]
    nvml: "Nvml | None" = None
    remarks: tuple[str, ...] = ()
    cap: GpuCap | None = None  # how many of them a run may hold at once

    @property
    def totals(self) -> tuple[float, ...]:
        """The memory of each GPU."""
        return tuple(gpu.total for gpu in self.gpus)


class NotReadyError(Exception):
    """The NVIDIA driver does not work, but may still be starting; the text says what is wrong."""


class SilentDriverError(UserError):
    """The NVIDIA driver does not answer."""


def find_machine(
    wants: Wants, environment: Mapping[str, str], *, is_patient: bool = False, within: float = PATIENCE
) -> Machine:
    """Find the GPUs. NVML is initialised only if it is needed. A UserError says what to do.

    With `is_patient`, an error of the driver that may pass is a NotReadyError, and it may answer as late as it likes,
    unless the user does without NVML. Otherwise it must answer within this time.
    """
    rules = read_machine_file()
    if rules.path:
        from .limits import check_jobs_per_gpu, check_tolerance  # noqa: PLC0415 - few machines have such a file

        check_tolerance(wants.tolerance, wants.tolerated, ignores=wants.ignore_occupancy, rules=rules)
        check_jobs_per_gpu(wants.jobs_per_gpu, rules)
    # Even if only the UUIDs are missing: other schedulers know a GPU's lease by its UUID, not by its number.
    is_needed = (
        not wants.names or not wants.ignore_occupancy or need_listing(wants.names, has_uuids=bool(read_devices()))
    )
    does_without = bool(wants.names) and wants.ignore_occupancy
    nvml, problem = None, ""
    if is_needed:
        try:
            nvml, problem = open_nvml(within, is_patient=is_patient and not does_without)
        except SilentDriverError:
            if not does_without:
                raise
    if wants.names:
        machine = _named(wants, nvml, problem, environment)
    elif nvml is None:
        raise UserError(f"{problem}, so GPUs cannot be found; say which to use, for example: {wants.example}")
    else:
        machine = Machine(_all_visible(nvml, environment, wants.example), nvml)
    if rules.path:
        machine = _limited(machine, rules, are_named=bool(wants.names))
    most = max(machine.totals)
    if wants.tolerance.free_memory > most:
        raise UserError(
            f"{show_size(wants.tolerance.free_memory)} can never be free: the largest GPU has {show_size(most)}"
        )
    return machine


def _limited(machine: Machine, rules: MachineFile, *, are_named: bool) -> Machine:
    """Without the GPUs that the machine file does not allow."""
    from .limits import allowed_gpus  # noqa: PLC0415 - as above

    devices = machine.nvml.devices if machine.nvml else read_devices()
    gpus = allowed_gpus(machine.gpus, devices, rules, are_named=are_named)
    cap = rules.cap
    if not cap or cap.gpus >= len(gpus):
        return machine._replace(gpus=gpus)
    remark = f"{len(gpus)} GPUs, of which this run uses {cap}"
    return machine._replace(gpus=gpus, remarks=(*machine.remarks, remark), cap=cap)


def open_pool(
    machine: Machine, wants: Wants, put: Put, family: Family, tree: bytes, looks: "Looks | None" = None
) -> Pool:
    """The GPUs as a pool for jobs, leased among all users of this machine. `looks` asks the driver, if that is open."""
    files = open_lease_files()
    probe = None if wants.ignore_occupancy else looks or open_looks(machine, wants, family, put)
    pool = Pool(
        machine.gpus,
        lambda gpu: open_lease(files, gpu.id, gpu.lease_name, put, tree),
        probe or FixedProbe(),
        machine.cap,
        wants.tolerance.free_for,
    )
    pool.open_leases()
    return pool


def open_sampler(
    machine: Machine, looks: "Looks | None", family: Family, put: Callable[[Broken], object]
) -> "Sampler | None":
    """What takes samples of the GPUs; None without NVML."""
    if machine.nvml is None or looks is None:
        return None
    from .sampler import Sampler  # noqa: PLC0415 - as above

    return Sampler(machine.gpus, machine.nvml, looks, family, put)


def open_lease_files() -> LeaseFiles:
    """The files in the directory that all users share."""
    rules = read_machine_file()
    return LeaseFiles(*shared_directory(os.environ, rules.lease_directory, rules.path))


def open_nvml(within: float = _NEVER, *, is_patient: bool = False) -> "tuple[Nvml | None, str]":
    """NVML, or why it cannot be used. With `is_patient`, an error that may pass is a NotReadyError.

    If it takes longer than it may, it is a SilentDriverError; whoever asks later gets the answer to the same question.
    """
    if not has_nvml():
        return None, ABSENT
    from .nvml import Nvml, Unavailable  # noqa: PLC0415 - only machines with GPUs have it

    try:
        return (Nvml() if is_patient or within == _NEVER else _open_within(within)), ""
    except Unavailable as error:
        if is_patient and error.may_pass:
            raise NotReadyError(error.problem) from None
        return None, str(error)


_opening: "list[Inquiry[Nvml]]" = []  # that which has not been answered yet: one call that hangs is enough
os.register_at_fork(after_in_child=_opening.clear)  # where its thread does not exist


def _open_within(seconds: float) -> "Nvml":
    from .looks import Inquiry  # noqa: PLC0415 - as above
    from .nvml import Nvml  # noqa: PLC0415 - as above

    opening = _opening.pop() if _opening else Inquiry(Nvml)
    if not opening.is_answered(seconds):
        _opening.append(opening)
        raise SilentDriverError(f"{silence(opening.age)}; it may need a reboot")
    return opening.get()


def open_looks(machine: Machine, wants: Wants, family: Family, put: Put) -> "Looks | None":
    """What asks the driver, in threads; None without NVML."""
    if machine.nvml is None:
        return None
    from .looks import Looks  # noqa: PLC0415 - as above
    from .probe import NvmlProbe  # noqa: PLC0415 - as above

    are_numbers = order_is_ours(os.environ) and all(gpu.id.isdigit() for gpu in machine.gpus)
    return Looks(NvmlProbe(machine.nvml, family, wants.tolerance, wants.tolerated, may_identify=are_numbers), put)


def _all_visible(nvml: "Nvml", environment: Mapping[str, str], example: str) -> tuple[Gpu, ...]:
    by_uuid = not order_is_ours(environment)
    if _VISIBLE not in environment:
        gpus = choose_all(nvml.devices, by_uuid=by_uuid)
        if not gpus:
            raise UserError("NVML lists no GPU that jobs could use on this machine; see nvidia-smi")
        return gpus
    variable = environment[_VISIBLE]
    try:
        names = visible(variable, nvml.devices)
        gpus = choose(names, nvml.devices, by_uuid=by_uuid)
    except ValueError as error:
        raise UserError(f"{_VISIBLE}={variable} is inherited: {error}; fix it, or use {example}") from None
    if not gpus:
        raise UserError(f"{_VISIBLE}='{variable}' is inherited and hides all GPUs; unset it, or use {example}")
    return gpus


def _named(wants: Wants, nvml: "Nvml | None", problem: str, environment: Mapping[str, str]) -> Machine:
    devices = nvml.devices if nvml else read_devices()
    is_listed = bool(nvml) or (bool(devices) and not any(name.startswith("MIG-") for name in wants.names))
    try:
        if is_listed:
            gpus = choose(wants.names, devices, by_uuid=not order_is_ours(environment))
        else:
            gpus = choose_unlisted(wants.names)
    except ValueError as error:
        raise UserError(f"{wants.example.split()[0].partition('=')[0]}: {error}") from None
    remarks = (
        (f"{problem}; use of the GPUs by others is not checked",) if problem and not wants.ignore_occupancy else ()
    )
    return Machine(gpus, nvml, remarks)


_DIRECTORY = "/proc/driver/nvidia/gpus"

_LIBRARY = "libnvidia-ml.so.1"
ABSENT = f"NVML was not found ({_LIBRARY}, part of the NVIDIA driver)"


def has_nvml() -> bool:
    """Whether its library is installed; loading pynvml to find out would take a third of our start-up."""
    return can_load(_LIBRARY)


def read_devices(directory: str = _DIRECTORY) -> tuple[Device, ...]:
    """The GPUs in PCI bus order; none if the files are missing or do not say."""
    try:
        buses = sorted(os.listdir(directory))
        devices = [_read(index, os.path.join(directory, bus, "information")) for index, bus in enumerate(buses)]
    except OSError:
        return ()
    return tuple(devices) if all(device.uuid for device in devices) else ()


def _read(index: int, path: str) -> Device:
    with open(path, encoding="utf-8", errors="replace") as file:
        fields = dict(re.findall(r"^([^:\n]+):[ \t]*(.*?)[ \t]*$", file.read(), re.MULTILINE))
    uuid = fields.get("GPU UUID", "")
    return Device(str(index), "" if "?" in uuid else uuid, fields.get("Model", "?"))  # `?`: never used since the boot
