"""Results of policies -> a picture: the share of jobs that waited no longer than a given time."""

import io
from collections.abc import Sequence

from simple_gpu_scheduler.base.extras import figure_maker
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.units import axis_unit

from .compare import Result

_COLOURS = ("#2f76b0", "#c74408", "#08805d", "#8b3f9e", "#b58900", "#4a5260", "#d33682", "#77808f")
_STYLES = ("-", "--", "-.", ":")
_POINTS = 500


def _shown(text: str) -> str:
    """Literal text: without mathematics, and with invalid bytes escaped."""
    return safe(text).encode("ascii", "replace").decode().replace("$", r"\$")


def draw_waits(title: str, results: Sequence[Result], form: str) -> bytes:
    """The picture, in a form that matplotlib writes."""
    figure = figure_maker()(figsize=(9.0, 5.0), dpi=150, layout="constrained")
    axes = figure.subplots()
    waits = [(result.policy, sorted(wait for each in result.simulated for wait in each.waits())) for result in results]
    longest = max(ordered[-1] for _, ordered in waits)
    size, unit = axis_unit(longest)
    for number, (policy, ordered) in enumerate(waits):
        shares = [at / _POINTS for at in range(_POINTS + 1)]
        axes.plot(
            [ordered[round(share * (len(ordered) - 1))] / size for share in shares],
            [100 * share for share in shares],
            label=_shown(policy),
            color=_COLOURS[number % len(_COLOURS)],
            linestyle=_STYLES[number % len(_STYLES)],
        )
    axes.set_xscale("symlog", linthresh=max(longest / size / 1e4, 1e-3))
    axes.set_xlim(left=0)
    axes.set_ylim(0, 100)
    axes.set_xlabel(f"wait in {unit} (logarithmic scale)")
    axes.set_ylabel("% of jobs that waited no longer")
    axes.set_title(_shown(title), loc="left")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    picture = io.BytesIO()
    figure.savefig(picture, format=form)
    return picture.getvalue()
