"""`stop`, `pause`, `continue`, `cancel` and `retry`: requests to an active run, and its answer in words."""

import sys

from simple_gpu_scheduler.base.errors import SOME_DID_NOT_SUCCEED
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import Any
from simple_gpu_scheduler.cli.declarations import Argument, Command, Option
from simple_gpu_scheduler.cli.options.which_run import RUN, also_run, run_option, with_run
from simple_gpu_scheduler.journal.files import run_of
from simple_gpu_scheduler.journal.find import choose, find_numbers, only_active
from simple_gpu_scheduler.remote.client import ask

_RUN_HELP = "RUN is a run ID or a prefix of it; it is not needed if only one run is active."
_DEFAULT_RUN = "the only active run"
_JOBS = Argument("words", "JOB...", is_required=True)


def _tell(run: str | None, **request: Any) -> int:
    journal = choose(run or "", only_active)
    print(f"run {safe(run_of(journal))}: {ask(journal, request)['done']}")
    return 0


def _tell_of_jobs(do: str, words: tuple[str, ...], run: str) -> int:
    journal = choose(run, only_active)
    answer = ask(journal, {"do": do, "jobs": find_numbers(words, journal)})
    for each in answer["jobs"]:
        print(f"job {each['job']}: {each.get('error') or each['done']}", file=sys.stderr if "error" in each else None)
        _tell_also(each.get("also", ()), "not started, since it depends on that job")
    _tell_also(answer.get("also", ()), "waiting again, since it depends on those jobs")
    return SOME_DID_NOT_SUCCEED if any("error" in each for each in answer["jobs"]) else 0


def _tell_also(numbers: list[int], what: str) -> None:
    for number in numbers:
        print(f"job {number}: {what}")


stop_command = Command(
    "stop",
    with_run(lambda run, now: _tell(run, do="stop", now=now)),
    f"Stop a run: it starts no more jobs, and ends when its running jobs have ended.\n\n{_RUN_HELP} "
    f"`{PROGRAM} --resume` runs the remaining jobs.",
    "simple_gpu_scheduler stop\nsimple_gpu_scheduler stop 20260102-0304 --now",
    RUN,
    [
        also_run(_DEFAULT_RUN),
        Option(["--now"], is_flag=True, help="Also stop the running jobs: TERM, then KILL after the run's --grace."),
    ],
)
pause_command = Command(
    "pause",
    with_run(lambda run: _tell(run, do="pause")),
    "Pause a run: it starts no more jobs until `continue`. Running jobs are not affected, and the input is still "
    f"read.\n\n{_RUN_HELP}",
    "simple_gpu_scheduler pause",
    RUN,
    [also_run(_DEFAULT_RUN)],
)
continue_command = Command(
    "continue",
    with_run(lambda run: _tell(run, do="continue")),
    f"Continue a paused run.\n\n{_RUN_HELP}",
    "simple_gpu_scheduler continue",
    RUN,
    [also_run(_DEFAULT_RUN)],
)
cancel_command = Command(
    "cancel",
    lambda words, run: _tell_of_jobs("cancel", words, run),
    "Cancel jobs of an active run. A running job is stopped and not retried; jobs that depend on it (after=) are not "
    "started.\n\nJOB is a number or a name. The exit code is 1 if a job could not be cancelled.",
    "simple_gpu_scheduler cancel 12 big-model",
    _JOBS,
    [run_option(_DEFAULT_RUN)],
)
retry_command = Command(
    "retry",
    lambda words, run: _tell_of_jobs("retry", words, run),
    "Run jobs of an active run again if they failed or were not started. The jobs that they kept from starting wait "
    "again too.\n\nJOB is a number or a name. The exit code is 1 if a job could not be retried.",
    "simple_gpu_scheduler retry 12\nsimple_gpu_scheduler history --failed",
    _JOBS,
    [run_option(_DEFAULT_RUN)],
)
