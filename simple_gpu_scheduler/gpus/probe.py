"""The probe that asks NVML which processes are on a GPU, and judges the answer."""

import os
import time

from simple_gpu_scheduler.base.jobs import Key
from simple_gpu_scheduler.base.values import Collection, Protocol
from simple_gpu_scheduler.system.leftovers import Process, is_hidden, read_process
from simple_gpu_scheduler.system.users import owner, program, user_name

from . import Answer, Gpu, Look, Tolerance
from .nvml import Nvml, Reading
from .occupancy import User, Whose, judge

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
    if process is None and is_hidden(pid):
        return _hidden(User(pid, memory, "others"), tolerated)
    if process is None or process.has_ended:
        return User(pid, memory, "unseen")
    attempt = family.attempt_of(pid)
    if attempt or family.includes(pid):
        return _describe(process, User(pid, memory, "ours", attempt))
    uid = owner(pid)
    whose: Whose = "tolerated" if uid in tolerated else "others"
    return _describe(process, User(pid, memory, whose, is_mine=uid == os.getuid()))


def _hidden(user: User, tolerated: Collection[int]) -> User:
    """With hidepid=1 its owner can be read, with hidepid=2 nothing."""
    uid = owner(user.pid)
    whose: Whose = "tolerated" if uid in tolerated else "others"
    return user._replace(whose=whose, name=user_name(uid) if uid >= 0 else "", age=None)


def _describe(process: Process, user: User) -> User:
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - process.born / _TICKS
    return user._replace(name=user_name(owner(process.pid)), program=program(process.pid), age=max(0.0, age))


_UNSEEN = (
    "NVML reports processes that are not visible from here, as in a container, so a GPU's used memory decides whether "
    "it is free (--max-used-memory)"
)
_UNTOLD = (
    "NVML does not report which processes use a GPU, so its used memory decides whether it is free (--max-used-memory)"
)
_NO_UTILIZATION = "gpu {}: NVML does not report its utilisation, so --max-utilization is ignored for it"


class NvmlProbe:
    """Looks at GPUs through NVML, which may take long. Several threads may do so, each at a GPU of its own."""

    sees_others = True

    def __init__(
        self,
        nvml: Nvml,
        family: OwnProcesses,
        tolerance: Tolerance,
        tolerated: Collection[int] = (),
        *,
        may_identify: bool = False,
    ) -> None:
        """`may_identify`: a GPU's number is all that its jobs need, so its UUID may become known later."""
        self._nvml = nvml
        self._may_identify = may_identify
        self._family = family
        self._tolerance = tolerance
        self._tolerated = tolerated
        self._remarks: dict[str, bool] = {}  # whether it was reported

    def answer(self, gpu: Gpu, *, shared: bool) -> Answer:
        """What `Probe.look` gives."""
        if not gpu.uuid and self._may_identify:
            gpu = self._nvml.identify(gpu)
        return Answer(gpu, self._look(gpu, shared=shared))

    def _look(self, gpu: Gpu, *, shared: bool) -> Look:
        wants_utilization = self._tolerance.max_utilization is not None
        reading, users = self._read(gpu, utilization=wants_utilization)
        if any(user.whose == "unseen" for user in users) and _UNSEEN not in self._remarks:
            reading, users = self._read(
                gpu, utilization=wants_utilization
            )  # a process that just ended is gone from both
            self._remark_if(any(user.whose == "unseen" for user in users), _UNSEEN)
        self._remark_if(reading.processes is None and not reading.problem, _UNTOLD)
        is_untold = wants_utilization and reading.utilization is None and not reading.problem
        self._remark_if(is_untold, _NO_UTILIZATION.format(gpu.id))
        return judge(reading, users, self._tolerance, shared=shared)

    def examine(self, gpu: Gpu) -> tuple[Reading, list[User], Look]:
        """All that is known of a GPU, and the result of a look."""
        reading, users = self._read(gpu, utilization=True)
        return reading, users, judge(reading, users, self._tolerance, shared=False)

    def _read(self, gpu: Gpu, *, utilization: bool) -> tuple[Reading, list[User]]:
        reading = self._nvml.look(gpu, utilization=utilization)
        users = [identify(pid, memory, self._family, self._tolerated) for pid, memory in reading.processes or ()]
        return reading, users

    def remarks(self) -> list[str]:
        """See `Probe`."""
        fresh = [remark for remark, is_said in list(self._remarks.items()) if not is_said]
        self._remarks.update(dict.fromkeys(fresh, True))
        return fresh

    def _remark_if(self, condition: bool, remark: str) -> None:
        if condition:
            self._remarks.setdefault(remark, False)
