"""Options whose defaults the machine file may set: its section [defaults].

Only options with a value that a user can replace, that need no other option, and that name no file of one run.
"""

import click

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.gpus.machine_file import read_machine_file, words_of

from .click_extras import Defaults, SeveralValues
from .options.order import choose_policy

MAY_HAVE = (
    "gpus",
    "jobs-per-gpu",
    "cpu-slots",
    "free-memory",
    "max-used-memory",
    "max-utilization",
    "free-for",
    "share-with",
    "policy",
    "delay",
    "timeout",
    "grace",
    "retries",
    "retry-delay",
    "halt",
    "quarantine",
    "keep-runs",
)


def machine_defaults(context: click.Context) -> Defaults:
    """Those for the options of a command. A UserError says which is not one."""
    rules = read_machine_file()
    values = {}
    for name, value in rules.defaults.items():
        try:
            option = _option(context.command, name)
            if option:
                values[option.name or ""] = _checked(context, option, value)
        except (UserError, ValueError, click.UsageError) as error:
            raise UserError(f"{rules.path}, [defaults]: {name}: {_sentence(error)}") from None
    return Defaults(values, rules.path)


def _option(command: click.Command, name: str) -> click.Option | None:
    """The option, if the command has it."""
    if name not in MAY_HAVE:
        raise ValueError(f"cannot have a default here; these can: {', '.join(MAY_HAVE)}")
    return next((each for each in command.params if isinstance(each, click.Option) and f"--{name}" in each.opts), None)


def _checked(context: click.Context, option: click.Option, value: object) -> str | list[str]:
    """The value as if it had been typed."""
    words = words_of(value)
    if len(words) != 1 and not option.multiple:
        raise ValueError("takes one value")
    typed: str | list[str] = words if option.multiple else words[0]
    if isinstance(option, SeveralValues):
        typed = [option.joined(words)]
    option.process_value(context, typed)
    if option.name == "policy":
        choose_policy(words[0])
    return typed


def _sentence(error: Exception) -> str:
    return (error.message if isinstance(error, click.UsageError) else str(error)).rstrip(".")
