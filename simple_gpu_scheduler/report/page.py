"""The report as one self-contained HTML file. What the values mean is known only to html/."""

import json
import math
from collections.abc import Mapping, Sequence
from importlib.resources import files

from simple_gpu_scheduler.base.values import Any
from simple_gpu_scheduler.display.abbreviation import in_turn, shorten

# Of a command, in characters: what is looked at, what is shown in one line, and what fits into any line.
_LONGEST, _LONGEST_SHOWN, _SURELY_FITS = 4000, 240, 40

# In this order: each may use what an earlier one defines.
_SCRIPTS = (
    "format",
    "elements",
    "times",
    "use",
    "details",
    "explore",
    "head",
    "outcomes",
    "table",
    "lanes",
    "meters",
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
# Either is at the top of a page; the title alone, of those made before the generator was named.
_MARKS = (b'<meta name="generator" content="simple_gpu_scheduler report">', b"<title>Report of a run</title>")


def is_page(beginning: bytes) -> bool:
    """Whether a file that begins with these 2,000 bytes or so is such a page, of this version or an earlier one."""
    return beginning.lstrip().startswith(b"<!DOCTYPE html>") and any(mark in beginning for mark in _MARKS)


def page(report: Mapping[str, Any]) -> str:
    """The report as a page for a browser, which makes no requests."""
    jobs, templates = _in_parts(report["jobs"], "command"), _in_parts(report["templates"], "template")
    report = {**report, "jobs": jobs, "templates": templates}
    script = "\n".join(_part(f"{name}.js") for name in _SCRIPTS)
    # The report comes last, so that nothing in it is taken for a placeholder.
    return (
        _part("page.html")
        .replace("@style@", _part("page.css"), 1)
        .replace("@script@", script, 1)
        .replace("@report@", embedded(report), 1)
    )


def _in_parts(rows: Sequence[Mapping[str, Any]], name: str) -> Sequence[Mapping[str, Any]]:
    """With each long command in `parts`, of which the page shows what is shared only as far as there is room."""
    texts = tuple(row[name][:_LONGEST] for row in rows)
    shown = shorten(texts, (_LONGEST_SHOWN,) * len(texts))
    parts = in_turn({*shown})
    return [
        {**row, "parts": parts[text]} if len(row[name]) > _SURELY_FITS else row
        for row, text in zip(rows, shown, strict=True)
    ]


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
