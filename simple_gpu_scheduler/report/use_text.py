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
_HOUR = 3600
_IN_HOURS = 360  # seconds: a tenth
_MUCH = 0.05  # of all, for failed jobs to be worth a word
_DISPENSABLE = ("PEAK MEMORY", "ENERGY", "HELD", "AT 0 %")
_TIMES = ("wasted", "held", "idle")
_IN_ONE_UNIT = (*_TIMES, "energy")
_SIDES = {"JOB": ">", "WASTED": ">", "HELD": ">", "USED": ">", "AT 0 %": ">", "PEAK MEMORY": ">", "ENERGY": ">"}


def gpu_use(report: Report, jobs: Mapping[int, Report], width: int | None, most: int) -> list[str]:
    """How well the GPUs were used, and the jobs that wasted the most; nothing if nothing was measured."""
    use = report["use"]
    if use is None:
        return []
    found = [jobs[number] for number in report["worst"][:_MOST]]
    lines = [f"GPU USE  {sentence(use, len(report['failures']))}"]
    if not found:
        return lines
    rows = [("WASTED", "JOB", "ON", "HELD", "USED", "AT 0 %", "PEAK MEMORY", "ENERGY", "COMMAND"), *_rows(found)]
    if width is not None:
        rows = [tuple(row) for row in with_room(rows, max(width, _NARROW), _DISPENSABLE)]
    sides = "".join(_SIDES.get(name, "<") for name in rows[0])
    return lines + with_commands(rows, sides, width=width, most=most) + _note(found)


def sentence(use: Report, failures: int) -> str:
    """The figures of the run, in which so many jobs failed."""
    held = use["held"]
    told = [f"{gpu_time(held)} held"]
    if use["wasted"] is not None:
        idle = "" if use["idle"] is None else f" ({_part(use['idle'], held)} at 0 %)"
        told.append(f"{_part(use['wasted'], held)} of them wasted{idle}")
    if use["energy"] is not None:
        told.append(show_energy(use["energy"]))
    by_failed = use["held_by_failed"]
    is_much = failures and by_failed >= max(_HOUR, _MUCH * held)
    failed = f"; {failures} failed job{'s' * (failures > 1)} held {gpu_time(by_failed)}" if is_much else ""
    return ", ".join(told) + failed


def _part(seconds: float, held: float) -> str:
    """Without the unit if it is that of all."""
    if held < _IN_HOURS:
        return show_in_one_unit(seconds)
    return f"{seconds / _HOUR:.1f}" if seconds == 0 or seconds >= _HOUR / 20 else show_in_one_unit(seconds)


def gpu_time(seconds: float) -> str:
    """Seconds of GPUs: `9.1 GPU-hours`, or a duration where that is less than a tenth."""
    return f"{seconds / _HOUR:.1f} GPU-hours" if seconds >= _IN_HOURS else show_in_one_unit(seconds)


def _rows(jobs: Sequence[Report]) -> Iterable[tuple[str, ...]]:
    """Of each job; a column has one unit, so that its numbers can be compared."""
    most = {name: max((job["measured"][name] or 0.0 for job in jobs), default=0.0) for name in _IN_ONE_UNIT}
    for job in jobs:
        measured = job["measured"]
        wasted, held, idle = (time_of(measured[name], most[name]) for name in _TIMES)
        yield (
            wasted,
            str(job["job"]),
            safe(show_gpus(job["gpus"])),
            held,
            percent(measured["utilization"]),
            idle,
            peak(measured["gpus"]),
            energy(measured, most["energy"]),
            safe(job["command"].strip()),
        )


def _note(jobs: Iterable[Report]) -> list[str]:
    """What the mark at an energy means, if there is one."""
    has_mark = any(job["measured"]["energy_of_gpu"] for job in jobs)
    return ["* energy of the whole GPU, which other jobs used too"] if has_mark else []


def percent(value: float | None) -> str:
    """Of a utilisation in per cent."""
    return NOTHING if value is None else f"{value:.0f} %"


def time_of(seconds: float | None, most: float) -> str:
    """In a column of which this is the largest."""
    return NOTHING if seconds is None else show_in_one_unit(seconds, most)


def energy(use: Report, most: float | None = None) -> str:
    """With a mark if some of it is that of GPUs which other jobs used; in the unit of the largest, if given."""
    if use["energy"] is None:
        return NOTHING
    return show_energy(use["energy"], most) + ("*" if use.get("energy_of_gpu") else "")


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
