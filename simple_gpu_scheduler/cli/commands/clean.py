"""`clean`: shows what runs keep on disk, deletes it, and marks runs that are never deleted automatically."""

import os
import sys
import time

from simple_gpu_scheduler.base.errors import SOME_DID_NOT_SUCCEED, UserError
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.stdlib import json, suppress
from simple_gpu_scheduler.base.text import print_text, safe, show_moment, visible
from simple_gpu_scheduler.base.units import parse_duration, show_bytes
from simple_gpu_scheduler.base.values import Sequence
from simple_gpu_scheduler.cli.declarations import Command, Option, Parsed, Section, UsageError
from simple_gpu_scheduler.cli.options.which_run import RUNS, also_runs, with_runs
from simple_gpu_scheduler.display.table import aligned, cut, width_of_stdout
from simple_gpu_scheduler.journal import disk, files, find
from simple_gpu_scheduler.journal.find import ending
from simple_gpu_scheduler.journal.removals import RunOnDisk, Unwanted, choose_removals

_HEADINGS = ("RUN", "LAST CHANGED", "STATE", "DISK", "ELSEWHERE")
_EXAMPLES = r"""
simple_gpu_scheduler clean
simple_gpu_scheduler clean --older-than 30d -n
simple_gpu_scheduler clean 20260102-0304 2b4a4e
simple_gpu_scheduler clean --keep 2b4a4e
"""
_HELP = """Show what runs keep on disk (journals, input from pipes, logs), or delete RUNs, old runs or all runs.

RUN is a run ID, a prefix of it or of its last part. Without RUN, --all or --older-than, nothing is deleted.

Active runs are never deleted. A run that could still be resumed is deleted only with --unfinished, and a kept run
(--keep, also an option of a run) only if you name it. Files in directories of your own (--logs DIR, --journal FILE) are
shown as ELSEWHERE and never deleted.

\b
--json: an array of runs
  run, journal, changed, state, kept, disk, elsewhere
"""

_SECTIONS = (
    Section(
        "What to delete",
        (
            Option(
                ["--older-than"],
                kind=Parsed("duration", parse_duration),
                metavar="DURATION",
                help="Delete runs whose journal has not changed for this long, such as 30d.",
            ),
            Option(["--all", "all_runs"], is_flag=True, help="Delete all runs."),
            Option(["--unfinished"], is_flag=True, help="Also delete runs that could still be resumed."),
            Option(["-n", "--dry-run", "is_dry"], is_flag=True, help="Only say what would be deleted."),
        ),
    ),
    Section(
        "What to keep",
        (
            Option(["--keep"], is_flag=True, help="Keep the RUNs until you delete them by name."),
            Option(["--no-keep"], is_flag=True, help="Remove the mark that --keep set."),
        ),
    ),
    Section("Display", (Option(["--json", "as_json"], is_flag=True, help="Print a JSON array."),)),
)


def _clean(
    runs: tuple[str, ...],
    older_than: float | None,
    all_runs: bool,
    unfinished: bool,
    is_dry: bool,
    keep: bool,
    no_keep: bool,
    as_json: bool,
) -> int:
    deletes = bool(runs or all_runs or older_than is not None) and not (keep or no_keep)
    _check(runs, deletes=deletes, marks=keep + no_keep, only_delete=unfinished or is_dry, as_json=as_json)
    if (keep or no_keep) and (all_runs or older_than is not None):
        raise UsageError("--keep and --no-keep take RUNs, not --all or --older-than")
    directory = files.runs_directory(os.environ)
    named = [_named(directory, word) for word in runs]
    if keep or no_keep:
        return _mark(directory, named, keep=keep)
    found = _found(directory)
    if not deletes:
        _show(found, as_json=as_json)
        return 0
    return _delete(found, Unwanted(frozenset(named), all_runs, older_than, unfinished), is_dry=is_dry)


def _check(runs: Sequence[str], *, deletes: bool, marks: int, only_delete: bool, as_json: bool) -> None:
    if marks > 1:
        raise UsageError("--keep and --no-keep exclude each other")
    if marks and not runs:
        raise UsageError("--keep and --no-keep require at least one RUN")
    if only_delete and not deletes:
        raise UsageError("say which runs to delete: RUN..., --older-than DURATION or --all")
    if as_json and (deletes or marks):
        raise UsageError("--json only lists runs; it cannot be combined with options that delete or keep them")


