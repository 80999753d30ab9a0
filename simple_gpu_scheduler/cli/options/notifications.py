"""Whether, how and when to notify the user of a run."""

import click

from simple_gpu_scheduler.base.values import Any
from simple_gpu_scheduler.cli.click_extras import Parsed, Section
from simple_gpu_scheduler.notify import NotifyOptions, Trigger, parse_triggers

SECTION = Section(
    "Notifications",
    (
        click.Option(
            ["--notify"],
            metavar="CMD",
            help="Run this shell command to notify you; it gets a summary in its environment and JSON on its stdin.",
        ),
        click.Option(
            ["--notify-on"],
            type=Parsed("WORDS", parse_triggers),
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
        raise click.UsageError("--notify-on requires --notify CMD.")
    return NotifyOptions(command or "", triggers or frozenset[Trigger](["end"]))
