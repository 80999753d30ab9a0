"""`history`: past runs, the jobs of one, and the same jobs as commands that can be piped in again."""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import click

from simple_gpu_scheduler.base.text import print_bytes, print_text, show_moment
from simple_gpu_scheduler.cli.click_extras import Command, Parsed

if TYPE_CHECKING:
    from simple_gpu_scheduler.journal.find import RunSnapshot
    from simple_gpu_scheduler.journal.rows import JobRow, RunRow

_FILTERS = ("failed", "waiting", "running", "succeeded", "not_started", "cancelled")
_DEFAULT_COUNT = 20
_BETWEEN = "  "
_RUN_HEADINGS = ("RUN", "STARTED", "TOOK", "STATE", "JOBS", "DIRECTORY")
_JOB_HEADINGS = ("JOB", "NAME", "STATE", "ATTEMPTS", "OUTCOME", "GPUS", "STARTED", "TOOK", "COMMAND")
_EXAMPLES = r"""
simple_gpu_scheduler history --here
simple_gpu_scheduler history 2b4a4e --failed
simple_gpu_scheduler history 2b4a4e --commands > again.txt
simple_gpu_scheduler history 2b4a4e --failed --commands | simple_gpu_scheduler --gpus 0 1
simple_gpu_scheduler history --json | jq -r '.[] | select(.failed > 0) | .run'
"""
_HELP = """List past runs, the newest first; or with RUN its jobs.

RUN is the id of a run, the begin of it or of its last part, or a journal's file. With an option that chooses jobs, no
RUN means the newest; --commands wants it named, since the run that they are piped to may be the newest already.

With --commands the jobs are printed with their options, each as it was read, and can be piped in again; what the run
itself was told (--gpus, --retries, ...) is to be told again. A job whose after= names one that has succeeded and is not
printed comes after nothing. Has that one not succeeded, nothing is printed, since the job would run without what it
needs: choose the other one too. A line that was refused is no command, and is only counted.

\b
--json: an array of runs
  run, journal, begun, ended, state, seconds, directory, host, argv, code,
  succeeded, failed, running, waiting, not_started, cancelled
or of jobs
  job, name, state, attempts, outcome, code, reason, gpus, started, ended,
  runtime, line, source, options, after, command

Times are in seconds of the epoch; null is what is not known or did not happen; bytes that are not UTF-8 are lone
surrogates, as in the journal. A job that was running when its run died is interrupted.
"""
_SECTIONS = (
    ("Which runs", ("count", "here")),
    ("Which jobs (several may be given)", _FILTERS),
    ("How it is shown", ("commands", "null", "as_json")),
)


def _options() -> list[click.Parameter]:
    return [
        click.Argument(["run"], required=False, metavar="[RUN]"),
        click.Option(
            ["-n", "count"],
            type=Parsed("number", _count),
            metavar="N",
            help=f"At most so many runs.  [default: {_DEFAULT_COUNT}]",
        ),
        click.Option(["--here"], is_flag=True, help="Only runs of this directory."),
        click.Option(["--failed"], is_flag=True, help="Jobs that failed, were killed or timed out."),
        click.Option(["--waiting"], is_flag=True, help="Jobs that wait, or waited when their run ended."),
        click.Option(["--running"], is_flag=True, help="Jobs that run, or ran when their run died."),
        click.Option(["--succeeded"], is_flag=True, help="Jobs that succeeded."),
        click.Option(["--not-started"], is_flag=True, help="Jobs that were not started and will not be."),
        click.Option(["--cancelled"], is_flag=True, help="Jobs that were cancelled."),
        click.Option(["--commands"], is_flag=True, help="As commands that can be piped in again."),
        click.Option(
            ["-0", "--null", "null"], is_flag=True, help="With --commands: NUL behind each job, for newlines."
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="As JSON: an array."),
    ]


def _count(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]{0,8}", text):
        raise ValueError(f"'{text}' is not a whole number (1 or more)")
    return int(text)


def _history(
    run: str | None, count: int | None, here: bool, commands: bool, null: bool, as_json: bool, **filters: bool
) -> int:
    groups = [name.replace("_", " ") for name in _FILTERS if filters[name]]
    shows_jobs = run is not None or bool(groups)
    if commands and not run:
        raise click.UsageError("--commands needs a RUN")
    _check(is_list=bool(count or here), shows_jobs=shows_jobs, commands=commands, null=null, as_json=as_json)
    if shows_jobs:
        _show_jobs(run or "", groups, commands=commands, null=null, as_json=as_json)
    else:
        _show_runs(count or _DEFAULT_COUNT, here=here, as_json=as_json)
    return 0


