"""Which series there are, and what they are called."""

import re

from prometheus_client.openmetrics import parser as open_parser

from simple_gpu_scheduler.measurements import Meters
from simple_gpu_scheduler.metrics.exposition import OPEN_METRICS, expose
from simple_gpu_scheduler.metrics.families import (
    GPU_STATES,
    NAMES,
    JobGpu,
    Seen,
    SeenGpu,
    SeenJob,
    SeenRun,
    families,
)  # fmt: skip
from simple_gpu_scheduler.metrics.gpu_counters import GpuCounters, GpuLook
from simple_gpu_scheduler.metrics.totals import JobTotals

METERS = Meters(
    utilization=93, memory_copy=40, used=10, total=100, temperature=66, power=312.4, power_limit=400.0, energy=5.5,
    clock=1410, memory_clock=1593, throttled=("heat",), pcie_sent=1, pcie_received=2, nvlink_sent=3, nvlink_received=4,
)  # fmt: skip
GPU = SeenGpu("0", "GPU-0", "leased", "A100", "570", "bob", METERS, 1000.0)
JOB = SeenJob(4, 2, 990.0, "big", "vision", [JobGpu("0", "GPU-0", 93, 7, 9, 120.0, 3.0)])
RUN = SeenRun("r", 900.0, True, False, {"running": 1, "not started": 2}, [JOB])


def all_of(seen: Seen) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    return {
        family.name: {tuple(each.labels.items()): each.value for each in family.samples if not each.suffix}
        for family in families(seen)
    }


def seen(*, gpus: tuple[SeenGpu, ...] = (GPU,), runs: tuple[SeenRun, ...] = (RUN,)) -> Seen:
    counters = GpuCounters()
    counters.feed(0.0, [GpuLook("0", "GPU-0", "bob", 0, ("heat",), (79,))])
    return Seen("1.0", True, gpus, runs, JobTotals(), counters)


def test_every_name_has_series_and_each_has_the_labels_that_are_documented() -> None:
    found = {family.name: family.samples for family in families(seen())}
    for name in NAMES:
        assert found[name.name], name.name
        for sample in found[name.name]:
            assert tuple(label for label in sample.labels if label != "le") == tuple(name.labels), name.name


def test_names_follow_the_rules_of_prometheus() -> None:
    for name in NAMES:
        assert re.fullmatch(r"sgs_[a-z]+(_[a-z]+)*", name.name)
        assert name.name.endswith("_total") == (name.kind == "counter")
        assert name.name.endswith("_info") == (name.kind == "info")
        assert name.help.endswith(".")
    without_suffix = [name.name.removesuffix("_total").removesuffix("_info") for name in NAMES]
    assert len({*without_suffix}) == len(without_suffix), "in OpenMetrics two would be one"


def test_openmetrics_reads_all_of_it() -> None:
    text = expose(families(seen()), OPEN_METRICS).decode()
    assert len([*open_parser.text_string_to_metric_families(text)]) == len(NAMES)


def test_units_are_base_units() -> None:
    found = all_of(seen())
    gpu = (("gpu", "0"), ("uuid", "GPU-0"))
    assert found["sgs_gpu_utilization_ratio"][gpu] == 0.93
    assert found["sgs_gpu_memory_copy_ratio"][gpu] == 0.4
    assert found["sgs_gpu_sm_clock_hertz"][gpu] == 1_410_000_000
    assert found["sgs_job_gpu_utilization_ratio"][("run", "r"), ("job", "4"), ("gpu", "0")] == 0.93
    assert found["sgs_jobs"][("run", "r"), ("state", "not_started")] == 2


def test_what_is_not_told_is_absent_and_not_0() -> None:
    dark = SeenGpu("0", "GPU-0", "silent")
    quiet = RUN._replace(is_up=False, is_paused=None, counts={}, jobs=[JOB._replace(shares=[JobGpu("0")])])
    found = all_of(seen(gpus=(dark,), runs=(quiet,)))
    present = {name for name, series in found.items() if series}
    assert {name for name in present if name.startswith("sgs_gpu_")} == {
        "sgs_gpu_info", "sgs_gpu_state",
        "sgs_gpu_throttled_seconds_total", "sgs_gpu_xid_errors_total", "sgs_gpu_idle_leased_seconds_total",
    }  # fmt: skip
    assert {name for name in present if name.startswith(("sgs_run", "sgs_job_"))} == {
        "sgs_run_up", "sgs_run_start_time_seconds", "sgs_job_info", "sgs_job_gpu_info", "sgs_job_start_time_seconds",
    }  # fmt: skip
    assert not present & {"sgs_lease_info", "sgs_sample_timestamp_seconds", "sgs_jobs"}


def test_a_gpu_is_in_one_state() -> None:
    for state in GPU_STATES:
        found = all_of(seen(gpus=(GPU._replace(state=state),)))["sgs_gpu_state"]
        assert [dict(labels)["state"] for labels, value in found.items() if value] == [state]
        assert len(found) == len(GPU_STATES)
