"""Whether a run can see that a job stalls: its output and the utilisation of its GPUs; else, what it lacks for that."""

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.values import Callable
from simple_gpu_scheduler.display.layout import Layout
from simple_gpu_scheduler.gpus.discover import ABSENT, Machine, has_nvml
from simple_gpu_scheduler.run.options import FailureOptions, Options

_NO_LOGS = "needs the jobs' output in logs; add --output files (or group, or tag), or --logs DIR"
_NO_UTILIZATION = "needs the utilisation of GPUs, which is"


def check(failures: FailureOptions, lack_of: Callable[[str], str]) -> None:
    """A UserError says what is missing for an option that was given."""
    for name, patience in (("stall", failures.stall), ("idle", failures.idle)):
        lack = patience and patience.seconds and lack_of(name)
        if lack:
            raise UserError(f"--{name} {lack}")


def lack(name: str, options: Options, layout: Layout, find: Callable[[], Machine | None]) -> str:
    """What is missing for `stall` or `idle`; empty if nothing is, or if the driver has not said yet."""
    if options.execution.runs_nothing:
        return ""
    if not options.takes_samples:
        which = "--no-samples or SGS_NO_SAMPLES" if options.records.no_samples else "--no-journal"
        return f"{_NO_UTILIZATION} not measured with {which}; leave that out"
    if name == "stall" and not layout.logs_all:
        return _NO_LOGS
    machine = find()
    if machine is None or machine.nvml is not None:
        return ""
    if options.wants.ignore_occupancy and has_nvml():
        return f"{_NO_UTILIZATION} not measured with --ignore-occupancy; leave that out"
    return f"{_NO_UTILIZATION} unknown: {'NVML does not work' if has_nvml() else ABSENT}"
