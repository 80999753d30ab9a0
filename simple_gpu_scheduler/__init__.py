"""Run shell commands from stdin on the GPUs of one machine: `xargs -P` that knows about GPUs.

The command line is the interface; the names here are what a Python program may rely on.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

__all__ = ["LeaseTimeout", "UserError", "__version__", "lease"]

if TYPE_CHECKING:
    from .errors import UserError
    from .for_python import LeaseTimeout, lease


def __getattr__(name: str) -> Any:
    """What takes time to load is loaded by those who ask for it."""
    if name == "UserError":
        from .errors import UserError  # noqa: PLC0415 - as above

        return UserError
    if name in ("lease", "LeaseTimeout"):
        from . import for_python  # noqa: PLC0415 - as above

        return getattr(for_python, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
