"""A stand-in for NVIDIA's NVML, and what a test has it show.

The library is a real one, compiled from `stand_in.c` and found through the dynamic loader, because what goes wrong with
NVML goes wrong between the bindings and the driver: layouts, missing functions, error codes, a GPU that is lost.
"""

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

SOURCE = Path(__file__).with_name("stand_in.c")
LIBRARY = "libnvidia-ml.so.1"
MIB, GIB = 1 << 20, 1 << 30
XID_EVENTS = 8
NOTHING: Mapping[str, int] = MappingProxyType({})

# What NVML answers when something is wrong, for `errors` and `init_error`.
NOT_SUPPORTED = 3
NO_PERMISSION = 4
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
GPU_IS_LOST = 15
RESET_REQUIRED = 16
LIB_RM_VERSION_MISMATCH = 18
UNKNOWN = 999


class Ramp(NamedTuple):
    """A number that grows by so many a second from `since` on, in seconds since the epoch, or falls until it is 0."""

    start: int
    per_second: float
    since: float


class Steps(NamedTuple):
    """A number that has one value after the other, each for so many seconds; the last is for ever and has None.

    The seconds of the first begin at `since`, and it is the value before as well.
    """

    since: float
    values: Sequence[tuple[int, float | None]]


# What a device's number may be; times are as exact as their decimal digits.
Reading = int | Ramp | Steps


class Process(NamedTuple):
    """A process on a GPU; a memory of None is one that the driver does not know.

    `sm` is the percentage of the SMs' time that it uses; the driver tells of none on a GPU where all are None.
    """

    pid: int
    memory: int | None = 0
    sm: Reading | None = None


class Instance(NamedTuple):
    """A MIG instance of a GPU; `errors`, `delays` and `hangs` as those of a GPU."""

    uuid: str
    name: str = "NVIDIA A100-SXM4-80GB MIG 1g.10gb"
    total: Reading = 10 * GIB
    reserved: Reading = 0
    used: Reading = 0
    gpu_instance: int = 7
    compute_instance: int = 0
    processes: Sequence[Process] = ()
    graphics: Sequence[Process] = ()
    mps: Sequence[Process] = ()
    errors: Mapping[str, int] = NOTHING
    delays: Mapping[str, int] = NOTHING
    hangs: Sequence[str] = ()


class Gpu(NamedTuple):
    """A GPU. A reading of None is not supported; it may change with time: see Ramp and Steps.

    Memory is in bytes, power in milliwatts, energy in millijoules since the driver was loaded, clocks in MHz;
    `throttle` is a mask of reasons. `pcie_tx` and `pcie_rx` are kilobytes a second, what ends in `_bytes` or `_kib` is
    counted. The memory's utilization is told with the GPU's, as 0 if it is None.

    `xids` has how many errors of each number there were since the driver was loaded. A set of events tells of those
    that come after the GPU was added to it. With None the GPU tells of no events.

    `errors` has the functions that fail for this GPU, with NVML's code; `*` is all of them. `delays` has functions that
    are slow, with microseconds, and `hangs` those that take until something else is shown. A GPU in MIG mode shows its
    own memory and processes and those of its instances.
    """

    uuid: str
    bus: str
    name: str = "NVIDIA A100-SXM4-80GB"
    total: Reading | None = 80 * GIB
    reserved: Reading = 0
    used: Reading = 0
    utilization: Reading | None = 0
    temperature: Reading | None = 30
    power: Reading | None = 60_000
    power_limit: Reading | None = 400_000
    fan: Reading | None = None
    compute_mode: Reading | None = 0
    memory_utilization: Reading | None = None
    energy: Reading | None = None
    clock: Reading | None = None
    memory_clock: Reading | None = None
    throttle: Reading | None = None
    pcie_tx: Reading | None = None
    pcie_rx: Reading | None = None
    pcie_tx_bytes: Reading | None = None
    pcie_rx_bytes: Reading | None = None
    nvlink_tx_kib: Reading | None = None
    nvlink_rx_kib: Reading | None = None
    xids: Mapping[int, Reading] | None = None
    processes: Sequence[Process] = ()
    graphics: Sequence[Process] = ()
    mps: Sequence[Process] = ()
    mig: bool | None = False
    instances: Sequence[Instance] = ()
    errors: Mapping[str, int] = NOTHING
    delays: Mapping[str, int] = NOTHING
    hangs: Sequence[str] = ()


