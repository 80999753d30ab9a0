"""`simple_gpu_scheduler`: a group of commands, of which the run needs no name."""

from collections.abc import Callable, Mapping

import click

from simple_gpu_scheduler.cli.commands.schedule import run


def _run() -> click.Command:
    from simple_gpu_scheduler.cli.commands.run import run_command  # noqa: PLC0415 - building options takes time, and most people run jobs

    return run_command


def _gpus() -> click.Command:
    from simple_gpu_scheduler.cli.commands.gpus import gpus_command  # noqa: PLC0415 - as above

    return gpus_command


def _history() -> click.Command:
    from simple_gpu_scheduler.cli.commands.history import history_command  # noqa: PLC0415 - as above

    return history_command


def _submit() -> click.Command:
    from simple_gpu_scheduler.cli.commands.submit import submit_command  # noqa: PLC0415 - as above

    return submit_command


def _named(module: str, name: str) -> Callable[[], click.Command]:
    def load() -> click.Command:
        from importlib import import_module  # noqa: PLC0415 - as above

        command: click.Command = getattr(
            import_module(f"simple_gpu_scheduler.cli.commands.{module}"), f"{name}_command"
        )
        return command

    return load


_FROM_OUTSIDE = {
    **{name: _named(name, name) for name in ("report", "status", "logs", "wait", "simulate", "tune")},
    **{name: _named("ask", name) for name in ("stop", "pause", "continue", "cancel", "retry")},
}


class DefaultGroup(click.Group):
    """Takes words that begin with none of its commands as those of its default command."""

    def __init__(self, name: str, default: click.Command, others: Mapping[str, Callable[[], click.Command]]) -> None:
        super().__init__(name, commands={})
        self._default = default
        self._others = others

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command's name where no command is named."""
        named = bool(args) and args[0] in self._others
        return super().parse_args(ctx, args if named else ["", *args])

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's name
        """Those that have a name."""
        return sorted(self._others)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """The default command's name is nothing at all."""
        if not cmd_name:
            return self._default
        return self._others[cmd_name]() if cmd_name in self._others else None


main = DefaultGroup(
    "simple_gpu_scheduler",
    default=run,
    others={"run": _run, "gpus": _gpus, "history": _history, "submit": _submit} | _FROM_OUTSIDE,
)
