"""`simple_gpu_scheduler`: a group of commands, of which the run needs no name."""

from importlib import import_module

import click

from simple_gpu_scheduler.cli.commands import COMMANDS
from simple_gpu_scheduler.cli.commands.schedule import run


class DefaultGroup(click.Group):
    """Takes words that do not start with one of its commands as those of its default command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command's name where no command is named."""
        named = bool(args) and args[0] in COMMANDS
        return super().parse_args(ctx, args if named else ["", *args])

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's name
        """Those that have a name."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """The default command's name is nothing at all. The others are loaded only when they are typed."""
        if not cmd_name:
            return run
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"simple_gpu_scheduler.cli.commands.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command


main = DefaultGroup("simple_gpu_scheduler", add_help_option=False)
