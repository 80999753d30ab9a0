"""Run shell commands from stdin on the GPUs of one machine: `xargs -P` that knows about GPUs.

The command line is the interface; the names here are what a Python program may rely on.
"""

from simple_gpu_scheduler.base.values import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

__all__ = ["GpuLease", "LeaseTimeout", "UserError", "__version__", "lease"]

if TYPE_CHECKING:
    from simple_gpu_scheduler.api import GpuLease, LeaseTimeout, lease
    from simple_gpu_scheduler.base.errors import UserError


def __getattr__(name: str) -> Any:
    """Load what takes long to load when it is asked for."""
    if name == "UserError":
        from simple_gpu_scheduler.base.errors import UserError  # noqa: PLC0415 - as above

        return UserError
    if name in ("lease", "GpuLease", "LeaseTimeout"):
        from simple_gpu_scheduler import api  # noqa: PLC0415 - as above

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
