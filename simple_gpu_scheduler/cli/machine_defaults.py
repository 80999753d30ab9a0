"""Options whose defaults the machine file may set: its section [defaults].

Only options with a value that a user can replace, that need no other option, and that name no file of one run.
"""

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.values import Any, Sequence
from simple_gpu_scheduler.gpus.machine_file import read_machine_file, words_of

from .declarations import Defaults, Option
from .reader import value_of

MAY_HAVE = (
    "gpus",
    "jobs-per-gpu",
    "cpu-slots",
    "mem",
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


def machine_defaults(options: Sequence[Option]) -> Defaults:
    """Those for these options. A UserError says which is not one."""
    rules = read_machine_file()
    given = {}
    for name, value in rules.defaults.items():
        try:
            if option := _option(options, name):
                given[option.key] = _checked(option, value)
        except (UserError, ValueError) as error:
            raise UserError(f"{rules.path}, [defaults]: {name}: {str(error).rstrip('.')}") from None
    return Defaults(given, rules.path)


def _option(options: Sequence[Option], name: str) -> Option | None:
    """The option, if the command has it."""
    if name not in MAY_HAVE:
        raise ValueError(f"cannot have a default here; these can: {', '.join(MAY_HAVE)}")
    return next((each for each in options if f"--{name}" in each.names), None)


def _checked(option: Option, value: object) -> Sequence[Any]:
    """What is given, if it may be typed."""
    words = words_of(value)
    if len(words) != 1 and not option.multiple:
        raise ValueError("takes one value")
    given = [tuple(words)] if option.takes else words
    value_of(option, given)
    if option.key == "policy":
        from .options.order import choose_policy  # noqa: PLC0415 - most files do not choose one

        choose_policy(words[0])
    return given
