"""`history`: past runs, the jobs of one, and the same jobs as commands that can be piped in again."""

import os
import sys
import time
from itertools import islice

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.stdlib import json
from simple_gpu_scheduler.base.text import print_bytes, print_text, safe, show_moment, show_outcome, visible
from simple_gpu_scheduler.base.units import show_bytes, show_duration
from simple_gpu_scheduler.base.values import Iterable, Sequence
from simple_gpu_scheduler.cli.declarations import Command, Option, Parsed, Section, UsageError
from simple_gpu_scheduler.cli.options.which_run import RUN, also_run, with_run
from simple_gpu_scheduler.display.table import width_of_stdout, with_commands, with_room
from simple_gpu_scheduler.journal import disk, files
from simple_gpu_scheduler.journal.find import FoundRun, all_runs, choose, is_elsewhere, look
from simple_gpu_scheduler.journal.rows import JobRow, RunRow, job_rows, run_row
from simple_gpu_scheduler.journal.rows import commands as commands_of

_FILTERS = ("failed", "waiting", "running", "succeeded", "not_started", "cancelled")
_DEFAULT_COUNT = 20
_MOST_DIGITS = 9
_RUN_HEADINGS = ("RUN", "STARTED", "TOOK", "STATE", "JOBS", "DISK", "DIRECTORY")
_JOB_HEADINGS = ("JOB", "NAME", "STATE", "ATTEMPTS", "OUTCOME", "GPUS", "STARTED", "TOOK", "COMMAND")
_DISPENSABLE = ("ATTEMPTS", "GPUS", "STARTED")
_DATE = len("2026-01-31 ")
_EXAMPLES = r"""
simple_gpu_scheduler history --here
simple_gpu_scheduler history 2b4a4e --failed
simple_gpu_scheduler history 2b4a4e --commands > again.txt
simple_gpu_scheduler history 2b4a4e --failed --commands | simple_gpu_scheduler --gpus 0 1
simple_gpu_scheduler history --json | jq -r '.[] | select(.failed > 0) | .run'
"""
_HELP = """List past runs, newest first; with RUN, list its jobs.

RUN is a run ID, a prefix of it or of its last part, or a journal file. Options that choose jobs use the newest run if
no RUN is given; --commands always needs a RUN, since the run that reads the commands may already be the newest.

With --commands the jobs are printed with their options, as they were read, and can be piped in again; the options of
the run itself (--gpus, --retries, ...) must be given again. An after= is left out if it names a job that succeeded
and is not printed. If that job did not succeed, nothing is printed, since the other would run without what it needs:
choose both. Refused lines are not commands and are only counted.

\b
--json: an array of runs
  run, journal, begun, ended, state, seconds, directory, host, argv, code, disk,
  succeeded, failed, running, waiting, not_started, cancelled, interrupted
or of jobs
  job, name, state, attempts, outcome, code, reason, gpus, started, ended,
  runtime, line, source, options, after, command

Times are in seconds since the epoch, disk in bytes; null means that it is unknown or did not happen; bytes that are not
UTF-8 are lone surrogates, as in the journal. A job that was running when its run was stopped or died is "interrupted".
"""


def _flag(name: str, help_text: str) -> Option:
    return Option([f"--{name}"], is_flag=True, help=help_text)


def _sections() -> tuple[Section, ...]:
    count = Option(
        ["-n", "count"],
        kind=Parsed("number", _count),
        metavar="N",
        help=f"Show at most N runs.  [default: {_DEFAULT_COUNT}]",
    )
    null = Option(["-0", "--null", "null"], is_flag=True, help="With --commands: end each job with NUL.")
    as_json = Option(["--json", "as_json"], is_flag=True, help="Print a JSON array.")
    return (
        Section("Which runs", (count, _flag("here", "Only runs of this directory."))),
        Section(
            "Which jobs (may be combined)",
            (
                _flag("failed", "Jobs that failed, were killed, timed out or stalled."),
                _flag("waiting", "Jobs that wait, or were waiting or interrupted when their run ended."),
                _flag("running", "Jobs that run, or were running when their run died."),
                _flag("succeeded", "Jobs that succeeded."),
                _flag("not-started", "Jobs that were not started and will not be."),
                _flag("cancelled", "Jobs that were cancelled."),
            ),
        ),
        Section("Display", (_flag("commands", "Print commands that can be piped in again."), null, as_json)),
    )


def _count(text: str) -> int:
    digits = text.lstrip("0")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
        raise ValueError(f"'{text}' is not a whole number (1 or more)")
    return int(digits)


def _history(
    run: str | None, count: int | None, here: bool, commands: bool, null: bool, as_json: bool, **filters: bool
) -> int:
    groups = [name.replace("_", " ") for name in _FILTERS if filters[name]]
    groups += ["interrupted"] if filters["waiting"] else []
    shows_jobs = run is not None or bool(groups)
    if commands and not run:
        raise UsageError("--commands needs a RUN")
    _check(is_list=bool(count or here), shows_jobs=shows_jobs, commands=commands, null=null, as_json=as_json)
    if shows_jobs:
        _show_jobs(run or "", groups, commands=commands, null=null, as_json=as_json)
    else:
        _show_runs(count or _DEFAULT_COUNT, here=here, as_json=as_json)
    return 0


