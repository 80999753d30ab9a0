"""The report as one HTML file that needs nothing else. It does not know what the values mean; html/ does."""

import json
import math
from collections.abc import Mapping
from importlib.resources import files

# In this order: each may use at once what an earlier one has made.
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
    """The report as a page that shows itself in a browser, with no request to anywhere."""
    script = "\n".join(_part(f"{name}.js") for name in _SCRIPTS)
    # The report comes last, so that nothing a user wrote is taken for a place to put something.
    return (
        _part("page.html")
        .replace("@style@", _part("page.css"), 1)
        .replace("@script@", script, 1)
        .replace("@report@", embedded(report), 1)
    )


def embedded(report: Mapping[str, object]) -> str:
    """The report as JSON that can stand inside a script element: ASCII, and nothing that HTML reads as markup."""
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
