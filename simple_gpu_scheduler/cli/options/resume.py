"""Which run is resumed, and with which options: those that are typed now, else the earlier ones."""

import os
import sys

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import TYPE_CHECKING, Any, Callable, Sequence
from simple_gpu_scheduler.cli.declarations import CommandLine, Option, Section, UsageError
from simple_gpu_scheduler.engines import ENGINES
from simple_gpu_scheduler.resume import ResumeOptions
from simple_gpu_scheduler.scheduling.policies.names import LEARNED

if TYPE_CHECKING:
    from simple_gpu_scheduler.resume.find import Resumed

# What a resumed run does not take from the command line that started it: its inputs, and how it is resumed.
_OF_THIS_TIME = {"files", "follow", "make_fifo", "resume", "resume_failed", "journal", "keep"}
# What goes with one policy, and not with another that is named later.
_OF_A_POLICY = {"ageing", "fair_by"}


def looks_like_run(word: str) -> bool:
    """Whether a word after `--resume` names a run and not a file: it is a journal, or there is no such file."""
    if not word or word.startswith("-"):
        return False
    return word.endswith(".jsonl") or not os.path.lexists(word)


SECTION = Section(
    "Resuming",
    (
        Option(
            ["--resume"],
            takes=looks_like_run,
            metavar="[RUN]",
            help="Resume a run that did not finish; jobs that succeeded are not run again.  [default: the newest "
            "unfinished run in this directory]",
        ),
        Option(
            ["--resume-failed"],
            takes=looks_like_run,
            metavar="[RUN]",
            help="Like --resume, and retry failed jobs too.  [default: the newest run in this directory that is "
            "unfinished or has failed jobs]",
        ),
    ),
)


def take_resume(typed: dict[str, Any]) -> ResumeOptions:
    """What these options say, taken out of all that was typed."""
    return _asked(typed.pop("resume"), typed.pop("resume_failed"))


def _asked(run: str | None, with_failed: str | None) -> ResumeOptions:
    """Either may name the run; an empty one names none, and None was not given."""
    if run and with_failed and run != with_failed:
        both = f"--resume {safe(run)} and --resume-failed {safe(with_failed)}"
        raise UsageError(f"two runs are given, {both}; choose one")
    return ResumeOptions(with_failed or run if run is not None else with_failed, with_failed is not None)


def resumed_run(
    options: dict[str, Any], typed: frozenset[str], read_again: Callable[[Sequence[str]], CommandLine]
) -> "Resumed | None":
    """The run to resume; its own options, which `read_again` reads, apply unless they are typed again."""
    asked = _asked(options["resume"], options["resume_failed"])
    if not asked.is_asked:
        return _follower(options)
    if _keeps_nothing(options):
        raise UsageError("--resume needs a journal: leave out --no-journal, --dry-run and --engine.")
    if "joblog" in typed and not asked.run and not options["journal"]:
        return None  # the job log tells what was done
    from simple_gpu_scheduler.resume import find  # noqa: PLC0415 - 6 ms that --help needs not

    path = find.find(asked.run or options["journal"] or "", failed_too=asked.failed_too)
    if not path:
        _first(options)
        return None
    resumed = find.take(path)
    for argv in resumed.state.argvs:
        stored = read_again(argv)
        names = stored.typed - typed - _OF_THIS_TIME
        if "policy" in typed:
            names -= _OF_A_POLICY
        elif "policy" in names:
            options |= dict.fromkeys(_OF_A_POLICY - typed)
        if "follow" in typed:
            names -= {"no_follow"}
        options |= {name: stored.values[name] for name in names}
    if resumed.state.began["directory"] != os.getcwd():
        options |= _absolute(options, typed)
    _go_to(resumed.state.began["directory"])
    return resumed


def _keeps_nothing(options: dict[str, Any]) -> bool:
    return options["no_journal"] or options["dry_run"] or ENGINES[options["engine"]].runs_nothing


def _first(options: dict[str, Any]) -> None:
    """There is no run to resume: with an input, this is the first run, as when a machine boots for the first time."""
    from simple_gpu_scheduler.inputs.gather import is_of  # noqa: PLC0415 - as above

    if not options["files"] and not options["follow"] and is_of(0).kind not in ("file", "fifo", "pipe"):
        raise UserError(f"no run to resume in this directory; list all runs with: {PROGRAM} history")
    print("no earlier run in this directory; starting a new one", file=sys.stderr)


def _follower(options: dict[str, Any]) -> "Resumed | None":
    """A file that an earlier run followed is resumed: starting from its beginning would run everything twice."""
    path = options["follow"]
    is_no_file = bool(path) and os.path.exists(path) and not os.path.isfile(path)  # one may be between two rotations
    if not path or _keeps_nothing(options) or is_no_file:
        return None
    from simple_gpu_scheduler.journal import files  # noqa: PLC0415 - as above
    from simple_gpu_scheduler.resume import find  # noqa: PLC0415 - as above

    journal = find.find_follower(os.path.realpath(path))
    if journal and files.is_alive(journal):
        raise UserError(
            f"--follow {path}: run {files.run_of(journal)} already follows it; "
            f"add jobs with: {PROGRAM} submit --to {path}"
        )
    return find.take(journal) if journal else None


def _absolute(options: dict[str, Any], typed: frozenset[str]) -> dict[str, Any]:
    """The paths that were typed, for another directory."""
    files = tuple([path if path == "-" else os.path.abspath(path) for path in options["files"]])
    paths = {name: os.path.abspath(options[name]) for name in typed & {"follow", "joblog", "logs", "chdir", "textfile"}}
    name, colon, path = options["policy"].partition(":")
    if colon and "policy" in typed and name == LEARNED:
        paths["policy"] = f"{LEARNED}:{os.path.abspath(path)}"
    return {**paths, "files": files}


def _go_to(directory: str) -> None:
    """Where the run began: its paths may be relative."""
    try:
        os.chdir(directory)
    except OSError as error:
        raise UserError(f"cannot enter the run's directory {directory}: {error.strerror}") from None
