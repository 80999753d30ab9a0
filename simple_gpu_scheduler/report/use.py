"""What attempts did to their GPUs, as the journal tells -> how well the GPUs were used: by job, by GPU, in all. Pure.

What was not measured is None, and never 0: short attempts, older journals, and runs with --no-samples have no figures.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from simple_gpu_scheduler.base.values import Any, NamedTuple

from .lanes import GpuLane
from .measured import Measured
from .timeline import Span

_LEAST, _MUCH, _MOST_OF_IT = 2.0, 60.0, 0.8  # of a second or two only a reading is known
_CPU_SUMS = ("seconds", "read", "written")


class JobUse(NamedTuple):
    """How well a job used its GPUs, over all attempts, in seconds of a GPU and joules.

    `held` is for how long there are figures, `wasted` the part of it that the GPU did not work, `idle` that at a
    utilisation of 0. `energy_of_gpu`: some of the energy is that of GPUs which other jobs used too.
    """

    held: float | None = None
    utilization: float | None = None
    wasted: float | None = None
    idle: float | None = None
    energy: float | None = None
    energy_of_gpu: bool = False


class UseOfGpu(NamedTuple):
    """How well a GPU was used while jobs held it: in per cent, seconds at a utilisation of 0, and joules."""

    measured: float
    utilization: float | None
    idle: float | None
    energy: float | None


def of_job(attempts: Iterable[Measured | None]) -> Measured | None:
    """What was measured of a job: the GPUs of its last attempt with figures, and sums over all; None if nothing was."""
    known = [each for each in attempts if each]
    if not known:
        return None
    use = job_use([gpu for each in known for gpu in each["gpus"]])
    summed = {
        name: round(sum(each["cpu"].get(name, 0) for each in known), 3)
        for name in _CPU_SUMS
        if any(name in each["cpu"] for each in known)
    }
    peaks = [each["cpu"]["peak_memory"] for each in known if "peak_memory" in each["cpu"]]
    cpu = {**known[-1]["cpu"], **summed, **({"peak_memory": max(peaks)} if peaks else {})}
    return {"gpus": known[-1]["gpus"], "cpu": cpu, **rounded(use._asdict())}


def rounded(values: Mapping[str, Any]) -> Measured:
    """Thousandths."""
    return {name: round(value, 3) if type(value) is float else value for name, value in values.items()}


def job_use(gpus: Sequence[Measured]) -> JobUse:
    """How well these GPUs, each of one attempt, were used."""
    with_utilization = [each for each in gpus if "utilization" in each]
    with_idle = [each["idle"] for each in gpus if "idle" in each]
    energies = [each["energy"] for each in gpus if "energy" in each]
    held = sum(each["seconds"] for each in gpus)
    known = sum(each["seconds"] for each in with_utilization)
    area = sum(each["utilization"]["mean"] * each["seconds"] for each in with_utilization)
    return JobUse(
        held if gpus else None,
        area / known if known else None,
        _sum(each.get("wasted") for each in gpus),
        sum(with_idle) if with_idle else None,
        sum(energies) if energies else None,
        any(is_of_gpu(each, "energy") for each in gpus),
    )


def is_of_gpu(gpu: Mapping[str, Any], name: str) -> bool:
    """Whether a figure is that of the GPU as a whole, which other jobs used at the same time."""
    return name in gpu.get("of_gpu", ())


def memory_of_gpus(spans: Iterable[Span]) -> dict[str, float]:
    """How much each GPU has, in bytes, where that was measured."""
    measured = [gpu for span in spans if span.measured for gpu in span.measured["gpus"]]
    return {gpu["gpu"]: gpu["total_memory"] for gpu in measured if "total_memory" in gpu}


def by_gpu(spans: Iterable[Span], lanes: Mapping[str, GpuLane]) -> dict[str, UseOfGpu]:
    """Each GPU of which something was measured. That of jobs which shared it is told by its curve alone."""
    held: dict[str, list[Measured]] = {}
    for span in spans:
        for gpu in span.measured["gpus"] if span.measured else ():
            held.setdefault(gpu["gpu"], []).append(gpu)
    found = {gpu: _use(each, lanes.get(gpu)) for gpu, each in held.items()}
    return {gpu: use for gpu, use in found.items() if use}


def _use(gpus: Sequence[Measured], lane: GpuLane | None) -> UseOfGpu | None:
    if not any(each.get("shared") for each in gpus):
        use = job_use(gpus)
        return UseOfGpu(use.held or 0.0, use.utilization, use.idle, use.energy)
    return UseOfGpu(lane.seconds, lane.mean("utilization"), lane.idle, lane.energy) if lane else None


def totals(gpus: Iterable[UseOfGpu], held: float, wasted: Iterable[float | None]) -> Measured | None:
    """Those of the run; `held` is for how long its jobs had GPUs, measured or not. None if nothing was measured.

    `wasted` is what its jobs did.
    """
    known = list(gpus)
    if not known:
        return None
    measured = sum(each.measured for each in known)
    with_utilization = [each for each in known if each.utilization is not None]
    seconds = sum(each.measured for each in with_utilization)
    area = sum((each.utilization or 0.0) * each.measured for each in with_utilization)
    values = {
        "held": held,
        "measured": measured,
        "utilization": area / seconds if seconds else None,
        "wasted": _sum(wasted),
        "idle": _sum(each.idle for each in known),
        "energy": _sum(each.energy for each in known),
    }
    return rounded(values)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return sum(known) if known else None


def worst(jobs: Iterable[Mapping[str, Any]], most: int) -> list[int]:
    """The jobs that wasted much time of GPUs, or most of what they held; the worst first."""
    found = [(job["measured"]["wasted"], job["job"]) for job in jobs if job["measured"] and _is_waste(job["measured"])]
    return [number for _, number in sorted(found, key=lambda each: (-each[0], each[1]))[:most]]


def _is_waste(measured: Measured) -> bool:
    wasted, held = measured["wasted"] or 0.0, measured["held"] or 0.0
    return wasted >= _MUCH or wasted >= max(_LEAST, _MOST_OF_IT * held)


def throttled_seconds(measured: Measured) -> float | None:
    """For how long the GPUs ran at lower clocks, for whatever reason; None if no GPU said."""
    told = [each["throttled"] for each in measured["gpus"] if "throttled" in each]
    reasons: Counter[str] = Counter()
    for each in told:
        reasons.update(each)
    return sum(reasons.values()) if told else None
