"""A report -> a chart (PNG): what ran when on which GPU, by outcome, how busy each GPU was, and the outcomes."""

import io
from collections.abc import Iterable, Mapping, Sequence

from simple_gpu_scheduler.base.extras import figure_maker
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.units import axis_unit
from simple_gpu_scheduler.base.values import Any

from .numbers import CPU, STATES, in_order

# As on the page, and safe for red-green blindness; the greys are further apart, and timed out is lighter, since there
# are no patterns here.
COLOURS = {
    "succeeded": "#2f76b0",
    "failed": "#c74408",
    "timed out": "#e3ac3b",
    "stalled": "#b3446c",
    "killed": "#8b3f9e",
    "not started": "#4a5260",
    "cancelled": "#a9b1bd",
    "interrupted": "#77808f",
    "running": "#08805d",
    "waiting": "#d9dde4",
}
_WIDTH, _DPI = 10.0, 150
_LANE, _MOST_HEIGHT = 0.28, 20.0
_MOST_LANES = 200
_CURVE, _AT_ZERO = "#3b5c9e", "#b0126f"  # as on the page
_HAIR = 0.0015  # of the width

_SIGNATURE = b"\x89PNG\r\n\x1a\n"

Bar = tuple[float, float, str]  # start, end, outcome
Lane = tuple[str, list[Bar] | None]  # the GPU, and what ran; None for its curve


def is_picture(beginning: bytes) -> bool:
    """Whether a file that begins with these bytes is a picture in the form that `draw` writes."""
    return beginning.startswith(_SIGNATURE)


def draw(report: Mapping[str, Any]) -> bytes:
    """Draw the picture. A UserError says how to install matplotlib."""
    figure_of = figure_maker()
    run = report["run"]
    curves = {lane["gpu"]: lane for lane in report["lanes"] if "utilization" in lane}
    lanes = _lanes(report["jobs"], run["heard"], curves)
    begun, until = _whole(run, lanes, is_of_job=report["job"] is not None)
    zero, what = (run["begun"], "run") if report["job"] is None else (begun, f"job {report['job']} of run")
    size, unit = axis_unit(until - begun)
    height = min(_MOST_HEIGHT, 2.6 + _LANE * max(2, len(lanes)))
    figure = figure_of(figsize=(_WIDTH, height), dpi=_DPI, layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[height - 1.6, 0.5])
    _draw_lanes(above, lanes, zero, size, hair=_HAIR * (until - begun))
    for number, (gpu, lane) in enumerate(lanes):
        if lane is None:
            _draw_curve(above, curves[gpu], number, zero, size)
    above.set_xlabel(f"time since the {what.split()[0]} started, in {unit}")
    above.set_xlim((begun - zero) / size, max((until - zero) / size, 1e-3))
    above.set_title(safe(f"{what} {run['id']}: {run['state']}"), loc="left", parse_math=False)
    _draw_outcomes(below, report["outcomes"], is_measured=bool(curves))
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def _whole(run: Mapping[str, Any], lanes: Iterable[Lane], *, is_of_job: bool = False) -> tuple[float, float]:
    """The time range to show; a clock that was set back may put its start before that of the run."""
    bars = [bar for _, lane in lanes for bar in lane or ()]
    if is_of_job and bars:
        return min(start for start, _, _ in bars), max(end for _, end, _ in bars)
    begun = min([run["begun"], *(start for start, _, _ in bars)])
    return begun, max([run["ended"] or run["heard"], *(end for _, end, _ in bars)])


def _lanes(jobs: Iterable[Mapping[str, Any]], until: float, curves: Iterable[str]) -> list[Lane]:
    """For each GPU, by name, as many lanes as it had attempts at once, and one for its curve, if it has one."""
    by_gpu: dict[str, list[Bar]] = {}
    for job in jobs:
        for attempt in job["attempts"]:
            end = max(attempt["started"], until) if attempt["ended"] is None else attempt["ended"]
            for gpu in attempt["gpus"] or [CPU]:
                by_gpu.setdefault(gpu, []).append((attempt["started"], end, attempt["outcome"] or "running"))
    found: list[Lane] = []
    for gpu in sorted(by_gpu, key=in_order):
        found += [(gpu, lane) for lane in _beside(sorted(by_gpu[gpu]))]
        found += [(gpu, None)] if gpu in curves else []
    return found[:_MOST_LANES]


def _beside(bars: Iterable[Bar]) -> list[list[Bar]]:
    """Put each bar in the first free lane."""
    lanes: list[list[Bar]] = []
    for bar in bars:
        lane = next((lane for lane in lanes if lane[-1][1] <= bar[0]), None)
        if lane is None:
            lanes.append([bar])
        else:
            lane.append(bar)
    return lanes


def _draw_lanes(axes: Any, lanes: Sequence[Lane], begun: float, size: float, hair: float) -> None:
    for number, (_, bars) in enumerate(lanes):
        lane = bars or ()
        for outcome in (state for state in STATES if state in {bar[2] for bar in lane}):  # failures on top
            spans = [
                ((start - begun) / size, _parted(end - start, hair) / size)
                for start, end, each in lane
                if each == outcome
            ]
            # A thin edge of the same colour keeps the shortest visible.
            axes.broken_barh(spans, (number - 0.4, 0.8), color=COLOURS[outcome], linewidth=0.3)
    names = [gpu for gpu, _ in lanes]
    firsts = [number for number, gpu in enumerate(names) if not number or names[number - 1] != gpu]
    labels = [gpu if gpu == CPU else safe(f"gpu {gpu}") for gpu in (names[number] for number in firsts)]
    axes.set_yticks(firsts, labels, parse_math=False)
    axes.set_ylim(max(len(lanes), 1) - 0.5, -0.5)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_curve(axes: Any, lane: Mapping[str, Any], number: int, begun: float, size: float) -> None:
    """The utilisation, and where a job had the GPU at 0 % for most of a step."""
    steps = range(len(lane["seconds"]) + 1)
    edges = [(lane["from"] + lane["step"] * at - begun) / size for at in steps]
    floor = number + 0.4
    # The axis points down.
    tops = [floor if value is None else floor - 0.8 * value / 100 for value in lane["utilization"]]
    axes.stairs(tops, edges, baseline=floor, fill=True, color=_CURVE, alpha=0.45, linewidth=0)
    idle = [at for at in steps[:-1] if 0 < lane["idle"][at] >= lane["seconds"][at] / 2]
    spans = [(edges[at], edges[at + 1] - edges[at]) for at in idle]
    axes.broken_barh(spans, (number - 0.4, 0.8), color=_AT_ZERO, linewidth=0)


def _parted(seconds: float, hair: float) -> float:
    """The width with a small gap to the next bar, if there is room for it."""
    return seconds - hair if seconds > 4 * hair else seconds


def _draw_outcomes(axes: Any, outcomes: Mapping[str, int], *, is_measured: bool) -> None:
    start = 0
    if is_measured:
        axes.barh([0], [0], color=_CURVE, alpha=0.45, label="utilisation")
        axes.barh([0], [0], color=_AT_ZERO, label="a job had the GPU at 0 %")
    for state in (state for state in STATES if state in outcomes):
        label = f"{outcomes[state]} {state}"
        axes.barh([0], [outcomes[state]], left=[start], color=COLOURS[state], label=label)
        start += outcomes[state]
    axes.set_xlim(0, max(start, 1))
    axes.set_axis_off()
    if start:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.05), ncols=5, frameon=False, fontsize="small")
