"""A report on a run -> lines for people, safe to print. Pure but for the time of day, which is passed in."""

from collections.abc import Iterable, Mapping
from typing import Any

from simple_gpu_scheduler.units import show_duration
from simple_gpu_scheduler.wording import safe, show_command

Report = Mapping[str, Any]

_COUNTS = ("running", "waiting", "succeeded", "failed", "not started", "cancelled")
_SELDOM = ("cancelled",)
_LONGEST_LINE = 200


def show(report: Report, now: float) -> list[str]:
    """The lines of one run."""
    lines = [_heading(report, now)]
    if report["problem"]:
        lines.append(f"  {safe(report['problem'])}")
    for job in report["running"]:
        lines += _job(job, is_alive=report["alive"])
    counts = report["counts"]
    lines.append(
        "  " + ", ".join(f"{counts[name]} {name}" for name in _COUNTS if name in counts and _counts(counts, name))
    )
    lines += [f"  {line}" for line in _outlook(report)]
    return lines


def _counts(counts: Mapping[str, int], name: str) -> bool:
    return bool(counts[name]) or name not in _SELDOM


def _heading(report: Report, now: float) -> str:
    run, standing = safe(report["run"]), safe(report["standing"])
    where = f" in {safe(report['directory'])}" if report["directory"] else ""
    if report["alive"]:
        since = f" for {show_duration(max(0.0, now - report['began']))}" if report["began"] else ""
        return f"run {run}: {standing}{where}{since}"
    ago = f" {show_duration(max(0.0, now - report['last']))} ago" if report["last"] else ""
    code = f" with exit code {report['code']}" if report["code"] is not None else ""
    resume = "" if standing == "finished" else f"; simple_gpu_scheduler --resume {run} goes on with it"
    return f"run {run}: {standing}{code}{ago}{where}{resume}"


def _job(job: Report, *, is_alive: bool) -> Iterable[str]:
    where = f"gpu {','.join(job['gpus'])}" if job["gpus"] else "cpu"
    took = show_duration(job["runtime"]) if is_alive else "when it died"
    if is_alive and job.get("estimate") is not None:
        took += f" of about {show_duration(job['estimate'])}"
    name = f' "{safe(job["name"])}"' if job["name"] else ""
    again = f", attempt {job['attempt']}" if job["attempt"] > 1 else ""
    command = show_command(job["command"].encode("utf-8", "surrogateescape"))
    yield f"  {safe(where)}, {took}: job {job['job']}{name}{again}: {command}"
    if job.get("last_line"):
        yield f"      {_shortened(job['last_line'])}"


def _shortened(line: str) -> str:
    return safe(line[:_LONGEST_LINE]) + ("…" if len(line) > _LONGEST_LINE else "")


def _outlook(report: Report) -> Iterable[str]:
    if report["waits"]:
        yield "waiting: " + " · ".join(safe(wait) for wait in report["waits"])
    if report["eta"] is not None:
        yield (
            f"done in about {show_duration(report['eta'])}"
            if report["all_read"]
            else (f"what runs is done in about {show_duration(report['eta'])}")
        )
    elif report["eta_unknown"]:
        yield f"no estimate: {safe(report['eta_unknown'])}"
