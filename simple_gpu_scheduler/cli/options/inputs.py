"""From where commands are read, and how they are separated."""

from typing import Any

import click

from simple_gpu_scheduler.cli.click_extras import Section
from simple_gpu_scheduler.inputs import InputOptions

SECTION = Section(
    "Input",
    (
        click.Option(
            ["-0", "--null"], is_flag=True, help="Commands end with NUL, not newline, and may contain newlines."
        ),
        click.Option(
            ["--follow"],
            metavar="PATH",
            help="Keep reading a growing file or a named pipe; if PATH does not exist, a pipe is created.",
        ),
        click.Option(
            ["--no-follow"],
            is_flag=True,
            help="Stop when the last writer closes the named pipe.  [default: keep it open]",
        ),
    ),
)


def take_input(typed: dict[str, Any]) -> InputOptions:
    """What these options say, taken out of all that was typed."""
    return InputOptions(**{name: typed.pop(name) for name in InputOptions._fields})
