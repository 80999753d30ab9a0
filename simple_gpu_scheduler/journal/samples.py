"""The curves of what attempts did to their GPUs, in `RUN.samples` beside the journal: written, and read back.

Each is a line that begins like those of a journal, so that a torn one is recognised. The format is in docs/journal.md.
"""

import os
import stat
import time

from simple_gpu_scheduler.base.jobs import Key
from simple_gpu_scheduler.base.measurement import CPU, CPU_CURVE, GPU_CURVE, Curve, CurvePoint
from simple_gpu_scheduler.base.values import Iterable, NamedTuple, Sequence
from simple_gpu_scheduler.events import CurvesDrawn

from . import files
from .fields import is_text
from .read import Record, read_records
from .records import record

_CURVE = "curve"
_DIGITS = 3
_FAR = 1e15
_QUANTITIES = dict.fromkeys((*GPU_CURVE, *CPU_CURVE))


def open_to_append(path: str) -> int:
    """Open the file, which is made if it is not there."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(path, flags, 0o600)
    files.check_own(fd, path)
    size = os.fstat(fd).st_size
    if size and os.pread(fd, 1, size - 1) != b"\n":  # an earlier scheduler was killed while it wrote
        os.write(fd, b"\n")
    return fd


def encode_curves(event: CurvesDrawn) -> bytes:
    """The lines of these curves."""
    return "".join([_line(event, curve) for curve in event.curves if curve.points]).encode()


def _line(event: CurvesDrawn, curve: Curve) -> str:
    points, attempt = curve.points, event.attempt
    columns: dict[str, list[float | None]] = {
        "from": [round(point.at, 1) for point in points],
        "seconds": [round(point.seconds, 2) for point in points],
    }
    for at, name in enumerate(curve.names):
        means, maxima = (
            [short_figure(point.means[at]) for point in points],
            [short_figure(point.maxima[at]) for point in points],
        )
        if any(each is not None for each in means):
            columns[name] = means
        if maxima != means:
            columns[f"{name}_max"] = maxima
    return record(
        _CURVE,
        time.time(),
        job=attempt.job.number,
        attempt=attempt.number,
        gpu=curve.gpu,
        began=round(event.began_at, _DIGITS),
        **columns,
    )


def short_figure(value: float | None) -> float | None:
    """Tenths, but bytes in whole, and `12` rather than `12.0`."""
    if value is None:
        return None
    short = round(value, 1)
    return int(short) if short == int(short) or short > 10_000 else short  # noqa: PLR2004


class DrawnCurve(NamedTuple):
    """A curve that was read; its times are since the epoch."""

    gpu: str
    points: Sequence[CurvePoint]


def read_curves(journal: str) -> dict[Key, list[DrawnCurve]]:
    """Those of each attempt, by what is there; nothing if nothing was written, or by another user."""
    try:
        data = _read(files.samples_of(journal))
    except OSError:
        return {}
    return curves_in(read_records(data).records)


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        state = os.fstat(fd)
        return file.read() if stat.S_ISREG(state.st_mode) and state.st_uid in (os.getuid(), 0) else b""


def curves_in(records: Iterable[Record]) -> dict[Key, list[DrawnCurve]]:
    """A later line replaces what was drawn of the same curve from its own beginning on."""
    found: dict[Key, dict[str, list[CurvePoint]]] = {}
    for each in records:
        if each["event"] == _CURVE and _is_sound(each):
            curves = found.setdefault((each["job"], each["attempt"]), {})
            points = _points(each)
            before = [point for point in curves.get(each["gpu"], ()) if point.at < points[0].at]
            curves[each["gpu"]] = before + points
    return {key: [DrawnCurve(gpu, points) for gpu, points in curves.items()] for key, curves in found.items()}


def _points(record: Record) -> list[CurvePoint]:
    names = CPU_CURVE if record["gpu"] == CPU else GPU_CURVE
    nothing = [None] * len(record["from"])
    means = [record.get(name, nothing) for name in names]
    maxima = [record.get(f"{name}_max", mean) for name, mean in zip(names, means, strict=True)]
    began = record["began"]
    return [
        CurvePoint(began + at, seconds, mean, most)
        for at, seconds, mean, most in zip(
            record["from"], record["seconds"], zip(*means, strict=True), zip(*maxima, strict=True), strict=True
        )
    ]


def _is_sound(record: Record) -> bool:
    size = len(record["from"]) if isinstance(record.get("from"), list) else 0
    columns = [
        record.get("seconds"),
        *(record[each] for name in _QUANTITIES for each in (name, f"{name}_max") if each in record),
    ]
    return (
        size > 0
        and all(type(record.get(name)) is int for name in ("job", "attempt"))
        and is_text(record.get("gpu"))
        and _is_number(record.get("began"))
        and all(map(_is_number, (*record["from"], *(record["seconds"] or ()))))
        and all(
            isinstance(column, list)
            and len(column) == size
            and all(each is None or _is_number(each) for each in column)
            for column in columns
        )
    )


def _is_number(value: object) -> bool:
    return type(value) in (float, int) and -_FAR < value < _FAR  # type: ignore[operator] # mypy cannot see why
