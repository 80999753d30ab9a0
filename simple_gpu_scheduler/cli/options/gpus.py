"""Which GPUs to use, how many jobs on each, and when one counts as free: the same for every command that needs GPUs."""

import os

from simple_gpu_scheduler.base.units import parse_duration, parse_size
from simple_gpu_scheduler.base.values import TYPE_CHECKING, Any, Sequence
from simple_gpu_scheduler.cli.declarations import Option, Parsed, Section, UsageError, Whole
from simple_gpu_scheduler.gpus import DEFAULT_FREE_FOR, DEFAULT_MAX_USED, Tolerance
from simple_gpu_scheduler.gpus.names import looks_like_gpus, parse_gpus
from simple_gpu_scheduler.jobfile.options import parse_mem
from simple_gpu_scheduler.system.users import user_id

if TYPE_CHECKING:
    from simple_gpu_scheduler.gpus.discover import Wants

_SIZE = Parsed("size", parse_size)
_TOLERANCE = ("free_memory", "max_used_memory", "max_utilization", "free_for")

SLOTS = (
    Option(
        ["--jobs-per-gpu"],
        kind=Whole(1, 1000),
        metavar="N",
        default=1,
        help="How many jobs may share a GPU.  [default: 1]",
    ),
    Option(
        ["--cpu-slots"],
        kind=Whole(1, 100_000),
        metavar="N",
        help="How many jobs without a GPU (gpus=0) may run at a time.  [default: the number of CPU cores]",
    ),
    Option(
        ["--mem"],
        kind=Parsed("size", parse_mem),
        metavar="SIZE|auto",
        help="The memory that a job without mem= needs on each GPU; auto: a fifth more than the peak of such jobs "
        "before.",
    ),
)


def gpu_sections(example: str, more: Sequence[Option] = ()) -> tuple[Section, Section]:
    """Those of a command, with `more` options of its own beside `--gpus`."""
    return Section("GPUs", (_gpus(example), *more)), _WHEN_FREE


def _gpus(example: str) -> Option:
    return Option(
        ["--gpus"],
        multiple=True,
        takes=looks_like_gpus,
        example=example,
        metavar="GPU...",
        then=_parse_gpus,
        help="The GPUs to use: 0 1 2, 0,1,2, 0-3, UUIDs or unique prefixes of them, MIG instances (0:1).  "
        "[default: all]",
    )


_WHEN_FREE = Section(
    "When a GPU counts as free",
    (
        Option(
            ["--free-memory"], kind=_SIZE, metavar="SIZE", default=0, help="How much memory must be free, such as 10G."
        ),
        Option(
            ["--max-used-memory"],
            kind=_SIZE,
            metavar="SIZE",
            default=DEFAULT_MAX_USED,
            help="How much memory others may use.  [default: 256M]",
        ),
        Option(["--max-utilization"], kind=Whole(0, 100), metavar="PERCENT", help="How busy the GPU may be."),
        Option(
            ["--free-for"],
            kind=Parsed("duration", parse_duration),
            metavar="TIME",
            default=DEFAULT_FREE_FOR,
            help="After others used a GPU, wait until they have left it alone for this long (0: do not wait).  "
            "[default: 10s]",
        ),
        Option(
            ["--share-with"],
            kind=Parsed("user", user_id),
            metavar="USER",
            multiple=True,
            help="Ignore this user's processes (me: your own). May be given several times.",
        ),
        Option(["--ignore-occupancy"], is_flag=True, help="Ignore all other processes; respect only the leases."),
    ),
)


def take_wants(typed: dict[str, Any]) -> "Wants":
    """What these options say, taken out of all that was typed."""
    from simple_gpu_scheduler.gpus.discover import Wants  # noqa: PLC0415 - 5 ms that --help needs not

    names, ignores, tolerated = typed.pop("gpus"), typed.pop("ignore_occupancy"), frozenset(typed.pop("share_with"))
    tolerance = Tolerance(*(typed.pop(name) for name in _TOLERANCE))
    cpu_slots = typed.pop("cpu_slots", None) or len(os.sched_getaffinity(0))
    per_gpu = typed.pop("jobs_per_gpu", 1)
    mem = typed.pop("mem", None)
    return Wants(names, ignores, tolerance, tolerated, jobs_per_gpu=per_gpu, cpu_slots=cpu_slots, mem=mem)


def _parse_gpus(given: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    try:
        return parse_gpus(word for words in given for word in words)
    except ValueError as error:
        raise UsageError(f"--gpus: {error}.") from None
