"""`simple_gpu_scheduler`: a group of commands, of which the run needs no name."""

import click

from .gpus_command import gpus_command
from .run import run
from .run_command import run_command


class DefaultGroup(click.Group):
    """Takes words that begin with none of its commands as those of its default command."""

    def __init__(self, name: str, default: click.Command) -> None:
        super().__init__(name, commands={})
        self._default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command's name where no command is named."""
        named = bool(args) and args[0] in self.commands
        return super().parse_args(ctx, args if named else ["", *args])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The default command's name is nothing at all."""
        return super().get_command(ctx, cmd_name) if cmd_name else self._default


main = DefaultGroup("simple_gpu_scheduler", default=run)
main.add_command(run_command)
main.add_command(gpus_command)
