"""The state of one GPU of a run: leased or not, looked at, waited for, and why it is not free. Pure."""

from typing import Protocol

from simple_gpu_scheduler.base.gpu_waits import Wait
from simple_gpu_scheduler.base.units import show_size
from simple_gpu_scheduler.gpus.leases import Lease
from simple_gpu_scheduler.scheduling.slots import Room

from . import Gpu, Look

# The memory of a GPU that has not been looked at yet.
UNKNOWN = Room()


class Demand(Protocol):
    """What the waiting jobs need."""

    @property
    def wants_gpus(self) -> int:
        """How many GPUs the widest job needs; 0 if none waits for GPUs."""

    @property
    def wants_memory(self) -> int:
        """The most memory per GPU, in bytes, that a job needs; 0 if none declared any."""


class GpuState:
    """Changed only by the allotment."""

    def __init__(self, gpu: Gpu, lease: Lease) -> None:
        self.gpu = gpu
        self.lease = lease
        self.look = Look()
        self.room = UNKNOWN
        self.marks: list[bytes] = []  # of our attempts on it
        self.is_held = self.in_line = self.was_free_behind_line = False
        self.is_wanted = False  # by another scheduler, so no more of our attempts may share it
        self.idle_since = 0.0
        self.gone = False
        self.unleasable = ""  # the problem with its lease files

    @property
    def may_be_used(self) -> bool:
        """As far as is known."""
        return not (self.in_line or self.is_wanted or self.unleasable or self.look.reason or self.gone)

    def wait(self, demand: Demand) -> Wait | None:
        """Why it is not free, unless because of our own jobs."""
        gpu, reason = self.gpu.id, self.look.reason
        holder = self.lease.holder() if self.in_line else None
        if self.gone:
            return None
        if holder:
            return Wait(gpu, holder.sentence, f"leased by {holder.name}")
        if self.unleasable:
            return Wait(gpu, self.unleasable, "lease files")
        if reason:
            return Wait(gpu, reason.sentence, reason.cause, reason.by_occupancy)
        if self.may_be_used and self.room.free + sum(self.room.held.values()) < demand.wants_memory:
            needs = f"{show_size(self.room.free)} free, but a job needs {show_size(demand.wants_memory)}"
            return Wait(gpu, needs, "memory")
        return None
