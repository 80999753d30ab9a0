"""`logs`: the output of jobs, from their log files; with -f also what a job keeps writing."""

import os
import sys
import time

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.cli.declarations import Argument, Command, Option, UsageError
from simple_gpu_scheduler.cli.options.which_run import run_option
from simple_gpu_scheduler.journal import files, find
from simple_gpu_scheduler.journal.find import find_job
from simple_gpu_scheduler.journal.read import read_records
from simple_gpu_scheduler.journal.run_state import UNFINISHED, JobState, RunState
from simple_gpu_scheduler.output.log_file import open_to_read, part_of

_PAUSE = 0.2
_AT_ONCE = 1 << 16
_EXAMPLES = r"""
simple_gpu_scheduler logs 12 15
simple_gpu_scheduler logs --failed
simple_gpu_scheduler logs big-model -f --run 20260102-0304
"""
_HELP = """Print the output of jobs, if their run keeps it: with a live view, --output or --logs.

JOB is a number or a name.
"""


class _Following:
    """A journal that is read as it grows."""

    def __init__(self, journal: str) -> None:
        self._journal = journal
        self._offset = 0
        self.state = RunState()

    def read_on(self) -> None:
        """Take in what is new."""
        with open(self._journal, "rb") as file:
            file.seek(self._offset)
            contents = read_records(file.read())
        self._offset += contents.size
        self.state.feed(contents.records)


class _Output:
    """The log files of a job: prints the part of each attempt's log that was not printed yet."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._log = ""
        self._offset = 0

    def print_on(self, log: str) -> None:
        """Print what is new; if `log` is another one, the rest of the old one first."""
        if self._log and log != self._log:
            self._print_rest()
        if log != self._log:
            self._log, self._offset = log, -1
        self._print_rest()

    def _print_rest(self) -> None:
        try:
            fd = open_to_read(self._log)
        except OSError as error:
            raise UserError(f"cannot read the log {self._log}: {error.strerror}") from None
        try:
            end = os.fstat(fd).st_size
            if not 0 <= self._offset <= end:  # it was not read yet, or the job has truncated it
                self._offset, end = part_of(fd, self._run)
            while part := os.pread(fd, min(_AT_ONCE, max(0, end - self._offset)), self._offset):
                sys.stdout.buffer.write(part)
                self._offset += len(part)
            sys.stdout.buffer.flush()
        finally:
            os.close(fd)


def _logs(words: tuple[str, ...], failed: bool, follow: bool, run: str) -> int:
    _check(words, failed=failed, follow=follow)
    journal = find.choose(run)
    state = find.load(journal)
    jobs = [find_job(state, word) for word in words]
    if follow:
        _follow(journal, jobs[0].job.number)
        return 0
    if failed:
        jobs = [each for each in state.jobs.values() if each.state == "failed"]
        if not jobs:
            raise UserError(f"no job of run {state.run} has failed")
    kept = [each for each in jobs if each.log and os.path.exists(each.log)]
    for job in kept:
        _Output(state.run).print_on(job.log)
    missing = [each for each in jobs if each not in kept]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise UserError(_say_none(state, missing[0]) + more)
    return 0


def _check(words: tuple[str, ...], *, failed: bool, follow: bool) -> None:
    if bool(words) == failed:
        raise UsageError("give job numbers or names, or --failed.")
    if follow and len(words) != 1:
        raise UsageError("--follow takes exactly one job.")


def _follow(journal: str, number: int) -> None:
    following, output = _Following(journal), _Output(find.load(journal).run)
    while True:
        is_alive = files.is_alive(journal)  # in this order: otherwise the last output of a run could be missed
        following.read_on()
        job = following.state.jobs[number]
        is_over = job.state not in UNFINISHED or not is_alive
        if log := job.log:
            if is_over or os.path.exists(log):  # it is recorded before it is created
                output.print_on(log)
        elif job.attempts or is_over:
            raise UserError(_say_none(following.state, job))
        if is_over:
            break
        time.sleep(_PAUSE)
    if job.state in UNFINISHED:
        how = find.standing(following.state, alive=False)
        print(f"job {number} has not ended: run {following.state.run} {how}", file=sys.stderr)


def _say_none(state: RunState, job: JobState) -> str:
    which = f"job {job.job.number} of run {state.run}"
    if not job.attempts:
        return f"{which} has not started, so it has no output"
    if job.log:
        why = " (--logs-failed-only deletes the logs of jobs that succeed)" if job.state == "succeeded" else ""
        return f"the log of {which} is gone{why}: {job.log}"
    return f"{which} has no log: its output went to the run's own output; to keep logs: --output files or --logs DIR"


logs_command = Command(
    "logs",
    callback=_logs,
    help=_HELP,
    argument=Argument("words", "[JOB]..."),
    others=(
        Option(["--failed"], is_flag=True, help="All jobs that failed, were killed, timed out or stalled."),
        Option(["-f", "--follow"], is_flag=True, help="Keep printing what the job writes, until it has ended."),
        run_option("the newest run in this directory, or else of all"),
    ),
    examples=_EXAMPLES,
)
