"""The report as one self-contained HTML file. What the values mean is known only to html/."""

import json
import math
from collections.abc import Mapping
from importlib.resources import files

# In this order: each may use what an earlier one defines.
_SCRIPTS = (
    "format",
    "elements",
    "times",
    "details",
    "explore",
    "head",
    "outcomes",
    "table",
    "lanes",
    "zoom",
    "gantt",
    "timeline",
    "waits",
    "failures",
    "axes",
    "pictures",
    "sweep",
    "jobs",
    "start",
)


def page(report: Mapping[str, object]) -> str:
    """The report as a page for a browser, which makes no requests."""
    script = "\n".join(_part(f"{name}.js") for name in _SCRIPTS)
    # The report comes last, so that nothing in it is taken for a placeholder.
    return (
        _part("page.html")
        .replace("@style@", _part("page.css"), 1)
        .replace("@script@", script, 1)
        .replace("@report@", embedded(report), 1)
    )


def embedded(report: Mapping[str, object]) -> str:
    """The report as JSON that is safe inside a script element: ASCII, and nothing that HTML reads as markup."""
    try:
        text = json.dumps(report, separators=(",", ":"), allow_nan=False)
    except ValueError:  # a loss that diverged; browsers read no NaN
        text = json.dumps(_without_nan(report), separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _without_nan(value: object) -> object:
    """The same with `nan` and `inf` as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(inner) for inner in value]
    return value


def _part(name: str) -> str:
    return (
        files(__package__ or "simple_gpu_scheduler.report").joinpath("html").joinpath(name).read_text(encoding="utf-8")
    )
