"""`simple_gpu_scheduler` as a click group, for completion: it offers the values of the options of each command."""

import click

from simple_gpu_scheduler.cli.commands import COMMANDS, load

from .click_extras import ClickCommand


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
        """The default command's name is nothing at all."""
        return ClickCommand(load(cmd_name)) if cmd_name in (*COMMANDS, "") else None


main = DefaultGroup("simple_gpu_scheduler", add_help_option=False)
