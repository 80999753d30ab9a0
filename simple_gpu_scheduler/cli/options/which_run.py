"""Which run a command is about, or which runs: as a word, RUN, or as `--run RUN`, whichever comes to mind."""

import click

from simple_gpu_scheduler.base.text import safe

_NAMED = "run"


def run_option(default: str) -> click.Option:
    """For a command whose words are something else."""
    help_text = f"A run ID or a prefix of it.  [default: {default}]"
    return click.Option(["--run"], default="", metavar="RUN", callback=_not_empty, help=help_text)


def runs_params(default: str) -> list[click.Parameter]:
    """For a command about several; it gets them as `runs`."""
    option = click.Option(
        ["--run", "named_runs"],
        metavar="RUN",
        multiple=True,
        is_eager=True,
        expose_value=False,
        callback=_keep,
        help=f"The same as RUN; may be given several times.  [default: {default}]",
    )
    return [click.Argument(["runs"], nargs=-1, metavar="[RUN]...", callback=_all_given), option]


def run_params(default: str) -> list[click.Parameter]:
    """The word and the option; the command gets the run as `run`, None if it was not given."""
    option = click.Option(
        ["--run", "named_run"],
        metavar="RUN",
        is_eager=True,  # so that it is known when the word is looked at
        expose_value=False,
        callback=_keep,
        help=f"The same as RUN.  [default: {default}]",
    )
    return [click.Argument(["run"], required=False, metavar="[RUN]", callback=_given_once), option]


def _keep(context: click.Context, _param: click.Parameter, value: object) -> None:
    context.meta[_NAMED] = value


def _all_given(context: click.Context, _param: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    runs = tuple(dict.fromkeys([*words, *context.meta.get(_NAMED, ())]))
    _refuse_empty(*runs)
    return runs


def _given_once(context: click.Context, _param: click.Parameter, word: str | None) -> str | None:
    named: str | None = context.meta.get(_NAMED)
    _refuse_empty(word, named)
    if word and named and word != named:
        raise click.UsageError(f"two runs are given, {safe(word)} and --run {safe(named)}; choose one")
    return word or named


def _not_empty(context: click.Context, param: click.Parameter, value: str) -> str:
    if context.get_parameter_source(param.name or "") == click.core.ParameterSource.COMMANDLINE:
        _refuse_empty(value)
    return value


def _refuse_empty(*runs: str | None) -> None:
    """That would mean another run, often the newest."""
    if "" in runs:
        raise click.UsageError("RUN is empty; is a shell variable unset?")
