"""A report -> four pictures (PNG) for a paper: what each GPU did over time, of a run or of one job.

Up to three GPUs share a picture of the width of a column; each of more has a strip of its own, across two columns,
since nobody can follow eight lines that cross.
"""

import io
from collections.abc import Mapping, Sequence

from simple_gpu_scheduler.base.extras import figure_maker
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.units import axis_unit
from simple_gpu_scheduler.base.values import Any, NamedTuple

_COLUMN, _TWO_COLUMNS, _DPI, _POINTS = 3.5, 7.0, 300, 8
_HEIGHT, _STRIP, _AROUND, _MOST_HEIGHT = 2.2, 0.42, 0.6, 9.0  # inches
_MOST_TOGETHER = 3
# Safe for the colour-blind (Okabe and Ito), and told apart by their dashes without any colour.
_LINES = (("#0072B2", "-"), ("#D55E00", (0, (4, 1.2))), ("#009E73", (0, (1.2, 1))))
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
    is_together = len(lanes) <= _MOST_TOGETHER
    width = _COLUMN if is_together else _TWO_COLUMNS
    height = _HEIGHT if is_together else min(_MOST_HEIGHT, _AROUND + _STRIP * len(lanes))
    figure = figure_of(figsize=(width, height), dpi=_DPI, layout="constrained")
    strips = figure.subplots(1 if is_together else len(lanes), 1, sharex=True, squeeze=False)[:, 0]
    end = max(lane["from"] + lane["step"] * len(lane["seconds"]) for lane in lanes)
    size, unit = axis_unit(end - begin)
    for number, lane in enumerate(lanes):
        axes = strips[0 if is_together else number]
        colour, dashes = _LINES[number if is_together else 0]
        edges = [(lane["from"] + lane["step"] * at - begin) / size for at in range(len(lane["seconds"]) + 1)]
        values = [float("nan") if value is None else value for value in lane[picture.curve]]
        label = safe(f"GPU {lane['gpu']}")
        axes.stairs(values, edges, baseline=None, color=colour, linestyle=dashes, linewidth=0.9, label=label)
    for axes in strips:
        _lay_out(axes, picture, _reach(picture, lanes), (end - begin) / size)
    if is_together:
        strips[0].set_ylabel(picture.label, fontsize=_POINTS)
        if len(lanes) > 1:
            strips[0].legend(
                fontsize=_POINTS, frameon=False, ncols=len(lanes), loc="lower left", bbox_to_anchor=(0, 1), borderpad=0
            )
    else:
        figure.supylabel(picture.label, fontsize=_POINTS)
        for axes, lane in zip(strips, lanes, strict=True):
            axes.set_ylabel(
                safe(f"GPU {lane['gpu']}"), fontsize=_POINTS, rotation=0, ha="left", va="center", parse_math=False
            )
            axes.yaxis.set_label_coords(1.01, 0.5)
    strips[-1].set_xlabel(f"time since {since} started ({unit})", fontsize=_POINTS)
    made = io.BytesIO()
    figure.savefig(made, format="png")
    return made.getvalue()


def _lay_out(axes: Any, picture: PaperPicture, reach: tuple[float, float], end: float) -> None:
    axes.set_xlim(0, end)
    axes.set_ylim(*reach)
    if picture.most is not None:
        axes.set_yticks([picture.least, picture.most])
    else:
        axes.locator_params(axis="y", nbins=4)
    axes.tick_params(labelsize=_POINTS, width=0.6, length=2.5)
    axes.grid(axis="y", linewidth=0.4, color="#d0d0d0")
    axes.spines[["top", "right"]].set_visible(False)


def _reach(picture: PaperPicture, lanes: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """From where to where the axis goes; the same for all GPUs."""
    known = [value for lane in lanes for value in lane[picture.curve] if value is not None]
    least = picture.least if picture.least is not None else min(known)
    most = picture.most if picture.most is not None else max(known)
    room = max(1.0, most - least) * _EMPTY
    return least - (room if picture.least is None or picture.most is not None else 0), most + room
