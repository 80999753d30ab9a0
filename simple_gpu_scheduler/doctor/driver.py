"""What NVML says of the driver and the GPUs, asked in a process of its own: a hung driver must not hang us.

A thread would not do, since a process does not end while one of its threads is stuck in the kernel.
"""

import json
import os
import select
import signal
from collections.abc import Callable

from simple_gpu_scheduler.base.values import Any, NamedTuple
from simple_gpu_scheduler.gpus import Gpu, Tolerance
from simple_gpu_scheduler.gpus.discover import PATIENCE, open_nvml
from simple_gpu_scheduler.gpus.nvml import Nvml
from simple_gpu_scheduler.gpus.probe import NvmlProbe
from simple_gpu_scheduler.system.marks import Family

_MOST = 1 << 20


class GpuFacts(NamedTuple):
    """A GPU: what is wrong with it, whether NVML tells its processes, and how many of them are not visible here."""

    name: str
    problem: str = ""
    tells_processes: bool = True
    unseen: int = 0


class DriverFacts(NamedTuple):
    """Why NVML cannot be used; else the driver's version, and its GPUs."""

    problem: str = ""
    version: str = ""
    gpus: tuple[GpuFacts, ...] = ()
    is_hung: bool = False


def ask_driver(patience: float = PATIENCE) -> DriverFacts:
    """Ask it; if it does not answer, say so."""
    answer = _in_a_child(_asked, patience)
    if answer is None:
        return DriverFacts(f"the NVIDIA driver did not answer within {patience:.0f} s", is_hung=True)
    if not answer:
        return DriverFacts("the NVML query crashed")
    problem, version, gpus = json.loads(answer)
    return DriverFacts(problem, version, tuple(GpuFacts(*gpu) for gpu in gpus))


def _asked() -> Any:
    nvml, problem = open_nvml()
    return (
        (problem, "", ()) if nvml is None else ("", nvml.driver_version(), [_gpu(nvml, each) for each in nvml.devices])
    )


def _gpu(nvml: Nvml, device: Any) -> GpuFacts:
    name = f"GPU {device.number}"
    if device.problem:
        return GpuFacts(name, device.problem)
    reading, users, _ = NvmlProbe(nvml, Family(), Tolerance()).examine(Gpu(device.number, device.uuid))
    unseen = sum(user.whose == "unseen" for user in users)
    return GpuFacts(name, reading.problem, bool(reading.problem) or reading.processes is not None, unseen)


def _in_a_child(ask: Callable[[], Any], patience: float) -> bytes | None:
    """What it answers, as JSON; None if it does not in time, nothing if it crashes."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _answer(ask, writing)
    os.close(writing)
    try:
        if not select.select([reading], [], [], patience)[0]:
            os.kill(child, signal.SIGKILL)  # one that is stuck in the kernel ends when it gets out
            return None
        with os.fdopen(reading, "rb", closefd=False) as file:
            answer = file.read(_MOST)
        os.waitpid(child, 0)
        return answer
    finally:
        os.close(reading)


def _answer(ask: Callable[[], Any], writing: int) -> None:
    """In the child. It keeps no stream open that somebody may read to its end."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        data = json.dumps(ask()).encode()
        with os.fdopen(writing, "wb") as file:
            file.write(data)
    finally:
        os._exit(0)
