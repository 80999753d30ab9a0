"""How commands are run, or that none is run."""

from simple_gpu_scheduler.base.values import TYPE_CHECKING, Any
from simple_gpu_scheduler.cli.declarations import OneOf, Option, Section
from simple_gpu_scheduler.engines import ENGINES

if TYPE_CHECKING:
    from simple_gpu_scheduler.run.options import ExecutionOptions

_DEFAULT = next(iter(ENGINES))
SECTION = Section(
    "Execution",
    (
        Option(["--shell"], default="/bin/sh", metavar="PATH", help="Run commands with this shell."),
        Option(["--chdir"], metavar="DIR", help="Run the jobs in this directory."),
        Option(["--dry-run"], is_flag=True, help="Print what would run where, and run nothing."),
        Option(
            ["--engine"],
            kind=OneOf(list(ENGINES)),
            default=_DEFAULT,
            help=f"{'; '.join(f'{name}: {each.help}' for name, each in ENGINES.items())}.  [default: {_DEFAULT}]",
        ),
    ),
)


def take_execution(typed: dict[str, Any]) -> "ExecutionOptions":
    """What these options say, taken out of all that was typed."""
    from simple_gpu_scheduler.run.options import ExecutionOptions  # noqa: PLC0415 - as for failures

    return ExecutionOptions(**{name: typed.pop(name) for name in ExecutionOptions._fields})
