"""What to do better next time, from what was measured: sentences with their figures, and only where they are sure.

A rule that is not met says nothing. Pure: the simulation of the run with other options is passed in.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from simple_gpu_scheduler.base.units import show_duration, show_percent, show_share
from simple_gpu_scheduler.base.values import Any, NamedTuple

Values = Mapping[str, Any]
# How long the run would have taken, in seconds, with so many jobs on a GPU.
Replay = Callable[[int], float]

_LONG = 600.0  # seconds: about less there is nothing to say
_MOST_JOBS = 3  # of one kind that are named
_GIB = 2**30
# Sharing: peaks are taken so many times, the GPU is never filled, and some jobs must have shown what they need.
_SAFETY, _FULL, _ENOUGH = 1.2, 0.95, 3
_MOST_SHARING = 16
_LIKE_THE_RUN = 0.1  # by how much the simulation of the run as it was may differ from it
_WORTH_IT = 0.9
_HOT = 0.1
_STARVED, _BUSY_CPU = 50.0, 0.9


class _Use(NamedTuple):
    """What an attempt did to one GPU, for how long it was there, and what else it did."""

    job: int
    gpu: str
    held: float
    values: Values
    measured: Values
    template: int | None
    is_success: bool
    width: int

    @property
    def mean(self) -> float | None:
        """Of the utilisation that is its own."""
        is_own = "utilization" in self.values and "utilization" not in self.values.get("of_gpu", ())
        return float(self.values["utilization"]["mean"]) if is_own else None


def find_advice(report: Values, replay: Replay | None = None) -> list[str]:
    """The advice on a run, the most useful first."""
    uses = list(_uses(report["jobs"], report["run"]["heard"]))
    return [
        *_sharing(uses, report, replay),
        *_idle(uses),
        *_starved(uses),
        *_hot(uses),
        *_errors(uses),
    ]


def _uses(jobs: Iterable[Values], until: float) -> Iterable[_Use]:
    for job in jobs:
        for attempt in job["attempts"]:
            measured = attempt.get("measured") or {}
            held = (until if attempt["ended"] is None else attempt["ended"]) - attempt["started"]
            for values in measured.get("gpus", ()):
                is_success = attempt["outcome"] == "succeeded"
                width = len(attempt["gpus"])
                yield _Use(job["job"], values["gpu"], held, values, measured, job["template"], is_success, width)


# ---- Jobs that could share a GPU


def _sharing(uses: Sequence[_Use], report: Values, replay: Replay | None) -> list[str]:
    busy = _mean_of(uses)
    if busy is None or not _is_known(uses, report):
        return []
    peak, total = max(use.values["memory"]["max"] for use in uses), _total(uses)
    if peak <= 0:
        return []
    many = int(min(_FULL * total / (peak * _SAFETY), _FULL * 100 / max(busy, 1.0), _MOST_SHARING))
    if many <= 1:
        return []
    options = f"--jobs-per-gpu {many} --mem {-(-peak * _SAFETY // _GIB):.0f}G"
    fits = (
        f"the jobs' memory peak is {show_share(peak, total).replace('/', 'of')}, and their GPUs were {busy:.0f} % busy"
    )
    return [f"{fits}: {many} of them fit on one GPU{_saving(report, replay, many, options)}"]


def _is_known(uses: Sequence[_Use], report: Values) -> bool:
    """Whether all that ran on GPUs was measured, alone, and on one GPU each."""
    on_gpus = [attempt for job in report["jobs"] for attempt in job["attempts"] if attempt["gpus"]]
    is_measured = all(
        use.values.get("memory") and "memory" not in use.values.get("of_gpu", ()) and use.values.get("total_memory")
        for use in uses
    )
    is_alone = not any(use.values.get("shared") for use in uses) and all(use.width == 1 for use in uses)
    successes = [use for use in uses if use.is_success]
    # Attempts that ended at once are not measured, and need little.
    covered = sum(use.held for use in uses)
    whole = sum((each["ended"] or report["run"]["heard"]) - each["started"] for each in on_gpus)
    return is_measured and is_alone and len(successes) >= _ENOUGH and covered >= _FULL * whole > 0


def _total(uses: Iterable[_Use]) -> float:
    return float(min(use.values["total_memory"] for use in uses))


def _mean_of(uses: Sequence[_Use]) -> float | None:
    """The mean utilisation over the time held; None if some do not tell."""
    means = [(use.mean, float(use.values["seconds"])) for use in uses]
    held = sum(seconds for _, seconds in means)
    if not held or any(mean is None for mean, _ in means):
        return None
    return sum((mean or 0.0) * seconds for mean, seconds in means) / held


def _saving(report: Values, replay: Replay | None, many: int, options: str) -> str:
    """When the run would have ended, if the simulation of it as it was comes near the truth."""
    run = report["run"]
    with_them = f"; next time: {options}"
    if replay is None or run["ended"] is None or len(run["sessions"]) != 1:
        return with_them
    took = run["ended"] - run["begun"]
    as_it_was, then = replay(1), replay(many)
    if abs(as_it_was - took) > _LIKE_THE_RUN * took or then > _WORTH_IT * as_it_was:
        return with_them
    ends = [_clock(at, took) for at in (run["begun"] + then, run["ended"])]
    return f"; with {options} this run would have ended at {ends[0]} instead of {ends[1]} (simulated)"


def _clock(at: float, took: float) -> str:
    """The time of day, with the date if that could be unclear."""
    return time.strftime("%H:%M" if took < 43_200 else "%Y-%m-%d %H:%M", time.localtime(at))  # noqa: PLR2004


# ---- Jobs that did not use their GPU


def _idle(uses: Iterable[_Use]) -> list[str]:
    wasted = [use for use in uses if use.values.get("idle", 0) >= max(_LONG, use.held / 2) and use.mean is not None]
    wasted.sort(key=lambda use: -use.values["idle"])
    found = []
    for use in wasted[:_MOST_JOBS]:
        idle, held = use.values["idle"], use.held
        part = "" if idle >= _FULL * held else f", {show_duration(idle)} of that"
        found.append(f"job {use.job} held gpu {use.gpu} for {show_duration(held)}{part} at 0 %")
    rest = wasted[_MOST_JOBS:]
    if rest:
        lost = show_duration(sum(use.values["idle"] for use in rest))
        found.append(f"{len(rest)} more jobs left a GPU at 0 % for at least half of their time, {lost} in all")
    return found


def _starved(uses: Iterable[_Use]) -> list[str]:
    """Jobs that used all of the CPU that they may, while the GPU waited: by template, the one that took longest."""
    waiting: dict[int | None, list[_Use]] = {}
    for use in uses:
        cpu = use.measured.get("cpu", {})
        is_all = cpu.get("cores") and use.held > 0 and cpu.get("seconds", 0) >= _BUSY_CPU * cpu["cores"] * use.held
        if is_all and use.mean is not None and use.mean < _STARVED and use.held >= _LONG:
            waiting.setdefault(use.template, []).append(use)
    found = []
    for group in sorted(waiting.values(), key=lambda each: -sum(use.held for use in each))[:_MOST_JOBS]:
        held = sum(use.held for use in group)
        busy = sum((use.mean or 0.0) * use.held for use in group) / held
        cores = group[0].measured["cpu"]["cores"]
        share = sum(use.measured["cpu"]["seconds"] for use in group) / (cores * held)
        which = f"job {group[0].job}" + (f" and {len(group) - 1} like it" if len(group) > 1 else "")
        wait = "wait" if len(group) > 1 else "waits"
        cpu = f"CPU at {show_percent(min(1.0, share))} of {cores:g} core{'' if cores == 1 else 's'}"
        found.append(f"{which} {wait} for data: {cpu}, GPU at {busy:.0f} %")
    return found


# ---- GPUs that are in trouble


def _hot(uses: Iterable[_Use]) -> list[str]:
    found = []
    for gpu, group in _by_gpu(uses).items():
        seconds = sum(use.values["seconds"] for use in group)
        hot = sum(use.values.get("throttled", {}).get("heat", 0.0) for use in group)
        if hot >= max(_LONG / 2, _HOT * seconds):
            warmest = max((use.values.get("temperature", {}).get("max", 0) for use in group), default=0)
            degrees = f" (up to {warmest:.0f} °C)" if warmest else ""
            found.append(f"gpu {gpu} was throttled for {show_percent(hot / seconds)} of the time by heat{degrees}")
    return found


def _errors(uses: Iterable[_Use]) -> list[str]:
    found = []
    for use in uses:
        for xid, count in use.values.get("xids", {}).items():
            times = "once" if count == 1 else f"{count} times"
            found.append(
                f"gpu {use.gpu} reported XID {xid} {times} during job {use.job}; see NVIDIA's list of XID errors"
            )
    return found[:_MOST_JOBS]


def _by_gpu(uses: Iterable[_Use]) -> dict[str, list[_Use]]:
    groups: dict[str, list[_Use]] = {}
    for use in uses:
        groups.setdefault(use.gpu, []).append(use)
    return groups
