"""`stop`, `pause`, `continue`, `cancel` and `retry`: requests to an active run, and its answer in words."""

import sys
from collections.abc import Callable
from typing import Any

import click

from simple_gpu_scheduler.base.errors import SOME_DID_NOT_SUCCEED, UserError
from simple_gpu_scheduler.cli.click_extras import Command

_RUN_HELP = "RUN is a run's id, or how it begins; it is not needed where only one runs."
_RUN_OPTION = "Which run: its id, or how it begins.  [default: the only one that runs]"


def _choose(word: str) -> str:
    """The journal of the run that is meant; never guess, since another run must not be stopped."""
    from simple_gpu_scheduler.journal import find  # noqa: PLC0415 - not for --help

    if word:
        return find.choose(word)
    living = find.living_runs()
    if len(living) > 1:
        names = ", ".join(_run_of(path) for path in living)
        raise UserError(f"{len(living)} runs are active: {names}; choose one")
    return living[0] if living else find.choose("", alive=True)


def _run_of(journal: str) -> str:
    from simple_gpu_scheduler.journal.files import run_of  # noqa: PLC0415 - not for --help

    return run_of(journal)


def _ask(journal: str, request: dict[str, Any]) -> dict[str, Any]:
    from simple_gpu_scheduler.remote.client import ask  # noqa: PLC0415 - not for --help

    return ask(journal, request)


def _tell(run: str, **request: Any) -> int:
    from simple_gpu_scheduler.base.text import safe  # noqa: PLC0415 - not for --help

    journal = _choose(run)
    print(f"run {safe(_run_of(journal))}: {_ask(journal, request)['done']}")
    return 0


def _tell_of_jobs(do: str, words: tuple[str, ...], run: str) -> int:
    from simple_gpu_scheduler.journal.find import find_numbers  # noqa: PLC0415 - not for --help

    journal = _choose(run)
    answer = _ask(journal, {"do": do, "jobs": find_numbers(words, journal)})
    for each in answer["jobs"]:
        print(f"job {each['job']}: {each.get('error') or each['done']}", file=sys.stderr if "error" in each else None)
        _tell_also(each.get("also", ()), "not started, since it depends on that job")
    _tell_also(answer.get("also", ()), "waiting again, since it depends on those jobs")
    return SOME_DID_NOT_SUCCEED if any("error" in each for each in answer["jobs"]) else 0


def _tell_also(numbers: list[int], what: str) -> None:
    for number in numbers:
        print(f"job {number}: {what}")


def _command(name: str, callback: Callable[..., int], help_: str, examples: str, *params: click.Parameter) -> Command:
    short = help_.partition(".")[0] + "."
    return Command(
        name, params=list(params), callback=callback, help=help_, short_help=short, sections=(), examples=examples
    )


def _run_argument() -> click.Argument:
    return click.Argument(["run"], default="", metavar="[RUN]")


def _job_params() -> list[click.Parameter]:
    return [
        click.Argument(["words"], nargs=-1, required=True, metavar="JOB..."),
        click.Option(["--run"], default="", metavar="RUN", help=_RUN_OPTION),
    ]


stop_command = _command(
    "stop",
    lambda run, now: _tell(run, do="stop", now=now),
    f"Let a run start nothing more, and end when what runs has ended.\n\n{_RUN_HELP} `--resume` goes on with the rest.",
    "simple_gpu_scheduler stop\nsimple_gpu_scheduler stop 20260102-0304 --now",
    _run_argument(),
    click.Option(["--now"], is_flag=True, help="End what runs too: TERM, and KILL after the run's --grace."),
)
pause_command = _command(
    "pause",
    lambda run: _tell(run, do="pause"),
    f"Let a run start nothing more until `continue`. What runs goes on, and its input is still read.\n\n{_RUN_HELP}",
    "simple_gpu_scheduler pause",
    _run_argument(),
)
continue_command = _command(
    "continue",
    lambda run: _tell(run, do="continue"),
    f"Let a paused run go on.\n\n{_RUN_HELP}",
    "simple_gpu_scheduler continue",
    _run_argument(),
)
cancel_command = _command(
    "cancel",
    lambda words, run: _tell_of_jobs("cancel", words, run),
    "Take jobs out of a living run, waiting or running. One that runs is ended and not tried again; those that come "
    "after it are not started.\n\nJOB is a number or a name. The exit code is 1 when one could not be cancelled.",
    "simple_gpu_scheduler cancel 12 big-model",
    *_job_params(),
)
retry_command = _command(
    "retry",
    lambda words, run: _tell_of_jobs("retry", words, run),
    "Let jobs of a living run wait once more that failed or were not started. Those that were not started because of "
    "them wait again too.\n\nJOB is a number or a name. The exit code is 1 when one could not be.",
    "simple_gpu_scheduler retry 12\nsimple_gpu_scheduler history --failed",
    *_job_params(),
)
