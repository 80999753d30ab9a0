"""What processes of this machine have used so far: CPU time, memory, bytes read and written. It reads /proc."""

import os

from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.values import Callable, Iterable, Mapping, NamedTuple, TypeVar

from .leftovers import Process, below, read_entry, read_table

T = TypeVar("T")
_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
# Of /proc/PID/stat, counted from the state of the process.
_TIMES, _RESIDENT = slice(11, 15), 21
_CGROUPS = "/sys/fs/cgroup"


class Usage(NamedTuple):
    """Of some processes together: CPU seconds, also of what they waited for, and bytes.

    Memory that several share is counted for each. `cores` is how many they may use.
    """

    seconds: float
    memory: int
    read: int
    written: int
    cores: float


def usage_by_session(whose: Callable[[Process], T | None]) -> dict[T, Usage]:
    """What the sessions of each owner use: all processes in them, and all below their leaders."""
    table = read_table()
    leaders: dict[T, list[Process]] = {}
    for process in table.values():
        owner = whose(process) if process.pid == process.session else None
        if owner is not None:
            leaders.setdefault(owner, []).append(process)
    in_session: dict[int, list[Process]] = {}
    for process in table.values():
        in_session.setdefault(process.session, []).append(process)
    quota = _quota()
    return {
        owner: _usage(
            {each.pid for each in (*below(table, found), *(one for leader in found for one in in_session[leader.pid]))},
            min(quota, _cores(found[0].pid)),
        )
        for owner, found in leaders.items()
    }


def _usage(pids: Iterable[int], cores: float) -> Usage:
    seconds = memory = read = written = 0.0
    for pid in pids:
        fields = read_entry(pid, "stat").rpartition(b") ")[2].split()
        if len(fields) > _RESIDENT:
            seconds += sum(map(int, fields[_TIMES])) / _TICKS
            memory += int(fields[_RESIDENT]) * _PAGE
        io = _pairs(read_entry(pid, "io"))
        read, written = read + io.get(b"read_bytes", 0), written + io.get(b"write_bytes", 0)
    return Usage(seconds, int(memory), int(read), int(written), cores)


def _pairs(lines: bytes) -> Mapping[bytes, int]:
    pairs = [line.partition(b": ") for line in lines.splitlines()]
    return {name: int(value) for name, _, value in pairs if value.isdigit()}


def _cores(pid: int) -> float:
    """On how many a process may run."""
    with suppress(OSError):
        return len(os.sched_getaffinity(pid))
    return float("inf")


def _quota() -> float:
    """How many cores this process and all of its control groups may use at once, as in a container."""
    with suppress(OSError):
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            path = next((line.strip()[3:] for line in file if line.startswith("0::")), "")
        parts = [part for part in path.split("/") if part not in ("", "..")]
        paths = ["/".join((_CGROUPS, *parts[:length])) for length in range(len(parts) + 1)]
        return min(map(_quota_of, paths))
    return float("inf")


def _quota_of(group: str) -> float:
    try:
        with open(f"{group}/cpu.max", encoding="utf-8") as file:
            most, period = file.read().split()
    except (OSError, ValueError):  # the topmost one has no such file
        return float("inf")
    return float("inf") if most == "max" else int(most) / int(period)
