"""Matplotlib, without its windows, and how to get it. It knows nothing of what is drawn."""

from collections.abc import Callable
from typing import Any

from .errors import UserError
from .installing import install


def figure_maker() -> Callable[..., Any]:
    """What makes a figure. A UserError says how to get matplotlib."""
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
