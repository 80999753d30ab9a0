"""The options that say which GPUs to use and when one counts as free: the same for every command that needs GPUs."""

from typing import TYPE_CHECKING, Any

import click

from simple_gpu_scheduler.base.units import parse_size
from simple_gpu_scheduler.cli.click_extras import Parsed, SeveralValues
from simple_gpu_scheduler.gpus.names import looks_like_gpus, parse_gpus
from simple_gpu_scheduler.system.users import user_id

if TYPE_CHECKING:
    from simple_gpu_scheduler.gpus.discover import Wants

_SIZE = Parsed("size", parse_size)

NAMES = ("gpus",)
WHEN_FREE = ("free_memory", "max_used_memory", "max_utilization", "share_with", "ignore_occupancy")


def gpu_options(example: str) -> list[click.Parameter]:
    """Fresh ones, for one command."""

    def option(*names: str, **settings: Any) -> click.Option:
        return click.Option(names, **settings)

    return [
        SeveralValues(
            ["--gpus"],
            takes=looks_like_gpus,
            example=example,
            metavar="GPU...",
            callback=_parse_gpus,
            help="The GPUs to use: 0 1 2, 0,1,2, 0-3, UUIDs or their begin, MIG instances (0:1).  [default: all]",
        ),
        option("--free-memory", type=_SIZE, metavar="SIZE", default=0, help="How much must be free: 10G."),
        option("--max-used-memory", type=_SIZE, metavar="SIZE", help="How much may be used.  [default: 256M]"),
        option("--max-utilization", type=click.IntRange(0, 100), metavar="PERCENT", help="How busy it may be."),
        option(
            "--share-with",
            type=Parsed("user", user_id),
            metavar="USER",
            multiple=True,
            help="Whose processes do not matter; me for your own.",
        ),
        option("--ignore-occupancy", is_flag=True, help="Do not look at who uses a GPU; only at who has leased it."),
    ]


def take_wants(options: dict[str, Any]) -> "Wants":
    """What these options say, taken out of all options of a command."""
    from simple_gpu_scheduler.gpus import DEFAULT_MAX_USED, Tolerance  # noqa: PLC0415 - not for --help
    from simple_gpu_scheduler.gpus.discover import Wants  # noqa: PLC0415 - as above

    names, ignores = options.pop("gpus"), options.pop("ignore_occupancy")
    free, used, busy = (options.pop(name) for name in WHEN_FREE[:3])
    tolerance = Tolerance(free, DEFAULT_MAX_USED if used is None else used, busy)
    return Wants(names, ignores, tolerance, frozenset(options.pop("share_with")))


def _parse_gpus(_ctx: click.Context, _param: click.Parameter, given: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    try:
        return parse_gpus(word for words in given for word in words)
    except ValueError as error:
        raise click.UsageError(f"--gpus: {error}.") from None