def a_gpu(index: int, **changes: object) -> Gpu:
    """An idle GPU of 80 GiB that is like no other index's, with these changes."""
    values: dict[str, object] = {
        "uuid": f"GPU-{index:08x}-1111-2222-3333-444444444444",
        "bus": f"00000000:{index + 1:02X}:00.0",
    }
    return Gpu(**(values | changes))  # type: ignore[arg-type]


def an_instance(gpu: int, index: int, **changes: object) -> Instance:
    """An idle MIG instance of 10 GiB that is like no other, with these changes."""
    values: dict[str, object] = {
        "uuid": f"MIG-{gpu:08x}-{index:04x}-5555-6666-777777777777",
        "gpu_instance": 7 + index,
    }
    return Instance(**(values | changes))  # type: ignore[arg-type]


def compiler() -> str | None:
    """The machine's compiler for C, if it has one."""
    return shutil.which("gcc") or shutil.which("cc")


@functools.cache
def library(*, without: frozenset[str] = frozenset(), protected_memory: bool = False) -> Path:
    """The directory with the library, compiled at the first use and gone with this program.

    An old driver is a library that does not have some functions: `without` names them. `protected_memory` makes it one
    of the drivers 535.43 to 535.86, whose `..RunningProcesses_v3` have longer entries.
    """
    program = compiler()
    if program is None:
        raise FileNotFoundError("there is no gcc and no cc to compile the stand-in for NVML with")
    directory = Path(tempfile.mkdtemp(prefix="nvml_stand_in_"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    hidden = directory / "hidden"
    hidden.write_text("{ local: " + "".join(f"{name}; " for name in sorted(without)) + "};\n")
    settings = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-pthread"]
    settings += ["-DPROTECTED_MEMORY_IN_V3"] if protected_memory else []
    settings += [f"-Wl,-soname,{LIBRARY}"] + ([f"-Wl,--version-script={hidden}"] if without else [])
    subprocess.run([program, *settings, "-o", directory / LIBRARY, SOURCE], check=True)
    # Programs of other users load it too.
    directory.chmod(0o755)
    (directory / LIBRARY).chmod(0o755)
    return directory


class StandIn:
    """An NVML that shows what the test says, to programs that are started with its `environment`.

    The directory holds the state and the log; it is opened to other users, and those above it must be.
    """

    def __init__(self, directory: Path, *, without: Sequence[str] = (), protected_memory: bool = False) -> None:
        self._library = library(without=frozenset(without), protected_memory=protected_memory)
        self._state = directory / "state"
        self._log = directory / "calls"
        directory.mkdir(exist_ok=True)
        directory.chmod(0o755)
        self._log.touch()
        self._log.chmod(0o666)
        self.show(())

    @property
    def environment(self) -> dict[str, str]:
        """What to add to a program's environment; it need not know more."""
        before = os.environ.get("LD_LIBRARY_PATH")
        return {
            "LD_LIBRARY_PATH": f"{self._library}:{before}" if before else str(self._library),
            "NVML_STAND_IN_STATE": str(self._state),
            "NVML_STAND_IN_LOG": str(self._log),
        }

    def show(
        self,
        gpus: Sequence[Gpu],
        *,
        driver: str = "570.86.15",
        nvml: str = "12.570.86.15",
        cuda: int = 12080,
        init_error: int = 0,
        now: float | None = None,
        errors: Mapping[str, int] = NOTHING,
        delays: Mapping[str, int] = NOTHING,
        hangs: Sequence[str] = (),
    ) -> None:
        """Show this from the next call on, to running programs too; `errors`, `delays` and `hangs` are for every GPU.

        With `now` the clock stands there, in seconds since the epoch.

        The file is replaced whole, so that no call sees half of it.
        """
        lines = [f"driver {driver}", f"nvml {nvml}", f"cuda {cuda}", f"init_error {init_error}"]
        lines += [] if now is None else [f"now {_decimal(now)}"]
        lines += _scripts(errors, delays, hangs)
        for gpu in gpus:
            lines += _gpu_lines(gpu)
        new = self._state.with_suffix(".new")
        new.write_text("".join(f"{line}\n" for line in lines))
        new.chmod(0o644)
        new.replace(self._state)

    def unload(self) -> None:
        """Show no driver at all, until the next `show`: what comes is refused as DRIVER_NOT_LOADED."""
        self._state.unlink(missing_ok=True)

    def called(self) -> list[str]:
        """The functions that programs have called, in order."""
        return self._log.read_text().splitlines()

    def calls(self, function: str) -> int:
        """How often programs have called this function."""
        return self.called().count(function)

    @property
    def initialisations(self) -> int:
        """How often programs have initialised NVML, whatever function they took for it."""
        return sum(self.calls(function) for function in ("nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags"))


def _decimal(number: float) -> str:
    """The digits that Python prints, never with an exponent."""
    return f"{Decimal(str(number)):f}"


def _reading(value: Reading) -> str:
    if isinstance(value, Ramp):
        return f"{value.start} + {_decimal(value.per_second)} / s since {_decimal(value.since)}"
    if isinstance(value, Steps):
        return f"at {_decimal(value.since)} {' '.join(_steps(value))}"
    return str(value)


def _steps(steps: Steps) -> Iterator[str]:
    *before, (last, seconds) = steps.values
    if seconds is not None:
        raise ValueError(f"the last step has no end, but {seconds} s are given")
    for value, seconds in before:
        if seconds is None:
            raise ValueError("only the last step has no end")
        yield f"{value} {_decimal(seconds)}"
    yield str(last)


def _gpu_lines(gpu: Gpu) -> list[str]:
    readings = {
        "total": gpu.total,
        "reserved": gpu.reserved,
        "used": gpu.used,
        "utilization": gpu.utilization,
        "temperature": gpu.temperature,
        "power": gpu.power,
        "power_limit": gpu.power_limit,
        "fan": gpu.fan,
        "compute_mode": gpu.compute_mode,
        "memory_utilization": gpu.memory_utilization,
        "energy": gpu.energy,
        "clock": gpu.clock,
        "memory_clock": gpu.memory_clock,
        "throttle": gpu.throttle,
        "pcie_tx": gpu.pcie_tx,
        "pcie_rx": gpu.pcie_rx,
        "pcie_tx_bytes": gpu.pcie_tx_bytes,
        "pcie_rx_bytes": gpu.pcie_rx_bytes,
        "nvlink_tx_kib": gpu.nvlink_tx_kib,
        "nvlink_rx_kib": gpu.nvlink_rx_kib,
        "mig": gpu.mig if gpu.mig is None else int(gpu.mig),
    }
    lines = ["gpu", f"uuid {gpu.uuid}", f"name {gpu.name}", f"bus {gpu.bus}"]
    lines += [f"{word} {_reading(value)}" for word, value in readings.items() if value is not None]
    if gpu.xids is not None:
        lines += [f"events {XID_EVENTS}", *(f"xid {number} {_reading(count)}" for number, count in gpu.xids.items())]
    lines += [*_processes(gpu), *_scripts(gpu.errors, gpu.delays, gpu.hangs)]
    for instance in gpu.instances:
        lines += _instance_lines(instance)
    return lines


def _instance_lines(instance: Instance) -> list[str]:
    return [
        "instance",
        f"uuid {instance.uuid}",
        f"name {instance.name}",
        f"gi {instance.gpu_instance}",
        f"ci {instance.compute_instance}",
        f"total {_reading(instance.total)}",
        f"reserved {_reading(instance.reserved)}",
        f"used {_reading(instance.used)}",
        *_processes(instance),
        *_scripts(instance.errors, instance.delays, instance.hangs),
    ]


def _processes(device: Gpu | Instance) -> list[str]:
    kinds = {"process": device.processes, "graphics": device.graphics, "mps": device.mps}
    return [f"{kind} {_process(process)}" for kind, processes in kinds.items() for process in processes]


def _process(process: Process) -> str:
    memory = "-" if process.memory is None else process.memory
    return f"{process.pid} {memory}" + ("" if process.sm is None else f" {_reading(process.sm)}")


def _scripts(errors: Mapping[str, int], delays: Mapping[str, int], hangs: Sequence[str]) -> list[str]:
    scripts = {"error": errors, "delay_us": delays, "hang": dict.fromkeys(hangs, 1)}
    return [f"{word} {function} {number}" for word, said in scripts.items() for function, number in said.items()]
