"""A report -> a picture (PNG): what ran when on which GPU, coloured by outcome, and how many came to which.

The only place that knows matplotlib, and that without its windows.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.installing import install

from .summary import CPU, STATES, in_order

# Told apart by those who see no red or no green too.
COLOURS = {
    "succeeded": "#009e73",
    "failed": "#d55e00",
    "timed out": "#e69f00",
    "killed": "#cc79a7",
    "not started": "#7f7f7f",
    "cancelled": "#b0b0b0",
    "interrupted": "#56b4e9",
    "running": "#0072b2",
    "waiting": "#d9d9d9",
}
_UNITS = ((3 * 86400, 86400, "days"), (3 * 3600, 3600, "hours"), (300, 60, "minutes"), (0, 1, "seconds"))
_WIDTH, _DPI = 10.0, 150
_LANE, _MOST_HEIGHT = 0.28, 20.0
_MOST_LANES = 200

Bar = tuple[float, float, str]  # start, end, outcome


def draw(report: Mapping[str, Any]) -> bytes:
    """The picture. A UserError says how to get matplotlib."""
    figure_of = _matplotlib()
    run, until = report["run"], report["run"]["ended"] or report["made"]
    lanes = _lanes(report["jobs"], until)
    size, unit = next((size, unit) for least, size, unit in _UNITS if until - run["begun"] >= least or not least)
    height = min(_MOST_HEIGHT, 2.6 + _LANE * max(2, len(lanes)))
    figure = figure_of(figsize=(_WIDTH, height), dpi=_DPI, layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[height - 1.6, 0.5])
    _draw_lanes(above, lanes, run["begun"], size)
    above.set_xlabel(f"{unit} since the run began")
    above.set_xlim(0, max((until - run["begun"]) / size, 1e-3))
    above.set_title(f"run {run['id']}: {run['state']}", loc="left", parse_math=False)
    _draw_outcomes(below, report["outcomes"])
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def _matplotlib() -> Any:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - half a second to load
        from matplotlib.figure import Figure  # noqa: PLC0415 - as above
    except ImportError:
        raise UserError(f"a picture needs matplotlib; {install('matplotlib', 'plot')}") from None

    def figure(**settings: Any) -> Figure:
        made = Figure(**settings)
        FigureCanvasAgg(made)
        return made

    return figure


def _lanes(jobs: Iterable[Mapping[str, Any]], until: float) -> list[tuple[str, list[Bar]]]:
    """For each GPU as many lanes as there were attempts on it at once, by the names of the GPUs."""
    by_gpu: dict[str, list[Bar]] = {}
    for job in jobs:
        for attempt in job["attempts"]:
            end = until if attempt["ended"] is None else attempt["ended"]
            for gpu in attempt["gpus"] or [CPU]:
                by_gpu.setdefault(gpu, []).append((attempt["started"], end, attempt["outcome"] or "running"))
    found: list[tuple[str, list[Bar]]] = []
    for gpu in sorted(by_gpu, key=in_order):
        found += [(gpu, lane) for lane in _beside(sorted(by_gpu[gpu]))]
    return found[:_MOST_LANES]


def _beside(bars: Iterable[Bar]) -> list[list[Bar]]:
    """Each bar in the first lane that is free again."""
    lanes: list[list[Bar]] = []
    for bar in bars:
        lane = next((lane for lane in lanes if lane[-1][1] <= bar[0]), None)
        if lane is None:
            lanes.append([bar])
        else:
            lane.append(bar)
    return lanes


def _draw_lanes(axes: Any, lanes: Sequence[tuple[str, list[Bar]]], begun: float, size: float) -> None:
    for number, (_, lane) in enumerate(lanes):
        for outcome in (state for state in STATES if state in {bar[2] for bar in lane}):  # failures on top
            spans = [((start - begun) / size, (end - start) / size) for start, end, each in lane if each == outcome]
            # A thin edge of their own colour keeps the shortest to be seen.
            axes.broken_barh(spans, (number - 0.4, 0.8), color=COLOURS[outcome], linewidth=0.3)
    names = [gpu for gpu, _ in lanes]
    firsts = [number for number, gpu in enumerate(names) if not number or names[number - 1] != gpu]
    labels = [gpu if gpu == CPU else f"gpu {gpu}" for gpu in (names[number] for number in firsts)]
    axes.set_yticks(firsts, labels, parse_math=False)
    axes.set_ylim(max(len(lanes), 1) - 0.5, -0.5)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_outcomes(axes: Any, outcomes: Mapping[str, int]) -> None:
    start = 0
    for state in (state for state in STATES if state in outcomes):
        label = f"{outcomes[state]} {state}"
        axes.barh([0], [outcomes[state]], left=[start], color=COLOURS[state], label=label)
        start += outcomes[state]
    axes.set_xlim(0, max(start, 1))
    axes.set_axis_off()
    if start:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.05), ncols=5, frameon=False, fontsize="small")