def _check(*, is_list: bool, shows_jobs: bool, commands: bool, null: bool, as_json: bool) -> None:
    if is_list and shows_jobs:
        raise UsageError("-n and --here select runs, not the jobs of one run")
    if null and not commands:
        raise UsageError("--null requires --commands")
    if commands and as_json:
        raise UsageError("--commands and --json exclude each other")


def _show_runs(count: int, *, here: bool, as_json: bool) -> None:
    rows = list(islice(_runs(here=here), count))
    if as_json:
        print_text(json.dumps([row.to_json() for row in rows], indent=2))
    else:
        _print_table(_RUN_HEADINGS, [_run_cells(row) for row in rows])


def _runs(*, here: bool) -> Iterable[RunRow]:
    names = disk.names_by_run(files.runs_directory(os.environ))
    for path in all_runs():
        try:
            seen = look(path)
        except UserError as error:  # an unreadable one must not hide the others
            print(f"{PROGRAM} history: {error}", file=sys.stderr)
            continue
        if not here or os.path.realpath(seen.state.began.get("directory", "")) == os.path.realpath(os.getcwd()):
            row = run_row(seen.state, path, seen.standing, time.time() if seen.is_alive else None)
            yield row._replace(disk=disk.size_of(os.path.dirname(path), names.get(row.run, ())))


def _show_jobs(run: str, groups: Sequence[str], *, commands: bool, null: bool, as_json: bool) -> None:
    seen = look(choose(run))
    rows = job_rows(seen.state, _if_running(seen), time.time(), groups)
    if commands:
        _print_commands(rows, seen, null=null)
    elif as_json:
        print_text(json.dumps([row.to_json() for row in rows], indent=2))
    else:
        _print_jobs(rows)


def _if_running(seen: FoundRun) -> str:
    if seen.is_alive or seen.is_kept:
        return "running"
    return "unknown" if is_elsewhere(seen.state) and not seen.state.ended else "interrupted"


def _print_commands(rows: Sequence[JobRow], seen: FoundRun, *, null: bool) -> None:
    try:
        text = commands_of(rows, seen.state, by_null=null)
    except ValueError as error:
        raise UserError(safe(visible(str(error)))) from None
    refused = sum(row.job is None for row in rows)
    if refused:
        lines = "1 refused line" if refused == 1 else f"{refused} refused lines"
        print(f"{PROGRAM} history: {lines} cannot be printed as commands", file=sys.stderr)
    print_bytes(text)


def _run_cells(row: RunRow) -> tuple[str, ...]:
    # Nothing is running in a run that died.
    words = {} if row.state in ("running", "paused") else {"running": "not ended"}
    counts = [f"{count} {words.get(group, group)}" for group, count in row.counts.items() if count]
    directory = safe(visible(row.directory))
    return (
        row.run,
        show_moment(row.begun),
        show_duration(row.seconds),
        row.state,
        ", ".join(counts) or "none",
        show_bytes(row.disk),
        directory,
    )


def _job_cells(row: JobRow) -> tuple[str, ...]:
    has_failed = row.outcome and row.outcome.kind != "succeeded"
    return (
        str(row.number),
        row.job.name if row.job and row.job.name else "-",
        row.state,
        str(row.attempts),
        row.reason or (show_outcome(row.outcome) if row.outcome and has_failed else "-"),
        ",".join(row.gpus) or ("cpu" if row.attempts else "-"),
        show_moment(row.started) if row.started else "-",
        show_duration(row.runtime) if row.runtime is not None else "-",
        row.job.command.decode("utf-8", "backslashreplace").strip() if row.job else "-",
    )


def _print_jobs(rows: Sequence[JobRow]) -> None:
    cells, width = [_job_cells(row) for row in rows], width_of_stdout()
    if width is None:
        _print_table(_JOB_HEADINGS, cells)
        return
    dates = {show_moment(row.started)[:_DATE] for row in rows if row.started}
    short = [_shortened(row, is_one_day=len(dates) == 1) for row in cells]
    headings, *fitting = with_room([_JOB_HEADINGS, *short], width, _DISPENSABLE)
    _print_table(headings, fitting)


def _shortened(cells: tuple[str, ...], *, is_one_day: bool) -> tuple[str, ...]:
    """Without what another column says, or the ID of the run."""
    *before, outcome, gpus, started, took, command = cells
    outcome = outcome.removeprefix("failed with ").removeprefix("was ")
    return (*before, outcome, gpus, started[_DATE:] if is_one_day and started != "-" else started, took, command)


def _print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The last column holds commands or directories."""
    lines = with_commands([headings, *([safe(visible(cell)) for cell in row] for row in rows)], width=width_of_stdout())
    print_text("\n".join(lines))


history_command = Command(
    "history",
    callback=with_run(_history),
    help=_HELP,
    argument=RUN,
    others=[also_run("list the runs")],
    sections=_sections(),
    examples=_EXAMPLES,
)
