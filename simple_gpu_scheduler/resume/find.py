"""Which run to resume, and locking it: no other process may resume it, and its keeper must have recorded its state."""

import os
import time

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.jobs import Key
from simple_gpu_scheduler.base.program import PROGRAM
from simple_gpu_scheduler.base.values import NamedTuple, Sequence
from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.journal.find import (
    all_runs,
    began,
    choose,
    ending,
    has_followed,
    load,
    newest_record,
    peek,
    read_ending,
)
from simple_gpu_scheduler.journal.run_state import RunState
from simple_gpu_scheduler.keeper.survivors import Traces, find_alive

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
        found = dict.fromkeys(find_alive(Traces(self.run_id.encode())), 0)
        return found | self.state.survivors


def find(word: str, *, failed_too: bool) -> str:
    """The journal of the run to resume; empty if none is named and there is none in this directory."""
    return choose(word, lambda runs: _unfinished_here(runs, failed_too=failed_too))


def _unfinished_here(runs: Sequence[str], *, failed_too: bool) -> str:
    """Of the runs of this directory, the newest with something left to do; else the newest that was not refused.

    A UserError says that one is running, which is most likely what is meant.
    """
    here, host = os.getcwd(), os.uname().nodename
    newest = refused = ""
    for path in runs:
        start = began(path)
        if start.get("directory") != here or start.get("host") != host:
            continue
        if files.is_alive(path):
            raise _still_running(path)
        if not is_done(path, failed_too=failed_too):
            return path
        if not newest and ending(path) != "refused":
            newest = path
        refused = refused or path
    return newest or refused


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
    """Whether nothing is left to do, by the end of a journal; `failed_too` counts failed jobs as left."""
    how, counts = read_ending(path)
    if how not in ("finished", "refused"):
        return False
    if how == "refused" or not failed_too:
        return True
    if any(counts.get(name) for name in ("failed", "timed_out", "stalled")):
        return False
    # A refused line is counted like a job that was not started, but cannot be retried.
    return not (counts.get("not_started") and _has_unstarted(path))


def _has_unstarted(path: str) -> bool:
    state = peek(path)
    return state is None or any(each.state == "not started" for each in state.jobs.values())
