"""Which run a command is about, or which runs: as a word, RUN, or as `--run RUN`, whichever comes to mind."""

from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import Any, Callable
from simple_gpu_scheduler.cli.declarations import Argument, Option, UsageError

RUN = Argument("run", "[RUN]", is_many=False)
RUNS = Argument("runs", "[RUN]...")


def run_option(default: str) -> Option:
    """For a command whose words are something else; it gets the run as `run`, empty if it was not given."""
    return Option(["--run"], metavar="RUN", then=_not_empty, help=f"A run ID or a prefix of it.  [default: {default}]")


def also_run(default: str) -> Option:
    """For a command with `RUN`."""
    return Option(["--run", "named"], metavar="RUN", help=f"The same as RUN.  [default: {default}]")


def also_runs(default: str) -> Option:
    """For a command with `RUNS`."""
    help_text = f"The same as RUN; may be given several times.  [default: {default}]"
    return Option(["--run", "named"], metavar="RUN", multiple=True, help=help_text)


def with_run(command: Callable[..., int]) -> Callable[..., int]:
    """For a command with `RUN` and `also_run`: it gets the run as `run`, None if it was not given."""

    def call(run: str | None, named: str | None, **others: Any) -> int:
        return command(run=_given_once(run, named), **others)

    return call


def with_runs(command: Callable[..., int]) -> Callable[..., int]:
    """For a command with `RUNS` and `also_runs`: it gets all as `runs`."""

    def call(runs: tuple[str, ...], named: tuple[str, ...], **others: Any) -> int:
        _refuse_empty(*runs, *named)
        return command(runs=tuple(dict.fromkeys([*runs, *named])), **others)

    return call


def _given_once(word: str | None, named: str | None) -> str | None:
    _refuse_empty(word, named)
    if word and named and word != named:
        raise UsageError(f"two runs are given, {safe(word)} and --run {safe(named)}; choose one")
    return word or named


def _not_empty(run: str | None) -> str:
    _refuse_empty(run)
    return run or ""


def _refuse_empty(*runs: str | None) -> None:
    """That would mean another run, often the newest."""
    if "" in runs:
        raise UsageError("RUN is empty; is a shell variable unset?")
