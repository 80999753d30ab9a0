"""The machine file, /etc/simple_gpu_scheduler.toml: what its administrator has set for all users.

It is optional. If it exists, it must be trusted, read and understood: nothing in it is ever silently ignored. The
limits are rules of conduct, not access control, since a user could run another copy of the program. Only the command
line knows what the [defaults] mean.
"""

import errno
import os
import stat

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.jobs import GpuCap
from simple_gpu_scheduler.base.units import parse_size
from simple_gpu_scheduler.base.values import Any, Callable, Mapping, NamedTuple

from .names import parse_gpus

MACHINE_FILE = "/etc/simple_gpu_scheduler.toml"


class MachineLimits(NamedTuple):
    """The section [limits]; None: no limit."""

    gpus: tuple[str, ...] | None = None
    gpus_per_run: int | None = None
    jobs_per_gpu: int | None = None
    max_used_memory: int | None = None
    share_with: tuple[str, ...] | None = None
    ignore_occupancy: bool = True


class MachineFile(NamedTuple):
    """The file's content; `path` is empty if there is none. The defaults are as written."""

    path: str = ""
    lease_directory: str = ""
    defaults: Mapping[str, Any] = {}
    limits: MachineLimits = MachineLimits()

    @property
    def cap(self) -> GpuCap | None:
        """How many GPUs a run may hold at once, if there is a limit."""
        most = self.limits.gpus_per_run
        return GpuCap(most, self.path) if most else None


def read_machine_file(path: str = MACHINE_FILE) -> MachineFile:
    """Read it; a UserError says what is wrong with it. If there is no file, this costs one system call."""
    try:
        state = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return MachineFile()
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        if stat.S_ISLNK(state.st_mode):
            state = os.stat(path)  # what it points to may be missing, with the limits in it
    except OSError as error:
        raise _unreadable(path, error) from None
    version = (path, state.st_dev, state.st_ino, state.st_mtime_ns, state.st_size)
    if version not in _last_read:  # it is looked at several times in a run
        content = _read(path)
        _last_read.clear()
        _last_read[version] = content
    return _last_read[version]


_last_read: dict[tuple[object, ...], MachineFile] = {}


def _read(path: str) -> MachineFile:
    from simple_gpu_scheduler.system.files import read_of_root  # noqa: PLC0415 - as below, with ctypes

    try:
        return _checked(path, _parse(read_of_root(path)))
    except OSError as error:
        raise _unreadable(path, error) from None
    except (UserError, ValueError) as error:
        raise UserError(f"{path}: {error}") from None


def _unreadable(path: str, error: OSError) -> UserError:
    if error.errno == errno.EACCES:
        way_out = f"all users must be able to; root can run: chmod 644 {path}"
    else:
        way_out = "replace it, or delete it if this machine needs none"
    return UserError(f"cannot read {path}: {error.strerror}; {way_out}")


def _parse(data: bytes) -> dict[str, Any]:
    from simple_gpu_scheduler.base.extras import toml_reader  # noqa: PLC0415 - few machines have such a file

    loads = toml_reader()
    try:
        table: dict[str, Any] = loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UserError(f"line {data.count(10, 0, error.start) + 1} is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"this is not TOML: {error}") from None
    return table


def _checked(path: str, table: dict[str, Any]) -> MachineFile:
    _refuse_unknown(table, ("lease-directory", "defaults", "limits"), "")
    for name in ("defaults", "limits"):
        if not isinstance(table.get(name, {}), dict):
            raise UserError(f"{name} must be a section: write [{name}] on a line of its own, and its keys below it")
    return MachineFile(
        path, _directory(table.get("lease-directory", "")), table.get("defaults", {}), _limits(table.get("limits", {}))
    )


def _directory(value: object) -> str:
    if value == "":
        return ""
    if not isinstance(value, str) or not os.path.isabs(value):
        raise UserError('lease-directory must be an absolute path, such as "/var/lib/simple_gpu_scheduler"')
    return os.path.normpath(value)


def _limits(table: dict[str, Any]) -> MachineLimits:
    _refuse_unknown(table, LIMITS, "[limits] ")
    found: dict[str, Any] = {}
    for name, value in table.items():
        try:
            found[name.replace("-", "_")] = LIMITS[name](value)
        except (UserError, ValueError) as error:
            raise UserError(f"[limits] {name}: {error}") from None
    return MachineLimits(**found)


def _refuse_unknown(table: Mapping[str, Any], known: "Mapping[str, Any] | tuple[str, ...]", where: str) -> None:
    for name in table:
        if name not in known:
            raise UserError(f"{where}{name}: unknown key; the keys are {', '.join(known)}")


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UserError("must be a whole number (1 or more)")
    return value


def _size(value: object) -> int:
    if not isinstance(value, str):
        raise UserError('must be a size in quotes, such as "2G"')
    return parse_size(value)


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise UserError("must be true (allowed) or false (not allowed)")
    return value


def _gpus(value: object) -> tuple[str, ...] | None:
    names = parse_gpus(words_of(value))
    return names or None  # all


def _users(value: object) -> tuple[str, ...]:
    return () if value == [] else tuple(words_of(value))


def words_of(value: object) -> list[str]:
    """What may be written as one word or as an array of them."""
    words = value if isinstance(value, list) else [value]
    if not words or not all(isinstance(word, str | int | float) and not isinstance(word, bool) for word in words):
        raise UserError("must be text in quotes, a number, or an array of these")
    return [str(word) for word in words]


LIMITS: Mapping[str, Callable[[object], object]] = {
    "gpus": _gpus,
    "gpus-per-run": _number,
    "jobs-per-gpu": _number,
    "max-used-memory": _size,
    "share-with": _users,
    "ignore-occupancy": _truth,
}
