"""`wait`: sleeps until a run is over, and exits with its exit code."""

import click

from simple_gpu_scheduler.base.errors import SOME_DID_NOT_SUCCEED, UserError
from simple_gpu_scheduler.cli.click_extras import Command

_EXAMPLES = r"""
simple_gpu_scheduler wait && python collect_results.py
simple_gpu_scheduler wait 20260102-0304; echo "it ended with $?"
"""
_HELP = """Wait until a run is over, and exit with its exit code.

RUN is a run's id, or how it begins; without it, the newest that runs, or if none does the newest. The exit code is 1
for a run that died.
"""


class _DiedError(UserError):
    code = SOME_DID_NOT_SUCCEED


def _wait(run: str) -> int:
    from simple_gpu_scheduler.base.text import safe  # noqa: PLC0415 - as above
    from simple_gpu_scheduler.journal import files, find  # noqa: PLC0415 - not for --help

    living = [] if run else find.living_runs()
    journal = living[0] if living else find.choose(run)
    try:
        with files.opened(journal) as fd:
            files.wait_until_unlocked(fd, files.SCHEDULER)
    except OSError as error:
        raise UserError(f"cannot wait for {safe(journal)}: {error.strerror}") from None
    state = find.load(journal)
    if state.ended is None:
        died = find.standing(state, alive=False)
        raise _DiedError(f"run {state.run} {died}; resume it with: simple_gpu_scheduler --resume {state.run}")
    code = state.ended.get("code")
    return code if isinstance(code, int) else SOME_DID_NOT_SUCCEED


wait_command = Command(
    "wait",
    params=[click.Argument(["run"], default="", metavar="[RUN]")],
    callback=_wait,
    help=_HELP,
    short_help="Wait until a run is over.",
    sections=(),
    examples=_EXAMPLES,
)
