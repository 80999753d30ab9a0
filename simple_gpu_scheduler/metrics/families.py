"""What was seen -> metric families: all names, what they mean, and which labels they have. Pure.

What a GPU or a driver does not say is absent, and never 0.
"""

from simple_gpu_scheduler.base.values import Iterable, Iterator, Mapping, NamedTuple, Sequence
from simple_gpu_scheduler.measurements import Meters

from . import MetricFamily, MetricSample
from .gpu_counters import GpuCounters, GpuSeries
from .totals import JobTotals, word

# What a GPU is, the first that is true.
GPU_STATES = ("silent", "leased", "broken", "occupied", "aside", "free")
_PER_CENT, _MEGA = 100.0, 1e6
_GPU, _JOB, _JOB_GPU = ("gpu", "uuid"), ("run", "job"), ("run", "job", "gpu")


class MetricName(NamedTuple):
    """A metric as it is documented. The name is as in Prometheus' own format."""

    name: str
    kind: str
    labels: Sequence[str]
    help: str


NAMES = (
    MetricName("sgs_build_info", "info", ("version",), "The version of simple_gpu_scheduler."),
    MetricName("sgs_nvml_up", "gauge", (), "Whether NVML, the driver's library, could be initialised."),
    MetricName("sgs_gpu_info", "info", (*_GPU, "name", "driver"), "A GPU: its model and its driver."),
    MetricName(
        "sgs_gpu_state",
        "gauge",
        (*_GPU, "state"),
        "1 for the state that the GPU is in, 0 for the others: silent, leased, broken, occupied, aside, free.",
    ),
    MetricName("sgs_sample_timestamp_seconds", "gauge", _GPU, "When the driver last answered about the GPU."),
    MetricName("sgs_gpu_utilization_ratio", "gauge", _GPU, "How busy the GPU is, from 0 to 1."),
    MetricName("sgs_gpu_memory_copy_ratio", "gauge", _GPU, "How busy the GPU's memory is, from 0 to 1."),
    MetricName("sgs_gpu_memory_used_bytes", "gauge", _GPU, "Memory of the GPU that is in use."),
    MetricName("sgs_gpu_memory_total_bytes", "gauge", _GPU, "Memory of the GPU, without what the driver reserves."),
    MetricName("sgs_gpu_temperature_celsius", "gauge", _GPU, "Temperature of the GPU."),
    MetricName("sgs_gpu_power_watts", "gauge", _GPU, "Power that the GPU draws."),
    MetricName("sgs_gpu_power_limit_watts", "gauge", _GPU, "Power that the GPU may draw."),
    MetricName("sgs_gpu_sm_clock_hertz", "gauge", _GPU, "Clock of the GPU's multiprocessors."),
    MetricName("sgs_gpu_memory_clock_hertz", "gauge", _GPU, "Clock of the GPU's memory."),
    MetricName(
        "sgs_gpu_energy_joules_total", "counter", _GPU, "Energy that the GPU has used since the driver started."
    ),
    MetricName("sgs_gpu_pcie_sent_bytes_total", "counter", _GPU, "Bytes that the GPU sent over PCIe."),
    MetricName("sgs_gpu_pcie_received_bytes_total", "counter", _GPU, "Bytes that the GPU received over PCIe."),
    MetricName("sgs_gpu_nvlink_sent_bytes_total", "counter", _GPU, "Bytes that the GPU sent over NVLink."),
    MetricName("sgs_gpu_nvlink_received_bytes_total", "counter", _GPU, "Bytes that the GPU received over NVLink."),
    MetricName(
        "sgs_gpu_throttled_seconds_total",
        "counter",
        (*_GPU, "reason"),
        "Time for which the GPU's clocks were lowered since the exporter started, by reason.",
    ),
    MetricName(
        "sgs_gpu_xid_errors_total",
        "counter",
        (*_GPU, "xid"),
        "XID errors since the exporter started, by number.",
    ),
    MetricName("sgs_lease_info", "info", (*_GPU, "user"), "A GPU that is leased, and by whom."),
    MetricName(
        "sgs_gpu_idle_leased_seconds_total",
        "counter",
        (*_GPU, "user"),
        "Time for which the GPU was leased and its utilisation was 0, since the exporter started, by holder.",
    ),
    MetricName("sgs_run_up", "gauge", ("run",), "Whether an active run answered."),
    MetricName("sgs_run_paused", "gauge", ("run",), "Whether the run is paused."),
    MetricName("sgs_run_start_time_seconds", "gauge", ("run",), "When the run was first started."),
    MetricName("sgs_jobs", "gauge", ("run", "state"), "Jobs of active runs, by state."),
    MetricName("sgs_job_info", "info", (*_JOB, "name", "label", "attempt"), "A running job."),
    MetricName("sgs_job_gpu_info", "info", (*_JOB_GPU, "uuid"), "A GPU of a running job."),
    MetricName("sgs_job_start_time_seconds", "gauge", _JOB, "When the running attempt of the job started."),
    MetricName("sgs_job_gpu_utilization_ratio", "gauge", _JOB_GPU, "How busy a GPU of the job is, from 0 to 1."),
    MetricName("sgs_job_gpu_memory_used_bytes", "gauge", _JOB_GPU, "Memory that the job uses on a GPU."),
    MetricName("sgs_job_gpu_memory_peak_bytes", "gauge", _JOB_GPU, "The most memory that the attempt used on a GPU."),
    MetricName("sgs_job_energy_joules_total", "counter", _JOB_GPU, "Energy that the attempt used on a GPU."),
    MetricName(
        "sgs_job_gpu_idle_seconds_total",
        "counter",
        _JOB_GPU,
        "Time for which a GPU of the attempt was at a utilisation of 0.",
    ),
    MetricName("sgs_jobs_ended_total", "counter", ("outcome",), "Jobs that ended, by outcome, in all runs on disk."),
    MetricName("sgs_job_wait_seconds", "histogram", (), "How long jobs waited from being read to their first start."),
    MetricName("sgs_job_run_seconds", "histogram", (), "Run times of attempts that have ended."),
    MetricName("sgs_jobs_gpu_seconds_total", "counter", (), "GPU time of attempts that have ended."),
    MetricName("sgs_jobs_energy_joules_total", "counter", (), "Energy used by attempts that have ended."),
    MetricName(
        "sgs_jobs_gpu_idle_seconds_total",
        "counter",
        (),
        "Time for which GPUs of attempts that have ended were at a utilisation of 0.",
    ),
)


