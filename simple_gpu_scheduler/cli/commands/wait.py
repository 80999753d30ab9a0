"""`wait`: sleeps until a run is over, and exits with its exit code."""

from simple_gpu_scheduler.base.errors import SOME_DID_NOT_SUCCEED, UserError
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.cli.declarations import Command
from simple_gpu_scheduler.cli.options.which_run import RUN, also_run, with_run
from simple_gpu_scheduler.journal import files, find

_EXAMPLES = r"""
simple_gpu_scheduler wait && python collect_results.py
simple_gpu_scheduler wait 20260102-0304; echo "it ended with $?"
"""
_HELP = """Wait until a run has ended, and exit with its exit code.

RUN is a run ID or a prefix of it; the default is the newest active run. If none is active, it is the newest run in
this directory, or else the newest of all. The exit code is 1 for a run that died.
"""


class _DiedError(UserError):
    code = SOME_DID_NOT_SUCCEED


def _wait(run: str | None) -> int:
    journal = find.choose(run or "", find.active_first)
    try:
        with files.opened(journal) as fd:
            files.wait_until_unlocked(fd, files.SCHEDULER)
    except OSError as error:
        raise UserError(f"cannot wait for {safe(journal)}: {error.strerror}") from None
    state = find.load(journal)
    if state.ended is None:
        died = find.standing(state, alive=False)
        raise _DiedError(f"run {state.run} {died}; resume it with: {PROGRAM} --resume {state.run}")
    code = state.ended.get("code")
    return code if isinstance(code, int) else SOME_DID_NOT_SUCCEED


wait_command = Command(
    "wait",
    callback=with_run(_wait),
    help=_HELP,
    argument=RUN,
    others=[also_run("the newest active run, or else the newest in this directory")],
    examples=_EXAMPLES,
)
