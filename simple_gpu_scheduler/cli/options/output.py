"""Where the jobs' output goes."""

from simple_gpu_scheduler.base.values import Any, get_args
from simple_gpu_scheduler.cli.declarations import OneOf, Option, Section
from simple_gpu_scheduler.output import Mode, OutputOptions

SECTION = Section(
    "Output of jobs",
    (
        Option(
            ["--output"],
            kind=OneOf(get_args(Mode)),
            help="inherit: jobs print directly; group: the output of each job is printed when it has ended; tag: each "
            "line is printed with the job's name or number; files: only to log files.  [default: inherit; files with "
            "--logs or --logs-failed-only, and with the live view if stdout is a terminal]",
        ),
        Option(
            ["--logs"],
            metavar="DIR",
            help="Keep the output of each job in a file in this directory.  [default: beside the journal]",
        ),
        Option(["--logs-failed-only"], is_flag=True, help="Delete the log of a job that succeeds."),
    ),
)


def take_output(typed: dict[str, Any]) -> OutputOptions:
    """What these options say, taken out of all that was typed."""
    return OutputOptions(typed.pop("output"), typed.pop("logs"), typed.pop("logs_failed_only"))