class SeenGpu(NamedTuple):
    """A GPU. `gpu` is its index as in nvidia-smi; `user` has leased it; `at` is when the driver last answered."""

    gpu: str
    uuid: str
    state: str
    model: str = ""
    driver: str = ""
    user: str = ""
    meters: Meters = Meters()
    at: float | None = None

    @property
    def labels(self) -> dict[str, str]:
        """Those of each of its series."""
        return {"gpu": self.gpu, "uuid": self.uuid}


class JobGpu(NamedTuple):
    """What a running attempt did to one of its GPUs, if that was told."""

    gpu: str
    uuid: str = ""
    utilization: float | None = None
    memory: float | None = None
    peak: float | None = None
    energy: float | None = None
    idle: float | None = None


class SeenJob(NamedTuple):
    """A running job. `started` is by the wall clock."""

    job: int
    attempt: int
    started: float
    name: str = ""
    label: str = ""
    shares: Sequence[JobGpu] = ()


class SeenRun(NamedTuple):
    """An active run; `counts` by state, if it answered."""

    run: str
    began: float
    is_up: bool = False
    is_paused: bool | None = None
    counts: Mapping[str, int] = {}
    jobs: Sequence[SeenJob] = ()


class Seen(NamedTuple):
    """All that is known at one moment."""

    version: str
    has_nvml: bool
    gpus: Sequence[SeenGpu]
    runs: Sequence[SeenRun]
    totals: JobTotals
    counters: GpuCounters


def build_info(version: str) -> MetricFamily:
    """The first family, which is known at once."""
    name = NAMES[0]
    return MetricFamily(name.name, name.kind, name.help, [MetricSample({"version": version}, 1)])


def families(seen: Seen) -> list[MetricFamily]:
    """In the order of the names."""
    found: dict[str, list[MetricSample]] = {name.name: [] for name in NAMES}
    for name, labels, value in _all_series(seen):
        if value is not None:
            found[name].append(MetricSample(labels, value))
    found["sgs_job_wait_seconds"] = seen.totals.waits.samples()
    found["sgs_job_run_seconds"] = seen.totals.runtimes.samples()
    return [MetricFamily(name.name, name.kind, name.help, found[name.name]) for name in NAMES]


_Series = tuple[str, Mapping[str, str], float | None]


