"""Which series of a Prometheus are of which GPU, and the queries for them. Pure.

Two programs export GPUs: NVIDIA's dcgm-exporter, and `metrics` of this one.
"""

from collections.abc import Iterable, Mapping, Sequence

from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import NamedTuple

from .selector import among, equal

_MIB = 2.0**20
_UUIDS = ("GPU-", "MIG-")
# What tells the series of one metric apart, as far as it matters: pods and jobs come and go on a GPU.
_LABELS = ("gpu", "UUID", "uuid", "Hostname", "instance", "GPU_I_ID")
_MOST_SHOWN = 5


class ExportedMetric(NamedTuple):
    """Its name, and how much of our unit is 1 in its own."""

    name: str
    factor: float = 1.0


class GpuExporter(NamedTuple):
    """A program that exports GPUs: how it calls the label of their UUIDs, and each quantity."""

    name: str
    uuid: str
    metrics: Mapping[str, ExportedMetric]

    def __hash__(self) -> int:
        """There is one of each name."""
        return hash(self.name)


DCGM = GpuExporter(
    "dcgm-exporter",
    "UUID",
    {
        "utilization": ExportedMetric("DCGM_FI_DEV_GPU_UTIL"),
        "memory_copy": ExportedMetric("DCGM_FI_DEV_MEM_COPY_UTIL"),
        "memory": ExportedMetric("DCGM_FI_DEV_FB_USED", _MIB),
        "free": ExportedMetric("DCGM_FI_DEV_FB_FREE", _MIB),
        "total": ExportedMetric("DCGM_FI_DEV_FB_TOTAL", _MIB),
        "temperature": ExportedMetric("DCGM_FI_DEV_GPU_TEMP"),
        "power": ExportedMetric("DCGM_FI_DEV_POWER_USAGE"),
        "energy": ExportedMetric("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 0.001),
    },
)
OURS = GpuExporter(
    "simple_gpu_scheduler metrics",
    "uuid",
    {
        "utilization": ExportedMetric("sgs_gpu_utilization_ratio", 100.0),
        "memory_copy": ExportedMetric("sgs_gpu_memory_copy_ratio", 100.0),
        "memory": ExportedMetric("sgs_gpu_memory_used_bytes"),
        "total": ExportedMetric("sgs_gpu_memory_total_bytes"),
        "temperature": ExportedMetric("sgs_gpu_temperature_celsius"),
        "power": ExportedMetric("sgs_gpu_power_watts"),
        "energy": ExportedMetric("sgs_gpu_energy_joules_total"),
    },
)
EXPORTERS = (DCGM, OURS)  # of two that know a GPU, the first


class ExportedGpu(NamedTuple):
    """A GPU as an exporter names it in its labels."""

    exporter: GpuExporter
    number: str
    uuid: str
    hostname: str
    instance: str

    @property
    def hosts(self) -> tuple[str, ...]:
        """What its machine is called."""
        return tuple(filter(None, (self.hostname, _host_of(self.instance))))

    def __str__(self) -> str:
        """Its labels, for people."""
        labels = {"gpu": self.number, self.exporter.uuid: self.uuid, "Hostname": self.hostname}
        told = {**labels, "instance": self.instance}
        return safe("{" + ",".join(equal(name, value) for name, value in told.items() if value) + "}")


def exported_gpu(exporter: GpuExporter, labels: Mapping[str, str]) -> ExportedGpu | None:
    """Which GPU a series is of; None for a MIG instance of one, which dcgm-exporter gives the UUID of the whole."""
    if labels.get("GPU_I_ID"):
        return None
    names = ("gpu", exporter.uuid, "Hostname", "instance")
    return ExportedGpu(exporter, *(labels.get(name, "") for name in names))


class KnownGpus(NamedTuple):
    """What a Prometheus has series of: each GPU, and its quantities."""

    gpus: Mapping[ExportedGpu, frozenset[str]]

    def find(self, gpu: str, host: str, *, is_selected: bool) -> list[ExportedGpu]:
        """What is exported of a GPU of ours; a ValueError if it may be one of several GPUs.

        An index is that of a GPU of this host. If series were selected and are all of one machine, it is that machine.
        """
        found = self._with_uuid(gpu) if gpu.startswith(_UUIDS) else self._with_index(gpu, host, is_selected=is_selected)
        if len({each.uuid or each.instance for each in found}) > 1:
            shown = _shown([str(each) for each in found])
            raise ValueError(f"gpu {safe(gpu)} of {safe(host)} may be any of these: {shown}")
        with_figures = [each for each in found if "utilization" in self.gpus[each]] or found
        exporters = [each.exporter for each in with_figures]
        chosen = next((each for each in EXPORTERS if each in exporters), None)
        return [each for each in found if each.exporter == chosen]

    def _with_uuid(self, uuid: str) -> list[ExportedGpu]:
        return [each for each in self.gpus if each.uuid and each.uuid.lower().startswith(uuid.lower())]

    def _with_index(self, index: str, host: str, *, is_selected: bool) -> list[ExportedGpu]:
        with_index = [each for each in self.gpus if each.number == index]
        named = [each for each in with_index if any(is_same_host(host, name) for name in each.hosts)]
        is_one_machine = len({each.hosts for each in self.gpus}) == 1
        return with_index if is_selected and is_one_machine and not named else named

    def shown(self) -> str:
        """The labels of some, for people."""
        return _shown([str(each) for each in self.gpus])


def _shown(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_SHOWN
    return ", ".join(texts[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def know(series: Iterable[Mapping[str, str]]) -> KnownGpus:
    """What these series are of."""
    quantities = {metric.name: (exporter, name) for exporter in EXPORTERS for name, metric in exporter.metrics.items()}
    found: dict[ExportedGpu, set[str]] = {}
    for labels in series:
        exporter, quantity = quantities.get(labels.get("__name__", ""), (None, ""))
        gpu = exported_gpu(exporter, labels) if exporter else None
        if gpu is not None:
            found.setdefault(gpu, set()).add(quantity)
    return KnownGpus({gpu: frozenset(names) for gpu, names in found.items()})


def is_same_host(one: str, other: str) -> bool:
    """Whether two names are of one machine; one of them may be without its domain."""
    one, other = one.lower(), other.lower()
    is_short = "." not in one or "." not in other
    return one == other or (is_short and one.partition(".")[0] == other.partition(".")[0])


def _host_of(instance: str) -> str:
    host, colon, port = instance.rpartition(":")
    return (host if colon and port.isdecimal() else instance).strip("[]")


def all_series(selector: str) -> str:
    """A selector of every series that may be of a GPU."""
    names = [metric.name for exporter in EXPORTERS for metric in exporter.metrics.values()]
    return _braced([among("__name__", names), selector])


def query(exporter: GpuExporter, quantity: str, gpus: Iterable[ExportedGpu], selector: str, over_time: str) -> str:
    """A quantity of these GPUs: the mean, say, of each step; `over_time` is `avg_over_time(%s[999ms])`.

    Several series of one GPU have the same value, or follow one another.
    """
    chosen = _braced([*_matchers(exporter, list(gpus)), selector])
    return f"max by ({', '.join(_LABELS)}) ({over_time % (exporter.metrics[quantity].name + chosen)})"


def _matchers(exporter: GpuExporter, gpus: Sequence[ExportedGpu]) -> list[str]:
    if all(each.uuid for each in gpus):
        return [among(exporter.uuid, {each.uuid for each in gpus})]
    return [among("gpu", {each.number for each in gpus}), among("instance", {each.instance for each in gpus})]


def _braced(matchers: Iterable[str]) -> str:
    return "{" + ",".join(filter(None, matchers)) + "}"
