"""How commands are run, or that they are not."""

from typing import TYPE_CHECKING, Any

import click

from simple_gpu_scheduler.cli.click_extras import Section
from simple_gpu_scheduler.engines import OFFERED

if TYPE_CHECKING:
    from simple_gpu_scheduler.run.options import Execution

SECTION = Section(
    "Execution",
    (
        click.Option(["--shell"], default="/bin/sh", metavar="PATH", help="Run commands with this shell."),
        click.Option(["--chdir"], metavar="DIR", help="Run the jobs in this directory."),
        click.Option(["--dry-run"], is_flag=True, help="Print what would run where, and run nothing."),
        click.Option(
            ["--engine"],
            type=click.Choice(OFFERED),
            default=OFFERED[0],
            help="simulated: run nothing; a job takes as long as its `sleep N` or its time= says, and the clock jumps "
            f"ahead.  [default: {OFFERED[0]}]",
        ),
    ),
)


def take_execution(typed: dict[str, Any]) -> "Execution":
    """What these options say, taken out of all that was typed."""
    from simple_gpu_scheduler.run.options import Execution  # noqa: PLC0415 - as for failures

    return Execution(**{name: typed.pop(name) for name in Execution._fields})