def _all_series(seen: Seen) -> Iterator[_Series]:
    yield "sgs_build_info", {"version": seen.version}, 1
    yield "sgs_nvml_up", {}, int(seen.has_nvml)
    for gpu in seen.gpus:
        yield from _of_gpu(gpu)
    yield from _of_counters(seen.counters)
    for run in seen.runs:
        yield from _of_run(run)
        for job in run.jobs:
            yield from _of_job({"run": run.run, "job": str(job.job)}, job)
    yield from _of_totals(seen.totals)


def _of_gpu(gpu: SeenGpu) -> Iterator[_Series]:
    labels = gpu.labels
    yield "sgs_gpu_info", {**labels, "name": gpu.model, "driver": gpu.driver}, 1
    for state in GPU_STATES:
        yield "sgs_gpu_state", {**labels, "state": state}, int(state == gpu.state)
    yield "sgs_sample_timestamp_seconds", labels, gpu.at
    if gpu.user:
        yield "sgs_lease_info", {**labels, "user": gpu.user}, 1
    for name, value in _readings(gpu.meters):
        yield f"sgs_gpu_{name}", labels, value


def _readings(meters: Meters) -> Iterable[tuple[str, float | None]]:
    return (
        ("utilization_ratio", _scaled(meters.utilization, 1 / _PER_CENT)),
        ("memory_copy_ratio", _scaled(meters.memory_copy, 1 / _PER_CENT)),
        ("memory_used_bytes", meters.used),
        ("memory_total_bytes", meters.total),
        ("temperature_celsius", meters.temperature),
        ("power_watts", meters.power),
        ("power_limit_watts", meters.power_limit),
        ("sm_clock_hertz", _scaled(meters.clock, _MEGA)),
        ("memory_clock_hertz", _scaled(meters.memory_clock, _MEGA)),
        ("energy_joules_total", meters.energy),
        ("pcie_sent_bytes_total", meters.pcie_sent),
        ("pcie_received_bytes_total", meters.pcie_received),
        ("nvlink_sent_bytes_total", meters.nvlink_sent),
        ("nvlink_received_bytes_total", meters.nvlink_received),
    )


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else round(value * factor, 6)


def _of_counters(counters: GpuCounters) -> Iterator[_Series]:
    for name, label, counted in (
        ("sgs_gpu_throttled_seconds_total", "reason", counters.throttled),
        ("sgs_gpu_xid_errors_total", "xid", counters.xids),
        ("sgs_gpu_idle_leased_seconds_total", "user", counters.idle_leased),
    ):
        series: Mapping[GpuSeries, float] = counted
        for (gpu, uuid, value), count in series.items():
            yield name, {"gpu": gpu, "uuid": uuid, label: value}, count


def _of_run(run: SeenRun) -> Iterator[_Series]:
    labels = {"run": run.run}
    yield "sgs_run_up", labels, int(run.is_up)
    yield "sgs_run_paused", labels, None if run.is_paused is None else int(run.is_paused)
    yield "sgs_run_start_time_seconds", labels, run.began
    for state, count in run.counts.items():
        yield "sgs_jobs", {**labels, "state": word(state)}, count


def _of_job(labels: Mapping[str, str], job: SeenJob) -> Iterator[_Series]:
    yield "sgs_job_info", {**labels, "name": job.name, "label": job.label, "attempt": str(job.attempt)}, 1
    yield "sgs_job_start_time_seconds", labels, job.started
    for share in job.shares:
        of_gpu = {**labels, "gpu": share.gpu}
        yield "sgs_job_gpu_info", {**of_gpu, "uuid": share.uuid}, 1
        yield "sgs_job_gpu_utilization_ratio", of_gpu, _scaled(share.utilization, 1 / _PER_CENT)
        yield "sgs_job_gpu_memory_used_bytes", of_gpu, share.memory
        yield "sgs_job_gpu_memory_peak_bytes", of_gpu, share.peak
        yield "sgs_job_energy_joules_total", of_gpu, share.energy
        yield "sgs_job_gpu_idle_seconds_total", of_gpu, share.idle


def _of_totals(totals: JobTotals) -> Iterator[_Series]:
    for outcome, count in totals.outcomes.items():
        yield "sgs_jobs_ended_total", {"outcome": outcome}, count
    yield "sgs_jobs_gpu_seconds_total", {}, totals.gpu_seconds
    yield "sgs_jobs_energy_joules_total", {}, totals.energy
    yield "sgs_jobs_gpu_idle_seconds_total", {}, totals.idle
