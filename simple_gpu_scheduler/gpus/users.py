"""Who computes on a GPU: pids from NVML -> processes of this machine, their owners and programs.

It reads /proc and the user database; it knows nothing of GPUs or when they are free.
"""

import os
import time
from collections.abc import Collection
from typing import Protocol

from simple_gpu_scheduler.system.leftovers import Process, read_process
from simple_gpu_scheduler.system.users import owner, program, user_name

from . import Key
from .occupancy import User

_TICKS = os.sysconf("SC_CLK_TCK")


class OwnProcesses(Protocol):
    """Recognises our own processes."""

    def attempt_of(self, pid: int) -> Key | None:
        """The attempt of ours that a process belongs to."""

    def includes(self, pid: int) -> bool:
        """Whether a process is ours."""


def identify(pid: int, memory: int | None, family: OwnProcesses, tolerated: Collection[int]) -> User:
    """Describe a process that uses a GPU. `tolerated` are the uids of users to ignore."""
    process = read_process(pid)
    if process is None or process.has_ended:
        return User(pid, memory, "unseen")
    attempt = family.attempt_of(pid)
    if attempt or family.includes(pid):
        return _describe(process, User(pid, memory, "ours", attempt))
    return _describe(process, User(pid, memory, "tolerated" if owner(pid) in tolerated else "others"))


def _describe(process: Process, user: User) -> User:
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - process.born / _TICKS
    return user._replace(name=user_name(owner(process.pid)), program=program(process.pid), age=max(0.0, age))
