"""Which run to resume, and locking it: no other process may resume it, and its keeper must have recorded its state."""

import os
import time
from collections.abc import Sequence
from typing import NamedTuple

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.jobs import Key
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.journal.find import all_runs, began, choose, has_followed, load, newest_record, newest_records
from simple_gpu_scheduler.journal.read import Record
from simple_gpu_scheduler.journal.run_state import RunState, is_refusal
from simple_gpu_scheduler.keeper.survivors import find_alive

_PATIENCE = 10.0
_PAUSE = 0.01


class Resumed(NamedTuple):
    """A run that is locked for us to resume."""

    path: str
    fd: int
    size: int  # of what the state was read from, at least
    state: RunState

    @property
    def run_id(self) -> str:
        """Which."""
        return self.state.run

    def alive(self) -> dict[Key, int]:
        """The attempts that are still running, and the pids of their main processes where known."""
        found = dict.fromkeys(find_alive(self.run_id.encode()), 0)
        return found | self.state.survivors


def find(word: str, *, failed_too: bool) -> str:
    """The journal of the run to resume; empty if none is named and there is none in this directory."""
    return choose(word, lambda runs: _unfinished_here(runs, failed_too=failed_too))


def _unfinished_here(runs: Sequence[str], *, failed_too: bool) -> str:
    """Of the runs of this directory, the newest that did not finish; else the newest.

    A UserError says that one is running, which is most likely what is meant.
    """
    here, host = os.getcwd(), os.uname().nodename
    newest = ""
    for path in runs:
        start = began(path)
        if start.get("directory") != here or start.get("host") != host:
            continue
        if files.is_alive(path):
            raise _still_running(path)
        if not is_done(path, failed_too=failed_too):
            return path
        newest = newest or path
    return newest


def find_follower(path: str) -> str:
    """The journal of the newest run that followed a file; empty if there is none."""
    return next((journal for journal in all_runs() if has_followed(journal, path)), "")


def take(path: str) -> Resumed:
    """Lock a run for us."""
    path = os.path.abspath(path)  # we may go to another directory
    try:
        fd = files.open_to_append(path)
    except OSError as error:
        raise UserError(f"cannot resume {path}: {error.strerror}") from None
    if not files.lock(fd, files.SCHEDULER):
        raise _still_running(path)
    _wait_for_keeper(fd, path)
    size = os.fstat(fd).st_size
    state = load(path)
    if size and os.pread(fd, 1, size - 1) != b"\n":  # the last line was torn; what we write must not be glued to it
        os.write(fd, b"\n")
    return Resumed(path, fd, size, state)


def _still_running(path: str) -> UserError:
    return UserError(f"cannot resume {_name(path)}: it is still running (see {PROGRAM} status)")


def _name(path: str) -> str:
    return f"run {files.run_of(path)}"


def _wait_for_keeper(fd: int, path: str) -> None:
    """Wait until it has recorded what is still running: it notices the death of its scheduler later than we do."""
    until = time.monotonic() + _PATIENCE
    pid = began(path, newest=True).get("pid")
    while isinstance(pid, int) and files.is_locked(fd, files.keeper_of(pid)):
        if newest_record(path, "keeper alone", "run began").get("event") == "keeper alone":
            return
        if time.monotonic() > until:
            raise UserError(f"cannot resume {_name(path)} yet: its keeper is still writing; try again in a moment")
        time.sleep(_PAUSE)


def is_done(path: str, *, failed_too: bool) -> bool:
    """Whether nothing is left to do, by the end of a journal."""
    ending, counts = _ending(path)
    failed = any(counts.get(name) for name in ("failed", "timed_out", "not_started"))
    return ending == "refused" or (ending == "finished" and not (failed_too and failed))


def ending(path: str) -> str:
    """How a run that is not active ended, by the end of its journal, in the words of `journal.find.standing`."""
    return _ending(path)[0]


def _ending(path: str) -> tuple[str, Record]:
    """The same, and the last record of the run."""
    last = newest_records(path, "run began", "run ended", "job requeued")
    if not last or last[-1]["event"] != "run ended":
        return "died", {}
    ended = last[-1]
    if len(last) > 1 and is_refusal(last[-2], ended):
        return "refused", ended
    return "finished" if ended.get("all_read") and not ended.get("left") else "stopped", ended
