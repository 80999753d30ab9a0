"""A call of a command: its command line is read, and the command is called with what was typed.

A plain line is read without click, which takes 20 ms to load. Whatever is not one is read by click. The command gets
the same from both, so it cannot tell which it was.
"""

import os

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.values import TYPE_CHECKING, Sequence

from .commands import COMMANDS, load
from .declarations import Command, CommandLine, Defaults, UsageError
from .reader import read

if TYPE_CHECKING:
    from simple_gpu_scheduler.keeper.client import KeeperClient


def call_by_name(argv: Sequence[str], keeper: "KeeperClient | None") -> object:
    """Call the command of `simple_gpu_scheduler` that the first word names; if it names none, the run."""
    name = argv[0] if argv and argv[0] in COMMANDS else ""
    return call(load(name), argv[1:] if name else argv, f"{PROGRAM} {name}".strip(), keeper)


def call(command: Command, argv: Sequence[str], path: str, keeper: "KeeperClient | None" = None) -> object:
    """What the command returns: an exit code or nothing. `path` is the words that call it."""
    line = read_line(command, argv, path)
    if not isinstance(line, CommandLine):
        return line
    try:
        return command.callback(line, keeper) if command.is_run else command.callback(**line.values)
    except UsageError as error:
        raise see_help(str(error), path) from None


def read_line(command: Command, argv: Sequence[str], path: str) -> CommandLine | int:
    """What was typed; or an exit code, if that was all, such as for `--help`."""
    defaults = _defaults(command)
    if line := read(command, argv, os.environ, defaults.given):
        return line
    from .click_extras import read_by_click  # noqa: PLC0415 - this is what is avoided

    return read_by_click(command, argv, path, defaults)


def _defaults(command: Command) -> Defaults:
    if not command.has_machine_defaults:
        return Defaults()
    from .machine_defaults import machine_defaults  # noqa: PLC0415 - only commands that use GPUs have them

    return machine_defaults(command.options)


def see_help(sentence: str, path: str) -> UserError:
    """The error with this sentence, in one line that names the command's help."""
    return UserError(f"{' '.join(sentence.split()).rstrip('.')} (see {path} --help)")