def _check(*, is_list: bool, shows_jobs: bool, commands: bool, null: bool, as_json: bool) -> None:
    if is_list and shows_jobs:
        raise click.UsageError("-n and --here select runs, not the jobs of one run")
    if null and not commands:
        raise click.UsageError("--null requires --commands")
    if commands and as_json:
        raise click.UsageError("--commands and --json exclude each other")


def _show_runs(count: int, *, here: bool, as_json: bool) -> None:
    rows = list(islice(_runs(here=here), count))
    if as_json:
        print_text(json.dumps([row.to_json() for row in rows], indent=2))
    else:
        _print_table(_RUN_HEADINGS, [_run_cells(row) for row in rows])


def _runs(*, here: bool) -> "Iterable[RunRow]":
    from simple_gpu_scheduler.base.errors import UserError  # noqa: PLC0415 - not for --help
    from simple_gpu_scheduler.journal.find import all_runs, look  # noqa: PLC0415 - as above
    from simple_gpu_scheduler.journal.rows import run_row  # noqa: PLC0415 - as above

    for path in all_runs():
        try:
            seen = look(path)
        except UserError as error:  # an unreadable one must not hide the others
            print(f"simple_gpu_scheduler history: {error}", file=sys.stderr)
            continue
        if not here or os.path.realpath(seen.state.began.get("directory", "")) == os.path.realpath(os.getcwd()):
            yield run_row(seen.state, path, seen.standing, time.time() if seen.is_alive else None)


def _show_jobs(run: str, groups: Sequence[str], *, commands: bool, null: bool, as_json: bool) -> None:
    from simple_gpu_scheduler.journal.find import choose, look  # noqa: PLC0415 - as above
    from simple_gpu_scheduler.journal.rows import job_rows  # noqa: PLC0415 - not for --help

    seen = look(choose(run))
    rows = job_rows(seen.state, _if_running(seen), time.time(), groups)
    if commands:
        _print_commands(rows, seen, null=null)
    elif as_json:
        print_text(json.dumps([row.to_json() for row in rows], indent=2))
    else:
        _print_table(_JOB_HEADINGS, [_job_cells(row) for row in rows])


def _if_running(seen: "RunSnapshot") -> str:
    from simple_gpu_scheduler.journal.find import is_elsewhere  # noqa: PLC0415 - as above

    if seen.is_alive or seen.is_kept:
        return "running"
    return "unknown" if is_elsewhere(seen.state) and not seen.state.ended else "interrupted"


def _print_commands(rows: "Sequence[JobRow]", seen: "RunSnapshot", *, null: bool) -> None:
    from simple_gpu_scheduler.base.errors import UserError  # noqa: PLC0415 - as above
    from simple_gpu_scheduler.journal.rows import commands  # noqa: PLC0415 - as above

    try:
        text = commands(rows, seen.state, by_null=null)
    except ValueError as error:
        raise UserError(_shown(str(error))) from None
    refused = sum(row.job is None for row in rows)
    if refused:
        lines = "1 refused line" if refused == 1 else f"{refused} refused lines"
        print(f"simple_gpu_scheduler history: {lines} cannot be printed as commands", file=sys.stderr)
    print_bytes(text)


def _run_cells(row: "RunRow") -> tuple[str, ...]:
    from simple_gpu_scheduler.base.units import show_duration  # noqa: PLC0415 - as above

    # Nothing is running in a run that died.
    words = {} if row.state in ("running", "paused") else {"running": "unfinished"}
    counts = [f"{count} {words.get(group, group)}" for group, count in row.counts.items() if count]
    directory = _shown(row.directory)
    return (
        row.run,
        show_moment(row.begun),
        show_duration(row.seconds),
        row.state,
        ", ".join(counts) or "none",
        directory,
    )


def _job_cells(row: "JobRow") -> tuple[str, ...]:
    from simple_gpu_scheduler.base.text import show_outcome  # noqa: PLC0415 - as above
    from simple_gpu_scheduler.base.units import show_duration  # noqa: PLC0415 - as above

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


def _shown(text: str) -> str:
    """Safe to print; bytes that are not UTF-8 are lone surrogates here."""
    from simple_gpu_scheduler.base.text import safe  # noqa: PLC0415 - as above

    return safe(text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))


def _print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """In columns; cut to the width of a terminal, else whole."""
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415 - as above

    table = [headings, *([_shown(cell) for cell in row] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        cells = [cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        lines.append(_BETWEEN.join([*cells[:-1], row[-1]]))
    if sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
        lines = [line if cell_len(line) <= columns else set_cell_size(line, columns - 1) + "…" for line in lines]
    print_text("\n".join(line.rstrip() for line in lines))


history_command = Command(
    "history",
    params=_options(),
    callback=_history,
    help=_HELP,
    short_help="List past runs and their jobs.",
    sections=_SECTIONS,
    examples=_EXAMPLES,
)
