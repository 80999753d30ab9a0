"""GPUs as values, and the probe protocol. The other files name, list, read and judge them.

A GPU is known by its id, as in a job's CUDA_VISIBLE_DEVICES, and by its UUID, which means the same to every process.
"""

from simple_gpu_scheduler.base.jobs import Key
from simple_gpu_scheduler.base.units import show_duration
from simple_gpu_scheduler.base.values import Mapping, NamedTuple, Protocol, Sequence

NO_LIMIT = float("inf")
# A bare CUDA context takes more than this, an idle GPU and a small desktop less.
DEFAULT_MAX_USED = 256 * 1024 * 1024
# Seconds; a script takes less to start and load its libraries, most of the time.
DEFAULT_FREE_FOR = 10.0
# Seconds after which a driver counts as one that does not answer. Most looks take it a few milliseconds.
SILENCE = 5.0
# The cause of a `Reason`: memory of nobody in particular.
USED_MEMORY = "used memory"


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
    """Why a GPU is not free: in words, and a cause that changes when the reason does.

    `is_mine`: only processes of this user, outside the run, are the reason.
    """

    sentence: str
    cause: str
    by_occupancy: bool = False
    is_mine: bool = False


def silence(seconds: float) -> str:
    """That the driver has not answered for so long."""
    return f"the NVIDIA driver has not answered for {show_duration(seconds)}"


class Neighbour(NamedTuple):
    """A process of others on a GPU: its user, and `who` it is in words."""

    pid: int
    user: str
    who: str


class Look(NamedTuple):
    """The result of one look at a GPU: why it is not free because of others, and the memory for our jobs.

    `free` is what NVML shows as free, `held` what each of our attempts uses, and `others` are the processes that are
    neither ours nor tolerated.
    """

    reason: Reason | None = None
    free: float = NO_LIMIT
    held: Mapping[Key, int] = {}
    others: Sequence[Neighbour] = ()


class Tolerance(NamedTuple):
    """What the user tolerates on a free GPU, and for how many seconds others must have left it alone."""

    free_memory: int = 0
    max_used_memory: int = DEFAULT_MAX_USED
    max_utilization: int | None = None
    free_for: float = DEFAULT_FREE_FOR


class Answer(NamedTuple):
    """A look at a GPU; and the GPU, with its UUID if that was unknown and is known now."""

    gpu: Gpu
    look: Look = Look()


class LookCame(NamedTuple):
    """The answer about a GPU that took longer."""

    gpu: str
    answer: Answer


class Probe(Protocol):
    """Looks at the hardware. `sees_others`: whether it can tell who is on a GPU."""

    sees_others: bool

    def look(self, gpu: Gpu, *, shared: bool) -> Answer | None:
        """Look at one GPU, now; `shared` when attempts of ours are on it.

        None if that takes longer than a moment: then a `LookCame` brings the answer, and until it has come, this GPU
        must not be asked about again.
        """

    def remarks(self) -> list[str]:
        """Remarks for the user, each once."""

    def close(self) -> None:
        """Nothing will be asked any more."""


class FixedProbe:
    """Trusts the user: the GPUs are free."""

    sees_others = False

    def look(self, gpu: Gpu, *, shared: bool) -> Answer:  # noqa: ARG002 - the protocol's name
        """Nothing is there."""
        return Answer(gpu)

    def remarks(self) -> list[str]:
        """There are none."""
        return []

    def close(self) -> None:
        """Nothing is open."""


class GpuVitals(NamedTuple):
    """What a GPU is doing, as far as known: per cent, bytes, degrees, watts.

    `recent` is the utilisation of the last minutes, as `Recent` gives it.
    """

    gpu: str
    utilization: int | None = None
    used: int | None = None
    total: int | None = None
    temperature: int | None = None
    power: float | None = None
    recent: Sequence[float | None] = ()
