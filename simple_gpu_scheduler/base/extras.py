"""Optional libraries: how to install one, TOML on Python 3.10, and matplotlib without its windows."""

import sys

from simple_gpu_scheduler.base.values import Any, Callable

from .errors import UserError


def install(library: str, extra: str) -> str:
    """How to install it; `extra` is our name for that group of dependencies."""
    from importlib.util import find_spec  # noqa: PLC0415 - only an error needs it

    python = sys.executable
    pip = f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
    return f"install it with {pip} {library}, or reinstall this program with the extra [{extra}]"


def figure_maker() -> Callable[..., Any]:
    """A function that makes a figure. A UserError says how to install matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - half a second to load
        from matplotlib.figure import Figure  # noqa: PLC0415 - as above
    except ImportError:
        raise UserError(f"drawing needs matplotlib; {install('matplotlib', 'plot')}") from None

    def figure(**settings: Any) -> Figure:
        made = Figure(**settings)
        FigureCanvasAgg(made)
        return made

    return figure


def toml_reader() -> Callable[..., Any]:
    """The function `loads` for TOML. On Python 3.10, a UserError says how to install it."""
    try:
        import tomllib  # noqa: PLC0415 - few runs read TOML
    except ImportError:
        try:
            import tomli as tomllib  # type: ignore[no-redef,import-not-found,unused-ignore] # noqa: PLC0415 - as above
        except ImportError:
            raise UserError(f"Python 3.10 needs tomli to read TOML; {install('tomli', 'files')}") from None
    loads: Callable[..., Any] = tomllib.loads
    return loads
