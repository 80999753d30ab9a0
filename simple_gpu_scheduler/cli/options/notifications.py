"""Whether, how and when to notify the user of a run."""

from simple_gpu_scheduler.base.values import Any
from simple_gpu_scheduler.cli.declarations import Option, Parsed, Section, UsageError
from simple_gpu_scheduler.notify import NotifyOptions, Trigger, parse_triggers

SECTION = Section(
    "Notifications",
    (
        Option(
            ["--notify"],
            metavar="CMD",
            help="Run this shell command to notify you; it gets a summary in its environment and JSON on its stdin.",
        ),
        Option(
            ["--notify-on"],
            kind=Parsed("WORDS", parse_triggers),
            multiple=True,
            help="When: end (of the run), fail (when a job fails), each (when any job ends); separated by commas.  "
            "[default: end]",
        ),
    ),
)


def take_notify(typed: dict[str, Any]) -> NotifyOptions:
    """What these options say, taken out of all that was typed."""
    command, triggers = typed.pop("notify"), frozenset[Trigger]().union(*typed.pop("notify_on"))
    if triggers and not command:
        raise UsageError("--notify-on requires --notify CMD.")
    return NotifyOptions(command or "", triggers or frozenset[Trigger](["end"]))