def _named(directory: str, word: str) -> str:
    """The ID of a run; a UserError if it keeps nothing there."""
    path = find.choose(word)
    run = files.run_of(path)
    if not files.is_run_id(run):  # it was given by the file of its journal
        run = str(find.began(path).get("run", ""))
    if not os.path.lexists(os.path.join(directory, run + files.SUFFIX)):
        raise UserError(f"{safe(word)} is not a run in {safe(directory)}; clean changes nothing elsewhere")
    return run


def _mark(directory: str, runs: Sequence[str], *, keep: bool) -> int:
    for run in runs:
        try:
            (disk.keep if keep else disk.keep_no_longer)(directory, run)
        except OSError as error:
            raise UserError(f"cannot mark run {run}: {error.strerror}") from None
    return 0


def _found(directory: str) -> list[RunOnDisk]:
    names = disk.names_by_run(directory)
    found = []
    for path in find.all_runs():
        with suppress(OSError):  # it has just been deleted
            found.append(_on_disk(directory, path, names.get(files.run_of(path), ())))
    return found


def _on_disk(directory: str, path: str, names: Sequence[str]) -> RunOnDisk:
    is_active = files.is_active(path)  # first: it may end meanwhile
    return RunOnDisk(
        files.run_of(path),
        path,
        disk.size_of(directory, names),
        os.stat(path).st_mtime,
        is_active,
        ending(path),
        disk.is_to_keep(names),
        _elsewhere(directory, path),
    )


def _elsewhere(directory: str, path: str) -> list[str]:
    """What the run keeps in directories of the user's own: the journal, and the logs of its last job at least."""
    journal = os.path.realpath(path)
    log = find.newest_record(path, "job started").get("log", "")
    candidates = [journal, os.path.dirname(log)] if isinstance(log, str) else [journal]
    ours = os.path.realpath(directory) + os.sep
    return [
        each for each in candidates if each and not os.path.realpath(each).startswith(ours) and os.path.exists(each)
    ]


def _show(runs: Sequence[RunOnDisk], *, as_json: bool) -> None:
    if as_json:
        print_text(json.dumps([_to_json(run) for run in runs], indent=2))
        return
    lines = aligned([_HEADINGS, *(_cells(run) for run in runs)])
    print_text("\n".join(cut(lines, width_of_stdout())))
    count = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    print_text(f"{count}, {show_bytes(sum(run.disk for run in runs))} total")


def _cells(run: RunOnDisk) -> tuple[str, ...]:
    state = f"{run.state}, kept" if run.is_kept else run.state
    elsewhere = safe(visible(", ".join(run.elsewhere))) or "-"
    return run.run, show_moment(run.changed), state, show_bytes(run.disk), elsewhere


def _to_json(run: RunOnDisk) -> dict[str, object]:
    return {
        "run": run.run,
        "journal": run.journal,
        "changed": run.changed,
        "state": run.state,
        "kept": run.is_kept,
        "disk": run.disk,
        "elsewhere": run.elsewhere,
    }


def _delete(runs: Sequence[RunOnDisk], unwanted: Unwanted, *, is_dry: bool) -> int:
    """The exit code: 1 if a run that was named is left, or one could not be deleted."""
    removals = choose_removals(runs, unwanted, time.time())
    code, freed = 0, 0
    for run in removals.runs:
        try:
            if not is_dry:
                disk.delete(run.journal)
        except (UserError, OSError) as error:
            _complain(str(error) if isinstance(error, UserError) else f"run {run.run}: {error.strerror}")
            code = SOME_DID_NOT_SUCCEED
            continue
        freed += run.disk
        left = f"; not deleted: {safe(visible(', '.join(run.elsewhere)))}" if run.elsewhere else ""
        print_text(f"{'would delete' if is_dry else 'deleted'} run {run.run}, {show_bytes(run.disk)}{left}")
    for run, why in removals.left:
        _complain(f"not deleting run {run.run}: {why}")
        code = SOME_DID_NOT_SUCCEED if run.run in unwanted.named else code
    print_text(f"{'would free' if is_dry else 'freed'} {show_bytes(freed)}")
    return code


def _complain(text: str) -> None:
    print(f"{PROGRAM} clean: {text}", file=sys.stderr)


clean_command = Command(
    "clean",
    callback=with_runs(_clean),
    help=_HELP,
    argument=RUNS,
    others=[also_runs("none")],
    sections=_SECTIONS,
    examples=_EXAMPLES,
)
