"""Finds runs and jobs as people name them, and the state of a run: for the commands that show or control runs.

It finds and reads journals; it does not know what is shown of them."""

import os
import sys

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import Callable, Iterable, Iterator, NamedTuple, Sequence

from . import files
from .fields import is_sound
from .read import Contents, Record, read_records
from .run_state import JobState, RunState, is_refusal, may_have_no_job, state_of

_MOST_LISTED = 5
_RUN_BEGAN = b'{"event":"run began"'
_PART, _LONGEST_LINE = 64 * 1024, 16 * 1024 * 1024


class FoundRun(NamedTuple):
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


def newest_here(runs: Sequence[str], *, refused_too: bool = False) -> str:
    """The run of this directory that was started or resumed last, else that of any directory.

    One that was refused has nothing to show, so it counts only if it is `refused_too` or there is no other.
    """
    if not runs:
        where = files.runs_directory(os.environ)
        raise UserError(f"no runs yet; their journals are kept in {safe(where)} by default")
    here, by_change = os.getcwd(), sorted(runs, key=_changed, reverse=True)

    def found() -> Iterator[str]:
        for is_ours in (True, False):
            for with_refused in (True,) if refused_too else (False, True):
                paths = (path for path in by_change if not is_ours or began(path).get("directory") == here)
                yield _began_last(paths, refused_too=with_refused)

    return next(filter(None, found()), "")


def _began_last(by_change: Iterable[str], *, refused_too: bool) -> str:
    """Of runs in the order of their last changes, newest first, the one that was started or resumed last."""
    last = (0.0, "")
    for path in by_change:
        if _changed(path) < last[0]:  # and so are all that follow
            break
        if refused_too or ending(path) != "refused":
            last = max(last, (_number(began(path, newest=True).get("at")), path))
    return last[1]


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0.0


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:  # it has just been deleted
        return 0.0


def active_first(runs: Sequence[str]) -> str:
    """The newest that is active; if none is, the newest of this directory, else of any, even if it was refused."""
    return next(_active(runs), "") or newest_here(runs, refused_too=True)


def only_active(runs: Sequence[str]) -> str:
    """The only active run; if there are several, the user must name one."""
    active = list(_active(runs))
    if len(active) > 1:
        raise UserError(f"{len(active)} runs are active: {_listed(active, 'and')}; name the one you mean")
    if not active:
        raise UserError(f"no run is active; '{PROGRAM} history' lists all")
    return active[0]


def _active(runs: Sequence[str]) -> Iterator[str]:
    return (path for path in runs if files.is_alive(path))


def choose(word: str, default: Callable[[Sequence[str]], str] = newest_here) -> str:
    """The journal of the run that is meant: by its ID, a prefix of it or of its last part, or by the journal's file.

    Without a word `default` chooses among all, the newest first.
    """
    if "/" in word or (word and not files.is_run_id(word) and os.path.exists(word)):
        return _file(word)
    runs = all_runs()
    if not word or not runs:
        return default(runs) if not word else newest_here(runs)
    named = [path for path in runs if _is_called(files.run_of(path), word)]
    if not named:
        no_file = ", and there is no such file" if "." in word else ""  # no run has a dot in its ID
        raise UserError(f"no run matches '{safe(word)}'{no_file}; list runs with: {PROGRAM} history")
    if len(named) > 1:
        raise UserError(f"'{safe(word)}' is ambiguous: {_listed(named, 'or')}; use a longer prefix")
    return named[0]


def _file(path: str) -> str:
    if not os.path.isfile(path):
        is_there = os.path.exists(path)
        problem = "it is not a regular file" if is_there else "there is no such file"
        raise UserError(f"{safe(path)} is not a journal: {problem}; give a run ID or the file given to --journal")
    return path


def _is_called(run: str, word: str) -> bool:
    return run.startswith(word) or run.rpartition("-")[2].startswith(word)


def _listed(paths: Sequence[str], conjunction: str) -> str:
    shown = [files.run_of(path) for path in paths[:_MOST_LISTED]]
    if len(paths) > len(shown):
        shown.append(f"{len(paths) - len(shown)} others")
    return f"{', '.join(shown[:-1])} {conjunction} {shown[-1]}"


