"""A report of one job -> lines for people, safe to print: what became of it, and what it did to its GPUs. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from simple_gpu_scheduler.base.jobs import Outcome
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.text import safe, show_curve, show_gpus, show_moment, show_outcome
from simple_gpu_scheduler.base.units import show_bytes, show_duration, show_energy, show_percent, show_size
from simple_gpu_scheduler.base.values import Any, Callable
from simple_gpu_scheduler.display.table import aligned, cut

from .use import is_of_gpu
from .use_text import NOTHING, advice, peak

Report = Mapping[str, Any]

_NOT_MEASURED = (
    "nothing was measured: it ran for less than a second, or the run had --no-samples, or was of an older version"
)
_NOT_YET = (
    "it is still running: the figures follow when it has ended, curves every 5 minutes or so; "
    f"now: {PROGRAM} status --json"
)
_LAST_LINES = 10
_LINKS = {"PCIe": "pcie", "NVLink": "nvlink"}
_WAYS = {"received": "to the GPU", "sent": "from it"}


def show_one(report: Report, width: int | None) -> list[str]:
    """All about the only job of this report."""
    (job,) = report["jobs"]
    found: list[list[str]] = [_head(report, job), cut(_attempts(job), width)]
    if job["measured"] is None:
        found.append(_unmeasured(job))
    else:
        found += [_gpu(report, job, gpu) for gpu in job["measured"]["gpus"]]
        found.append(_cpu(job))
    found += [advice(report), _output(job)]
    lines = [line for block in found if block for line in ["", *block]]
    return lines[1:]


def _unmeasured(job: Report) -> list[str]:
    """Why there are no figures, and the curves of an attempt that is running, as far as they are written."""
    if job["state"] == "running":
        drawn = [each for each in job["attempts"][-1]["curves"] if "utilization" in each]
        return [_NOT_YET, *(f"  {show_curve(each['utilization'])}  GPU {safe(each['gpu'])}" for each in drawn)]
    return [_NOT_MEASURED] if job["attempts"] else []


def _head(report: Report, job: Report) -> list[str]:
    name = f' "{safe(job["name"])}"' if job["name"] else ""
    reason = f": {safe(job['reason'])}" if job["reason"] and job["state"] not in ("failed", "killed") else ""
    place = f"line {job['line']}" + (f" of {safe(job['source'])}" if job["source"] else "")
    told = [place]
    if job["started"] is not None:
        told += [f"started {show_moment(job['started'])}"]
        told += [f"waited {show_duration(job['wait'])}"] if job["wait"] is not None else []
        took = "ran for" if job["ended"] is not None else "has run for"
        told += [f"{took} {show_duration(job['runtime'])}"] if job["runtime"] is not None else []
        told += [f"on {safe(show_gpus(job['gpus']))}"]
    return [
        f"job {job['job']}{name} of run {safe(report['run']['id'])}: {_outcome(job['state'], job['code'])}{reason}",
        f"  {safe(job['command'].strip())}",
        f"  {', '.join(told)}",
        *_waste(job["measured"]),
    ]


def _waste(measured: Report | None) -> list[str]:
    if not measured or measured["wasted"] is None or not measured["held"]:
        return []
    wasted, held = measured["wasted"], measured["held"]
    told = f"wasted {show_duration(wasted)} ({show_percent(wasted / held)}) of {show_duration(held)} of GPU time"
    energy = "" if measured["energy"] is None else f", {show_energy(measured['energy'])}"
    return [f"  {told}{energy}"]


def _outcome(state: Any, code: int | None) -> str:
    return state if state == "not started" else show_outcome(Outcome(state, code or 0))


def _attempts(job: Report) -> list[str]:
    if len(job["attempts"]) < 2:  # noqa: PLR2004 - then the first lines say it
        return []
    rows = [
        (
            str(each["attempt"]),
            _outcome(each["outcome"] or job["state"], each["code"]),
            safe(show_gpus(each["gpus"])),
            show_moment(each["started"]),
            NOTHING if each["ended"] is None else show_duration(each["ended"] - each["started"]),
        )
        for each in job["attempts"]
    ]
    return aligned([("ATTEMPT", "OUTCOME", "ON", "STARTED", "FOR"), *rows], ">")


def _gpu(report: Report, job: Report, gpu: Report) -> list[str]:
    """One GPU of the last attempt that was measured."""
    attempt = next(each for each in reversed(job["attempts"]) if each["measured"])
    which = f", attempt {attempt['attempt']}" if len(job["attempts"]) > 1 else ""
    lines = [f"GPU {safe(gpu['gpu'])}{which}"]
    drawn = next((each for each in attempt["curves"] if each["gpu"] == gpu["gpu"] and "utilization" in each), None)
    if drawn:
        lines.append(f"  {show_curve(drawn['utilization'])}  utilisation over {show_duration(gpu['seconds'])}")
    lanes = [lane for lane in report["lanes"] if lane["gpu"] == gpu["gpu"]]
    lines += [f"  {line}" for line in _figures(gpu, lanes, attempt)]
    return lines + [f"  {line}" for line in aligned([row for row in _facts(gpu) if row[1]] or [("", "")])]


def _figures(gpu: Report, lanes: Sequence[Report], attempt: Report) -> list[str]:
    shown: Sequence[tuple[str, str, Callable[[float], str]]] = (
        ("utilization", "utilisation", lambda value: f"{value:.0f} %"),
        ("memory_copy", "memory copy", lambda value: f"{value:.0f} %"),
        ("memory", "memory", show_size),
        ("temperature", "temperature", lambda value: f"{value:.0f} °C"),
        ("power", "power", lambda value: f"{value:.0f} W"),
        ("clock", "clock", lambda value: f"{value:.0f} MHz"),
    )
    rows = []
    for name, label, show in shown:
        if name not in gpu:
            continue
        least = _least(name, lanes, attempt)
        p95 = gpu[name].get("p95")
        rows.append(
            (
                label,
                NOTHING if least is None else show(least),
                show(gpu[name]["mean"]),
                show(gpu[name]["max"]),
                NOTHING if p95 is None else show(p95),
                "of the whole GPU" if is_of_gpu(gpu, name) else "",
            )
        )
    return aligned([("", "MIN", "MEAN", "MAX", "P95", ""), *rows], "<>>>>") if rows else []


def _least(name: str, lanes: Sequence[Report], attempt: Report) -> float | None:
    """The lowest step of the curve in the time of the attempt: the figures have no minimum."""
    values = [
        value
        for lane in lanes
        for at, value in enumerate(lane.get(name, ()))
        if value is not None
        and lane["from"] + (at + 1) * lane["step"] > attempt["started"]
        and (attempt["ended"] is None or lane["from"] + at * lane["step"] < attempt["ended"])
    ]
    return min(values, default=None)


def _facts(gpu: Report) -> Iterable[tuple[str, str]]:
    seconds = gpu["seconds"]
    if "idle" in gpu:
        yield "at 0 %", show_duration(gpu["idle"]) + (f" ({show_percent(gpu['idle'] / seconds)})" if seconds else "")
    yield "peak memory", "" if "memory" not in gpu else peak([gpu])
    if "energy" in gpu:
        notes = [
            *(["computed from the power"] if gpu.get("by_power") else []),
            *(["of the whole GPU"] if is_of_gpu(gpu, "energy") else []),
        ]
        yield "energy", show_energy(gpu["energy"]) + (f" ({', '.join(notes)})" if notes else "")
    if "throttled" in gpu:
        reasons = [f"{show_duration(each)} by {safe(why)}" for why, each in gpu["throttled"].items() if each]
        yield "throttled", ", ".join(reasons) or "never"
    traffic = gpu.get("traffic", {})
    for link, name in _LINKS.items():
        told = {way: traffic[f"{name}_{way}"] for way in _WAYS if f"{name}_{way}" in traffic}
        where = "from the GPU" if [*told] == ["sent"] else ""
        yield link, ", ".join(f"{show_bytes(size)} {where or _WAYS[way]}" for way, size in told.items())
    yield "XID errors", ", ".join(f"{safe(xid)} ({count} times)" for xid, count in gpu.get("xids", {}).items())
    yield "shared", f"{show_duration(gpu['shared'])} with other jobs" if gpu.get("shared") else ""


def _cpu(job: Report) -> list[str]:
    cpu = job["measured"]["cpu"]
    rows = []
    if "seconds" in cpu:
        ran = sum(each["ended"] - each["started"] for each in job["attempts"] if each["measured"] and each["ended"])
        of = f" of {cpu['cores']:g}" if "cores" in cpu else ""
        cores = f", {cpu['seconds'] / ran:.1f}{of} cores busy on average" if ran else ""
        rows.append(("time", f"{show_duration(cpu['seconds'])}{cores}"))
    if "peak_memory" in cpu:
        rows.append(("peak memory", show_bytes(cpu["peak_memory"])))
    if "read" in cpu or "written" in cpu:
        rows.append(("disks", f"{show_bytes(cpu.get('read', 0))} read, {show_bytes(cpu.get('written', 0))} written"))
    return ["CPU", *(f"  {line}" for line in aligned(rows))] if rows else []


def _output(job: Report) -> list[str]:
    lines = [line for line in job["tail"].split("\n") if line][-_LAST_LINES:]
    if not lines:
        return (
            ["no output was kept; --output files or --logs DIR keeps it"] if job["attempts"] and not job["log"] else []
        )
    return ["LAST LINES", *(f"  | {safe(line[:200])}" for line in lines)]
