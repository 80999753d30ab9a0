"""`status`: reports on runs, as lines for people that are safe to print, or as JSON."""

import sys
import time

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.stdlib import json
from simple_gpu_scheduler.base.text import safe, show_command, show_gpus, show_moment, show_wait
from simple_gpu_scheduler.base.units import show_duration
from simple_gpu_scheduler.base.values import Any, Iterable, Mapping, Sequence
from simple_gpu_scheduler.cli.declarations import Command, Option
from simple_gpu_scheduler.cli.options.which_run import RUN, also_run, with_run
from simple_gpu_scheduler.display import table
from simple_gpu_scheduler.journal import files, find
from simple_gpu_scheduler.journal.read import Record
from simple_gpu_scheduler.journal.run_state import JobState
from simple_gpu_scheduler.output.log_file import last_line
from simple_gpu_scheduler.remote.client import ask

Report = Mapping[str, Any]

_COUNTS = ("running", "waiting", "succeeded", "failed", "not started", "cancelled", "interrupted")
_SELDOM = ("cancelled", "interrupted")
_LONGEST_LINE = 200


def show(report: Report, now: float, width: int | None = None) -> list[str]:
    """The lines of one run. To fit into a width, commands are shortened where they are alike; other lines are not."""
    lines = [_heading(report, now)]
    if report["problem"]:
        lines.append(f"  {safe(report['problem'])}")
    lines += _jobs(report["running"], width, is_alive=report["alive"])
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
        age = show_duration(max(0.0, now - report["began"])) if report["began"] else ""
        if standing == "running":
            return f"run {run}: {standing}{where}{age and f' for {age}'}"
        # It is the run that is so old, not its pause.
        return f"run {run}: {standing}{where and f',{where}'}{age and f', started {age} ago'}"
    ago = f" {show_duration(max(0.0, now - report['last']))} ago" if report["last"] else ""
    code = f" with exit code {report['code']}" if report["code"] is not None else ""
    resume = "" if standing in ("finished", "refused") else f"; resume it with: {PROGRAM} --resume {run}"
    return f"run {run}: {standing}{ago}{code}{where}{resume}"


def _jobs(jobs: Sequence[Report], width: int | None, *, is_alive: bool) -> Iterable[str]:
    heads = [_head(job, is_alive=is_alive) for job in jobs]
    commands: Sequence[str] = [show_command(job["command"].encode("utf-8", "surrogateescape")) for job in jobs]
    if width is not None:
        commands = table.shorten_after(heads, commands, width)
    for job, head, command in zip(jobs, heads, commands, strict=True):
        yield head + command
        if stalled := job.get("stalled"):
            yield f"      {show_moment(stalled['at'])}: seems stalled: {safe(stalled['reason'])}"
        if job.get("last_line"):
            yield f"      {_shortened(job['last_line'])}"


def _head(job: Report, *, is_alive: bool) -> str:
    took = show_duration(job["runtime"]) if is_alive else "when it died"
    if is_alive and job.get("estimate") is not None:
        took += f" of about {show_duration(job['estimate'])}"
    if is_alive and job.get("alone"):
        took += f", alone on its GPU{'s' * (len(job['gpus']) > 1)} (mem=auto)"
    name = f' "{safe(job["name"])}"' if job["name"] else ""
    again = f", attempt {job['attempt']}" if job["attempt"] > 1 else ""
    return f"  {safe(show_gpus(job['gpus']))}, {took}: job {job['job']}{name}{again}: "


def _shortened(line: str) -> str:
    return safe(line[:_LONGEST_LINE]) + ("…" if len(line) > _LONGEST_LINE else "")


def _outlook(report: Report) -> Iterable[str]:
    if report["waits"]:
        yield "waiting: " + " · ".join(safe(wait) for wait in report["waits"])
    if report["eta"] is not None:
        if report["all_read"]:
            yield f"done in about {show_duration(report['eta'])}"
        elif report["running"]:
            yield f"running jobs will be done in about {show_duration(report['eta'])}"
    elif report["eta_unknown"]:
        yield f"no ETA: {safe(report['eta_unknown'])}"


