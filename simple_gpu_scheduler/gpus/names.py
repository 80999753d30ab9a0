"""Names of GPUs as people type them, and the GPUs they mean. Pure: the devices are passed in.

`0`, `0-3`, `0,2`, a UUID or a prefix of it, a MIG instance by its UUID or as `0:1`, and `all`.
"""

from simple_gpu_scheduler.base.stdlib import re
from simple_gpu_scheduler.base.values import Iterable, Iterator, Mapping, Sequence

from . import Device, Gpu

ALL = "all"
_MOST_DIGITS = 4
_HEX = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_WHOLE_UUID = rf"(?:GPU-|MIG-|MIG-GPU-){_HEX}(?:/\d+/\d+)?"


def _is_uuid(text: str) -> bool:
    """Whether it looks like a UUID or the start of one."""
    kind, dash, rest = text.partition("-")
    plain = rest.replace("/", "").replace("-", "")
    return kind in ("GPU", "MIG") and bool(dash and rest) and text.isascii() and (not plain or plain.isalnum())


def _is_whole_uuid(text: str) -> bool:
    return _is_uuid(text) and re.fullmatch(_WHOLE_UUID, text, re.ASCII) is not None


def _is_indexes(text: str) -> bool:
    """Whether it is `0` or `0-3`."""
    return _is_one_or_two(text, "-")


def _is_instance(text: str) -> bool:
    """Whether it is `0:1`."""
    return ":" in text and _is_one_or_two(text, ":")


def _is_one_or_two(text: str, between: str) -> bool:
    numbers = text.split(between, 1)
    return all(each.isascii() and each.isdigit() and len(each) <= _MOST_DIGITS for each in numbers)


def looks_like_gpus(word: str) -> bool:
    """Whether a word names GPUs and nothing else: `0`, `0,1`, `0-3`, `0:1`, `all`, a UUID."""
    parts = _parts(word)
    return bool(parts) and all(
        part == ALL or _is_indexes(part) or _is_instance(part) or _is_uuid(part) for part in parts
    )


def parse_gpus(words: Iterable[str]) -> tuple[str, ...]:
    """The names in the words, with ranges expanded; nothing for `all`. A ValueError says what is wrong."""
    parts = [part for word in words for part in _parts(word)]
    if ALL in parts:
        if len(parts) > 1:
            raise ValueError("'all' means every GPU; do not name others with it")
        return ()
    names: dict[str, None] = {}
    for name in (name for part in parts for name in _expand(part)):
        if name in names:
            raise ValueError(f"GPU {name} is given twice")
        names[name] = None
    return tuple(names)


def choose(names: Sequence[str], devices: Sequence[Device], *, by_uuid: bool = False) -> tuple[Gpu, ...]:
    """The GPUs that the names mean; a ValueError lists those that exist."""
    found = [device for name in names for device in _instances(_find(name, devices))]
    for at, device in enumerate(found):
        if device in found[:at]:
            raise ValueError(f"GPU {device.number} ({device.uuid}) is given twice")
    # CUDA is not known to take indexes and UUIDs in one list, so one UUID makes all of them UUIDs.
    by_uuid = by_uuid or any(not _is_indexes(name) for name in names)
    return as_gpus(found, by_uuid=by_uuid)


def choose_all(devices: Sequence[Device], *, by_uuid: bool = False) -> tuple[Gpu, ...]:
    """All GPUs."""
    usable = [device for device in devices if device.instances or not device.has_mig]
    return as_gpus([each for device in usable for each in _instances(device)], by_uuid=by_uuid)


def as_gpus(devices: Sequence[Device], *, by_uuid: bool) -> tuple[Gpu, ...]:
    """These devices, named as CUDA needs it: by index, except MIG instances, which have no index for CUDA."""
    by_uuid = by_uuid or any(":" in device.number for device in devices)
    return tuple(
        Gpu(device.uuid if by_uuid and device.uuid else device.number, device.uuid, device.total) for device in devices
    )


def choose_unlisted(names: Sequence[str]) -> tuple[Gpu, ...]:
    """The GPUs that the names mean if none can be listed: indexes and full UUIDs are trusted."""
    for name in names:
        if not _is_indexes(name) and not _is_whole_uuid(name):
            raise ValueError(f"{name} cannot be looked up without NVML; use an index (0) or a full UUID")
    return tuple(Gpu(name, "" if _is_indexes(name) else name) for name in names)


def need_listing(names: Sequence[str], *, has_uuids: bool) -> bool:
    """Whether NVML is needed to tell which GPUs the names mean; `has_uuids`: the UUIDs of all indexes are known."""
    return not all(_is_whole_uuid(name) or (has_uuids and _is_indexes(name)) for name in names)


def visible(variable: str, devices: Sequence[Device]) -> tuple[str, ...]:
    """The names in an inherited CUDA_VISIBLE_DEVICES. As in CUDA, `-1` hides itself and what follows."""
    names = []
    for name in _parts(variable):
        if name.startswith("-") or name.lower() in ("nodevfiles", "none", "void"):
            break
        _find(name, devices)
        names.append(name)
    return tuple(dict.fromkeys(names))


def order_is_ours(environment: Mapping[str, str]) -> bool:
    """Whether CUDA will number GPUs as we do: in PCI bus order."""
    return environment.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID") == "PCI_BUS_ID"


def _find(name: str, devices: Sequence[Device]) -> Device:
    if name.isascii() and name.isdigit():
        matches = [device for device in devices if device.number == str(int(name))]
    elif _is_instance(name):
        matches = [instance for device in devices for instance in device.instances if instance.number == name]
    else:
        matches = [device for device in _all(devices) if device.uuid.startswith(name)] if _is_uuid(name) else []
        matches = [device for device in matches if device.uuid == name] or matches
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ValueError(f"{name} is ambiguous: {', '.join(device.uuid for device in matches)}; use a longer prefix")
    raise ValueError(f"there is no GPU {name}; {_listed(devices)}")


def _all(devices: Sequence[Device]) -> Iterator[Device]:
    for device in devices:
        yield device
        yield from device.instances


def _instances(device: Device) -> Sequence[Device]:
    """What can be used of it: its instances, if MIG divides the GPU."""
    if device.has_mig and not device.instances:
        raise ValueError(f"GPU {device.number} is in MIG mode and has no instances; create some with nvidia-smi mig")
    return device.instances or (device,)


def _listed(devices: Sequence[Device]) -> str:
    names = [f"{device.number} ({device.model}, {device.uuid})" for device in _all(devices)]
    if not names:
        return "none was found"
    return f"there {'is' if len(names) == 1 else 'are'} {', '.join(names)}"


def _parts(word: str) -> list[str]:
    return word.replace(",", " ").split()


def _expand(part: str) -> list[str]:
    if _is_uuid(part) or _is_instance(part):
        return [part]
    if not _is_indexes(part):
        raise ValueError(
            f"'{part}' is not a GPU; use an index (0), a range (0-3), a UUID (GPU-...), a MIG instance (0:1) or all"
        )
    first, _, last = part.partition("-")
    low, high = int(first), int(last or first)
    if low > high:
        raise ValueError(f"'{part}' is backwards; write {high}-{low}")
    return [str(index) for index in range(low, high + 1)]
