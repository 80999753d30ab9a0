"""What a run prints about itself on the terminal."""

from simple_gpu_scheduler.base.values import Any, get_args
from simple_gpu_scheduler.cli.declarations import OneOf, Option, Section, UsageError
from simple_gpu_scheduler.display import DisplayOptions, Progress

SECTION = Section(
    "Display",
    (
        Option(
            ["--progress"],
            kind=OneOf(get_args(Progress)),
            help="live: a view of all GPUs that is redrawn in place; plain: one line per start; or none.  "
            "[default: live if stderr is a terminal and no job prints there, else plain]",
        ),
        Option(["-q", "--quiet"], is_flag=True, help="Print failures only."),
        Option(["-v", "--verbose"], is_flag=True, help="Print successes too, and more about each job."),
    ),
)


def take_display(typed: dict[str, Any]) -> DisplayOptions:
    """What these options say, taken out of all that was typed."""
    options = DisplayOptions(**{name: typed.pop(name) for name in DisplayOptions._fields})
    if options.quiet and options.verbose:
        raise UsageError("--quiet and --verbose exclude each other.")
    return options
