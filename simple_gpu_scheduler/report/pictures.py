"""A report -> four pictures (PNG) for a paper: what each GPU did over time, of a run or of one job.

Each GPU has a strip of its own, since nobody can follow lines that cross. Up to four GPUs fit the width of a column.
"""

import io
from collections.abc import Mapping, Sequence

from simple_gpu_scheduler.base.extras import figure_maker
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.units import axis_unit
from simple_gpu_scheduler.base.values import Any, NamedTuple

_COLUMN, _TWO_COLUMNS, _DPI, _POINTS = 3.5, 7.0, 300, 8
_LEAST_HEIGHT, _STRIP, _AROUND, _MOST_HEIGHT = 2.2, 0.42, 0.6, 9.0  # inches
_MOST_IN_COLUMN = 4
_LONGEST_NAME = 13
_COLOUR, _GRID = "#0072B2", "#d0d0d0"
_EMPTY = 0.05  # of the height, above what is highest


class PaperPicture(NamedTuple):
    """What one picture shows: the name of its file and of the curve, and its axis, which may have a fixed top."""

    file: str
    curve: str
    label: str
    least: float | None = None
    most: float | None = None


PICTURES = (
    PaperPicture("utilization.png", "utilization", "GPU utilisation (%)", 0, 100),
    PaperPicture("memory_copy.png", "memory_copy", "memory-copy utilisation (%)", 0, 100),
    PaperPicture("temperature.png", "temperature", "temperature (°C)"),
    PaperPicture("power.png", "power", "power (W)", 0),
)


def draw_pictures(report: Mapping[str, Any]) -> dict[str, bytes]:
    """Each picture by the name of its file, of what was measured. A UserError says how to install matplotlib."""
    figure_of = figure_maker()
    begin = report["lanes"][0]["from"] if report["lanes"] else 0.0
    since = "the job" if report["job"] is not None else "the run"
    found = {}
    for picture in PICTURES:
        lanes = [lane for lane in report["lanes"] if picture.curve in lane]
        if lanes:
            found[picture.file] = _draw(figure_of, picture, lanes, begin, since)
    return found


def _draw(figure_of: Any, picture: PaperPicture, lanes: Sequence[Mapping[str, Any]], begin: float, since: str) -> bytes:
    width = _COLUMN if len(lanes) <= _MOST_IN_COLUMN else _TWO_COLUMNS
    height = min(_MOST_HEIGHT, max(_LEAST_HEIGHT, _AROUND + _STRIP * len(lanes)))
    figure = figure_of(figsize=(width, height), dpi=_DPI, layout="constrained")
    strips = figure.subplots(len(lanes), 1, sharex=True, squeeze=False)[:, 0]
    end = max(lane["from"] + lane["step"] * len(lane["seconds"]) for lane in lanes)
    size, unit = axis_unit(end - begin)
    for axes, lane in zip(strips, lanes, strict=True):
        edges = [(lane["from"] + lane["step"] * at - begin) / size for at in range(len(lane["seconds"]) + 1)]
        values = [float("nan") if value is None else value for value in lane[picture.curve]]
        axes.stairs(values, edges, baseline=None, color=_COLOUR, linewidth=0.9)
        _lay_out(axes, picture, _reach(picture, lanes), (end - begin) / size)
        if len(lanes) > 1:
            axes.set_ylabel(_label(lane["gpu"]), fontsize=_POINTS, rotation=0, ha="left", va="center", parse_math=False)
            axes.yaxis.set_label_coords(1.01, 0.5)
    figure.supylabel(picture.label, fontsize=_POINTS)
    strips[-1].set_xlabel(f"time since {since} started ({unit})", fontsize=_POINTS)
    made = io.BytesIO()
    figure.savefig(made, format="png")
    return made.getvalue()


def _label(gpu: str) -> str:
    """Short enough for a paper; that of a MIG instance is a UUID."""
    return "GPU " + (safe(gpu) if len(gpu) <= _LONGEST_NAME else safe(gpu[: _LONGEST_NAME - 1]) + "…")


def _lay_out(axes: Any, picture: PaperPicture, reach: tuple[float, float], end: float) -> None:
    axes.set_xlim(0, end)
    axes.set_ylim(*reach)
    if picture.most is not None:
        axes.set_yticks([picture.least, picture.most])
    else:
        axes.locator_params(axis="y", nbins=3)
    axes.tick_params(labelsize=_POINTS, width=0.6, length=2.5)
    axes.grid(axis="y", linewidth=0.4, color=_GRID)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _reach(picture: PaperPicture, lanes: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """From where to where the axis goes; the same for all GPUs."""
    known = [value for lane in lanes for value in lane[picture.curve] if value is not None]
    least = picture.least if picture.least is not None else min(known)
    most = picture.most if picture.most is not None else max(known)
    room = max(1.0, most - least) * _EMPTY
    return least - (room if picture.least is None or picture.most is not None else 0), most + room
