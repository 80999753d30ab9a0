"""GPUs as values, and the probe that looks at them. The files beside this one name, list, read and judge them.

A GPU is known by what a job finds in CUDA_VISIBLE_DEVICES (its id) and by its UUID, which means the same to everybody.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

Key = tuple[int, int]  # of one of our attempts
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
    """A GPU, or a MIG instance, that a run may use. Its `uuid` is empty where nobody can tell it."""

    id: str
    uuid: str = ""
    total: float = NO_LIMIT

    @property
    def lease_name(self) -> str:
        """What all schedulers of this machine call it."""
        return (self.uuid or f"index-{self.id}").replace("/", "_")


class Reason(NamedTuple):
    """Why a GPU is not free: in words, and what makes it another reason than the last one was."""

    sentence: str
    cause: str
    by_occupancy: bool = False


class Look(NamedTuple):
    """What one look at a GPU told: why others leave it not free, and the memory for jobs of ours.

    `free` is what NVML shows as free, and `held` what each of our attempts has of the rest.
    """

    reason: Reason | None = None
    free: float = NO_LIMIT
    held: Mapping[Key, int] = {}
    is_lost: bool = False


class Tolerance(NamedTuple):
    """What the user lets pass."""

    free_memory: int = 0
    max_used_memory: int = DEFAULT_MAX_USED
    max_utilization: int | None = None


class Probe(Protocol):
    """Looks at the hardware."""

    def look(self, gpu: Gpu, *, shared: bool) -> Look:
        """One GPU, now; `shared` when attempts of ours are on it."""

    def remarks(self) -> list[str]:
        """What a person should know of how it looks, each said once."""


class FixedProbe:
    """Takes the user's word: the GPUs are free."""

    def look(self, _gpu: Gpu, *, shared: bool) -> Look:  # noqa: ARG002 - the protocol's name
        """Nobody is there."""
        return Look()

    def remarks(self) -> list[str]:
        """There is nothing to say."""
        return []


class GpuVitals(NamedTuple):
    """What a GPU does, as far as that is told: per cent, bytes, degrees, watts."""

    gpu: str
    utilization: int | None = None
    used: int | None = None
    total: int | None = None
    temperature: int | None = None
    power: float | None = None
