"""What a run prints about itself on the terminal."""

import click

from simple_gpu_scheduler.base.values import Any, get_args
from simple_gpu_scheduler.cli.click_extras import Section
from simple_gpu_scheduler.display import DisplayOptions, Progress

SECTION = Section(
    "Display",
    (
        click.Option(
            ["--progress"],
            type=click.Choice(get_args(Progress)),
            help="live: a view of all GPUs that is redrawn in place; plain: one line per start; or none.  "
            "[default: live if stderr is a terminal and no job prints there, else plain]",
        ),
        click.Option(["-q", "--quiet"], is_flag=True, help="Print failures only."),
        click.Option(["-v", "--verbose"], is_flag=True, help="Print successes too, and more about each job."),
    ),
)


def take_display(typed: dict[str, Any]) -> DisplayOptions:
    """What these options say, taken out of all that was typed."""
    options = DisplayOptions(**{name: typed.pop(name) for name in DisplayOptions._fields})
    if options.quiet and options.verbose:
        raise click.UsageError("--quiet and --verbose exclude each other.")
    return options
