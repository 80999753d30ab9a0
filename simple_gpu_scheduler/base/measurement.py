"""What was measured of an attempt, as values: the figures of its GPUs and of the CPU, and their curves."""

from .values import Mapping, NamedTuple, Sequence


class Figures(NamedTuple):
    """A quantity over some time."""

    mean: float
    max: float
    p95: float | None = None


class GpuUse(NamedTuple):
    """What an attempt did to one of its GPUs; None or nothing for what was not told.

    `seconds` is for how long there are figures, `idle` for how long the utilisation was 0. `energy` is in joules, and
    `by_power` if it was not counted by the GPU but computed from its power. `throttled` has seconds by reason,
    `traffic` bytes by `pcie_sent` and the like, `xids` how often each error came. For `shared` seconds other attempts
    of ours were there too: then `of_gpu` names the figures that are the GPU's and not the attempt's. `now` has the last
    reading of the quantities of a curve while it runs.
    """

    gpu: str
    seconds: float = 0.0
    utilization: Figures | None = None
    memory_copy: Figures | None = None
    memory: Figures | None = None
    device_memory: Figures | None = None
    total_memory: int | None = None
    idle: float | None = None
    temperature: Figures | None = None
    power: Figures | None = None
    clock: Figures | None = None
    energy: float | None = None
    by_power: bool = False
    throttled: Mapping[str, float] | None = None
    traffic: Mapping[str, int] = {}
    xids: Mapping[str, int] = {}
    shared: float = 0.0
    of_gpu: Sequence[str] = ()
    now: Mapping[str, float] = {}


class CpuUse(NamedTuple):
    """What the processes of an attempt used: CPU time, memory, bytes read from and written to disks.

    `cores` is how many they may use. `peak_memory` adds up processes that ran at the same time, as far as they were
    seen.
    """

    seconds: float | None = None
    cores: float | None = None
    peak_memory: int | None = None
    read: int | None = None
    written: int | None = None


class Measurement(NamedTuple):
    """All that was measured of an attempt."""

    gpus: tuple[GpuUse, ...] = ()
    cpu: CpuUse = CpuUse()


class Stillness(NamedTuple):
    """Since when an attempt has been doing nothing new, by the loop's clock and as far as was `seen`.

    `constant`: since when the utilisation of none of its GPUs has changed, or, if it has no GPU, since when it has used
    no CPU time. `idle`: since when all its GPUs have been at 0; None if they are not. `levels` are their utilisations.
    """

    seen: float
    constant: float
    idle: float | None = None
    levels: Sequence[float] = ()


class CurvePoint(NamedTuple):
    """A piece of a curve: from when, for how long there are readings, each quantity's mean and maximum."""

    at: float
    seconds: float
    means: tuple[float | None, ...]
    maxima: tuple[float | None, ...]


CPU = "cpu"
# The quantities of a curve, of a GPU and of the CPU.
GPU_CURVE = ("utilization", "memory_copy", "memory", "temperature", "power")
CPU_CURVE = ("cores", "memory")


class Curve(NamedTuple):
    """How the quantities of an attempt changed on a GPU, or on the CPU; times are since the attempt began."""

    gpu: str
    points: Sequence[CurvePoint]

    @property
    def names(self) -> Sequence[str]:
        """The quantities."""
        return CPU_CURVE if self.gpu == CPU else GPU_CURVE


class Measured(NamedTuple):
    """What an attempt did, and its curves, whose times are since `began` by the loop's clock."""

    began: float
    measurement: Measurement
    curves: Sequence[Curve] = ()