def began(path: str, *, newest: bool = False) -> Record:
    """How a run was started, or with `newest` how it was resumed last; empty if that cannot be read."""
    if newest:
        return newest_record(path, "run began")
    try:
        with open(path, "rb") as file:
            return next(iter(read_records(file.readline(_LONGEST_LINE)).records), {})
    except OSError:
        return {}


def has_followed(journal: str, path: str) -> bool:
    """Whether a run has followed this growing file since its start, or since it was resumed with it."""
    return any(
        each["kind"] == "follow" and each["path"] == path
        for record in _starts(journal)
        if is_sound(record)
        for each in record.get("inputs", ())
    )


def _starts(journal: str) -> Iterator[Record]:
    """How a run was started, and how it was resumed each time."""
    import mmap  # noqa: PLC0415 - only a run that follows a file asks

    try:
        with open(journal, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at = data.find(_RUN_BEGAN)
            while at >= 0:
                end = data.find(b"\n", at) + 1 or len(data)
                yield from read_records(data[at:end]).records
                at = data.find(_RUN_BEGAN, end)
    except (OSError, ValueError):  # it cannot be read, or is empty
        return


def newest_record(path: str, *kinds: str) -> Record:
    """The last record of these kinds, or an empty one; looked for from the end, which is mostly near."""
    size = _PART
    while True:
        data = _read_end(path, size)
        found = _of_kinds(data, kinds)
        if found or len(data) < size:
            return found[-1] if found else {}
        size *= 8


def newest_records(path: str, *kinds: str) -> list[Record]:
    """Those of these kinds that are near the end."""
    return _of_kinds(_read_end(path, _PART), kinds)


def _of_kinds(data: bytes, kinds: Sequence[str]) -> list[Record]:
    starts = [b'{"event":"%s"' % kind.encode() for kind in kinds]
    lines = [line for line in data.splitlines(keepends=True) if any(start in line for start in starts)]
    return [each for each in read_records(b"".join(lines)).records if each["event"] in kinds]


def _read_end(path: str, size: int) -> bytes:
    """The end of a journal, at most this long; nothing if it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read(size)
    except OSError:
        return b""


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


def look(path: str) -> FoundRun:
    """A run as it is now."""
    return look_at_records(path)[0]


def look_at_records(path: str) -> tuple[FoundRun, list[Record]]:
    """A run as it is now, and all records of its journal."""
    # In this order: otherwise a run that ends in between would seem to have died.
    is_alive = files.is_alive(path)
    is_kept = False
    with suppress(OSError), files.opened(path) as fd:
        is_kept = files.is_kept(fd)
    contents = read_records(files.read(path))
    return FoundRun(path, is_alive, is_kept, _state_of(path, contents)), contents.records


def standing(state: RunState, alive: bool) -> str:
    """The state of a run, in a word. Find out `alive` before reading the journal: see `look`."""
    if alive:
        return "paused" if state.is_paused else "running"
    if state.ended:
        return "refused" if state.is_refused else "finished" if state.is_finished else "stopped"
    return f"died, or is running on {state.began.get('host')}" if is_elsewhere(state) else "died"


def ending(path: str) -> str:
    """How a run that is not active ended, in the same words, by the end of its journal."""
    return read_ending(path)[0]


def read_ending(path: str) -> tuple[str, Record]:
    """The same, and the last record of the run."""
    last = newest_records(path, "run began", "run ended", "job requeued")
    if not last or last[-1]["event"] != "run ended":
        return "died", {}
    ended = last[-1]
    if (len(last) > 1 and is_refusal(last[-2], ended)) or (may_have_no_job(ended) and _has_no_job(path)):
        return "refused", ended
    return "finished" if ended.get("all_read") and not ended.get("left") else "stopped", ended


def _has_no_job(path: str) -> bool:
    state = peek(path)
    return state is not None and not state.jobs


def peek(path: str) -> RunState | None:
    """The state of a run among others, of which nothing is reported; None if it cannot be read."""
    try:
        return state_of(read_records(files.read(path)))
    except (OSError, ValueError, UserError):
        return None


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
    raise UserError(f"run {state.run} has no job '{safe(word)}'; list its jobs with: {PROGRAM} history {state.run}")


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS
