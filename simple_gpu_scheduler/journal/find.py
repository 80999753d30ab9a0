"""Finds runs and jobs as people name them, and the state of a run: for the commands that show or control runs.

It finds and reads journals; it does not know what is shown of them."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.text import safe

from . import files
from .read import Contents, Record, read_records
from .run_state import JobState, RunState, state_of

_MOST_LISTED = 5
_HEAD = 64 * 1024


class RunSnapshot(NamedTuple):
    """A run as found: whether its scheduler and its keeper are running, and its state by the journal."""

    path: str
    is_alive: bool
    is_kept: bool
    state: RunState

    @property
    def standing(self) -> str:
        """See below."""
        return standing(self.state, self.is_alive)


def all_runs() -> list[str]:
    """The journals of this user's runs, newest first; without links to journals that are gone."""
    return [path for path in files.find_runs(files.runs_directory(os.environ)) if os.path.exists(path)]


def living_runs() -> list[str]:
    """The journals of active runs."""
    return [path for path in all_runs() if files.is_alive(path)]


def choose(word: str, *, alive: bool | None = None) -> str:
    """Find the journal of a run: the newest, preferably of this directory; by a prefix of its ID; or a file.

    A prefix of the last part of the ID is enough.

    `alive`: only active runs, or only others.
    """
    if "/" in word or (word and not files.is_run_id(word) and os.path.exists(word)):
        return _file(word, alive)
    runs = all_runs()
    if not runs:
        where = files.runs_directory(os.environ)
        raise UserError(f"no runs yet; their journals are kept in {safe(where)} by default")
    named = [path for path in runs if _is_called(files.run_of(path), word)]
    if not named:
        raise UserError(f"no run matches '{safe(word)}'; list runs with: simple_gpu_scheduler history")
    found = [path for path in named if _fits(path, alive)]
    if not found:
        raise UserError(_none_fits(named if word else [], alive=bool(alive)))
    if word and len(found) > 1:
        raise UserError(f"'{safe(word)}' is ambiguous: {_listed(found)}; use a longer prefix")
    return next((path for path in found if not word and _is_of_here(path)), found[0])


def _is_of_here(path: str) -> bool:
    with suppress(OSError), open(path, "rb") as file:
        records = read_records(file.read(_HEAD)).records
        return bool(records) and records[0].get("directory") == os.getcwd()
    return False


def _file(path: str, alive: bool | None) -> str:
    if not os.path.isfile(path):
        is_there = os.path.exists(path)
        problem = "it is not a regular file" if is_there else "there is no such file"
        raise UserError(f"{safe(path)} is not a journal: {problem}; give a run ID or the file given to --journal")
    if not _fits(path, alive):
        raise UserError(_none_fits([path], alive=bool(alive)))
    return path


def _is_called(run: str, word: str) -> bool:
    return run.startswith(word) or run.rpartition("-")[2].startswith(word)


def _fits(path: str, alive: bool | None) -> bool:
    return alive is None or files.is_alive(path) == alive


def _none_fits(named: list[str], *, alive: bool) -> str:
    what = "has ended or died" if alive else "is still running"
    if len(named) == 1:
        return f"run {safe(files.run_of(named[0]))} {what}; see: simple_gpu_scheduler history"
    if named:
        return f"each of {_listed(named, 'and')} {what}; see: simple_gpu_scheduler history"
    none = "no run is active" if alive else "no run has ended yet"
    return f"{none}; list all runs with: simple_gpu_scheduler history"


def _listed(paths: list[str], word: str = "or") -> str:
    shown = [files.run_of(path) for path in paths[:_MOST_LISTED]]
    if len(paths) > len(shown):
        shown.append(f"{len(paths) - len(shown)} others")
    return f"{', '.join(shown[:-1])} {word} {shown[-1]}"


def load(path: str) -> RunState:
    """The state of a run by its journal. Unreadable parts are reported on stderr."""
    return _state_of(path, read_records(files.read(path)))


def _state_of(path: str, contents: Contents) -> RunState:
    try:
        state = state_of(contents)
    except ValueError as error:
        raise UserError(f"cannot use the journal {safe(path)}: {error}") from None
    if state.unreadable:
        lines = "1 line" if state.unreadable == 1 else f"{state.unreadable} lines"
        _warn(path, f"{lines} of the journal could not be read")
    if state.unknown:
        _warn(path, f"events unknown to this version: {safe(', '.join(sorted(state.unknown)))}")
    return state


def _warn(path: str, text: str) -> None:
    with suppress(OSError):  # stderr is closed, which changes nothing
        print(f"{safe(path)}: {text}".encode("utf-8", "backslashreplace").decode(), file=sys.stderr)


def look(path: str) -> RunSnapshot:
    """A run as it is now."""
    return look_at_records(path)[0]


def look_at_records(path: str) -> tuple[RunSnapshot, list[Record]]:
    """A run as it is now, and all records of its journal."""
    # In this order: otherwise a run that ends in between would seem to have died.
    is_alive = files.is_alive(path)
    is_kept = False
    with suppress(OSError), files.opened(path) as fd:
        is_kept = files.is_kept(fd)
    contents = read_records(files.read(path))
    return RunSnapshot(path, is_alive, is_kept, _state_of(path, contents)), contents.records


def standing(state: RunState, alive: bool) -> str:
    """The state of a run, in a word. Find out `alive` before reading the journal: see `look`."""
    if alive:
        return "paused" if state.is_paused else "running"
    if state.ended:
        return "finished" if state.is_finished else "stopped"
    return f"died, or is running on {state.began.get('host')}" if is_elsewhere(state) else "died"


def is_elsewhere(state: RunState) -> bool:
    """Whether it belongs to another host, whose locks may not be seen from here."""
    return state.began.get("host") != os.uname().nodename


_MOST_DIGITS = 15


def find_numbers(words: Sequence[str], journal: str) -> list[int]:
    """The numbers of these jobs. The journal is read only if one is given by name."""
    if all(_is_number(word) for word in words):
        return [int(word) for word in words]
    state = load(journal)
    return [int(word) if _is_number(word) else find_job(state, word).job.number for word in words]


def find_job(state: RunState, word: str) -> JobState:
    """The job with this number or name; of several with that name, the last."""
    if _is_number(word) and int(word) in state.jobs:
        return state.jobs[int(word)]
    for each in reversed(state.jobs.values()):
        if each.job.name == word:
            return each
    if _is_number(word) and int(word) in state.refused:
        raise UserError(f"run {state.run} has no job {word}: its line was refused")
    raise UserError(
        f"run {state.run} has no job '{safe(word)}'; list its jobs with: simple_gpu_scheduler history {state.run}"
    )


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS
