"""What the driver says without NVML: the UUIDs of GPUs, from its files under /proc, and whether NVML is installed."""

import os
import re

from simple_gpu_scheduler.system.files import can_load

from . import Device

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
