"""Where commands are read from, and how they are separated."""

from simple_gpu_scheduler.base.values import Any, Sequence
from simple_gpu_scheduler.cli.declarations import Option, Section, UsageError
from simple_gpu_scheduler.inputs import InputOptions


def _only_one(paths: Sequence[str]) -> str | None:
    """The PATH; of two, one would never be read."""
    if len(paths) > 1:
        raise UsageError("--follow may be given only once; start a run for each file or pipe.")
    return paths[0] if paths else None


SECTION = Section(
    "Input",
    (
        Option(["-0", "--null"], is_flag=True, help="Commands end with NUL, not newline, and may contain newlines."),
        Option(
            ["--follow"],
            metavar="PATH",
            multiple=True,
            then=_only_one,
            help="Keep reading a growing file or a named pipe. A PATH ending in .fifo is created if it is missing.",
        ),
        Option(["--make-fifo"], is_flag=True, help="With --follow: create the named pipe, whatever its name."),
        Option(
            ["--no-follow"],
            is_flag=True,
            help="Stop when the last writer closes the named pipe.  [default: keep it open]",
        ),
    ),
)


def check_input(typed: dict[str, Any]) -> None:
    """Refuse what excludes each other, as it was typed now: a resumed run brings options of its own."""
    if typed["follow"] is not None and typed["no_follow"]:
        raise UsageError("--follow and --no-follow exclude each other.")
    if typed["make_fifo"] and typed["follow"] is None:
        raise UsageError("--make-fifo requires --follow.")


def take_input(typed: dict[str, Any]) -> InputOptions:
    """What these options say, taken out of all that was typed."""
    return InputOptions(**{name: typed.pop(name) for name in InputOptions._fields})
