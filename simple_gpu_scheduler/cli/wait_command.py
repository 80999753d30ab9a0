"""`wait`: sleeps until a run is over, and exits as it did."""

import click

from simple_gpu_scheduler.errors import SOME_DID_NOT_SUCCEED, UserError

from .params import Command

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
    from simple_gpu_scheduler.journal import files  # noqa: PLC0415 - not for --help
    from simple_gpu_scheduler.wording import safe  # noqa: PLC0415 - as above

    from . import runs  # noqa: PLC0415 - as above

    living = [] if run else runs.living_runs()
    journal = living[0] if living else runs.choose(run)
    try:
        with files.opened(journal) as fd:
            files.wait_until_unlocked(fd, files.SCHEDULER)
    except OSError as error:
        raise UserError(f"cannot wait for {safe(journal)}: {error.strerror}") from None
    state = runs.load(journal)
    if state.ended is None:
        died = runs.standing(state, alive=False)
        raise _DiedError(f"run {state.run} {died}; simple_gpu_scheduler --resume {state.run} goes on with it")
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