_EXAMPLES = r"""
simple_gpu_scheduler status
simple_gpu_scheduler status --watch
simple_gpu_scheduler status --json | jq '.[0].counts'
"""
_HELP = """Show the running jobs with their GPUs, the number of waiting jobs, and when all will be done.

RUN is a run ID or a prefix of it; the default is all your active runs and the last one that ended.
"""


def _status(run: str | None, as_json: bool, watch: bool) -> int:
    if not watch:
        _print(_reports(run), as_json=as_json)
        return 0

    def print_it() -> bool:
        reports = _reports(run)
        _print(reports, as_json=as_json, watches=True)
        return any(report["alive"] for report in reports)

    table.watch(print_it)
    return 0


def _print(reports: Sequence[Report], *, as_json: bool, watches: bool = False) -> None:
    if as_json:
        print(json.dumps(reports, indent=None if watches else 2), flush=True)
        return
    now = time.time()
    width = table.width_of_stdout() if watches else None  # lines that are redrawn do not wrap
    lines = [line for report in reports for line in show(report, now, width)] or ["no runs yet"]
    table.show(lines, redraws=watches)


def _reports(run: str | None) -> list[Report]:
    if run:
        return [_report(find.choose(run))]
    chosen: list[str] = []
    has_past = False
    for path in find.all_runs():
        is_alive = files.is_alive(path)
        if is_alive or not has_past:
            chosen.append(path)
        has_past = has_past or not is_alive
    return [report for path in chosen if (report := _report_if_any(path))]


def _report_if_any(path: str) -> Report | None:
    """None for a broken file, which must not hide the others."""
    try:
        return _report(path)
    except UserError as error:
        print(error, file=sys.stderr)
        return None


def _report(path: str) -> Report:
    problem = ""
    if files.is_alive(path):
        try:
            return _of_living(path)
        except UserError as error:  # it has ended meanwhile, or does not respond
            problem = str(error)
    look = find.look(path)
    state = look.state
    began = state.first_began
    return {
        **_about(path, state.run, state.began, look.is_alive),
        "standing": look.standing,
        "began": began.get("at", 0.0),
        "problem": problem if look.is_alive else "",
        "code": state.ended.get("code") if state.ended else None,
        "last": state.last_at,
        "running": [_was_running(each) for each in state.jobs.values() if each.state == "running"],
        "counts": state.counts(),
        "paused": state.is_paused,
        "stopping": False,
        "waits": [show_wait(wait["gpu"], wait["for"]) for wait in state.waits] if look.is_alive else [],
        "eta": None,
        "eta_unknown": "",
        "all_read": bool(state.ended and state.ended.get("all_read")),
    }


def _of_living(path: str) -> Report:
    answer = ask(path, {"do": "status"})
    began = find.began(path)
    for job in answer["running"]:
        if "log" in job:
            job["last_line"] = last_line(job["log"])
    standing = "stopping" if answer["stopping"] else "paused" if answer["paused"] else "running"
    return {
        **_about(path, answer["run"], began, is_alive=True),
        "standing": standing,
        "began": began.get("at", 0.0),
        "problem": "",
        "code": None,
        "last": time.time(),
        **answer,
    }


def _about(path: str, run: str, began: Record, is_alive: bool) -> dict[str, Any]:
    directory, argv = began.get("directory", ""), began.get("argv", [])
    return {"run": run, "alive": is_alive, "journal": path, "directory": directory, "argv": argv}


def _was_running(each: JobState) -> dict[str, Any]:
    job = {
        "job": each.job.number,
        "name": each.job.name,
        "attempt": each.attempts,
        "gpus": list(each.gpus),
        "runtime": max(0.0, time.time() - each.started_at),
        "command": each.job.command.decode("utf-8", "surrogateescape"),
    }
    return job | ({"log": each.log, "last_line": last_line(each.log)} if each.log else {})


status_command = Command(
    "status",
    callback=with_run(_status),
    help=_HELP,
    argument=RUN,
    others=(
        also_run("all active runs, and the last one that ended"),
        Option(["--json", "as_json"], is_flag=True, help="Print a JSON array; with --watch, one per line."),
        Option(["--watch"], is_flag=True, help="Repeat every two seconds until the run ends or Ctrl-C."),
    ),
    examples=_EXAMPLES,
)
