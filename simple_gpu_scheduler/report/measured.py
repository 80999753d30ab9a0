"""The figures of an attempt as the journal has them, and nothing else: a field of a wrong type is left out. Pure."""

from collections.abc import Iterable, Mapping

from simple_gpu_scheduler.base.text import visible
from simple_gpu_scheduler.base.values import Any
from simple_gpu_scheduler.journal.fields import is_sound

Measured = dict[str, Any]

_FIGURES = ("utilization", "memory_copy", "memory", "device_memory", "temperature", "power", "clock")
_NUMBERS = ("seconds", "total_memory", "idle", "energy", "shared")
_COUNTS = ("throttled", "traffic", "xids")


def sound(record: Mapping[str, Any]) -> Measured:
    """The figures of an `attempt measured`, without those that are not of their type."""
    gpus = [_sound_gpu(each) for each in record.get("gpus", ())]
    cpu = {name: value for name, value in record.get("cpu", {}).items() if _is_number(value)}
    return {"gpus": gpus, "cpu": cpu}


def replaced(own: Measured | None, other: Measured | None) -> Measured | None:
    """The figures of an attempt, with those of the GPUs that are also in the other ones taken from there."""
    if own is None or other is None:
        return own or other
    gpus = {gpu["gpu"]: gpu for gpu in (*own["gpus"], *other["gpus"])}
    return {"gpus": list(gpus.values()), "cpu": {**own["cpu"], **other["cpu"]}}


def tell_cores(attempts: Iterable[Measured]) -> None:
    """Add how many cores an attempt may use where it ended before that was read, if all others of the run agree."""
    used = [each["cpu"] for each in attempts if "seconds" in each["cpu"]]
    known = {cpu["cores"] for cpu in used if "cores" in cpu}
    for cpu in used if len(known) == 1 else ():
        cpu.setdefault("cores", *known)


def has_shared(records: Iterable[Mapping[str, Any]]) -> bool:
    """Whether jobs shared a GPU, so that its figures are not the sum of theirs, and only curves tell them."""
    measured = (each for each in records if each["event"] == "attempt measured" and is_sound(each))
    return any(gpu.get("shared") for each in measured for gpu in each.get("gpus", ()))


def _sound_gpu(values: Mapping[str, Any]) -> Measured:
    found = {name: values[name] for name in _NUMBERS if _is_number(values.get(name))}
    found |= {name: values[name] for name in _FIGURES if _are_figures(values.get(name))}
    found |= {name: values[name] for name in _COUNTS if _are_numbers(values.get(name))}
    of_gpu = values.get("of_gpu")
    if isinstance(of_gpu, list):
        found["of_gpu"] = [each for each in of_gpu if isinstance(each, str)]
    if values.get("by_power") is True:
        found["by_power"] = True
    return {"gpu": visible(values["gpu"]), "seconds": 0.0} | found


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and value >= 0  # type: ignore[operator] # mypy cannot see why


def _are_numbers(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _are_figures(value: object) -> bool:
    return isinstance(value, dict) and _are_numbers(value) and value.keys() >= {"mean", "max"}
