"""A journal of a few records, and the report of it."""

from collections.abc import Sequence
from typing import Any

from simple_gpu_scheduler.base.measurement import GPU_CURVE, CurvePoint
from simple_gpu_scheduler.journal.read import Record
from simple_gpu_scheduler.journal.run_state import RunState
from simple_gpu_scheduler.journal.samples import DrawnCurve
from simple_gpu_scheduler.report.build import Basis, build

START = 1_700_000_000.0


def began(at: float = 0, **more) -> Record:
    names = dict.fromkeys(("program", "host", "boot", "directory"), "x")
    return {"event": "run began", "at": START + at, "run": "r", "version": 1, **names, "argv": [], **more}


def read(job: int, command: str = "true", at: float = 0) -> Record:
    return {"event": "job read", "at": START + at, "job": job, "line": job, "command": command}


def started(at: float, job: int, attempt: int = 1, gpus: tuple[str, ...] = ("0",)) -> Record:
    return {"event": "job started", "at": START + at, "job": job, "attempt": attempt, "gpus": list(gpus), "slots": []}


def ended(at: float, job: int, attempt: int = 1, outcome: str = "succeeded", runtime: float = 1, **more) -> Record:
    rest = {"code": 0, "started": START + at - runtime, "runtime": runtime, "final": True, **more}
    return {"event": "job ended", "at": START + at, "job": job, "attempt": attempt, "outcome": outcome, **rest}


def waited(at: float, **reasons: str) -> Record:
    waits = [{"gpu": gpu.removeprefix("gpu"), "for": reason} for gpu, reason in reasons.items()]
    return {"event": "waited", "at": START + at, "waits": waits}


def over(at: float) -> Record:
    return {"event": "run ended", "at": START + at, "all_read": True, "code": 0, "left": 0}


def built(*records: Record, now: float = 1000, standing: str = "finished", **how) -> dict[str, Any]:
    state = RunState()
    state.feed(records)
    flags = {"is_alive": False, "runs_jobs": False, **how}
    return build(Basis(state, records, standing, now=START + now, program="1.0", **flags))


def use_of_gpu(gpu: str = "0", seconds: float = 100, mean: float = 50, **more) -> dict[str, Any]:
    """Of an attempt, as in the journal."""
    return {"gpu": gpu, "seconds": seconds, "utilization": {"mean": mean, "max": 100, "p95": 99.0}, **more}


def measured(at: float, job: int, *gpus: dict[str, Any], attempt: int = 1, **cpu) -> Record:
    return {"event": "attempt measured", "at": START + at, "job": job, "attempt": attempt, "gpus": [*gpus], "cpu": cpu}


def curve(
    points: Sequence[tuple[float, float | None]], seconds: float = 10, gpu: str = "0", **more: float
) -> DrawnCurve:
    """Of a GPU: the utilisation from each moment on; the other quantities never change."""
    rest = [more.get(name) for name in GPU_CURVE[1:]]
    return DrawnCurve(
        gpu, [CurvePoint(START + at, seconds, (busy, *rest), (busy, *rest)) for at, busy in points]
    )  # fmt: skip
