"""A report -> lines for people, safe to print, and its jobs as a table for other programs. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from simple_gpu_scheduler.base.jobs import Outcome
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.text import safe, show_gpus, show_moment, show_outcome
from simple_gpu_scheduler.base.units import show_duration, show_percent
from simple_gpu_scheduler.base.values import Any
from simple_gpu_scheduler.display.abbreviation import shorten
from simple_gpu_scheduler.display.table import aligned, cut, with_commands

from .use import throttled_seconds
from .use_text import advice, energy, gpu_use, percent

Report = Mapping[str, Any]

_BAR = 24
_MOST_FAILURES, _LAST_LINES, _MOST_TEMPLATES, _BEST = 10, 3, 15, 5
_LONGEST_TEXT = 160
# The changing parts of a wait: memory used, age, pid, and job. The rest says whose process it was.
_AS_IT_WAS = re.compile(
    r"(?: [\d.]+ [MG]iB)? for [\d.]+ (?:s|min|h|d)(?: \d+ (?:s|min|h))?(?=,|$)"
    r"|(?<=\()pid \d+, (?:jobs? .* of (?=run ))?"
)
NO_LOGS = "job output was not kept; --output files or --logs DIR keeps it"
_COLUMNS = (
    "job",
    "name",
    "state",
    "reason",
    "code",
    "attempts",
    "gpus",
    "read",
    "started",
    "ended",
    "wait",
    "runtime",
    "line",
    "source",
    "log",
    "command",
)
# What was measured, of all GPUs and attempts of the job together; columns are only added.
_MEASURED: Mapping[str, Callable[[dict[str, Any]], object]] = {
    "gpu_seconds": lambda measured: measured["held"],
    "gpu_utilization_mean": lambda measured: measured["utilization"],
    "gpu_utilization_p95": lambda measured: _most(measured, "utilization", "p95"),
    "gpu_wasted_seconds": lambda measured: measured["wasted"],
    "gpu_idle_seconds": lambda measured: measured["idle"],
    "gpu_memory_peak": lambda measured: _most(measured, "memory", "max"),
    "gpu_temperature_max": lambda measured: _most(measured, "temperature", "max"),
    "gpu_power_max": lambda measured: _most(measured, "power", "max"),
    "energy_joules": lambda measured: measured["energy"],
    "throttled_seconds": throttled_seconds,
    "cpu_seconds": lambda measured: measured["cpu"].get("seconds"),
    "cpu_memory_peak": lambda measured: measured["cpu"].get("peak_memory"),
    "energy_of_gpu": lambda measured: _told(measured["energy_of_gpu"]) if measured["energy"] is not None else None,
}


def show(report: Report, width: int | None) -> list[str]:
    """The whole report. Tables are cut to the width of the terminal, if given; other lines may wrap."""
    jobs = {job["job"]: job for job in report["jobs"]}
    blocks = (
        _head(report),
        _templates(report, width),
        cut(_gpus(report), width),
        _longest(report, jobs, width),
        _failures(report, jobs),
        cut(_not_started(report), width),
        cut(_waits(report), width),
        _results(report, width),
        # The end is what is seen on a small terminal.
        gpu_use(report, jobs, width, _LONGEST_TEXT),
        advice(report),
    )
    lines = [line for block in blocks if block for line in ["", *block]]
    return lines[1:]


def table(report: Report) -> Iterable[Sequence[object]]:
    """The headings and a row for each job, with a column for each parameter and one for the result."""
    names, metric = report["parameters"], report["metric"]
    taken = {*_COLUMNS, *_MEASURED, metric}
    yield [
        *_COLUMNS,
        *_MEASURED,
        *(f"parameter {name}" if name in taken else name for name in names),
        *([metric] if metric else []),
    ]
    for job in report["jobs"]:
        cells = {**job, "attempts": len(job["attempts"]), "gpus": ",".join(job["gpus"])}
        values = [job["parameters"].get(name, "") for name in names]
        measured = [of(job["measured"]) if job["measured"] else None for of in _MEASURED.values()]
        row = [*(cells[column] for column in _COLUMNS), *measured, *values, *([job["result"]] if metric else [])]
        # Spreadsheets handle control characters no better than terminals.
        yield [safe(cell) if isinstance(cell, str) else cell for cell in row]


def _told(is_so: bool) -> str:
    return "true" if is_so else "false"


def _most(measured: Report, name: str, figure: str) -> float | None:
    """The highest of all GPUs."""
    return max((gpu[name][figure] for gpu in measured["gpus"] if figure in gpu.get(name, ())), default=None)


def _head(report: Report) -> list[str]:
    run = report["run"]
    code = f" with exit code {run['code']}" if run["code"] is not None else ""
    took = f"{'took' if run['ended'] else 'so far'} {show_duration(run['seconds'])}"
    again = f" in {len(run['sessions'])} sessions" if len(run["sessions"]) > 1 else ""
    is_missed = bool(report["failures"]) or report["metric"] is not None
    no_logs = [f"  {NO_LOGS}"] if is_missed and report["longest"] and not has_logs(report) else []
    counts = ", ".join(f"{count} {state}" for state, count in report["outcomes"].items()) or "no jobs"
    return [
        f"run {safe(run['id'])}: {safe(run['state'])}{code}",
        f"  started {show_moment(run['begun'])}, {took}{again}, in {safe(run['directory'])}",
        f"  {counts}",
        *no_logs,
    ]


def has_logs(report: Report) -> bool:
    return any(job["log"] for job in report["jobs"])


def _templates(report: Report, width: int | None) -> list[str]:
    found = report["templates"]
    rows = [
        (
            str(each["jobs"]),
            str(each["failed"]),
            _took(each["mean"]),
            _took(each["longest"]),
            _took(each["total"]),
            safe(each["template"]),
        )
        for each in found[:_MOST_TEMPLATES]
    ]
    lines = _with_commands([("JOBS", "FAILED", "MEAN", "LONGEST", "TOTAL", "COMMANDS"), *rows], ">>>>>", width)
    return (lines + _more(len(found) - _MOST_TEMPLATES)) if rows else []


def _gpus(report: Report) -> list[str]:
    rows = [
        (
            safe(each["gpu"]),
            str(each["attempts"]),
            f"{('#' * int(each['share'] * _BAR)).ljust(_BAR, '.')} {show_percent(each['share']):>5}",
            show_duration(each["busy"]),
            *((percent(_of(each, "utilization")), energy({"energy": _of(each, "energy")})) if report["use"] else ()),
        )
        for each in report["gpus"]
    ]
    measured = ("USED", "ENERGY") if report["use"] else ()
    return (
        aligned([("GPU", "ATTEMPTS", "BUSY", "FOR", *measured), *rows], "<><>>>"[: 4 + len(measured)]) if rows else []
    )


def _of(gpu: Report, name: str) -> float | None:
    """What was measured of a GPU, if anything."""
    return gpu["measured"][name] if gpu["measured"] else None


def _longest(report: Report, jobs: Mapping[int, Report], width: int | None) -> list[str]:
    found = [jobs[number] for number in report["longest"]]
    rows = [(_took(job["runtime"]), str(job["job"]), job["state"], _where(job), _command(job)) for job in found]
    return _with_commands([("LONGEST", "JOB", "STATE", "ON", "COMMAND"), *rows], ">>", width) if rows else []


def _failures(report: Report, jobs: Mapping[int, Report]) -> list[str]:
    failed = [jobs[number] for number in report["failures"]]
    if not failed:
        return []
    lines = ["FAILED"]
    shown = failed[:_MOST_FAILURES]
    commands = shorten(tuple(map(_command, shown)), (_LONGEST_TEXT,) * len(shown))
    for job, command in zip(shown, commands, strict=True):
        lines += _failure(job, command)
    rest = len(failed) - _MOST_FAILURES
    if rest > 0:
        lines.append(f"  and {rest} more: {PROGRAM} history {safe(report['run']['id'])} --failed")
    return lines


def _failure(job: Report, command: str) -> list[str]:
    name = f' "{safe(job["name"])}"' if job["name"] else ""
    tries = len(job["attempts"])
    again = f", attempt {job['attempts'][-1]['attempt']}" if tries > 1 else ""
    place = f"line {job['line']}" + (f" of {safe(job['source'])}" if job["source"] else "")
    after = f" after {show_duration(job['runtime'])}" if job["runtime"] is not None else ""
    head = f"  job {job['job']}{name} ({place}){again}, {_where(job)}, {_how(job)}{after}: {command}"
    return [head, *(f"      | {_short(line)}" for line in job["tail"].split("\n")[-_LAST_LINES:] if line)]


def _not_started(report: Report) -> list[str]:
    """Each reason once: one failed job may have kept thousands from starting."""
    counts = Counter(job["reason"] for job in report["jobs"] if job["state"] == "not started" and job["reason"])
    rows = [(str(count), _short(reason)) for reason, count in counts.most_common(_MOST_FAILURES)]
    lines = aligned([("NOT STARTED", "WHY"), *rows], ">") if rows else []
    return lines + _more(len(counts) - _MOST_FAILURES)


def _how(job: Report) -> str:
    return show_outcome(Outcome(job["state"], job["code"] or 0, job["reason"] or ""))


def _waits(report: Report) -> list[str]:
    sums: dict[str, tuple[float, list[str]]] = {}
    for wait in report["waits"]:
        reason = _AS_IT_WAS.sub("", wait["for"])
        seconds, gpus = sums.get(reason, (0.0, []))
        gpus = gpus if wait["gpu"] in gpus else [*gpus, wait["gpu"]]
        sums[reason] = seconds + max(0.0, wait["to"] - wait["from"]), gpus
    longest_first = sorted(sums.items(), key=lambda each: -each[1][0])
    rows = [(show_duration(seconds), safe(",".join(gpus)), _short(reason)) for reason, (seconds, gpus) in longest_first]
    lines = aligned([("WAITED", "GPU", "FOR"), *rows[:_MOST_FAILURES]], ">") if rows else []
    return lines + _more(len(rows) - _MOST_FAILURES)


def _results(report: Report, width: int | None) -> list[str]:
    metric = report["metric"]
    if metric is None or not has_logs(report):
        return []
    found = sorted((job for job in report["jobs"] if job["result"] is not None), key=lambda job: job["result"])
    if not found:
        return [f"{safe(metric)}: no log has a number after this name"]
    lowest = found[:_BEST]
    highest = found[len(lowest) :][-_BEST:]
    rows = [_result(job, report["axes"]) for job in (*lowest, *highest)]
    if len(found) > len(rows):
        rows.insert(len(lowest), ("...", "", "", ""))
    lines = _with_commands([(safe(metric), "JOB", "STATE", "PARAMETERS"), *rows], ">>", width)
    without = [str(job["job"]) for job in report["jobs"] if job["result"] is None and job["attempts"]]
    if without:
        numbers = ", ".join(without[:_MOST_FAILURES]) + (", …" if len(without) > _MOST_FAILURES else "")
        lines.append(f"no number after this name in the output of {len(without)} of the jobs that ran: job {numbers}")
    return lines


def _result(job: Report, names: Iterable[str]) -> tuple[str, ...]:
    values = " ".join(f"{name}={job['parameters'][name]}" for name in names if name in job["parameters"])
    return f"{job['result']:.6g}", str(job["job"]), job["state"], safe(values) or _command(job)


def _more(count: int) -> list[str]:
    return [f"and {count} more"] if count > 0 else []


def _where(job: Report) -> str:
    return safe(show_gpus(job["gpus"]))


def _command(job: Report) -> str:
    return safe(job["command"].strip())


def _with_commands(rows: Sequence[Sequence[str]], sides: str, width: int | None) -> list[str]:
    return with_commands(rows, sides, width=width, most=_LONGEST_TEXT)


def _short(text: str) -> str:
    return safe(text[:_LONGEST_TEXT]) + ("…" if len(text) > _LONGEST_TEXT else "")


def _took(seconds: float | None) -> str:
    return "-" if seconds is None else show_duration(seconds)
