"""GPUs as values, and the probe protocol. The other files name, list, read and judge them.

A GPU is known by its id, as in a job's CUDA_VISIBLE_DEVICES, and by its UUID, which means the same to every process.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from simple_gpu_scheduler.base.jobs import Key

NO_LIMIT = float("inf")
# A bare CUDA context takes more than this, an idle GPU and a small desktop less.
DEFAULT_MAX_USED = 256 * 1024 * 1024


class Device(NamedTuple):
    """A GPU as the driver lists it, or a MIG instance of one. `number` is `0` or, for an instance, `0:1`."""

    number: str
    uuid: str
    model: str = ""
    total: float = NO_LIMIT
    instances: "Sequence[Device]" = ()
    has_mig: bool = False
    problem: str = ""


class Gpu(NamedTuple):
    """A GPU, or a MIG instance, that a run may use. Its `uuid` is empty if unknown."""

    id: str
    uuid: str = ""
    total: float = NO_LIMIT

    @property
    def lease_name(self) -> str:
        """Its name among all schedulers of this machine."""
        return (self.uuid or f"index-{self.id}").replace("/", "_")


class Reason(NamedTuple):
    """Why a GPU is not free: in words, and a cause that changes when the reason does."""

    sentence: str
    cause: str
    by_occupancy: bool = False


class Look(NamedTuple):
    """The result of one look at a GPU: why it is not free because of others, and the memory for our jobs.

    `free` is what NVML shows as free, and `held` what each of our attempts uses.
    """

    reason: Reason | None = None
    free: float = NO_LIMIT
    held: Mapping[Key, int] = {}
    is_lost: bool = False


class Tolerance(NamedTuple):
    """What the user tolerates on a free GPU."""

    free_memory: int = 0
    max_used_memory: int = DEFAULT_MAX_USED
    max_utilization: int | None = None


class Probe(Protocol):
    """Looks at the hardware."""

    def look(self, gpu: Gpu, *, shared: bool) -> Look:
        """One GPU, now; `shared` when attempts of ours are on it."""

    def remarks(self) -> list[str]:
        """Remarks for the user, each once."""


class FixedProbe:
    """Trusts the user: the GPUs are free."""

    def look(self, _gpu: Gpu, *, shared: bool) -> Look:  # noqa: ARG002 - the protocol's name
        """Nothing is there."""
        return Look()

    def remarks(self) -> list[str]:
        """There are none."""
        return []


class GpuVitals(NamedTuple):
    """What a GPU is doing, as far as known: per cent, bytes, degrees, watts."""

    gpu: str
    utilization: int | None = None
    used: int | None = None
    total: int | None = None
    temperature: int | None = None
    power: float | None = None
