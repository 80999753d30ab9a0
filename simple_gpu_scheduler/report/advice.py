"""What to do better next time, from what was measured: sentences with their figures, and only where they are sure.

A rule that is not met says nothing. Pure: the simulation of the run with other options is passed in.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from simple_gpu_scheduler.base.text import show_gpus
from simple_gpu_scheduler.base.units import show_duration, show_percent, show_share
from simple_gpu_scheduler.base.values import Any, NamedTuple
from simple_gpu_scheduler.display.abbreviation import shorten

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
_ONE_OF_TWO = 2
# A kind of command: of so many jobs, that used less than this share of their GPUs, and wasted so many seconds of them.
_JOBS_OF_A_KIND, _LITTLE, _MUCH, _MOST_KINDS, _SHOWN = 3, 0.5, 3600.0, 2, 90


class _Use(NamedTuple):
    """What an attempt did to one GPU, for how long it was there, and what else it did."""

    job: int
    attempt: int
    gpu: str
    held: float
    values: Values
    measured: Values
    template: int | None
    outcome: str | None
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
        *_kinds(uses, report),
        *_stalled(report["jobs"]),
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
                how = attempt["outcome"], len(attempt["gpus"])
                number = job["job"], attempt["attempt"]
                yield _Use(*number, values["gpu"], held, values, measured, job["template"], *how)


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
    successes = [use for use in uses if use.outcome == "succeeded"]
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


def _kinds(uses: Iterable[_Use], report: Values) -> list[str]:
    """The kinds of commands that wasted the most; while jobs shared a GPU, what all of them did counts."""
    groups: dict[int, list[_Use]] = {}
    for use in uses:
        if use.template is not None and "wasted" in use.values:
            groups.setdefault(use.template, []).append(use)
    found = []
    for template, group in groups.items():
        wasted = sum(use.values["wasted"] for use in group)
        charged = sum(use.values["charged"] for use in group)
        count = _jobs(group)
        if count >= _JOBS_OF_A_KIND and wasted >= _MUCH and wasted > (1 - _LITTLE) * charged:
            found.append((wasted, charged, count, report["templates"][template]["template"]))
    found = sorted(found, key=lambda each: -each[0])[:_MOST_KINDS]
    commands = shorten(tuple(" ".join(each[3].split()) for each in found), (_SHOWN,) * len(found))
    return [
        f'{count} jobs of "{command}" used their GPUs to {100 * (1 - wasted / charged):.0f} %: '
        f"{wasted / 3600:.1f} GPU-hours wasted"
        for (wasted, charged, count, _), command in zip(found, commands, strict=True)
    ]


def _jobs(uses: Iterable[_Use]) -> int:
    return len({use.job for use in uses})


def _stalled(jobs: Iterable[Values]) -> list[str]:
    """Each job once, with its longest such attempt; the longest first."""
    found: list[tuple[float, Values, Values]] = []
    for job in jobs:
        stalled = [each for each in job["attempts"] if _has_stalled(each)]
        if stalled:
            attempt = max(stalled, key=lambda each: float(each["ended"] - each["started"]))
            found.append((attempt["ended"] - attempt["started"], job, attempt))
    found.sort(key=lambda each: -each[0])
    said = [
        f"job {job['job']} stalled: it held {show_gpus(attempt['gpus'])} for {show_duration(held)}{_why(job, attempt)}"
        for held, job, attempt in found[:_MOST_JOBS]
    ]
    rest = [held * len(attempt["gpus"]) for held, _, attempt in found[_MOST_JOBS:]]
    return [*said, f"{_more(len(rest))} stalled, with GPUs for {show_duration(sum(rest))}"] if rest else said


def _has_stalled(attempt: Values) -> bool:
    return attempt["outcome"] == "stalled" and bool(attempt["gpus"]) and attempt["ended"] is not None


def _why(job: Values, attempt: Values) -> str:
    """What is known of the last attempt only."""
    reason = job.get("reason") if attempt is job["attempts"][-1] else None
    return f" ({reason})" if reason else ""


def _more(count: int) -> str:
    return f"{count} more job{'' if count == 1 else 's'}"


def _idle(uses: Sequence[_Use]) -> list[str]:
    """Each job once, with the attempt that left its GPUs idle for longest. That a job has stalled is said elsewhere."""
    attempts: dict[tuple[int, int], list[_Use]] = {}
    for use in uses:
        is_idle = use.values.get("idle", 0) >= max(_LONG, use.held / 2) and use.mean is not None
        if is_idle and use.outcome != "stalled":
            attempts.setdefault((use.job, use.attempt), []).append(use)
    longest_first = sorted(attempts.values(), key=lambda group: -_idle_time(group))
    of_jobs: dict[int, list[_Use]] = {}
    for group in longest_first:
        of_jobs.setdefault(group[0].job, group)
    found = [_left_idle(group, uses) for group in [*of_jobs.values()][:_MOST_JOBS]]
    rest = {*[*of_jobs][_MOST_JOBS:]}
    if rest:
        lost = show_duration(sum(_idle_time(group) for group in longest_first if group[0].job in rest))
        whose = "its" if len(rest) == 1 else "their"
        found.append(f"{_more(len(rest))} left a GPU at 0 % for at least half of {whose} time, {lost} in all")
    return found


def _idle_time(uses: Iterable[_Use]) -> float:
    return sum(float(use.values["idle"]) for use in uses)


def _left_idle(idle: Sequence[_Use], uses: Iterable[_Use]) -> str:
    """About the GPUs that an attempt left idle, which may be some of those that it held."""
    first = idle[0]
    least, held = min(use.values["idle"] for use in idle), show_duration(first.held)
    if len(idle) == 1:
        part = "" if least >= _FULL * first.held else f", {show_duration(least)} of that"
        enough = "; gpus=1 would do" if _is_one_enough(first, uses) else ""
        return f"job {first.job} held gpu {first.gpu} for {held}{part} at 0 %{enough}"
    gpus = f"all {first.width} of its GPUs" if len(idle) == first.width else f"{len(idle)} of its {first.width} GPUs"
    time_of_it = show_duration(least)
    span = f"all of its {held}" if time_of_it == held else f"{time_of_it} of {held}"
    return f"job {first.job} left {gpus} at 0 % for {span}"


def _is_one_enough(idle: _Use, uses: Iterable[_Use]) -> bool:
    """Whether a job surely needed only the other one of its two GPUs, also for its memory."""
    both = [use for use in uses if (use.job, use.attempt) == (idle.job, idle.attempt)]
    if (idle.width, len(both), idle.outcome) != (_ONE_OF_TWO, _ONE_OF_TWO, "succeeded"):
        return False
    is_known = all(use.values.get("memory") and use.values.get("total_memory") for use in both)
    needed = sum(use.values["memory"]["max"] for use in both) if is_known else 0
    return is_known and idle.values["idle"] >= _FULL * idle.held and needed <= _FULL * _total(both)


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
        others = _jobs(group) - 1
        which = f" and {'one' if others == 1 else others} more of its kind wait" if others else " waits"
        cpu = f"CPU at {show_percent(min(1.0, share))} of {cores:g} core{'' if cores == 1 else 's'}"
        found.append(f"job {group[0].job}{which} for data: {cpu}, GPU at {busy:.0f} %")
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
