"""What jobs did to their GPUs -> lines for people: which of them wasted a GPU, and what an advisor says. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from simple_gpu_scheduler.base.text import safe, show_gpus
from simple_gpu_scheduler.base.units import show_energy, show_in_one_unit, show_share, show_size
from simple_gpu_scheduler.base.values import Any
from simple_gpu_scheduler.display.table import with_commands, with_room

Report = Mapping[str, Any]

NOTHING = "-"
_MOST = 5
_NARROW = 80
_DISPENSABLE = ("PEAK MEMORY", "ENERGY", "HELD", "AT 0 %")
_SIDES = {"JOB": ">", "WASTED": ">", "HELD": ">", "USED": ">", "AT 0 %": ">", "PEAK MEMORY": ">", "ENERGY": ">"}


def gpu_use(report: Report, jobs: Mapping[int, Report], width: int | None, most: int) -> list[str]:
    """How well the GPUs were used, and the jobs that wasted the most; nothing if nothing was measured."""
    use = report["use"]
    if use is None:
        return []
    found = [jobs[number] for number in report["worst"][:_MOST]]
    lines = [f"GPU USE  {sentence(use)}"]
    if not found:
        return lines
    rows = [("WASTED", "JOB", "ON", "HELD", "USED", "AT 0 %", "PEAK MEMORY", "ENERGY", "COMMAND"), *map(_row, found)]
    if width is not None:
        rows = [tuple(row) for row in with_room(rows, max(width, _NARROW), _DISPENSABLE)]
    sides = "".join(_SIDES.get(name, "<") for name in rows[0])
    return lines + with_commands(rows, sides, width=width, most=most) + _note(found)


def sentence(use: Report) -> str:
    """The figures of the run."""
    told = [f"{gpu_time(use['held'])} held"]
    if use["utilization"] is not None:
        told.append(f"{use['utilization']:.0f} % used")
    if use["idle"] is not None:
        told.append(f"{gpu_time(use['idle'])} at 0 %")
    if use["energy"] is not None:
        told.append(show_energy(use["energy"]))
    return ", ".join(told)


def gpu_time(seconds: float) -> str:
    """Seconds of GPUs: `9.1 GPU-hours`, or a duration where that is less than a tenth."""
    return f"{seconds / 3600:.1f} GPU-hours" if seconds >= 360 else show_in_one_unit(seconds)  # noqa: PLR2004 - a tenth


def _row(job: Report) -> tuple[str, ...]:
    measured = job["measured"]
    return (
        show_in_one_unit(measured["wasted"]),
        str(job["job"]),
        safe(show_gpus(job["gpus"])),
        show_in_one_unit(measured["held"]),
        percent(measured["utilization"]),
        time_of(measured["idle"]),
        peak(measured["gpus"]),
        energy(measured),
        safe(job["command"].strip()),
    )


def _note(jobs: Iterable[Report]) -> list[str]:
    """What the mark at an energy means, if there is one."""
    has_mark = any(job["measured"]["energy_of_gpu"] for job in jobs)
    return ["* energy of the whole GPU, which other jobs used too"] if has_mark else []


def percent(value: float | None) -> str:
    """Of a utilisation in per cent."""
    return NOTHING if value is None else f"{value:.0f} %"


def time_of(seconds: float | None) -> str:
    """In a table of many."""
    return NOTHING if seconds is None else show_in_one_unit(seconds)


def energy(use: Report) -> str:
    """With a mark if some of it is that of GPUs which other jobs used at the same time."""
    if use["energy"] is None:
        return NOTHING
    return show_energy(use["energy"]) + ("*" if use.get("energy_of_gpu") else "")


def peak(gpus: Sequence[Report]) -> str:
    """The highest memory on any of the GPUs, of the total."""
    known = [each for each in gpus if "memory" in each]
    if not known:
        return NOTHING
    most = max(known, key=lambda each: each["memory"]["max"])
    used, total = most["memory"]["max"], most.get("total_memory")
    return show_share(used, total) if total else show_size(used)


def advice(report: Report) -> list[str]:
    """What could be done better, in sentences."""
    return ["ADVICE", *(f"  {safe(each)}" for each in report["advice"])] if report["advice"] else []
